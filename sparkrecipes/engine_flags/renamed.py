"""Options that were renamed or gave way to another, and what stands for them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from sparkrecipes.catalog_files import data_root


@dataclass(frozen=True, kw_only=True)
class Renamed:
    """An option that is written otherwise now.

    Attributes:
        old: Its former name.
        new: What to write, with ``VALUE`` for its value; empty: nothing; None: see ``instead``.
        instead: What to think about, where no rule can.
        since: From which version on it should not be used any more, where it is still known.
    """

    old: str
    new: tuple[str, ...] | None
    instead: str
    since: str | None


@functools.cache
def _recorded(engine_id: str) -> dict[str, Any]:
    path = data_root() / "catalog" / "engines" / "renamed" / f"{engine_id}.json"
    if not path.is_file():
        return {"options": [], "env": []}
    recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return recorded


def former_variables(engine_id: str) -> dict[str, tuple[str, str]]:
    """Return an engine's former environment variables, each with its last version and a repair."""
    return {e["old"]: (e["last"], e["instead"]) for e in _recorded(engine_id)["env"]}


@functools.cache
def renamed_options(engine_id: str) -> dict[str, Renamed]:
    """Return what is recorded of an engine's former options, by their old names."""
    entries = _recorded(engine_id)["options"]
    return {
        entry["old"]: Renamed(
            old=entry["old"],
            new=tuple(entry["new"]) if "new" in entry else None,
            instead=entry.get("instead", ""),
            since=entry.get("from"),
        )
        for entry in entries
    }
