"""Rounds, reports, comparisons, the history and the audit as people read them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from sparkrecipes.cli.printing import QuietConsole, bullets, coloured, console, page, plain
from sparkrecipes.cli.table import figure
from sparkrecipes.reports.drawings import rungs
from sparkrecipes.reports.text import ranged

if TYPE_CHECKING:
    from sparkrecipes.schema.report import (
        ExportedRounds,
        History,
        PublishedAudit,
        RoundComparison,
        WrittenReport,
    )
    from sparkrecipes.schema.round import Concurrent, Report, Round, Spread

FIGURES = {
    "single_user_tok_s": "one user",
    "four_users_total_tok_s": "four users together",
    "ttft_ms": "TTFT",
    "long_prompt_46k_s": "46K prompt",
}
STABLE = {True: "stable", False: "unstable", None: "stability not verified"}


@page("Round")
def _(answer: Round) -> None:
    mark = " [bold cyan]simulated[/]" if answer.simulated else ""
    console.print(f"[bold]{escape(answer.server.model)}[/] at {answer.server.base_url}{mark}")
    bullets(round_lines(answer))
    bullets(answer.warnings, "!")
    if answer.saved_to:
        console.print(f"saved in {escape(answer.saved_to)}\nNext: sparkrecipes report")


def round_lines(answer: Round) -> Iterator[str]:
    """Say what each part measured; a part that was not run says nothing."""
    if one := answer.single:
        yield f"one user, {one.n} requests: {spread(one.decode_tok_s, 'tok/s')}"
        yield f"TTFT {spread(one.ttft_ms, 'ms')}, first output {spread(one.ttfo_ms, 'ms')}"
    yield from map(step_line, rungs(answer))
    if long := answer.long_prompt:
        yield (
            f"long prompt ({long.prompt_tokens} tokens): {figure(long.wall_s)} s, "
            f"prefill {figure(long.prefill_tok_s, 0)} tok/s"
            if long.state == "measured"
            else f"long prompt: {long.state.replace('_', ' ')}: {long.reason}".rstrip(": ")
        )
    if load := answer.sustained:
        yield (
            f"sustained {load.minutes:g} minutes: {figure(load.tok_s)} tok/s, {load.failed} of "
            f"{load.requests} requests failed, drift {load.drift.replace('_', ' ')}"
        )
    if answer.acceptance and answer.acceptance.rate_pct is not None:
        length = figure(answer.acceptance.mean_length, 2)
        yield f"acceptance rate {answer.acceptance.rate_pct:.1f} %, length {length}"
    if answer.gpu and answer.gpu.sm_clock_mhz:
        yield f"GPU clock {spread(answer.gpu.sm_clock_mhz, 'MHz')}"
    requests = answer.stability
    yield f"{STABLE[answer.stable]}: {requests.failed} of {requests.requests} requests failed"


def step_line(step: Concurrent) -> str:
    """Say what so many users got."""
    kind = f"{step.scenario}, " if step.scenario else ""
    users = "1 user" if step.users == 1 else f"{step.users} users together"
    total, each = spread(step.aggregate_tok_s, "tok/s"), spread(step.per_user_tok_s, "tok/s")
    return f"{kind}{users}: {total}, each {each}"


def spread(value: Spread | None, unit: str) -> str:
    """Write a median with its range."""
    if value is None:
        return "not measurable"
    return f"{value.median:,.1f} {unit} ({value.min:,.1f} to {value.max:,.1f})"


@page("Report")
def _(answer: Report) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for name in ("published", "measured*", "true", "difference"):
        table.add_column(name, justify="right")
    table.add_column("verdict", no_wrap=True)
    for row in answer.rows:
        gap = row.difference_pct
        table.add_row(
            FIGURES.get(row.figure, row.figure) + f", {row.unit}",
            figure(row.published),
            figure(row.measured),
            figure(row.true_value),
            "-" if gap is None else f"{gap:+.1f} %",
            coloured(row.verdict),
        )
    console.print(table)
    console.print("* by the published method, on the same bytes", style="dim")
    if answer.round_file:
        console.print(f"round: {escape(answer.round_file)}", style="dim", soft_wrap=True)
    notes = {row.note: FIGURES.get(row.figure, row.figure) for row in answer.rows if row.note}
    bullets(f"{name}: {note}" for note, name in notes.items())
    console.print(f"{coloured(answer.verdict)}: {escape(answer.summary)}")
    bullets(answer.warnings, "!")


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
    err = QuietConsole(stderr=True, highlight=False)
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
