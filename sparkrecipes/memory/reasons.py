"""Why each number is what it is: one line a bound."""

from __future__ import annotations

from sparkrecipes.memory.components import gib
from sparkrecipes.memory.engine_rules import release
from sparkrecipes.memory.first_start import first_start
from sparkrecipes.memory.need import Need
from sparkrecipes.memory.request import FitRequest, shm_bytes
from sparkrecipes.schema.machine import Machine


def assumptions_of(need: Need, request: FitRequest, machine: Machine) -> tuple[str, ...]:
    """List what every bound rests on."""
    return (
        f"weights: {need.weights.reason if need.weights else no_weights(request)}",
        f"drafter: {need.drafter.reason if need.drafter else no_drafter(request)}",
        *cache_reasons(need, request),
        *overhead_reasons(need, request),
        f"host reserve: {gib(need.host_reserve)} that the system keeps ({machine.id})",
        *compile_reason(need, request, machine),
    )


def no_weights(request: FitRequest) -> str:
    """Say which build has no bound."""
    quants = ", ".join(sorted({b.quant for b in request.builds}))
    return f"no source gives the size or the bits of a parameter ({quants}): not bounded"


def no_drafter(request: FitRequest) -> str:
    """Say why a drafter has no bound."""
    return f"nothing is known of {request.drafter_repo} nor of its target's width: not bounded"


def cache_reasons(need: Need, request: FitRequest) -> tuple[str, ...]:
    """Explain the cache: blocks or tokens, type, release, an undescribed drafter."""
    sequence = need.sequence
    plan = sequence.high
    version = request.engine_version or "a version not named"
    rules = f"vLLM's rules from {plan.settings.rules.since[0]}.{plan.settings.rules.since[1]} on"
    if release(request.engine_version) is None:
        rules = "vLLM's newest rules"
    blocks = (
        f"{plan.blocks_per_request(request.context_tokens):,} blocks of {plan.bytes_per_block:,} "
        f"bytes a sequence (attention block {plan.block_tokens:,} tokens; {rules}, engine of "
        f"{version}; recurrent states: {plan.settings.mode})"
    )
    how = blocks if sequence.low else f"at least each token's bytes; at most {blocks}"
    lines = [f"cache: {request.users} users x {how}"]
    if sequence.low_settings.kv_cache_dtype != request.kv_cache_dtype:
        lines.append("cache: type auto is 16 bits at most, 8 bits where the checkpoint says fp8")
    if sequence.low_settings.ssm_width != plan.settings.ssm_width:
        lines.append("state: no source gives the type of the recurrent state: 16 to 32 bits")
    if sequence.drafter_token_bytes is None:
        lines.append(f"cache: no source describes the layers of {request.drafter_repo}: no bound")
    elif sequence.drafter_token_bytes:
        lines.append(
            f"cache: no source describes the layers of {request.drafter_repo}: 0 to "
            f"{sequence.drafter_token_bytes:,} bytes a token, by its method and its target's width"
        )
    return tuple(lines)


def overhead_reasons(need: Need, request: FitRequest) -> tuple[str, ...]:
    """Explain the overhead, its shared memory, and what a published row proves."""
    parts = need.overhead.parts.items()
    lines = [f"overhead: {part_name(name)}: {part.reason}" for name, part in parts if part.high]
    if asked := shm_bytes(request.shm_size):
        lines.append(
            f"overhead: up to {gib(need.overhead.shm)} of the {gib(asked)} of shared memory "
            "(--shm-size), whose pages are taken when they are written"
        )
    ceiling = need.measured_ceiling(request.users, request.context_tokens)
    if ceiling is not None:
        lines.append(
            f"overhead: it was measured to start at {request.gpu_memory_utilization:g} of a DGX "
            f"Spark, so weights, drafter and overhead are at most {gib(ceiling)} (its "
            "fraction less one sequence)"
        )
    return tuple(lines)


def part_name(key: str) -> str:
    """Write the key of a part for people."""
    return key.removesuffix("_bytes").replace("_", " ").replace("cuda", "CUDA")


def compile_reason(need: Need, request: FitRequest, machine: Machine) -> tuple[str, ...]:
    """Say what a first start with an empty kernel cache may take, which the total leaves out."""
    peak = first_start(need, request, machine)
    if peak is None:
        return ()
    least, most = (gib(side) for side in peak.peak_bounds)
    whose = "the recipe's" if peak.max_jobs_source == "recipe" else "which the command sets"
    return (
        f"first start: compiling kernels takes nothing to {gib(peak.jit_compile_bytes[1])} beside "
        f"the weights, before there is a cache ({least} to {most} with the reserve): "
        f"MAX_JOBS={peak.max_jobs} ({whose}) x 8 GiB a job",
    )
