"""Which layers a Hugging Face configuration describes, and what each keeps in memory.

A model with a structure that is not read here is refused, never sized as if it had none: an
unread window or compression would be wrong by a multiple, in the unsafe direction too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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

Config = Mapping[str, Any]

UNREAD = (
    "compress_ratios",
    "linear_attn_config",
    "sparse_attention_config",
    "attention_chunk_size",
    "num_kv_shared_layers",
    "cross_attention_layers",
    "is_encoder_decoder",
)
"""Fields that change what layers keep and that are not read here: DeepSeek V4, Kimi Linear,
MiniMax M3, Llama 4, Gemma 3n, Mllama, encoder-decoders."""

UNIFORM_WINDOW = ("mistral", "mixtral", "phi3", "starcoder2")
"""Model types whose plain ``sliding_window`` holds in every layer; others alternate unseen.

Source: transformers, ``configuration_<type>.py`` of each; Gemma 2 and 3 alternate by default.
"""

LETTERS = {"M": "mamba2", "*": "full_attention", "E": "no_cache", "-": "no_cache"}
BLOCKS = {
    "mamba": "mamba2",
    "attention": "full_attention",
    "moe": "no_cache",
    "mlp": "no_cache",
}
"""Nemotron-H's ``hybrid_override_pattern`` and ``layers_block_type``.

Source: transformers, models/nemotron_h/configuration_nemotron_h.py.
"""

TYPES = {
    "linear_attention": "gated_delta_net",
    "indexed_attention": "full_attention",
    "mamba": "mamba2",
    "attention": "full_attention",
}
"""Other names of a kind in ``layer_types``: Qwen3-Next and later, Qwen4-Exp, Granite 4.

Source: transformers, configuration files of qwen3_next, qwen4_exp and granitemoehybrid.
"""


class NotUnderstood(ValueError):
    """A structure that is not read here."""


def layer_groups(text: Config) -> tuple[LayerGroup, ...]:
    """Group a language model's layers by what they keep in memory.

    Args:
        text: The configuration of the language model.

    Raises:
        NotUnderstood: It has a structure that is not read here.
        KeyError: A field that its layers need is missing.
    """
    if "hybrid_layer_pattern" not in text:
        refuse_unread(text)
    if "kv_lora_rank" in text and "qk_rope_head_dim" in text:
        return latent_groups(text)
    if "block_configs" in text:
        return decilm_groups(text)
    kinds = layer_kinds(text)
    groups = tuple(group(kind, kinds.count(kind), text) for kind in dict.fromkeys(kinds))
    return (*groups, *side_caches(kinds.count("full_attention"), text))


def side_caches(full: int, text: Config) -> tuple[LayerGroup, ...]:
    """Build what Qwen4-Exp keeps beside its layers: keys of indexers, convolutions of n-grams.

    Every full layer has an indexer; n-gram layers keep (kernel - 1) x n tokens of each residual
    stream's channels.

    Source: vLLM 0.32.0, models/qwen4_exp/nvidia/ple_layer.py and common/qsa_cache.py.

    Raises:
        KeyError: A field that they need is missing.
    """
    groups: list[LayerGroup] = []
    if text.get("indexer_head_dim") and full:
        groups.append(
            Indexer(
                kind="indexer",
                count=full,
                kv_heads=text["indexer_kv_heads"],
                head_dim=text["indexer_head_dim"],
                compress_ratio=text["indexer_compress_ratio"],
            )
        )
    if ngrams := text.get("ple_layer_ids"):
        kernel, tokens = text.get("ple_conv_kernel_size", 4), text.get("ngram_size", 3)
        groups.append(
            ShortConv(
                kind="short_conv",
                count=len(ngrams),
                channels=text.get("hc_count", 4) * text["hidden_size"],
                state_tokens=(kernel - 1) * tokens,
            )
        )
    return tuple(groups)


def refuse_unread(text: Config) -> None:
    """Refuse a configuration with a field of ``UNREAD`` that is set.

    Raises:
        NotUnderstood: Names the field.
    """
    unread = [name for name in UNREAD if text.get(name)]
    if any(kind != 1 for kind in text.get("attn_type_list") or ()):
        unread.append("attn_type_list")
    if unread:
        raise NotUnderstood(f"{', '.join(unread)} is not read")


def layer_kinds(text: Config) -> Sequence[str]:
    """List the kind of every layer, in order.

    Raises:
        NotUnderstood: A kind is unknown, or a window whose layers are not named.
    """
    if pattern := text.get("hybrid_override_pattern"):
        return [LETTERS[letter] for letter in pattern]
    if blocks := text.get("layers_block_type"):
        return [BLOCKS[block] for block in blocks]
    count = int(text["num_hidden_layers"])
    if windows := text.get("hybrid_layer_pattern"):
        return ["sliding_attention" if w else "full_attention" for w in windows[:count]]
    if types := text.get("layer_types"):
        return [TYPES.get(str(name), str(name)) for name in types[:count]]
    if every := text.get("full_attention_interval"):
        return interleaved(count, every, "gated_delta_net")
    if not text.get("sliding_window") or text.get("use_sliding_window") is False:
        return ["full_attention"] * count
    if every := text.get("sliding_window_pattern"):
        return interleaved(count, every, "sliding_attention")
    if text.get("model_type") in UNIFORM_WINDOW:
        return ["sliding_attention"] * count
    raise NotUnderstood("sliding_window does not say in which layers it holds")


def interleaved(count: int, every: int, between: str) -> list[str]:
    """Return full attention in every ``every``-th layer and another kind between."""
    return ["full_attention" if (i + 1) % every == 0 else between for i in range(count)]


def group(kind: str, count: int, text: Config) -> LayerGroup:
    """Build one group of layers from the configuration's fields.

    Raises:
        KeyError: A field that this kind needs is missing.
        NotUnderstood: The kind is unknown.
    """
    if kind == "full_attention":
        return full_attention(count, text)
    if kind == "sliding_attention":
        return sliding_attention(count, text)
    if kind == "gated_delta_net":
        return GatedDeltaNet(
            kind="gated_delta_net",
            count=count,
            num_key_heads=text["linear_num_key_heads"],
            num_value_heads=text["linear_num_value_heads"],
            key_head_dim=text["linear_key_head_dim"],
            value_head_dim=text["linear_value_head_dim"],
            conv_kernel=text["linear_conv_kernel_dim"],
            ssm_dtype=text.get("mamba_ssm_dtype"),
        )
    if kind == "mamba2":
        return mamba2(count, text)
    if kind == "no_cache":
        return NoCache(kind="no_cache", count=count)
    raise NotUnderstood(f"layers of the kind {kind!r}")


def mamba2(count: int, text: Config) -> Mamba2:
    """Build Mamba-2 layers, by the names of Nemotron-H or of Granite 4.

    Raises:
        KeyError: A field that they need is missing.
    """
    if "mamba_n_heads" in text:
        heads, inner = text["mamba_n_heads"], text.get("mamba_expand", 2) * text["hidden_size"]
        return Mamba2(
            kind="mamba2",
            count=count,
            num_heads=heads,
            head_dim=inner // heads,
            d_state=text["mamba_d_state"],
            n_groups=text["mamba_n_groups"],
            conv_kernel=text["mamba_d_conv"],
            ssm_dtype=text.get("mamba_ssm_cache_dtype"),
        )
    return Mamba2(
        kind="mamba2",
        count=count,
        num_heads=text["mamba_num_heads"],
        head_dim=text["mamba_head_dim"],
        d_state=text["ssm_state_size"],
        n_groups=text["n_groups"],
        conv_kernel=text["conv_kernel"],
        ssm_dtype=text.get("mamba_ssm_cache_dtype"),
    )


def head_shape(text: Config) -> tuple[int, int]:
    """Return KV heads and head dimension of a model's ordinary attention."""
    heads = text["num_attention_heads"]
    head_dim = (
        text.get("head_dim") or text.get("attention_head_dim") or text["hidden_size"] // heads
    )
    return text.get("num_key_value_heads") or heads, head_dim


