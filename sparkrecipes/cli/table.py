"""The list as a table: plain text, so that it needs neither rich nor the types."""

from __future__ import annotations

import re
from typing import Any

HEADS = (
    ("1 user", "tok/s"),
    ("4 users", "tok/s"),
    ("TTFT", "ms"),
    ("46K", "s"),
    ("memory", "GB"),
)

FIGURES = {
    "single_user_tok_s": 1,
    "four_users_total_tok_s": 1,
    "ttft_ms": 0,
    "long_prompt_46k_s": 1,
    "memory_gb": 1,
}
"""What stands in each column, and with how many decimals."""

HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""What a terminal obeys or reorders text by, where it stands in names of files or processes."""


def visible(text: str) -> str:
    """Write what a terminal would obey as an escape; lines and tabs stay."""
    return HIDDEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def print_table(answer: Any) -> None:
    """Print a ``RecipeList``, or its JSON with attributes, one line a recipe."""
    rows = [(named(recipe), *cells(recipe)) for recipe in answer.recipes]
    width = max((len(row[0]) for row in rows), default=6)
    for line in zip(*HEADS, strict=True):
        title = "recipe" if line[0] == "1 user" else ""
        print_row(title, [f"{word} " for word in line], width)
    for name, *figures in rows:
        print_row(name, figures, width)
    print("* doubtful: sparkrecipes show RECIPE says why")
    if any(estimate(recipe) for recipe in answer.recipes):
        print("~ estimated, not measured: sparkrecipes fit RECIPE says how")
    if answer.note:
        print(answer.note)
    for p in answer.left_out:
        print(visible(f"! left out: {p.file}:{p.line}:{p.column}: {p.message}"))
    print("Next: sparkrecipes recommend agents")


def print_row(name: str, cells: Any, width: int) -> None:
    """Print one line, figures to the right."""
    print((f"{name:{width}} " + "".join(f"{cell:>9}" for cell in cells)).rstrip())


def named(recipe: Any) -> str:
    """Name a recipe, with its status unless it was measured, and whose it is."""
    guess = estimate(recipe)
    slow = ", too slow to use" if guess and guess.usable is False else ""
    notes = [] if recipe.status == "measured" else [f"{recipe.status}{slow}"]
    if recipe.origin == "user":
        notes.append("yours, hides the shipped one" if recipe.shadows else "yours")
    return f"{recipe.id} ({', '.join(notes)})" if notes else str(recipe.id)


def estimate(recipe: Any) -> Any:
    """Give what a recipe without published figures may reach; null where there is none."""
    return getattr(recipe, "estimated", None)


def cells(recipe: Any) -> tuple[str, ...]:
    """Write the figures that people choose by."""
    f = recipe.published
    if f is None:
        guess = estimate(recipe)
        if guess is None:
            return ("- ",) * len(HEADS)
        four = between(guess.users_total_tok_s) if guess.users == 4 else "-"
        return (f"{between(guess.single_user_tok_s)} ", f"{four} ", "- ", "- ", "- ")
    return tuple(
        figure(getattr(f, name), digits) + ("*" if name in recipe.doubtful else " ")
        for name, digits in FIGURES.items()
    )


def between(pair: Any) -> str:
    """Write an estimated range in two digits: it can claim no more."""
    low, high = (float(f"{side:.2g}") for side in pair)
    return f"~{low:g}-{high:g}"


def figure(value: float | None, digits: int = 1) -> str:
    """Write a figure, or a dash for unknown."""
    return "-" if value is None else f"{value:,.{digits}f}"
