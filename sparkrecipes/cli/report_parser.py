"""The arguments of ``report``."""

from __future__ import annotations

from argparse import ArgumentParser


def report_arguments(parser: ArgumentParser) -> None:
    """Which rounds, and how they are told."""
    parser.add_argument("files", metavar="ROUND.json", nargs="*", help="default: the newest one")
    parser.add_argument("--recipe", metavar="RECIPE", help="compare with this recipe's figures")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--markdown", action="store_true", help="print the report as Markdown")
    how.add_argument("--html", metavar="FILE", help="write one page with plots, to open offline")
