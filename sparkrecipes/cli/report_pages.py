"""Reports, comparisons, the history and the audit as people read them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparkrecipes.cli.printing import bullets, coloured, console, page, plain
from sparkrecipes.cli.table import figure
from sparkrecipes.reports.text import ranged

if TYPE_CHECKING:
    from sparkrecipes.schema.report import (
        ExportedRounds,
        History,
        PublishedAudit,
        RoundComparison,
        WrittenReport,
    )


@page("WrittenReport")
def _(answer: WrittenReport) -> None:
    if answer.path is None:
        plain(answer.text.rstrip("\n"))
        return
    console.print(f"{coloured(answer.verdict)}: written to", end=" ")
    plain(answer.path)


@page("ExportedRounds")
def _(answer: ExportedRounds) -> None:
    sys.stdout.write(answer.text)
    err = Console(stderr=True, highlight=False)
    for warning in answer.warnings:
        err.print(f"! {escape(warning)}")


@page("RoundComparison")
def _(answer: RoundComparison) -> None:
    sides = (("first", answer.before), ("second", answer.after))
    for word, side in sides:
        console.print(f"{word}: {escape(side.name)}, {side.started_at}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for name in ("first", "second", "difference"):
        table.add_column(name, justify="right")
    table.add_column("verdict", no_wrap=True)
    for row in answer.rows:
        gap = row.difference_pct
        table.add_row(
            f"{row.says}, {row.unit}",
            ranged(row.before),
            ranged(row.after),
            "-" if gap is None else f"{gap:+.1f} %",
            coloured(row.verdict),
        )
    if answer.rows:
        console.print(table)
        console.print("true figures: median and range of the repeats", style="dim")
    notes = [f"{row.says}: {row.note}" for row in answer.rows if row.note]
    common = {row.note for row in answer.rows}
    bullets(notes if len(common) > 1 else [])
    console.print(f"{coloured(answer.verdict)}: {escape(answer.summary)}")
    unknown = "unknown"
    bullets(
        f"{c.condition}: {c.before or unknown} -> {c.after or unknown}" for c in answer.conditions
    )
    bullets(answer.warnings, "!")


@page("History")
def _(answer: History) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("when", "recipe or model", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("one user", "together"):
        table.add_column(f"{name}, tok/s", justify="right")
    for name in ("verdict", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("file", overflow="fold")
    for row in answer.rows:
        together = figure(row.aggregate_tok_s)
        table.add_row(
            row.started_at[:16].replace("T", " "),
            escape(row.recipe_id or row.model) + (" (simulated)" if row.simulated else ""),
            escape(row.method),
            figure(row.single_user_tok_s),
            f"{together} ({row.users})" if row.users else together,
            coloured(row.verdict),
            row.state + (f", {row.failed} of {row.requests} failed" if row.failed else ""),
            escape(row.file),
        )
    if answer.rows:
        console.print(table)
    else:
        console.print("no round was run here yet\nNext: sparkrecipes round RECIPE --quick")
    bullets(answer.warnings, "!")


@page("PublishedAudit")
def _(answer: PublishedAudit) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("row", no_wrap=True)
    for name in ("one user", "TTFT ms", "whole request", "times", "4 users", "scaling"):
        table.add_column(name, justify="right")
    table.add_column("", no_wrap=True)
    for row in answer.rows:
        table.add_row(
            row.recipe_id,
            f"{row.single_user_tok_s:g}",
            f"{row.ttft_ms:g}",
            f"{row.whole_request_tok_s:g}",
            f"{row.overstated:.2f}",
            f"{row.four_users_total_tok_s:g}",
            f"{row.scaling:.2f}",
            "[bold red]flagged[/]" if row.flagged else "[dim]noted[/]" if row.notes else "",
        )
    console.print(table)
    console.print(f"\n{escape(answer.basis)}")
    for row in answer.rows:
        if row.reasons or row.notes:
            console.print(f"\n[bold]{row.recipe_id}[/]")
            bullets([*row.reasons, *row.notes])
            if row.flagged:
                marked = ", ".join(row.caveats)
                bullets([f"marked as doubtful: {marked}" if marked else "not marked as doubtful"])
    console.print(f"\n{len(answer.flagged)} of {len(answer.rows)} rows are flagged")
    bullets([f"left out: {line}" for line in answer.left_out])
    bullets([f"flagged, and no caveat says so: {id_}" for id_ in answer.unmarked], "!")
