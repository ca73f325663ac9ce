"""Figures: what is compared, what a round measured of it, and what makes a figure doubtful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.round import Concurrent, Round, Spread

PUBLISHED_USERS = 4
"""Users behind ``four_users_total_tok_s``."""

FigureName = Literal["single_user_tok_s", "four_users_total_tok_s", "ttft_ms", "long_prompt_46k_s"]


@dataclass(frozen=True)
class Figure:
    """One figure of the published table.

    Attributes:
        name: Its name in evidence and in the round's ``published_method``.
        unit: Its unit.
        better: Which way is faster.
        says: Its name for people.
        decides: Whether it decides the verdict of the whole.
        floor: Differences up to here, in its unit, are no difference whatever they are in percent.
    """

    name: FigureName
    unit: str
    better: Literal["higher", "lower"]
    says: str
    decides: bool = True
    floor: float = 0.0


TTFT_FLOOR_MS = 20.0
"""Smaller differences of the TTFT are not told apart.

The published TTFT counts connecting and the client's own parsing in, over 3 requests. Twice the
9 ms between the table's two rows of one model on two images, which decode at the same speed.
"""

FIGURES = (
    Figure("single_user_tok_s", "tok/s", "higher", "one user"),
    Figure("four_users_total_tok_s", "tok/s", "higher", "four users together"),
    Figure("long_prompt_46k_s", "s", "lower", "46K prompt"),
    Figure("ttft_ms", "ms", "lower", "first token", decides=False, floor=TTFT_FLOOR_MS),
)
"""The TTFT of a short prompt is shown with its verdict and does not decide: it is a tenth of a
second, of which the network and the client are a good part. Memory and load time are no figures
of a round."""


def true_spread(figure: Figure, round_: Round) -> Spread | None:
    """Return the same figure by the true definitions, over its repeats."""
    single, concurrent, long = round_.single, round_.concurrent, round_.long_prompt
    match figure.name:
        case "single_user_tok_s":
            return single.decode_tok_s if single else None
        case "ttft_ms":
            return single.ttft_ms if single else None
        case "four_users_total_tok_s":
            return concurrent.aggregate_tok_s if concurrent else None
        case "long_prompt_46k_s":
            return long.wall_s_spread if long else None


def measured_range(measured: float, spread: Spread | None) -> tuple[float, float] | None:
    """Return what the repeats say of a figure: the true figure's range, carried over.

    The published method gives medians alone. The same requests have a true figure with a range,
    and the relative range is that of the requests.
    """
    if spread is None or spread.median <= 0 or (spread.n or 0) < 2:
        return None
    low, high = spread.min / spread.median, spread.max / spread.median
    return (round(measured * low, 2), round(measured * high, 2))


def why_not(figure: Figure, round_: Round, row: EvidenceRow) -> str:
    """Say why one figure of a round cannot be compared; nothing where it can."""
    measured = getattr(round_.published_method, figure.name)
    if getattr(row.figures, figure.name) is None:
        return "not published"
    match figure.name:
        case "single_user_tok_s" | "ttft_ms":
            reason = why_not_single(round_, doubted=caveat_of(figure, row) != "")
        case "four_users_total_tok_s":
            reason = why_not_concurrent(round_, measured)
        case "long_prompt_46k_s":
            reason = why_not_long(round_)
    return reason or ("not measured" if not measured else "")


def why_not_single(round_: Round, *, doubted: bool) -> str:
    """Say why the figures of one user cannot be compared.

    Args:
        round_: The round.
        doubted: Whether the published figure itself hides reasoning: then like meets like.
    """
    single, codes = round_.single, warning_codes(round_)
    if single is None or not single.n:
        return "not measured"
    if not single.comparable:
        return "the answers were too short, uncounted or no words"
    if "hidden_reasoning" in codes:
        return "tokens were generated that were not streamed, so no speed can be known"
    if "published_blind" in codes and not doubted:
        return "this server reasons where the published method does not look, the published did not"
    return ""


def why_not_concurrent(round_: Round, measured: float | None) -> str:
    """Say why the total of four users cannot be compared."""
    concurrent = round_.concurrent
    if measured or concurrent is None:
        return ""
    if concurrent.failed:
        return f"{concurrent.failed} of {concurrent.requests} requests failed"
    if concurrent.users != PUBLISHED_USERS:
        return f"measured with {concurrent.users} users, published with {PUBLISHED_USERS}"
    return ""


def why_not_long(round_: Round) -> str:
    """Say why the long prompt cannot be compared."""
    if round_.long_prompt and round_.long_prompt.state != "measured":
        return round_.long_prompt.reason or round_.long_prompt.state.replace("_", " ")
    if "cached_long_prompt" in warning_codes(round_):
        return "a cache answered part of the prompt"
    return ""


def caveat_of(figure: Figure, row: EvidenceRow) -> str:
    """Return the doubts about a published figure, or nothing."""
    return "; ".join(c.text for c in row.caveats if figure.name in c.figures)


def warning_codes(round_: Round) -> set[str]:
    """Return the words for programs that a round's warnings start with."""
    return {warning.partition(":")[0] for warning in round_.warnings}


def ladder(round_: Round) -> dict[tuple[str | None, int], Concurrent]:
    """Return each number of users that was measured, once for each scenario."""
    last = [round_.concurrent] if round_.concurrent else []
    return {(step.scenario, step.users): step for step in (*last, *round_.users_curve)}
