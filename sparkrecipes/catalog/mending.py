"""``validate --fix``: what is mechanical is put right in the file, one change at a time.

A change is made only if it was named by a problem that leaves no doubt about what was meant, and is
kept only if the file then has that problem no more and no other one instead.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections import Counter
from pathlib import Path

import yaml

from sparkrecipes.catalog.inspecting import faults_in
from sparkrecipes.catalog.store import Catalog
from sparkrecipes.catalog.wording import Fault
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.findings import Change, FileChange
from sparkrecipes.strict_yaml import Document, StrictYamlError, read_text
from sparkrecipes.strict_yaml.editing import CannotEdit, edited

MOST = 200
"""Changes of one file; a file with more is not a recipe that somebody wrote."""


def mended(path: Path, catalog: Catalog, *, write: bool) -> FileChange | None:
    """Put right what is mechanical in one file; None: there is nothing of that kind.

    Args:
        path: The file.
        catalog: What it is checked against.
        write: False only says what would be changed.

    Raises:
        CatalogError: The file cannot be written.
    """
    try:
        before = read_text(path)
    except StrictYamlError:
        return None
    mark = "\ufeff" if before.startswith("\ufeff") else ""
    ends = "\r\n" if "\r\n" in before else "\n"
    text, changes = _put_right(before.removeprefix(mark).replace("\r\n", "\n"), path, catalog)
    if not changes:
        return None
    after = mark + text.replace("\n", ends)
    if write:
        _replace(path, after)
    names = (str(path), str(path)) if path.is_absolute() else (f"a/{path}", f"b/{path}")
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return FileChange(
        file=str(path), written=write, changes=tuple(changes), diff="\n".join(diff) + "\n"
    )


def _put_right(text: str, path: Path, catalog: Catalog) -> tuple[str, list[Change]]:
    changes: list[Change] = []
    refused: set[Fault] = set()
    while len(changes) < MOST:
        found = _read(text, path, catalog)
        if found is None:
            return _trimmed_first(text, path, catalog, changes)
        document, faults = found
        fault = next((f for f in faults if f.fix and f not in refused), None)
        if fault is None or fault.fix is None:
            break
        after = _changed(text, fault, faults, path, catalog)
        if after is None:
            refused.add(fault)
            continue
        line = document.mark(fault.path)[0]
        changes.append(Change(line=line, code=fault.code, message=fault.message))
        text = after
    return text, changes


def _read(text: str, path: Path, catalog: Catalog) -> tuple[Document, list[Fault]] | None:
    try:
        return faults_in(text, path, catalog)
    except StrictYamlError:
        return None


def _trimmed_first(
    text: str, path: Path, catalog: Catalog, changes: list[Change]
) -> tuple[str, list[Change]]:
    """Go on where spaces or tabs at the ends of lines were all that kept a file from being read."""
    from sparkrecipes.strict_yaml.editing import trimmed

    after = trimmed(text)
    if changes or after == text or _read(after, path, catalog) is None:
        return text, changes
    first = Change(line=1, code="trailing_space", message="lines end in spaces or tabs")
    text, more = _put_right(after, path, catalog)
    return text, [first, *more]


def _changed(
    text: str, fault: Fault, faults: list[Fault], path: Path, catalog: Catalog
) -> str | None:
    """Return the text with one change made; None: it cannot be made, or would not help."""
    if fault.fix is None:
        return None
    try:
        after = edited(text, fault.fix)
    except (CannotEdit, yaml.YAMLError):
        return None
    found = _read(after, path, catalog)
    if found is None or after == text:
        return None
    kind = (fault.code, fault.level)
    before, now = (Counter((f.code, f.level) for f in each) for each in (faults, found[1]))
    more = now - before
    # What comes to light by the change is put right next, or could not be seen before it.
    known = [f for f in found[1] if (f.code, f.level) in more and f.fix is None]
    worse = [f for f in known if (f.code, f.level) in before or not _opens(fault)]
    return after if now[kind] < before[kind] and not worse else None


def _opens(fault: Fault) -> bool:
    """Tell whether a change lets rules be asked that could not be before: of a wrong field."""
    return fault.fix is not None and fault.fix.kind in ("key", "text", "plain")


def _replace(path: Path, text: str) -> None:
    """Write a file in one step, with the permissions that it had."""
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(target.stat().st_mode & 0o7777)
            Path(name).replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise CatalogError(message, repair="check its permissions", code="unwritable") from None
