"""The page: one HTML file that opens offline, in light and dark and on paper.

It loads nothing and runs nothing; its own policy forbids both, should an escape ever be missed.
"""

from __future__ import annotations

from sparkrecipes.reports.drawings import (
    acceptance_plot,
    latency_plots,
    pair_plots,
    sustained_pair_plot,
    sustained_plot,
    throughput_plot,
)
from sparkrecipes.reports.figures import FIGURES
from sparkrecipes.reports.html_text import Markup, element, joined
from sparkrecipes.reports.style import STYLE
from sparkrecipes.reports.text import SIMULATED, measured, number, origin, ranged
from sparkrecipes.schema.report import RoundComparison
from sparkrecipes.schema.round import Report, ReportRow, Round

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NAMES: dict[str, str] = {figure.name: figure.says for figure in FIGURES}


def html(report: Report, round_: Round) -> str:
    """Write a report as one self-contained HTML page.

    Args:
        report: The comparison.
        round_: The round that it compares.
    """
    title = report.recipe_id or round_.server.model
    sections = [
        ("Throughput against users", throughput_plot({"all users": round_})),
        ("Latency", latency_plots(round_)),
        ("Sustained load, minute by minute", sustained_plot(round_)),
        ("Acceptance of drafted tokens", acceptance_plot(round_)),
    ]
    told = [f"{NAMES.get(row.figure, row.figure)}: {row.note}" for row in report.rows if row.note]
    parts = (
        *opening(title, report),
        figures_table(report),
        listed([*told, *report.warnings]),
        *(element("section", element("h2", head), drawn) for head, drawn in sections),
        element("footer", element("p", origin(round_))),
    )
    return document(title, report.verdict, parts)


def html_of_pair(comparison: RoundComparison, before: Round, after: Round) -> str:
    """Write the comparison of two rounds as one self-contained HTML page.

    Args:
        comparison: The comparison.
        before: The first round.
        after: The second round.
    """
    title = f"{comparison.after.name} against {comparison.before.name}"
    both = {"first": before, "second": after}
    told = [f"{row.says}: {row.note}" for row in comparison.rows if row.note]
    sections = [
        ("Throughput against users", throughput_plot(both)),
        ("Figure by figure", pair_plots(comparison)),
        ("Sustained load, minute by minute", sustained_pair_plot(both)),
    ]
    parts = (
        *opening(title, comparison),
        pair_table(comparison),
        conditions_table(comparison),
        listed([*told, *comparison.warnings]),
        *(element("section", element("h2", head), drawn) for head, drawn in sections),
        element(
            "footer",
            element("p", f"First: {measured(before)}"),
            element("p", f"Second: {measured(after)}"),
        ),
    )
    return document(title, comparison.verdict, parts)


def opening(title: str, report: Report | RoundComparison) -> tuple[Markup, ...]:
    """Write the title, the mark of a rehearsal and the verdict."""
    mark = element("p", SIMULATED.replace("**", ""), class_="simulated")
    verdict = element(
        "p",
        element("strong", report.verdict.replace("_", " "), class_=f"word {report.verdict}"),
        " ",
        report.summary,
        class_="verdict",
    )
    return (element("h1", title), *([mark] if report.simulated else []), verdict)


def document(title: str, verdict: str, parts: tuple[Markup, ...]) -> str:
    """Put a page together; what it may load is nothing."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", f"{title}: {verdict.replace('_', ' ')}"),
        element("style", Markup(STYLE)),
    )
    body = element("body", element("main", *parts))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def figures_table(report: Report) -> Markup:
    """Set measured figures beside published ones."""
    heads = ("figure", "published", "measured", "range", "true figure", "difference", "verdict")
    told = (
        "Measured: by the published method, the only figures that may be set beside published "
        "ones. True: by the definitions of the field."
    )
    return table(heads, [table_row(row) for row in report.rows], told)


def table(heads: tuple[str, ...], rows: list[Markup], told: str, kind: str = "figures") -> Markup:
    """Write a table that scrolls by itself where it is too wide, and what it holds."""
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    body = element("table", element("thead", head), element("tbody", *rows), class_=kind)
    return joined(
        (element("div", body, class_="wide", tabindex=0), element("p", told, class_="small"))
    )


def table_row(row: ReportRow) -> Markup:
    """Write one figure."""
    between = row.measured_range
    cells = (
        number(row.published),
        number(row.measured),
        f"{between[0]:g} to {between[1]:g}" if between else "-",
        number(row.true_value),
        "-" if row.difference_pct is None else f"{row.difference_pct:+.1f} %",
    )
    return element(
        "tr",
        element("th", f"{NAMES.get(row.figure, row.figure)}, {row.unit}", scope="row"),
        *(element("td", cell) for cell in cells),
        element("td", word(row.verdict)),
    )


def pair_table(comparison: RoundComparison) -> Markup:
    """Set the figures of two rounds side by side."""
    rows = [
        element(
            "tr",
            element("th", f"{row.says}, {row.unit}", scope="row"),
            element("td", ranged(row.before)),
            element("td", ranged(row.after)),
            element("td", "-" if row.difference_pct is None else f"{row.difference_pct:+.1f} %"),
            element("td", word(row.verdict)),
        )
        for row in comparison.rows
    ]
    heads = ("figure", "first", "second", "difference", "verdict")
    return table(heads, rows, "True figures: median, and the range of the repeats in brackets.")


def conditions_table(comparison: RoundComparison) -> Markup:
    """Show what was not the same in both rounds."""
    if not comparison.conditions:
        return element("p", "The conditions that are known were the same in both.")
    rows = [
        element(
            "tr",
            element("th", one.condition, scope="row"),
            element("td", one.before or "unknown"),
            element("td", one.after or "unknown"),
        )
        for one in comparison.conditions
    ]
    told = "What was not the same in both rounds."
    return table(("condition", "first", "second"), rows, told, "words")


def word(verdict: str) -> Markup:
    """Write a verdict in its colour."""
    return element("span", verdict.replace("_", " "), class_=f"word {verdict}")


def listed(lines: list[str]) -> Markup:
    """List notes and warnings; nothing where there are none."""
    return element("ul", *(element("li", line) for line in lines)) if lines else joined(())
