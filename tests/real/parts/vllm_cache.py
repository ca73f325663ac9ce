"""Ask vLLM itself how it lays out the KV cache of a model: its own classes, its own functions.

Run by the Python of the vLLM environment: ``python vllm_cache.py QUESTIONS ANSWERS``, two JSON
files. A question is either a model (``config``, with a ``draft`` where it speculates): its layers
are made by vLLM's model classes on the meta device, without weights. Or it is a stack of layers
(``layers``), put together from vLLM's spec classes. The answers are what vLLM's log would print.

Two things of a GPU are put in place of the CPU's, as there is none: kernels that take any multiple
of 16 tokens a block (FLASH_ATTN, TRITON_ATTN) or those of ``kernel_blocks`` (FLASHINFER), and
asynchronous scheduling.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

os.environ.update(VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="ERROR")

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import (
    ensure_model_parallel_initialized,
    init_distributed_environment,
    parallel_state,
)
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.platforms.interface import Platform
from vllm.utils.math_utils import cdiv
from vllm.v1.attention.backend import AttentionBackend, MultipleOf
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.core import kv_cache_utils
from vllm.v1.kv_cache_interface import (
    CircularBufferSpec,
    FullAttentionSpec,
    KVCacheSpec,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
)

DTYPES = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32}


class GpuKernels(CPUAttentionBackend):
    """Kernels that take any multiple of 16 tokens a block, or blocks of fixed sizes."""

    fixed: ClassVar[list[int]] = []

    @staticmethod
    def get_supported_kernel_block_sizes(
        kv_cache_spec: KVCacheSpec | None = None,
    ) -> list[int | MultipleOf]:
        """Give what FLASH_ATTN and TRITON_ATTN give on a GPU; else what FLASHINFER gives."""
        return list(GpuKernels.fixed) or [MultipleOf(16)]


class GpuPlatform(Platform):
    """The rules that platforms share, as a GPU's platform inherits them."""

    @classmethod
    def _find_non_ssm_backends(cls, vllm_config: VllmConfig) -> list[type[AttentionBackend]]:
        return [GpuKernels]


CPUAttentionBackend.get_supported_kernel_block_sizes = GpuKernels.get_supported_kernel_block_sizes


def engine_config(question: dict[str, Any]) -> VllmConfig:
    """Make the engine's configuration of a question, from a folder with config.json alone."""
    speculative = question.get("speculative")
    if speculative and "draft" in question:
        speculative = {**speculative, "model": folder_of(question["draft"])}
    found = EngineArgs(
        model=folder_of(question["config"]),
        skip_tokenizer_init=True,
        load_format="dummy",
        enforce_eager=True,
        dtype="bfloat16",
        block_size=16,
        kv_cache_dtype=question["kv_cache_dtype"],
        max_model_len=question["context_tokens"],
        enable_prefix_caching=question["prefix_caching"],
        speculative_config=speculative,
    ).create_engine_config()
    found.cache_config.block_size = 16
    found.cache_config.kv_cache_layout = "LBNHC"
    found.scheduler_config.async_scheduling = True
    found.scheduler_config.max_num_batched_tokens = question["max_num_batched_tokens"]
    return found


def folder_of(config: dict[str, Any]) -> str:
    """Write a configuration where vLLM reads one."""
    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def model_specs(config: VllmConfig) -> dict[str, KVCacheSpec]:
    """Make a model and its drafter by vLLM's own classes; ask each layer what it keeps."""
    torch.set_default_dtype(torch.bfloat16)
    drafting = config.speculative_config
    with torch.device("meta"):
        initialize_model(config)
        if drafting and drafting.draft_model_config and drafting.method != "ngram":
            initialize_model(config, model_config=drafting.draft_model_config, prefix="draft")
    if config.model_config.is_hybrid:
        GpuPlatform._align_hybrid_block_size(config, GpuKernels)
    layers = config.compilation_config.static_forward_context.items()
    specs = {n: x.get_kv_cache_spec(config) for n, x in layers if isinstance(x, AttentionLayerBase)}
    return {name: spec for name, spec in specs.items() if spec is not None}


