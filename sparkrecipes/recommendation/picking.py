"""The answer: filter by what is needed, rank what is left, and say why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sparkrecipes.recommendation.questions import understand
from sparkrecipes.recommendation.reasons import ahead_of, free_now, reasons
from sparkrecipes.recommendation.standing import METHOD, Candidate, obstacles, standing, too_large
from sparkrecipes.schema.evidence import DoesNotRunEntry
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.use_case import Constraints, Reasoned, Recommendation, UseCase

Estimate = Callable[[Recipe], MemoryEstimate]
"""Sizes a recipe at the context and users asked for, on the machine asked about."""


class Facts(Protocol):
    """What the rules read: a catalog, or anything with these facts."""

    @property
    def use_cases(self) -> Mapping[str, UseCase]:
        """Use cases by id."""

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """Recipes by id."""

    @property
    def models(self) -> Mapping[str, Model]:
        """Models by id."""

    @property
    def does_not_run(self) -> tuple[DoesNotRunEntry, ...]:
        """What is known not to run."""

    def published(self, recipe: Recipe) -> tuple[PublishedRow, ...]:
        """Return the evidence rows that a recipe points at."""


def recommend(
    question: str,
    facts: Facts,
    *,
    estimate: Estimate,
    context_tokens: int | None = None,
    users: int | None = None,
) -> Recommendation:
    """Pick a recipe for a use case, say why, and what was ruled out and why.

    Args:
        question: A use case id, its name, a synonym or a sentence, in English or Spanish.
        facts: A catalog.
        estimate: Sizes a recipe at ``context_tokens`` and ``users``.
        context_tokens: Longest sequence wanted; None: as each recipe is set.
        users: Sequences at once; None: as each recipe is set.

    Returns:
        The pick, or None with a reason for each recipe.

    Raises:
        Misuse: The question names no use case, or more than one.
    """
    use = understand(question, facts.use_cases)
    asked = Constraints(context_tokens=context_tokens, users=users)
    kept: list[Candidate] = []
    ruled_out: list[Reasoned] = []
    for recipe in facts.recipes.values():
        found = candidate(facts, recipe)
        why = obstacles(found, use, asked, facts.does_not_run)
        if not why:
            found = replace(found, estimate=estimate(recipe))
            why = too_large(found.estimate) if found.estimate else ()
        if why:
            ruled_out.append(Reasoned(id=recipe.id, why=why))
        else:
            kept.append(found)
    kept.sort(key=lambda found: standing(found, use))
    return answer(use, asked, kept, ruled_out)


def candidate(facts: Facts, recipe: Recipe) -> Candidate:
    """Put together what is known of a recipe."""
    rows = (row for row in facts.published(recipe) if row.method == METHOD)
    return Candidate(recipe=recipe, model=facts.models[recipe.model], row=next(rows, None))


def answer(
    use: UseCase, asked: Constraints, kept: Sequence[Candidate], ruled_out: Sequence[Reasoned]
) -> Recommendation:
    """Word the answer for recipes in their order."""
    ranked = [Reasoned(id=found.recipe.id, why=reasons(found, use, asked)) for found in kept]
    pick = ranked[0] if ranked else None
    if pick and len(kept) > 1:
        pick = Reasoned(id=pick.id, why=(*pick.why, *ahead_of(kept[0], kept[1], use)))
    return Recommendation(
        use_case=use.id,
        constraints=asked,
        pick=pick,
        alternatives=tuple(ranked[1:]),
        ruled_out=tuple(ruled_out),
        warnings=(
            *_unusual(use, asked),
            *free_now(kept),
            *(kept[0].recipe.caveats if kept else ()),
        ),
        next=f"sparkrecipes check {pick.id}" if pick else "sparkrecipes list",
    )


def _unusual(use: UseCase, asked: Constraints) -> tuple[str, ...]:
    need = use.min_context_tokens or 0
    if asked.context_tokens is None or asked.context_tokens >= need:
        return ()
    return (f"{use.id} usually needs {need:,} tokens of context or more",)
