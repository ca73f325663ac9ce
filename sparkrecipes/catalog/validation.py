"""``validate``: everything that is wrong with catalog files, in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from sparkrecipes.catalog.checking import problem
from sparkrecipes.catalog.inspecting import faults_in
from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.catalog.store import Catalog, open_catalog
from sparkrecipes.catalog_files import DOES_NOT_RUN, KINDS, SUFFIX, files, is_catalog
from sparkrecipes.errors import Misuse, nearest
from sparkrecipes.schema.findings import FileChange, Problem, ValidationReport
from sparkrecipes.strict_yaml import StrictYamlError, read_text

OTHER_FOLDERS = ("schemas",)
"""Folders of a catalog that hold no catalog files."""


def validate(
    paths: Sequence[Path],
    catalog: Catalog | None = None,
    *,
    fix: bool = False,
    dry_run: bool = False,
) -> ValidationReport:
    """Say what is wrong with catalog files; see ``sparkrecipes.catalog.validate``."""
    books = _Books(catalog)
    found: list[Problem] = []
    seen: dict[Path, None] = {}
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 (does not raise where a folder is closed)
            inside, misplaced = _inside(path)
            seen |= dict.fromkeys(inside)
            found += misplaced
        elif not os.path.lexists(path):
            raise Misuse(f"there is no file {path}", repair="check the path", code="no_file")
        else:
            seen[path] = None
    changes = _mended(list(seen), books, write=not dry_run) if fix else ()
    books = _Books(catalog) if changes else books
    for path in seen:
        found += _file_problems(path, books.of(path))
        found += _shadows(path, books.of(path))
    if fix and not dry_run:  # what is left was tried, and would not help
        found = [problem.model_copy(update={"fixable": False}) for problem in found]
    errors = any(problem.level == "error" for problem in found)
    return ValidationReport(
        valid=not errors, files=len(seen), problems=tuple(found), changes=changes
    )


def _mended(paths: list[Path], books: _Books, *, write: bool) -> tuple[FileChange, ...]:
    from sparkrecipes.catalog.mending import mended

    found = (mended(path, books.of(path), write=write) for path in paths)
    return tuple(change for change in found if change)


def _inside(folder: Path) -> tuple[list[Path], list[Problem]]:
    """Return the catalog files of a folder, and what lies among them but is not read."""
    try:
        inside, misplaced = [*_catalog_files(folder)], [*_misplaced(folder)]
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror}"
        raise Misuse(message, repair="check its permissions", code="unreadable") from None
    if not inside:
        message = f"{folder} holds no catalog files"
        raise Misuse(message, repair="name a catalog or a file", code="no_file")
    return inside, misplaced


def _catalog_files(folder: Path) -> Iterator[Path]:
    if folder.absolute().name in KINDS:
        yield from files(folder.parent, folder.absolute().name).values()
    elif is_catalog(folder) or any((folder / kind).is_dir() for kind in KINDS):
        for kind in KINDS:
            yield from files(folder, kind).values()
        if (folder / DOES_NOT_RUN).is_file():
            yield folder / DOES_NOT_RUN
    else:
        yield from sorted(folder.glob(f"*{SUFFIX}"))


def _shadows(path: Path, catalog: Catalog) -> Iterator[Problem]:
    """Tell of a file in the user's folder that hides a shipped one."""
    kind = path.absolute().parent
    if catalog.user is None or kind.parent != catalog.user or kind.name == "locks":
        return
    if path.stem in files(catalog.root, kind.name):
        message = f"it hides the shipped {BY_FOLDER[kind.name].word} of the same id"
        yield _file_problem(path, "shadows", message, "rename it, or keep it on purpose")


def _misplaced(folder: Path) -> Iterator[Problem]:
    inside = [folder / kind for kind in KINDS] if is_catalog(folder) else [folder]
    for path in (path for place in inside for path in sorted(place.glob("*.yml"))):
        repair = f"rename it to {path.stem}{SUFFIX}"
        yield _file_problem(path, "file_name", "files end in .yaml; this one is not read", repair)
    for path in sorted(folder.iterdir()) if is_catalog(folder) else ():
        if path.is_dir() and path.name not in (*KINDS, *OTHER_FOLDERS):
            near = nearest(path.name, KINDS)
            repair = f"did you mean {near[0]}/?" if near else f"known: {', '.join(KINDS)}"
            yield _file_problem(path, "unknown_folder", "no kind of file has this folder", repair)


def _file_problem(path: Path, code: str, message: str, repair: str) -> Problem:
    return Problem(
        file=str(path),
        line=1,
        column=1,
        level="hint",
        message=message,
        repair=repair,
        code=code,
    )


def validate_text(text: str, name: str, catalog: Catalog) -> tuple[Problem, ...]:
    """Say what is wrong with the text of a recipe; see ``sparkrecipes.catalog.validate_text``."""
    return tuple(_text_problems(text, Path(name), catalog, folder="recipes"))


def _file_problems(path: Path, catalog: Catalog) -> list[Problem]:
    try:
        text = read_text(path)
    except StrictYamlError as error:
        return list(error.problems)
    return _text_problems(text, path, catalog)


def _text_problems(
    text: str, path: Path, catalog: Catalog, *, folder: str | None = None
) -> list[Problem]:
    try:
        document, found = faults_in(text, path, catalog, folder=folder)
    except StrictYamlError as error:
        return sorted(error.problems, key=lambda problem: (problem.line, problem.column))
    problems = [problem(document, fault) for fault in found]
    return sorted(problems, key=lambda problem: (problem.line, problem.column, problem.level))


class _Books:
    """Which catalog a file is checked against: its own, else the one given, else the default."""

    def __init__(self, given: Catalog | None) -> None:
        self._given = given
        self._own: dict[Path, Catalog] = {}

    def of(self, path: Path) -> Catalog:
        """Return the catalog for a file."""
        place = path.absolute().parent
        root = place.parent if place.name in KINDS else place
        if not is_catalog(root):
            return self._default
        if root not in self._own:
            self._own[root] = open_catalog(root)
        return self._own[root]

    @cached_property
    def _default(self) -> Catalog:
        return self._given or open_catalog()
