"""``validate``: everything that is wrong with catalog files, in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sparkrecipes.catalog.checking import check, problem
from sparkrecipes.catalog.file_rules import FILE_RULES
from sparkrecipes.catalog.kinds import BY_FOLDER, kind_of
from sparkrecipes.catalog.loading import Folder
from sparkrecipes.catalog.recipe_rules import RULES, Around
from sparkrecipes.catalog.store import Catalog, open_catalog
from sparkrecipes.catalog.wording import Fault
from sparkrecipes.catalog_files import DOES_NOT_RUN, KINDS, SUFFIX, files, is_catalog
from sparkrecipes.errors import CatalogError, Misuse, nearest
from sparkrecipes.schema.findings import Problem, ValidationReport
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.strict_yaml import Document, StrictYamlError, parse, read_text

T = TypeVar("T", bound=BaseModel)

OTHER_FOLDERS = ("schemas",)
"""Folders of a catalog that hold no catalog files."""


def validate(paths: Sequence[Path], catalog: Catalog | None = None) -> ValidationReport:
    """Say what is wrong with catalog files; see ``sparkrecipes.catalog.validate``."""
    books = _Books(catalog)
    found: list[Problem] = []
    seen: dict[Path, None] = {}
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 (does not raise where a folder is closed)
            inside, misplaced = _inside(path)
            seen |= dict.fromkeys(inside)
            found += misplaced
        elif not os.path.lexists(path):
            raise Misuse(f"there is no file {path}", repair="check the path", code="no_file")
        else:
            seen[path] = None
    for path in seen:
        found += _file_problems(path, books.of(path))
    errors = any(problem.level == "error" for problem in found)
    return ValidationReport(valid=not errors, files=len(seen), problems=tuple(found))


def _inside(folder: Path) -> tuple[list[Path], list[Problem]]:
    """Return the catalog files of a folder, and what lies among them but is not read."""
    try:
        inside, misplaced = [*_catalog_files(folder)], [*_misplaced(folder)]
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror}"
        raise Misuse(message, repair="check its permissions", code="unreadable") from None
    if not inside:
        message = f"{folder} holds no catalog files"
        raise Misuse(message, repair="name a catalog or a file", code="no_file")
    return inside, misplaced


def _catalog_files(folder: Path) -> Iterator[Path]:
    if folder.absolute().name in KINDS:
        yield from files(folder.parent, folder.absolute().name).values()
    elif is_catalog(folder):
        for kind in KINDS:
            yield from files(folder, kind).values()
        if (folder / DOES_NOT_RUN).is_file():
            yield folder / DOES_NOT_RUN
    else:
        yield from sorted(folder.glob(f"*{SUFFIX}"))


def _misplaced(folder: Path) -> Iterator[Problem]:
    inside = [folder / kind for kind in KINDS] if is_catalog(folder) else [folder]
    for path in (path for place in inside for path in sorted(place.glob("*.yml"))):
        repair = f"rename it to {path.stem}{SUFFIX}"
        yield _file_problem(path, "file_name", "files end in .yaml; this one is not read", repair)
    for path in sorted(folder.iterdir()) if is_catalog(folder) else ():
        if path.is_dir() and path.name not in (*KINDS, *OTHER_FOLDERS):
            near = nearest(path.name, KINDS)
            repair = f"did you mean {near[0]}/?" if near else f"known: {', '.join(KINDS)}"
            yield _file_problem(path, "unknown_folder", "no kind of file has this folder", repair)


def _file_problem(path: Path, code: str, message: str, repair: str) -> Problem:
    return Problem(
        file=str(path),
        line=1,
        column=1,
        level="hint",
        message=message,
        repair=repair,
        code=code,
    )


def validate_text(text: str, name: str, catalog: Catalog) -> tuple[Problem, ...]:
    """Say what is wrong with the text of a recipe; see ``sparkrecipes.catalog.validate_text``."""
    return tuple(_text_problems(text, Path(name), catalog))


def _file_problems(path: Path, catalog: Catalog) -> list[Problem]:
    try:
        text = read_text(path)
    except StrictYamlError as error:
        return list(error.problems)
    return _text_problems(text, path, catalog)


def _text_problems(text: str, path: Path, catalog: Catalog) -> list[Problem]:
    try:
        document = parse(text, name=str(path))
    except StrictYamlError as error:
        return sorted(error.problems, key=lambda problem: (problem.line, problem.column))
    folder = kind_of(path, text[:1000])
    value, found = check(document, BY_FOLDER[folder], path.stem)
    if folder == "recipes":
        found += _recipe_faults(document, value, found, catalog)
    elif value is not None:
        found += FILE_RULES[folder](value, lambda kind: tuple(getattr(catalog, kind)))
    problems = [problem(document, fault) for fault in found]
    return sorted(problems, key=lambda problem: (problem.line, problem.column, problem.level))


def _recipe_faults(
    document: Document, value: BaseModel | None, found: list[Fault], catalog: Catalog
) -> list[Fault]:
    """Return what the rules find; those that read a wrong field are not asked."""
    wrong = {str(fault.path[0]) for fault in found if fault.path}
    recipe = value if isinstance(value, Recipe) else _draft(document.tree, wrong)
    if recipe is None:
        return []
    around = Around(
        model=_or_none(catalog.models, recipe.model),
        engine=_or_none(catalog.engines, recipe.engine),
        models=tuple(catalog.models),
        engines=tuple(catalog.engines),
        evidence=lambda key: _or_none(catalog.evidence, key),
        evidence_ids=tuple(catalog.evidence),
    )
    rules = [rule for rule in RULES if not rule.needs & wrong]
    return [fault for rule in rules for fault in rule.find(recipe, around)]


def _or_none(folder: Folder[T], key: str) -> T | None:
    """Return a file's value; None where it is not there or not valid, which its own check says."""
    try:
        return folder.get(key)
    except CatalogError:
        return None


_BLANK: dict[str, Any] = {
    "title": "-",
    "model": "-",
    "quant": None,
    "weights": None,
    "image": {"reference": "none"},
    "engine": "-",
    "engine_version": None,
    "served_model_name": "-",
    "serving": {
        "context_tokens": 1,
        "users": 1,
        "kv_cache_dtype": "auto",
        "gpu_memory_utilization": None,
    },
    "startup_timeout_s": 60,
    "capabilities": [],
    "sources": ["-"],
}
"""Stands for the fields of a recipe that are wrong, so that the rules can read the others."""


def _draft(tree: Any, wrong: set[str]) -> Recipe | None:
    """Return a recipe of the fields that are right; None where even that is none."""
    if not isinstance(tree, dict):
        return None
    right = {key: value for key, value in tree.items() if key not in wrong}
    try:
        return Recipe.model_validate({**_BLANK, **right, "id": "draft"}, strict=False)
    except ValidationError:
        return None


class _Books:
    """Which catalog a file is checked against: its own, else the one given, else the default."""

    def __init__(self, given: Catalog | None) -> None:
        self._given = given
        self._own: dict[Path, Catalog] = {}

    def of(self, path: Path) -> Catalog:
        """Return the catalog for a file."""
        place = path.absolute().parent
        root = place.parent if place.name in KINDS else place
        if not is_catalog(root):
            return self._default
        if root not in self._own:
            self._own[root] = open_catalog(root)
        return self._own[root]

    @cached_property
    def _default(self) -> Catalog:
        return self._given or open_catalog()
