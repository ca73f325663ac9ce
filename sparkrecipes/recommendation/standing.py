"""Where a recipe stands: what rules it out, and what puts one before another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkrecipes.recommendation.capacity import (
    GB,
    GIB,
    Speed,
    least_bytes,
    plan_memory,
    speed_for,
)
from sparkrecipes.recommendation.voice import abilities, say
from sparkrecipes.schema.evidence import Caveat, DoesNotRunEntry
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.recommendation import Constraints, Language
from sparkrecipes.schema.use_case import RankKey, UseCase

METHOD = "october"
"""The one method whose figures rank recipes: figures of two are never ranked together."""

RATIOS = {"single_user_tok_s_per_memory_gb": ("single_user_tok_s", "memory_gb")}
"""Figures that are made of two published ones."""

MANY_USERS = 3
"""From here on the measured load of four is nearer than that of one."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A recipe with the facts that decide.

    Attributes:
        recipe: The recipe.
        model: What it serves.
        row: Its published figures by the method that ranks, or None.
        estimate: Its memory at the settings asked for; None where it is ruled out unsized.
    """

    recipe: Recipe
    model: Model
    row: PublishedRow | None
    estimate: MemoryEstimate | None = None


class Obstacle(NamedTuple):
    """What rules a recipe out."""

    wish: str
    """The constraint that it fails, or what it fails by itself."""
    says: str


def obstacles(
    found: Candidate,
    use: UseCase,
    asked: Constraints,
    entries: tuple[DoesNotRunEntry, ...],
    tongue: Language,
) -> tuple[Obstacle, ...]:
    """Say why a recipe is ruled out, as far as its memory need not be known.

    Hard needs come before any speed: a window that is too small or a missing sense is not made
    up for by tokens a second.

    Source: the case of a 16K recipe on which every task of an agent failed
    (https://github.com/aarora79/agentic-coding-harness-benchmarks/pull/7).
    """
    return tuple(
        obstacle
        for finder in (_unable, _too_short, _other_wishes)
        for obstacle in finder(found, use, asked, tongue)
    ) + tuple(_known_not_to_run(found, asked, entries, tongue))


def _unable(
    found: Candidate, use: UseCase, asked: Constraints, tongue: Language
) -> Iterator[Obstacle]:
    has = found.recipe.capabilities
    for wish, needs in (("use_case", use.needs), ("modalities", asked.modalities)):
        missing = [n for n in needs if n not in has and not (wish != "use_case" and n in use.needs)]
        if missing:
            yield Obstacle(wish, say(tongue, "does_not", abilities=abilities(missing, tongue)))


def _too_short(
    found: Candidate, use: UseCase, asked: Constraints, tongue: Language
) -> Iterator[Obstacle]:
    set_for = found.recipe.serving.context_tokens
    reach = max(set_for, found.model.context_tokens)
    wanted, need = asked.context_tokens, use.min_context_tokens or 0
    if wanted is not None and wanted > reach:
        yield Obstacle("context_tokens", say(tongue, "reach", has=reach, needs=wanted))
    elif wanted is None and set_for < need:
        yield Obstacle("use_case", say(tongue, "too_short", has=set_for, needs=need))


def _other_wishes(
    found: Candidate, _use: UseCase, asked: Constraints, tongue: Language
) -> Iterator[Obstacle]:
    engine, licence = found.recipe.engine, found.model.licence
    if asked.engines and engine not in asked.engines:
        wanted = ", ".join(asked.engines)
        yield Obstacle("engines", say(tongue, "engine", has=engine, wanted=wanted))
    if asked.licences and licence and not licence_is(licence, asked.licences):
        wanted = ", ".join(asked.licences)
        yield Obstacle("licences", say(tongue, "licence", has=licence, wanted=wanted))


def licence_is(licence: str, wanted: tuple[str, ...]) -> bool:
    """Say whether a licence is one of those wanted, by a word that it holds."""
    return any(one.casefold() in licence.casefold() for one in wanted)


def _known_not_to_run(
    found: Candidate, asked: Constraints, entries: tuple[DoesNotRunEntry, ...], tongue: Language
) -> Iterator[Obstacle]:
    for entry in entries:
        if entry.concerns(found.recipe, context_tokens=asked.context_tokens, users=asked.users):
            yield Obstacle("does_not_run", say(tongue, "does_not_run", why=entry.why))
    if found.row and found.row.row.figures.stable is False:
        yield Obstacle("unstable", say(tongue, "unstable", evidence=found.row.evidence))


def misfits(found: Candidate, asked: Constraints, tongue: Language) -> tuple[Obstacle, ...]:
    """Say why a sized recipe is ruled out: its memory, what must stay free, its speed."""
    size = found.estimate
    if size is None:
        return ()
    if size.verdict == "does_not_fit":
        return (Obstacle("memory", _too_large(size, tongue)),)
    return (*_leaves_too_little(size, asked, tongue), *_too_slow(found, asked, tongue))


def _too_large(size: MemoryEstimate, tongue: Language) -> str:
    low = size.total_bounds[0] / GIB if size.total_bounds else None
    users = size.max_users_at_context
    return say(
        tongue,
        "too_large",
        context=size.context_tokens,
        users=size.users,
        need="" if low is None else say(tongue, "need_at_least", low),
        usable=size.usable_bytes / GIB,
        less=say(tongue, "less_users", users) if users else "",
    )


def _leaves_too_little(
    size: MemoryEstimate, asked: Constraints, tongue: Language
) -> Iterator[Obstacle]:
    least = least_bytes(size)
    takes = None if least is None else least / GB
    leave, free = asked.leave_free_gb, asked.free_now_gb
    stay = asked.model_copy(update={"free_now_gb": None})
    if leave is not None and plan_memory(size, room_bytes(size, stay)) is None:
        room = (size.usable_bytes - size.components.host_reserve_bytes) / GB
        if takes is None:
            yield Obstacle("leave_free_gb", say(tongue, "memory_unknown"))
        else:
            left = max(room - takes, 0.0)
            said = say(tongue, "leaves_too_little", takes=takes, left=left, wanted=leave)
            yield Obstacle("leave_free_gb", said)
    if free is not None and plan_memory(size, free * GB) is None:
        if takes is None:
            yield Obstacle("free_now_gb", say(tongue, "memory_unknown"))
        else:
            short = max(takes - free, 0.0)
            said = say(tongue, "free_too_little", takes=takes, free=free, short=short)
            yield Obstacle("free_now_gb", said)


def room_bytes(size: MemoryEstimate, asked: Constraints) -> float:
    """Give what engines may take: what is free, less the host's part and what must stay free."""
    usable = size.usable_bytes - size.components.host_reserve_bytes
    room = usable - (asked.leave_free_gb or 0.0) * GB
    return room if asked.free_now_gb is None else min(room, asked.free_now_gb * GB)


def _too_slow(found: Candidate, asked: Constraints, tongue: Language) -> Iterator[Obstacle]:
    """Rule out what cannot be so fast, and what nobody measured and is not sure to be.

    Where a recipe was measured, a forecast for more users may leave the wish open; where it was
    not, the upper end of a range is no reason to pick it.
    """
    speed = speed_of(found, asked)
    wanted = asked.min_tok_s_per_user
    if wanted is None or speed is None or (speed.high >= wanted and found.row):
        return
    if speed.low < wanted:
        said = say(
            tongue,
            "too_slow" if speed.high < wanted else "speed_unsure",
            low=speed.low,
            high=speed.high,
            users=asked.users or 1,
            basis=basis(speed.high_measured, tongue),
            wanted=wanted,
        )
        yield Obstacle("min_tok_s_per_user", said)


def speed_of(found: Candidate, asked: Constraints) -> Speed | None:
    """Say how fast each user asked for is; one where no number was asked for."""
    forecast = found.estimate.forecast if found.estimate else None
    return speed_for(found.row, forecast, asked.users or 1)


def basis(measured: bool, tongue: Language) -> str:
    """Say whether a speed was measured or estimated."""
    return say(tongue, "basis_measured" if measured else "basis_estimated")


def unnamed_languages(model: Model, asked: Constraints) -> tuple[str, ...]:
    """Return the languages asked for that no source names for a model."""
    return tuple(code for code in asked.languages if code not in (model.languages or ()))


def standing(found: Candidate, use: UseCase, asked: Constraints) -> tuple[object, ...]:
    """Return the sort key of a recipe: the best is the smallest.

    What can be had and was measured comes first: an image that no registry has, a licence or a
    language that no source states, figures that nobody published and memory that nobody knows
    rank last, whatever they promise. Then each ranking key decides where those before it are
    equal, a doubtful figure after every sound one.

    Source: a derived configuration that was recommended as if measured was 2.1 times slower than
    none (https://github.com/sgl-project/sglang/pull/37456).
    """
    tiers = (
        found.recipe.image.local_build is not None,
        bool(asked.licences) and found.model.licence is None,
        bool(unnamed_languages(found.model, asked)),
        found.row is None,
        _speed_tier(found, asked),
        found.estimate is None or found.estimate.verdict == "unknown",
    )
    keys = rank_keys(use, asked)
    return (*tiers, *(place(found, key) for key in keys), found.recipe.id)


def _speed_tier(found: Candidate, asked: Constraints) -> int:
    """Put a measured speed that suffices before one that may do, and that before an unknown one.

    A forecast is too wide to put one recipe before another: it rules out, and no more.
    """
    if asked.min_tok_s_per_user is None:
        return 0
    speed = speed_of(found, asked)
    if speed is None:
        return 2
    return 0 if speed.measured and speed.low >= asked.min_tok_s_per_user else 1


def rank_keys(use: UseCase, asked: Constraints) -> tuple[RankKey, ...]:
    """Return the ranking keys; for many users the load of four goes before that of one."""
    keys = list(use.rank_by)
    names = [key.figure for key in keys]
    if (asked.users or 1) >= MANY_USERS and "four_users_total_tok_s" in names:
        many = names.index("four_users_total_tok_s")
        if "single_user_tok_s" in names[:many]:
            keys.insert(names.index("single_user_tok_s"), keys.pop(many))
    return tuple(keys)


def place(found: Candidate, key: RankKey) -> tuple[int, float]:
    """Return the place of a recipe by one key: sound figures, then doubtful ones, then none."""
    value = figure(found, key.figure)
    if value is None:
        return (2, 0.0)
    return (1 if doubts(found, key.figure) else 0, -value if key.better == "highest" else value)


def figure(found: Candidate, name: str) -> float | None:
    """Return a figure of a recipe in its own unit; None where nobody published it."""
    if name.startswith("params_"):
        value: float | None = getattr(found.model, name)
        return value
    if found.row is None:
        return None
    values = [getattr(found.row.row.figures, part) for part in RATIOS.get(name, (name,))]
    if None in values or (len(values) > 1 and not values[1]):
        return None
    return float(values[0]) / (float(values[1]) if len(values) > 1 else 1.0)


def doubts(found: Candidate, name: str) -> tuple[Caveat, ...]:
    """Return the caveats of a figure, or of those that it is made of."""
    if found.row is None:
        return ()
    parts = set(RATIOS.get(name, (name,)))
    return tuple(caveat for caveat in found.row.row.caveats if parts.intersection(caveat.figures))
