"""What is wrong with flags whatever the engine's version: how they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkrecipes.engine_flags.given import GivenFlag, given_flags
from sparkrecipes.engine_flags.json_values import json_fault
from sparkrecipes.engine_flags.problem import (
    Asked,
    FlagProblem,
    Rule,
    error,
    hint,
    short,
    written_as,
)
from sparkrecipes.schema.engine import Engine

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


def holds_secret(text: str) -> bool:
    """Tell whether a text holds what looks like an access token."""
    return _SECRET_VALUE.search(text) is not None


def _strays(asked: Asked) -> Iterator[FlagProblem]:
    for index in asked.stray:
        message = "this item is neither a flag nor the value of one"
        yield error(index, "stray_argument", message, "start it with --, or delete it")
    for flag in asked.given:
        if flag.joined:
            message = f"{flag.written} and its value stand in one item; no shell splits them"
            repair = f"write {flag.written}=VALUE, or two items"
            one_item = f"{flag.written}={flag.value}"
            certain = flag.written.startswith("--") and len(flag.values) == 1
            fix = written_as(flag, one_item) if certain else None
            yield error(flag, "joined_flag", message, repair, fix)


def _placeholders(asked: Asked) -> Iterator[FlagProblem]:
    folders = {"weights": asked.recipe.weights, "drafter": asked.recipe.drafter}
    for index, item in enumerate(asked.recipe.flags):
        for name in _PLACEHOLDER.findall(item):
            if name not in folders:
                message = f"<{name}> stands for nothing"
                repair = "use <weights> or <drafter>, or write the value"
                yield error(index, "unknown_placeholder", message, repair)
            elif folders[name] is None:
                message = f"<{name}> is the folder of {name}, which the recipe does not name"
                yield error(index, "unknown_placeholder", message, f"fill in {name}:")
    for flag in asked.given:
        if _SHELL.search(flag.value or "") and flag.name != "--chat-template":
            message = f"{flag.written}: no shell reads the flags, so $ and ` are taken as they are"
            yield hint(flag, "shell_syntax", message, "write the value itself")


def _secrets(asked: Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        values = (flag.inline or "", *flag.values)
        named = flag.name in _SECRET_FLAGS and any(values)
        if named or any(holds_secret(value) for value in values):
            message = f"{flag.written} holds a secret"
            repair = "remove it and renew it; pass secrets by the environment, by name only"
            yield error(flag, "secret", message, repair)


def _owned_names(engine: Engine) -> dict[str, str]:
    """Return the flags that are made from fields, and those fields."""
    serving = ("context_tokens", "users", "kv_cache_dtype", "gpu_memory_utilization")
    names = {field: flag for field, flag in engine.flags.model_dump().items() if flag}
    owned = {names[field]: f"serving.{field}" if field in serving else field for field in names}
    listen, _ = given_flags(engine.listen_flags)
    owned |= {flag.name: "the command, which sets where it listens" for flag in listen}
    if engine.model_argument:
        owned[engine.model_flag or "--model"] = "weights"
    speculative = ("--spec-method", "--spec-model", "--spec-tokens")
    return owned | dict.fromkeys(speculative, "speculative")


def _owned(asked: Asked) -> Iterator[FlagProblem]:
    owned = {asked.first_name(n): field for n, field in _owned_names(asked.engine).items()}
    for flag in asked.given:
        if where := owned.get(asked.first_name(flag.name)):
            message = f"{flag.written} is already set by {where}"
            repair = "remove the flag" if " " in where else f"remove the flag and set {where}"
            yield error(flag, "field_flag", message, repair)


def _twice(asked: Asked) -> Iterator[FlagProblem]:
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
                message += f"; the engine would take the last: {short(flag.value)}"
            fix = written_as(flag) if _same(flag, clash) else None
            yield error(flag, "duplicate_flag", message, "keep one of them", fix)
        seen[name, flag.key] = flag


def _same(flag: GivenFlag, other: GivenFlag) -> bool:
    """Tell whether two flags say the same, in whatever form."""
    values = [(*((f.inline,) if f.inline is not None else ()), *f.values) for f in (flag, other)]
    return (flag.name, flag.key, values[0]) == (other.name, other.key, values[1])


def _json(asked: Asked) -> Iterator[FlagProblem]:
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
                yield error(flag, "bad_json", message, fault.repair)


def _one_gpu(asked: Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        name = asked.first_name(flag.name)
        if (name in _ONE_GPU and flag.value not in ("1", None)) or (
            name == "--distributed-executor-backend" and flag.value == "ray"
        ):
            message = f"{flag.written} {short(flag.value or '')} needs more than one GPU or machine"
            repair = "remove the flag; for two Sparks and more see sparkrun"
            yield error(flag, "unsupported_topology", message, repair)


def _own_code(asked: Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        if why := _OWN_CODE.get(flag.name):
            repair = "leave it out where the engine knows the model itself; else pin the revision"
            yield hint(flag, "foreign_code", f"{flag.written}: {why}", repair)


WRITING_RULES: tuple[Rule, ...] = (
    _strays,
    _placeholders,
    _secrets,
    _owned,
    _twice,
    _json,
    _one_gpu,
    _own_code,
)
