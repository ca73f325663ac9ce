"""Configurations of models as their publishers state them, where the KV cache depends on them.

Layers, heads, windows, states and contexts are those of the published ``config.json`` of each
model; what does not touch the cache (vocabulary, width of feed-forward layers, number of experts)
is small, so that vLLM's own classes make the model at once (``tests/real``).
"""

from typing import Any

Config = dict[str, Any]

SMALL: Config = {
    "vocab_size": 1024,
    "intermediate_size": 256,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}

LLAMA_8B: Config = {
    **SMALL,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 131072,
}
"""Llama 3.1 8B: 32 full layers of 8 x 128; head_dim is not stated."""

MISTRAL_7B: Config = {
    **LLAMA_8B,
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "max_position_embeddings": 32768,
    "sliding_window": 4096,
}
"""Mistral 7B v0.1: a window of 4,096 in every layer."""

GPT_OSS_20B: Config = {
    **SMALL,
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
    "max_position_embeddings": 131072,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "swiglu_limit": 7.0,
    "attention_bias": True,
    "rope_theta": 150000,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
    },
}
"""gpt-oss-20b: 12 layers of a window of 128 and 12 full ones, in turns."""

GEMMA_3_4B: Config = {
    **SMALL,
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_size": 2560,
    "max_position_embeddings": 131072,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "query_pre_attn_scalar": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
}
"""Gemma 3 4B: every sixth of 34 layers is full, 29 keep 1,024 tokens."""

GEMMA_4_26B: Config = {
    **SMALL,
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "num_global_key_value_heads": 2,
    "head_dim": 256,
    "global_head_dim": 512,
    "hidden_size": 2816,
    "max_position_embeddings": 262144,
    "sliding_window": 1024,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
    "attention_k_eq_v": True,
    "hidden_activation": "gelu_pytorch_tanh",
    "enable_moe_block": False,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "vocab_size_per_layer_input": 1024,
}
"""Gemma 4 26B-A4B: full layers of 2 x 512 beside windows of 8 x 256."""

QWEN3_NEXT_80B: Config = {
    **SMALL,
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "max_position_embeddings": 262144,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "mlp_only_layers": list(range(1, 48)),
    "partial_rotary_factor": 0.25,
    "rope_theta": 10000000,
}
"""Qwen3-Next 80B-A3B: 36 gated-delta-net layers and 12 full ones of 2 x 256."""

NEMOTRON_3_NANO: Config = {
    **SMALL,
    "architectures": ["NemotronHForCausalLM"],
    "model_type": "nemotron_h",
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "M-M-M*-M-M-M*-M-M-M*-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M-",
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "attention_head_dim": 128,
    "hidden_size": 2688,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "chunk_size": 128,
    "max_position_embeddings": 262144,
    "layer_norm_epsilon": 1e-5,
    "mlp_hidden_act": "relu2",
    "mamba_hidden_act": "silu",
    "use_conv_bias": True,
    "mamba_ssm_cache_dtype": "float32",
    "use_bias": False,
    "mlp_bias": False,
    "attention_bias": False,
    "expand": 2,
    "residual_in_fp32": False,
}
"""Nemotron 3 Nano 30B-A3B: 23 Mamba-2 and 6 full layers of 2 x 128; experts as plain layers."""

GRANITE_4_SMALL: Config = {
    **SMALL,
    "architectures": ["GraniteMoeHybridForCausalLM"],
    "model_type": "granitemoehybrid",
    "num_hidden_layers": 40,
    "layer_types": (["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 131072,
    "mamba_n_heads": 128,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_head": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "shared_intermediate_size": 256,
    "position_embedding_type": "nope",
    "embedding_multiplier": 12,
    "logits_scaling": 16,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.0078125,
}
"""Granite 4.0 H Small: 36 Mamba-2 layers of 128 x 64 and 4 full ones of 8 x 128."""

DEEPSEEK_V2_LITE: Config = {
    **SMALL,
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_hidden_layers": 27,
    "first_k_dense_replace": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "hidden_size": 2048,
    "max_position_embeddings": 163840,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "q_lora_rank": None,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 1.0,
    "norm_topk_prob": True,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "rope_theta": 10000,
}
"""DeepSeek V2 Lite's attention: 27 layers of one latent of 512 + 64 values."""

EAGLE3_OF_LLAMA: Config = {
    **LLAMA_8B,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 1024,
}
"""An EAGLE-3 head of Llama 3.1 8B: one layer of 8 x 128."""

EAGLE3_OF_GPT_OSS: Config = {
    **EAGLE3_OF_LLAMA,
    "num_attention_heads": 64,
    "head_dim": 64,
    "hidden_size": 2880,
}
"""An EAGLE-3 head of gpt-oss-20b: one layer of 8 x 64."""

DFLASH_OF_QWEN: Config = {
    **SMALL,
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "num_hidden_layers": 8,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "hidden_size": 2048,
    "max_position_embeddings": 262144,
    "layer_types": ["full_attention"] * 8,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 5, "target_layer_ids": [1, 10, 19, 28, 37]},
}
"""A DFlash drafter of a Qwen with hidden size 2048: 8 full layers of 4 x 128."""

DFLASH_WITH_WINDOWS: Config = {
    **DFLASH_OF_QWEN,
    "layer_types": ["sliding_attention"] * 8,
    "sliding_window": 2048,
    "use_sliding_window": True,
}
"""A DFlash drafter whose layers keep a window (one engine cannot mix both in a drafter)."""
