"""The page: one HTML file that opens offline, in light and dark and on paper.

It loads nothing and runs nothing; its own policy forbids both, should an escape ever be missed.
"""

from __future__ import annotations

from sparkrecipes.reports.drawings import (
    acceptance_plot,
    latency_plots,
    sustained_plot,
    throughput_plot,
)
from sparkrecipes.reports.figures import FIGURES
from sparkrecipes.reports.html_text import Markup, element, joined
from sparkrecipes.reports.style import STYLE
from sparkrecipes.reports.text import SIMULATED, number, origin
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
        ("Throughput against users", throughput_plot(round_)),
        ("Latency", latency_plots(round_)),
        ("Sustained load, minute by minute", sustained_plot(round_)),
        ("Acceptance of drafted tokens", acceptance_plot(round_)),
    ]
    mark = element("p", SIMULATED.replace("**", ""), class_="simulated")
    simulated = mark if report.simulated else joined(())
    body = element(
        "main",
        element("h1", title),
        simulated,
        element(
            "p",
            element("strong", report.verdict.replace("_", " "), class_=f"word {report.verdict}"),
            " ",
            report.summary,
            class_="verdict",
        ),
        figures_table(report),
        notes(report),
        *(element("section", element("h2", head), drawn) for head, drawn in sections),
        element("footer", element("p", origin(round_))),
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", f"{title}: {report.verdict.replace('_', ' ')}"),
        element("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"


def figures_table(report: Report) -> Markup:
    """Set measured figures beside published ones."""
    heads = ("figure", "published", "measured", "range", "true figure", "difference", "verdict")
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
            element("tbody", *(table_row(row) for row in report.rows)),
        ),
        element(
            "p",
            "Measured: by the published method, the only figures that may be set beside published "
            "ones. True: by the definitions of the field.",
            class_="small",
        ),
        class_="wide",
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
        element("td", element("span", row.verdict.replace("_", " "), class_=f"word {row.verdict}")),
    )


def notes(report: Report) -> Markup:
    """List the notes of the figures and the warnings."""
    told = [f"{NAMES.get(row.figure, row.figure)}: {row.note}" for row in report.rows if row.note]
    told += report.warnings
    return element("ul", *(element("li", line) for line in told)) if told else joined(())
