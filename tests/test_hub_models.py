"""Models described by a repository's config.json; values as in the catalog's sourced facts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.errors import Misuse, Unknown
from sparkrecipes.hub_models import fetch, model_from_config
from sparkrecipes.memory import estimate, model_request
from sparkrecipes.schema.model import (
    FullAttention,
    GatedDeltaNet,
    Mamba2,
    MlaAttention,
    Model,
    NoCache,
    SlidingAttention,
)
from tests.support import model_configs as configs
from tests.support.hub import Hub, HubRepo
from tests.support.hub_client import environment
from tests.support.models import SPARK, model

LLAMA_70B: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


NEMOTRON: dict[str, Any] = {
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "max_position_embeddings": 262144,
}


def described(config: dict[str, Any], **sizes: int) -> Model:
    """Describe a configuration of a repository with 40 GB of weights unless said."""
    given = {"weights_bytes": 40_000_000_000, "params_total": 70_000_000_000, **sizes}
    return model_from_config("owner/some-model", config, source="test", **given)


def test_a_dense_model_without_head_dim_uses_hidden_over_heads() -> None:
    """Llama 3.3 70B: 80 full layers of 8 x 128."""
    (layers,) = described(LLAMA_70B).layers
    expected = FullAttention(
        kind="full_attention", count=80, kv_heads=8, head_dim_k=128, head_dim_v=128
    )
    assert expected == layers


def test_a_hybrid_is_read_from_its_nested_text_config() -> None:
    """Qwen3.6-35B-A3B: 30 GatedDeltaNet and 10 full layers, inside ``text_config``."""
    text = {
        "num_hidden_layers": 40,
        "full_attention_interval": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "hidden_size": 2048,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
        "max_position_embeddings": 262144,
    }
    model = described({"model_type": "qwen3_5_moe", "text_config": text, "vision_config": {}})
    by_kind = {layer.kind: layer for layer in model.layers}
    assert {"gated_delta_net": 30, "full_attention": 10} == {
        kind: layer.count for kind, layer in by_kind.items()
    }
    assert isinstance(by_kind["gated_delta_net"], GatedDeltaNet)
    assert (1, ("image",), 262144) == (model.mtp_layers, model.modalities, model.context_tokens)


def test_alternating_sliding_layers_keep_their_window() -> None:
    """gpt-oss-20b: 12 sliding layers of window 128 and 12 full ones."""
    config = {
        "num_hidden_layers": 24,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "sliding_window": 128,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
    }
    sliding, full = described(config).layers
    assert isinstance(sliding, SlidingAttention)
    assert (12, 128, 12) == (sliding.count, sliding.window_tokens, full.count)


def test_a_nemotron_pattern_counts_its_letters() -> None:
    """Nemotron 3 Nano: 23 Mamba, 23 expert and 6 attention layers."""
    pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
    layers = described({**NEMOTRON, "hybrid_override_pattern": pattern}).layers
    counts = {type(layer): layer.count for layer in layers}
    assert {Mamba2: 23, NoCache: 23, FullAttention: 6} == counts


def test_latent_attention_is_seen_by_its_rank_and_not_by_its_name() -> None:
    """C38: MLA keeps one latent a token and layer; the dense formula overstates it."""
    config = {
        **LLAMA_70B,
        "num_hidden_layers": 43,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
    }
    (layers,) = described(config).layers
    assert (
        MlaAttention(kind="mla_attention", count=43, kv_lora_rank=512, qk_rope_head_dim=64)
        == layers
    )


@pytest.mark.parametrize(
    ("config", "a_token", "fixed"),
    [
        # 32 layers x 2 x 8 heads x 128 x 2 bytes, for the 4,096 tokens of their window.
        (configs.MISTRAL_7B, 0, 32 * 4096 * 4096),
        # 5 of 34 layers are full, 2 x 4 x 256 x 2 bytes each; 29 keep 1,024 tokens.
        (configs.GEMMA_3_4B, 5 * 4096, 29 * 1024 * 4096),
        # 12 of 48 layers, 2 x 2 x 256 x 2 bytes; 36 states: 8,192 channels x 3 x 2 bytes and
        # 32 heads x 128 x 128 x 4.
        (configs.QWEN3_NEXT_80B, 12 * 2048, 36 * (8192 * 3 * 2 + 32 * 128 * 128 * 4)),
        # 27 layers x (512 + 64) x 2 bytes.
        (configs.DEEPSEEK_V2_LITE, 27 * 1152, 0),
        # 6 layers x 2 x 2 x 128 x 2 bytes; 23 states: 64 x 64 + 2 x 8 x 128 channels x 3 x 2 bytes
        # and 64 heads x 64 x 128 x 4.
        (configs.NEMOTRON_3_NANO, 6 * 1024, 23 * (6144 * 3 * 2 + 64 * 64 * 128 * 4)),
        # 4 layers x 2 x 8 x 128 x 2 bytes; 36 states of 128 x 64 + 2 x 128 channels, 16 bits at
        # least, as no source gives their type.
        (configs.GRANITE_4_SMALL, 4 * 4096, 36 * (8448 * 3 * 2 + 128 * 64 * 128 * 2)),
    ],
    ids=["mistral", "gemma 3", "qwen3-next", "deepseek", "nemotron", "granite 4"],
)
def test_bytes_of_published_configurations_by_hand(
    config: dict[str, Any], a_token: int, fixed: int
) -> None:
    """What one more token costs, and what a sequence keeps whatever its length: by hand."""
    found = described(config)
    context = found.context_tokens
    request = model_request(
        found, found.builds, context_tokens=context, users=1, kv_cache_dtype="bfloat16"
    )
    answer = estimate(request, SPARK)
    kv, state = answer.bounds["kv_cache_bytes"], answer.bounds["state_bytes"]
    assert a_token == answer.kv_bytes_per_token
    assert kv is not None
    assert state is not None
    assert context * a_token + fixed == kv[0] + state[0]


def test_indexers_and_n_grams_are_kept_beside_the_layers() -> None:
    """Qwen3.8-Flash-Next's layers from its configuration are those of the catalog, to the byte."""
    text = {
        **{key: configs.QWEN3_NEXT_80B[key] for key in configs.QWEN3_NEXT_80B if "linear" in key},
        "linear_num_value_heads": 48,
        "mamba_ssm_dtype": "float32",
        "num_hidden_layers": 48,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 12,
        "num_attention_heads": 24,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "hidden_size": 2560,
        "max_position_embeddings": 262144,
        "hc_count": 4,
        "ngram_size": 3,
        "ple_conv_kernel_size": 4,
        "ple_layer_ids": [2],
        "indexer_kv_heads": 1,
        "indexer_head_dim": 128,
        "indexer_compress_ratio": 4,
    }
    found = described({"model_type": "qwen4_exp", "text_config": text})
    assert set(model("qwen3.8-flash-next").layers) == set(found.layers)


