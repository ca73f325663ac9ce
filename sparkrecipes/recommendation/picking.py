"""The answer: filter by what is needed, rank what is left, and say why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sparkrecipes.recommendation import pairs
from sparkrecipes.recommendation.reasons import ahead_of, free_now, reasons, short_reasons
from sparkrecipes.recommendation.requests import models_named, read_request
from sparkrecipes.recommendation.standing import (
    METHOD,
    Candidate,
    Obstacle,
    misfits,
    obstacles,
    rank_keys,
    speed_of,
    standing,
)
from sparkrecipes.recommendation.voice import say
from sparkrecipes.schema.evidence import DoesNotRunEntry, Evidence
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.recommendation import Constraints, Reasoned, Recommendation, Request
from sparkrecipes.schema.use_case import UseCase


class Estimate(Protocol):
    """Sizes a recipe on the machine asked about."""

    def __call__(
        self, recipe: Recipe, *, context_tokens: int | None, users: int | None
    ) -> MemoryEstimate:
        """Return its memory and its forecast; None: as the recipe is set."""


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
    def evidence(self) -> Mapping[str, Evidence]:
        """Evidence sets by id."""

    @property
    def does_not_run(self) -> tuple[DoesNotRunEntry, ...]:
        """What is known not to run."""

    def published(self, recipe: Recipe) -> tuple[PublishedRow, ...]:
        """Return the evidence rows that a recipe points at."""


@dataclass(frozen=True)
class Sorted:
    """Recipes for one use: those that suit, best first, and those that do not, each with why."""

    use: UseCase
    kept: tuple[Candidate, ...]
    out: Mapping[str, tuple[Obstacle, ...]]


def recommend(
    question: str | Request, facts: Facts, *, estimate: Estimate, **wishes: Any
) -> Recommendation:
    """Pick a recipe for a use case, say why, and what was ruled out and why.

    Args:
        question: A request, or a use case id, its name, a synonym or a sentence, in English or
            Spanish.
        facts: A catalog.
        estimate: Sizes a recipe at a context and a number of users.
        **wishes: Fields of ``Constraints``, where ``question`` is a text.

    Returns:
        The pick, or None with a reason for each recipe, what comes nearest, and what to relax.

    Raises:
        Misuse: The question names no use case, or more than one.
    """
    if isinstance(question, str):
        question = understood(question, facts, **wishes)
    sides = tuple(sort_out(facts, key, question, estimate) for key in question.use_cases)
    if len(sides) > 1:
        return two_at_once(question, (sides[0], sides[1]), facts)
    found = answer(question, sides[0], facts)
    if found.pick is None:
        from sparkrecipes.recommendation.nearest import with_way_out

        return with_way_out(found, question, sides[0], facts, estimate)
    return found


def understood(question: str, facts: Facts, **wishes: Any) -> Request:
    """Read a question with the words of a catalog."""
    engines = sorted({recipe.engine for recipe in facts.recipes.values()})
    request = read_request(question, facts.use_cases, engines, **wishes)
    named = models_named(question, (model.family for model in facts.models.values()))
    if not named:
        return request
    note = say(request.language, "model_named", named=", ".join(named))
    return request.model_copy(update={"assumed": (*request.assumed, note)})


def sort_out(facts: Facts, use_case: str, request: Request, estimate: Estimate) -> Sorted:
    """Filter by what is needed, then rank what is left."""
    use, asked = facts.use_cases[use_case], request.constraints
    kept: list[Candidate] = []
    out: dict[str, tuple[Obstacle, ...]] = {}
    for recipe in facts.recipes.values():
        found = candidate(facts, recipe)
        why = obstacles(found, use, asked, facts.does_not_run, request.language)
        if not why:
            size = estimate(recipe, context_tokens=asked.context_tokens, users=asked.users)
            found = replace(found, estimate=size)
            why = misfits(found, asked, request.language)
        if why:
            out[recipe.id] = why
        else:
            kept.append(found)
    kept.sort(key=lambda found: standing(found, use, asked))
    return Sorted(use, tuple(kept), out)


def candidate(facts: Facts, recipe: Recipe) -> Candidate:
    """Put together what is known of a recipe."""
    rows = (row for row in facts.published(recipe) if row.method == METHOD)
    return Candidate(recipe=recipe, model=facts.models[recipe.model], row=next(rows, None))


def answer(request: Request, side: Sorted, facts: Facts) -> Recommendation:
    """Word the answer for recipes in their order."""
    use, kept, asked, tongue = side.use, side.kept, request.constraints, request.language
    pick = None
    if kept:
        why = reasons(kept[0], use, asked, facts.evidence, tongue)
        if len(kept) > 1:
            why = (*why, *ahead_of(kept[0], kept[1], use, asked, tongue))
        pick = Reasoned(id=kept[0].recipe.id, why=why)
    return Recommendation(
        use_case=use.id,
        use_cases=request.use_cases,
        constraints=asked,
        language=tongue,
        pick=pick,
        alternatives=tuple(
            Reasoned(
                id=found.recipe.id, why=short_reasons(found, use, asked, facts.evidence, tongue)
            )
            for found in kept[1:]
        ),
        ruled_out=tuple(ruled(key, why) for key, why in side.out.items()),
        outgrown=outgrown(request, kept[0]) if kept else None,
        warnings=warnings(request, side),
        next=f"sparkrecipes check {pick.id}" if pick else "sparkrecipes list",
    )


def ruled(recipe_id: str, why: tuple[Obstacle, ...]) -> Reasoned:
    """Say why a recipe is ruled out, and by which wishes."""
    return Reasoned(
        id=recipe_id,
        why=tuple(one.says for one in why),
        wishes=tuple(dict.fromkeys(one.wish for one in why)),
    )


def warnings(request: Request, side: Sorted) -> tuple[str, ...]:
    """Say what to know before the pick is taken: what was assumed, what is unsure, its caveats."""
    use, asked, tongue = side.use, request.constraints, request.language
    told = [*request.assumed]
    need = use.min_context_tokens or 0
    if asked.context_tokens is not None and asked.context_tokens < need:
        told.append(
            say(
                tongue,
                "usually_needs",
                use=use.names[tongue] if tongue == "es" else use.id,
                need=need,
            )
        )
    if rank_keys(use, asked) != use.rank_by:
        told.append(say(tongue, "users_first", users=asked.users))
    told += free_now(side.kept, tongue)
    if side.kept:
        told += _unsure(side.kept[0], asked, request)
        told += [say(tongue, "note_in_english", c) for c in side.kept[0].recipe.caveats]
    return tuple(told)


def outgrown(request: Request, best: Candidate) -> str | None:
    """Name the way out of one machine, where so many users may be served too slowly."""
    asked = request.constraints
    beyond = best.row is None or (asked.users or 1) > best.row.row.users
    if not beyond or is_fast_enough(best, asked):
        return None
    return say(request.language, "outgrown", id=best.recipe.id)


def is_fast_enough(found: Candidate, asked: Constraints) -> bool:
    """Say whether a recipe is sure to be as fast as asked for."""
    wanted, speed = asked.min_tok_s_per_user, speed_of(found, asked)
    return wanted is None or (speed is not None and speed.low >= wanted)


def _unsure(best: Candidate, asked: Constraints, request: Request) -> list[str]:
    """Warn where even the pick is not sure to be as fast as asked for."""
    if is_fast_enough(best, asked):
        return []
    wanted, users = asked.min_tok_s_per_user, asked.users or 1
    return [say(request.language, "tier_maybe", wanted=wanted, users=users)]


def two_at_once(request: Request, sides: tuple[Sorted, Sorted], facts: Facts) -> Recommendation:
    """Answer a question for two recipes on one machine."""
    tongue = request.language
    uses, kept = (sides[0].use, sides[1].use), (sides[0].kept, sides[1].kept)
    pair = pairs.side_by_side(uses, kept, request.constraints, facts.evidence, tongue)
    found = answer(request, sides[0], facts)
    both = next(pairs.alone(kept), None)
    told = list(request.assumed)
    pick: Reasoned | None
    if pair:
        first = pair.parts[0]
        chosen = next(f for f in kept[0] if f.recipe.id == first.id)
        why = reasons(chosen, uses[0], request.constraints, facts.evidence, tongue)
        pick = Reasoned(id=first.id, why=why)
    else:
        told.append(say(tongue, "pair_none"))
        pick = _alone(both, uses[0], request, facts)
    if both:
        told.append(say(tongue, "pair_alone", id=both.recipe.id))
    out = {**sides[1].out, **sides[0].out}
    gone = [key for key in out if key in sides[0].out and key in sides[1].out]
    return found.model_copy(
        update={
            "pick": pick,
            "side_by_side": pair,
            "alternatives": (),
            "ruled_out": tuple(ruled(key, out[key]) for key in gone),
            "outgrown": None,
            "warnings": tuple(told),
            "next": f"sparkrecipes check {pick.id}" if pick else "sparkrecipes list",
        }
    )


def _alone(both: Candidate | None, use: UseCase, request: Request, facts: Facts) -> Reasoned | None:
    if both is None:
        return None
    why = reasons(both, use, request.constraints, facts.evidence, request.language)
    return Reasoned(id=both.recipe.id, why=why)
