"""A use case: what people call it, what it needs, and what makes one recipe better."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Capability, Frozen, Id, Text, Tokens


class RankKey(Frozen):
    """One key of the order; the next one decides where this one is equal."""

    figure: Literal[
        "single_user_tok_s",
        "four_users_total_tok_s",
        "ttft_ms",
        "long_prompt_46k_s",
        "memory_gb",
        "single_user_tok_s_per_memory_gb",
        "params_total_b",
        "params_active_b",
    ]
    better: Literal["highest", "lowest"]
    why: Text
    """What it means for this use, for people."""


class PublishedPick(Frozen):
    """What a source recommends; kept for comparison, never echoed as our answer."""

    recipe: Id
    also: tuple[Id, ...] = ()
    note: Text
    source: Text


class UseCaseFile(Frozen):
    """One file of ``catalog/use_cases/``; its name is the use case's id."""

    names: dict[Literal["en", "es"], Text]
    synonyms: dict[Literal["en", "es"], tuple[Text, ...]]
    """Words and phrases that mean this use; matched without case and accents."""
    needs: tuple[Capability, ...]
    """A recipe without one of these is ruled out."""
    min_context_tokens: Tokens | None = None
    """A recipe with a shorter context is ruled out."""
    rank_by: Annotated[tuple[RankKey, ...], Field(min_length=1)]
    published_pick: PublishedPick | None = None


class UseCase(UseCaseFile):
    """A use case with its id."""

    id: Id


class Constraints(Frozen):
    """What was asked for, beside the use case."""

    context_tokens: Tokens | None = None
    users: Annotated[int, Field(ge=1)] | None = None


class Reasoned(Frozen):
    """A recipe and why it stands where it does."""

    id: Id
    why: tuple[Text, ...]


class Recommendation(Frozen):
    """A pick by rules, what else would do, and what was ruled out."""

    use_case: Id
    """The use case that the words were understood as."""
    constraints: Constraints
    pick: Reasoned | None
    """Null when nothing suits: the reasons are in ``ruled_out``."""
    alternatives: tuple[Reasoned, ...]
    ruled_out: tuple[Reasoned, ...]
    warnings: tuple[Text, ...] = ()
    next: Text = ""
    """The command to run next."""
