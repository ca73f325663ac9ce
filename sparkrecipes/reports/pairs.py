"""Pairs: a second round against a first one, by the true figures of both.

An upgrade of an engine, another setting, or another recipe. A difference is one where the ranges
of the repeats lie apart and the medians differ by more than the rounds' own noise; what differs in
the conditions is said beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from sparkrecipes.reports.comparison import HEADS, VOIDS, WIDEST_SPREAD, why_unstable
from sparkrecipes.reports.figures import ladder, warning_codes
from sparkrecipes.schema.report import (
    Condition,
    FigureVerdict,
    PairRow,
    RoundComparison,
    RoundSide,
    Verdict,
)
from sparkrecipes.schema.round import Round, Spread

NOISE = 0.03
"""Medians that differ by less are no difference, however narrow their ranges."""

SURE = 10.0
"""Per cent from which one pair of rounds suffices: a restart alone may move speed by some."""


@dataclass(frozen=True)
class Measure:
    """One true figure of a round.

    Attributes:
        name: Its name in the round.
        says: Its name for people.
        unit: Its unit.
        better: Which way is faster.
        of: Takes it from a round.
        decides: Whether it decides the verdict of the whole.
    """

    name: str
    says: str
    unit: str
    better: Literal["higher", "lower"]
    of: Callable[[Round], Spread | None]
    decides: bool = False


def of_single(name: str) -> Callable[[Round], Spread | None]:
    """Take a figure of one user; none where the answers say nothing of speed."""

    def take(round_: Round) -> Spread | None:
        single = round_.single
        return getattr(single, name) if single and single.comparable else None

    return take


def of_long(name: str) -> Callable[[Round], Spread | None]:
    """Take a figure of the long prompt; none where a cache answered part of it."""

    def take(round_: Round) -> Spread | None:
        cached = "cached_long_prompt" in warning_codes(round_)
        return getattr(round_.long_prompt, name, None) if not cached else None

    return take


MEASURES = (
    Measure("decode_tok_s", "one user", "tok/s", "higher", of_single("decode_tok_s"), True),
    Measure("e2e_tok_s", "one user, whole request", "tok/s", "higher", of_single("e2e_tok_s")),
    Measure("ttft_ms", "first token", "ms", "lower", of_single("ttft_ms")),
    Measure("ttfo_ms", "first output", "ms", "lower", of_single("ttfo_ms")),
    Measure("long_wall_s", "46K prompt", "s", "lower", of_long("wall_s_spread"), True),
    Measure(
        "prefill_tok_s", "46K prompt, prefill", "tok/s", "higher", of_long("prefill_tok_s_spread")
    ),
)


def compare_pair(
    before: Round, after: Round, files: tuple[str | None, str | None] = (None, None)
) -> RoundComparison:
    """Compare a second round with a first one.

    Args:
        before: The first: what is judged against.
        after: The second: what is judged.
        files: Where they are saved.

    Returns:
        ``unstable`` after a failed request or restart in either; ``not_comparable`` where nothing
        that decides can be compared; ``slower`` where any deciding figure of the second is, else
        ``faster`` where any is, else ``matches``.
    """
    reason = why_nothing(before, after)
    rows = tuple(rows_of(before, after, reason))
    verdict = overall(before, after, rows)
    conditions = tuple(differing(before, after))
    return RoundComparison(
        verdict=verdict,
        summary=summary(verdict, before, after, rows, reason),
        before=RoundSide(name=name_of(before), started_at=before.started_at, file=files[0]),
        after=RoundSide(name=name_of(after), started_at=after.started_at, file=files[1]),
        simulated=before.simulated or after.simulated,
        rows=rows,
        conditions=conditions,
        warnings=tuple(warnings(before, after, rows, conditions)),
    )


def why_nothing(before: Round, after: Round) -> str:
    """Say why no figure of two rounds can be compared; nothing where some can."""
    if before.method != after.method:
        return f"one was measured by the method {before.method}, the other by {after.method}"
    if before.simulated != after.simulated:
        return "one of them is a rehearsal, which says nothing of a machine"
    for word, round_ in (("first", before), ("second", after)):
        codes = warning_codes(round_)
        for code, text in VOIDS.items():
            if code in codes:
                return f"the {word} round says nothing: {text}"
    return ""


def rows_of(before: Round, after: Round, reason: str) -> Iterator[PairRow]:
    """Yield each figure that at least one of the rounds has."""
    for measure in [*MEASURES, *steps_of(before, after), SUSTAINED]:
        one, two = measure.of(before), measure.of(after)
        if one or two:
            yield row_of(measure, one, two, reason)


def steps_of(before: Round, after: Round) -> Iterator[Measure]:
    """Yield the total of each number of users that either round measured."""
    steps = {key: None for round_ in (before, after) for key in ladder(round_)}
    both = set(ladder(before)) & set(ladder(after))
    for scenario, users in sorted(steps, key=lambda key: (key[0] or "", key[1])):
        kind = f"{scenario}, " if scenario else ""
        count = "one user" if users == 1 else f"{users} users"
        yield Measure(
            f"{scenario or 'users'}_{users}_aggregate_tok_s",
            f"{kind}{count} together",
            "tok/s",
            "higher",
            total_of(scenario, users),
            decides=(scenario, users) in both,
        )


def total_of(scenario: str | None, users: int) -> Callable[[Round], Spread | None]:
    """Take the total of so many users."""

    def take(round_: Round) -> Spread | None:
        step = ladder(round_).get((scenario, users))
        return step.aggregate_tok_s if step else None

    return take


def minutes_of(round_: Round) -> Spread | None:
    """Take the sustained load as the spread of its minutes, the first one left out."""
    run = round_.sustained
    if run is None or run.tok_s is None:
        return None
    known = run.per_minute_tok_s[1:] or (run.tok_s,)
    return Spread(median=run.tok_s, min=min(known), max=max(known), n=len(known))


SUSTAINED = Measure("sustained_tok_s", "sustained load", "tok/s", "higher", minutes_of)


def row_of(measure: Measure, one: Spread | None, two: Spread | None, reason: str) -> PairRow:
    """Set one figure of both rounds side by side."""
    verdict: FigureVerdict = "not_comparable"
    note, difference = reason, None
    if one and two and one.median > 0 and two.median > 0:
        difference = round(100 * (two.median / one.median - 1), 1)
        if not reason:
            verdict, note = judged(measure, one, two)
    elif not reason:
        note = "only one of the rounds has it" if not (one and two) else "one of them is 0"
    return PairRow(
        figure=measure.name,
        says=measure.says,
        unit=measure.unit,
        better=measure.better,
        decides=measure.decides,
        before=one,
        after=two,
        difference_pct=difference,
        verdict=verdict,
        note=note,
    )


def judged(measure: Measure, one: Spread, two: Spread) -> tuple[FigureVerdict, str]:
    """Return the verdict of the second figure and a note; the same both ways but for its sign."""
    ratio = max(one.median / two.median, two.median / one.median)
    if ratio <= 1 + NOISE:
        return "matches", ""
    if two.min <= one.max and one.min <= two.max:
        return "matches", "within the spread of the repeats"
    if min(one.n or 1, two.n or 1) < 2 and ratio <= 1 + WIDEST_SPREAD:
        return "not_comparable", "measured once, so that its spread is not known: repeat it"
    return ("faster" if (two.median > one.median) == (measure.better == "higher") else "slower"), ""


def deciding(rows: tuple[PairRow, ...]) -> list[PairRow]:
    """Return the rows that decide."""
    return [row for row in rows if row.decides and row.verdict != "not_comparable"]


def overall(before: Round, after: Round, rows: tuple[PairRow, ...]) -> Verdict:
    """Return the verdict of the whole."""
    if is_unstable(before) or is_unstable(after):
        return "unstable"
    seen = {row.verdict for row in deciding(rows)}
    order: tuple[FigureVerdict, ...] = ("slower", "faster", "matches")
    return next((verdict for verdict in order if verdict in seen), "not_comparable")


def is_unstable(round_: Round) -> bool:
    """Say whether a request failed, the server restarted, or the stability part did not pass."""
    stability = round_.stability
    return bool(stability.failed or stability.restarted or round_.stable is False)


SAYS = {
    "matches": "The second round is as fast as the first",
    "slower": "The second round is slower",
    "faster": "The second round is faster",
    "not_comparable": "The two rounds cannot be compared",
    "unstable": HEADS["unstable"],
}


def summary(
    verdict: str, before: Round, after: Round, rows: tuple[PairRow, ...], reason: str
) -> str:
    """Say the verdict in a sentence."""
    head = SAYS[verdict]
    if before.simulated and after.simulated:
        head = f"Simulated: {head[0].lower()}{head[1:]}"
    if verdict == "unstable":
        which = [
            f"the {word} round: {why_unstable(round_)}"
            for word, round_ in (("first", before), ("second", after))
            if is_unstable(round_)
        ]
        return f"{head}: {'; '.join(which)}."
    if verdict == "not_comparable":
        first = next((row.note for row in rows if row.note), "")
        return f"{head}: {reason or first or 'nothing that decides was measured in both'}."
    told = [row for row in deciding(rows) if row.verdict == verdict]
    if verdict == "matches":
        return f"{head}: no difference in {', '.join(row.says for row in told)}."
    return f"{head}: {'; '.join(map(in_words, told))}."


def in_words(row: PairRow) -> str:
    """Say one figure of both rounds."""
    change = f", {row.difference_pct:+.1f} %" if row.verdict != "matches" else ""
    return f"{row.says} {middle(row.after)} {row.unit} (before {middle(row.before)}{change})"


def middle(spread: Spread | None) -> str:
    """Write a median, or a dash where there is none."""
    return "-" if spread is None else f"{spread.median:,.4g}"


def name_of(round_: Round) -> str:
    """Name a round by its recipe or model, and its engine."""
    server = round_.server
    engine = " ".join(filter(None, (server.engine, server.engine_version)))
    return f"{round_.recipe_id or server.model}{f' ({engine})' if engine else ''}"


def differing(before: Round, after: Round) -> Iterator[Condition]:
    """Yield what was not the same in both rounds."""
    for name, take in CONDITIONS.items():
        one, two = take(before), take(after)
        if one != two:
            yield Condition(condition=name, before=one, after=two)


def said(value: object) -> str | None:
    """Write a condition; what is not known stays unknown."""
    return None if value is None else f"{value:,}" if isinstance(value, int) else str(value)


CONDITIONS: dict[str, Callable[[Round], str | None]] = {
    "method": lambda round_: round_.method,
    "simulated": lambda round_: "yes" if round_.simulated else "no",
    "recipe": lambda round_: round_.recipe_id,
    "model": lambda round_: round_.server.model,
    "engine": lambda round_: round_.server.engine,
    "engine version": lambda round_: round_.server.engine_version,
    "context, tokens": lambda round_: said(round_.server.context_tokens),
    "users": lambda round_: said(round_.concurrent.users if round_.concurrent else None),
    "machine": lambda round_: said((round_.machine or {}).get("id")),
    "tool version": lambda round_: round_.tool_version,
}


def warnings(
    before: Round, after: Round, rows: tuple[PairRow, ...], conditions: tuple[Condition, ...]
) -> Iterator[str]:
    """Yield what to keep in mind beside the verdict."""
    names = {condition.condition for condition in conditions}
    if names & {"model"}:
        yield "two models, two tokenizers: equal tok/s are not equal amounts of text"
    if names & {"context, tokens"}:
        yield "the servers hold contexts of different lengths, which moves memory and scheduling"
    if names & {"machine"}:
        yield "they were measured on different machines"
    if len({row.verdict for row in deciding(rows)} & {"slower", "faster"}) > 1:
        yield "some speeds are slower and some faster"
    told = [row for row in deciding(rows) if row.verdict != "matches"]
    small = [row.says for row in told if abs(row.difference_pct or 0.0) < SURE]
    if small:
        yield f"under {SURE:.0f} % a restart may explain it; restart and repeat: {', '.join(small)}"
    left = [row.says for row in rows if row.decides and row.verdict == "not_comparable"]
    if deciding(rows) and left:
        yield f"the verdict rests on less than all speeds: without {', '.join(left)}"
    for word, round_ in (("first", before), ("second", after)):
        for warning in round_.warnings:
            yield f"{word} round: {warning}"
