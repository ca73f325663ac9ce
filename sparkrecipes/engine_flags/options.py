"""The options that each released version of an engine knows."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Literal

from sparkrecipes.catalog_files import data_root
from sparkrecipes.schema.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of an engine, in the form that some versions have.

    Attributes:
        names: All its names; the first is the one to use.
        takes: Nothing, a value, or JSON that may be given key by key.
        choices: The values that it takes, from the code that all builds of a release share;
            None: any.
        repeats: Whether it may be given several times.
        first: First of the recorded versions that have it so.
        last: Last of them.
    """

    names: tuple[str, ...]
    takes: Literal["nothing", "value", "json"]
    choices: tuple[str, ...] | None
    repeats: bool
    first: int
    last: int


@dataclass(frozen=True)
class OptionTable:
    """What is recorded of an engine's options.

    Attributes:
        versions: The recorded versions, oldest first; options name their indexes.
        options: Every option.
    """

    versions: tuple[str, ...]
    options: tuple[Option, ...]

    def of(self, version: str | None) -> dict[str, Option] | None:
        """Return the options of a version by name; None where it is not recorded."""
        if version not in self.versions:
            return None
        at = self.versions.index(version)
        return {n: o for o in self.options if o.first <= at <= o.last for n in o.names}

    def ever(self) -> dict[str, Option]:
        """Return every option of any version by name, the newest form of each."""
        return {name: option for option in self.options for name in option.names}


@functools.cache
def option_table(engine_id: str) -> OptionTable | None:
    """Return what is recorded of an engine's options; None where nothing is."""
    path = data_root() / "catalog" / "engines" / "flags" / f"{engine_id}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    versions = tuple(data["versions"])
    options = tuple(
        Option(
            names=tuple(entry["names"]),
            takes=entry["takes"],
            choices=tuple(entry["choices"]) if "choices" in entry else None,
            repeats=entry.get("repeats", False),
            first=versions.index(entry["from"]),
            last=versions.index(entry["to"]),
        )
        for entry in data["options"]
    )
    return OptionTable(versions, options)


def known_versions(engine_id: str) -> tuple[str, ...]:
    """Return the versions of an engine whose options are recorded, oldest first."""
    table = option_table(engine_id)
    return table.versions if table else ()


def checked_version(recipe: Recipe) -> str | None:
    """Return the release whose options a recipe is checked against; None: it is not checked.

    An image that is built from a release and patches may know other options than the release.
    """
    return None if recipe.image.local_build else recipe.engine_version
