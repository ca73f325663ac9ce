"""Reports: a measured round beside the published figures, and whether it is as fast."""

from sparkrecipes.reports.comparison import compare
from sparkrecipes.reports.page import html
from sparkrecipes.reports.text import markdown

__all__ = ["compare", "html", "markdown"]
