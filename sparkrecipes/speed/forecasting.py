"""The forecast: every figure a range, as wide as the calibration was wrong on models left out."""

from __future__ import annotations

from sparkrecipes.schema.memory import EstimatedSpeed, Forecast
from sparkrecipes.schema.recipe import Speculative
from sparkrecipes.speed.calibration import CALIBRATED, FACTORS, MEASURED_USERS, METHOD
from sparkrecipes.speed.rules import (
    Load,
    Parameters,
    Shape,
    at_peak,
    decode_tok_s,
    prefill_tok_s,
)

SLOW_TOK_S = 10.0
"""Below this one user waits for the text: a person reads about 5 to 10 tokens a second."""

ACCEPTANCES = (30, 50, 70, 90)
"""Acceptance rates, percent of draft tokens; 49 to 90 were measured over kinds of prompts."""

Range = tuple[float, float]


def forecast(
    shape: Shape,
    bandwidth_gb_s: float,
    *,
    context_tokens: int,
    users: int,
    speculative: Speculative | None,
) -> Forecast:
    """Forecast decode and prefill of what nobody measured.

    Args:
        shape: What of the model and its build decides its speed.
        bandwidth_gb_s: Peak memory bandwidth, GB/s.
        context_tokens: Tokens of a full sequence.
        users: Sequences at once.
        speculative: Way of speculation and draft tokens.
    """
    drafts = speculative.num_speculative_tokens if speculative else 0
    one = FACTORS.speculative if drafts else FACTORS.single
    many = one if users == 1 else max(one, FACTORS.users)
    full = context_tokens

    def decode(count: int, context: int, factor: float, tokens: float | None = None) -> Range:
        return decode_range(shape, bandwidth_gb_s, Load(count, drafts, context), factor, tokens)

    prefill = prefill_tok_s(shape, CALIBRATED)
    slow, fast = prefill / FACTORS.prefill, prefill * FACTORS.prefill
    single = decode(1, 0, one)
    return Forecast(
        method=METHOD,
        speculative=f"{speculative.method}:{drafts}" if speculative else None,
        single_user_tok_s=single,
        single_user_tok_s_at_context=decode(1, full, one),
        users_total_tok_s=decode(users, 0, many),
        users_total_tok_s_at_context=decode(users, full, many),
        prefill_tok_s=rounded(slow, fast),
        prefill_s_at_context=rounded(full / fast, full / slow),
        by_acceptance={
            str(rate): decode(1, 0, FACTORS.single, 1 + drafts * rate / 100)
            for rate in ACCEPTANCES
            if drafts
        },
        error_pct={
            name: round(100 * (factor - 1), 1) for name, factor in FACTORS._asdict().items()
        },
        usable=usable(single),
        notes=notes_of(shape, users, drafts),
    )


def decode_range(
    shape: Shape, bandwidth_gb_s: float, load: Load, factor: float, tokens: float | None
) -> Range:
    """Bound the tokens a second of all users: by the errors seen, and by the bandwidth itself.

    Args:
        shape: The model.
        bandwidth_gb_s: Peak memory bandwidth, GB/s.
        load: Users, draft tokens and context.
        factor: How wrong a forecast may be.
        tokens: Tokens that a step yields each user; null: by the calibrated chance.
    """
    read_low, read_high = shape.read_bytes

    def at(read: float, known: Parameters, yielded: float | None) -> float:
        return decode_tok_s(shape, read, load, known, bandwidth_gb_s, tokens=yielded)

    low, high = at(read_high, CALIBRATED, tokens), at(read_low, CALIBRATED, tokens)
    if load.users > MEASURED_USERS:
        low = min(low, at(read_high, CALIBRATED._replace(expert_growth=1.0), tokens))
    ceiling = at(read_low, at_peak(CALIBRATED), tokens or load.draft_tokens + 1)
    return rounded(low / factor, min(high * factor, ceiling))


def rounded(low: float, high: float) -> Range:
    """Round to what such a range can claim."""
    return float(f"{low:.3g}"), float(f"{high:.3g}")


def usable(single: Range) -> bool | None:
    """Say whether one user can work with it; null where the range is on both sides."""
    if single[1] < SLOW_TOK_S:
        return False
    return True if single[0] >= SLOW_TOK_S else None


def notes_of(shape: Shape, users: int, drafts: int) -> tuple[str, ...]:
    """Say what the figures rest on, and where they reach beyond the evidence."""
    low, high = (side / 1e9 for side in shape.read_bytes)
    lines = [
        f"estimated, not measured: each token reads {low:.3g} to {high:.3g} GB of weights, and a "
        f"full context its cache of {shape.kv_bytes_per_token:,} bytes a token and user",
        "each range is as wide as the largest error on a model that was left out, and never above "
        "what the bandwidth allows (docs/speed.md)",
    ]
    if users > MEASURED_USERS:
        lines.append(f"more than {MEASURED_USERS} users were not measured: the low side is wider")
    if drafts:
        lines.append(
            f"speculation: {CALIBRATED.draft_hit:.2f} is the chance of each next draft that fits "
            "the evidence; by_acceptance gives the speed for the rate that your prompts reach"
        )
    return tuple(lines)


def brief(found: Forecast, users: int) -> EstimatedSpeed:
    """Shorten a forecast for a list of recipes.

    Args:
        found: What ``forecast`` said, as ``MemoryEstimate.forecast`` holds it.
        users: The users that it was asked for.
    """
    return EstimatedSpeed(
        users=users,
        single_user_tok_s=found.single_user_tok_s,
        users_total_tok_s=found.users_total_tok_s,
        usable=found.usable,
    )


def estimated_line(found: Forecast | EstimatedSpeed) -> str:
    """Write a forecast as one reason: marked as estimated, a range, and whether it is too slow.

    Any list of reasons may hold it where a recipe has no published figure.
    """
    low, high = found.single_user_tok_s
    slow = "; too slow to use" if found.usable is False else ""
    return f"estimated, not measured: {low:g} to {high:g} tok/s for one user{slow}"


def slow_warning(found: Forecast, *, fits: bool) -> tuple[str, ...]:
    """Warn of what is too slow to use, whether or not it fits."""
    if found.usable is not False:
        return ()
    low, high = found.single_user_tok_s
    least, most = found.single_user_tok_s_at_context
    begin = "fits, but too slow to use" if fits else "too slow to use"
    return (
        f"{begin}: slow, estimated {low:g} to {high:g} tok/s for one user, {least:g} to {most:g} "
        "with a full context; choose a mixture of experts or a smaller model",
    )
