"""What came of a file of another tool: a strict recipe, and what it could not carry."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Text
from sparkrecipes.schema.findings import Problem

ForeignFormat = Literal["docker", "compose", "sparkrun-v1", "sparkrun-v2", "vllm-recipe"]


class NotCarried(Frozen):
    """Something of the file that the recipe does not say."""

    line: Annotated[int, Field(ge=1)]
    what: Text
    """As the file has it, shortened."""
    why: Text
    """Why it was left out or changed, and what stands for it here."""


class ImportedRecipe(Frozen):
    """A recipe made from a file of another tool; nothing of that file was run."""

    file: Text
    format: ForeignFormat
    recognised_by: Text
    """What the format was told by."""
    id: Text
    """The id that the recipe would have by the pattern of names."""
    same_as: Text | None
    """The recipe of the catalog that serves exactly this; then the text is that recipe."""
    text: Text
    """The recipe as strict YAML; what the file does not say is null, with a comment."""
    saved_to: Text | None
    not_carried: tuple[NotCarried, ...]
    valid: bool
    """Whether it passes ``validate`` as it stands."""
    problems: tuple[Problem, ...]
    """What remains to be mended, by lines of ``text``."""
    next: Text