def test_a_repository_without_sized_weights_is_unknown() -> None:
    """Bytes are not guessed from parameters."""
    with pytest.raises(Unknown):
        described(LLAMA_70B, weights_bytes=0)


def test_unstated_parameters_stay_unknown() -> None:
    """Nor parameters from bytes: the weights' size is enough to size a model."""
    assert described(LLAMA_70B, params_total=0).params_total_b is None


def test_blocks_that_name_their_kind_are_counted() -> None:
    """Nemotron 3.5 Lightning: ``layers_block_type`` instead of a pattern of letters."""
    blocks = ["mamba", "moe"] * 23 + ["attention"] * 6
    counts = {type(x): x.count for x in described({**NEMOTRON, "layers_block_type": blocks}).layers}
    assert {Mamba2: 23, NoCache: 23, FullAttention: 6} == counts


def test_window_layers_may_have_heads_of_their_own() -> None:
    """MiMo V2 Flash: 39 window layers of 8 heads beside 9 full ones of 4."""
    config = {
        "num_hidden_layers": 48,
        "hybrid_layer_pattern": [0] + [1] * 39 + [0] * 8,
        "attention_chunk_size": 128,
        "sliding_window": 128,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "max_position_embeddings": 262144,
    }
    full, window = described(config).layers
    assert isinstance(window, SlidingAttention)
    assert isinstance(full, FullAttention)
    assert (9, 4, 39, 8) == (full.count, full.kv_heads, window.count, window.kv_heads)
    assert (192, 128) == (full.head_dim_k, full.head_dim_v)


