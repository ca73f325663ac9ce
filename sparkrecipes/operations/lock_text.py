"""A lock as its file holds it: strict YAML with a line that says what it is for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sparkrecipes.schema.lock import LockFile


def lock_text(recipe_id: str, lock: LockFile) -> str:
    """Write a lock; every text is quoted, so that each reader takes it the same way."""
    head = (
        "# yaml-language-server: $schema=../schemas/lock.schema.json",
        f"# What the names of {recipe_id} stood for. Made by: sparkrecipes pin {recipe_id}",
    )
    return "\n".join((*head, *lines(lock.model_dump(mode="json"), 0))) + "\n"


def lines(tree: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Write a mapping, one key a line."""
    pad = "  " * depth
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield f"{pad}{key}:"
            yield from lines(value, depth + 1)
        else:
            yield f"{pad}{key}: {'null' if value is None else json.dumps(value)}"
