"""What sets two measurements apart, in words: the reasons why their figures may differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparkrecipes.schema.contradiction import Reading
from sparkrecipes.schema.evidence import Evidence

NOT_STATED = "not stated"


def differences(used: Sequence[Reading], sets: Mapping[str, Evidence]) -> tuple[str, ...]:
    """Say what differs between the sets that figures come from, or is not stated.

    Which of it is the cause is not claimed: nobody has measured that.
    """
    keys = tuple(dict.fromkeys(reading.evidence for reading in used))
    lines = []
    for name, value in OF_SETS.items():
        lines += _unless_equal(name, {key: value(sets[key]) for key in keys})
    for name, of_reading in OF_READINGS.items():
        told = {
            key: ", ".join(dict.fromkeys(of_reading(r) for r in used if r.evidence == key))
            for key in keys
        }
        lines += _unless_equal(name, told)
    lines += [f"{key} has an interest: {sets[key].interest}" for key in keys if sets[key].interest]
    return tuple(lines) or ("nothing that the sources state",)


def _unless_equal(name: str, told: Mapping[str, str]) -> list[str]:
    if len(set(told.values())) < 2:
        return []
    return [f"{name}: " + "; ".join(f"{key}: {value}" for key, value in told.items())]


def timing(found: Evidence) -> str:
    """Say how a set counts a speed."""
    return found.conditions.timing_note if found.conditions else NOT_STATED


def setting(found: Evidence) -> str:
    """Say what the engine of a set was set for."""
    set_for = found.conditions
    if set_for is None or set_for.context_tokens is None:
        return NOT_STATED
    users = f" x {set_for.users} users" if set_for.users else ""
    return (
        f"{set_for.context_tokens:,} tokens{users}, KV cache {set_for.kv_cache_dtype or NOT_STATED}"
    )


def release(reading: Reading) -> str:
    """Name the engine and its release."""
    if reading.engine is None:
        return NOT_STATED
    return f"{reading.engine} {reading.engine_version or f'(version {NOT_STATED})'}"


def way(method: str | None, draft_tokens: int | None = None) -> str:
    """Name a way of speculation."""
    if method is None:
        return f"speculation {NOT_STATED}"
    words = "without speculation" if method == "none" else method
    return f"{words} k={draft_tokens}" if draft_tokens else words


def load(users: int) -> str:
    """Name a number of users."""
    return "one user" if users == 1 else f"{users} users together"


def shown(side: Sequence[Reading]) -> str:
    """Write the figures of one side: a number, or from the least to the most."""
    low, high = min(r.low for r in side), max(r.high for r in side)
    return f"{low:,g}" if low == high else f"{low:,g} to {high:,g}"


def faster(ratio: tuple[float, float]) -> str:
    """Write how much faster or slower something is."""
    low, high = ratio
    if high < 1:
        ends = dict.fromkeys(f"{100 * (1 - side):.0f}" for side in (high, low))
        return f"{' to '.join(ends)} % slower"
    ends = dict.fromkeys(f"{side:.2f}" for side in (low, high))
    return f"{' to '.join(ends)} times as fast"


OF_SETS: Mapping[str, Callable[[Evidence], str]] = {
    "way of counting": timing,
    "what the engine was set for": setting,
}
OF_READINGS: Mapping[str, Callable[[Reading], str]] = {
    "engine": release,
    "prompt": lambda reading: reading.workload.replace("_", " "),
    "weights": lambda reading: reading.quant or NOT_STATED,
    "speculation": lambda reading: way(reading.method, reading.draft_tokens),
}
