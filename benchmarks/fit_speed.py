"""How many memory verdicts a second one core gives; the goal is 10,000.

Run from a checkout: ``python -m benchmarks.fit_speed``. Prints a line for each kind of question:
bare arithmetic, and whole answers with limits, reasons and the validated result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sparkrecipes import catalog
from sparkrecipes.memory import FitRequest, estimate, recipe_request
from sparkrecipes.memory.estimation import verdict
from sparkrecipes.memory.need import longest_context, most_users, need_of
from sparkrecipes.schema.machine import Machine

SECONDS = 1.0


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


def arithmetic(request: FitRequest, machine: Machine) -> str:
    """Give the verdict alone."""
    need = need_of(request, machine)
    return verdict(need.total(request.users, request.context_tokens), machine.mem_total_bytes)


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
    """Count answers a second over at least ``SECONDS``, after one pass that warms caches."""
    for request in asked:
        answer(request, on)
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SECONDS:
        for request in asked:
            answer(request, on)
        count += len(asked)
    return count / spent


def main() -> None:
    """Measure and print."""
    opened = catalog.open_catalog()
    machine = opened.machine("dgx-spark")
    asked = questions(opened)
    print(f"{len(asked)} questions about {len(opened.recipes)} recipes, one core")
    for name, answer in (
        ("verdict (arithmetic)", arithmetic),
        ("most users and longest context", limits),
        ("whole answer (estimate)", estimate),
    ):
        print(f"{name:32} {rate(answer, asked, machine):>10,.0f} a second")


if __name__ == "__main__":
    main()
