"""How many memory verdicts a second one core gives; the goal is 10,000.

Run from a checkout: ``python -m benchmarks.fit_speed``. Prints a line for each kind of question:
bare verdicts, tables, and whole answers with limits, reasons and the validated result. Counted by
the CPU time of this process, best of several passes, so that other processes do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sparkrecipes import catalog
from sparkrecipes.memory import FitRequest, estimate, grid, recipe_request, verdict_of
from sparkrecipes.memory.need import longest_context, most_users, need_of
from sparkrecipes.schema.machine import Machine

PASSES = 15


def questions(opened: catalog.Catalog) -> list[FitRequest]:
    """Ask about every recipe at several contexts and numbers of users, no two alike."""
    asked = []
    for recipe in opened.recipes.values():
        base = recipe_request(
            recipe,
            opened.model(recipe.model),
            opened.engine(recipe.engine),
            opened.october_row(recipe),
        )
        asked += [
            replace(base, context_tokens=context, users=users)
            for context in (8192, 32768, 65536, 131072)
            for users in (1, 2, 4, 8)
        ]
    return asked


def limits(request: FitRequest, machine: Machine) -> tuple[int | None, int | None]:
    """Give the most users and the longest context."""
    need, usable = need_of(request, machine), machine.mem_total_bytes
    return (
        most_users(need, usable, request.context_tokens),
        longest_context(need, usable, request.users, request.model.context_tokens),
    )


def rate(
    answer: Callable[[FitRequest, Machine], object], asked: list[FitRequest], on: Machine
) -> float:
    """Count answers in a second of CPU, in the best of ``PASSES``, after one that warms caches."""
    best = float("inf")
    for _ in range(PASSES + 1):
        start = time.process_time()
        for request in asked:
            answer(request, on)
        best = min(best, time.process_time() - start)
    return len(asked) / best


def main() -> None:
    """Measure and print."""
    opened = catalog.open_catalog()
    machine = opened.machine("dgx-spark")
    asked = questions(opened)
    print(f"{len(asked)} questions about {len(opened.recipes)} recipes, one core, by CPU time")
    for name, answer in (
        ("verdict", verdict_of),
        ("most users and longest context", limits),
        ("whole answer (estimate)", estimate),
    ):
        print(f"{name:32} {rate(answer, asked, machine):>10,.0f} a second")
    cells = len(grid(asked[0], machine))
    tables = rate(grid, asked[::8], machine)
    print(f"{'cells of tables (grid)':32} {tables * cells:>10,.0f} a second")


if __name__ == "__main__":
    main()
