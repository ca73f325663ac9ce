"""Whether an imported recipe is one that the catalog already has."""

from __future__ import annotations

from typing import Any

from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe, RecipeFile

OPTIONAL_PINS = ("weights", "drafter")


def same_recipe(fields: dict[str, Any], catalog: Catalog) -> Recipe | None:
    """Return the recipe of the catalog that serves exactly what these fields say, or None.

    Titles, sources and what is known of a recipe do not count; a pin that only one of them has
    does not either: it says which of several states, not another thing.
    """
    for recipe_id in catalog.recipes:
        try:
            recipe = catalog.recipes[recipe_id]
        except CatalogError:
            continue
        if recipe.engine == fields["engine"] and serves_the_same(
            recipe, fields, catalog.engine(recipe.engine)
        ):
            return recipe
    return None


def serves_the_same(recipe: Recipe, fields: dict[str, Any], engine: Engine) -> bool:
    """Compare what runs: image, weights, settings as the engine is told them, flags, environment.

    Speculation counts where the engine takes it as an option of its own; else its flags do.
    """
    own = recipe.model_dump(mode="json")
    if any(own[key] != fields[key] for key in ("served_model_name", "env", "shm_size")):
        return False
    if as_told(own["serving"], engine) != as_told(fields["serving"], engine):
        return False
    if sorted(own["flags"]) != sorted(fields["flags"]):
        return False
    speculative = recipe.speculative.model_dump(exclude_none=True) if recipe.speculative else None
    if engine.flags.speculative and speculative != fields["speculative"]:
        return False
    return same_image(own["image"], fields["image"]) and all(
        same_repository(own[key], fields[key]) for key in OPTIONAL_PINS
    )


def as_told(serving: dict[str, Any], engine: Engine) -> dict[str, Any]:
    """Return settings with the engine's own word for the type of the KV cache."""
    word = serving["kv_cache_dtype"]
    return {**serving, "kv_cache_dtype": engine.kv_cache_dtypes.get(word, word)}


def same_image(own: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare two images: by digest where both have one, else by their names."""
    if own["digest"] and other["digest"]:
        return bool(own["digest"] == other["digest"])
    return bool(own["reference"] == other["reference"])


def same_repository(own: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Compare two repositories; a pin counts where both have one."""
    if own is None or other is None:
        return own is other
    pins = {source["revision"] for source in (own, other)} - {None}
    return bool(own["repo"] == other["repo"] and len(pins) <= 1)


def pinned_like(recipe: Recipe, fields: dict[str, Any]) -> RecipeFile:
    """Return the catalog's recipe with the pins that only the file has."""
    changes: dict[str, Any] = {}
    if fields["image"]["digest"] and not recipe.image.digest:
        changes["image"] = recipe.image.model_copy(update={"digest": fields["image"]["digest"]})
    for key in OPTIONAL_PINS:
        source, other = getattr(recipe, key), fields[key]
        if source and other and other["revision"] and not source.revision:
            changes[key] = source.model_copy(update={"revision": other["revision"]})
    return recipe.model_copy(update=changes)
