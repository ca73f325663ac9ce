"""A model described by its repository: ``config.json`` and file sizes, read from the Hub.

Only facts that the repository states are used; what it does not state stays null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkrecipes.errors import Misuse, Unknown
from sparkrecipes.schema.model import (
    Build,
    ByteRange,
    FullAttention,
    GatedDeltaNet,
    LayerGroup,
    Mamba2,
    MlaAttention,
    Model,
    NoCache,
    SlidingAttention,
)

REPO = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")
CONFIG_LIMIT_BYTES = 4 * 2**20


def fetch(repo: str) -> Model:
    """Ask the Hub what a repository holds.

    Raises:
        Misuse: ``repo`` is no repository name.
        Unknown: The Hub did not answer, does not show the repository, or its configuration is
            not understood.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if not REPO.match(repo):
        raise Misuse(f"{repo!r} is not a Hugging Face repository", repair="write it as owner/name")
    try:
        info = HfApi().model_info(repo, files_metadata=True, timeout=20)
        config = Path(hf_hub_download(repo, "config.json", revision=info.sha, etag_timeout=20))
    except GatedRepoError as err:
        raise Unknown(
            f"{repo} is gated: its licence must be accepted and a token given",
            code="gated",
            repair=f"accept it at https://huggingface.co/{repo}, then run: hf auth login",
        ) from err
    except RepositoryNotFoundError as err:
        raise Unknown(
            f"the Hub shows no repository {repo}: it is misspelt, private, or gone",
            code="repo_not_found",
            repair="check the name; for a private one run: hf auth login",
        ) from err
    except (HfHubHTTPError, OSError) as err:
        raise Unknown(
            f"the Hub could not be asked about {repo} ({type(err).__name__})",
            code="no_network",
            repair="check the network, or ask for a model of the catalog: sparkrecipes list",
        ) from err
    if config.stat().st_size > CONFIG_LIMIT_BYTES:
        raise Unknown(f"config.json of {repo} is over 4 MiB", repair="check the repository")
    sizes = [f.size for f in info.siblings or [] if f.rfilename.endswith(".safetensors") and f.size]
    return model_from_config(
        repo,
        json.loads(config.read_text()),
        weights_bytes=sum(sizes) or None,
        params_total=info.safetensors.total if info.safetensors else None,
        source=f"https://huggingface.co/{repo}/blob/{info.sha}/config.json",
    )


def model_from_config(
    repo: str,
    config: Mapping[str, Any],
    *,
    weights_bytes: int | None,
    params_total: int | None,
    source: str,
) -> Model:
    """Describe a model by its Hugging Face configuration.

    Args:
        repo: The repository, ``owner/name``.
        config: ``config.json``; a nested ``text_config`` is the language model's.
        weights_bytes: Sum of its safetensors files.
        params_total: Number of parameters, where the Hub states it.
        source: Where the configuration was read.

    Raises:
        Unknown: The configuration does not say what is needed.
    """
    text = {**config, **config.get("text_config", {})}
    layers = layer_groups(repo, text)
    context_tokens = text.get("max_position_embeddings")
    if not context_tokens:
        raise Unknown(
            f"config.json of {repo} states no longest context",
            code="unknown_architecture",
            repair="write a model file for it: docs/catalog.md",
        )
    if not params_total or not weights_bytes:
        raise Unknown(
            f"{repo} has no safetensors weights whose size the Hub states: it cannot be sized",
            code="no_weights",
            repair="ask for a repository with safetensors weights",
        )
    weights = ByteRange(
        low_bytes=weights_bytes, high_bytes=weights_bytes, what="on_disk", source=source
    )
    facts = ("params_total_b", "context_tokens", "layers", "mtp_layers", "modalities")
    optional = ("hidden_size", "vocab_size")
    return Model(
        id=re.sub(r"[^a-z0-9._-]", "-", repo.lower().split("/")[1]),
        title=repo,
        family=str(config.get("model_type", "unknown")),
        params_total_b=params_total / 1e9,
        params_active_b=None,
        context_tokens=context_tokens,
        hidden_size=text.get("hidden_size"),
        vocab_size=text.get("vocab_size"),
        layers=tuple(layers),
        mtp_layers=int(
            text.get("mtp_num_hidden_layers") or text.get("num_nextn_predict_layers") or 0
        ),
        modalities=("image",) if "vision_config" in config else (),
        licence=None,
        builds=(Build(repo=repo, quant=quant_of(config), weights=weights),),
        sources=dict.fromkeys((*facts, *(f for f in optional if text.get(f))), source),
    )


