"""Two trees side by side: what changed, by names rather than by places in lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkrecipes.strict_yaml import PathInTree


@dataclass(frozen=True)
class Leaf:
    """One value of a tree.

    Attributes:
        path: How it is found again: items of a list by their id, where they have one.
        place: Where it stands in its own tree.
        value: What it is.
        old: How it is shown at the base; None: it was not there.
        new: How it is shown now; None: it is not there.
    """

    path: tuple[str, ...]
    place: PathInTree
    value: Any
    old: str | None = None
    new: str | None = None

    @property
    def name(self) -> str:
        """Its path as people read it."""
        return ".".join(self.path)


def leaves(tree: Any) -> dict[tuple[str, ...], Leaf]:
    """Return every value of a tree that holds no other."""
    return {leaf.path: leaf for leaf in _walk(tree, (), ()) if leaf.path}


def _walk(tree: Any, path: tuple[str, ...], place: PathInTree) -> Iterator[Leaf]:
    if isinstance(tree, dict) and tree:
        for key, inner in tree.items():
            yield from _walk(inner, (*path, str(key)), (*place, key))
    elif isinstance(tree, list) and tree:
        for at, inner in enumerate(tree):
            yield from _walk(inner, (*path, _name(inner, at)), (*place, at))
    else:
        yield Leaf(path, place, tree)


def _name(item: Any, at: int) -> str:
    """Return what tells an item of a list from the others, else its number from 1."""
    if isinstance(item, dict):
        for key in ("id", "recipe", "repo", "workload"):
            if isinstance(item.get(key), str):
                extra = item.get("temperature", item.get("quant", ""))
                return f"{item[key]} {extra}".strip()
    return str(item) if isinstance(item, str) and len(item) <= 40 else str(at + 1)


def shown(leaf: Leaf | None) -> str | None:
    """Return a value as an item shows it; None where there is no such leaf."""
    if leaf is None:
        return None
    text = "null" if leaf.value is None else str(leaf.value)
    return text if len(text) <= 200 else f"{text[:197]}..."
