"""What is wrong with a recipe's flags: one small rule each, in the order of ``RULES``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparkrecipes.engine_flags.given import GivenFlag, given_flags
from sparkrecipes.engine_flags.json_values import json_fault
from sparkrecipes.engine_flags.options import Option, OptionTable, option_table
from sparkrecipes.errors import nearest
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class FlagProblem:
    """Something wrong with one flag, or with all of them.

    Attributes:
        code: A stable word for programs, e.g. ``unknown_flag``.
        level: An error must be mended; a hint may be.
        message: What is wrong.
        repair: What to write instead.
        index: Which item of ``flags``, from 0; None: it is about the engine's version.
    """

    code: str
    level: Literal["error", "hint"]
    message: str
    repair: str
    index: int | None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The flags of a recipe with what is known of the engine."""

    recipe: Recipe
    engine: Engine
    given: list[GivenFlag]
    stray: list[int]
    table: OptionTable | None
    options: Mapping[str, Option] | None
    """Options of the recipe's engine version; None where they are not recorded."""
    ever: Mapping[str, Option] = field(default_factory=dict)
    """Options of any recorded version."""

    def first_name(self, flag: str) -> str:
        """Return one name for all names of an option, ``--no-`` forms included."""
        option = (self.options or {}).get(flag) or self.ever.get(flag)
        return option.names[0] if option else re.sub(r"^--no-", "--", flag)


Rule = Callable[[_Asked], Iterator[FlagProblem]]

_PLACEHOLDER = re.compile(r"<([a-z_]+)>")
_SHELL = re.compile(r"\$\{?[A-Za-z_(]|`")
_SECRET_FLAGS = ("--api-key", "--hf-token")
_SECRET_VALUE = re.compile(r"\b(hf_|nvapi-|sk-|ghp_)[A-Za-z0-9_-]{8,}")
"""Beginnings of tokens of Hugging Face, NVIDIA, OpenAI and GitHub."""

_OWN_CODE = {
    "--trust-remote-code": "it runs Python code from the model's repository",
    "--tool-parser-plugin": "it runs a Python file",
    "--reasoning-parser-plugin": "it runs a Python file",
    "--middleware": "it imports Python code by name",
    "--logits-processors": "it imports Python code by name",
    "--worker-cls": "it imports Python code by name",
    "--worker-extension-cls": "it imports Python code by name",
    "--model-class-overrides": "it imports Python code by name",
    "--io-processor-plugin": "it imports Python code by name",
    "--scheduler-cls": "it imports Python code by name",
}
"""Flags that let code from outside the image run inside the container."""

_ONE_GPU = (
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--decode-context-parallel-size",
    "--prefill-context-parallel-size",
    "--nnodes",
)
"""Sizes of a cluster; a Spark has one GPU, so each is 1."""


def flag_problems(recipe: Recipe, engine: Engine) -> tuple[FlagProblem, ...]:
    """Return what is wrong with a recipe's flags, without asking an engine.

    Args:
        recipe: Its ``flags`` and the fields that become flags too.
        engine: The engine of the recipe; where its options are recorded for the recipe's
            version, unknown flags are found.

    Returns:
        Errors and hints, by their place in the list.
    """
    given, stray = given_flags(recipe.flags)
    table = option_table(engine.id)
    asked = _Asked(
        recipe=recipe,
        engine=engine,
        given=given,
        stray=stray,
        table=table,
        options=table.of(recipe.engine_version) if table else None,
        ever=table.ever() if table else {},
    )
    found = [problem for rule in RULES for problem in rule(asked)]
    return tuple(sorted(found, key=lambda problem: -1 if problem.index is None else problem.index))


def holds_secret(text: str) -> bool:
    """Tell whether a text holds what looks like an access token."""
    return _SECRET_VALUE.search(text) is not None


