"""The catalog as a table: the figures that people choose by."""

from __future__ import annotations

from typing import Literal

from sparkrecipes.schema.base import Capability, Frozen, Id, Text
from sparkrecipes.schema.contradiction import EvidenceView
from sparkrecipes.schema.evidence import Caveat, EvidenceRow, FigureName, Figures
from sparkrecipes.schema.findings import Problem
from sparkrecipes.schema.memory import EstimatedSpeed
from sparkrecipes.schema.recipe import Recipe, Speculative

RecipeStatus = Literal["measured", "untested", "does_not_run"]


class RecipeSummary(Frozen):
    """One row of the table."""

    id: Id
    title: Text
    model: Id
    engine: Id
    speculative: Speculative | None
    capabilities: tuple[Capability, ...]
    params_total_b: float | None
    params_active_b: float | None
    published: Figures | None
    """The row of the October round, or null where that did not measure it."""
    doubtful: tuple[FigureName, ...]
    """Published figures that a caveat concerns."""
    caveats: tuple[Text, ...]
    status: RecipeStatus
    """Follows from the evidence and from what is known not to run."""
    origin: Literal["catalog", "user"] = "catalog"
    """Whether it is a file of the user's own folder."""
    shadows: bool = False
    """Whether it hides a shipped recipe of the same id."""
    known_from: tuple[Id, ...] = ()
    """Evidence sets that measured nearly this configuration, by another method."""
    estimated: EstimatedSpeed | None = None
    """Its speed by the forecast, where nobody measured it by the round and it may run; never beside
    a published figure."""


class RecipeList(Frozen):
    """Recipes, the fastest for one user first; doubtful figures and unmeasured ones last."""

    recipes: tuple[RecipeSummary, ...]
    more: int = 0
    """Further recipes: not measured by the standard round, known from other publications."""
    note: str = ""
    """What is left out, and how to see it."""
    left_out: tuple[Problem, ...] = ()
    """What is wrong with files of the user's own folder that are left out."""


class PublishedRow(Frozen):
    """An evidence row with the set it stands in."""

    evidence: Id
    method: Text
    publisher: Text
    row: EvidenceRow


class RecipeDetail(Frozen):
    """One recipe in full, with what is published of it and where that comes from."""

    recipe: Recipe
    summary: RecipeSummary
    published: tuple[PublishedRow, ...]
    caveats: tuple[Caveat, ...]
    sources: tuple[Text, ...]
    evidence: EvidenceView | None = None
    """Everything published of its model, where that was asked for."""
    file: Text | None = None
    """The file, where it is of the user's own folder."""
    lock: Text | None = None
    """The lock whose digest and commits it is shown with."""
