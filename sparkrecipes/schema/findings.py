"""Findings: what checks, validation and diagnosis answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

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
    """blocked with any blocker; else unknown with any unknown; else ready."""
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


class ValidationReport(Frozen):
    """What is wrong in the files asked about."""

    valid: bool
    """True without an error; hints do not count."""
    files: Annotated[int, Field(ge=0)]
    problems: tuple[Problem, ...]


class DiagnosisFile(Frozen):
    """One file of ``catalog/diagnoses/``; its name is the diagnosis's id."""

    title: Text
    patterns: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Regular expressions; one that is found in a line is the evidence."""
    unless: tuple[Text, ...] = ()
    """Where one of these is found anywhere in the log, this is not the cause."""
    cause: Text
    remedy: Text
    """A command or a change of the recipe."""
    confidence: Literal["high", "medium", "low"]
    priority: Annotated[int, Field(ge=0, le=100)] = 50
    """Root causes are high, consequences low: the highest comes first."""
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


class DiagnosisReport(Frozen):
    """Known causes, the most likely first."""

    diagnoses: tuple[Diagnosis, ...]
    first_error: str | None
    """The first line that looks like an error, known or not."""
