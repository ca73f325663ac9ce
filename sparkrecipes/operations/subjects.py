"""What is sized: a recipe, a model with one or all of its builds, or a Hugging Face repository."""

from __future__ import annotations

from pathlib import Path

from sparkrecipes import memory
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Unknown, UnknownId
from sparkrecipes.operations.workspace import Workspace
from sparkrecipes.schema.model import Build, Model
from sparkrecipes.schema.recipe import Recipe


def recipe_request(
    space: Workspace,
    recipe: Recipe,
    context_tokens: int | None,
    users: int | None,
    kv_cache_dtype: str | None = None,
) -> memory.FitRequest:
    """Put together what sizing a recipe needs."""
    return memory.recipe_request(
        recipe,
        space.catalog.model(recipe.model),
        space.catalog.engine(recipe.engine),
        space.catalog.october_row(recipe),
        context_tokens=context_tokens,
        users=users,
        kv_cache_dtype=kv_cache_dtype,
    )


def subject_request(
    space: Workspace,
    subject: str,
    context_tokens: int | None,
    users: int | None,
    kv_cache_dtype: str | None,
) -> memory.FitRequest:
    """Find what ``subject`` names and put together what sizing it needs.

    Raises:
        UnknownId: Nothing has that id.
        Unknown: A repository that the catalog does not know, and the Hub could not be asked.
    """
    if subject in space.catalog.recipes or looks_like_file(subject):
        recipe = space.catalog.recipe(subject)
        return recipe_request(space, recipe, context_tokens, users, kv_cache_dtype)
    model, builds = find_model(space, subject)
    return memory.model_request(
        model,
        builds,
        context_tokens=context_tokens or model.context_tokens,
        users=users or 1,
        kv_cache_dtype=kv_cache_dtype or "auto",
    )


def looks_like_file(subject: str) -> bool:
    """Say whether ``subject`` is meant as the path of a recipe file."""
    return subject.endswith((".yaml", ".yml")) or Path(subject).is_file()


def find_model(space: Workspace, subject: str) -> tuple[Model, tuple[Build, ...]]:
    """Find a model and the builds that ``subject`` stands for.

    Raises:
        UnknownId: No model or build has that id.
        Unknown: The Hub could not be asked for a repository.
    """
    models = space.catalog.models
    if subject in models:
        return models[subject], models[subject].builds
    # A repository may be of any model; an id of a build begins with its model's.
    for name in models:
        if "/" in subject or subject.startswith(f"{name}-"):
            for build in models[name].builds:
                if subject in (build.repo, f"{name}-{build.quant}"):
                    return models[name], (build,)
    if "/" not in subject:
        known = [*models, *space.catalog.recipes, *build_ids(space.catalog)]
        raise UnknownId("recipe or model", subject, known, see="sparkrecipes list")
    if space.offline:
        raise Unknown(
            f"the catalog does not know {subject}, and --offline forbids asking the Hub",
            code="offline",
            repair=f"run without --offline: sparkrecipes fit {subject}",
        )
    from sparkrecipes import hub_models

    model = hub_models.fetch(subject)
    return model, model.builds


def build_ids(catalog: Catalog) -> list[str]:
    """List ``<model>-<quant>`` of every build."""
    return [f"{m.id}-{b.quant}" for m in catalog.models.values() for b in m.builds]
