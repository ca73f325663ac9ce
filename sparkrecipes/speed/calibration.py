"""What the evidence of one method says of the rules, and how wrong they are on a model left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from sparkrecipes.speed.rules import (
    Load,
    Parameters,
    Shape,
    decode_tok_s,
    prefill_tok_s,
)

METHOD = "October 2026 standard round"

LONG_PROMPT_TOKENS = 46_000
"""About the tokens of the round's long prompt."""

MEASURED_USERS = 4


class Measured(NamedTuple):
    """One row of the round, without the figures that a caveat doubts."""

    recipe: str
    model: str
    shape: Shape
    draft_tokens: int
    single_user_tok_s: float | None
    four_users_total_tok_s: float | None
    long_prompt_s: float | None


class Factors(NamedTuple):
    """Largest error of each figure on a model that was left out, as a factor."""

    single: float
    speculative: float
    """Of one user with speculation, whose acceptance nobody knows beforehand."""
    users: float
    prefill: float


CALIBRATED = Parameters(
    dense_share=0.763,
    mixture_share=0.571,
    expert_growth=0.235,
    draft_cost=0.13,
    draft_hit=0.686,
    dense_tflops=49.4,
    mixture_tflops=25.1,
)
"""From the rows of the October round; a test holds this to ``calibrate``."""

FACTORS = Factors(single=1.5, speculative=1.89, users=2.08, prefill=2.31)
"""By leaving out one model at a time; a test holds this to ``left_out_errors``."""

START = Parameters(0.8, 0.6, 0.2, 0.15, 0.7, 45.0, 25.0)
SEARCHED = {"expert_growth": (0.0, 1.0), "draft_cost": (0.0, 0.6), "draft_hit": (0.2, 0.95)}
"""Parameters without a closed form, and where they are looked for."""

ROUNDS = 4
STEPS = 20


def middle(shape: Shape) -> float:
    """Give the middle of the weights read, by ratio."""
    return math.sqrt(shape.read_bytes[0] * shape.read_bytes[1])


def decode_errors(
    rows: Iterable[Measured], known: Parameters, bandwidth_gb_s: float
) -> list[tuple[Measured, str, float]]:
    """Compare each decode figure with its forecast: ln(forecast / measured)."""
    errors = []
    for row in rows:
        for figure, users, seen in (
            ("single", 1, row.single_user_tok_s),
            ("users", MEASURED_USERS, row.four_users_total_tok_s),
        ):
            if seen:
                load = Load(users, row.draft_tokens, 0)
                told = decode_tok_s(row.shape, middle(row.shape), load, known, bandwidth_gb_s)
                kind = "speculative" if figure == "single" and row.draft_tokens else figure
                errors.append((row, kind, math.log(told / seen)))
    return errors


def prefill_errors(rows: Iterable[Measured], known: Parameters) -> list[tuple[Measured, float]]:
    """Compare each prefill figure with its forecast: ln(forecast / measured)."""
    return [
        (row, math.log(prefill_tok_s(row.shape, known) * row.long_prompt_s / LONG_PROMPT_TOKENS))
        for row in rows
        if row.long_prompt_s
    ]


def calibrate(rows: Sequence[Measured], bandwidth_gb_s: float) -> Parameters:
    """Fit the parameters to rows of one method, by least squares of the logarithms."""
    known = START
    for _ in range(ROUNDS):
        for name, (low, high) in SEARCHED.items():
            error_at = partial(squares_with, name, rows, known, bandwidth_gb_s)
            known = known._replace(**{name: least(error_at, low, high)})
        known = with_shares(rows, known, bandwidth_gb_s)
    for kind, name in ((True, "dense_tflops"), (False, "mixture_tflops")):
        errors = [e for row, e in prefill_errors(rows, known) if row.shape.dense is kind]
        known = known._replace(**{name: getattr(known, name) * math.exp(-mean(errors))})
    return known


def with_shares(rows: Sequence[Measured], known: Parameters, bandwidth_gb_s: float) -> Parameters:
    """Set the shares of the bandwidth so that the mean error of each kind is none."""
    for kind, name in ((True, "dense_share"), (False, "mixture_share")):
        errors = [
            e for row, _, e in decode_errors(rows, known, bandwidth_gb_s) if row.shape.dense is kind
        ]
        known = known._replace(**{name: getattr(known, name) * math.exp(-mean(errors))})
    return known


def squares(rows: Sequence[Measured], known: Parameters, bandwidth_gb_s: float) -> float:
    """Sum the squared errors with the best shares for these parameters."""
    fitted = with_shares(rows, known, bandwidth_gb_s)
    return sum(e * e for _, _, e in decode_errors(rows, fitted, bandwidth_gb_s))


def squares_with(
    name: str, rows: Sequence[Measured], known: Parameters, bandwidth_gb_s: float, value: float
) -> float:
    """Sum the squared errors with another value of one parameter."""
    return squares(rows, known._replace(**{name: value}), bandwidth_gb_s)


def least(of: Callable[[float], float], low: float, high: float) -> float:
    """Find where a function with one valley is least, by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if of(left) <= of(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def mean(values: Sequence[float]) -> float:
    """Give the mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def left_out_errors(
    rows: Sequence[Measured], bandwidth_gb_s: float
) -> list[tuple[Measured, str, float]]:
    """Forecast each model from all others: row, figure and ln(forecast / measured)."""
    errors: list[tuple[Measured, str, float]] = []
    for model in dict.fromkeys(row.model for row in rows):
        others = [row for row in rows if row.model != model]
        own = [row for row in rows if row.model == model]
        known = calibrate(others, bandwidth_gb_s)
        errors += decode_errors(own, known, bandwidth_gb_s)
        errors += [(row, "prefill", e) for row, e in prefill_errors(own, known)]
    return errors


def widest_factors(errors: Iterable[tuple[Measured, str, float]]) -> Factors:
    """Take the largest error of each figure, as a factor."""
    worst: dict[str, float] = {}
    for _, figure, error in errors:
        worst[figure] = max(worst.get(figure, 0.0), abs(error))
    return Factors(**{name: math.exp(worst.get(name, 0.0)) for name in Factors._fields})
