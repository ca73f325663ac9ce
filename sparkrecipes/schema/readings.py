"""What publications measured beside the standard round: speeds, loads, acceptance, sizes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sparkrecipes.schema.base import Frozen, Id, KvCacheDtype, Text, Tokens, Users
from sparkrecipes.schema.recipe import SpeculativeMethod

Rate = Annotated[float, Field(ge=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
Value = Rate | tuple[Rate, Rate]
"""A figure as published: a number, or a range of two."""


def span(value: float | tuple[float, float]) -> tuple[float, float]:
    """Return a figure as a range; a number is a range of one."""
    return value if isinstance(value, tuple) else (value, value)


class Conditions(Frozen):
    """Under what a set was measured, as far as its source says; null is not stated."""

    engine: Id | None
    engine_version: Text | None
    """Release or build, as printed."""
    context_tokens: Tokens | None
    """Longest sequence that the engine was set for."""
    users: Users | None
    """Sequences that the engine was set for."""
    kv_cache_dtype: KvCacheDtype | None
    timing: Literal["after_first_token", "whole_request", "not_stated"]
    """What a speed is divided by: the time after the first token, or all of the request."""
    timing_note: Text
    """The same in words, with what else sets the method apart."""
    max_answer_tokens: Tokens | None = None
    """Longest answer that was asked for, where every prompt had the same."""
    flags: tuple[Text, ...] = ()
    """Engine arguments that the source names."""
    software: tuple[Text, ...] = ()


class Speculation(Frozen):
    """How a measured configuration speculated."""

    method: SpeculativeMethod | Literal["none", "not_stated"]
    num_speculative_tokens: Annotated[int, Field(ge=1)] | None = None
    """Draft tokens a step; null without speculation, or where not stated."""

    @property
    def words(self) -> str:
        """Name it: ``mtp k=2``, ``no speculation``, ``speculation not stated``."""
        count = self.num_speculative_tokens
        words = {"none": "no speculation", "not_stated": "speculation not stated"}
        return f"{self.method} k={count}" if count else words.get(self.method, self.method)


class Configured(Frozen):
    """A configuration as a publication names it, and what it is in this catalog."""

    id: Id
    """Unique within its set."""
    config: Text
    """As printed."""
    model: Id | None
    """File of ``catalog/models/``; null where the catalog has none."""
    quant: Text | None
    """Build of the model: fp8, nvfp4, int4; null where not stated."""
    engine: Id | None
    engine_version: Text | None
    speculation: Speculation
    notes: tuple[Text, ...] = ()


class Accepted(Frozen):
    """Mean number of draft tokens that the target takes in a step."""

    low: Rate
    high: Rate
    of: Annotated[int, Field(ge=1)]
    """Draft tokens a step."""


class Measurement(Configured):
    """Speed of one user on one kind of prompt."""

    workload: Id
    """Kind of prompt: spanish_story, code, long_context, not_stated."""
    tok_s: Value | None
    """Tokens a second as the set's method counts them; null where it did not run."""
    accepted: Accepted | None = None
    outcome: Literal["measured", "did_not_start"] = "measured"


class LoadPoint(Frozen):
    """One number of users of a ladder."""

    users: Users
    total_tok_s: Rate | None
    per_user_tok_s: Rate | None
    latency_p50_s: Rate | None = None
    latency_p95_s: Rate | None = None
    tpot_ms: Rate | None = None


class Ladder(Configured):
    """One configuration under a growing number of users."""

    workload: Id
    max_tokens: Tokens | None
    """Longest answer."""
    prompt: Text | None
    """Size of the prompt as printed; null where not stated."""
    max_num_seqs: Annotated[int, Field(ge=1)] | None
    """Sequences that the engine served at once: above it requests wait."""
    points: Annotated[tuple[LoadPoint, ...], Field(min_length=1)]


class PositionShare(Frozen):
    """Share of drafts at one position that the target takes."""

    position: Text
    """As printed: sources count from 0 or from 1."""
    pct: Percent


class AcceptanceByPosition(Configured):
    """How acceptance falls from one draft token to the next."""

    positions: Annotated[tuple[PositionShare, ...], Field(min_length=1)]


class Quantity(Frozen):
    """Any other published figure: of the machine, of memory, of a build."""

    id: Id
    """Unique within its set."""
    subject: Text
    """What it is of: an id of this catalog, or words."""
    quantity: Id
    """What is measured: the same word in every set, so that figures can be compared."""
    what: Text
    value: Value
    unit: Text
    qualifier: Literal["exact", "about", "more_than", "less_than"] = "exact"
    note: Text | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = span(self.value)
        if low > high:
            raise ValueError("the range begins above its end")
        return self
