"""A recommendation as people read it: in the language of the question, nothing said twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape

from sparkrecipes.cli.printing import bullets, console, plain

if TYPE_CHECKING:
    from sparkrecipes.schema.recommendation import (
        Language,
        Reasoned,
        Recommendation,
        SideBySide,
    )

WORDS: dict[str, tuple[str, str]] = {
    "nothing": ("nothing suits", "nada sirve"),
    "also": ("also:", "también:"),
    "more": (
        "and {0} more: --all, or --limit N",
        "y {0} más: --all, o --limit N",
    ),
    "ruled_out": ("ruled out:", "descartadas:"),
    "nearest": ("nearest:", "lo más cercano:"),
    "relax": ("what would do:", "lo que serviría:"),
    "side_by_side": ("side by side:", "a la vez:"),
    "port": (
        "{use}: {id} on port {port}, memory fraction {fraction:g}",
        "{use}: {id} en el puerto {port}, fracción de memoria {fraction:g}",
    ),
    "no_room": (
        "no room at these settings (sparkrecipes fit RECIPE says how many users there is room for)",
        "no caben con estos ajustes (sparkrecipes fit RECETA dice para cuántos usuarios caben)",
    ),
    "recipes": ("{0} recipes", "{0} recetas"),
    "next": ("Next:", "Siguiente:"),
}


def print_recommendation(answer: Recommendation) -> None:
    """Print the pick and why, the alternatives, and what was ruled out."""
    tongue = answer.language
    uses = escape(" + ".join(answer.use_cases or (answer.use_case,)))
    if answer.pick:
        console.print(f"[bold]{uses}: {answer.pick.id}[/]")
        bullets(answer.pick.why)
    else:
        console.print(f"[bold red]{uses}: {said(tongue, 'nothing')}[/]")
    if answer.side_by_side:
        print_pair(answer.side_by_side, tongue)
    print_group(tongue, "also", (line(one) for one in answer.alternatives))
    if answer.more_alternatives:
        console.print(f"  {said(tongue, 'more', answer.more_alternatives)}")
    print_group(tongue, "nearest", (line(one) for one in answer.nearest))
    print_group(tongue, "relax", (one.says for one in answer.relax))
    print_group(tongue, "ruled_out", grouped(answer.ruled_out, tongue))
    bullets([*answer.warnings, *([answer.outgrown] if answer.outgrown else [])], "!")
    if answer.next:
        console.print(f"{said(tongue, 'next')} {escape(answer.next)}")


def print_pair(pair: SideBySide, tongue: Language) -> None:
    """Print two recipes at once, each with its command."""
    console.print(said(tongue, "side_by_side"))
    for part in pair.parts:
        head = said(
            tongue,
            "port",
            use=part.use_case,
            id=part.id,
            port=part.port,
            fraction=part.gpu_memory_utilization,
        )
        bullets([head])
        plain(part.command)
    bullets(pair.notes)


def print_group(tongue: Language, title: str, lines: Iterable[str]) -> None:
    """Print a title and its lines, where there are any."""
    told = list(lines)
    if told:
        console.print(said(tongue, title))
        bullets(told)


def grouped(ruled_out: Iterable[Reasoned], tongue: Language) -> Iterable[str]:
    """Say each reason once, with the recipes that it rules out."""
    groups: dict[str, list[str]] = {}
    for one in ruled_out:
        alike = one.wishes == ("memory",)
        why = said(tongue, "no_room") if alike else "; ".join(one.why)
        groups.setdefault(why, []).append(one.id)
    for why, ids in sorted(groups.items(), key=lambda group: -len(group[1])):
        count = f"{said(tongue, 'recipes', len(ids))}: " if len(ids) > 1 else ""
        yield f"{count}{', '.join(ids)}: {why}"


def line(one: Reasoned) -> str:
    """Write a recipe and its reasons in one line."""
    return f"{one.id}: {'; '.join(one.why)}"


def said(tongue: Language, key: str, *values: object, **named: object) -> str:
    """Write a word of the page."""
    return WORDS[key][tongue == "es"].format(*values, **named)
