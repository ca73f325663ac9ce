"""What files of the other kinds must be beside well-typed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sparkrecipes.catalog.wording import Fault
from sparkrecipes.catalog_files import DOES_NOT_RUN
from sparkrecipes.errors import nearest
from sparkrecipes.schema.engine import EngineFile
from sparkrecipes.schema.evidence import DoesNotRunFile, EvidenceFile
from sparkrecipes.schema.findings import DiagnosisFile
from sparkrecipes.schema.lock import LockFile
from sparkrecipes.schema.machine import MachineFile
from sparkrecipes.schema.model import ModelFile
from sparkrecipes.schema.use_case import UseCaseFile
from sparkrecipes.strict_yaml import PathInTree

Ids = Callable[[str], tuple[str, ...]]
"""The ids of one kind, by its folder."""


def _unknown(path: PathInTree, word: str, wanted: str, known: Iterable[str]) -> Iterator[Fault]:
    known = tuple(known)
    if wanted not in known:
        near = nearest(wanted, known)
        repair = f"did you mean {' or '.join(near)}?" if near else f"add the {word}, or remove it"
        yield Fault(path, f"unknown_{word}", f"no {word} has the id {wanted}", repair)


def _repeated(path: PathInTree, key: str | None, values: Iterable[str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, value in enumerate(values):
        if value in seen:
            where = (*path, at) if key is None else (*path, at, key)
            yield Fault(where, "duplicate_id", f"{value} is there twice", "keep one of them")
        seen.add(value)


def _repeated_ids(file: EvidenceFile) -> Iterator[Fault]:
    """Find ids that are there twice in lists that a recipe may point at."""
    seen: set[str] = set()
    for key in ("rows", "single_stream", "ladders", "acceptance_by_position"):
        for at, one in enumerate(getattr(file, key)):
            if one.id in seen:
                message = f"{one.id} is there twice"
                yield Fault((key, at, "id"), "duplicate_id", message, "keep one of them")
            seen.add(one.id)


def _evidence(file: EvidenceFile, ids: Ids) -> Iterator[Fault]:
    yield from _repeated_ids(file)
    yield from _repeated(("quantities",), "id", (one.id for one in file.quantities))
    for key in ("single_stream", "ladders", "acceptance_by_position"):
        for at, configured in enumerate(getattr(file, key)):
            if configured.model is not None:
                where = (key, at, "model")
                yield from _unknown(where, "model", configured.model, ids("models"))
    for at, row in enumerate(file.rows):
        try:
            datetime.date.fromisoformat(row.date)
        except ValueError:
            message = f"{row.date} is no day"
            yield Fault(("rows", at, "date"), "wrong_value", message, 'write "YYYY-MM-DD"')
    for at, found in enumerate(file.by_workload):
        yield from _unknown(("by_workload", at, "recipe"), "recipe", found.recipe, ids("recipes"))


def _model(file: ModelFile, _ids: Ids) -> Iterator[Fault]:
    yield from _repeated(("builds",), "repo", (f"{b.repo} {b.quant}" for b in file.builds))
    for key in file.sources:
        if key not in ModelFile.model_fields:
            near = nearest(key, ModelFile.model_fields)
            repair = f"did you mean {' or '.join(near)}?" if near else "name a key of this file"
            message = f"sources names {key}, which is no key of a model"
            yield Fault(("sources", key), "unknown_key", message, repair, "hint")


def _engine(file: EngineFile, _ids: Ids) -> Iterator[Fault]:
    if file.arguments == "env" and file.arguments_env is None:
        message = "arguments: env needs the name of the variable"
        yield Fault(("arguments",), "missing_key", message, "add arguments_env")
    for at, milestone in enumerate(file.milestones):
        try:
            re.compile(milestone.pattern)
        except re.error as error:
            path = ("milestones", at, "pattern")
            message = f"not a regular expression: {error}"
            yield Fault(path, "wrong_value", message, "escape what is meant literally")
    for version, fraction in file.default_gpu_memory_utilization.items():
        if not 0 < fraction <= 1:
            where = ("default_gpu_memory_utilization", version)
            yield Fault(where, "out_of_range", f"{fraction} is no fraction", "write 0.01 to 1")


def _use_case(file: UseCaseFile, ids: Ids) -> Iterator[Fault]:
    for language, words in file.synonyms.items():
        yield from _repeated(("synonyms", language), None, (word.casefold() for word in words))
    spoken = {word.casefold() for words in file.synonyms.values() for word in words}
    for ability, words in file.means.items():
        for at, word in enumerate(words):
            if word.casefold() not in spoken:
                message = f"{word} is no synonym of this use, so nobody's question is read by it"
                repair = "add it to synonyms, or remove it"
                yield Fault(("means", ability, at), "unknown_synonym", message, repair)
    if pick := file.published_pick:
        for at, wanted in enumerate((pick.recipe, *pick.also)):
            where = ("recipe",) if at == 0 else ("also", at - 1)
            yield from _unknown(("published_pick", *where), "recipe", wanted, ids("recipes"))


def _does_not_run(file: DoesNotRunFile, ids: Ids) -> Iterator[Fault]:
    for at, entry in enumerate(file.entries):
        if entry.model is not None:
            yield from _unknown(("entries", at, "model"), "model", entry.model, ids("models"))


def _machine(file: MachineFile, _ids: Ids) -> Iterator[Fault]:
    if file.host_reserve_bytes >= file.mem_total_bytes:
        message = "the host's reserve is all of the memory"
        yield Fault(("host_reserve_bytes",), "out_of_range", message, "write what the host keeps")


def _diagnosis(file: DiagnosisFile, _ids: Ids) -> Iterator[Fault]:
    lines = file.example.splitlines()
    if not any(re.search(pattern, line) for pattern in file.patterns for line in lines):
        message = "the example is not found by the file's own patterns"
        yield Fault(("example",), "example_not_found", message, "quote a log line that they match")


def _lock(file: LockFile, _ids: Ids) -> Iterator[Fault]:
    try:
        datetime.date.fromisoformat(file.resolved_on)
    except ValueError:
        message = f"{file.resolved_on} is no day"
        yield Fault(("resolved_on",), "wrong_value", message, 'write "YYYY-MM-DD"')


FILE_RULES: dict[str, Callable[[Any, Ids], Iterator[Fault]]] = {
    "evidence": _evidence,
    "models": _model,
    "engines": _engine,
    "use_cases": _use_case,
    "machines": _machine,
    "diagnoses": _diagnosis,
    "locks": _lock,
    DOES_NOT_RUN: _does_not_run,
}
"""The rule of each kind, by its folder; recipes have their own module."""
