"""Commands and files of this host, read with a bound and without ever raising."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path("/")
COMMAND_TIMEOUT_S = 5.0


class Ran(NamedTuple):
    """What a command left behind."""

    code: int | None
    """Its exit code; null where it could not run or took too long."""
    out: str
    err: str


def run(argv: list[str]) -> Ran:
    """Run a command with a bounded wait; never raises."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as err:
        return Ran(None, "", type(err).__name__)
    return Ran(done.returncode, done.stdout, done.stderr)


def read_text(path: Path) -> str:
    """Read a small file, empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def read_json(text: str) -> dict[str, Any]:
    """Read a JSON object, empty where it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
