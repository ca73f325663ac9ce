"""The catalog's own answers: what there is, and whether a file of it is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparkrecipes import catalog as catalogs
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.contradiction import EvidenceOverview
from sparkrecipes.schema.findings import ValidationReport
from sparkrecipes.schema.listing import RecipeDetail, RecipeList, RecipeSummary
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe


def list_recipes(
    *, everything: bool = False, catalog: Catalog | Place = None, machine: Machine | Place = None
) -> RecipeList:
    """List recipes with the figures that people choose by.

    Args:
        everything: True lists those too that the standard round did not measure and that are
            known from other publications: their figures do not compare.
        catalog: Where recipes come from.
        machine: Checked and not used: figures are those of the machine that was measured.

    Raises:
        UnknownId: No machine has that id.
    """
    opened = known_place(catalog, machine)
    return opened.listed(everything=everything, complete=partial(completed, opened))


def get_recipe(
    recipe: str,
    *,
    evidence: bool = False,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
) -> RecipeDetail:
    """Show one recipe in full, with what is published of it.

    Args:
        recipe: A recipe's id or file.
        evidence: True adds everything published of its model side by side, by every method, with
            what contradicts and why it may.
        catalog: Where recipes come from.
        machine: Checked and not used.

    Raises:
        UnknownId: No recipe or machine has that id.
    """
    opened = known_place(catalog, machine)
    found = opened.recipe(recipe)
    detail = opened.detail(found)
    more: dict[str, Any] = {"summary": completed(opened, found, detail.summary)}
    if evidence:
        more["evidence"] = opened.evidence_view(found)
    return detail.model_copy(update=more)


def get_evidence(
    model: str | None = None, *, catalog: Catalog | Place = None, machine: Machine | Place = None
) -> EvidenceOverview:
    """Put published figures side by side, by every method, and say where they contradict and why.

    Args:
        model: A model's id; None: every model of which something contradicts.
        catalog: Where they come from.
        machine: Checked and not used.

    Raises:
        UnknownId: No model or machine has that id.
    """
    from sparkrecipes.catalog.evidence_view import overview

    opened = known_place(catalog, machine)
    wanted = tuple(opened.models) if model is None else (opened.model(model).id,)
    return overview(wanted, opened.recipes, opened.evidence, tuple(opened.machines))


def completed(catalog: Catalog, recipe: Recipe, row: RecipeSummary) -> RecipeSummary:
    """Add to a recipe's row the speed that it may reach, where nobody measured it."""
    # Most lists come from the kept one: the arithmetic is loaded by those that are made anew.
    from sparkrecipes.operations import sizing

    return sizing.completed(catalog, recipe, row)


def known_place(catalog: Catalog | Place, machine: Machine | Place) -> Catalog:
    """Open a catalog; a machine that was named must be one, although its figures are not read.

    Raises:
        UnknownId: No machine has that id.
        Misuse: There is no such catalog or file.
    """
    opened = open_catalog_of(catalog)
    if machine is not None and not isinstance(machine, Machine):
        opened.machine(machine)
    return opened


def validate_recipe(
    paths: Sequence[Path | str],
    *,
    fix: bool = False,
    dry_run: bool = False,
    catalog: Catalog | Place = None,
) -> ValidationReport:
    """Check recipe or other catalog files: what is wrong, where, and the repair.

    Args:
        paths: Files, or folders with catalog files.
        fix: Put right in the files what is mechanical and leaves no doubt; comments and layout
            stay. What was changed is in ``changes``, with a diff of each file.
        dry_run: With ``fix``: only say what would be changed.
        catalog: What files outside a catalog are checked against.

    Raises:
        Misuse: A path is not there, or ``dry_run`` without ``fix``.
        CatalogError: A file that is to be changed cannot be written.
    """
    if dry_run and not fix:
        message = "dry_run says what fix would change"
        raise Misuse(message, repair="ask for both: sparkrecipes validate --fix --dry-run PATH")
    opened = open_catalog_of(catalog)
    return catalogs.validate([Path(p) for p in paths], opened, fix=fix, dry_run=dry_run)
