"""A parsed document with the place of each part, and the error that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml.fix import PathInTree


class StrictYamlError(CatalogError):
    """The text is not strict YAML.

    Attributes:
        problems: What is wrong, each with file, line and column; never empty.
    """

    default_code = "invalid_yaml"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        place = f"{first.file}:{first.line}:{first.column}"
        super().__init__(f"{place}: {first.message}{more}", repair=first.repair)
        self.problems = problems


@dataclass(frozen=True)
class Document:
    """A parsed text, and where each part of it stands.

    Attributes:
        name: What problems call the text: a path, or ``<text>``.
        tree: dict, list, str, int, float, bool or None; all keys are str.
        marks: Line and column of every key and item, both from 1, by path.
        written: What a number, boolean or null looks like in the text, by path.
    """

    name: str
    tree: Any
    marks: dict[PathInTree, tuple[int, int]]
    written: dict[PathInTree, str]

    def at(self, path: PathInTree) -> Any:
        """Return what stands at a path; None where there is nothing."""
        part = self.tree
        for step in path:
            inside = isinstance(part, dict | list) and (
                step in part if isinstance(part, dict) else 0 <= int(step) < len(part)
            )
            if not inside:
                return None
            part = part[step]
        return part

    def mark(self, path: PathInTree) -> tuple[int, int]:
        """Return line and column of a key or item, or of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            if place := self.marks.get(path[:length]):
                return place
        return (1, 1)


def error_at(name: str, place: tuple[int, int], code: str, message: str, repair: str) -> Problem:
    """Return a problem of level error at a line and column, both from 1."""
    line, column = place
    return Problem(
        file=name,
        line=line,
        column=column,
        level="error",
        message=message,
        repair=repair,
        code=code,
    )


def refusal(
    name: str, code: str, message: str, repair: str, place: tuple[int, int] = (1, 1)
) -> StrictYamlError:
    """Return the error of a text that is refused for one reason."""
    return StrictYamlError((error_at(name, place, code, message, repair),))


def shown(text: str) -> str:
    """Return a text as a message may hold it: on one line, and not long."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
