"""The journal of rounds: one line as a round begins, and one as it ends.

``rounds.jsonl`` in the user's state folder. Each line names its version, the round's own file and
the round itself; a line is written whole, under a lock, and forced to disk, so that a crash costs
at most the line that was being written. A round whose process was killed has no second line: its
file, which is saved after every request, is read instead.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from sparkrecipes.schema.report import JournalLine
from sparkrecipes.schema.round import Round


def journal_path() -> Path:
    """Return the journal's file: ``sparkrecipes/rounds.jsonl`` in the user's state folder."""
    from platformdirs import user_state_path

    return user_state_path("sparkrecipes") / "rounds.jsonl"


def note_round(file: Path, data: Mapping[str, Any] | None = None) -> str:
    """Append to the journal that a round begins or ends; a folder that is closed ends no round.

    Args:
        file: Where the round itself is saved.
        data: The round as the client gives it; None: it begins.

    Returns:
        What went wrong, or nothing.
    """
    event: Literal["began", "ended"] = "began" if data is None else "ended"
    try:
        round_ = None if data is None else Round.model_validate_json(json.dumps(data))
        line = JournalLine(event=event, file=str(file), round=round_)
        append_line(journal_path(), line.model_dump_json().encode())
    except OSError as err:
        return f"the history in {journal_path()} cannot be written: {err.strerror}"
    except ValidationError:
        return f"the history leaves {file} out: its figures cannot be"
    return ""


def append_line(path: Path, line: bytes) -> None:
    """Append one line whole, after the end of any torn one, and force it to disk.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_journal(path: Path) -> tuple[list[JournalLine], list[str]]:
    """Read the lines that can be read, and say which cannot and why: none is fatal.

    Raises:
        OSError: The file is there and cannot be read.
    """
    lines, trouble = list[JournalLine](), list[str]()
    if not path.exists():
        return lines, trouble
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                lines.append(JournalLine.model_validate_json(raw))
            except ValidationError:
                trouble.append(f"line {number} of {path} is skipped: {why_unreadable(raw)}")
    return lines, trouble


def why_unreadable(raw: bytes) -> str:
    """Say why a line is no line of ours: torn in a crash, or of another version."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return "it is torn, as a crash in mid-write leaves it"
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version not in (None, 1):
        return f"it is of version {version}, and this sparkrecipes reads version 1"
    return "it is not a round"
