"""How wrong is the speed forecast? Calibrates it on the October round without one model.

Run from a checkout: ``python -m benchmarks.fit_forecast``. Prints the parameters, the tables of
docs/speed.md and the factors that make a range; tests hold the page and the constants to it.
"""

from __future__ import annotations

import math

from sparkrecipes import catalog
from sparkrecipes.memory import estimate, recipe_request
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.speed import (
    Measured,
    Shape,
    calibrate,
    left_out_errors,
    shape_of,
    widest_factors,
)
from sparkrecipes.speed.calibration import decode_errors
from sparkrecipes.speed.rules import Load, decode_tok_s

BUILD_NOT_NAMED = 1.5
"""Where the bounds of the weights are further apart than this, nobody knows which build was run."""

FIGURES = {
    "single": "one user",
    "speculative": "one user, speculation",
    "users": "four users",
    "prefill": "46K prompt",
}


def measured_rows(opened: catalog.Catalog) -> list[Measured]:
    """List the rows of the October round: no doubtful figure, no row whose build is not known."""
    machine, rows = opened.machine("dgx-spark"), []
    for recipe in opened.recipes.values():
        row = opened.october_row(recipe)
        if row is None:
            continue
        model = opened.model(recipe.model)
        request = recipe_request(recipe, model, opened.engine(recipe.engine), row)
        answer = estimate(request, machine)
        weights = answer.bounds["weights_bytes"]
        shape = shape_of(model, weights, answer.kv_bytes_per_token)
        if shape is None or weights is None or weights[1] > BUILD_NOT_NAMED * weights[0]:
            continue
        drafts = recipe.speculative.num_speculative_tokens if recipe.speculative else 0
        rows.append(measured(recipe.id, model.id, shape, drafts, row))
    return rows


def measured(recipe: str, model: str, shape: Shape, drafts: int, row: EvidenceRow) -> Measured:
    """Take the figures of a row that no caveat doubts."""
    doubted = {name for caveat in row.caveats for name in caveat.figures}
    figures = row.figures
    return Measured(
        recipe,
        model,
        shape,
        drafts,
        None if "single_user_tok_s" in doubted else figures.single_user_tok_s,
        None if "four_users_total_tok_s" in doubted else figures.four_users_total_tok_s,
        None if "long_prompt_46k_s" in doubted else figures.long_prompt_46k_s,
    )


def error_rows(errors: list[tuple[Measured, str, float]]) -> list[str]:
    """Write the error of every figure of every recipe, its model left out."""
    lines = [
        "| recipe | " + " | ".join(FIGURES.values()) + " |",
        "|---|" + "---|" * len(FIGURES),
    ]
    for recipe in dict.fromkeys(row.recipe for row, _, _ in errors):
        own = {figure: e for row, figure, e in errors if row.recipe == recipe}
        cells = [
            f"{100 * (math.exp(own[name]) - 1):+.0f} %" if name in own else "" for name in FIGURES
        ]
        lines.append(f"| {recipe} | " + " | ".join(cells) + " |")
    return lines


def summary_rows(errors: list[tuple[Measured, str, float]]) -> list[str]:
    """Write the typical and the largest error of each figure."""
    lines = [
        "| figure | rows | median error | largest | factor of the range |",
        "|---|---|---|---|---|",
    ]
    factors = widest_factors(errors)._asdict()
    for name, text in FIGURES.items():
        sizes = sorted(math.exp(abs(e)) - 1 for _, figure, e in errors if figure == name)
        lines.append(
            f"| {text} | {len(sizes)} | {100 * sizes[len(sizes) // 2]:.0f} % "
            f"| {100 * sizes[-1]:.0f} % | {factors[name]:.2f} |"
        )
    return lines


def acceptance_rows(opened: catalog.Catalog, rows: list[Measured], bandwidth: float) -> list[str]:
    """Set the gain by acceptance beside the one published for each kind of prompt."""
    known = calibrate(rows, bandwidth)
    by_recipe = {row.recipe: row for row in rows}
    lines = ["| prompts | acceptance | published gain | ours |", "|---|---|---|---|"]
    for evidence in opened.evidence.values():
        for found in evidence.by_workload:
            for one in found.workloads:
                if one.acceptance_pct is None or one.without_speculation_tok_s is None:
                    continue
                row = by_recipe[found.recipe]
                drafts, read = row.draft_tokens, row.shape.read_bytes[0]
                plain = decode_tok_s(row.shape, read, Load(1, 0, 0), known, bandwidth)
                told = decode_tok_s(
                    row.shape,
                    read,
                    Load(1, drafts, 0),
                    known,
                    bandwidth,
                    tokens=1 + drafts * one.acceptance_pct / 100,
                )
                lines.append(
                    f"| {one.workload}, temperature {one.temperature:g} "
                    f"| {one.acceptance_pct:.1f} % "
                    f"| {one.tok_s / one.without_speculation_tok_s:.2f} | {told / plain:.2f} |"
                )
    return lines


def main() -> None:
    """Calibrate, leave out, print."""
    opened = catalog.open_catalog()
    bandwidth = opened.machine("dgx-spark").memory_bandwidth_gb_s or 273.0
    rows = measured_rows(opened)
    known = calibrate(rows, bandwidth)
    errors = left_out_errors(rows, bandwidth)
    print(f"{len(rows)} rows, {len({row.model for row in rows})} models")
    print(known)
    print(widest_factors(errors))
    own = [abs(e) for _, _, e in decode_errors(rows, known, bandwidth)]
    print(f"fitted itself: largest {math.exp(max(own)):.2f}\n")
    for table in (
        summary_rows(errors),
        error_rows(errors),
        acceptance_rows(opened, rows, bandwidth),
    ):
        print("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
