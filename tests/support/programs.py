"""Programs that a test puts on PATH in place of real ones."""

import sys
from pathlib import Path

HEAD = "#!/bin/sh\n'''exec' '{python}' {options} \"$0\" \"$@\"\n' '''\n"
"""A line for the shell that Python reads as a text: the kernel splits the path of an interpreter
at its first space, so that it cannot stand behind ``#!``."""


def write_python(path: Path, source: str, options: str = "") -> None:
    """Write a program that this Python runs, wherever it lies."""
    path.write_text(HEAD.format(python=sys.executable, options=options) + source)
    path.chmod(0o755)
