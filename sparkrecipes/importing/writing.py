"""Writing a recipe as strict YAML, with a comment where a value is null or not the file's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sparkrecipes.schema.importing import NotCarried
from sparkrecipes.strict_yaml.scalars import UNSEEN, Ambiguous, resolve

SCHEMA_LINE = "# yaml-language-server: $schema=../schemas/recipe.schema.json"
_SAFE = re.compile(r"[A-Za-z/_-]([A-Za-z0-9 ._/+=@,()-]*[A-Za-z0-9._/+=@,()-])?")


def recipe_text(
    fields: Mapping[str, Any], comments: Mapping[str, str], not_carried: Sequence[NotCarried] = ()
) -> str:
    """Write a recipe.

    Args:
        fields: Its keys in order.
        comments: What stands behind a value, by ``key`` or ``key.inner``.
        not_carried: What is listed at the end, so that the file remembers it.
    """
    lines = [SCHEMA_LINE, *_mapping(fields, comments, "", 0)]
    if not_carried:
        lines.append("# Not carried (line of the imported file: what, why):")
        lines += [f"#   {one.line}: {one.what}: {one.why}" for one in not_carried]
    return "\n".join(UNSEEN.sub("?", line).rstrip() for line in lines) + "\n"


def _mapping(
    fields: Mapping[str, Any], comments: Mapping[str, str], above: str, depth: int
) -> Iterator[str]:
    pad = "  " * depth
    for key, value in fields.items():
        path = f"{above}{key}"
        comment = f"  # {comments[path]}" if path in comments else ""
        name = scalar(key)
        if isinstance(value, Mapping) and value:
            yield f"{pad}{name}:{comment}"
            yield from _mapping(value, comments, f"{path}.", depth + 1)
        elif isinstance(value, list | tuple) and value:
            yield f"{pad}{name}:{comment}"
            yield from _items(value, depth + 1)
        else:
            yield f"{pad}{name}: {scalar(value)}{comment}"


def _items(values: Iterable[Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for value in values:
        if isinstance(value, Mapping):
            inner = [f"{scalar(key)}: {scalar(each)}" for key, each in value.items()]
            yield from (f"{pad}{'  ' if at else '- '}{line}" for at, line in enumerate(inner))
        else:
            yield f"{pad}- {scalar(value)}"


def scalar(value: Any) -> str:
    """Write one value so that every reader takes it the same way; text in quotes if in doubt."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0").rstrip(".")
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    text = str(value)
    if is_plain(text):
        return text
    if '"' in text and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)


def is_plain(text: str) -> bool:
    """Tell whether a text needs no quotes, for any reader."""
    if not _SAFE.fullmatch(text) or text.startswith(("- ", "---", "...")) or text == "-":
        return False
    try:
        return isinstance(resolve(text), str)
    except Ambiguous:
        return False
