"""The command line: parse, call one operation, print. No decisions are made here."""

import os

# pydantic would search every installed distribution for plugins, a tenth of a short command's time.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from sparkrecipes.cli.main import main

__all__ = ["main"]
