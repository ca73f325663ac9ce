"""What follows from a recipe and the evidence: its figures, its status, its place in the list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkrecipes.catalog_files import cached_list_json, store_list_json
from sparkrecipes.errors import CatalogError

if TYPE_CHECKING:
    from sparkrecipes.schema.evidence import DoesNotRunEntry, Evidence, EvidenceRow
    from sparkrecipes.schema.findings import Problem
    from sparkrecipes.schema.listing import (
        PublishedRow,
        RecipeDetail,
        RecipeList,
        RecipeStatus,
        RecipeSummary,
    )
    from sparkrecipes.schema.model import Model
    from sparkrecipes.schema.recipe import Recipe

RANKED_FIGURE = "single_user_tok_s"
"""The list's order; a row whose caveat concerns it is doubtful."""


def published(recipe: Recipe, evidence: Mapping[str, Evidence]) -> tuple[PublishedRow, ...]:
    """Return the evidence rows that a recipe points at, in its order.

    Raises:
        CatalogError: It points at a set or row that is not there.
    """
    from sparkrecipes.schema.listing import PublishedRow

    return tuple(
        PublishedRow(evidence=name, method=found.method, publisher=found.publisher, row=row)
        for name, found, row in pointed_at(recipe, evidence)
    )


def pointed_at(
    recipe: Recipe, evidence: Mapping[str, Evidence]
) -> Iterator[tuple[str, Evidence, EvidenceRow]]:
    """Yield the sets and rows that a recipe points at, in its order.

    Raises:
        CatalogError: It points at a set or row that is not there.
    """
    for ref in recipe.evidence:
        name, _, row_id = ref.partition("#")
        rows = evidence[name].rows if name in evidence else ()
        row = next((row for row in rows if row.id == row_id), None)
        if row is None:
            raise CatalogError(
                f"the recipe {recipe.id} points at the evidence {ref}, which is not there",
                repair="run: sparkrecipes validate, with the catalog's folder",
                code="unknown_evidence",
            )
        yield name, evidence[name], row


def measured_row(recipe: Recipe, evidence: Mapping[str, Evidence]) -> EvidenceRow | None:
    """Return the row of the October round that measured a recipe, or None.

    Raises:
        CatalogError: It points at a set or row that is not there.
    """
    rows = list(pointed_at(recipe, evidence))
    return next((row for _, found, row in rows if found.method == "october"), None)


def october_row(rows: Iterable[PublishedRow]) -> EvidenceRow | None:
    """Return the row of the October round among a recipe's rows, or None."""
    return next((found.row for found in rows if found.method == "october"), None)


def status(
    recipe: Recipe, rows: Sequence[PublishedRow], does_not_run: Iterable[DoesNotRunEntry]
) -> RecipeStatus:
    """Return whether a recipe was measured, is known not to run, or neither.

    What was measured ran, whatever is known of its like.
    """
    if rows:
        return "measured"
    return "does_not_run" if any(e.concerns(recipe) for e in does_not_run) else "untested"


def summary(
    recipe: Recipe, model: Model, rows: Sequence[PublishedRow], recipe_status: RecipeStatus
) -> RecipeSummary:
    """Return one row of the list."""
    from sparkrecipes.schema.listing import RecipeSummary

    row = october_row(rows)
    caveats = row.caveats if row else ()
    doubts = [caveat.text for caveat in caveats]
    return RecipeSummary(
        id=recipe.id,
        title=recipe.title,
        model=recipe.model,
        engine=recipe.engine,
        speculative=recipe.speculative,
        capabilities=recipe.capabilities,
        params_total_b=model.params_total_b,
        params_active_b=model.params_active_b,
        published=row.figures if row else None,
        doubtful=tuple(sorted({figure for caveat in caveats for figure in caveat.figures})),
        caveats=(*doubts, *recipe.caveats),
        status=recipe_status,
        known_from=tuple(dict.fromkeys(near.row.partition("#")[0] for near in recipe.resembles)),
    )


def whole_list(summaries: tuple[RecipeSummary, ...], left_out: tuple[Problem, ...]) -> RecipeList:
    """Return the list of all recipes, with what is wrong with files that are left out."""
    from sparkrecipes.schema.listing import RecipeList

    return RecipeList(recipes=summaries, left_out=left_out)


def shown_list(whole: RecipeList, *, everything: bool) -> RecipeList:
    """Return the list as it is answered: the rest is counted, and said, unless all is asked for.

    Left out is what the standard round did not measure and the catalog knows from another
    publication: its figures are of another method and cannot stand in this table.
    """
    kept = tuple(s for s in whole.recipes if everything or s.published or not s.known_from)
    more = len(whole.recipes) - len(kept)
    note = (
        f"{more} more are known from other publications, whose figures do not compare with these: "
        "sparkrecipes list --all"
    )
    return whole.model_copy(update={"recipes": kept, "more": more, "note": note if more else ""})


def rank(summary: RecipeSummary) -> tuple[int, float, str]:
    """Return a recipe's place in the list: lower comes first.

    The fastest for one user is first; a doubtful figure ranks after all others, no figure last.
    """
    speed = summary.published.single_user_tok_s if summary.published else None
    if speed is None:
        return (2, 0.0, summary.id)
    return (int(RANKED_FIGURE in summary.doubtful), -speed, summary.id)


def detail(
    recipe: Recipe,
    summary: RecipeSummary,
    rows: Sequence[PublishedRow],
    evidence: Mapping[str, Evidence],
) -> RecipeDetail:
    """Return a recipe in full, with every source once."""
    from sparkrecipes.schema.listing import RecipeDetail

    sources = [*recipe.sources]
    for found in rows:
        sources += evidence[found.evidence].sources
    return RecipeDetail(
        recipe=recipe,
        summary=summary,
        published=tuple(rows),
        caveats=tuple(caveat for found in rows for caveat in found.row.caveats),
        sources=tuple(dict.fromkeys(sources)),
    )


def kept_list(root: Path) -> RecipeList | None:
    """Return the list from the cache, where it holds the right type and is up to date."""
    from sparkrecipes.schema.listing import RecipeList

    kept = cached_list_json(root, everything=True)
    try:
        return RecipeList.model_validate_json(kept) if kept else None
    except ValidationError:
        return None


def keep_list(state: bytes, whole: RecipeList) -> None:
    """Keep the list, as the command line prints it, for as long as the state is the same."""
    answers = (shown_list(whole, everything=everything) for everything in (False, True))
    data = (answer.model_dump(mode="json") for answer in answers)
    shown, full = (json.dumps(one, ensure_ascii=False, indent=2).encode() for one in data)
    store_list_json(state, shown, full)
