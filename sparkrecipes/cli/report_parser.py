"""The arguments of ``report``."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter

EPILOG = """\
sparkrecipes report                      the newest usable round against its recipe's published row
sparkrecipes report NEW.json --html page.html
sparkrecipes report OLD.json NEW.json    the second round against the first
sparkrecipes report --history --recipe RECIPE
sparkrecipes report --history --export csv > rounds.csv
sparkrecipes report --audit-published

exit codes: 0 matches, faster, done; 1 slower, unstable, a doubtful row that is not marked;
2 misuse; 3 not comparable
"""


def report_arguments(parser: ArgumentParser) -> None:
    """Which rounds, and how they are told."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "files",
        metavar="ROUND.json",
        nargs="*",
        help="one: against published figures; two: the second against the first; "
        "none: the newest usable one",
    )
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="compare with this recipe's figures; with --history: only its rounds",
    )
    parser.add_argument(
        "--history", action="store_true", help="the rounds that were run here, the newest first"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--markdown", action="store_true", help="print the report as Markdown")
    how.add_argument("--html", metavar="FILE", help="write one page with plots, to open offline")
    how.add_argument(
        "--export",
        choices=["csv", "json"],
        help="print the figures in the shape of llama-benchy's reports",
    )
    how.add_argument(
        "--audit-published",
        action="store_true",
        help="recompute the published rows: which figures cannot both be right",
    )
