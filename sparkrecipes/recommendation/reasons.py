"""Why a recipe stands where it does, in words, with figures and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sparkrecipes.recommendation.capacity import GB, GIB, need_bytes, plan_memory
from sparkrecipes.recommendation.standing import (
    Candidate,
    basis,
    doubts,
    figure,
    place,
    rank_keys,
    room_bytes,
    speed_of,
    unnamed_languages,
)
from sparkrecipes.recommendation.voice import TONGUES, WORKLOADS, say, word
from sparkrecipes.schema.evidence import Evidence, WorkloadRow
from sparkrecipes.schema.recommendation import Constraints, Language
from sparkrecipes.schema.use_case import RankKey, UseCase

Sets = Mapping[str, Evidence]


def reasons(
    found: Candidate, use: UseCase, asked: Constraints, sets: Sets, tongue: Language
) -> tuple[str, ...]:
    """Say what speaks for a recipe and what against it, the deciding figures first."""
    keys = [key for key in rank_keys(use, asked) if figure(found, key.figure) is not None]
    return (
        *(_quoted(found, key, tongue) for key in keys),
        *_by_workload(found, use, sets, tongue),
        *standing_notes(found, asked, sets, tongue),
        *_loads_elsewhere(found, asked, sets, tongue),
        *_other_settings(found, asked, tongue),
    )


def short_reasons(
    found: Candidate, use: UseCase, asked: Constraints, sets: Sets, tongue: Language
) -> tuple[str, ...]:
    """Say the same in figures alone: what they mean is said once, with the pick."""
    keys = [key for key in rank_keys(use, asked) if figure(found, key.figure) is not None]
    told = []
    for key in keys:
        line = _said(key, figure(found, key.figure), tongue)
        caveats = "; ".join(caveat.text for caveat in doubts(found, key.figure))
        told.append(f"{line}; {say(tongue, 'doubtful', why=caveats)}" if caveats else line)
    return (*told, *standing_notes(found, asked, sets, tongue))


def standing_notes(
    found: Candidate, asked: Constraints, sets: Sets, tongue: Language
) -> tuple[str, ...]:
    """Say what is not a ranking figure: what is unknown, the speed asked for, the memory."""
    return (
        *_unmeasured(found, sets, tongue),
        *_not_to_be_had(found, tongue),
        *_positions(found, sets, tongue),
        *_wishes(found, asked, tongue),
        *_speed(found, asked, tongue),
        *_memory(found, tongue),
        *_fraction(found, asked, tongue),
    )


def ahead_of(
    first: Candidate, second: Candidate, use: UseCase, asked: Constraints, tongue: Language
) -> tuple[str, ...]:
    """Say by which figure the first of two recipes is better, where a sound figure decides."""
    for key in rank_keys(use, asked):
        ours, theirs = place(first, key), place(second, key)
        if ours != theirs:
            value = figure(second, key.figure)
            if value is None or theirs[0] != 0 or ours > theirs:
                return ()
            said = _said(key, value, tongue)
            return (say(tongue, "ahead_of", other=second.recipe.id, figure=said),)
    return ()


def free_now(kept: Sequence[Candidate], tongue: Language) -> tuple[str, ...]:
    """Say what the best recipe waits for on a busy machine, and what would fit at once.

    The order stays: a busy machine is no reason to recommend a lesser model silently.
    """
    short = _short_of_now(kept[0]) if kept else None
    if short is None:
        return ()
    fits = [found.recipe.id for found in kept if _fits_now(found)]
    instead = say(tongue, "fits_now", fits[0]) if fits else say(tongue, "none_fits_now")
    best = kept[0].recipe.id
    return (say(tongue, "free_first", id=best, short=short / GIB, instead=instead),)


def _quoted(found: Candidate, key: RankKey, tongue: Language) -> str:
    own = key.figure.startswith("params_") or found.row is None
    source = (
        say(tongue, "own_count")
        if own
        else say(tongue, "measured", evidence=found.row.evidence if found.row else "")
    )
    value = figure(found, key.figure)
    line = f"{_said(key, value, tongue)}: {key.why[tongue]} {source}"
    caveats = [caveat.text for caveat in doubts(found, key.figure)]
    told = say(tongue, "doubtful", why="; ".join(caveats)) if caveats else ""
    return f"{line}; {told}" if told else line


def _said(key: RankKey, value: float | None, tongue: Language) -> str:
    return say(tongue, key.figure, value)


def _by_workload(found: Candidate, use: UseCase, sets: Sets, tongue: Language) -> Iterator[str]:
    """Quote the measured speed on the kind of prompt that says most about the use."""
    for key, row in workload_rows(found, use.workload, sets):
        if row.temperature == 0:
            without, taken = row.without_speculation_tok_s, row.acceptance_pct
            yield say(
                tongue,
                "by_workload",
                tok_s=row.tok_s,
                workload=word(WORKLOADS, row.workload, tongue),
                without="" if without is None else say(tongue, "without", without),
                accepted="" if taken is None else say(tongue, "accepted", taken),
                evidence=key,
            )


def workload_rows(
    found: Candidate, workload: str | None, sets: Sets
) -> Iterator[tuple[str, WorkloadRow]]:
    """Find what was measured of a recipe on one kind of prompt."""
    for key, one in sets.items():
        for kinds in one.by_workload:
            if kinds.recipe == found.recipe.id:
                yield from ((key, row) for row in kinds.workloads if row.workload == workload)


def _positions(found: Candidate, sets: Sets, tongue: Language) -> Iterator[str]:
    """Warn of draft tokens beyond the last position whose acceptance was measured."""
    spec = found.recipe.speculative
    if spec is None:
        return
    for one in sets.values():
        for shares in one.acceptance_by_position:
            same = (shares.model, shares.speculation.method) == (found.recipe.model, spec.method)
            if same and spec.num_speculative_tokens > len(shares.positions):
                told = ", ".join(f"{s.position} {s.pct:g} %" for s in shares.positions)
                yield say(tongue, "position", shares=told, k=spec.num_speculative_tokens)


def _unmeasured(found: Candidate, sets: Sets, tongue: Language) -> Iterator[str]:
    if found.row is not None:
        return
    yield say(tongue, "untested")
    for near in found.recipe.resembles[:1]:
        name, _, row_id = near.row.partition("#")
        rows = sets[name].single_stream if name in sets else ()
        value = next((row.tok_s for row in rows if row.id == row_id), None)
        if value is not None:
            ends = value if isinstance(value, tuple) else (value,)
            told = "-".join(f"{end:g}" for end in ends) + " tok/s"
            yield say(tongue, "elsewhere", figure=told, row=near.row)


def _not_to_be_had(found: Candidate, tongue: Language) -> tuple[str, ...]:
    build = found.recipe.image.local_build
    return (say(tongue, "local_build", how=build.how),) if build else ()


def _wishes(found: Candidate, asked: Constraints, tongue: Language) -> Iterator[str]:
    """Say what is known of the languages and the licence asked for."""
    if asked.languages:
        unnamed = unnamed_languages(found.model, asked)
        shown = unnamed or asked.languages
        told = ", ".join(word(TONGUES, code, tongue) for code in shown)
        key = "language_unnamed" if unnamed else "language_named"
        yield say(tongue, key, languages=told)
    if asked.licences and found.model.licence is None:
        yield say(tongue, "licence_unknown")


def _speed(found: Candidate, asked: Constraints, tongue: Language) -> Iterator[str]:
    wanted = asked.min_tok_s_per_user
    if wanted is None:
        return
    speed, users = speed_of(found, asked), asked.users or 1
    if speed is None:
        yield say(tongue, "speed_unknown", users=users)
        return
    sure = speed.low >= wanted
    key = "speed_sure" if sure else "speed_maybe"
    yield say(
        tongue,
        key,
        users=users,
        low=speed.low,
        high=speed.high,
        basis=basis(speed.measured if sure else speed.high_measured, tongue),
        wanted=wanted,
    )


def _memory(found: Candidate, tongue: Language) -> tuple[str, ...]:
    size = found.estimate
    if size is None or size.total_bounds is None or size.verdict == "unknown":
        return (say(tongue, "memory_unknown"),)
    low, high = (bound / GIB for bound in size.total_bounds)
    usable = size.usable_bytes / GIB
    key = "tight" if size.verdict == "tight" else "fits"
    return (say(tongue, key, low=low, high=high, usable=usable),)


def _fraction(found: Candidate, asked: Constraints, tongue: Language) -> tuple[str, ...]:
    """Say what stays free, and the lower fraction that leaves it, where that was asked for."""
    size = found.estimate
    if size is None or (asked.leave_free_gb is None and asked.free_now_gb is None):
        return ()
    plan = plan_memory(size, room_bytes(size, asked))
    if plan is None:
        return ()
    room = size.usable_bytes - size.components.host_reserve_bytes
    takes, left = plan.takes_bytes / GB, (room - plan.takes_bytes) / GB
    told = (
        say(tongue, "leaves", takes=takes, left=left)
        if asked.free_now_gb is None
        else say(tongue, "takes_of_free", takes=takes, free=asked.free_now_gb)
    )
    lower = plan.gpu_memory_utilization
    if lower is None:
        return (told,)
    return (told, say(tongue, "lower_fraction", fraction=lower, id=found.recipe.id))


def _loads_elsewhere(
    found: Candidate, asked: Constraints, sets: Sets, tongue: Language
) -> Iterator[str]:
    """Quote another publication's load where more users are asked for than were measured here."""
    users = asked.users or 1
    if found.row is None or users <= found.row.row.users:
        return
    for key, one in sets.items():
        points = [
            (abs(point.users - users), at, point, ladder)
            for at, ladder in enumerate(one.ladders)
            for point in ladder.points
            if ladder.model == found.recipe.model and point.total_tok_s is not None
        ]
        if not points:
            continue
        _, _, point, near = min(points, key=lambda p: p[:2])
        each = point.per_user_tok_s
        told = "" if each is None else say(tongue, "each", each)
        late = point.latency_p95_s
        told += "" if late is None else say(tongue, "p95", late)
        row = f"{key}#{near.id}: {near.config}"
        total = point.total_tok_s
        yield say(tongue, "load_elsewhere", users=point.users, total=total, each=told, row=row)


def _other_settings(found: Candidate, asked: Constraints, tongue: Language) -> tuple[str, ...]:
    if found.row is None:
        return ()
    row, serving = found.row.row, found.recipe.serving
    measured = (row.context_tokens, row.users)
    wanted = (asked.context_tokens or serving.context_tokens, asked.users or serving.users)
    if wanted == measured:
        return ()
    (c, u), (wc, wu) = measured, wanted
    return (say(tongue, "other_settings", c=c, u=u, wc=wc, wu=wu),)


def _short_of_now(found: Candidate) -> int | None:
    """Return how many bytes must be freed first; None where nothing or not known.

    An engine that is told a fraction wants all of it free when it starts, needed or not.
    """
    size = found.estimate
    if size is None or size.verdict_now != "does_not_fit":
        return None
    if size.available_bytes is None or size.total_bytes is None:
        return None
    return max(max(need_bytes(size), size.reservation_bytes or 0) - size.available_bytes, 0)


def _fits_now(found: Candidate) -> bool:
    return found.estimate is not None and found.estimate.verdict_now == "fits"
