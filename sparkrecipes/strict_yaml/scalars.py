"""What an unquoted word means: one reading, or a refusal."""

from __future__ import annotations

import re
from typing import Any

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ufeff\ufffe\uffff]"
)
"""Characters that are not shown, or that reorder what is shown."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_AMBIGUOUS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"(?i:yes|no|on|off|true|false)", "a boolean for some YAML readers"),
        (r"(?i:null)|~", "null for some YAML readers"),
        (r"[-+]?0[0-9_]+|[-+]?0[box][0-9a-fA-F_]+", "a number in octal, hex or binary"),
        (r"[-+]?[0-9][0-9_]*", "a number for some YAML readers"),
        (r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?", "a number"),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", "a number in base 60"),
        (r"[-+]?\.(?i:inf|nan)", "not a finite number"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?", "a date for some YAML readers"),
        (r"<<", "a merge key"),
    )
)
"""What YAML 1.1 and YAML 1.2 readers take differently.

Source: https://yaml.org/type/ (1.1) and https://yaml.org/spec/1.2.2/#103-core-schema (1.2).
"""


def resolve(text: str) -> tuple[Any, str]:
    """Return the value of an unquoted scalar, and what it is to others where that differs.

    Examples: ``8`` is 8, ``0.10`` is 0.1, ``v1`` is text, ``no`` is refused.
    """
    if text == "null":
        return None, ""
    if text in ("true", "false"):
        return text == "true", ""
    if number := _NUMBER.fullmatch(text):
        if len(text) > 18:
            return text, "a number that is too long to be exact"
        return (float(text) if number[2] else int(text)), ""
    for pattern, what in _AMBIGUOUS:
        if pattern.fullmatch(text):
            return text, what
    return text, ""
