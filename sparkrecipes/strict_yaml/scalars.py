"""What an unquoted word means: one reading, or a refusal."""

from __future__ import annotations

import re

from sparkrecipes.strict_yaml.document import shown

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ufeff\ufffe\uffff]"
)
"""Characters that are not shown, or that reorder what is shown."""

MAX_DIGITS = 18
"""Longer numbers do not survive every JSON and YAML reader."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_AMBIGUOUS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), what, instead)
    for pattern, what, instead in (
        (r"(?i:yes|no|on|off|true|false)", "a boolean for some YAML readers", "true or false"),
        (r"(?i:null)|~", "null for some YAML readers", "null"),
        (r"[-+]?0[0-9_]+|[-+]?0[box][0-9a-fA-F_]+", "octal, hex or binary for some", "digits"),
        (r"[-+]?[0-9][0-9_]*", "a number for some YAML readers", "plain digits"),
        (
            r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?",
            "a number for some YAML readers",
            "plain digits",
        ),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", "a number in base 60 for some", "digits"),
        (r"[-+]?\.(?i:inf|nan)", "not a finite number", "a number"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?", "a date for some YAML readers", ""),
        (r"<<", "a merge key", ""),
    )
)
"""What YAML 1.1 and YAML 1.2 readers take differently, and what to write where it is meant.

Source: https://yaml.org/type/ (1.1) and https://yaml.org/spec/1.2.2/#103-core-schema (1.2).
"""


class Ambiguous(ValueError):
    """An unquoted word that not every reader takes the same way.

    Attributes:
        what: What it is to some.
        repair: What to write instead.
    """

    def __init__(self, text: str, what: str, instead: str) -> None:
        super().__init__(text)
        self.what = what
        self.repair = f"write {instead}, or " * bool(instead) + f'quote it: "{shown(text)}"'


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted word.

    Examples: ``8`` is 8, ``0.10`` is 0.1, ``v1`` is text, ``no`` is refused.

    Raises:
        Ambiguous: Readers differ on it.
    """
    if text == "null":
        return None
    if text in ("true", "false"):
        return text == "true"
    if number := _NUMBER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise Ambiguous(text, "a number that is too long to be exact", "fewer digits")
        return float(text) if number[2] else int(text)
    for pattern, what, instead in _AMBIGUOUS:
        if pattern.fullmatch(text):
            raise Ambiguous(text, what, instead)
    return text