def quant_of(config: Mapping[str, Any]) -> str:
    """Name the quantisation that a configuration states, or its plain type."""
    stated = config.get("quantization_config") or {}
    method = stated.get("quant_algo") or stated.get("quant_method")
    return str(method or config.get("torch_dtype") or config.get("dtype") or "unknown").lower()


def layer_groups(repo: str, text: Mapping[str, Any]) -> list[LayerGroup]:
    """Group a model's layers by what they keep in memory.

    Raises:
        Unknown: Something that this reads is missing or of an unknown kind.
    """
    try:
        if "kv_lora_rank" in text and "qk_rope_head_dim" in text:
            return [
                MlaAttention(
                    kind="mla_attention",
                    count=text["num_hidden_layers"],
                    kv_lora_rank=text["kv_lora_rank"],
                    qk_rope_head_dim=text["qk_rope_head_dim"],
                )
            ]
        kinds = layer_kinds(text)
        return [group(kind, kinds.count(kind), text) for kind in dict.fromkeys(kinds)]
    except (KeyError, TypeError, ValueError) as err:
        raise Unknown(
            f"config.json of {repo} is of a kind that is not understood ({err})",
            code="unknown_architecture",
            repair="write a model file for it: docs/catalog.md",
        ) from err


PATTERN_KINDS = {"M": "mamba2", "*": "full_attention", "E": "no_cache", "-": "no_cache"}
"""Letters of Nemotron-H's ``hybrid_override_pattern``.

Source: transformers, models/nemotron_h/configuration_nemotron_h.py.
"""


def layer_kinds(text: Mapping[str, Any]) -> Sequence[str]:
    """List the kind of every layer, in order."""
    if pattern := text.get("hybrid_override_pattern"):
        return [PATTERN_KINDS[letter] for letter in pattern]
    count = int(text["num_hidden_layers"])
    if types := text.get("layer_types"):
        return ["gated_delta_net" if t == "linear_attention" else str(t) for t in types[:count]]
    if every := text.get("full_attention_interval"):
        return [
            "full_attention" if (i + 1) % every == 0 else "gated_delta_net" for i in range(count)
        ]
    if text.get("sliding_window") and (every := text.get("sliding_window_pattern")):
        return [
            "full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(count)
        ]
    if text.get("sliding_window") and text.get("use_sliding_window", True):
        return ["sliding_attention"] * count
    return ["full_attention"] * count


def group(kind: str, count: int, text: Mapping[str, Any]) -> LayerGroup:
    """Build one group of layers from the configuration's fields.

    Raises:
        KeyError: A field that this kind needs is missing.
        ValueError: The kind is unknown.
    """
    if kind in ("full_attention", "sliding_attention"):
        return attention(kind, count, text)
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
    if kind == "no_cache":
        return NoCache(kind="no_cache", count=count)
    raise ValueError(f"layer kind {kind!r}")


def attention(kind: str, count: int, text: Mapping[str, Any]) -> FullAttention | SlidingAttention:
    """Build a group of attention layers; global layers may have a shape of their own."""
    heads = text["num_attention_heads"]
    kv_heads = text.get("num_key_value_heads") or heads
    head_dim = text.get("head_dim") or text["hidden_size"] // heads
    if kind == "sliding_attention":
        return SlidingAttention(
            kind="sliding_attention",
            count=count,
            kv_heads=kv_heads,
            head_dim_k=head_dim,
            head_dim_v=head_dim,
            window_tokens=text["sliding_window"],
        )
    full_dim = text.get("global_head_dim") or head_dim
    return FullAttention(
        kind="full_attention",
        count=count,
        kv_heads=text.get("num_global_key_value_heads") or kv_heads,
        head_dim_k=full_dim,
        head_dim_v=text.get("v_head_dim") or full_dim,
    )
