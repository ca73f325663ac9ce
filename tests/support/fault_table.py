"""The table of ``docs/faults.md``, so that tests hold what it promises."""

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
COLUMNS = 6


@dataclass(frozen=True)
class Fault:
    """One row.

    Attributes:
        exits: Exit codes, none where the row is about a process that was killed.
        codes: Codes of the error; none where there is no error.
        words: What must stand in the error's message or repair.
        held_by: Tests, as ``file::function`` below ``tests/``.
    """

    exits: tuple[int, ...]
    codes: tuple[str, ...]
    words: tuple[str, ...]
    held_by: tuple[tuple[str, str], ...]


def faults() -> dict[str, Fault]:
    """Read the rows, by what went wrong."""
    table = PAGE.read_text().partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]
    assert all(len(row) == COLUMNS for row in cells), "a row has not six cells"
    return {
        fault: Fault(
            exits=tuple(int(code) for code in re.findall(r"\d+", exit_)),
            codes=tuple(re.findall(r"`(\w+)`", code)),
            words=tuple(re.findall(r"\*([^*]+)\*", seen)),
            held_by=tuple(re.findall(r"`([\w/]+\.py)::(\w+)`", held)),
        )
        for fault, exit_, code, seen, _stays, held in cells
    }
