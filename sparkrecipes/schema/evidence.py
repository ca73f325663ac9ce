"""Evidence: published measurements as they were published, with method, date and source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sparkrecipes.schema.base import Frozen, Id, KvCacheDtype, Text, Tokens, Users
from sparkrecipes.schema.readings import (
    AcceptanceByPosition,
    Conditions,
    Ladder,
    Measurement,
    Percent,
    Quantity,
    Rate,
)
from sparkrecipes.schema.recipe import RecipeFile, SpeculativeMethod


class Figures(Frozen):
    """What the October round published of one configuration, in its own units."""

    single_user_tok_s: Rate | None
    """Decode speed of one user, tokens a second, by the published method."""
    four_users_total_tok_s: Rate | None
    """Tokens a second of four users together, over the wall time."""
    ttft_ms: Rate | None
    """Time to first token as the published method saw it, ms."""
    long_prompt_46k_s: Rate | None
    """Wall time of the prompt of about 46,000 tokens, s."""
    load_min: Rate | None
    """From start to ready, minutes."""
    memory_gb: Rate | None
    """How far the free memory fell when the model loaded, as published (GB or GiB: see the set)."""
    stable: bool | None
    """Whether the source called it stable."""


FigureName = Literal[
    "single_user_tok_s",
    "four_users_total_tok_s",
    "ttft_ms",
    "long_prompt_46k_s",
    "load_min",
    "memory_gb",
    "stable",
]


class Caveat(Frozen):
    """A doubt about published figures; the figures stay as published."""

    figures: Annotated[tuple[FigureName, ...], Field(min_length=1)]
    """Which of the row's figures it concerns; those are ranked last."""
    text: Text
    source: Text


class EvidenceRow(Frozen):
    """One measured configuration."""

    id: Id
    """Unique within its set."""
    date: Text
    """Day of the measurement, ISO 8601."""
    context_tokens: Tokens
    users: Users
    kv_cache_dtype: KvCacheDtype
    figures: Figures
    caveats: tuple[Caveat, ...] = ()
    notes: tuple[Text, ...] = ()


class WorkloadRow(Frozen):
    """Speed and acceptance of speculation for one kind of prompt."""

    workload: Id
    temperature: Annotated[float, Field(ge=0)]
    tok_s: Rate
    without_speculation_tok_s: Rate | None
    acceptance_pct: Percent | None


class SustainedRow(Frozen):
    """A long run under load."""

    minutes: Annotated[float, Field(gt=0)]
    users: Users
    tok_s: Rate
    acceptance_pct: Percent | None
    failed_requests: Annotated[int, Field(ge=0)] | None


class WorkloadSet(Frozen):
    """Workload and sustained figures of one recipe."""

    recipe: Id
    workloads: tuple[WorkloadRow, ...]
    sustained: SustainedRow | None
    notes: tuple[Text, ...] = ()


class EvidenceFile(Frozen):
    """One file of ``catalog/evidence/``: one publication, one method."""

    title: Text
    publisher: Text
    method: Literal["october", "school", "survey", "contributed"]
    """Figures of two methods are never ranked together. ``contributed``: rounds of users, taken as
    the October round's are, on machines that nobody else has seen: shown, and ranked with none."""
    method_text: Text
    """What was measured and how, in a few sentences."""
    hardware: Text
    trust_rank: Annotated[int, Field(ge=1)]
    """1 is measured by the publisher on this hardware; higher is further from the source."""
    memory_unit: Literal["GB", "GiB"]
    """The unit that the source prints beside memory figures."""
    memory_note: Text
    """What that figure is, and how it may be read."""
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]
    date: Text | None = None
    """When it was measured, as printed; null where rows say it, or the source does not."""
    interest: Text | None = None
    """What the publisher may gain by these figures."""
    conditions: Conditions | None = None
    rows: tuple[EvidenceRow, ...] = ()
    by_workload: tuple[WorkloadSet, ...] = ()
    single_stream: tuple[Measurement, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    acceptance_by_position: tuple[AcceptanceByPosition, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    findings: tuple[Text, ...] = ()
    contradictions: tuple[Text, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of everything that can be pointed at, in the file's order."""
        groups = (self.rows, self.single_stream, self.ladders, self.acceptance_by_position)
        return tuple(one.id for group in groups for one in group)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.ids or self.quantities):
            raise ValueError("an evidence set without a figure")
        return self


class Evidence(EvidenceFile):
    """An evidence set with its id."""

    id: Id


class DoesNotRunEntry(Frozen):
    """A configuration that is known not to run, with the reason."""

    title: Text
    model: Id | None = None
    """Model of the catalog that it concerns."""
    image: Text | None = None
    """Image repository that it concerns, without a tag."""
    tags: tuple[Text, ...] = ()
    """Tags of that image that it concerns; none means all."""
    speculative: SpeculativeMethod | None = None
    """Only with this way of speculation; null: with or without."""
    kind: Literal["memory", "architecture", "engine", "image", "cluster"]
    why: Text
    remedy: Text | None = None
    context_tokens: Tokens | None = None
    users: Users | None = None
    kv_cache_dtype: KvCacheDtype | None = None
    source: Text

    def concerns(
        self, recipe: RecipeFile, *, context_tokens: int | None = None, users: int | None = None
    ) -> bool:
        """Say whether a recipe is such a configuration, at its own settings or those given.

        Everything that the entry names must hold; a context or a number of users holds from there
        on upwards. An entry that names neither a model nor an image is history, not a rule.
        """
        if self.model is None and self.image is None:
            return False
        repository, tag = split_reference(recipe.image.reference)
        method = recipe.speculative.method if recipe.speculative else None
        serving = recipe.serving
        return (
            self.model in (None, recipe.model)
            and self.image in (None, repository)
            and (not self.tags or tag in self.tags)
            and self.speculative in (None, method)
            and self.kv_cache_dtype in (None, serving.kv_cache_dtype)
            and (context_tokens or serving.context_tokens) >= (self.context_tokens or 1)
            and (users or serving.users) >= (self.users or 1)
        )


def split_reference(reference: str) -> tuple[str, str | None]:
    """Split an image reference into its repository and its tag; a digest is dropped."""
    name = reference.partition("@")[0]
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, None)


class DoesNotRunFile(Frozen):
    """The file ``catalog/does_not_run.yaml``."""

    entries: tuple[DoesNotRunEntry, ...]
