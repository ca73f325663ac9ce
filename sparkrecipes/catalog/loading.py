"""From a file to its type: strict YAML, then strict types, every problem with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from sparkrecipes.catalog.kinds import BY_FOLDER, Kind
from sparkrecipes.catalog.wording import Fault, faults
from sparkrecipes.catalog_files import files
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml import Document, read

T = TypeVar("T", bound=BaseModel)


class InvalidFile(CatalogError):
    """A catalog file does not say what its kind must say.

    Attributes:
        problems: What is wrong, each with file, line and column; never empty.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        place = f"{first.file}:{first.line}:{first.column}"
        see = f"run: sparkrecipes validate {first.file}"
        repair = f"{first.repair}; {see}" if first.repair else see
        super().__init__(f"{place}: {first.message}{more}", repair=repair)
        self.problems = problems


def check(document: Document, kind: Kind, name: str) -> tuple[BaseModel | None, list[Fault]]:
    """Turn a document into its type.

    Args:
        document: A parsed file.
        kind: What it should be.
        name: The file's name without ending, which is its id.

    Returns:
        The value, or None, and what is wrong.
    """
    tree = document.tree
    if not isinstance(tree, dict):
        message = f"a {kind.word} is a mapping of keys to values"
        return None, [Fault((), "wrong_type", message, "write 'key: value' lines")]
    given = {**tree, "id": name} if kind.has_id else tree
    try:
        value = kind.value_type.model_validate_json(json.dumps(given))
    except ValidationError as error:
        found = faults(error.errors(include_url=False), document, kind.file_type)
        return None, _with_id_key(found, tree, kind)
    extra = _with_id_key([], tree, kind)
    return (None if extra else value), extra


def _with_id_key(found: list[Fault], tree: dict[str, object], kind: Kind) -> list[Fault]:
    """Add the fault of an ``id`` key, which the name of the file has replaced by then."""
    if kind.has_id and "id" in tree:
        found.append(Fault(("id",), "id_key", "the file's name is the id", "remove the key id"))
    return found


def problem(document: Document, fault: Fault) -> Problem:
    """Return a fault as a problem with its line and column."""
    line, column = document.mark(fault.path)
    return Problem(
        file=document.name,
        line=line,
        column=column,
        level="error" if fault.level == "error" else "hint",
        message=fault.message,
        repair=fault.repair,
        code=fault.code,
    )


def load(path: Path, kind: Kind) -> BaseModel:
    """Load one catalog file.

    Raises:
        StrictYamlError: It is not strict YAML.
        InvalidFile: It is, but not what the kind must be.
    """
    document = read(path)
    value, found = check(document, kind, path.stem)
    if value is None:
        problems = sorted((problem(document, f) for f in found), key=lambda p: (p.line, p.column))
        raise InvalidFile(tuple(problems))
    return value


class Folder(Mapping[str, T], Generic[T]):
    """The files of one kind by id; each is loaded when it is first asked for."""

    def __init__(self, root: Path, folder: str) -> None:
        self._paths = files(root, folder)
        self._kind = BY_FOLDER[folder]
        self._loaded: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        if key not in self._loaded:
            self._loaded[key] = cast(T, load(self._paths[key], self._kind))
        return self._loaded[key]

    def __contains__(self, key: object) -> bool:
        return key in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
