"""What one layer keeps in the KV cache: vLLM's cache specs, from the facts of a model file.

Source: vLLM 0.32.0 ``v1/kv_cache_interface.py`` (specs), ``platforms/interface.py``
(``_align_hybrid_block_size``), ``model_executor/layers/mamba/mamba_utils.py`` (state shapes),
``models/qwen4_exp/common/qsa_cache.py`` (indexers).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from sparkrecipes.errors import Misuse
from sparkrecipes.memory.engine_rules import CacheMode, EngineRules
from sparkrecipes.schema.model import (
    FullAttention,
    GatedDeltaNet,
    Indexer,
    LayerGroup,
    Mamba2,
    MlaAttention,
    NoCache,
    ShortConv,
    SlidingAttention,
)

SMALLEST_BLOCK = 16
"""Tokens a block where nothing asks for more (vLLM's CacheConfig.DEFAULT_BLOCK_SIZE)."""

MLA_HYBRID_BLOCK = 128
"""Multiple that latent attention beside recurrent layers needs (vLLM platforms/interface.py)."""

MAMBA_CHUNK = 128
"""Chunk that the mode which keeps all states aligns to: the chunk_size of Nemotron-H."""

FIXED_BLOCKS = (16, 32, 64)
"""Tokens a block that FLASHINFER runs whole on a GB10."""

KV_WIDTHS = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_ds_mla": 1,
}
"""Bytes a value of each KV cache type; ``auto`` is the model's own, 16 bits."""

DS_MLA_TOKEN_BYTES = 656
"""Bytes a token and layer of the packed latent cache ``fp8_ds_mla`` (vLLM, MLAAttentionSpec)."""

CONV_WIDTH = 2
"""Bytes a value of convolution states and indexer keys: the model's own type, 16 bits."""


class CacheSettings(NamedTuple):
    """Settings that decide how layers are laid out in the cache."""

    rules: EngineRules
    kv_cache_dtype: str
    ssm_width: int
    """Bytes a value of the recurrent state."""
    mode: CacheMode
    speculative_tokens: int
    in_flight_tokens: int
    """Tokens that may be scheduled and not yet settled."""
    block_tokens: int = SMALLEST_BLOCK
    """``--block-size``; hybrids may raise it."""
    any_block: bool = True
    """Whether the kernels of attention run any multiple of 16 tokens, or ``FIXED_BLOCKS``."""
    window_is_full: bool = False
    """``--disable-hybrid-kv-cache-manager``: sliding layers keep every token."""


class CacheSpec(NamedTuple):
    """How one layer's share of a block is laid out. Equal specs share a group."""

    kind: Literal["full", "sliding", "state", "ring"]
    shape: tuple[int | str, ...]
    """What else makes two layers the same to the engine."""
    block_tokens: int
    page_bytes: int
    """Bytes of one block of one layer."""
    window_tokens: int = 0
    held_blocks: int = 0
    """Blocks a sequence holds whatever its length; 0: they grow with it."""


def kv_width(dtype: str) -> int:
    """Give the bytes of one cached value.

    Raises:
        Misuse: Nobody knows this type.
    """
    try:
        return KV_WIDTHS[dtype]
    except KeyError:
        raise Misuse(
            f"{dtype!r} is not a type of the KV cache",
            code="bad_kv_cache_dtype",
            repair=f"use one of: {', '.join(KV_WIDTHS)}",
        ) from None


def token_bytes(group: LayerGroup, dtype: str) -> int:
    """Give the bytes that one layer keeps for one token; 0 for layers that do not grow.

    Latent attention keeps one latent a token, not a key and a value for each head.
    """
    match group:
        case FullAttention() | SlidingAttention():
            return group.kv_heads * (group.head_dim_k + group.head_dim_v) * kv_width(dtype)
        case MlaAttention() if dtype == "fp8_ds_mla":
            return DS_MLA_TOKEN_BYTES
        case MlaAttention():
            return (group.kv_lora_rank + group.qk_rope_head_dim) * kv_width(dtype)
        case Indexer():
            return group.kv_heads * group.head_dim * CONV_WIDTH // group.compress_ratio
        case _:
            return 0


def state_bytes(group: LayerGroup, ssm_width: int, speculative_tokens: int) -> int:
    """Give the bytes of one recurrent state of one layer; 0 for layers without one.

    Each draft token lengthens the convolution state by one.
    """
    match group:
        case GatedDeltaNet():
            keys = group.num_key_heads * group.key_head_dim
            values = group.num_value_heads * group.value_head_dim
            channels, recurrent = 2 * keys + values, values * group.key_head_dim
            kept = group.conv_kernel - 1
        case Mamba2():
            inner = group.num_heads * group.head_dim
            channels = inner + 2 * group.n_groups * group.d_state
            recurrent, kept = inner * group.d_state, group.conv_kernel - 1
        case ShortConv():
            channels, recurrent, kept = group.channels, 0, group.state_tokens
        case _:
            return 0
    return channels * (kept + speculative_tokens) * CONV_WIDTH + recurrent * ssm_width


def growing_bytes(layers: Iterable[LayerGroup], dtype: str) -> int:
    """Give the bytes that one more token costs a sequence, beyond any window."""
    return sum(g.count * token_bytes(g, dtype) for g in layers if g.kind != "sliding_attention")


