"""JSON inside a flag: where it breaks and why."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_SUFFIXED = re.compile(r'("(?:[^"\\]|\\.)*")|\b\d+(?:\.\d+)?[kKmMgGtT]\b')
"""A string, or a number with a suffix such as 80m, which vLLM takes for 80,000,000."""

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')
MAX_DEPTH = 64
"""Levels of nesting that are read: our own bound, since each Python gives up at another depth."""


class JsonFault(NamedTuple):
    """Why a text is not JSON, and what to do."""

    message: str
    repair: str


def json_fault(text: str) -> JsonFault | None:
    """Return what is wrong with a JSON text; None where it is right.

    Keys that are given twice count as wrong: the last would win silently.
    """
    if _depth(text) > MAX_DEPTH:
        return JsonFault("it is nested too deep", "an engine option needs a few levels")
    try:
        _load(plain_json(text))
    except json.JSONDecodeError as error:
        if _collapsed_is_json(text):
            message = "its braces are doubled, as a template would leave them"
            return JsonFault(message, "write { and } once")
        where = f"{error.msg} at character {error.pos + 1}"
        return JsonFault(where, "correct it; in YAML put the whole item in single quotes")
    except ValueError as error:
        return JsonFault(str(error), "correct the value")
    return None


def plain_json(text: str) -> str:
    """Return a text with its suffixed numbers written as 0, which plain JSON can hold."""
    return _SUFFIXED.sub(lambda found: found[1] or "0", text)


def _depth(text: str) -> int:
    """Return how deep its brackets go, those in strings left out."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        depth += bool(found[1]) - bool(found[2])
        deepest = max(deepest, depth)
    return deepest


def _load(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in pairs:
        if key in tree:
            raise ValueError(f"the key {key[:60]!r} is given twice")
        tree[key] = value
    return tree


def _collapsed_is_json(text: str) -> bool:
    """Tell whether ``{{`` and ``}}`` read as ``{`` and ``}`` give JSON."""
    try:
        _load(text.replace("{{", "{").replace("}}", "}"))
    except ValueError:
        return False
    return "{{" in text
