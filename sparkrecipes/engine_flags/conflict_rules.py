"""Flags that contradict each other, a field, or the checkpoint: the engine ends or ignores one.

Sources: vLLM 0.31.0, vllm/config/scheduler.py (``verify_max_model_len``), vllm/config/vllm.py
(asynchronous scheduling, eager mode), vllm/config/model.py (quantisation against the checkpoint),
vllm/config/cache.py (``kv_cache_memory_bytes``), vllm/entrypoints/launchers/cli_args.py
(``validate_parsed_serve_args``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkrecipes.engine_flags.given import GivenFlag
from sparkrecipes.engine_flags.problem import Asked, FlagProblem, Rule, error, hint

_NEEDS = (
    ("--enable-auto-tool-choice", "--tool-call-parser"),
    ("--enable-log-outputs", "--enable-log-requests"),
)
"""Options that end the start without another one."""

_FORMATS = {
    "modelopt_fp4": ("nvfp4",),
    "modelopt_mxfp8": ("mxfp8",),
    "mxfp4": ("mxfp4",),
    "gpt_oss_mxfp4": ("mxfp4",),
    "awq": ("int4",),
    "awq_marlin": ("int4",),
    "auto_awq": ("int4",),
    "gptq": ("int4", "int8"),
    "gptq_marlin": ("int4", "int8"),
    "auto_gptq": ("int4", "int8"),
    "moe_wna16": ("int4", "int8"),
    "fp8": ("fp8", "bf16", "fp16"),
    "fbgemm_fp8": ("fp8", "bf16", "fp16"),
    "experts_int8": ("bf16", "fp16"),
    "fp8_per_tensor": ("bf16", "fp16"),
    "fp8_per_block": ("bf16", "fp16"),
    "fp8_per_channel": ("bf16", "fp16"),
    "nvfp4_per_token": ("bf16", "fp16"),
    "int8_per_channel_weight_only": ("bf16", "fp16"),
    "bitsandbytes": ("int4", "int8", "bf16", "fp16"),
}
"""Formats of a checkpoint that each method can load; one that is not here can load several."""

_NO_ASYNC = ("ngram",)
"""Ways of speculation that vLLM refuses beside asynchronous scheduling."""


def _needs(asked: Asked) -> Iterator[FlagProblem]:
    given = asked.by_name()
    for name, needed in _NEEDS:
        flag = given.get(name)
        if flag and flag.name == name and needed not in given:
            message = f"{name} without {needed}: the engine ends at once"
            yield error(flag, "flag_needs_other", message, f"add {needed}, or remove {name}")


def _eager(asked: Asked) -> Iterator[FlagProblem]:
    given = asked.by_name()
    eager = given.get("--enforce-eager")
    if eager is None or eager.name != "--enforce-eager":
        return
    for name in ("--compilation-config", "--optimization-level", "--cudagraph-capture-sizes"):
        other = next((f for f in asked.given if _is(asked, f, name)), None)
        if other and other.value != "0":
            message = f"{other.written} has no effect beside --enforce-eager"
            yield hint(other, "conflicting_flags", message, "keep one of the two")


def _is(asked: Asked, flag: GivenFlag, name: str) -> bool:
    option = asked.ever.get(name)
    return flag.name == name or (option is not None and flag.name in option.names)


def _batched(asked: Asked) -> Iterator[FlagProblem]:
    given, serving = asked.by_name(), asked.recipe.serving
    flag = given.get("--max-num-batched-tokens")
    tokens = _whole(flag.value if flag else None)
    if flag is None or tokens is None:
        return
    chunked = given.get("--enable-chunked-prefill")
    whole_prompts = chunked is not None and chunked.name.startswith("--no-")
    if whole_prompts and tokens < serving.context_tokens:
        message = f"{flag.written} {tokens:,} is below serving.context_tokens"
        message += f" ({serving.context_tokens:,}) without chunked prefill"
        yield error(flag, "conflicting_flags", message, "raise it, or let prefill be chunked")
    elif tokens < serving.users:
        message = f"{flag.written} {tokens:,} is below serving.users ({serving.users:,})"
        yield error(flag, "conflicting_flags", message, "raise it")


_UNITS = {"k": 10**3, "m": 10**6, "K": 2**10, "M": 2**20}


def _whole(value: str | None) -> int | None:
    """Return a number as vLLM reads it: 8k is 8,000 and 8K is 8,192; None where it is none."""
    found = re.fullmatch(r"(\d+)([kmKM]?)", (value or "").strip())
    return int(found[1]) * _UNITS.get(found[2], 1) if found else None


def _asynchronous(asked: Asked) -> Iterator[FlagProblem]:
    flag = asked.by_name().get("--async-scheduling")
    method = asked.recipe.speculative.method if asked.recipe.speculative else None
    if flag and flag.name == "--async-scheduling" and method in _NO_ASYNC:
        message = f"{flag.written} beside speculation by {method}: the engine ends at its start"
        yield error(flag, "conflicting_flags", message, f"remove {flag.written}")


def _cache_size(asked: Asked) -> Iterator[FlagProblem]:
    flag = asked.by_name().get("--kv-cache-memory-bytes")
    if flag and asked.recipe.serving.gpu_memory_utilization is not None:
        message = (
            f"{flag.written} sets the cache: serving.gpu_memory_utilization has no effect on it"
        )
        repair = "remove the flag; memory is reckoned by the fraction"
        yield hint(flag, "conflicting_flags", message, repair)


def _modalities(asked: Asked) -> Iterator[FlagProblem]:
    for flag in asked.given:
        name = asked.first_name(flag.name)
        for capability in ("image", "audio", "video"):
            if capability not in asked.recipe.capabilities:
                continue
            if name == "--language-model-only" and flag.name == name:
                message = f"{flag.written}, but the recipe claims {capability}"
                yield error(flag, "conflicting_flags", message, f"remove it, or drop {capability}")
            elif name == "--limit-mm-per-prompt" and _allows_none(flag, capability):
                message = f"{flag.written} allows no {capability}, which the recipe claims"
                yield error(flag, "conflicting_flags", message, f"raise it, or drop {capability}")


def _allows_none(flag: GivenFlag, capability: str) -> bool:
    if flag.key:
        return flag.key == capability and flag.value == "0"
    return re.search(rf'"{capability}"\s*:\s*0\s*[,}}]', flag.value or "") is not None


def _checkpoint(asked: Asked) -> Iterator[FlagProblem]:
    """Compare the method with the format of the build that the recipe names."""
    flag, quant = asked.by_name().get("--quantization"), asked.recipe.quant
    loads = _FORMATS.get(flag.value or "") if flag else None
    if flag is None or loads is None or quant is None:
        return
    if not any(quant == known or quant.startswith(f"{known}-") for known in loads):
        message = f"{flag.written} {flag.value} does not load a checkpoint in {quant}"
        repair = "remove the flag: the engine reads the method from the checkpoint"
        yield error(flag, "quantization_mismatch", message, repair)


CONFLICT_RULES: tuple[Rule, ...] = (
    _needs,
    _eager,
    _batched,
    _asynchronous,
    _cache_size,
    _modalities,
    _checkpoint,
)
"""Asked where the engine's options are recorded, whatever the version."""