def stack_specs(layers: list[dict[str, Any]]) -> dict[str, KVCacheSpec]:
    """Make the specs of a stack of layers."""
    specs: dict[str, KVCacheSpec] = {}
    for number, layer in enumerate(layers):
        for copy in range(layer["count"]):
            specs[f"layers.{number}.{copy}"] = stack_spec(layer)
    return specs


def stack_spec(layer: dict[str, Any]) -> KVCacheSpec:
    """Make the spec of one layer, as vLLM's attention and mamba layers do."""
    block = layer["block_tokens"]
    if layer["kind"] == "state":
        return MambaSpec(
            shapes=((layer["state_bytes"],),),
            dtypes=(torch.uint8,),
            block_size=block,
            page_size_padded=layer["page_bytes"],
            mamba_cache_mode=layer["mode"],
            num_speculative_blocks=layer["drafts"],
            tp_replicated=layer.get("replicated", False),
        )
    shape = {
        "block_size": block,
        "num_kv_heads": layer["heads"],
        "head_size": layer["head_dim"],
        "dtype": DTYPES[layer["width"]],
    }
    if layer["kind"] == "keys":
        return MLAAttentionSpec(**shape, tokens_per_state=layer["ratio"])
    if layer["kind"] == "ring":
        return CircularBufferSpec(**shape, head_size_v=0)
    if layer["kind"] == "sliding":
        return SlidingWindowSpec(**shape, sliding_window=layer["window"])
    return FullAttentionSpec(**shape)


def answer(config: VllmConfig, specs: dict[str, KVCacheSpec], available: int) -> dict[str, Any]:
    """Say what the log prints: vLLM's own plan of the pool and its own figures."""
    (plan,) = kv_cache_utils.get_kv_cache_configs(config, [specs], [available])
    scheduler = kv_cache_utils.generate_scheduler_kv_cache_config([plan])
    tokens, concurrency = kv_cache_utils.get_kv_cache_capacity(config, scheduler)
    kept = (group.kv_cache_spec for group in plan.kv_cache_groups)
    return {
        "block_size": config.cache_config.block_size,
        "num_blocks": plan.num_blocks,
        "blocks_per_request": sum(
            cdiv(spec.max_memory_usage_bytes(config), spec.page_size_bytes) for spec in kept
        ),
        "kv_cache_tokens": tokens,
        "max_concurrency": concurrency,
    }


def start_distributed(config: VllmConfig) -> None:
    """Make the process groups of one rank, which model classes ask for."""
    with set_current_vllm_config(config):
        init_distributed_environment(1, 0, f"file://{tempfile.mkdtemp()}/ranks", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
    parallel_state._EP = parallel_state._TP


def main() -> None:
    """Answer every question of a file into another; an error of one is its answer."""
    given = json.loads(Path(sys.argv[1]).read_text())
    answers: dict[str, dict[str, Any]] = {}
    plain = engine_config(given["plain"])
    start_distributed(plain)
    for name, question in given["models"].items():
        try:
            GpuKernels.fixed = question.get("kernel_blocks", [])
            config = engine_config(question)
            with set_current_vllm_config(config):
                answers[name] = answer(config, model_specs(config), question["available_bytes"])
        except Exception as err:
            answers[name] = {"error": f"{type(err).__name__}: {err}"}
    for name, question in given["stacks"].items():
        plain.model_config.max_model_len = question["context_tokens"]
        plain.scheduler_config.max_num_batched_tokens = question["in_flight_tokens"] // 2
        plain.cache_config.mamba_cache_mode = question["mode"]
        plain.cache_config.kv_cache_layout = question["layout"]
        specs = stack_specs(question["layers"])
        answers[name] = answer(plain, specs, question["available_bytes"])
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
