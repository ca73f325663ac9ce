"""What is wrong with flags by what the engine's version knows: options, choices, names, keys.

A version that is not recorded is not checked, nor is a build that differs from its release: both
get a hint that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sparkrecipes.engine_flags.given import GivenFlag
from sparkrecipes.engine_flags.json_values import json_fault, plain_json
from sparkrecipes.engine_flags.names import NameTable, name_table
from sparkrecipes.engine_flags.options import Option
from sparkrecipes.engine_flags.problem import (
    Asked,
    FlagProblem,
    Rule,
    error,
    hint,
    short,
    written_as,
)
from sparkrecipes.engine_flags.renamed import Renamed
from sparkrecipes.errors import nearest
from sparkrecipes.schema.recipe import Speculative

_NAMED = {
    "--tool-call-parser": ("tool_parsers", "tool parser", "--tool-parser-plugin"),
    "--reasoning-parser": ("reasoning_parsers", "reasoning parser", "--reasoning-parser-plugin"),
    "--quantization": ("quantization", "quantisation method", ""),
}
"""Options whose values are names: the group, what it is, and the option that adds to it."""

_ANY_SPELLING = ("--moe-backend", "--linear-backend", "--sparse-indexer-topk-backend")
"""Options whose values may be written in capitals and with dashes.

