"""Comparison: like with like, and no difference where the noise is as large.

Only figures of the published method are set beside published ones: a round reads them from its
own bytes or from a pass of exactly that method. The true figures stand beside them.
"""

from __future__ import annotations

from typing import Literal

from sparkrecipes.reports.figures import (
    FIGURES,
    Figure,
    caveat_of,
    measured_range,
    true_spread,
    warning_codes,
    why_not,
)
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.round import Report, ReportRow, Round

Verdict = Literal["matches", "slower", "faster", "not_comparable"]

NOISE = 0.05
"""Ratio below which two figures are not told apart.

The published table is a median of 3 requests and one burst, and has rows that differ from what
they must be by up to 4 %: differences under about 5 % are noise.
"""

WIDEST_SPREAD = 0.15
"""Repeats that differ by more than this cannot show that there is no difference."""

VOIDS = {
    "other_traffic": "somebody else used the server meanwhile",
    "wrong_model": "another model answered",
    "garbage_output": "the answers are no words",
    "wedged": "the server stopped giving tokens",
    "host_degraded": "the machine ran with lowered clocks",
}
"""Warnings of a round after which none of its figures says anything of the recipe."""


def compare(round_: Round, row: EvidenceRow | None, *, recipe_id: str | None) -> Report:
    """Compare a round with a published row.

    Args:
        round_: What was measured.
        row: What is published of the same configuration, or None.
        recipe_id: Whose row it is.

    Returns:
        ``unstable`` after any failed request or restart; ``not_comparable`` where nothing that
        decides can be compared; ``slower`` where any deciding figure is, else ``faster`` where
        any is, else ``matches``.
    """
    reason = why_nothing(round_, row)
    rows = tuple(row_of(figure, round_, row, reason) for figure in FIGURES)
    deciding = deciding_rows(rows, row)
    verdict = overall(round_, deciding)
    return Report(
        verdict=verdict,
        recipe_id=recipe_id,
        simulated=round_.simulated,
        summary=summary(verdict, round_, rows, deciding, reason),
        rows=rows,
        warnings=tuple(warnings(round_, row, rows, deciding, recipe_id)),
    )


def why_nothing(round_: Round, row: EvidenceRow | None) -> str:
    """Say why no figure of a round can be compared; nothing where some can."""
    if row is None:
        return "there is no published row for this configuration"
    if round_.method != "october":
        return f"it was measured by the method {round_.method}, and october was published"
    context = round_.server.context_tokens
    if context is not None and context != row.context_tokens:
        return f"the server holds {context:,} tokens, and {row.context_tokens:,} were published"
    if round_.smoke and round_.smoke.words is False:
        return f"the answers are no words ({round_.smoke.message})"
    codes = warning_codes(round_)
    return next((text for code, text in VOIDS.items() if code in codes), "")


def row_of(figure: Figure, round_: Round, row: EvidenceRow | None, reason: str) -> ReportRow:
    """Set one figure beside the published one."""
    published = getattr(row.figures, figure.name) if row else None
    measured = getattr(round_.published_method, figure.name)
    spread = true_spread(figure, round_)
    note = reason or (why_not(figure, round_, row) if row else "")
    verdict: Verdict = "not_comparable"
    between = measured_range(measured, spread) if measured else None
    if not note and published and measured:
        verdict, note = judged(figure, measured, published, between)
    if row and verdict != "not_comparable" and (doubt := caveat_of(figure, row)):
        note = f"does not decide: {doubt}"
    return ReportRow(
        figure=figure.name,
        unit=figure.unit,
        better=figure.better,
        published=published,
        measured=None if measured is None else round(measured, 2),
        measured_range=between,
        true_value=round(spread.median, 2) if spread else None,
        difference_pct=round(100 * (measured / published - 1), 1)
        if measured and published
        else None,
        verdict=verdict,
        note=note,
    )


