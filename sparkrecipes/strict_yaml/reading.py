"""Reading a text or file as strict YAML.

PyYAML's C parser is used where it is built in; PyYAML's own parser gives the same answers, and
words every syntax error, so that the two never differ in what they say.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import yaml

from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml.document import Document, StrictYamlError, error_at, refusal
from sparkrecipes.strict_yaml.scalars import UNSEEN
from sparkrecipes.strict_yaml.tree import MAX_PROBLEMS, build

MAX_BYTES = 256 * 1024
"""Larger files are refused unread: the largest file of a catalog has a few tens of kB."""

FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PURE_LOADER: Any = yaml.SafeLoader

_NO_CHARACTER = re.compile(r"\\U(?!000|0010)[0-9a-fA-F]{8}")

_SYNTAX: tuple[tuple[str, str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "here",
        "a second ': ' on this line",
        "quote the text that holds it, or start a new line",
    ),
    (
        "could not find expected ':'",
        "start",
        "a line that is neither 'key: value' nor '- item'",
        "add the ':', or indent the line as part of the text above",
    ),
    (
        "expected <block end>",
        "here",
        "this line's indentation does not fit the lines above",
        "align it with the other keys or items",
    ),
    ("escape", "here", "an unknown escape in double quotes", "write the \\ twice"),
    ("while scanning a quoted scalar", "start", "this quote is not closed", "close it"),
    ("a flow node", "here", "a value is missing, or a bracket is open", "write it, or close that"),
    ("while parsing a flow", "start", "this bracket is not closed", "close it, or add the ','"),
    ("cannot start any token", "here", "a text that starts with a special sign", "quote the text"),
)
"""PyYAML's words, whether it happened here or at the start of the part, and our words."""


def read(path: Path) -> Document:
    """Read a file as strict YAML; problems call it by its path.

    Raises:
        StrictYamlError: With every problem found, or why the file could not be read.
    """
    return parse(read_text(path), name=str(path))


def read_text(path: Path) -> str:
    """Read a regular file of UTF-8 text, of at most ``MAX_BYTES``.

    Raises:
        StrictYamlError: Why it could not be read; a larger file is not even opened.
    """
    name = str(path)
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):
            raise refusal(name, "not_a_file", "this is not a regular file", "name a YAML file")
        if seen.st_size > MAX_BYTES:
            raise _too_large(name, seen.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise refusal(name, "unreadable", f"cannot be read: {why}", "check the path") from None
    if len(data) > MAX_BYTES:
        raise _too_large(name, len(data))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise refusal(
            name,
            "not_utf8",
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            "save the file as UTF-8",
            (before.count(b"\n") + 1, len(before) - before.rfind(b"\n")),
        ) from None


def parse(text: str, *, name: str = "<text>", foreign: bool = False) -> Document:
    """Parse strict YAML.

    Args:
        text: One YAML document.
        name: What problems call it.
        foreign: True for files of other tools, which write dates and versions without quotes and
            leave values out: a word that readers differ on stays the text that it is (and stands
            in ``written``), a missing value is null, and a tab inside a text is no fault. All
            else is as strict: no anchors, tags or repeated keys, and the same bounds.

    Raises:
        StrictYamlError: With every problem found; after a syntax error, with that alone.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(name, len(text))
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    _check_characters(text, name, foreign=foreign)
    for loader in (FAST_LOADER, PURE_LOADER):
        try:
            return build(text, name, loader, foreign=foreign)
        except yaml.MarkedYAMLError as error:
            problem = _syntax_problem(error, name)
        except (ValueError, OverflowError):
            problem = _escape_problem(text, name)
    raise StrictYamlError((problem,))


def _too_large(name: str, size: int) -> StrictYamlError:
    message = f"the file has {size:,} bytes; a catalog file has at most {MAX_BYTES:,}"
    return refusal(name, "too_large", message, "keep logs and data out of catalog files")


def _check_characters(text: str, name: str, *, foreign: bool) -> None:
    problems = []
    for number, line in enumerate(text.split("\n"), start=1):
        searched = line[: len(line) - len(line.lstrip())] if foreign else line
        if (at := searched.find("\t")) >= 0:
            message, repair = "a tab", "replace the tab by spaces"
            problems.append(error_at(name, (number, at + 1), "tab", message, repair))
        elif found := UNSEEN.search(line):
            message = f"the unprintable character U+{ord(found.group()):04X}"
            place = (number, found.start() + 1)
            problems.append(error_at(name, place, "unprintable", message, "delete it"))
        elif line.startswith("%"):
            message, repair = "a YAML directive", "delete the line; quote a text that starts with %"
            problems.append(error_at(name, (number, 1), "directive", message, repair))
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise StrictYamlError(tuple(problems))


def _syntax_problem(error: yaml.MarkedYAMLError, name: str) -> Problem:
    words = f"{error.context or ''} {error.problem or ''}"
    unknown = ("", "here", (error.problem or "unreadable").strip(), "correct the line")
    _, where, ours, repair = next((row for row in _SYNTAX if row[0] in words), unknown)
    mark = error.context_mark if where == "start" else error.problem_mark
    mark = mark or error.problem_mark or error.context_mark
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return error_at(name, place, "yaml_syntax", f"not valid YAML: {ours}", repair)


def _escape_problem(text: str, name: str) -> Problem:
    """Return the problem of an escape that PyYAML's own parser passes to chr() unchecked."""
    found = _NO_CHARACTER.search(text)
    before = text[: found.start()] if found else ""
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    message = f"not valid YAML: {found.group() if found else 'an escape'} is no character"
    return error_at(name, place, "yaml_syntax", message, "write the \\ twice, or correct it")
