"""From a parsed file to its type, or to what is wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from sparkrecipes.catalog.kinds import Kind
from sparkrecipes.strict_yaml import Document, Fix

if TYPE_CHECKING:
    from sparkrecipes.catalog.wording import Fault
    from sparkrecipes.schema.findings import Problem


def check(document: Document, kind: Kind, name: str) -> tuple[BaseModel | None, list[Fault]]:
    """Turn a document into its type.

    Args:
        document: A parsed file.
        kind: What it should be.
        name: The file's name without ending, which is its id.

    Returns:
        The value, or None, and what is wrong.
    """
    tree = document.tree
    if not isinstance(tree, dict):
        # The words for what is wrong are loaded where something is.
        from sparkrecipes.catalog.wording import Fault

        message = f"a {kind.word} is a mapping of keys to values"
        return None, [Fault((), "wrong_type", message, "write 'key: value' lines")]
    given = {**tree, "id": name} if kind.has_id else tree
    try:
        value = kind.value_type.model_validate_json(json.dumps(given))
    except ValidationError as error:
        from sparkrecipes.catalog.wording import faults

        found = faults(error.errors(include_url=False), document, kind.file_type)
        return None, _with_id_key(found, tree, kind, name)
    extra = _with_id_key([], tree, kind, name)
    return (None if extra else value), extra


def _with_id_key(found: list[Fault], tree: dict[str, object], kind: Kind, name: str) -> list[Fault]:
    """Add the fault of an ``id`` key, which the name of the file has replaced by then."""
    if kind.has_id and "id" in tree:
        from sparkrecipes.catalog.wording import Fault

        fix = Fix(path=("id",), kind="remove") if tree["id"] == name else None
        message, repair = "the file's name is the id", "remove the key id"
        found.append(Fault(("id",), "id_key", message, repair, fix=fix))
    return found


def problem(document: Document, fault: Fault) -> Problem:
    """Return a fault as a problem with its line and column."""
    from sparkrecipes.schema.findings import Problem

    line, column = document.mark(fault.path)
    return Problem(
        file=document.name,
        line=line,
        column=column,
        level="error" if fault.level == "error" else "hint",
        message=fault.message,
        repair=fault.repair,
        code=fault.code,
        fixable=fault.fix is not None,
    )