def _error(flag: GivenFlag | int, code: str, message: str, repair: str) -> FlagProblem:
    index = flag if isinstance(flag, int) else flag.index
    return FlagProblem(code=code, level="error", message=message, repair=repair, index=index)


def _hint(flag: GivenFlag, code: str, message: str, repair: str) -> FlagProblem:
    return FlagProblem(code=code, level="hint", message=message, repair=repair, index=flag.index)


def _strays(asked: _Asked) -> Iterator[FlagProblem]:
    for index in asked.stray:
        message = "this item is neither a flag nor the value of one"
        yield _error(index, "stray_argument", message, "start it with --, or delete it")
    for flag in asked.given:
        if flag.joined:
            message = f"{flag.written} and its value stand in one item; no shell splits them"
            repair = f"write {flag.written}=VALUE, or two items"
            yield _error(flag, "joined_flag", message, repair)


def _placeholders(asked: _Asked) -> Iterator[FlagProblem]:
    folders = {"weights": asked.recipe.weights, "drafter": asked.recipe.drafter}
    for index, item in enumerate(asked.recipe.flags):
        for name in _PLACEHOLDER.findall(item):
            if name not in folders:
                message = f"<{name}> stands for nothing"
                repair = "use <weights> or <drafter>, or write the value"
                yield _error(index, "unknown_placeholder", message, repair)
            elif folders[name] is None:
                message = f"<{name}> is the folder of {name}, which the recipe does not name"
                yield _error(index, "unknown_placeholder", message, f"fill in {name}:")
    for flag in asked.given:
        if _SHELL.search(flag.value or "") and flag.name != "--chat-template":
            message = f"{flag.written}: no shell reads the flags, so $ and ` are taken as they are"
            yield _hint(flag, "shell_syntax", message, "write the value itself")


