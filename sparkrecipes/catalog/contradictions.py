"""Where publications contradict each other, found by rules, and what may explain it.

No contradiction is written down: figures of one model are compared between sets, and what differs
between the measurements is read from the sets. Which difference is the cause is not claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from sparkrecipes.catalog.differences import differences, faster, load, shown, way
from sparkrecipes.schema.contradiction import Contradiction, Reading
from sparkrecipes.schema.evidence import Evidence, EvidenceRow
from sparkrecipes.schema.readings import span

FAR_APART = 1.15
"""Figures of two sets that are further apart than this factor contradict each other. The round's
own spread between repeats is below 5 %, and prompts differ by more; 15 % is a choice."""

QUANTITY_APART = 1.015
"""The same for facts of the machine, which do not depend on a prompt."""

Sets = Mapping[str, Evidence]


def contradictions(model: str, own: Sequence[Reading], sets: Sets) -> tuple[Contradiction, ...]:
    """Find what contradicts among the published figures of a model.

    Args:
        model: The model.
        own: Its readings in all sets.
        sets: The evidence sets.
    """
    return (
        *_directions_of_quant(own, sets),
        *_directions_of_method(own, sets),
        *_levels(own, sets),
        *_counting(own, sets),
        *quantities({model}, sets),
    )


def by_set(found: Iterable[Reading]) -> dict[str, list[Reading]]:
    """Sort readings into their sets, in their order."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    for reading in found:
        groups[reading.evidence].append(reading)
    return dict(groups)


def _apart(side: Sequence[Reading], other: Sequence[Reading], factor: float) -> bool:
    """Say whether all figures of one side lie further than a factor from all of the other."""
    low, high = min(r.low for r in side), max(r.high for r in side)
    return min(r.low for r in other) > high * factor or low > factor * max(r.high for r in other)


def _ratios(pairs: Iterable[tuple[Reading, Reading]]) -> tuple[float, float]:
    """Give the least and the most that the first of each pair is to the second."""
    both = [(a.low / b.high, a.high / b.low) for a, b in pairs]
    return min(low for low, _ in both), max(high for _, high in both)


def _signs_differ(ratios: Iterable[tuple[float, float]]) -> bool:
    """Say whether one ratio is above 1 and another one below, each by all of its range."""
    known = tuple(ratios)
    return any(low > 1 for low, _ in known) and any(high < 1 for _, high in known)


def _levels(own: Sequence[Reading], sets: Sets) -> Iterator[Contradiction]:
    """Compare what is the same configuration as far as both sets state it.

    A set that does not state the weights or the speculation is compared with everything that it
    may mean.
    """
    keys = dict.fromkeys((r.quant, r.method, r.users) for r in own)
    for quant, method, users in keys:
        if quant is None and method is None:
            continue
        same = [
            r
            for r in own
            if r.users == users and quant in (None, r.quant) and method in (None, r.method)
        ]
        sides = by_set(same)
        if any(_apart(a, b, FAR_APART) for a, b in combinations(sides.values(), 2)):
            words = [quant or "weights not stated everywhere", way(method), load(users)]
            said = "; ".join(f"{key}: {shown(side)} tok/s" for key, side in sides.items())
            yield _between_sets("level", ", ".join(words), said, same, sets)


def _directions_of_quant(own: Sequence[Reading], sets: Sets) -> Iterator[Contradiction]:
    """Compare two kinds of weights inside each set: who is faster must not change."""
    quants = sorted({r.quant for r in own if r.quant})
    for first, second in combinations(quants, 2):
        ratios = {}
        used: list[Reading] = []
        for key, side in by_set(r for r in own if r.users == 1).items():
            pairs = [
                (a, b)
                for a in side
                for b in side
                if (b.quant, a.quant) == (first, second) and _comparable(a, b)
            ]
            if pairs:
                ratios[key] = _ratios(pairs)
                used += dict.fromkeys(r for pair in pairs for r in pair)
        if _signs_differ(ratios.values()):
            yield _direction(f"{second} against {first}", second, ratios, used, sets)


def _comparable(a: Reading, b: Reading) -> bool:
    """Say whether two readings of a set differ in their weights alone, as far as it states."""
    same_way = None in (a.method, b.method) or (a.method, a.draft_tokens) == (
        b.method,
        b.draft_tokens,
    )
    same_engine = None in (a.engine, b.engine) or a.engine == b.engine
    return same_way and same_engine and a.workload == b.workload


