"""Where rounds are kept: one JSON file a round, in the user's data folder."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.schema.round import Round

MAX_BYTES = 16 * 2**20


def rounds_folder() -> Path:
    """Return the folder of saved rounds: ``sparkrecipes/rounds`` in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("sparkrecipes") / "rounds"


def round_path(started_at: str, subject: str) -> Path:
    """Name the file of a round by its start and what was measured; no older one is overwritten."""
    stamp = re.sub(r"[^0-9T]", "", started_at)[:15]
    name = re.sub(r"[^A-Za-z0-9._-]", "-", subject)[:80]
    tries = (f"{stamp}{f'.{again}' if again else ''}-{name}.json" for again in itertools.count())
    return next(path for path in map(rounds_folder().joinpath, tries) if not path.exists())


def require_folder(path: Path) -> None:
    """Make sure before anything is measured that it can be kept.

    Raises:
        Misuse: The folder of ``path`` cannot be made or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(path.parent, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise Misuse(
            f"rounds cannot be saved in {path.parent}",
            code="data_folder",
            repair="name a folder that you may write: export XDG_DATA_HOME=/path",
        )


def save_round(path: Path, data: Mapping[str, Any]) -> None:
    """Write a round as it stands, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w") as out:
        json.dump(data, out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(path)


def load_round(path: Path) -> Round:
    """Read a saved round.

    Raises:
        Misuse: There is no such file.
        CatalogError: The file is not a round.
    """
    try:
        if path.exists() and not path.is_file():
            raise Misuse(f"{path} is no file", repair="give a file that sparkrecipes round wrote")
        if path.stat().st_size > MAX_BYTES:
            raise CatalogError(
                f"{path} is over 16 MiB: not a round", repair="give the file of a round"
            )
        return Round.model_validate_json(path.read_bytes())
    except OSError as err:
        raise Misuse(
            f"{path} cannot be read: {err.strerror}", repair="run: sparkrecipes round RECIPE"
        ) from err
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise CatalogError(
            f"{path} is not a round: {where}: {first['msg']}",
            repair="give a file that sparkrecipes round wrote",
        ) from err


def latest_round(recipe_id: str | None) -> tuple[Round, Path, list[str]]:
    """Find the newest saved round that measured something, of one recipe or of any.

    Returns:
        The round, its file, and a line for each newer one that was passed over. Where none
        measured anything, the newest that can be read.

    Raises:
        Misuse: There is none.
        CatalogError: None can be read.
    """
    folder = rounds_folder()
    files = sorted(folder.glob(f"*-{recipe_id}.json" if recipe_id else "*.json"), reverse=True)
    passed, failed = list[str](), list[tuple[Round, Path, list[str]]]()
    for path in files:
        try:
            round_ = load_round(path)
        except CatalogError as err:
            passed.append(f"a newer file was passed over: {err.message}")
            continue
        asked, lost = round_.stability.requests, round_.stability.failed
        if asked > lost:
            return round_, path, passed
        failed.append((round_, path, [*passed]))
        passed.append(f"a newer round was passed over: {lost} of {asked} requests failed in {path}")
    if failed:
        return failed[0]
    if files:
        load_round(files[0])
    subject = recipe_id or "any recipe"
    raise Misuse(
        f"no saved round of {subject} in {folder}",
        code="no_round",
        repair=f"run: sparkrecipes round {recipe_id or 'RECIPE'}",
    )