def _secrets(asked: _Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        values = (flag.inline or "", *flag.values)
        named = flag.name in _SECRET_FLAGS and any(values)
        if named or any(holds_secret(value) for value in values):
            message = f"{flag.written} holds a secret"
            repair = "remove it and renew it; pass secrets by the environment, by name only"
            yield _error(flag, "secret", message, repair)


def _owned_names(engine: Engine) -> dict[str, str]:
    """Return the flags that are made from fields, and those fields."""
    serving = ("context_tokens", "users", "kv_cache_dtype", "gpu_memory_utilization")
    names = {field: name for field, name in engine.flags.model_dump().items() if name}
    owned = {names[field]: f"serving.{field}" if field in serving else field for field in names}
    listen, _ = given_flags(engine.listen_flags)
    owned |= {flag.name: "the command, which sets where it listens" for flag in listen}
    if engine.model_argument:
        owned[engine.model_flag or "--model"] = "weights"
    speculative = ("--spec-method", "--spec-model", "--spec-tokens")
    return owned | dict.fromkeys(speculative, "speculative")


def _owned(asked: _Asked) -> Iterator[FlagProblem]:
    owned = {asked.first_name(n): field for n, field in _owned_names(asked.engine).items()}
    for flag in asked.given:
        if where := owned.get(asked.first_name(flag.name)):
            message = f"{flag.written} is already set by {where}"
            repair = "remove the flag" if " " in where else f"remove the flag and set {where}"
            yield _error(flag, "field_flag", message, repair)


def _twice(asked: _Asked) -> Iterator[FlagProblem]:
    seen: dict[tuple[str, str], GivenFlag] = {}
    for flag in asked.given:
        option = asked.ever.get(flag.name)
        if (option and option.repeats) or flag.appends:
            continue
        name = asked.first_name(flag.name)
        clash = seen.get((name, flag.key)) or (seen.get((name, "")) if flag.key else None)
        if clash:
            message = f"{flag.written} is given twice (item {clash.index + 1} too)"
            if flag.value is not None:
                message += f"; the engine would take the last: {_short(flag.value)}"
            yield _error(flag, "duplicate_flag", message, "keep one of them")
        seen[name, flag.key] = flag


def _json(asked: _Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        option = (asked.options or asked.ever).get(flag.name)
        value = flag.value
        if value is None or flag.name == "--chat-template":
            continue
        wants_json = option is not None and option.takes == "json" and not flag.key
        if value.startswith(("{", "[")) or (wants_json and value not in ("", "None")):
            fault = json_fault(value)
            if fault:
                message = f"{flag.written}: the value is not valid JSON: {fault.message}"
                yield _error(flag, "bad_json", message, fault.repair)


def _known(asked: _Asked) -> Iterator[FlagProblem]:
    if asked.options is None:
        if asked.recipe.flags:
            yield _not_checked(asked)
        return
    name, version = asked.engine.id, asked.recipe.engine_version
    for flag in asked.given:
        option = asked.options.get(flag.name)
        if option is None:
            message = f"{name} {version} has no flag {flag.written}"
            yield _error(flag, "unknown_flag", message, _where_known(asked, flag))
        elif flag.key and option.takes != "json":
            message = f"{flag.name} has no keys: it does not take JSON"
            yield _error(flag, "flag_value", message, f"write {flag.name}=VALUE")
        elif option.takes == "nothing" and flag.value is not None:
            message = f"{flag.written} takes no value, but has {_short(flag.value)}"
            opposite = next((n for n in option.names if n.startswith("--no-")), "no flag")
            yield _error(flag, "flag_value", message, f"write {flag.name} alone, or {opposite}")
        elif option.takes != "nothing" and flag.value is None:
            message = f"{flag.written} needs a value"
            yield _error(flag, "flag_value", message, f"write {flag.written}=VALUE")
        elif option.choices and flag.value not in option.choices:
            message = f"{flag.written}: {_short(flag.value or '')} is no choice of the CPU build"
            near = nearest(flag.value or "", option.choices) or list(option.choices)
            yield _hint(flag, "flag_choice", message, f"known: {', '.join(near)}")


def _not_checked(asked: _Asked) -> FlagProblem:
    version = asked.recipe.engine_version
    which = f"{asked.engine.id} {version}" if version else f"this build of {asked.engine.id}"
    repair = ""
    if asked.table:
        known = ", ".join(asked.table.versions)
        repair = f"where the image holds one of {known}, name it as engine_version"
    return FlagProblem(
        code="flags_not_checked",
        level="hint",
        message=f"not checked: which flags {which} knows is not recorded",
        repair=repair,
        index=None,
    )


def _where_known(asked: _Asked, flag: GivenFlag) -> str:
    table, version = asked.table, asked.recipe.engine_version
    option = asked.ever.get(flag.name)
    if option and table and version:
        at = table.versions.index(version)
        if option.last < at:
            return f"remove it: {table.versions[option.last]} is the last that has it"
        return f"remove it, or use {table.versions[option.first]} or newer"
    near = nearest(flag.name, asked.options or ())
    return f"did you mean {' or '.join(near)}?" if near else "remove it"


def _one_gpu(asked: _Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        name = asked.first_name(flag.name)
        if (name in _ONE_GPU and flag.value not in ("1", None)) or (
            name == "--distributed-executor-backend" and flag.value == "ray"
        ):
            message = (
                f"{flag.written} {_short(flag.value or '')} needs more than one GPU or machine"
            )
            repair = "remove the flag; for two Sparks and more see sparkrun"
            yield _error(flag, "unsupported_topology", message, repair)


def _own_code(asked: _Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        if why := _OWN_CODE.get(flag.name):
            repair = "leave it out where the engine knows the model itself; else pin the revision"
            yield _hint(flag, "foreign_code", f"{flag.written}: {why}", repair)


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."


RULES: tuple[Rule, ...] = (
    _strays,
    _placeholders,
    _secrets,
    _owned,
    _twice,
    _json,
    _known,
    _one_gpu,
    _own_code,
)
"""Every rule; a new one is a function here and a test."""
