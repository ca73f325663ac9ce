"""What to be warned of: settings that work on paper only, or not now."""

from __future__ import annotations

from sparkrecipes.memory.cache_specs import kv_width
from sparkrecipes.memory.components import gib
from sparkrecipes.memory.engine_rules import release
from sparkrecipes.memory.need import Need
from sparkrecipes.memory.request import (
    FitRequest,
    flag_value,
    shm_bytes,
    stretched_tokens,
)
from sparkrecipes.memory.sequence_cost import GIB
from sparkrecipes.memory.startup import fraction_of, start_check
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import EngineKv, FirstStart, FitVerdict, Pool

LARGE_SHM_BYTES = 16 * GIB
"""Shared memory above which a warning is due: 10 to 16 GiB serve (field report, DeepSeek-V4 on two
Sparks, issue 31)."""


def warnings_of(
    request: FitRequest, machine: Machine, pool: Pool, available_bytes: int | None
) -> tuple[str, ...]:
    """List everything to be warned of."""
    return (
        *context_warning(request),
        *fraction_warning(request, machine),
        *pool_warning(request, pool),
        *shm_warning(request),
        *latent_warning(request),
        *start_warning(request, machine, available_bytes),
    )


def context_warning(request: FitRequest) -> tuple[str, ...]:
    """Warn of a context that the model was not made for."""
    most, stretched = request.model.context_tokens, stretched_tokens(request.flags)
    if request.context_tokens <= most:
        return ()
    if stretched is None:
        how = "it needs one"
    elif request.context_tokens <= stretched:
        how = f"the recipe's rope override stretches it to {stretched:,}"
    else:
        how = f"the recipe's own stretches it to {stretched:,} only"
    return (
        f"{request.context_tokens:,} tokens are above the {most:,} that the model was made for: "
        f"only with a rope override ({how})",
    )


def fraction_warning(request: FitRequest, machine: Machine) -> tuple[str, ...]:
    """Warn of a recipe that leaves the fraction to the engine: the default differs by release."""
    if request.engine is None or request.gpu_memory_utilization or machine.gpu is None:
        return ()
    default = fraction_of(request)
    takes = "an unknown share" if default is None else share(default, machine)
    return (
        f"missing gpu_memory_utilization: this engine takes {takes} by default, which differs by "
        "release (0.9 in older ones, 0.92 in newer ones); set it, usually 0.80 to 0.85",
    )


def share(fraction: float, machine: Machine) -> str:
    """Write a fraction of the machine's memory for people."""
    return (
        f"{fraction:g} x {gib(machine.mem_total_bytes)} = {gib(fraction * machine.mem_total_bytes)}"
    )


def pool_warning(request: FitRequest, pool: Pool) -> tuple[str, ...]:
    """Warn where the fraction does not serve all users at full length at once."""
    if pool.ok is not False or pool.users_at_context is None:
        return ()
    low, high = pool.users_at_context
    return (
        f"the fraction {pool.gpu_memory_utilization:g} holds {low:g} to {high:g} sequences of "
        f"{request.context_tokens:,} tokens at once, not {request.users}: others wait",
    )


def shm_warning(request: FitRequest) -> tuple[str, ...]:
    """Warn of a large shared memory: its pages come from the same pool."""
    size = shm_bytes(request.shm_size)
    if size <= LARGE_SHM_BYTES:
        return ()
    return (
        f"--shm-size of {gib(size)} comes from the same memory when it is used: "
        "10 to 16 GiB are enough for one GPU",
    )


