"""Audit: what published rows imply, recomputed; an inference from figures, not a measurement.

The published method divides all tokens by the time after the first one that it sees. Where it does
not see the first ones (reasoning under another name), its wait grows long and its speed too high,
both at once, while the total of four users, tokens over wall time, stays right. Such rows are found
from the figures alone, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkrecipes.reports.figures import PUBLISHED_USERS as USERS
from sparkrecipes.schema.evidence import Evidence, EvidenceRow, FigureName
from sparkrecipes.schema.report import AuditRow, PublishedAudit

TOKENS = 300
"""The most that a request of the published method may generate (its ``max_tokens``). With fewer
tokens every speed of a whole request below is lower still: it is an upper bound.

Source: https://github.com/ctala/local-llm-agentic-workflows/blob/c18ef0d9e5e53a7861353bdb8ee86cd150456089/benchmarks/standard-round/standard_round.py
"""

LONG_TOKENS = 46_000
"""About the size of the method's long prompt."""

SHORT_TOKENS = 100
"""More than the method's short prompt of some 40 words has in any tokenizer."""

OVERSTATED = 1.1
"""How far a speed may exceed that of the whole request.

It is 1 + speed x wait / 300. In the table of October 2026 18 of 23 rows lie between 1.00 and 1.04,
which is a wait of prefill alone, and the rest from 1.26 on: nothing lies in between.
"""

NOISE = 0.05
"""What the table does not tell apart: its rows miss what they must be by up to 4 %."""

BASIS = (
    f"Inference from published figures, not a measurement. A request of {TOKENS} tokens (the most "
    f"the method asks for) takes {TOKENS} / speed + TTFT. A row is flagged where its speed is more "
    f"than {OVERSTATED:g} times that of the whole request: tokens were counted whose time was not. "
    f"And where {USERS} users together get more than {USERS} times, or less than, what one gets of "
    f"a whole request, beyond {100 * NOISE:.0f} % of noise."
)

DOUBTED: tuple[FigureName, ...] = ("single_user_tok_s", "ttft_ms", "four_users_total_tok_s")


@dataclass(frozen=True)
class Implied:
    """What the figures of one row imply.

    Attributes:
        speed: Published tokens a second of one user.
        wait_s: Published TTFT, in seconds.
        total: Published tokens a second of four users together.
        long_s: Published wall time of the long prompt, or None.
    """

    speed: float
    wait_s: float
    total: float
    long_s: float | None

    @property
    def whole_s(self) -> float:
        """How long a whole request takes."""
        return TOKENS / self.speed + self.wait_s

    @property
    def whole_tok_s(self) -> float:
        """Tokens a second over the whole request."""
        return TOKENS / self.whole_s

    @property
    def overstated(self) -> float:
        """Published speed over that of the whole request."""
        return self.speed / self.whole_tok_s

    @property
    def scaling(self) -> float:
        """Total of four users over what one gets of a whole request."""
        return self.total / self.whole_tok_s


def audit(evidence: Iterable[Evidence]) -> PublishedAudit:
    """Recompute every row that was published by the October method.

    Args:
        evidence: Sets of published rows; those of other methods are not of this arithmetic.
    """
    rows, left_out = list[AuditRow](), list[str]()
    for found in evidence:
        for row in found.rows if found.method == "october" else ():
            if missing := [name for name in DOUBTED if not getattr(row.figures, name)]:
                left_out.append(f"{row.id}: no {', '.join(missing)}")
            else:
                rows.append(audited(row, found.id))
    flagged = tuple(row.recipe_id for row in rows if row.flagged)
    return PublishedAudit(
        basis=BASIS,
        rows=tuple(rows),
        flagged=flagged,
        unmarked=tuple(row.recipe_id for row in rows if row.flagged and not row.caveats),
        left_out=tuple(left_out),
    )


def audited(row: EvidenceRow, evidence_id: str) -> AuditRow:
    """Recompute one row that has all three figures."""
    figures = row.figures
    implied = Implied(
        speed=figures.single_user_tok_s or 0.0,
        wait_s=(figures.ttft_ms or 0.0) / 1000,
        total=figures.four_users_total_tok_s or 0.0,
        long_s=figures.long_prompt_46k_s,
    )
    reasons = [*why_overstated(implied), *why_not_scaling(implied)]
    return AuditRow(
        recipe_id=row.id,
        evidence=evidence_id,
        single_user_tok_s=implied.speed,
        ttft_ms=1000 * implied.wait_s,
        four_users_total_tok_s=implied.total,
        whole_request_s=round(implied.whole_s, 2),
        whole_request_tok_s=round(implied.whole_tok_s, 1),
        overstated=round(implied.overstated, 2),
        scaling=round(implied.scaling, 2),
        flagged=bool(reasons),
        caveats=marked(row),
        reasons=tuple(reasons),
        notes=tuple(notes(implied)),
    )


def marked(row: EvidenceRow) -> tuple[FigureName, ...]:
    """Return which of the figures recomputed here the catalog calls doubtful."""
    doubted = {name for caveat in row.caveats for name in caveat.figures}
    return tuple(name for name in DOUBTED if name in doubted)


def why_overstated(of: Implied) -> list[str]:
    """Say why the speed and the wait of one user cannot both be right; nothing where they can."""
    if of.overstated <= OVERSTATED:
        return []
    told = [
        f"one user: {TOKENS} / {of.speed:g} + {of.wait_s:g} s = {of.whole_s:.2f} s, and {TOKENS} "
        f"tokens in {of.whole_s:.2f} s are at most {of.whole_tok_s:.1f} tok/s: the published "
        f"{of.speed:g} is {of.overstated:.2f} times that: all tokens were divided by the time "
        f"after the wait, and the wait is {100 * of.wait_s / of.whole_s:.0f} % of the request",
        f"{USERS} users: {of.total:g} / {USERS} = {of.total / USERS:.1f} tok/s for each, which is "
        f"{100 * of.total / USERS / of.speed:.0f} % of the published speed of one and "
        f"{100 * of.total / USERS / of.whole_tok_s:.0f} % of {of.whole_tok_s:.1f}",
    ]
    if of.long_s:
        reading_s = SHORT_TOKENS * of.long_s / LONG_TOKENS
        told.append(
            f"reading is no reason for the wait: at the speed of its long prompt ({LONG_TOKENS:,} "
            f"tokens in {of.long_s:g} s) a short one of {SHORT_TOKENS} tokens takes "
            f"{reading_s:.2f} s, not {of.wait_s:g} s"
        )
    return told


def why_not_scaling(of: Implied) -> list[str]:
    """Say why the speed of one user and the total of four cannot both be right."""
    sum_ = f"{USERS} users: {of.total:g} / {of.whole_tok_s:.1f} = {of.scaling:.2f}"
    if of.scaling > USERS * (1 + NOISE):
        return [f"{sum_} times what one gets alone, and {USERS} cannot get more than {USERS} times"]
    if of.scaling < 1 - NOISE:
        return [f"{sum_} of what one gets alone: together they cannot get less than one"]
    return []


def notes(of: Implied) -> list[str]:
    """Say what is odd and may be noise."""
    if USERS < of.scaling <= USERS * (1 + NOISE):
        return [
            f"{USERS} users get {of.scaling:.2f} times what one gets, above {USERS} by less than "
            f"{100 * NOISE:.0f} %: noise, or answers of other lengths"
        ]
    return []
