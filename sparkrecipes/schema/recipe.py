"""A recipe: one configuration that serves one model on one machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import (
    Capability,
    CommitSha,
    Digest,
    Frozen,
    Id,
    KvCacheDtype,
    RepoId,
    Text,
    Tokens,
    Users,
)

ShmSize = Annotated[str, Field(pattern=r"^[1-9][0-9]*[mg]$")]
SpeculativeMethod = Literal["mtp", "eagle3", "dflash", "dspark", "ngram"]
ImageName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]*(@sha256:[0-9a-f]{64})?$", max_length=512),
]
"""A registry reference; one that started with a dash would be an option of docker."""
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class WeightsSource(Frozen):
    """A repository that the engine loads files from."""

    repo: RepoId
    """Hugging Face repository."""
    revision: CommitSha | None = None
    """Commit to load, or null where the source did not record one."""


class LocalBuild(Frozen):
    """How to get an image that no registry has."""

    how: Text
    """What to do to have it."""
    source: Text
    """Where that is described."""


class RecipeImage(Frozen):
    """The container image."""

    reference: ImageName
    """Registry reference with a tag, as it would be pulled."""
    digest: Digest | None = None
    """Digest of the manifest that was measured, or null where the source did not record one."""
    local_build: LocalBuild | None = None
    """Set where no registry has the image under this name."""


class Speculative(Frozen):
    """Speculative decoding, as the engine's own JSON option takes it."""

    method: SpeculativeMethod
    """How draft tokens are made."""
    num_speculative_tokens: Annotated[int, Field(ge=1)]
    """Draft tokens a step."""
    moe_backend: Text | None = None
    """Kernel family of the draft model's experts."""
    draft_sample_method: Text | None = None
    """How the drafter samples."""
    prompt_lookup_max: Annotated[int, Field(ge=1)] | None = None
    """Longest n-gram looked up in the prompt (method ngram)."""
    prompt_lookup_min: Annotated[int, Field(ge=1)] | None = None
    """Shortest n-gram looked up in the prompt (method ngram)."""


class Serving(Frozen):
    """What the recipe is set for."""

    context_tokens: Tokens
    """Longest sequence, prompt and answer together."""
    users: Users
    """Sequences served at once."""
    kv_cache_dtype: KvCacheDtype
    """Type of the KV cache; auto is the model's own."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None
    """Fraction of the total memory that the engine takes; null leaves it to the engine."""


class Resemblance(Frozen):
    """A published figure of nearly this configuration."""

    row: Text
    """``<evidence file>#<id of a figure there>``."""
    differs: Text
    """What differs from what was measured."""


class RecipeFile(Frozen):
    """One file of ``catalog/recipes/``; its name is the recipe's id."""

    title: Text
    """One line for people."""
    model: Id
    """File of ``catalog/models/``."""
    quant: Text | None
    """Which build of the model: the ``quant`` of one of its builds; null where the image decides
    and no source says which (then every build is reckoned with)."""
    weights: WeightsSource | None
    """Where the weights come from; null where the image fetches its own."""
    drafter: WeightsSource | None = None
    """Where the drafter comes from; null without one, or where the checkpoint holds it."""
    image: RecipeImage
    """The container image."""
    engine: Id
    """File of ``catalog/engines/``."""
    engine_version: Text | None
    """Release of the engine inside the image, quoted; null where the image names none."""
    served_model_name: Text
    """The name that clients ask for."""
    serving: Serving
    """Context, users and memory that the engine is set for."""
    speculative: Speculative | None = None
    """Speculative decoding, or null."""
    flags: tuple[Text, ...] = ()
    """Further engine arguments, verbatim; ``<weights>``, ``<drafter>``: their folders."""
    env: dict[EnvName, str] = {}
    """Environment of the engine; never a secret."""
    shm_size: ShmSize | None = None
    """Shared memory of the container, e.g. ``16g`` (GiB); counts against the same pool."""
    startup_timeout_s: Annotated[int, Field(ge=10, le=14400)]
    """How long a start may take before it has failed."""
    capabilities: tuple[Capability, ...]
    """What clients may rely on."""
    mended: tuple[Text, ...] = ()
    """What differs from the public recipe it comes from, and why."""
    caveats: tuple[Text, ...] = ()
    """What to know before choosing it."""
    evidence: tuple[Text, ...] = ()
    """Rows that measured it, each ``<evidence file>#<row id>``."""
    resembles: tuple[Resemblance, ...] = ()
    """Figures of nearly this configuration; they are shown, and never make it measured."""
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Where the configuration comes from."""


class Recipe(RecipeFile):
    """A recipe with its id."""

    id: Id
    """The file's name without its ending."""
