"""The arguments of commands that bring something into the catalog."""

from __future__ import annotations

from argparse import ArgumentParser

FORMATS = ("docker", "compose", "sparkrun-v1", "sparkrun-v2", "vllm-recipe")


def import_arguments(parser: ArgumentParser) -> None:
    """What is imported, how it is read, and what fills its gaps."""
    from sparkrecipes.cli.parser import count

    parser.add_argument("file", metavar="FILE", help="a file of another tool, or - for stdin")
    parser.add_argument("-o", "--output", metavar="OUT", help="save it: a new file, or a folder")
    parser.add_argument("--from", dest="format", choices=FORMATS, help="default: recognised")
    parser.add_argument("--select", metavar="NAME", help="which service, or which variant")
    parser.add_argument("--image", metavar="REF", help="the image, instead of the file's")
    parser.add_argument("--context", type=count, metavar="TOKENS", help="instead of the file's")
    parser.add_argument("--users", type=count, metavar="N", help="instead of the file's")


def contribute_arguments(parser: ArgumentParser) -> None:
    """Which round becomes evidence, of what, and by whom."""
    parser.add_argument("file", metavar="ROUND.json", help="a round that was saved here")
    parser.add_argument("--recipe", metavar="RECIPE", help="what was served; default: the round's")
    parser.add_argument("--publisher", metavar="NAME", help="your name, or any other to print")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")


def review_arguments(parser: ArgumentParser) -> None:
    """What the change is compared with."""
    parser.add_argument(
        "base", metavar="BASE", nargs="?", default="main", help="branch or commit; default: main"
    )


def pin_arguments(parser: ArgumentParser) -> None:
    """Whether the lock is written or compared, and where it lies."""
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the lock here")
