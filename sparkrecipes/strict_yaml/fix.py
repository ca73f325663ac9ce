"""What a fix changes in a file, before anyone looks for the place in its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PathInTree = tuple[str | int, ...]
"""Keys and indexes that lead from the root to a part."""


@dataclass(frozen=True, kw_only=True)
class Fix:
    """One mechanical change that leaves no doubt about what was meant.

    Attributes:
        path: The part that it changes.
        kind: ``key``: its key is renamed; ``text``: its value becomes ``text``; ``plain``: the
            same without quotes; ``remove``: it goes, key or item and value; ``items``: it and
            the following ``count - 1`` items of the list become ``items``; ``order``: the keys
            at the root come in the order of ``items``; ``trim``: no line ends in spaces, and the
            last one ends.
        text: The new key or value.
        items: The new items.
        count: How many items are replaced.
    """

    path: PathInTree
    kind: Literal["key", "text", "plain", "remove", "items", "order", "trim"]
    text: str = ""
    items: tuple[str, ...] = ()
    count: int = 1