def test_blocks_without_attention_keep_nothing() -> None:
    """Llama Nemotron Super 49B: 31 of 80 blocks have no attention, the others 8 KV heads."""
    block = {"attention": {"n_heads_in_group": 8, "no_op": False}}
    config = {
        **LLAMA_70B,
        "num_key_value_heads": None,
        "block_configs": [block] * 49 + [{"attention": {"no_op": True}}] * 31,
    }
    counts = {type(layer): layer.count for layer in described(config).layers}
    assert {FullAttention: 49, NoCache: 31} == counts


def test_an_indexer_is_counted_beside_latent_attention() -> None:
    """GLM 5.2: 57 of 78 layers share another's indexer."""
    config = {
        **LLAMA_70B,
        "num_hidden_layers": 78,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "index_head_dim": 128,
        "indexer_types": ["full"] * 21 + ["shared"] * 57,
    }
    assert [78, 21] == [layer.count for layer in described(config).layers]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {**LLAMA_70B, "layer_types": ["quantum_attention"] * 80},
        {**LLAMA_70B, "max_position_embeddings": None},
        {**LLAMA_70B, "num_attention_heads": "many"},
        {"hybrid_override_pattern": "MX"},
        {**LLAMA_70B, "compress_ratios": [0, 4, 128]},
        {**LLAMA_70B, "attention_chunk_size": 8192},
        {**LLAMA_70B, "attn_type_list": [0, 1]},
        {**LLAMA_70B, "sliding_window": 4096, "model_type": "gemma2"},
        {**LLAMA_70B, "block_configs": [{"attention": {"replace_with_linear": True}}]},
    ],
)
def test_what_is_not_understood_is_unknown(config: dict[str, Any]) -> None:
    """No layer kind, shape or context is guessed."""
    with pytest.raises(Unknown):
        described(config)


def test_a_name_that_is_no_repository_is_misuse() -> None:
    """Nothing is asked of the network for a name that cannot be one."""
    with pytest.raises(Misuse):
        fetch("../../etc")


def test_a_repository_is_sized_from_what_the_hub_says(tmp_path: Path) -> None:
    """`fit owner/name` asks the real client, and a second copy of the weights does not count."""
    files = {
        "config.json": json.dumps(LLAMA_70B).encode(),
        "model.safetensors": b"w" * 4096,
        "consolidated.safetensors": b"w" * 4096,
    }
    repo = HubRepo(files, claimed_sizes={"model.safetensors": 40_000_000_000})
    with Hub({"acme/dense": repo}) as hub:
        out = subprocess.run(
            [sys.executable, "-m", "sparkrecipes", "fit", "acme/dense", "--users", "1", "--json"],
            capture_output=True,
            text=True,
            env=environment(hub.url, tmp_path),
        )
    answer = json.loads(out.stdout)
    low, high = answer["bounds"]["weights_bytes"]
    assert low <= 40_000_000_000 <= high < 50_000_000_000
    assert answer["kv_bytes_per_token"] == 327680


def test_a_gated_repository_says_how_to_get_in(tmp_path: Path) -> None:
    """As an unknown: exit code 3."""
    repo = HubRepo({"config.json": b"{}"}, gated=True)
    with Hub({"acme/gated": repo}) as hub:
        out = subprocess.run(
            [sys.executable, "-m", "sparkrecipes", "fit", "acme/gated", "--json"],
            capture_output=True,
            text=True,
            env=environment(hub.url, tmp_path),
        )
    error = json.loads(out.stdout)["error"]
    assert (3, "gated", True) == (out.returncode, error["code"], "hf auth login" in error["repair"])