def _directions_of_method(own: Sequence[Reading], sets: Sets) -> Iterator[Contradiction]:
    """Compare a way of speculation with the best other configuration of each set and prompt."""
    for method in sorted({r.method for r in own if r.method} - {"none"}):
        ratios: dict[str, tuple[float, float]] = {}
        used: list[Reading] = []
        for key, side in by_set(r for r in own if r.users == 1).items():
            pairs = []
            for mine in (r for r in side if r.method == method):
                others = [r for r in side if r.method != method and r.workload == mine.workload]
                if others:
                    pairs.append((mine, max(others, key=lambda r: r.high)))
            if pairs:
                best = [max(pairs, key=lambda pair: pair[0].high / pair[1].high)]
                ratios[key] = _ratios(best)
                used += dict.fromkeys(r for pair in best for r in pair)
        if _signs_differ(ratios.values()):
            yield _direction(f"{method} against the best other", method, ratios, used, sets)


def _direction(
    what: str,
    name: str,
    ratios: Mapping[str, tuple[float, float]],
    used: Sequence[Reading],
    sets: Sets,
) -> Contradiction:
    said = "; ".join(f"{key}: {name} is {faster(ratio)}" for key, ratio in ratios.items())
    return _between_sets("direction", what, said, used, sets)


def _between_sets(
    kind: Literal["level", "direction"], what: str, said: str, used: Sequence[Reading], sets: Sets
) -> Contradiction:
    """Put figures of a model in several sets side by side, with what sets those apart."""
    return Contradiction(
        kind=kind,
        subject=f"{used[0].model}, {what}",
        says=said,
        readings=tuple(used),
        why=differences(used, sets),
    )


def _counting(own: Sequence[Reading], sets: Sets) -> Iterator[Contradiction]:
    """Count a doubted speed by its whole request too: answer tokens over all of its time."""
    for reading in own:
        if reading.users != 1 or not reading.doubts:
            continue
        found = sets[reading.evidence]
        row = next((row for row in found.rows if row.id == reading.row), None)
        whole = row and whole_request_tok_s(found, row)
        if whole:
            yield Contradiction(
                kind="counting",
                subject=f"{reading.row}, one user",
                says=(f"published {reading.low:g} tok/s; by its whole request at most {whole:.1f}"),
                readings=(reading,),
                why=reading.doubts,
            )


def whole_request_tok_s(found: Evidence, row: EvidenceRow) -> float | None:
    """Give the speed of one user over all of a request, at most; None where it cannot be had.

    The longest answer was ``n`` tokens. If they took ``n / speed`` after the first token, as
    printed, the request took that and the time to the first token.
    """
    tokens = found.conditions.max_answer_tokens if found.conditions else None
    speed, ttft = row.figures.single_user_tok_s, row.figures.ttft_ms
    if not tokens or not speed or ttft is None:
        return None
    return tokens / (tokens / speed + ttft / 1000)


def quantities(subjects: Collection[str], sets: Sets) -> Iterator[Contradiction]:
    """Compare the other figures of some subjects: a machine's memory, a model's size.

    Args:
        subjects: Ids of models or machines.
        sets: The evidence sets; they name a quantity by the same word, and call it what they like.
    """
    groups: dict[tuple[str, str, str], list[Reading]] = defaultdict(list)
    called: dict[str, str] = {}
    for found in sorted(sets.values(), key=lambda one: one.trust_rank):
        for one in found.quantities:
            if one.subject in subjects:
                low, high = span(one.value)
                called.setdefault(one.quantity, f"{one.what[0].lower()}{one.what[1:]}")
                groups[one.subject, one.quantity, one.unit].append(
                    Reading(
                        evidence=found.id,
                        row=one.id,
                        config=one.note or one.what,
                        model=None,
                        quant=None,
                        method=None,
                        draft_tokens=None,
                        workload=one.quantity,
                        users=1,
                        low=low,
                        high=high,
                        unit=one.unit,
                        engine=None,
                        engine_version=None,
                    )
                )
    for (subject, quantity, _unit), side in groups.items():
        pairs = combinations(by_set(side).values(), 2)
        if any(_apart(a, b, QUANTITY_APART) for a, b in pairs):
            said = "; ".join(f"{r.evidence}: {shown([r])} {r.unit}" for r in side)
            why = [f"{r.evidence}: {r.config}" for r in side]
            yield Contradiction(
                kind="quantity",
                subject=f"{subject}, {called[quantity]}",
                says=said,
                readings=tuple(side),
                why=tuple(why),
            )
