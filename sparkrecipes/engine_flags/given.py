"""The flags of a recipe, taken apart the way the engine's own parser does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NAME = re.compile(r"--?[A-Za-z][^\s=]*")
_LEVEL = re.compile(r"-O=?([0-9a-z]+)?")


@dataclass(frozen=True, kw_only=True)
class GivenFlag:
    """One flag as it was given.

    Attributes:
        index: Its place in the recipe's list, from 0.
        written: Its name as written.
        name: The same with dashes, without a JSON key.
        key: The JSON key after the first dot (``image`` of ``--limit-mm-per-prompt.image``).
        inline: The value after ``=``, or None.
        values: The items that follow it, up to the next flag.
        appends: Whether the key ends in ``+``: then the value is added to a list.
        joined: Whether name and value stand in one item with a space between them.
    """

    index: int
    written: str
    name: str
    key: str = ""
    inline: str | None = None
    values: tuple[str, ...] = ()
    appends: bool = False
    joined: bool = False

    @property
    def value(self) -> str | None:
        """The value, or the first of several, or None."""
        return self.inline if self.inline is not None else next(iter(self.values), None)


def given_flags(items: Sequence[str]) -> tuple[list[GivenFlag], list[int]]:
    """Take a list of arguments apart.

    Underscores in a name are dashes, ``--x=1`` and ``--x 1`` are the same, what follows a dot
    is a key of a JSON value, ``-O3`` is ``--optimization-level 3``.

    Source: https://github.com/vllm-project/vllm/blob/main/vllm/utils/argparse_utils.py

    Returns:
        The flags, and the indexes of items that belong to none.
    """
    given: list[GivenFlag] = []
    stray: list[int] = []
    index = 0
    while index < len(items):
        if not _NAME.match(items[index]):
            stray.append(index)
            index += 1
            continue
        after = index + 1
        while after < len(items) and not _NAME.match(items[after]):
            after += 1
        given.append(_flag(index, items[index], tuple(items[index + 1 : after])))
        index = after
    return given, stray


def _flag(index: int, item: str, following: tuple[str, ...]) -> GivenFlag:
    if level := _LEVEL.fullmatch(item):
        name, inline = "--optimization-level", level[1]
        return GivenFlag(index=index, written=item, name=name, inline=inline, values=following)
    if (space := re.search(r"\s", item)) and "=" not in item[: space.start()]:
        written, rest, joined = item[: space.start()], item[space.end() :], True
        following = (rest, *following)
        inline = None
    else:
        written, equals, rest = item.partition("=")
        inline, joined = (rest if equals else None), False
    base, _, key = written.partition(".")
    return GivenFlag(
        index=index,
        written=written,
        name=base.replace("_", "-") if base.startswith("--") else base,
        key=key.removesuffix("+"),
        appends=key.endswith("+"),
        inline=inline,
        values=following,
        joined=joined,
    )
