"""A contribution: a measured round as a row of evidence, and what a reviewer must look at."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Id, Text
from sparkrecipes.schema.evidence import Figures
from sparkrecipes.schema.findings import Problem


class Contribution(Frozen):
    """A round that became an evidence file, and the recipe that points at it."""

    evidence_file: Text
    reference: Text
    """How the recipe points at it: ``<evidence file>#<row>``."""
    recipe_id: Id
    recipe_file: Text
    figures: Figures
    text: Text
    """The evidence file."""
    recipe_diff: str
    """What changes in the recipe."""
    written: bool
    """False: it was only asked what would be written."""
    next: Text


class ReviewItem(Frozen):
    """One thing that a reviewer must look at."""

    kind: Literal[
        "image", "flag", "env", "code", "setting", "figure", "fact", "licence", "claim", "outside"
    ]
    file: Text
    line: Annotated[int, Field(ge=1)] = 1
    what: Text
    """What is new or has changed."""
    old: str | None = None
    new: str | None = None
    look: Text
    """What to make sure of."""


class Review(Frozen):
    """What a change of the catalog asks of whoever reviews it."""

    base: Text
    """What the working tree was compared with, as it was named."""
    commit: Text
    """The commit that this is."""
    files: tuple[Text, ...]
    """Every file that the change touches."""
    items: tuple[ReviewItem, ...]
    problems: tuple[Problem, ...]
    """Errors of the whole catalog, which must be mended first, and hints of the changed files."""
    valid: bool
    """True without an error in the whole catalog: a row that is gone may be another file's."""
