"""From a file to its type: strict YAML, then strict types, every problem with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pydantic import BaseModel

from sparkrecipes.catalog.kinds import BY_FOLDER, Kind
from sparkrecipes.catalog_files import files
from sparkrecipes.errors import CatalogError

if TYPE_CHECKING:
    from sparkrecipes.schema.findings import Problem

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


def load(path: Path, kind: Kind) -> BaseModel:
    """Load one catalog file.

    Raises:
        StrictYamlError: It is not strict YAML.
        InvalidFile: It is, but not what the kind must be.
    """
    # YAML is not loaded by those who find what they need in the kept list.
    from sparkrecipes.catalog.checking import check, problem
    from sparkrecipes.strict_yaml import read

    document = read(path)
    value, found = check(document, kind, path.stem)
    if value is None:
        problems = sorted((problem(document, f) for f in found), key=lambda p: (p.line, p.column))
        raise InvalidFile(tuple(problems))
    return value


class Folder(Mapping[str, T], Generic[T]):
    """The files of one kind by id; each is loaded when it is first asked for.

    A file of the user's own folder counts before the shipped one of the same id. It is loaded at
    once, so that a broken one is left out, named, and nothing else is touched.

    Attributes:
        own: The user's files that count, by id.
        shadowed: Ids of shipped files that are hidden by the user's.
        broken: What is wrong with the user's files that are left out, by their path.
    """

    def __init__(self, root: Path, folder: str, user: Path | None = None) -> None:
        self._paths = files(root, folder)
        self._shipped = dict(self._paths)
        self._kind = BY_FOLDER[folder]
        self._loaded: dict[str, T] = {}
        self.own: dict[str, Path] = {}
        self.broken: dict[Path, CatalogError] = {}
        if user is not None:
            self._add(user / folder)

    def _add(self, folder: Path) -> None:
        """Add the user's files, as far as they can be read."""
        try:
            found = files(folder.parent, folder.name)
        except CatalogError as error:
            self.broken[folder] = error
            return
        for key, path in found.items():
            self._paths[key] = self.own[key] = path
            try:
                self[key]
            except CatalogError as error:
                self.leave_out(key, error)

    def leave_out(self, key: str, error: CatalogError) -> None:
        """Leave a file of the user out; a shipped one of the same id counts again."""
        self.broken[self.own.pop(key)] = error
        self._loaded.pop(key, None)
        if key in self._shipped:
            self._paths[key] = self._shipped[key]
        else:
            del self._paths[key]

    @property
    def shadowed(self) -> frozenset[str]:
        """Ids of shipped files that are hidden by the user's."""
        return frozenset(key for key in self.own if key in self._shipped)

    def path(self, key: str) -> Path:
        """Return the file of an id."""
        return self._paths[key]

    def broken_file(self, key: str) -> CatalogError | None:
        """Return what is wrong with the user's file of an id that was left out."""
        return next((e for path, e in self.broken.items() if path.stem == key), None)

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
