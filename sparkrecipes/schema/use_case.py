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
    why: dict[Literal["en", "es"], Text]
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
    means: dict[Capability, tuple[Text, ...]] = {}
    """Synonyms that stand for one ability: beside another use they are a need of that one."""
    general: bool = False
    """Whether its words count only where no other use is named, and it answers where none is."""
    workload: Id | None = None
    """Kind of prompt whose measured speed and acceptance say most about it."""
    needs: tuple[Capability, ...]
    """A recipe without one of these is ruled out."""
    min_context_tokens: Tokens | None = None
    """A recipe with a shorter context is ruled out."""
    rank_by: Annotated[tuple[RankKey, ...], Field(min_length=1)]
    published_pick: PublishedPick | None = None


class UseCase(UseCaseFile):
    """A use case with its id."""

    id: Id
