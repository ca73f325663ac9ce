"""Two recipes at once on one machine: fractions that sum, ports that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from sparkrecipes.recommendation.capacity import GIB
from sparkrecipes.recommendation.reasons import Sets, short_reasons
from sparkrecipes.recommendation.standing import Candidate, room_bytes
from sparkrecipes.recommendation.voice import say
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.recommendation import Constraints, Language, Part, SideBySide
from sparkrecipes.schema.use_case import UseCase

FIRST_PORT = 8000
MOST_TRIED = 8
"""Of each use the best so many are tried: further down a pair is no recommendation."""

Fractions = tuple[float, float]


def side_by_side(
    uses: tuple[UseCase, UseCase],
    kept: tuple[Sequence[Candidate], Sequence[Candidate]],
    asked: Constraints,
    sets: Sets,
    tongue: Language,
) -> SideBySide | None:
    """Choose the best two recipes whose sum fits; None where none does.

    The best pair has the least sum of places; among equals the better first recipe goes before.
    """
    tried = sorted(
        product(enumerate(kept[0][:MOST_TRIED]), enumerate(kept[1][:MOST_TRIED])),
        key=lambda pair: (pair[0][0] + pair[1][0], pair[0][0]),
    )
    for (_, first), (_, second) in tried:
        if first.recipe.id == second.recipe.id or not (first.estimate and second.estimate):
            continue
        room = room_bytes(first.estimate, asked)
        fractions = share(first.estimate, second.estimate, room)
        if fractions:
            return _told(uses, (first, second), fractions, asked, sets, tongue)
    return None


def share(first: MemoryEstimate, second: MemoryEstimate, room: float) -> Fractions | None:
    """Divide a room between two engines; None where their least does not fit.

    Each gets its recipe's own fraction where the sum allows it, else its least and a part of
    what is left, in proportion to what it would like more.
    """
    total = first.usable_bytes
    bounds = (_bounds(first), _bounds(second))
    if None in bounds:
        return None
    (low_a, own_a), (low_b, own_b) = (b for b in bounds if b is not None)
    budget = math.floor(room / total * 100) / 100
    if low_a + low_b > budget + 1e-9:
        return None
    want_a, want_b = max(own_a, low_a), max(own_b, low_b)
    if want_a + want_b <= budget + 1e-9:
        return want_a, want_b
    more_a, more_b = want_a - low_a, want_b - low_b
    scale = (budget - low_a - low_b) / (more_a + more_b)
    return _floor(low_a + more_a * scale), _floor(low_b + more_b * scale)


def _bounds(size: MemoryEstimate) -> Fractions | None:
    """Return the smallest fraction that serves what was asked, and the recipe's own."""
    least = size.min_gpu_memory_utilization
    if least is None or size.verdict == "unknown":
        return None
    own = size.reservation_bytes
    return least, least if own is None else own / size.usable_bytes


def _floor(fraction: float) -> float:
    return math.floor(fraction * 100 + 1e-9) / 100


def _told(
    uses: tuple[UseCase, UseCase],
    chosen: tuple[Candidate, Candidate],
    fractions: Fractions,
    asked: Constraints,
    sets: Sets,
    tongue: Language,
) -> SideBySide:
    parts = tuple(
        _part(use, found, fraction, FIRST_PORT + at, asked, sets, tongue)
        for at, (use, found, fraction) in enumerate(zip(uses, chosen, fractions, strict=True))
    )
    size = sized(chosen[0])
    total = sum(part.reservation_bytes for part in parts)
    reserve = size.components.host_reserve_bytes
    left = size.usable_bytes - reserve - total
    return SideBySide(
        parts=parts,
        total_bytes=total,
        usable_bytes=size.usable_bytes,
        left_bytes=left,
        notes=(
            say(
                tongue,
                "pair_sum",
                total=total / GIB,
                usable=size.usable_bytes / GIB,
                left=left / GIB,
                reserve=reserve / GIB,
            ),
            say(tongue, "pair_start", id=parts[0].id),
            say(tongue, "pair_speed"),
        ),
    )


def _part(
    use: UseCase,
    found: Candidate,
    fraction: float,
    port: int,
    asked: Constraints,
    sets: Sets,
    tongue: Language,
) -> Part:
    size = sized(found)
    return Part(
        use_case=use.id,
        id=found.recipe.id,
        port=port,
        context_tokens=size.context_tokens,
        users=size.users,
        gpu_memory_utilization=round(fraction, 4),
        reservation_bytes=round(fraction * size.usable_bytes),
        why=short_reasons(found, use, asked, sets, tongue),
    )


def sized(found: Candidate) -> MemoryEstimate:
    """Return the size of a recipe that was kept: what has none is ruled out before."""
    if found.estimate is None:
        raise ValueError(f"{found.recipe.id} was not sized")
    return found.estimate


def alone(kept: tuple[Sequence[Candidate], Sequence[Candidate]]) -> Iterator[Candidate]:
    """List the recipes that serve both uses, the best first."""
    places = {found.recipe.id: at for at, found in enumerate(kept[1])}
    both = [
        (at + places[f.recipe.id], at, f) for at, f in enumerate(kept[0]) if f.recipe.id in places
    ]
    for _, _, found in sorted(both, key=lambda one: one[:2]):
        yield found
