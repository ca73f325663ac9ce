"""The catalog: recipes, models, engines and evidence as files, strict at the door.

``store`` opens it, ``loading`` reads a file, ``validation`` says what is wrong with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkrecipes.catalog.loading import InvalidFile
from sparkrecipes.catalog.store import Catalog, open_catalog
from sparkrecipes.catalog_files import data_root

if TYPE_CHECKING:
    from sparkrecipes.schema.findings import Problem, ValidationReport

__all__ = [
    "Catalog",
    "InvalidFile",
    "data_root",
    "json_schemas",
    "lock_path",
    "open_catalog",
    "validate",
    "validate_text",
]


def validate(
    paths: Sequence[Path],
    catalog: Catalog | None = None,
    *,
    fix: bool = False,
    dry_run: bool = False,
) -> ValidationReport:
    """Say what is wrong with catalog files, all of it in one pass.

    Args:
        paths: Files, or folders: a catalog, one kind's folder, or any with recipes in it.
        catalog: What files outside a catalog are checked against; None: the default one. A file
            inside a catalog is checked against that.
        fix: Put right in the files what is mechanical, before they are judged.
        dry_run: Only say what ``fix`` would change.

    Raises:
        Misuse: A path is not there, or a folder has no catalog files.
        CatalogError: A file that is to be changed cannot be written.
    """
    from sparkrecipes.catalog import validation

    return validation.validate(paths, catalog, fix=fix, dry_run=dry_run)


def lock_path(recipe: str | Path, catalog: Catalog) -> Path:
    """Return where a recipe's lock is kept: beside its own file, else by its id.

    Args:
        recipe: Its id, or the path of its file.
        catalog: Where locks by id are kept, in ``locks/`` of the user's folder beside it.
    """
    from sparkrecipes.catalog import owned

    return owned.lock_path(str(recipe), recipe, catalog)


def validate_text(text: str, name: str, catalog: Catalog) -> tuple[Problem, ...]:
    """Say what is wrong with the text of a recipe, by the rules of ``validate``.

    Args:
        text: What the file would hold.
        name: What it would be called: its id and ending.
        catalog: What it is checked against.
    """
    from sparkrecipes.catalog import validation

    return validation.validate_text(text, name, catalog)


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each kind of catalog file, by the name of its schema file."""
    from sparkrecipes.catalog import schemas

    return schemas.json_schemas()
