"""Where a recipe stands: what rules it out, and what puts one before another."""

from __future__ import annotations

from dataclasses import dataclass

from sparkrecipes.schema.evidence import Caveat, DoesNotRunEntry
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.use_case import Constraints, RankKey, UseCase

METHOD = "october"
"""The one method whose figures rank recipes: figures of two are never ranked together."""

RATIOS = {"single_user_tok_s_per_memory_gb": ("single_user_tok_s", "memory_gb")}
"""Figures that are made of two published ones."""

ABILITIES = {
    "text": "read text",
    "image": "see images",
    "audio": "hear audio",
    "video": "watch video",
    "tools": "call tools",
    "reasoning": "reason before it answers",
}

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A recipe with the facts that decide.

    Attributes:
        recipe: The recipe.
        model: What it serves.
        row: Its published figures by the method that ranks, or None.
        estimate: Its memory at the settings asked for; None where it is ruled out unsized.
    """

    recipe: Recipe
    model: Model
    row: PublishedRow | None
    estimate: MemoryEstimate | None = None


def obstacles(
    found: Candidate, use: UseCase, asked: Constraints, entries: tuple[DoesNotRunEntry, ...]
) -> tuple[str, ...]:
    """Say why a recipe is ruled out, as far as its memory need not be known.

    Hard needs come before any speed: a window that is too small or a missing sense is not made
    up for by tokens a second.

    Source: the case of a 16K recipe on which every task of an agent failed
    (https://github.com/aarora79/agentic-coding-harness-benchmarks/pull/7).
    """
    recipe, why = found.recipe, []
    missing = [need for need in use.needs if need not in recipe.capabilities]
    if missing:
        why.append(f"it does not {' or '.join(ABILITIES[need] for need in missing)}")
    why += _too_short(found, use, asked)
    why += [
        f"known not to run: {entry.why}"
        for entry in entries
        if entry.concerns(recipe, context_tokens=asked.context_tokens, users=asked.users)
    ]
    if found.row and found.row.row.figures.stable is False:
        why.append(f"its source calls it unstable ({found.row.evidence})")
    return tuple(why)


def _too_short(found: Candidate, use: UseCase, asked: Constraints) -> list[str]:
    set_for = found.recipe.serving.context_tokens
    reach = max(set_for, found.model.context_tokens)
    if asked.context_tokens is not None and asked.context_tokens > reach:
        return [f"its longest context is {reach:,} tokens, {asked.context_tokens:,} are asked for"]
    if asked.context_tokens is None and set_for < (use.min_context_tokens or 0):
        need = use.min_context_tokens
        return [f"it serves {set_for:,} tokens of context, this use needs {need:,}"]
    return []


def too_large(estimate: MemoryEstimate) -> tuple[str, ...]:
    """Say why a recipe is ruled out by its memory."""
    if estimate.verdict != "does_not_fit":
        return ()
    need = f" at least {estimate.total_bounds[0] / GIB:.1f} GiB" if estimate.total_bounds else ""
    users = estimate.max_users_at_context
    less = f"; {users} would fit" if users else ""
    return (
        f"it does not fit: {estimate.context_tokens:,} tokens x {estimate.users} users need{need} "
        f"of {estimate.usable_bytes / GIB:.1f} usable{less}",
    )


def standing(found: Candidate, use: UseCase) -> tuple[object, ...]:
    """Return the sort key of a recipe: the best is the smallest.

    What can be had and was measured comes first: an image that no registry has, figures that
    nobody published and memory that nobody knows rank last, whatever they promise. Then each
    ranking key decides where those before it are equal, a doubtful figure after every sound one.

    Source: a derived configuration that was recommended as if measured was 2.1 times slower than
    none (https://github.com/sgl-project/sglang/pull/37456).
    """
    unknown = found.estimate is None or found.estimate.verdict == "unknown"
    tiers = (found.recipe.image.local_build is not None, found.row is None, unknown)
    return (*tiers, *(place(found, key) for key in use.rank_by), found.recipe.id)


def place(found: Candidate, key: RankKey) -> tuple[int, float]:
    """Return the place of a recipe by one key: sound figures, then doubtful ones, then none."""
    value = figure(found, key.figure)
    if value is None:
        return (2, 0.0)
    return (1 if doubts(found, key.figure) else 0, -value if key.better == "highest" else value)


def figure(found: Candidate, name: str) -> float | None:
    """Return a figure of a recipe in its own unit; None where nobody published it."""
    if name.startswith("params_"):
        value: float | None = getattr(found.model, name)
        return value
    if found.row is None:
        return None
    values = [getattr(found.row.row.figures, part) for part in RATIOS.get(name, (name,))]
    if None in values or (len(values) > 1 and not values[1]):
        return None
    return float(values[0]) / (float(values[1]) if len(values) > 1 else 1.0)


def doubts(found: Candidate, name: str) -> tuple[Caveat, ...]:
    """Return the caveats of a figure, or of those that it is made of."""
    if found.row is None:
        return ()
    parts = set(RATIOS.get(name, (name,)))
    return tuple(caveat for caveat in found.row.row.caveats if parts.intersection(caveat.figures))
