"""What the engine is told: a recipe's fields under the engine's own names, then its flags."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sparkrecipes.commands.weights import Placed
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe


@dataclass(frozen=True)
class Settings:
    """What the engine is set for, where that may differ from the recipe.

    Attributes:
        context_tokens: Longest sequence.
        users: Sequences at once.
        gpu_memory_utilization: Fraction of the memory; None leaves it to the engine.
    """

    context_tokens: int
    users: int
    gpu_memory_utilization: float | None


def engine_arguments(
    recipe: Recipe,
    engine: Engine,
    weights: Placed | None,
    drafter: Placed | None,
    settings: Settings,
) -> tuple[str, ...]:
    """List the engine's arguments, in the order: command, model, address, fields, flags.

    A field and its value are one item, ``--name=value``, so that no value is read as an option.

    Raises:
        CatalogError: A flag names a folder that the recipe does not have.
    """
    names = engine.flags
    dtype = recipe.serving.kv_cache_dtype
    fields = (
        (names.served_model_name, recipe.served_model_name),
        (names.context_tokens, settings.context_tokens),
        (names.users, settings.users),
        (names.kv_cache_dtype, engine.kv_cache_dtypes.get(dtype, dtype)),
        (names.gpu_memory_utilization, settings.gpu_memory_utilization),
        (names.speculative, speculative_json(recipe, drafter)),
    )
    return (
        *engine.command,
        *model_argument(engine, weights),
        *engine.listen_flags,
        *(f"{name}={shown(value)}" for name, value in fields if name and value is not None),
        *(with_folders(recipe, flag, weights, drafter) for flag in recipe.flags),
    )


def model_argument(engine: Engine, weights: Placed | None) -> tuple[str, ...]:
    """Name the model's folder, alone or as the engine's option; nothing where it asks for none."""
    if weights is None or not engine.model_argument:
        return ()
    return (f"{engine.model_flag}={weights.path}" if engine.model_flag else weights.path,)


def shown(value: str | float) -> str:
    """Write a number without needless digits; text as it is."""
    return value if isinstance(value, str) else f"{value:.12g}"


def speculative_json(recipe: Recipe, drafter: Placed | None) -> str | None:
    """Write the speculative decoding option as the engine's JSON; None without speculation."""
    if recipe.speculative is None:
        return None
    option = recipe.speculative.model_dump(mode="json", exclude_none=True)
    if drafter:
        option["model"] = drafter.path
    return json.dumps(option, separators=(",", ":"))


def with_folders(recipe: Recipe, flag: str, weights: Placed | None, drafter: Placed | None) -> str:
    """Put the folders' paths in place of ``<weights>`` and ``<drafter>``.

    Raises:
        CatalogError: The flag names a folder that the recipe does not have.
    """
    for role, place in (("weights", weights), ("drafter", drafter)):
        if place:
            flag = flag.replace(f"<{role}>", place.path)
        elif f"<{role}>" in flag:
            raise CatalogError(
                f"recipe {recipe.id}: the flag {flag!r} names <{role}>, and it has none",
                code="no_such_folder",
                repair=f"name a repository under {role}:, or drop the flag",
            )
    return flag
