"""What a rule finds, and what every rule is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparkrecipes.engine_flags.given import GivenFlag
from sparkrecipes.engine_flags.names import Names
from sparkrecipes.engine_flags.options import Option, OptionTable
from sparkrecipes.engine_flags.renamed import Renamed
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.strict_yaml import Fix, PathInTree


@dataclass(frozen=True, kw_only=True)
class FlagProblem:
    """Something wrong with one flag or variable, or with all of them.

    Attributes:
        code: A stable word for programs, e.g. ``unknown_flag``.
        level: An error must be mended; a hint may be.
        message: What is wrong.
        repair: What to write instead.
        path: Where in the recipe, e.g. ``("flags", 2)``.
        fix: The change, where it leaves no doubt.
    """

    code: str
    level: Literal["error", "hint"]
    message: str
    repair: str
    path: PathInTree
    fix: Fix | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The flags of a recipe with what is known of the engine."""

    recipe: Recipe
    engine: Engine
    given: list[GivenFlag]
    stray: list[int]
    table: OptionTable | None
    options: Mapping[str, Option] | None
    """Options of the recipe's engine version; None where they are not recorded."""
    names: Names | None
    """What that version knows by name; None likewise."""
    renamed: Mapping[str, Renamed]
    """Options that gave way to others, by their old names."""
    ever: Mapping[str, Option] = field(default_factory=dict)
    """Options of any recorded version."""

    def first_name(self, flag: str) -> str:
        """Return one name for all names of an option, ``--no-`` forms included."""
        option = (self.options or {}).get(flag) or self.ever.get(flag)
        return option.names[0] if option else re.sub(r"^--no-", "--", flag)

    def by_name(self) -> dict[str, GivenFlag]:
        """Return the flags by the first name of their option; of two the last, which wins."""
        return {self.first_name(flag.name): flag for flag in self.given}

    @property
    def release(self) -> str:
        """The engine and its version, as messages call it."""
        return f"{self.engine.id} {self.recipe.engine_version}"


Rule = Callable[[Asked], Iterator[FlagProblem]]


def error(
    where: GivenFlag | int, code: str, message: str, repair: str, fix: Fix | None = None
) -> FlagProblem:
    """Return a problem that must be mended, at a flag or at an item of the list."""
    index = where if isinstance(where, int) else where.index
    path = ("flags", index)
    return FlagProblem(code=code, level="error", message=message, repair=repair, path=path, fix=fix)


def hint(
    flag: GivenFlag, code: str, message: str, repair: str, fix: Fix | None = None
) -> FlagProblem:
    """Return a problem that may be mended."""
    path = ("flags", flag.index)
    return FlagProblem(code=code, level="hint", message=message, repair=repair, path=path, fix=fix)


def written_as(flag: GivenFlag, *items: str) -> Fix:
    """Return the fix that writes a flag and its values as other items; none: without it."""
    count = 1 if flag.joined else 1 + len(flag.values)
    return Fix(path=("flags", flag.index), kind="items", items=items, count=count)


def short(value: str) -> str:
    """Return a value as a message may hold it."""
    return value if len(value) <= 40 else f"{value[:37]}..."
