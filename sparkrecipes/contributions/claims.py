"""What a recipe claims that its evidence does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.strict_yaml import PathInTree

Claim = tuple[PathInTree, str, str]
"""Where it stands, what is claimed, what to make sure of."""


def claims(
    recipe_id: str, tree: dict[str, Any], old: dict[str, Any] | None, catalog: Catalog
) -> Iterator[Claim]:
    """Find what is claimed without evidence: speed, settings, capabilities.

    Args:
        recipe_id: The recipe.
        tree: What it says now.
        old: What it said before; None: it is new.
        catalog: Where its evidence is.
    """
    evidence = tree.get("evidence") or []
    if not evidence and (old is None or old.get("evidence")):
        look = "it counts as untested: does it say so, and nothing of speed?"
        yield ("title",), "nothing measured this configuration", look
    for at, reference in enumerate(evidence):
        yield from _row(recipe_id, tree, str(reference), ("evidence", at), catalog)
    had = (old or {}).get("capabilities") or []
    for at, capability in enumerate(tree.get("capabilities") or []):
        if capability not in had and capability != "text":
            look = "which source shows it on this very engine and model?"
            yield ("capabilities", at), f"clients may rely on {capability}", look
    for at, source in enumerate(tree.get("sources") or []):
        if "://" not in str(source):
            look = "nobody can look it up"
            yield ("sources", at), "a source without an address", look


def _row(
    recipe_id: str, tree: dict[str, Any], reference: str, path: PathInTree, catalog: Catalog
) -> Iterator[Claim]:
    row = _find(reference, catalog)
    if row is None:
        return
    if row.id != recipe_id:
        look = "is that the same configuration?"
        yield path, f"its evidence is the row of {row.id}", look
    serving = tree.get("serving") or {}
    for name in ("context_tokens", "users", "kv_cache_dtype"):
        measured = getattr(row, name)
        if serving.get(name) not in (measured, None):
            what = f"{name} {serving.get(name)} is claimed, {measured} was measured"
            yield ("serving", name), what, "figures belong to what was measured"


def _find(reference: str, catalog: Catalog) -> EvidenceRow | None:
    name, _, row_id = reference.partition("#")
    try:
        found = catalog.evidence.get(name)
    except CatalogError:
        return None
    rows = found.rows if found else ()
    return next((row for row in rows if row.id == row_id), None)
