"""Where nothing suits: what comes nearest, what to relax, and the way out of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sparkrecipes.recommendation.picking import Estimate, Facts, Sorted, candidate, ruled, sort_out
from sparkrecipes.recommendation.standing import Obstacle, standing
from sparkrecipes.recommendation.voice import ABILITIES, say, word
from sparkrecipes.schema.recommendation import (
    Constraints,
    Recommendation,
    Relaxation,
    Request,
)

MOST_NEAREST = 3
DROPPED = (
    "min_tok_s_per_user",
    "leave_free_gb",
    "free_now_gb",
    "licences",
    "engines",
    "modalities",
)
"""Wishes that are given up, not lowered."""
OUTGROWN_BY = frozenset(("memory", "min_tok_s_per_user", "leave_free_gb"))
"""Obstacles that more machines remove."""


def with_way_out(
    found: Recommendation, request: Request, side: Sorted, facts: Facts, estimate: Estimate
) -> Recommendation:
    """Add to an answer without a pick what comes nearest, what to relax, and where to go."""
    near = nearest(request, side, facts)
    relax = tuple(relaxations(request, facts, estimate))
    outgrown = None
    big = [key for key in near if {one.wish for one in side.out[key]} <= OUTGROWN_BY]
    if big:
        outgrown = say(request.language, "outgrown", id=big[0])
    return found.model_copy(
        update={
            "nearest": tuple(ruled(key, side.out[key]) for key in near),
            "relax": relax,
            "outgrown": outgrown,
            "next": f"sparkrecipes show {near[0]}" if near else "sparkrecipes list",
        }
    )


def nearest(request: Request, side: Sorted, facts: Facts) -> tuple[str, ...]:
    """List the recipes that fail the fewest wishes, in the order of their figures.

    A recipe that lacks what the use itself needs is none: it is no answer to that question.
    """
    asked = request.constraints
    able = {
        key: why
        for key, why in side.out.items()
        if not any(one.wish in ("use_case", "does_not_run", "unstable") for one in why)
    }

    def place(key: str) -> tuple[object, ...]:
        found = candidate(facts, facts.recipes[key])
        return (len(_wishes(able[key])), *standing(found, side.use, asked))

    return tuple(sorted(able, key=place)[:MOST_NEAREST])


def _wishes(why: tuple[Obstacle, ...]) -> set[str]:
    return {one.wish for one in why}


def relaxations(request: Request, facts: Facts, estimate: Estimate) -> Iterator[Relaxation]:
    """Try to give up or lower one wish at a time, and say what would then be picked.

    Of several values of one wish the first that does is told. Where no single wish helps, two are
    given up together.
    """
    found = list(_single(request, facts, estimate))
    yield from found
    yield from _senses_alone(request, facts, estimate)
    if not found:
        yield from _two(request, facts, estimate)


def _single(request: Request, facts: Facts, estimate: Estimate) -> Iterator[Relaxation]:
    done: set[str] = set()
    for wish, looser, told in looser_wishes(request.constraints, request):
        pick = None if wish in done else picked(request, looser, facts, estimate)
        if pick:
            done.add(wish)
            said = say(request.language, f"relax_{wish}", told, pick=pick)
            yield Relaxation(wish=wish, says=said, pick=pick)


def _two(request: Request, facts: Facts, estimate: Estimate) -> Iterator[Relaxation]:
    """Give up two wishes together, where no single one helps."""
    dropped = [one for one in looser_wishes(request.constraints, request) if one[0] in DROPPED]
    for (first, _, told), (second, looser, also) in combinations(dropped, 2):
        blank = {first: type(request.constraints)().model_dump()[first]}
        pick = picked(request, looser.model_copy(update=blank), facts, estimate)
        if pick:
            words = [
                say(request.language, f"relax_{w}", t, pick="").rstrip(": ")
                for w, t in ((first, told), (second, also))
            ]
            said = f"{', '.join(words)}: {pick}"
            yield Relaxation(wish=f"{first}, {second}", says=said, pick=pick)


def _senses_alone(request: Request, facts: Facts, estimate: Estimate) -> Iterator[Relaxation]:
    """Ask for what the words named alone: pictures, where the use needs sound and film too."""
    general = next((key for key, use in facts.use_cases.items() if use.general), None)
    if not request.senses or general is None:
        return
    needs = facts.use_cases[request.use_cases[0]].needs
    if set(request.senses) >= {need for need in needs if need != "text"}:
        return
    looser = request.constraints.model_copy(update={"modalities": request.senses})
    changed = request.model_copy(update={"use_cases": (general,)})
    pick = picked(changed, looser, facts, estimate)
    if pick:
        told = ", ".join(word(ABILITIES, one, request.language) for one in request.senses)
        said = say(request.language, "relax_use_case", told, pick=pick)
        yield Relaxation(wish="use_case", says=said, pick=pick)


def picked(request: Request, asked: Constraints, facts: Facts, estimate: Estimate) -> str | None:
    """Return what would be picked with other constraints, or None."""
    changed = request.model_copy(update={"constraints": asked})
    side = sort_out(facts, changed.use_cases[0], changed, estimate)
    return side.kept[0].recipe.id if side.kept else None


def looser_wishes(
    asked: Constraints, request: Request
) -> Iterator[tuple[str, Constraints, object]]:
    """List constraints with one wish less, the least loss first, each with what is given up."""
    users = asked.users
    for fewer in _halves(users):
        yield "users", asked.model_copy(update={"users": fewer}), fewer
    for shorter in _halves(asked.context_tokens, least=8192):
        yield "context_tokens", asked.model_copy(update={"context_tokens": shorter}), shorter
    for wish in ("min_tok_s_per_user", "leave_free_gb", "free_now_gb"):
        if (value := getattr(asked, wish)) is not None:
            yield wish, asked.model_copy(update={wish: None}), value
    for wish in ("licences", "engines"):
        if getattr(asked, wish):
            yield wish, asked.model_copy(update={wish: ()}), ""
    if asked.modalities:
        tongue = request.language
        told = ", ".join(word(ABILITIES, one, tongue) for one in asked.modalities)
        yield "modalities", asked.model_copy(update={"modalities": ()}), told


def _halves(value: int | None, least: int = 1) -> Iterator[int]:
    """Halve a number down to the least that makes sense."""
    while value is not None and value // 2 >= least:
        value //= 2
        yield value
