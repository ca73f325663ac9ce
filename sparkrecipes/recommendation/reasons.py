"""Why a recipe stands where it does, in words, with figures and where they come from."""

from __future__ import annotations

from collections.abc import Sequence

from sparkrecipes.recommendation.standing import GIB, Candidate, doubts, figure, place
from sparkrecipes.schema.use_case import Constraints, RankKey, UseCase

FIGURES = {
    "single_user_tok_s": "{:.1f} tok/s for one user",
    "four_users_total_tok_s": "{:.1f} tok/s for four users together",
    "ttft_ms": "first token after {:.0f} ms",
    "long_prompt_46k_s": "{:.1f} s for a prompt of 46,000 tokens",
    "memory_gb": "{:.1f} GB of memory taken, as published",
    "single_user_tok_s_per_memory_gb": "{:.2f} tok/s for one user a GB of memory taken",
    "params_total_b": "{:g} billion parameters",
    "params_active_b": "{:g} billion active parameters",
}
"""How a figure is quoted, with its unit."""


def reasons(found: Candidate, use: UseCase, asked: Constraints) -> tuple[str, ...]:
    """Say what speaks for a recipe and what against it, the deciding figures first."""
    return (
        *(_quoted(found, key) for key in use.rank_by if figure(found, key.figure) is not None),
        *_unmeasured(found),
        *_not_to_be_had(found),
        *_memory(found),
        *_other_settings(found, asked),
    )


def ahead_of(first: Candidate, second: Candidate, use: UseCase) -> tuple[str, ...]:
    """Say by which figure the first of two recipes is better, where a sound figure decides."""
    for key in use.rank_by:
        ours, theirs = place(first, key), place(second, key)
        if ours != theirs:
            value = figure(second, key.figure)
            sound = value is not None and theirs[0] == 0 and ours < theirs
            return (f"ahead of {second.recipe.id}: {_said(key, value)}",) if value and sound else ()
    return ()


def free_now(kept: Sequence[Candidate]) -> tuple[str, ...]:
    """Say what the best recipe waits for on a busy machine, and what would fit at once.

    The order stays: a busy machine is no reason to recommend a lesser model silently.
    """
    short = _short_of_now(kept[0]) if kept else None
    if short is None:
        return ()
    fits = [found.recipe.id for found in kept if _fits_now(found)]
    instead = f"; {fits[0]} fits in what is free now" if fits else "; nothing fits as it is"
    return (f"{kept[0].recipe.id} fits after freeing {short / GIB:.1f} GiB{instead}",)


def _quoted(found: Candidate, key: RankKey) -> str:
    value = figure(found, key.figure)
    source = (
        f"measured, {found.row.evidence}"
        if found.row and not key.figure.startswith("params_")
        else "the model's own count"
    )
    line = f"{_said(key, value)}: {key.why} ({source})"
    caveats = [caveat.text for caveat in doubts(found, key.figure)]
    return f"{line}; ranked after sound figures: {'; '.join(caveats)}" if caveats else line


def _said(key: RankKey, value: float | None) -> str:
    return FIGURES[key.figure].format(value)


def _unmeasured(found: Candidate) -> tuple[str, ...]:
    return () if found.row else ("untested: nobody has published figures of it by this method",)


def _not_to_be_had(found: Candidate) -> tuple[str, ...]:
    build = found.recipe.image.local_build
    return (f"no registry has its image, so it ranks last: {build.how}",) if build else ()


def _memory(found: Candidate) -> tuple[str, ...]:
    size = found.estimate
    if size is None or size.total_bounds is None or size.verdict == "unknown":
        return ("what memory it needs is not known",)
    low, high = (bound / GIB for bound in size.total_bounds)
    usable = size.usable_bytes / GIB
    if size.verdict == "tight":
        return (f"tight: it needs {low:.1f} to {high:.1f} of {usable:.1f} GiB",)
    return (f"fits: it needs at most {high:.1f} of {usable:.1f} GiB",)


def _other_settings(found: Candidate, asked: Constraints) -> tuple[str, ...]:
    if found.row is None:
        return ()
    row, serving = found.row.row, found.recipe.serving
    measured = (row.context_tokens, row.users)
    wanted = (asked.context_tokens or serving.context_tokens, asked.users or serving.users)
    if wanted == measured:
        return ()
    return (
        f"its figures were measured at {measured[0]:,} tokens x {measured[1]} users, "
        f"not at {wanted[0]:,} x {wanted[1]}: expect other speeds",
    )


def _short_of_now(found: Candidate) -> int | None:
    """Return how many bytes must be freed first; None where nothing or not known.

    An engine that is told a fraction wants all of it free when it starts, needed or not.
    """
    size = found.estimate
    if size is None or size.verdict_now != "does_not_fit":
        return None
    if size.available_bytes is None or size.total_bytes is None:
        return None
    need = size.total_bytes - size.components.host_reserve_bytes
    return max(max(need, size.reservation_bytes or 0) - size.available_bytes, 0)


def _fits_now(found: Candidate) -> bool:
    return found.estimate is not None and found.estimate.verdict_now == "fits"
