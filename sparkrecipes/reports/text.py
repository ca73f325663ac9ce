"""Text: a report as Markdown, to paste where figures are discussed."""

from __future__ import annotations

from sparkrecipes.schema.report import PairRow, RoundComparison
from sparkrecipes.schema.round import Report, ReportRow, Round, Spread

SIMULATED = (
    "**Simulated**: measured over a socket against a server that plays the published timing. "
    "It says nothing about this machine."
)


def markdown(report: Report, round_: Round) -> str:
    """Write a report out, with where its figures come from.

    Args:
        report: The comparison.
        round_: The round that it compares.
    """
    lines = [f"## {report.recipe_id or round_.server.model}: {report.verdict}", ""]
    if report.simulated:
        lines += [SIMULATED, ""]
    lines += [
        report.summary,
        "",
        "| figure | published | measured | range | true figure | difference | verdict |",
        "|---|--:|--:|--:|--:|--:|---|",
        *(line_of(row) for row in report.rows),
        "",
    ]
    notes = [f"- {row.figure}: {one_line(row.note)}" for row in report.rows if row.note]
    notes += [f"- {one_line(warning)}" for warning in report.warnings]
    if notes:
        lines += ["Notes:", "", *notes, ""]
    return "\n".join([*lines, origin(round_)]) + "\n"


def markdown_of_pair(comparison: RoundComparison, before: Round, after: Round) -> str:
    """Write the comparison of two rounds out, with where the figures of each come from.

    Args:
        comparison: The comparison.
        before: The first round.
        after: The second round.
    """
    first, second = comparison.before, comparison.after
    lines = [f"## {one_line(second.name)}: {comparison.verdict}", ""]
    if comparison.simulated:
        lines += [SIMULATED, ""]
    lines += [
        one_line(comparison.summary),
        "",
        f"| figure | first: {one_line(first.name)} | second: {one_line(second.name)} "
        "| difference | verdict |",
        "|---|--:|--:|--:|---|",
        *(pair_line(row) for row in comparison.rows),
        "",
    ]
    notes = [f"- {row.says}: {one_line(row.note)}" for row in comparison.rows if row.note]
    notes += [
        f"- {c.condition}: {one_line(c.before or 'unknown')} -> {one_line(c.after or 'unknown')}"
        for c in comparison.conditions
    ]
    notes += [f"- {one_line(warning)}" for warning in comparison.warnings]
    if notes:
        lines += ["Notes:", "", *notes, ""]
    return (
        "\n".join([*lines, f"First: {measured(before)}", "", f"Second: {measured(after)}"]) + "\n"
    )


def pair_line(row: PairRow) -> str:
    """Return a row of the table of two rounds."""
    cells = (
        f"{row.says} ({row.unit})",
        ranged(row.before),
        ranged(row.after),
        "" if row.difference_pct is None else f"{row.difference_pct:+.1f} %",
        row.verdict.replace("_", " "),
    )
    return f"| {' | '.join(cells)} |"


def ranged(spread: Spread | None) -> str:
    """Return a median with the range of its repeats, or a dash where there is none."""
    if spread is None:
        return "-"
    middle = f"{spread.median:,.4g}"
    return middle if spread.min == spread.max else f"{middle} ({spread.min:,.4g}-{spread.max:,.4g})"


def line_of(row: ReportRow) -> str:
    """Return a row of the table."""
    between = (
        f"{row.measured_range[0]:g} to {row.measured_range[1]:g}" if row.measured_range else ""
    )
    cells = (
        f"{row.figure} ({row.unit})",
        number(row.published),
        number(row.measured),
        between,
        number(row.true_value),
        "" if row.difference_pct is None else f"{row.difference_pct:+.1f} %",
        row.verdict.replace("_", " "),
    )
    return f"| {' | '.join(cells)} |"


def number(value: float | None) -> str:
    """Return a figure, or a dash where there is none."""
    return "-" if value is None else f"{value:g}"


def one_line(text: str) -> str:
    """Return a text without line ends and table marks: it may come from a server."""
    return " ".join(text.split()).replace("|", "\\|")


def origin(round_: Round) -> str:
    """Say what measured which server when, and what its figures are."""
    return (
        f"{measured(round_)} "
        "Measured figures are by the published method; the true figure is by its definition."
    )


def measured(round_: Round) -> str:
    """Say what measured which server when."""
    server, stability = round_.server, round_.stability
    engine = " ".join(filter(None, (server.engine, server.engine_version))) or "unknown engine"
    return (
        f"Measured {round_.started_at} by sparkrecipes {round_.tool_version}, method "
        f"{round_.method}: {one_line(server.model)} on {one_line(engine)}, "
        f"{stability.requests} requests, {stability.failed} failed."
    )
