"""The user's own files beside the shipped catalog: their faults, and the locks of recipes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.catalog.loading import load
from sparkrecipes.catalog_files import DOES_NOT_RUN, LOCK_SUFFIX, SUFFIX
from sparkrecipes.errors import CatalogError

if TYPE_CHECKING:
    from sparkrecipes.catalog.store import Catalog
    from sparkrecipes.schema.evidence import DoesNotRunEntry, DoesNotRunFile
    from sparkrecipes.schema.findings import Problem
    from sparkrecipes.schema.lock import Lock, LockedWeights
    from sparkrecipes.schema.recipe import Recipe, WeightsSource


def what_lacks(recipe: Recipe, catalog: Catalog) -> CatalogError | None:
    """Return what a recipe of the user names that is not there; None where all is."""
    see = "run: sparkrecipes validate, with its file"
    if recipe.model not in catalog.models:
        message = f"it names the model {recipe.model}, which is not there"
        return CatalogError(message, code="unknown_model", repair=f"add its file; {see}")
    if recipe.engine not in catalog.engines:
        message = f"it names the engine {recipe.engine}, which is not there"
        return CatalogError(message, code="unknown_engine", repair=f"add its file; {see}")
    try:
        catalog.published(recipe)
    except CatalogError as error:
        return error
    return None


def problems(broken: Mapping[Path, CatalogError]) -> Iterator[Problem]:
    """Return the faults of files that are left out, each with its place."""
    from sparkrecipes.schema.findings import Problem

    for path, error in broken.items():
        found: tuple[Problem, ...] = getattr(error, "problems", ())
        yield from found or (
            Problem(
                file=str(path),
                line=1,
                column=1,
                level="error",
                message=error.message,
                repair=error.repair,
                code=error.code,
            ),
        )


def optional(path: Path) -> Path | None:
    """Return a file of the user that can be read and is valid; None where not."""
    try:
        return path if entries(path) else None
    except CatalogError:
        return None


def entries(path: Path) -> tuple[DoesNotRunEntry, ...]:
    """Return what a list of what does not run says; empty where there is no such file.

    Raises:
        CatalogError: It is not valid.
    """
    if not os.path.exists(path):  # noqa: PTH110 (does not raise where a folder is closed)
        return ()
    return cast("DoesNotRunFile", load(path, BY_FOLDER[DOES_NOT_RUN])).entries


def list_problems(user: Path) -> Iterator[Problem]:
    """Return what is wrong with the user's own list of what does not run."""
    path = user / DOES_NOT_RUN
    try:
        entries(path)
    except CatalogError as error:
        yield from problems({path: error})


def is_path(ref: str | Path) -> bool:
    """Tell whether a file is named, not an id."""
    return isinstance(ref, Path) or os.sep in ref or ref.endswith((".yaml", ".yml"))


def lock_path(recipe_id: str, ref: str | Path, catalog: Catalog) -> Path:
    """Return where a recipe's lock is kept: beside its file, else in the catalog's folder."""
    if is_path(ref):
        return Path(ref).with_name(f"{Path(ref).stem}{LOCK_SUFFIX}")
    return catalog.locks_root / "locks" / f"{recipe_id}{SUFFIX}"


def lock_of(recipe: Recipe, ref: str | Path, catalog: Catalog) -> tuple[Path, Lock] | None:
    """Return a recipe's lock with its file; None where it has none.

    Raises:
        CatalogError: It is not valid: then it is not known what it pinned.
    """
    path = lock_path(recipe.id, ref, catalog)
    if not os.path.exists(path):  # noqa: PTH110
        return None
    return path, cast("Lock", load(path, BY_FOLDER["locks"]))


def with_pins(recipe: Recipe, lock: Lock) -> Recipe:
    """Return a recipe with what its lock pins; its own pins, and other names, stay as they are."""
    changes: dict[str, object] = {}
    image = recipe.image
    if lock.image and image.digest is None and lock.image.reference == image.reference:
        changes["image"] = image.model_copy(update={"digest": lock.image.digest})
    if weights := pinned_source(recipe.weights, lock.weights):
        changes["weights"] = weights
    if drafter := pinned_source(recipe.drafter, lock.drafter):
        changes["drafter"] = drafter
    return recipe.model_copy(update=changes) if changes else recipe


def pinned_source(
    source: WeightsSource | None, locked: LockedWeights | None
) -> WeightsSource | None:
    """Return a repository with the lock's commit; None where the lock says nothing of it."""
    if source is None or locked is None or source.revision or source.repo != locked.repo:
        return None
    return source.model_copy(update={"revision": locked.revision})
