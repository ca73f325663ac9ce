"""The command line: parse, call one operation, print. No decisions are made here."""

from sparkrecipes.cli.main import main

__all__ = ["main"]