def attention_block(layers: Sequence[LayerGroup], settings: CacheSettings) -> int:
    """Find the tokens of an attention block.

    Where recurrent layers share the pool, the smallest aligned block whose page holds a state.
    """
    state = max(
        (state_bytes(g, settings.ssm_width, settings.speculative_tokens) for g in layers), default=0
    )
    a_token = attention_token_bytes(layers, settings.kv_cache_dtype)
    base = settings.block_tokens
    if not state or not a_token:
        return base
    align = base
    if any(g.kind == "mla_attention" for g in layers):
        align = max(base, MLA_HYBRID_BLOCK)
    if settings.mode == "all":
        align = math.lcm(MAMBA_CHUNK, align)
    return max(base, align * ceil_div(state, align * a_token))


def attention_token_bytes(layers: Sequence[LayerGroup], dtype: str) -> int:
    """Give a token's bytes in the layers that the block is measured by: full attention first."""
    kinds = ("full_attention", "mla_attention", "sliding_attention")
    attention = sorted((g for g in layers if g.kind in kinds), key=lambda g: kinds.index(g.kind))
    return token_bytes(attention[0], dtype) if attention else 0


def layer_specs(
    layers: Sequence[LayerGroup], drafter: Sequence[LayerGroup], settings: CacheSettings
) -> dict[CacheSpec, int]:
    """Count the layers of each spec, target first, in the order that they are stated."""
    block = attention_block(layers, settings)
    state_page = block * attention_token_bytes(layers, settings.kv_cache_dtype)
    specs: dict[CacheSpec, int] = {}
    for group in (*layers, *drafter):
        for spec in group_specs(group, block, state_page, settings):
            specs[spec] = specs.get(spec, 0) + group.count
    return specs


def group_specs(
    group: LayerGroup, block: int, state_page: int, settings: CacheSettings
) -> tuple[CacheSpec, ...]:
    """Lay out what one layer of a group keeps; an indexer keeps two things."""
    match group:
        case NoCache():
            return ()
        case Indexer():
            return indexer_specs(group, block, settings.speculative_tokens)
        case SlidingAttention() if not settings.window_is_full:
            return (sliding_spec(group, block, settings),)
        case FullAttention() | SlidingAttention() | MlaAttention():
            page = block * token_bytes(group, settings.kv_cache_dtype)
            return (CacheSpec("full", shape_of(group), block, page),)
        case GatedDeltaNet() | Mamba2() | ShortConv():
            return (state_spec(group, block, state_page, settings),)


def shape_of(group: FullAttention | SlidingAttention | MlaAttention) -> tuple[int, ...]:
    """Give what tells two attention layers of one type and block apart."""
    if isinstance(group, MlaAttention):
        return (1, group.kv_lora_rank + group.qk_rope_head_dim, 0)
    return (group.kv_heads, group.head_dim_k, group.head_dim_v)


def sliding_spec(group: SlidingAttention, block: int, settings: CacheSettings) -> CacheSpec:
    """Lay out a layer that keeps a window."""
    own = sliding_block(block, settings)
    page = own * token_bytes(group, settings.kv_cache_dtype)
    return CacheSpec("sliding", shape_of(group), own, page, window_tokens=group.window_tokens)


def sliding_block(block: int, settings: CacheSettings) -> int:
    """Give the tokens of a block that a sliding layer starts from.

    Source: vLLM 0.32.0 ``model_executor/layers/attention/attention.py`` (get_kv_cache_spec,
    _largest_kernel_block_within), ``v1/attention/backends/flashinfer.py``.
    """
    if settings.rules.sliding_block == "smallest":
        return SMALLEST_BLOCK
    if settings.rules.sliding_block == "attention" or settings.any_block:
        return block
    return max(size for size in FIXED_BLOCKS if size <= max(block, SMALLEST_BLOCK))


def state_spec(
    group: GatedDeltaNet | Mamba2 | ShortConv, block: int, page: int, settings: CacheSettings
) -> CacheSpec:
    """Lay out a recurrent layer: a state fills a page, padded to that of attention."""
    state = state_bytes(group, settings.ssm_width, settings.speculative_tokens)
    drafts = settings.speculative_tokens
    held = {"none": 1 + drafts, "align": 2 + drafts, "all": 0}[settings.mode]
    if settings.mode == "align" and group.kind == "mamba2":
        held += settings.rules.checkpoint_blocks
    return CacheSpec("state", (group.kind, state), block, max(page, state), held_blocks=held)


def indexer_specs(group: Indexer, block: int, drafts: int) -> tuple[CacheSpec, CacheSpec]:
    """Lay out an indexer: compressed keys that grow, and a ring of keys of the open group.

    The ring holds an open group and every draft row, rounded up to whole groups.
    """
    key = group.kv_heads * group.head_dim * CONV_WIDTH
    ratio = group.compress_ratio
    capacity = ratio * ceil_div(ratio + drafts, ratio)
    return (
        CacheSpec("full", ("keys", group.head_dim, ratio), block, block // ratio * key),
        CacheSpec("ring", ("ring", group.head_dim), capacity, capacity * key, held_blocks=1),
    )


def ceil_div(a: int, b: int) -> int:
    """Divide and round up."""
    return -(-a // b)
