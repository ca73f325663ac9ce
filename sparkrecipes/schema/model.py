"""A model: what memory and speed need to know of it, each fact with its source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sparkrecipes.schema.base import Bytes, Capability, Frozen, Id, RepoId, Text, Tokens

Count = Annotated[int, Field(ge=1)]
SsmDtype = Literal["float32", "bfloat16", "float16"]


SOURCED = (
    "params_total_b",
    "params_active_b",
    "context_tokens",
    "hidden_size",
    "vocab_size",
    "layers",
    "mtp_layers",
    "modalities",
    "languages",
    "licence",
)
"""Facts of a model file that need a line in ``sources`` unless they are null."""


class FullAttention(Frozen):
    """Layers whose KV cache grows with every token."""

    kind: Literal["full_attention"]
    count: Count
    kv_heads: Count
    head_dim_k: Count
    head_dim_v: Count


class SlidingAttention(Frozen):
    """Layers whose KV cache stops growing at the window."""

    kind: Literal["sliding_attention"]
    count: Count
    kv_heads: Count
    head_dim_k: Count
    head_dim_v: Count
    window_tokens: Tokens


class GatedDeltaNet(Frozen):
    """Linear-attention layers with one state a sequence, whatever its length."""

    kind: Literal["gated_delta_net"]
    count: Count
    num_key_heads: Count
    num_value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    ssm_dtype: SsmDtype | None
    """Type of the recurrent state; null where no source says it (then both are bounded)."""


class Mamba2(Frozen):
    """Mamba-2 layers with one state a sequence, whatever its length."""

    kind: Literal["mamba2"]
    count: Count
    num_heads: Count
    head_dim: Count
    d_state: Count
    n_groups: Count
    conv_kernel: Count
    ssm_dtype: SsmDtype | None
    """Type of the recurrent state; null where no source says it (then both are bounded)."""


class MlaAttention(Frozen):
    """Latent attention (MLA): one compressed latent a token and layer, no separate K and V."""

    kind: Literal["mla_attention"]
    count: Count
    kv_lora_rank: Count
    qk_rope_head_dim: Count


class Indexer(Frozen):
    """Sparse-attention indexer: a small key cache beside the KV cache of some layers."""

    kind: Literal["indexer"]
    count: Count
    kv_heads: Count
    head_dim: Count
    compress_ratio: Count


class ShortConv(Frozen):
    """Short convolutions that keep the last few values of each channel (per-layer embeddings)."""

    kind: Literal["short_conv"]
    count: Count
    channels: Count
    state_tokens: Count
    """Earlier tokens kept a channel: (kernel - 1) x dilation."""


class NoCache(Frozen):
    """Layers that keep nothing a token (experts, MLP), named so that the layers add up."""

    kind: Literal["no_cache"]
    count: Count


LayerGroup = Annotated[
    FullAttention
    | SlidingAttention
    | GatedDeltaNet
    | Mamba2
    | MlaAttention
    | Indexer
    | ShortConv
    | NoCache,
    Field(discriminator="kind"),
]


class ByteRange(Frozen):
    """A size between two bounds; equal bounds are an exact size."""

    low_bytes: Bytes
    high_bytes: Bytes
    what: Literal["loaded", "on_disk"]
    """Measured in memory by the engine, or the size of the files."""
    source: Text

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low_bytes > self.high_bytes:
            raise ValueError("low_bytes is above high_bytes")
        return self


class Residency(Frozen):
    """What stays in memory when the engine runs with certain environment values."""

    env: dict[str, str]
    """All of these must be set in the recipe."""
    weights: ByteRange


class Build(Frozen):
    """One set of weights of the model."""

    repo: RepoId
    quant: Text
    """Short name used in ids: bf16, fp8, nvfp4, mxfp4, int4."""
    weights: ByteRange | None = None
    """Known size; null: bounded by parameters and bits."""
    bits_per_param: tuple[float, float] | None = None
    """Low and high bound of bits a parameter, scales included."""
    bits_source: Text | None = None
    residency: tuple[Residency, ...] = ()
    gated: bool | None = None
    """Whether the Hub asks for an accepted licence; null where no source says."""


class DrafterModel(Frozen):
    """A separate drafter for the model."""

    repo: RepoId
    method: Literal["mtp", "eagle3", "dflash", "dspark"]
    layers: tuple[LayerGroup, ...] | None
    """Its own cache layers; an empty list where it reuses the target's KV; null where unknown."""
    weights: ByteRange | None = None
    sources: dict[str, Text]
    """Source of each fact above, by its key."""


class ModelFile(Frozen):
    """One file of ``catalog/models/``; its name is the model's id."""

    title: Text
    family: Text
    params_total_b: Annotated[float, Field(gt=0)] | None
    """All parameters, in 10^9; null where no source says."""
    params_active_b: Annotated[float, Field(gt=0)] | None
    """Parameters read for one token, in 10^9 (dense: the total); null where no source says."""
    context_tokens: Tokens
    """Longest sequence that the model was made for."""
    hidden_size: Count | None
    vocab_size: Count | None
    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    """Every layer, grouped by what it keeps in memory."""
    mtp_layers: Annotated[int, Field(ge=0)] | None
    """Multi-token-prediction layers in the checkpoint; null where no source says."""
    modalities: tuple[Capability, ...]
    """What it reads, beside text."""
    languages: tuple[Text, ...] | None = None
    """ISO 639-1 codes that a source names; null where none was read."""
    licence: Text | None
    builds: Annotated[tuple[Build, ...], Field(min_length=1)]
    drafters: tuple[DrafterModel, ...] = ()
    notes: tuple[Text, ...] = ()
    """What sources disagree on, or leave open."""
    sources: dict[str, Text]
    """Source of each fact above, by its key."""

    @model_validator(mode="after")
    def _every_fact_has_its_source(self) -> Self:
        missing = [f for f in SOURCED if getattr(self, f) is not None and f not in self.sources]
        if missing:
            raise ValueError(f"no source for: {', '.join(missing)}")
        return self


class Model(ModelFile):
    """A model with its id."""

    id: Id
