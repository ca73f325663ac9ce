"""Every published speed as one flat list, whatever the shape of its publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkrecipes.schema.contradiction import Reading
from sparkrecipes.schema.evidence import Evidence, EvidenceRow
from sparkrecipes.schema.readings import Configured, span
from sparkrecipes.schema.recipe import Recipe

STANDARD_PROMPT = "standard_prompt"
"""The one prompt of the October round."""


def readings(recipes: Mapping[str, Recipe], sets: Mapping[str, Evidence]) -> tuple[Reading, ...]:
    """List the speeds of all sets, the most trusted set first.

    Args:
        recipes: They say what the rows of the standard round are rows of.
        sets: The evidence sets.
    """
    ranked = sorted(sets.values(), key=lambda found: (found.trust_rank, found.id))
    return tuple(reading for found in ranked for reading in _of_set(recipes, found))


def _of_set(recipes: Mapping[str, Recipe], found: Evidence) -> Iterator[Reading]:
    rows = {row.id: row for row in found.rows}
    for recipe in recipes.values():
        for ref in recipe.evidence:
            name, _, row_id = ref.partition("#")
            if name == found.id and row_id in rows:
                yield from _of_row(recipe, found, rows[row_id])
    for kinds in found.by_workload:
        if kinds.recipe in recipes:
            for work in kinds.workloads:
                yield _of_recipe(
                    recipes[kinds.recipe], found, work.workload, work.tok_s, kinds.recipe
                ).model_copy(update={"temperature": work.temperature})
    for one in found.single_stream:
        if one.tok_s is not None:
            yield _of_config(found, one, one.workload, 1, one.tok_s)
    for ladder in found.ladders:
        for point in ladder.points:
            if point.total_tok_s is not None:
                yield _of_config(found, ladder, ladder.workload, point.users, point.total_tok_s)


def _of_row(recipe: Recipe, found: Evidence, row: EvidenceRow) -> Iterator[Reading]:
    figures = row.figures
    for users, value, name in (
        (1, figures.single_user_tok_s, "single_user_tok_s"),
        (row.users, figures.four_users_total_tok_s, "four_users_total_tok_s"),
    ):
        if value is not None:
            doubts = tuple(c.text for c in row.caveats if name in c.figures)
            yield _of_recipe(
                recipe, found, STANDARD_PROMPT, value, row.id, users=users, doubts=doubts
            )


def _of_recipe(
    recipe: Recipe,
    found: Evidence,
    workload: str,
    value: float,
    row: str,
    *,
    users: int = 1,
    doubts: tuple[str, ...] = (),
) -> Reading:
    spec = recipe.speculative
    return Reading(
        evidence=found.id,
        row=row,
        config=recipe.title,
        model=recipe.model,
        quant=recipe.quant,
        method=spec.method if spec else "none",
        draft_tokens=spec.num_speculative_tokens if spec else None,
        workload=workload,
        users=users,
        low=value,
        high=value,
        engine=recipe.engine,
        engine_version=recipe.engine_version,
        doubts=doubts,
    )


def _of_config(
    found: Evidence,
    one: Configured,
    workload: str,
    users: int,
    value: float | tuple[float, float],
) -> Reading:
    low, high = span(value)
    spoken = one.speculation
    stated = spoken.method != "not_stated"
    named = not stated or spoken.method in one.config.lower()
    return Reading(
        evidence=found.id,
        row=one.id,
        config=one.config if named else f"{one.config}, {spoken.words}",
        model=one.model,
        quant=one.quant,
        method=spoken.method if stated else None,
        draft_tokens=spoken.num_speculative_tokens,
        workload=workload,
        users=users,
        low=low,
        high=high,
        engine=one.engine,
        engine_version=one.engine_version,
        notes=one.notes,
    )
