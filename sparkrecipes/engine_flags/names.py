"""What each released version of an engine knows by name, beside its options."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkrecipes.catalog_files import data_root


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of one version.

    Attributes:
        tool_parsers: Values of ``--tool-call-parser``.
        reasoning_parsers: Values of ``--reasoning-parser``.
        quantization: Values of ``--quantization``.
        env: Environment variables that begin like the engine's own.
        json_keys: By option: the keys that it takes, nested ones with dots.
        values: By option that takes a number: how it may be written.
    """

    tool_parsers: frozenset[str]
    reasoning_parsers: frozenset[str]
    quantization: frozenset[str]
    env: frozenset[str]
    json_keys: Mapping[str, frozenset[str]]
    values: Mapping[str, frozenset[str]]


@dataclass(frozen=True, kw_only=True)
class NameTable:
    """What is recorded of all versions.

    Attributes:
        engine_id: Whose names they are.
        versions: The recorded versions, oldest first.
        data: The recorded file: by group and name, runs of first and last version.
    """

    engine_id: str
    versions: tuple[str, ...]
    data: dict[str, Any]

    def of(self, version: str | None) -> Names | None:
        """Return the names of a version; None where it is not recorded."""
        if version not in self.versions:
            return None
        at = self.versions.index(version)
        return Names(
            tool_parsers=self._have("tool_parsers", at),
            reasoning_parsers=self._have("reasoning_parsers", at),
            quantization=self._have("quantization", at),
            env=self._have("env", at),
            json_keys=self._by_option("json_keys", at),
            values=self._by_option("values", at),
        )

    def last_with(self, group: str, name: str) -> str | None:
        """Return the newest version that has a name; None where no recorded one has."""
        runs = self.data[group].get(name)
        return runs[-1][1] if runs else None

    def first_with(self, group: str, name: str) -> str | None:
        """Return the oldest version that has a name; None where no recorded one has."""
        runs = self.data[group].get(name)
        return runs[0][0] if runs else None

    def _by_option(self, group: str, at: int) -> dict[str, frozenset[str]]:
        return {option: self._those(names, at) for option, names in self.data[group].items()}

    def _have(self, group: str, at: int) -> frozenset[str]:
        return self._those(self.data[group], at)

    def _those(self, entries: dict[str, list[list[str]]], at: int) -> frozenset[str]:
        order = self.versions.index
        return frozenset(
            name
            for name, runs in entries.items()
            if any(order(first) <= at <= order(last) for first, last in runs)
        )


@functools.cache
def name_table(engine_id: str) -> NameTable | None:
    """Return what is recorded of an engine's names; None where nothing is."""
    path = data_root() / "catalog" / "engines" / "names" / f"{engine_id}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return NameTable(engine_id=engine_id, versions=tuple(data["versions"]), data=data)


@functools.cache
def names_of(engine_id: str, version: str | None) -> Names | None:
    """Return what a version of an engine knows by name; None where that is not recorded."""
    table = name_table(engine_id)
    return table.of(version) if table else None
