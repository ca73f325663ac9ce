"""Reports: a measured round beside the published figures or another round, written or exported."""

from sparkrecipes.reports.audit import audit
from sparkrecipes.reports.comparison import compare
from sparkrecipes.reports.export import as_csv, as_json
from sparkrecipes.reports.page import html, html_of_pair
from sparkrecipes.reports.pairs import compare_pair
from sparkrecipes.reports.text import markdown, markdown_of_pair

__all__ = [
    "as_csv",
    "as_json",
    "audit",
    "compare",
    "compare_pair",
    "html",
    "html_of_pair",
    "markdown",
    "markdown_of_pair",
]
