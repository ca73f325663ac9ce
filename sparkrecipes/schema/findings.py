"""Findings: what checks, validation and diagnosis answer."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from sparkrecipes.schema.base import Frozen, Id, Text


class Finding(Frozen):
    """One thing that was looked at."""

    check: Id
    level: Literal["ok", "warning", "blocker", "unknown"]
    message: Text
    repair: str = ""


class CheckReport(Frozen):
    """Whether a recipe can be started here, and what stands in the way."""

    verdict: Literal["ready", "blocked", "unknown"]
    """blocked with any blocker; else unknown with an unknown that a start hangs on; else ready."""
    summary: Text
    """The verdict in a sentence, with what is not known: that is never left unsaid."""
    recipe_id: Id | None
    findings: tuple[Finding, ...]


class Problem(Frozen):
    """Something wrong in a catalog file, and where."""

    file: Text
    line: Annotated[int, Field(ge=1)]
    column: Annotated[int, Field(ge=1)]
    level: Literal["error", "hint"]
    """An error must be mended; a hint may be."""
    message: Text
    repair: str = ""
    code: Text
    """A stable word for programs, e.g. ``duplicate_key``."""
    fixable: bool = False
    """Whether ``validate --fix`` knows the change that leaves no doubt."""

    @field_validator("file", "message", "repair", mode="before")
    @classmethod
    def _escape_bytes(cls, text: str) -> str:
        """Write bytes of a file name that are not UTF-8 as escapes: no JSON text holds them."""
        return text.encode("utf-8", "backslashreplace").decode()


class Change(Frozen):
    """One change that was made in a file."""

    line: Annotated[int, Field(ge=1)]
    """Where it was, in the file as it stood then."""
    code: Text
    """The problem that it mends."""
    message: Text


class FileChange(Frozen):
    """What ``validate --fix`` changed in a file."""

    file: Text
    written: bool
    """False: it was only asked what would be changed."""
    changes: tuple[Change, ...]
    diff: str
    """Unified diff of the file."""


class ValidationReport(Frozen):
    """What is wrong in the files asked about."""

    valid: bool
    """True without an error; hints do not count."""
    files: Annotated[int, Field(ge=0)]
    problems: tuple[Problem, ...]
    """What is wrong now: after the changes, where those were written."""
    changes: tuple[FileChange, ...] = ()
    """Files that were changed, or would be."""


LEADING_TEXT = re.compile(r"(?:[^\\\[\](){}.*+?^$|]|\\[^A-Za-z0-9])*(?![*?{])")
"""What a pattern starts with before anything that is not plain text."""

SHORTEST_LEAD = 4
NESTED_REPEAT = re.compile(r"[*+}]\)[*+{]")
PLAIN_ESCAPE = re.compile(r"\\.|\[[^\]]*\]")
INNERMOST_GROUP = re.compile(r"\([^()]*\)")


def lead_of(pattern: str) -> str:
    """Return the plain text that a pattern starts with, its escapes resolved."""
    found = LEADING_TEXT.match(pattern)
    return re.sub(r"\\(.)", r"\1", found[0]) if found else ""


def searchable(pattern: str) -> str:
    """Accept a pattern that a huge log can be searched for in one quick pass.

    A log is searched for the plain text first and the pattern is tried only there, so a pattern
    starts with some; repeats inside repeats can take for ever and are refused.

    Raises:
        ValueError: With what is wrong.
    """
    try:
        re.compile(pattern)
    except re.error as err:
        raise ValueError(f"not a regular expression: {err}") from None
    if len(lead_of(pattern)) < SHORTEST_LEAD:
        raise ValueError(f"start it with at least {SHORTEST_LEAD} characters of plain text")
    if NESTED_REPEAT.search(pattern):
        raise ValueError("a repeat inside a repeat can take for ever: write it without")
    if has_top_level_choice(pattern):
        raise ValueError("write the two sides of | as two patterns, or put them in ( )")
    return pattern


def has_top_level_choice(pattern: str) -> bool:
    """Tell whether a ``|`` stands outside all groups, so that the lead is only one side's."""
    left = PLAIN_ESCAPE.sub("", pattern)
    while (shorter := INNERMOST_GROUP.sub("", left)) != left:
        left = shorter
    return "|" in left


Pattern = Annotated[str, AfterValidator(searchable)]
"""A regular expression that starts with plain text, for that is searched for first."""


class DiagnosisFile(Frozen):
    """One file of ``catalog/diagnoses/``; its name is the diagnosis's id."""

    title: Text
    patterns: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    """Regular expressions; the first that is found in a line is the evidence. A named group is a
    value that ``cause`` and ``remedy`` may show as ``{name}``."""
    requires: tuple[Pattern, ...] = ()
    """Each of these must be found somewhere in the log too."""
    unless: tuple[Pattern, ...] = ()
    """Where one of these is found anywhere in the log, this is not the cause."""
    cause: Text
    remedy: Text
    """A command or a change of the recipe."""
    confidence: Literal["high", "medium", "low"]
    priority: Annotated[int, Field(ge=0, le=100)] = 50
    """The highest comes first."""
    consequence: bool = False
    """What follows from many causes: shown only where no cause is found."""
    example: Text
    """An excerpt of a real log that it must match, and no other diagnosis may."""
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]


class DiagnosisRule(DiagnosisFile):
    """A diagnosis with its id."""

    id: Id


class Diagnosis(Frozen):
    """A known cause that was found in a log."""

    id: Id
    cause: Text
    evidence: Text
    """The line that shows it."""
    remedy: Text
    confidence: Literal["high", "medium", "low"]
    values: dict[str, str] = {}
    """What the line says, by name: sizes, a port, a parser."""


class DiagnosisReport(Frozen):
    """Known causes, the most likely first."""

    diagnoses: tuple[Diagnosis, ...]
    first_error: str | None
    """The first line that looks like an error, known or not."""
