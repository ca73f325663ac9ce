"""What is made of rounds: written reports, two rounds compared, their history, and the audit."""

from __future__ import annotations

from typing import Literal

from sparkrecipes.schema.base import Frozen, Text
from sparkrecipes.schema.round import Report


class WrittenReport(Frozen):
    """A report as a text to paste, or as a file."""

    format: Literal["markdown", "html"]
    verdict: Literal["matches", "slower", "faster", "not_comparable", "unstable"]
    report: Report
    text: str
    """The whole text; empty where a file holds it."""
    path: Text | None = None
    """The file that was written."""
