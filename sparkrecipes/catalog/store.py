"""The catalog: everything that is known, each part loaded when it is first asked for."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

import sparkrecipes
from sparkrecipes.catalog import listing, owned
from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.catalog.loading import Folder, load
from sparkrecipes.catalog_files import (
    DOES_NOT_RUN,
    catalog_root,
    catalog_state,
    user_folder,
)
from sparkrecipes.errors import Misuse, UnknownId

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkrecipes.schema.contradiction import EvidenceView
    from sparkrecipes.schema.engine import Engine
    from sparkrecipes.schema.evidence import DoesNotRunEntry, Evidence, EvidenceRow
    from sparkrecipes.schema.findings import DiagnosisRule, Problem
    from sparkrecipes.schema.listing import (
        PublishedRow,
        RecipeDetail,
        RecipeList,
        RecipeStatus,
        RecipeSummary,
    )
    from sparkrecipes.schema.lock import Lock
    from sparkrecipes.schema.machine import Machine
    from sparkrecipes.schema.model import Model
    from sparkrecipes.schema.recipe import Recipe
    from sparkrecipes.schema.use_case import UseCase

    Completion = Callable[[Recipe, RecipeSummary], RecipeSummary]

T = TypeVar("T", bound=BaseModel)

DEFAULT_MACHINE = "dgx-spark"

SHORT_LISTS = ("machine", "engine")
"""Kinds of which there are so few that an error names them all."""


class Catalog:
    """A folder of catalog files.

    Attributes:
        root: The folder, absolute.
        user: The user's own folder beside the shipped catalog; None beside any other.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user = user_folder(root)

    @cached_property
    def version(self) -> str:
        """The package's version and a hash of all recipes and engines, e.g. ``0.1.0+3fa9c1d20b7e``.

        Another catalog, or a recipe that was changed, has another hash: what runs can be traced.
        """
        found = hashlib.sha256()
        for kind in ("recipes", "engines"):
            folder: Folder[Any] = getattr(self, kind)
            for name in sorted(folder):
                path = folder.path(name)
                found.update(f"{kind}/{name}\0".encode() + path.read_bytes() + b"\0")
        return f"{sparkrecipes.__version__}+{found.hexdigest()[:12]}"

    @cached_property
    def recipes(self) -> Folder[Recipe]:
        """Recipes by id; one of the user that names what is not there is left out."""
        found: Folder[Recipe] = Folder(self.root, "recipes", self.user)
        for key in [*found.own]:
            if lacking := owned.what_lacks(found[key], self):
                found.leave_out(key, lacking)
        return found

    @cached_property
    def locks(self) -> Folder[Lock]:
        """Locks by the id of their recipe."""
        return Folder(self.locks_root, "locks")

    @property
    def locks_root(self) -> Path:
        """The catalog folder that locks are kept in: the user's, else the one that was named."""
        return self.user or self.root

    @cached_property
    def models(self) -> Folder[Model]:
        """Models by id."""
        return Folder(self.root, "models", self.user)

    @cached_property
    def engines(self) -> Folder[Engine]:
        """Engines by id."""
        return Folder(self.root, "engines", self.user)

    @cached_property
    def evidence(self) -> Folder[Evidence]:
        """Evidence sets by id."""
        return Folder(self.root, "evidence", self.user)

    @cached_property
    def use_cases(self) -> Folder[UseCase]:
        """Use cases by id."""
        return Folder(self.root, "use_cases", self.user)

    @cached_property
    def diagnoses(self) -> Folder[DiagnosisRule]:
        """Diagnoses by id."""
        return Folder(self.root, "diagnoses", self.user)

    @cached_property
    def machines(self) -> Folder[Machine]:
        """Machines by id."""
        return Folder(self.root, "machines", self.user)

    @cached_property
    def does_not_run(self) -> tuple[DoesNotRunEntry, ...]:
        """What is known not to run; empty where the catalog has no such file."""
        own = owned.optional(self.user / DOES_NOT_RUN) if self.user else None
        shipped = owned.entries(self.root / DOES_NOT_RUN)
        return (*shipped, *(owned.entries(own) if own else ()))

    def recipe(self, ref: str | Path) -> Recipe:
        """Return a recipe by its id, or by the path of its file, with the pins of its lock.

        Raises:
            UnknownId: No recipe has that id.
            Misuse: There is no such file.
            CatalogError: The file or its lock is not valid.
        """
        recipe = self.unlocked(ref)
        found = owned.lock_of(recipe, ref, self)
        return owned.with_pins(recipe, found[1]) if found else recipe

    def unlocked(self, ref: str | Path) -> Recipe:
        """Return a recipe as its own file says it.

        Raises:
            UnknownId: No recipe has that id.
            Misuse: There is no such file.
            CatalogError: The file is not a valid recipe.
        """
        if owned.is_path(ref):
            return cast("Recipe", _load_file(Path(ref), "recipes"))
        if broken := self.recipes.broken_file(str(ref)):
            raise broken
        return _get(self.recipes, str(ref), "recipe")

    def model(self, model_id: str) -> Model:
        """Return a model by its id.

        Raises:
            UnknownId: No model has that id.
        """
        return _get(self.models, model_id, "model")

    def engine(self, engine_id: str) -> Engine:
        """Return an engine by its id.

        Raises:
            UnknownId: No engine has that id.
        """
        return _get(self.engines, engine_id, "engine")

    def machine(self, ref: str | Path | None = None) -> Machine:
        """Return a machine by its id or file.

        Args:
            ref: An id or a path; None: ``SPARKRECIPES_MACHINE``, else the DGX Spark.

        Raises:
            UnknownId: No machine has that id.
            Misuse: There is no such file.
        """
        ref = ref or os.environ.get("SPARKRECIPES_MACHINE") or DEFAULT_MACHINE
        if owned.is_path(ref):
            return cast("Machine", _load_file(Path(ref), "machines"))
        return _get(self.machines, str(ref), "machine")

    def published(self, recipe: Recipe) -> tuple[PublishedRow, ...]:
        """Return the evidence rows that a recipe points at, in its order."""
        return listing.published(recipe, self.evidence)

    def october_row(self, recipe: Recipe) -> EvidenceRow | None:
        """Return the row of the October round that measured a recipe, or None."""
        return listing.measured_row(recipe, self.evidence)

    def status(self, recipe: Recipe) -> RecipeStatus:
        """Return whether a recipe was measured, is known not to run, or neither."""
        return listing.status(recipe, self.published(recipe), self.does_not_run)

    def summary(self, recipe: Recipe) -> RecipeSummary:
        """Return the figures that people choose a recipe by."""
        rows = self.published(recipe)
        status = listing.status(recipe, rows, self.does_not_run)
        found = listing.summary(recipe, self.model(recipe.model), rows, status)
        if recipe.id not in self.recipes.own:
            return found
        hides = recipe.id in self.recipes.shadowed
        return found.model_copy(update={"origin": "user", "shadows": hides})

    def summaries(self) -> tuple[RecipeSummary, ...]:
        """Return all recipes, the fastest for one user first, doubtful and unmeasured ones last."""
        return self.listed(everything=True).recipes

    def listed(self, *, everything: bool = False, complete: Completion | None = None) -> RecipeList:
        """Return the list: what the standard round measured and the user's own, or everything.

        Args:
            everything: True for all recipes.
            complete: Adds to a row what the catalog alone does not know; then the list is kept.
        """
        whole = listing.kept_list(self.root)
        if whole is None:
            state = catalog_state(self.root)
            rows = sorted(map(self.summary, self.recipes.values()), key=listing.rank)
            if complete:
                rows = [complete(self.recipes[row.id], row) for row in rows]
            whole = listing.whole_list(tuple(rows), self.left_out())
            if complete:
                listing.keep_list(state, whole)
        return listing.shown_list(whole, everything=everything)

    def left_out(self) -> tuple[Problem, ...]:
        """Return what is wrong with files of the user that are left out."""
        folders = (self.recipes, self.models, self.engines, self.evidence)
        found = [problem for folder in folders for problem in owned.problems(folder.broken)]
        return (*found, *(owned.list_problems(self.user) if self.user else ()))

    def evidence_view(self, recipe: Recipe) -> EvidenceView:
        """Return everything published of a recipe's model, and where it contradicts."""
        from sparkrecipes.catalog.evidence_view import evidence_view

        return evidence_view(recipe.model, self.recipes, self.evidence, tuple(self.machines))

    def detail(self, recipe: Recipe) -> RecipeDetail:
        """Return a recipe in full, with what is published of it and where that comes from."""
        found = listing.detail(recipe, self.summary(recipe), self.published(recipe), self.evidence)
        locked = owned.lock_of(recipe, recipe.id, self)
        is_own = recipe.id in self.recipes.own
        return found.model_copy(
            update={
                "file": str(self.recipes.path(recipe.id)) if is_own else None,
                "lock": str(locked[0]) if locked else None,
            }
        )


def open_catalog(path: Path | str | None = None) -> Catalog:
    """Open a catalog; its files are read when they are asked for.

    Args:
        path: Its folder; None: ``SPARKRECIPES_CATALOG``, else the shipped one.

    Raises:
        Misuse: The folder is not a catalog.
    """
    return Catalog(catalog_root(Path(path) if path else None))


def _load_file(path: Path, folder: str) -> object:
    if not os.path.exists(path):  # noqa: PTH110
        word = BY_FOLDER[folder].word
        raise Misuse(f"there is no file {path}", repair=f"check the path of the {word}")
    return load(path, BY_FOLDER[folder])


def _get(folder: Folder[T], key: str, word: str) -> T:
    if key not in folder:
        see = None if word in SHORT_LISTS else "sparkrecipes list"
        raise UnknownId(word, key, folder, see=see)
    return folder[key]
