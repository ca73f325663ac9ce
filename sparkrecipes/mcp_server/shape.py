"""The shape of every answer: without nulls, bounded, the same as text and as structure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcp_types import CallToolResult, TextContent

SMALL_BYTES = 4096
"""Of an answer that nobody asked to be long."""
LARGE_BYTES = 16 * 1024
"""Of one that was asked for in full, with many rows or with log lines."""
USUAL_ROWS = 10
"""Rows of a search that are not many."""

MORE = re.compile(r"and (\d+) more")
Facts = dict[str, Any]


def answer(facts: Facts, most: int, *, is_error: bool = False) -> CallToolResult:
    """Return facts as an answer: hosts differ in whether a model sees the text or the structure.

    Args:
        facts: What it says, without nulls.
        most: Bytes that it may take.
        is_error: Whether it is an error.
    """
    text = compact(facts)
    if len(text.encode()) > most:
        facts = bounded(facts, most)
        text = compact(facts)
    content = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, structured_content=facts, is_error=is_error)


def compact(value: Any) -> str:
    """Write a value in as few bytes as JSON allows."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size(value: Any) -> int:
    """Return the bytes of a value as it is sent."""
    return len(compact(value).encode())


def without_nulls(value: Any) -> Any:
    """Return a value without the keys that say nothing."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def most_bytes(arguments: Facts) -> int:
    """Return how long the answer to a call may be: long only where that was asked for."""
    limit, lines = arguments.get("limit"), arguments.get("log_lines")
    asked = (
        arguments.get("detail") == "full",
        isinstance(limit, int) and limit > USUAL_ROWS,
        isinstance(lines, int) and lines > 0,
    )
    return LARGE_BYTES if any(asked) else SMALL_BYTES


def bounded(facts: Facts, most: int) -> Facts:
    """Return facts in at most so many bytes: rows are left out from the longest lists, and counted.

    Args:
        facts: What an answer says; it is changed.
        most: Bytes that it may take.
    """
    left: Counter[str] = Counter()
    while size(facts) > most:
        name, rows = max(lists(facts), key=lambda found: size(found[1]), default=("", []))
        if not rows:
            break
        last = MORE.fullmatch(rows[-1]) if isinstance(rows[-1], str) else None
        if last:
            rows.pop()
        rows.pop()
        if last or (rows and isinstance(rows[0], str)):
            rows.append(f"and {int(last[1]) + 1 if last else 1} more")
        else:
            left[name] += 1
        if left and "next" in facts:
            said = ", ".join(f"{count} of {name}" for name, count in left.items())
            told = facts["next"].partition(" (left out: ")[0]
            facts["next"] = f"{told} (left out: {said})"
    return facts


def lists(value: Any, name: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Find the lists in a value that can lose a row, with their names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from lists(item, key)
    if isinstance(value, list):
        # A range of two numbers is one fact, not two rows.
        rows = [row for row in value if isinstance(row, (str, dict))]
        if sum(not (isinstance(row, str) and MORE.fullmatch(row)) for row in rows) > 1:
            yield name, value
        for item in value:
            yield from lists(item, name)
