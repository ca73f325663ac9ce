"""What pydantic says of a file, in plain words, with the place and what to write instead."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from sparkrecipes.catalog.foreign import FOREIGN_KEYS
from sparkrecipes.errors import nearest
from sparkrecipes.schema.base import CommitSha, Digest, Id, RepoId
from sparkrecipes.schema.recipe import EnvName, ImageName, ShmSize
from sparkrecipes.strict_yaml import Document, Fix, PathInTree


class Fault(NamedTuple):
    """Something wrong at a path of a file.

    Attributes:
        path: Where, as keys and indexes.
        code: A stable word for programs.
        message: What is wrong.
        repair: What to write instead, or an empty string.
        level: ``error`` or ``hint``.
        fix: The change, where it leaves no doubt.
    """

    path: PathInTree
    code: str
    message: str
    repair: str = ""
    level: str = "error"
    fix: Fix | None = None


CERTAIN = 0.85
"""How alike two keys must be (0 to 1) to be one that was misspelt: a letter wrong in seven."""

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

_PLAIN = defaultdict(
    lambda: re.compile(r"(?!)"),
    {
        "a whole number": re.compile(r"0|[1-9][0-9]{0,17}"),
        "a number": re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,8})?"),
        "true or false": re.compile(r"true|false"),
    },
)
"""Quoted texts that mean the value that is wanted as soon as the quotes go."""

_ID_WORDS = "lower-case letters, digits and . _ -"
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")

_PATTERNS = {
    next(
        m.pattern for field in get_args(kind)[1:] for m in field.metadata if hasattr(m, "pattern")
    ): words
    for kind, words in (
        (Id, _ID_WORDS),
        (RepoId, "a repository, owner/name"),
        (CommitSha, "a full commit: 40 hexadecimal digits"),
        (Digest, "sha256: and 64 hexadecimal digits"),
        (ShmSize, "a size such as 16g"),
        (EnvName, "letters, digits and _"),
        (ImageName, "an image reference, [registry/]name:tag"),
    )
}
"""What each pattern of the types asks for."""


def faults(
    errors: Sequence[ErrorDetails], document: Document, file_type: type[BaseModel]
) -> list[Fault]:
    """Put pydantic's errors into words.

    Args:
        errors: ``ValidationError.errors()`` of the document's tree.
        document: What was validated.
        file_type: Against which type.

    Returns:
        One fault an error; those that only follow from another are left out.
    """
    found = []
    places = [error["loc"] for error in errors]
    for error in errors:
        loc = error["loc"]
        follows = any(len(place) > len(loc) and place[: len(loc)] == loc for place in places)
        if not (follows and error["type"] == "too_short"):
            found.append(_fault(error, document, file_type))
    return found


def _fault(error: ErrorDetails, document: Document, file_type: type[BaseModel]) -> Fault:
    path = path_in_tree(document.tree, error["loc"])
    kind = error["type"]
    if kind == "union_tag_not_found":
        path, kind = (*path, "kind"), "missing"
    if kind == "missing":
        return Fault(path, "missing_key", f"the key {dotted(path)} is missing", "add it")
    if kind == "extra_forbidden":
        known = fields_at(file_type, error["loc"][:-1])
        return _with_key(_unknown_key(path, known, file_type), known, document)
    if kind in _WANTED:
        return _wrong_type(error, path, document)
    for types, word in _WORDINGS:
        if kind in types:
            return word(error, path)
    message = str(error["msg"]).removeprefix("Value error, ")
    return Fault(path, "wrong_value", f"{dotted(path)}: {message}" if path else message)


def _with_key(fault: Fault, known: dict[str, Any], document: Document) -> Fault:
    """Add the fix of a misspelt key: one that is very near, alone so, and not there already."""
    if fault.code != "unknown_key" or not isinstance(fault.path[-1], str):
        return fault
    key, beside = fault.path[-1], document.at(fault.path[:-1])
    spelt = key.lower().replace("-", "_")
    near = [spelt] if spelt in known else nearest(key, known, cutoff=CERTAIN)
    if len(near) != 1 or not isinstance(beside, dict) or near[0] in beside:
        return fault
    return fault._replace(fix=Fix(path=fault.path, kind="key", text=near[0]))


def path_in_tree(tree: Any, loc: Sequence[str | int]) -> PathInTree:
    """Return where pydantic's location lies in the tree.

    Pydantic names the chosen member of a union and the keys of a mapping too; the tree does not.
    """
    path: list[str | int] = []
    for at, step in enumerate(loc):
        inside = _step(tree, step)
        if inside is not None or at == len(loc) - 1:
            if step == "[key]":
                break
            path.append(step)
            tree = inside[0] if inside else None
    return tuple(path)


def _step(tree: Any, step: str | int) -> tuple[Any] | None:
    if isinstance(tree, dict) and step in tree:
        return (tree[step],)
    if isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree):
        return (tree[step],)
    return None


def fields_at(file_type: type[BaseModel], loc: Sequence[str | int]) -> dict[str, Any]:
    """Return the fields of the type at pydantic's location, with their annotations."""
    types = [file_type]
    for step in loc:
        named = [t.model_fields[step].annotation for t in types if step in t.model_fields]
        if named:
            types = [t for annotation in named for t in _types_in(annotation)]
        elif isinstance(step, str):
            types = [t for t in types if step in _tags(t)] or types
    return {name: field.annotation for t in types for name, field in t.model_fields.items()}


def _types_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [t for argument in get_args(annotation) for t in _types_in(argument)]


def _tags(file_type: type[BaseModel]) -> tuple[Any, ...]:
    kind = file_type.model_fields.get("kind")
    return get_args(kind.annotation) if kind else ()


