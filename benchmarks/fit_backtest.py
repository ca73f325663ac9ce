"""Prints the backtest tables of docs/memory.md: our bounds against what was published and logged.

Run from a checkout: ``python -m benchmarks.fit_backtest``. A test holds the page to this output.
"""

from __future__ import annotations

from sparkrecipes import catalog
from sparkrecipes.memory import estimate, recipe_request

GB = 10**9
GIB = 2**30


def published_rows(opened: catalog.Catalog) -> list[str]:
    """Set each recipe's bounds beside its published memory, read as GB and as GiB."""
    machine = opened.machine("dgx-spark")
    lines = [
        "| recipe | published | fraction x total | published / that, as GB | as GiB "
        "| need (GiB) | users the pool holds | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for recipe in opened.recipes.values():
        row = opened.october_row(recipe)
        if row is None or row.figures.memory_gb is None:
            continue
        answer = estimate(
            recipe_request(recipe, opened.model(recipe.model), opened.engine(recipe.engine), row),
            machine,
        )
        taken, seen = answer.reservation_bytes or 0, row.figures.memory_gb
        low, high = (side - machine.host_reserve_bytes for side in answer.total_bounds or (0, 0))
        users = answer.pool.users_at_context or (0.0, 0.0)
        lines.append(
            f"| {recipe.id} | {seen:.1f} | {taken / GB:.1f} GB, {taken / GIB:.1f} GiB "
            f"| {seen * GB / taken:.2f} | {seen * GIB / taken:.2f} "
            f"| {low / GIB:.1f} to {high / GIB:.1f} | {users[0]:.1f} to {users[1]:.1f} "
            f"| {answer.verdict} |"
        )
    return lines


def main() -> None:
    """Print the table."""
    print("\n".join(published_rows(catalog.open_catalog())))


if __name__ == "__main__":
    main()
