"""Published figures side by side: what is said of a model, where it differs, and why it may."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Id, Text, Users


class Reading(Frozen):
    """One published figure, with what it was measured of and how."""

    evidence: Id
    row: Id
    """Its id in that set."""
    config: Text
    """As printed."""
    model: Id | None
    quant: Text | None
    """Null where not stated."""
    method: Text | None
    """Way of speculation, or ``none``; null where not stated."""
    draft_tokens: int | None
    workload: Id
    """Kind of prompt."""
    users: Users
    """Sequences at once; the figure is their total."""
    low: float
    high: float
    """Equal to ``low`` where the source gives one number."""
    unit: Text = "tok/s"
    engine: Id | None
    engine_version: Text | None
    doubts: tuple[Text, ...] = ()
    temperature: float | None = None
    """Of the sampling; null where not stated."""
    notes: tuple[Text, ...] = ()
    """What the source says of this configuration beside its figures."""


class Contradiction(Frozen):
    """Figures that do not agree, and what may explain it."""

    kind: Literal["level", "direction", "counting", "quantity"]
    """Level: far apart. Direction: faster in one source, slower in another. Counting: the same
    requests, counted in two ways. Quantity: a fact of the machine or of the model."""
    subject: Text
    says: Text
    """The disagreement in one sentence, with its figures."""
    readings: Annotated[tuple[Reading, ...], Field(min_length=1)]
    why: Annotated[tuple[Text, ...], Field(min_length=1)]
    """What differs between the measurements; which of it is the cause nobody has measured."""


class SetNote(Frozen):
    """What a set's own page does not agree with itself on, or with others."""

    evidence: Id
    text: Text
    source: Text


class SetSummary(Frozen):
    """How a set was measured, and how far it is trusted."""

    evidence: Id
    publisher: Text
    trust_rank: int
    """1 is measured by the publisher with a published client; higher is further from the source."""
    date: Text | None
    counting: Text
    """What a speed is divided by."""
    setting: Text
    """What the engine was set for."""
    interest: Text | None
    source: Text


class EvidenceView(Frozen):
    """Everything published of a recipe's model, by every method, and where it contradicts."""

    model: Id
    sets: tuple[SetSummary, ...]
    """How each set was measured, the most trusted first."""
    readings: tuple[Reading, ...]
    """The most trusted set first; two sets never share a ranking."""
    contradictions: tuple[Contradiction, ...]
    notes: tuple[SetNote, ...]


class EvidenceOverview(Frozen):
    """What contradicts in the whole catalog, model by model; facts of a machine once."""

    machines: tuple[Contradiction, ...]
    views: tuple[EvidenceView, ...]