def judged(
    figure: Figure, measured: float, published: float, between: tuple[float, float] | None
) -> tuple[Verdict, str]:
    """Return the verdict of one figure and a note; the same both ways but for its sign."""
    ratio = max(measured / published, published / measured)
    spread = max(between[1] / measured, measured / between[0]) - 1 if between else 0.0
    if abs(measured - published) <= figure.floor or ratio <= 1 + NOISE:
        return "matches", ""
    if ratio <= 1 + spread:
        if spread > WIDEST_SPREAD:
            return "not_comparable", f"its own repeats differ by {100 * spread:.0f} %: repeat it"
        return "matches", "within the spread of its own repeats"
    return ("faster" if (measured > published) == (figure.better == "higher") else "slower"), ""


def deciding_rows(rows: tuple[ReportRow, ...], row: EvidenceRow | None) -> list[ReportRow]:
    """Return the rows that decide: comparable speeds that nobody doubts."""
    decides = {f.name for f in FIGURES if f.decides and not (row and caveat_of(f, row))}
    return [r for r in rows if r.figure in decides and r.verdict != "not_comparable"]


def overall(round_: Round, deciding: list[ReportRow]) -> Literal[Verdict, "unstable"]:
    """Return the verdict of the whole."""
    stability = round_.stability
    if stability.failed or stability.restarted or round_.stable is False:
        return "unstable"
    verdicts = {row.verdict for row in deciding}
    order: tuple[Verdict, ...] = ("slower", "faster", "matches")
    return next((verdict for verdict in order if verdict in verdicts), "not_comparable")


HEADS = {
    "matches": "As fast as published",
    "slower": "Slower than published",
    "faster": "Faster than published",
    "not_comparable": "Not comparable with published figures",
    "unstable": "Unstable",
}


def summary(
    verdict: str,
    round_: Round,
    rows: tuple[ReportRow, ...],
    deciding: list[ReportRow],
    reason: str,
) -> str:
    """Say the verdict in a sentence."""
    head = f"Simulated: {HEADS[verdict].lower()}" if round_.simulated else HEADS[verdict]
    if verdict == "unstable":
        return f"{head}: {why_unstable(round_)}."
    if verdict == "not_comparable":
        first = next((row.note for row in rows if row.note), "")
        return f"{head}: {reason or first or 'nothing that decides was measured'}."
    told = [row for row in deciding if row.verdict == verdict] or deciding
    return f"{head}: {'; '.join(in_words(row) for row in told)}."


def in_words(row: ReportRow) -> str:
    """Say one figure beside the published one."""
    says = next(figure.says for figure in FIGURES if figure.name == row.figure)
    difference = f", {row.difference_pct:+.1f} %" if row.verdict != "matches" else ""
    return f"{says} {row.measured:g} {row.unit} (published {row.published:g}{difference})"


def why_unstable(round_: Round) -> str:
    """Say what made a round unstable."""
    stability = round_.stability
    if stability.failed:
        first = f", the first: {stability.errors[0]}" if stability.errors else ""
        return f"{stability.failed} of {stability.requests} requests failed{first}"
    if stability.restarted:
        return "the server restarted during the round"
    return "its stability part did not pass"


def warnings(
    round_: Round,
    row: EvidenceRow | None,
    rows: tuple[ReportRow, ...],
    deciding: list[ReportRow],
    recipe_id: str | None,
) -> list[str]:
    """Say what to keep in mind beside the verdict."""
    told = []
    if recipe_id and round_.recipe_id and recipe_id != round_.recipe_id:
        told.append(f"the round measured {round_.recipe_id}, not {recipe_id}")
    if row and round_.stable is None:
        told.append("stability was not tested: the full round does that")
    left = [f.says for f in FIGURES if f.decides and f.name not in {r.figure for r in deciding}]
    if deciding and left:
        told.append(f"the verdict rests on less than all speeds: without {', '.join(left)}")
    ttft = next(r for r in rows if r.figure == "ttft_ms")
    if ttft.verdict in ("slower", "faster") and not ttft.note:
        told.append(f"first token: {ttft.verdict} ({in_words(ttft)}); it does not decide")
    if len({r.verdict for r in deciding} - {"matches"}) > 1:
        told.append("some speeds are slower and some faster")
    return [*told, *round_.warnings]