def _unknown_key(path: PathInTree, known: dict[str, Any], file_type: type[BaseModel]) -> Fault:
    key = str(path[-1])
    message = f"unknown key {dotted(path)}"
    if key == "id":
        return Fault(path, "id_key", "the file's name is the id", "remove the key id")
    if len(path) == 1 and file_type.__name__.startswith("Recipe") and key in FOREIGN_KEYS:
        code, repair = FOREIGN_KEYS[key]
        return Fault(path, code, message, repair)
    if near := nearest(key, known):
        return Fault(path, "unknown_key", message, f"did you mean {' or '.join(near)}?")
    for name, annotation in known.items():
        if any(key in inner.model_fields for inner in _types_in(annotation)):
            return Fault(path, "unknown_key", message, f"did you mean {name}: {{{key}: ...}}?")
    listed = ", ".join(sorted(known.keys() - {"id"}))
    return Fault(path, "unknown_key", message, f"known here: {listed}" if listed else "")


def _wrong_type(error: ErrorDetails, path: PathInTree, document: Document) -> Fault:
    wanted, value = _WANTED[error["type"]], error["input"]
    written = document.written.get(path)
    if written is None or value is None:
        message = f"{dotted(path)}: {wanted} is wanted, not {_what(value)}"
        fix = None
        if isinstance(value, str) and _PLAIN[wanted].fullmatch(value):
            fix = Fix(path=path, kind="plain", text=value)
        return Fault(path, "wrong_type", message, _wanted_repair(wanted, value, path), fix=fix)
    message = f"{dotted(path)}: {written} is read as {_what(value)}, but {wanted} is wanted"
    if wanted != "text":
        return Fault(path, "wrong_type", message, f"write {wanted}")
    if isinstance(value, float) and written != str(value):
        message += f" (it would become {value}: another text, another release)"
    fix = Fix(path=path, kind="text", text=written)
    return Fault(path, "wrong_type", message, f'write {_key(path)}"{written}"', fix=fix)


def _wanted_repair(wanted: str, value: Any, path: PathInTree) -> str:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9.]+|true|false", value):
        return f"remove the quotes: {_key(path)}{value}"
    if wanted == "a list":
        return "write each item on its own line after '- '"
    if wanted == "a mapping":
        return "write 'key: value' lines under it"
    return f"write {wanted}"


def _key(path: PathInTree) -> str:
    return f"{path[-1]}: " if path and isinstance(path[-1], str) else "- "


def _what(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "a mapping")


def _choice(error: ErrorDetails, path: PathInTree) -> Fault:
    context = error["ctx"]
    value = context.get("tag", error["input"])
    choices = re.findall(r"'([^']*)'", context.get("expected_tags", context.get("expected", "")))
    near = nearest(str(value).lower(), choices)
    repair = f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(choices)}"
    where = (*path, "kind") if "tag" in context else path
    same = [c for c in choices if c.casefold() == str(value).strip().casefold()]
    fix = Fix(path=where, kind="plain", text=same[0]) if len(same) == 1 else None
    message = f"{dotted(where)}: {_short(value)} is not known"
    return Fault(where, "wrong_value", message, repair, fix=fix)


def _pattern(error: ErrorDetails, path: PathInTree) -> Fault:
    wanted = _PATTERNS.get(error["ctx"]["pattern"], f"a text like {error['ctx']['pattern']}")
    if path == ("id",):
        message = f"the file name gives the id {_short(error['input'])}"
        return Fault((), "file_name", message, f"rename it: {wanted}")
    message = f"{dotted(path)}: {_short(error['input'])} is not {wanted}"
    lower = str(error["input"]).lower()
    if _PATTERNS.get(error["ctx"]["pattern"]) == _ID_WORDS and _ID.fullmatch(lower):
        fix = Fix(path=path, kind="plain", text=lower)
        return Fault(path, "wrong_value", message, f"did you mean {lower}?", fix=fix)
    return Fault(path, "wrong_value", message, f"write {wanted}")


def _range(error: ErrorDetails, path: PathInTree) -> Fault:
    [(rule, limit)] = [(k, v) for k, v in error["ctx"].items() if k in _LIMITS]
    limit = int(limit) if float(limit).is_integer() else limit
    message = f"{dotted(path)}: {error['input']} is out of range"
    return Fault(path, "out_of_range", message, f"write a number {_LIMITS[rule]} {limit}")


_LIMITS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}


def _length(error: ErrorDetails, path: PathInTree) -> Fault:
    context = error["ctx"]
    most = "max_length" in context
    limit = context["max_length" if most else "min_length"]
    if isinstance(error["input"], str):
        message = f"{dotted(path)}: the text is {'too long' if most else 'empty'}"
        return Fault(path, "wrong_length", message, f"at most {limit}" if most else "write it")
    message = f"{dotted(path)} has {len(error['input'])} items"
    return Fault(path, "wrong_length", message, f"{'at most' if most else 'at least'} {limit}")


_WORDINGS: tuple[tuple[tuple[str, ...], Callable[[ErrorDetails, PathInTree], Fault]], ...] = (
    (("literal_error", "union_tag_invalid"), _choice),
    (("string_pattern_mismatch",), _pattern),
    (("greater_than_equal", "greater_than", "less_than_equal", "less_than"), _range),
    (("string_too_short", "string_too_long", "too_short", "too_long"), _length),
)


def dotted(path: PathInTree) -> str:
    """Return a path as people read it, e.g. ``image.digest`` or ``flags[2]``."""
    words = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return _short("".join(words).removeprefix("."))


def _short(value: Any) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= 80 else f"{line[:77]}..."
