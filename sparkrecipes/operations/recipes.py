"""The catalog's own answers: what there is, and whether a file of it is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparkrecipes import catalog as catalogs
from sparkrecipes.catalog import Catalog
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.findings import ValidationReport
from sparkrecipes.schema.listing import RecipeDetail, RecipeList


def list_recipes(*, catalog: Catalog | Place = None) -> RecipeList:
    """List all recipes with the figures that people choose by."""
    return RecipeList(recipes=open_catalog_of(catalog).summaries())


def get_recipe(recipe: str, *, catalog: Catalog | Place = None) -> RecipeDetail:
    """Show one recipe in full, with what is published of it.

    Raises:
        UnknownId: No recipe has that id.
    """
    opened = open_catalog_of(catalog)
    return opened.detail(opened.recipe(recipe))


def validate_recipe(
    paths: Sequence[Path | str], *, catalog: Catalog | Place = None
) -> ValidationReport:
    """Check recipe or other catalog files: what is wrong, where, and the repair."""
    return catalogs.validate([Path(p) for p in paths], open_catalog_of(catalog))
