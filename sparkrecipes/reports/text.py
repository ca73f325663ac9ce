"""Text: a report as Markdown, to paste where figures are discussed."""

from __future__ import annotations

from sparkrecipes.schema.round import Report, ReportRow, Round

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
    """Say what measured which server when."""
    server, stability = round_.server, round_.stability
    engine = " ".join(filter(None, (server.engine, server.engine_version))) or "unknown engine"
    return (
        f"Measured {round_.started_at} by sparkrecipes {round_.tool_version}, method "
        f"{round_.method}: {one_line(server.model)} on {one_line(engine)}, "
        f"{stability.requests} requests, {stability.failed} failed. "
        "Measured figures are by the published method; the true figure is by its definition."
    )