def full_attention(count: int, text: Config) -> FullAttention:
    """Build a group of full-attention layers; global layers may have a shape of their own."""
    kv_heads, head_dim = head_shape(text)
    head_dim = text.get("global_head_dim") or head_dim
    return FullAttention(
        kind="full_attention",
        count=count,
        kv_heads=text.get("num_global_key_value_heads") or kv_heads,
        head_dim_k=head_dim,
        head_dim_v=text.get("v_head_dim") or head_dim,
    )


def sliding_attention(count: int, text: Config) -> SlidingAttention:
    """Build a group of sliding-window layers; they may have a shape of their own."""
    kv_heads, head_dim = head_shape(text)
    head_dim = text.get("swa_head_dim") or head_dim
    return SlidingAttention(
        kind="sliding_attention",
        count=count,
        kv_heads=text.get("swa_num_key_value_heads") or kv_heads,
        head_dim_k=head_dim,
        head_dim_v=text.get("swa_v_head_dim") or head_dim,
        window_tokens=text["sliding_window"],
    )


def latent_groups(text: Config) -> tuple[LayerGroup, ...]:
    """Build the layers of latent attention (MLA), seen by its fields and not by a name."""
    count = text["num_hidden_layers"]
    latent = MlaAttention(
        kind="mla_attention",
        count=count,
        kv_lora_rank=text["kv_lora_rank"],
        qk_rope_head_dim=text["qk_rope_head_dim"],
    )
    if not text.get("index_head_dim"):
        return (latent,)
    shared = list(text.get("indexer_types") or ()).count("shared")
    indexer = Indexer(
        kind="indexer",
        count=count - shared,
        kv_heads=1,
        head_dim=text["index_head_dim"],
        compress_ratio=1,
    )
    return latent, indexer


def decilm_groups(text: Config) -> tuple[LayerGroup, ...]:
    """Build the layers of a DeciLM, each block of which says how its heads are shared.

    Raises:
        NotUnderstood: A block replaces attention by something else.
    """
    heads = text["num_attention_heads"]
    head_dim = text.get("head_dim") or text["hidden_size"] // heads
    shared: list[int | None] = []
    for block in text["block_configs"]:
        attention = block["attention"]
        if attention.get("replace_with_linear"):
            raise NotUnderstood("a block replaces attention by a linear layer")
        shared.append(None if attention.get("no_op") else attention["n_heads_in_group"])
    return tuple(
        NoCache(kind="no_cache", count=shared.count(size))
        if size is None
        else FullAttention(
            kind="full_attention",
            count=shared.count(size),
            kv_heads=heads // size,
            head_dim_k=head_dim,
            head_dim_v=head_dim,
        )
        for size in dict.fromkeys(shared)
    )
