"""Does it fit, and which one should it be: the memory model and the rules of the pick."""

from __future__ import annotations

from sparkrecipes import machine as hosts
from sparkrecipes import memory
from sparkrecipes import recommendation as recommendations
from sparkrecipes.catalog import Catalog
from sparkrecipes.operations.subjects import recipe_request, subject_request
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace, positive
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.use_case import Recommendation


def recommend(
    use_case: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
) -> Recommendation:
    """Pick a recipe by rules for a use case or a sentence, in English or Spanish.

    Args:
        use_case: ``agents``, ``programación``, or a sentence that names a use.
        context_tokens: Longest sequence wanted; None: as measured.
        users: Sequences at once; None: as measured.
        catalog: Where recipes come from.
        machine: Where they must fit.

    Raises:
        Misuse: The words name no use case, or more than one.
    """
    space = open_workspace(catalog, machine)
    positive("--context", context_tokens)
    positive("--users", users)
    return recommendations.recommend(
        use_case,
        space.catalog,
        context_tokens=context_tokens,
        users=users,
        estimate=lambda recipe: fit_recipe(space, recipe, context_tokens, users),
    )


def estimate_memory(
    recipe_or_model: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    kv_cache_dtype: str | None = None,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
    offline: bool = False,
) -> MemoryEstimate:
    """Say whether a recipe or model fits, for a context and a number of users.

    Args:
        recipe_or_model: A recipe id or file, a model id, ``<model>-<quant>``, or a Hugging Face
            repository (which needs the network unless the catalog knows it).
        context_tokens: Longest sequence; None: as measured, or the model's.
        users: Sequences at once; None: as measured, or 1.
        kv_cache_dtype: None: the recipe's, or auto.
        catalog: Where facts come from.
        machine: Where it must fit.
        offline: True asks no network.

    Raises:
        UnknownId: Nothing has that id.
        Unknown: The repository's facts could not be had.
    """
    space = open_workspace(catalog, machine, offline=offline)
    positive("--context", context_tokens)
    positive("--users", users)
    request = subject_request(space, recipe_or_model, context_tokens, users, kv_cache_dtype)
    return memory.estimate(request, space.machine, available_bytes=available_bytes(space))


def fit_recipe(
    space: Workspace, recipe: Recipe, context_tokens: int | None, users: int | None
) -> MemoryEstimate:
    """Size a recipe on the machine of an open workspace."""
    request = recipe_request(space, recipe, context_tokens, users)
    return memory.estimate(request, space.machine, available_bytes=available_bytes(space))


def available_bytes(space: Workspace) -> int | None:
    """Return MemAvailable where this host is the target, else None."""
    live = hosts.live_memory() if space.here else None
    return live[1] if live else None
