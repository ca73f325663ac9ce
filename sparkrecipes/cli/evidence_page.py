"""Published figures side by side, as people read them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from sparkrecipes.cli.printing import bullets, console

if TYPE_CHECKING:
    from sparkrecipes.schema.contradiction import (
        Contradiction,
        EvidenceOverview,
        EvidenceView,
        Reading,
    )

OF_SETS = ("way of counting: ", "what the engine was set for: ", " has an interest: ")
"""Reasons that concern whole sets: those are described once."""


def print_overview(overview: EvidenceOverview) -> None:
    """Print several models, and the facts of machines once."""
    for view in overview.views:
        print_evidence(view)
    for found in overview.machines:
        print_contradiction(found)


def print_evidence(view: EvidenceView) -> None:
    """Print everything published of a model, and where it contradicts."""
    console.print(f"\n[bold]everything published of {view.model}[/], tok/s (users together)")
    console.print(readings(view))
    bullets(said_of_alike(view))
    console.print("the sets, the most trusted first; no figure of one ranks beside another's:")
    for one in view.sets:
        date = f", {one.date}" if one.date else ""
        lines = [f"speed: {one.counting}", f"engine set for: {one.setting}"]
        lines += [f"interest: {one.interest}"] if one.interest else []
        console.print(f"[bold]{one.evidence}[/] ({escape(one.publisher)}{date})")
        bullets(lines)
    for found in view.contradictions:
        print_contradiction(found)
    if not view.contradictions:
        console.print("no two sources contradict each other here")
    if view.notes:
        console.print("\nwhat the pages do not agree with themselves on:")
        bullets(f"{note.evidence}: {note.text}" for note in view.notes)


def readings(view: EvidenceView) -> Table:
    """Lay the figures out, one line a configuration and prompt."""
    table = Table(box=None, pad_edge=False)
    for name in ("set", "configuration", "prompt"):
        table.add_column(name, overflow="fold")
    for name in ("users", "tok/s"):
        table.add_column(name, justify="right", no_wrap=True)
    alike = _alike(view)
    for one in view.readings:
        same = f" ({one.row})" if _label(one) in alike else ""
        table.add_row(
            one.evidence,
            escape(one.config + same),
            prompt(one),
            str(one.users),
            figure(one) + ("*" if one.doubts else " "),
        )
    return table


def _alike(view: EvidenceView) -> set[tuple[str, str, str, int]]:
    """Return what several rows of the table have in common but their figure."""
    count = Counter(map(_label, view.readings))
    return {label for label, times in count.items() if times > 1}


def said_of_alike(view: EvidenceView) -> list[str]:
    """Say what the sources say of rows that differ by nothing else in the table."""
    alike = _alike(view)
    told = [f"({r.row}) {note}" for r in view.readings if _label(r) in alike for note in r.notes]
    return list(dict.fromkeys(told))


def _label(one: Reading) -> tuple[str, str, str, int]:
    return (one.evidence, one.config, prompt(one), one.users)


def prompt(one: Reading) -> str:
    """Name the prompt, and the temperature where it is stated."""
    at = "" if one.temperature is None else f", temperature {one.temperature:g}"
    return one.workload.replace("_", " ") + at


def figure(one: Reading) -> str:
    """Write a figure or a range."""
    return f"{one.low:g}" if one.low == one.high else f"{one.low:g}-{one.high:g}"


def print_contradiction(found: Contradiction) -> None:
    """Print one contradiction and what may explain it."""
    console.print(f"\n[bold yellow]{found.kind}[/]: {escape(found.subject)}")
    bullets([found.says], ">")
    own = [line for line in found.why if not is_of_sets(line)]
    if own:
        console.print("  why they may differ, beside how the sets were measured:")
        bullets(own)


def is_of_sets(line: str) -> bool:
    """Say whether a reason concerns whole sets."""
    return any(start in line for start in OF_SETS)