def log_warnings(need: Need, request: FitRequest, log: EngineKv | None) -> tuple[str, ...]:
    """Warn of what the log's figures take for granted, or of a start that they forbid."""
    if log is None:
        return ()
    lines = []
    if need.sequence.low is None:
        lines.append("engine_kv: no log of this engine was read; these are vLLM's own rules")
    if release(request.engine_version) is None:
        lines.append(
            "engine_kv: no released version is named, so the newest rules were applied; "
            "give --engine-version, e.g. 0.27.1"
        )
    if request.kv_cache_dtype == "auto":
        lines.append("engine_kv: type auto was taken as 16 bits; a checkpoint may say fp8")
    if log.max_concurrency < 1:
        lines.append(
            f"engine_kv: {log.num_blocks:,} blocks are less than the {log.blocks_per_request:,} "
            "of one full sequence: the engine refuses to start"
        )
    elif need.sequence.high.states and request.users > log.num_blocks:
        lines.append(
            f"engine_kv: --max-num-seqs {request.users:,} is more than the {log.num_blocks:,} "
            "blocks: a model with recurrent layers then refuses to capture its CUDA graphs"
        )
    elif log.admitted_sequences < request.users:
        lines.append(
            f"engine_kv: {log.admitted_sequences:,} of {request.users:,} sequences of full length "
            "run at once: the others wait, or are taken out and computed again"
        )
    return tuple(lines)


def window_warning(need: Need, request: FitRequest) -> tuple[str, ...]:
    """Warn where windows beside recurrent layers may cost far more with other kernels.

    vLLM prefers FLASH_ATTN, which takes no 8-bit cache on a GB10, and then FLASHINFER, whose blocks
    of a window end at 64 tokens and are padded to the page of a state.

    Source: vLLM 0.32.0 ``platforms/cuda.py``, ``v1/attention/backends/fa_utils.py``.
    """
    plan, told = need.sequence.high, flag_value(request.flags, "--attention-backend")
    if told or not plan.states or kv_width(request.kv_cache_dtype) > 1:
        return ()
    ours = plan.blocks_per_request(request.context_tokens)
    theirs = need.sequence.with_fixed_blocks().blocks_per_request(request.context_tokens)
    if theirs <= ours:
        return ()
    return (
        f"with FLASHINFER a sequence takes {theirs:,} blocks, not {ours:,}: its windows are padded "
        "to the page of a recurrent state. vLLM prefers it for an 8-bit cache on a GB10; its log "
        "names the backend, and --attention-backend=TRITON_ATTN or a 16-bit cache avoids that",
    )


def compile_warning(peak: FirstStart | None, verdict: FitVerdict) -> tuple[str, ...]:
    """Warn where compilers may not fit beside weights that do."""
    if peak is None or peak.verdict == "fits" or verdict == "does_not_fit":
        return ()
    whose = "the recipe's" if peak.max_jobs_source == "recipe" else "even"
    repair = (
        "set MAX_JOBS lower in the recipe's env"
        if peak.max_jobs > 1
        else "bring compiled kernels along"
    )
    return (
        f"a first start compiles kernels: with {whose} MAX_JOBS={peak.max_jobs} (3 to 8 GiB a job) "
        f"it may take {gib(peak.peak_bounds[1])} with the weights, and the host down; {repair}, "
        "and keep the container's cache folder",
    )


def latent_warning(request: FitRequest) -> tuple[str, ...]:
    """Say that latent attention is not sized by heads."""
    if not any(g.kind == "mla_attention" for g in request.model.layers):
        return ()
    return (
        "latent attention (MLA) keeps one latent a token and layer: the formula by heads and "
        "2 x head size overstates it",
    )


def start_warning(
    request: FitRequest, machine: Machine, available_bytes: int | None
) -> tuple[str, ...]:
    """Warn where the engine would refuse to start now, and name the fraction that passes."""
    fraction = fraction_of(request)
    if not fraction or available_bytes is None or machine.gpu is None:
        return ()
    check = start_check(fraction, machine.mem_total_bytes, available_bytes)
    if check.starts:
        return ()
    return (
        f"the engine would refuse to start now: it wants {share(fraction, machine)} free, and "
        f"{gib(available_bytes)} are; stop what else uses memory, or set at most "
        f"{check.largest_fraction:g}",
    )