Source: vllm/engine/arg_utils.py of 0.25.1 to 0.32.0.
"""


def _not_checked(asked: Asked) -> Iterator[FlagProblem]:
    if asked.options is not None or not asked.recipe.flags:
        return
    version, engine = asked.recipe.engine_version, asked.engine.id
    which = f"{engine} {version}" if version else f"this build of {engine}"
    if asked.recipe.image.local_build:
        which = f"{which}, built as the recipe says," if version else which
    repair = ""
    if asked.table and not asked.recipe.image.local_build:
        known = ", ".join(asked.table.versions)
        repair = f"where the image holds one of {known}, name it as engine_version"
    yield FlagProblem(
        code="flags_not_checked",
        level="hint",
        message=f"not checked: which flags {which} knows is not recorded",
        repair=repair,
        path=("engine_version",),
    )


def _known(asked: Asked) -> Iterator[FlagProblem]:
    for flag in asked.given if asked.options is not None else ():
        option = (asked.options or {}).get(flag.name)
        former = asked.renamed.get(flag.name)
        if option is None:
            yield _renamed(asked, flag, former) if former else _unknown(asked, flag)
            continue
        if former and _is_former(asked, former):
            yield _deprecated(asked, flag, former)
        yield from _form(flag, option)


def _form(flag: GivenFlag, option: Option) -> Iterator[FlagProblem]:
    """Find a value where none belongs, none where one does, or one that is no choice."""
    if flag.key and option.takes != "json":
        message = f"{flag.name} has no keys: it does not take JSON"
        yield error(flag, "flag_value", message, f"write {flag.name}=VALUE")
    elif option.takes == "nothing" and flag.value is not None:
        message = f"{flag.written} takes no value, but has {short(flag.value)}"
        opposite = next((n for n in option.names if n.startswith("--no-")), "no flag")
        yield error(flag, "flag_value", message, f"write {flag.name} alone, or {opposite}")
    elif option.takes != "nothing" and flag.value is None:
        message = f"{flag.written} needs a value"
        yield error(flag, "flag_value", message, f"write {flag.written}=VALUE")
    elif option.choices and flag.value not in option.choices:
        yield _wrong_choice(flag, option.choices)


def _wrong_choice(flag: GivenFlag, choices: tuple[str, ...]) -> FlagProblem:
    value = flag.value or ""
    spelt = value.lower().replace("-", "_")
    if flag.name in _ANY_SPELLING and spelt in choices:
        message = f"{flag.written}: {short(value)} is read as {spelt}"
        put_right = written_as(flag, f"{flag.written}={spelt}")
        return hint(flag, "choice_spelling", message, f"write {spelt}", put_right)
    message = f"{flag.written}: {short(value)} is no choice"
    near = nearest(value, choices)
    repair = f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(choices)}"
    certain = [choice for choice in choices if choice.casefold() == value.casefold()]
    fix = written_as(flag, f"{flag.written}={certain[0]}") if len(certain) == 1 else None
    return error(flag, "flag_choice", message, repair, fix)


def _unknown(asked: Asked, flag: GivenFlag) -> FlagProblem:
    message = f"{asked.release} has no flag {flag.written}"
    option, table = asked.ever.get(flag.name), asked.table
    if option and table:
        at = table.versions.index(str(asked.recipe.engine_version))
        if option.last < at:
            repair = f"remove it: {table.versions[option.last]} is the last that has it"
            return error(flag, "removed_flag", message, repair)
        repair = f"remove it, or use {table.versions[option.first]} or newer"
        return error(flag, "unknown_flag", message, repair)
    longer = [name for name in asked.options or () if name.startswith(flag.name)]
    if flag.name.startswith("--") and len(longer) == 1:
        return _abbreviated(flag, longer[0])
    near = nearest(flag.name, asked.options or ())
    repair = f"did you mean {' or '.join(near)}?" if near else "remove it"
    return error(flag, "unknown_flag", message, repair)


def _abbreviated(flag: GivenFlag, name: str) -> FlagProblem:
    """Say what a beginning stands for: the next release may have two options that begin so."""
    message = f"{flag.written} is short for {name}, as long as no other option begins so"
    key = f".{flag.key}{'+' * flag.appends}" if flag.key else ""
    value = f"={flag.inline}" if flag.inline is not None else ""
    fix = written_as(flag, f"{name}{key}{value}", *flag.values)
    return error(flag, "abbreviated_flag", message, f"write {name}", fix)


def _renamed(asked: Asked, flag: GivenFlag, former: Renamed) -> FlagProblem:
    message = f"{asked.release} has no flag {flag.written} any more"
    return error(flag, "renamed_flag", message, *_replacement(asked, flag, former))


def _deprecated(asked: Asked, flag: GivenFlag, former: Renamed) -> FlagProblem:
    message = f"{flag.written} is deprecated in {asked.release}"
    return hint(flag, "deprecated_flag", message, *_replacement(asked, flag, former))


def _is_former(asked: Asked, former: Renamed) -> bool:
    """Tell whether the version knows the old name, but has what stands for it as well."""
    if former.since and asked.table:
        order = asked.table.versions.index
        return order(str(asked.recipe.engine_version)) >= order(former.since)
    return all(_takes(asked, item) for item in former.new or ("",))


def _takes(asked: Asked, item: str) -> bool:
    """Tell whether the version knows the option of an item, and its JSON key."""
    name, _, key = item.partition("=")[0].partition(".")
    keys = asked.names.json_keys.get(name, frozenset()) if asked.names else frozenset()
    return name in (asked.options or {}) and (not key or key in keys)


def _replacement(asked: Asked, flag: GivenFlag, former: Renamed) -> tuple[str, Any]:
    """Return the repair and, where it leaves no doubt, the fix."""
    if former.new is None:
        return former.instead, None
    if not former.new:
        return "remove it: it has no effect", written_as(flag)
    wants_value = any("VALUE" in item for item in former.new)
    if flag.key or (wants_value and (flag.value is None or len(flag.values) > 1)):
        return f"write {' '.join(former.new)}", None
    items = tuple(item.replace("VALUE", flag.value or "") for item in former.new)
    certain = all(_takes(asked, item) for item in items)
    return f"write {' '.join(items)}", written_as(flag, *items) if certain else None


_SHAPES = (
    ("whole", re.compile(r"\d[\d_]*")),
    ("negative", re.compile(r"-\d[\d_]*")),
    ("decimal", re.compile(r"-?(\d*\.\d+|\d+\.)([eE]-?\d+)?|-?\d+[eE]-?\d+")),
    ("suffixed", re.compile(r"\d+(\.\d+)?[kKmMgGtT]")),
    ("auto", re.compile(r"auto", re.IGNORECASE)),
    ("None", re.compile(r"None")),
)
"""Ways to write a number; what is none of them is a word."""


def _numbers(asked: Asked) -> Iterator[FlagProblem]:
    """Find values that an option of numbers does not read."""
    written = asked.names.values if asked.names else {}
    for flag in asked.given:
        option = (asked.options or {}).get(flag.name)
        shapes = next((written[n] for n in (option.names if option else ()) if n in written), None)
        value = (flag.value or "").strip()
        if not shapes or flag.value is None or flag.key:
            continue
        if not any(kind in shapes and shape.fullmatch(value) for kind, shape in _SHAPES):
            message = f"{flag.written}: {short(value)} is no {_what_number(shapes)}"
            digits = re.sub(r"[,.' ]", "", value)
            plain = digits if re.fullmatch(r"\d{1,3}([,.' ]\d{3})+", value) else "7"
            example = f"write {plain}" if plain != "7" else f"write {flag.written}=7 or the like"
            yield error(flag, "flag_value", message, example)


def _what_number(shapes: frozenset[str]) -> str:
    """Return what an option takes, as people say it."""
    kind = "number" if "decimal" in shapes else "whole number"
    also = [word for word in ("auto", "None") if word in shapes]
    return " or ".join([kind, *also])


def _names(asked: Asked) -> Iterator[FlagProblem]:
    """Find parsers and methods that the version does not have: it ends with an error then."""
    given = asked.by_name()
    table = name_table(asked.engine.id)
    for option, (group, what, plugin) in _NAMED.items():
        flag = given.get(option)
        if flag is None or flag.value is None or asked.names is None or table is None:
            continue
        known = getattr(asked.names, group)
        if flag.value not in known and plugin not in given:
            message = f"{asked.release} has no {what} {short(flag.value)}"
            code = f"unknown_{group.removesuffix('s')}"
            yield error(flag, code, message, _other_name(table, group, flag.value, known))


def _other_name(table: NameTable, group: str, name: str, known: frozenset[str]) -> str:
    if since := table.first_with(group, name):
        last = table.last_with(group, name)
        return f"of the recorded releases {since} to {last} have it; use one of those, or another"
    near = nearest(name, known)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"one of: {', '.join(sorted(known))}"


def _json_keys(asked: Asked) -> Iterator[FlagProblem]:
    """Find keys that an option of JSON does not take: its parser refuses them."""
    for flag in asked.given if asked.names else ():
        known = asked.names.json_keys.get(asked.first_name(flag.name)) if asked.names else None
        for key in _keys_of(flag) if known else ():
            if known and not _takes_key(key, known):
                message = f"{flag.name} of {asked.release} has no key {short(key)}"
                near = nearest(key, known)
                listed = ", ".join(sorted(k for k in known if "." not in k))
                repair = f"did you mean {' or '.join(near)}?" if near else f"known: {listed}"
                yield error(flag, "unknown_json_key", message, repair)


def _keys_of(flag: GivenFlag) -> Iterator[str]:
    """Yield the keys that a flag names, nested ones with dots."""
    # What is no JSON, or nested too deep, is said by another rule and not read here.
    readable = flag.value is not None and json_fault(flag.value) is None
    tree = json.loads(plain_json(flag.value)) if readable and flag.value else None
    if flag.key:
        yield flag.key
    yield from _walk(tree, f"{flag.key}." if flag.key else "")


def _walk(tree: Any, before: str) -> Iterator[str]:
    for key, inner in tree.items() if isinstance(tree, dict) else ():
        yield f"{before}{key}"
        yield from _walk(inner, f"{before}{key}.")


def _takes_key(key: str, known: frozenset[str]) -> bool:
    """Tell whether a key is known, or lies below one that takes whatever it is given."""
    steps = key.split(".")
    for length in range(1, len(steps) + 1):
        name = ".".join(steps[:length])
        if name not in known:
            return False
        if not any(other.startswith(f"{name}.") for other in known):
            return True
    return True


def _speculative(asked: Asked) -> Iterator[FlagProblem]:
    """Find fields of ``speculative`` that the version's option has no key for."""
    speculative = asked.recipe.speculative
    known = asked.names.json_keys.get("--speculative-config") if asked.names else None
    if speculative is None or known is None:
        return
    for name in Speculative.model_fields:
        if getattr(speculative, name) is not None and name not in known:
            yield FlagProblem(
                code="unknown_json_key",
                level="error",
                message=f"--speculative-config of {asked.release} has no key {name}",
                repair="remove it",
                path=("speculative", name),
            )


VERSION_RULES: tuple[Rule, ...] = (
    _not_checked,
    _known,
    _numbers,
    _names,
    _json_keys,
    _speculative,
)
