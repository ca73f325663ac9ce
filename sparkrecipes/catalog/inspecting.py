"""Everything that is wrong with one text: as YAML, by its types, by the rules of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sparkrecipes.catalog.checking import check
from sparkrecipes.catalog.file_rules import FILE_RULES
from sparkrecipes.catalog.kinds import BY_FOLDER, kind_of
from sparkrecipes.catalog.loading import Folder
from sparkrecipes.catalog.recipe_rules import RULES, Around
from sparkrecipes.catalog.store import Catalog
from sparkrecipes.catalog.wording import Fault
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.recipe import Recipe, RecipeFile
from sparkrecipes.strict_yaml import Document, Fix, StrictYamlError, parse
from sparkrecipes.strict_yaml.editing import trimmed

T = TypeVar("T", bound=BaseModel)


def faults_in(
    text: str, path: Path, catalog: Catalog, *, folder: str | None = None
) -> tuple[Document, list[Fault]]:
    """Return the document of a text and what is wrong with it.

    Args:
        text: What the file holds.
        path: The file; its folder and name say what it should be.
        catalog: What it is checked against.
        folder: What it should be, wherever it lies.

    Raises:
        StrictYamlError: The text is not strict YAML.
    """
    document = parse(text, name=str(path))
    folder = folder or kind_of(path, text[:1000])
    value, found = check(document, BY_FOLDER[folder], path.stem)
    if folder == "recipes":
        found += _recipe_faults(document, value, found, catalog)
        found += _key_order(document)
    elif value is not None:
        found += FILE_RULES[folder](value, lambda kind: tuple(getattr(catalog, kind)))
    return document, [*found, *_layout(text, document)]


def _layout(text: str, document: Document) -> Iterator[Fault]:
    """Find spaces at the ends of lines, where they mean nothing, and a last line without end."""
    text = text.replace("\r\n", "\n")
    after = trimmed(text)
    if after == text or not text.strip():
        return
    try:
        same = parse(after).tree == document.tree
    except StrictYamlError:
        same = False
    if same:
        fix = Fix(path=(), kind="trim")
        message = "lines end in spaces, or the last one has no end"
        yield Fault((), "trailing_space", message, "remove the spaces", "hint", fix)


def _key_order(document: Document) -> Iterator[Fault]:
    """Find keys of a recipe that stand elsewhere than in all others."""
    order = tuple(RecipeFile.model_fields)
    keys = [key for key in document.tree if key in order] if isinstance(document.tree, dict) else []
    wanted = sorted(keys, key=order.index)
    if keys != wanted and len(keys) == len(document.tree):
        wrong = next(key for key, other in zip(keys, wanted, strict=True) if key != other)
        after = wanted[wanted.index(wrong) - 1] if wanted.index(wrong) else "the first line"
        fix = Fix(path=(), kind="order", items=order)
        message = f"{wrong} stands elsewhere in other recipes"
        yield Fault((wrong,), "key_order", message, f"write it after {after}", "hint", fix)


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
    "model": "none",
    "quant": None,
    "weights": None,
    "image": {"reference": "none"},
    "engine": "none",
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
