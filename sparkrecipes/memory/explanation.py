"""Every number of an answer: its rule, what went into it, and where the rule comes from."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.memory.cache_groups import CachePlan, Group, blocks_of
from sparkrecipes.memory.components import gib
from sparkrecipes.memory.need import Need, need_of
from sparkrecipes.memory.request import FitRequest, context_limit, shm_bytes
from sparkrecipes.memory.sequence_cost import batched_tokens
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import EngineKv, Explained, MemoryEstimate

Input = int | float | str | None

LAYOUT = "vLLM 0.20 to 0.32: v1/core/kv_cache_utils.py, v1/kv_cache_interface.py"
STARTUP = "vLLM 0.32: v1/worker/utils.py, request_memory; pull request 35356"
LOGS = "overheads of nine start-up logs: docs/memory.md"
OURS = "docs/memory.md"
PART_SOURCES = {
    "cuda_graphs_bytes": "start-up logs (0.22 to 2.44 GiB) and vLLM's own message (1 to 3 GiB)",
    "held_block_bytes": LAYOUT,
    "encoder_bytes": "the cache that --language-model-only gained on one machine: docs/memory.md",
}
"""Where a part of the overhead has another source than the logs."""


def explain(request: FitRequest, machine: Machine, answer: MemoryEstimate) -> tuple[Explained, ...]:
    """Explain every number of an answer.

    Args:
        request: What was asked.
        machine: Where it must fit.
        answer: What ``estimate`` said of it.
    """
    need = need_of(request, machine)
    return (
        *components(need, request, machine, answer),
        *cache_layout(need, request, answer),
        *limits(need, request, answer),
        *what_to_set(request, machine, answer),
        *log_figures(answer),
        *forecast_figures(machine, answer),
    )


def entry(
    number: str,
    value: float | tuple[float, float] | None,
    unit: str,
    rule: str,
    source: str,
    **inputs: Input,
) -> Explained:
    """Make one line: a value or a pair of bounds, and how it came about."""
    low, high = value if isinstance(value, tuple) else (value, value)
    return Explained(
        number=number, low=low, high=high, unit=unit, rule=rule, inputs=inputs, source=source
    )


def components(
    need: Need, request: FitRequest, machine: Machine, answer: MemoryEstimate
) -> Iterator[Explained]:
    """Explain the six components and their sum."""
    yield from loaded(need, request, answer)
    yield from cache(need, request, answer)
    yield overhead(need, request, machine, answer)
    yield from overhead_parts(need, answer)
    yield entry(
        "bounds.host_reserve_bytes",
        answer.bounds["host_reserve_bytes"],
        "bytes",
        "what the system keeps on a headless box",
        "; ".join(machine.sources),
        machine=machine.id,
    )
    yield entry(
        "total_bounds",
        answer.total_bounds,
        "bytes",
        "sum of the low and of the high bounds; fits where the high one is at most usable_bytes, "
        "does_not_fit where the low one is more, tight between",
        OURS,
        usable_bytes=answer.usable_bytes,
        verdict=answer.verdict,
    )
    yield entry("usable_bytes", answer.usable_bytes, "bytes", answer.usable_source, "/proc/meminfo")


def loaded(need: Need, request: FitRequest, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain the weights and the drafter."""
    bounds = answer.bounds
    yield entry(
        "bounds.weights_bytes",
        bounds["weights_bytes"],
        "bytes",
        need.weights.reason if need.weights else "no source bounds a build that may be run",
        answer.weights_source or OURS,
        builds=", ".join(b.repo for b in request.builds),
        parameters_b=request.model.params_total_b,
    )
    yield entry(
        "bounds.drafter_bytes",
        bounds["drafter_bytes"],
        "bytes",
        need.drafter.reason if need.drafter else "no source bounds the drafter",
        "catalog/models",
        drafter=request.drafter_repo,
        speculative=request.speculative.method if request.speculative else None,
    )


def cache(need: Need, request: FitRequest, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain the cache that grows and the states that do not."""
    bounds, context, users = answer.bounds, request.context_tokens, request.users
    sequence = need.sequence
    yield entry(
        "bounds.kv_cache_bytes",
        bounds["kv_cache_bytes"],
        "bytes",
        "users x attention blocks of a sequence x bytes a block"
        + ("" if sequence.low else "; at least users x each token's bytes"),
        LAYOUT,
        users=users,
        blocks_per_sequence=sequence.high.attention_blocks(context),
        bytes_per_block=sequence.high.bytes_per_block,
        kv_cache_dtype=request.kv_cache_dtype,
    )
    yield entry(
        "bounds.state_bytes",
        bounds["state_bytes"],
        "bytes",
        "users x blocks of recurrent layers x bytes a block, whatever the context",
        LAYOUT,
        users=users,
        blocks_per_sequence=sequence.high.state_blocks(context),
        bytes_per_block=sequence.high.bytes_per_block,
        mode=sequence.high.settings.mode,
    )


def overhead(
    need: Need, request: FitRequest, machine: Machine, answer: MemoryEstimate
) -> Explained:
    """Explain the overhead, and how much of the shared memory counts."""
    ceiling = need.measured_ceiling(request.users, request.context_tokens)
    asked, counted = shm_bytes(request.shm_size), need.overhead.shm
    rule = "sum of its parts"
    if asked:
        rule += f"; {shm_rule(asked, counted)}"
    if ceiling is not None:
        rule += f"; a published row proves at most {gib(ceiling)} with weights and drafter"
    return entry(
        "bounds.overhead_bytes",
        answer.bounds["overhead_bytes"],
        "bytes",
        rule,
        LOGS,
        batched_tokens=batched_tokens(request, machine.mem_total_bytes),
        hidden_size=request.model.hidden_size,
        shm_size_bytes=asked,
        shm_counted_bytes=counted,
        measured_ceiling_bytes=ceiling,
    )


def overhead_parts(need: Need, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain what the overhead is made of, and the peak of a first start."""
    for name, part in need.overhead.parts.items():
        pair = answer.overhead_parts[name]
        yield entry(
            f"overhead_parts.{name}", pair, "bytes", part.reason, PART_SOURCES.get(name, LOGS)
        )
    yield entry(
        "overhead_parts.shared_memory_bytes",
        answer.overhead_parts["shared_memory_bytes"],
        "bytes",
        "what may be written of --shm-size, outside of the engine's fraction",
        OURS,
    )
    peak = answer.first_start
    if peak:
        yield entry(
            "first_start.jit_compile_bytes",
            peak.jit_compile_bytes,
            "bytes",
            "nothing where kernels are cached or shipped, to MAX_JOBS x 8 GiB; before the cache is "
            "allocated, so not a part of the total",
            "flashinfer issue 3634 (3 to 8 GiB a job on a DGX Spark)",
            max_jobs=peak.max_jobs,
            max_jobs_source=peak.max_jobs_source,
        )
        yield entry(
            "first_start.peak_bounds",
            peak.peak_bounds,
            "bytes",
            "weights, drafter, host reserve and the compilers",
            OURS,
            verdict=peak.verdict,
            usable_bytes=answer.usable_bytes,
        )


def shm_rule(asked: int, counted: int) -> str:
    """Say how much of the shared memory counts, and why."""
    if counted == asked:
        return f"all {gib(asked)} of --shm-size at worst: its pages are taken when written"
    return (
        f"{gib(counted)} of the {gib(asked)} of --shm-size: pages are taken when written, and the "
        "published drop of free memory leaves no more, whatever the users and the context"
    )


def cache_layout(need: Need, request: FitRequest, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain a token's bytes, a block's bytes, and each group of layers."""
    plan = need.sequence.high
    yield entry(
        "kv_bytes_per_token",
        answer.kv_bytes_per_token,
        "bytes",
        "layers that grow x KV heads x (key + value size) x bytes a value",
        "catalog/models",
        kv_cache_dtype=request.kv_cache_dtype,
    )
    for number, group in enumerate(plan.groups):
        yield explained_group(number, group, plan, request.context_tokens)


def explained_group(number: int, group: Group, plan: CachePlan, context_tokens: int) -> Explained:
    """Explain one group of layers: the blocks that a sequence takes of it."""
    spec = group.spec
    rules = {
        "full": "ceil(context / tokens a block)",
        "sliding": "ceil(min(window - 1 + tokens in flight, context) / tokens a block) + 1",
        "state": "states held, whatever the context"
        if spec.held_blocks
        else "every state: ceil(context / tokens a block)",
        "ring": "one ring of keys",
    }
    return entry(
        f"cache.group_{number}",
        group.copies * blocks_of(spec, context_tokens, plan.settings),
        "blocks a sequence",
        f"{group.copies} groups of {group.layers} {spec.kind} layers x {rules[spec.kind]}",
        LAYOUT,
        tokens_per_block=spec.block_tokens,
        page_bytes=spec.page_bytes,
        window_tokens=spec.window_tokens or None,
        tokens_in_flight=plan.settings.in_flight_tokens if spec.kind == "sliding" else None,
        context_tokens=context_tokens,
    )


def limits(need: Need, request: FitRequest, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain the most users, the longest context, and what the fraction serves."""
    yield entry(
        "max_users_at_context",
        answer.max_users_at_context,
        "users",
        "(usable - weights - drafter - overhead - reserve) / one sequence, all by high bounds",
        OURS,
        one_sequence_bytes=need.sequence.most_bytes(request.context_tokens),
        context_tokens=request.context_tokens,
    )
    yield entry(
        "max_context_at_users",
        answer.max_context_at_users,
        "tokens",
        "the longest whose high bounds fit, at most what the model serves",
        OURS,
        users=request.users,
        model_tokens=request.model.context_tokens,
        served_tokens=context_limit(request),
    )
    yield entry(
        "pool.users_at_context",
        answer.pool.users_at_context,
        "users",
        "(fraction x total - weights - drafter - overhead) / one sequence: how many the recipe's "
        "own fraction serves at once; the others wait",
        OURS,
        gpu_memory_utilization=answer.pool.gpu_memory_utilization,
    )


def what_to_set(
    request: FitRequest, machine: Machine, answer: MemoryEstimate
) -> Iterator[Explained]:
    """Explain the fraction, its alternative, and the engine's check at its start."""
    settings, total = answer.settings, machine.mem_total_bytes
    if settings is None:
        return
    yield entry(
        "min_gpu_memory_utilization",
        settings.gpu_memory_utilization,
        "fraction of the total",
        "high bounds of all but reserve and shared memory / total, up to the next 0.01; null where "
        "it would leave the host less than its reserve",
        OURS,
        mem_total_bytes=total,
    )
    yield entry(
        "settings.kv_cache_memory_bytes",
        settings.kv_cache_memory_bytes,
        "bytes",
        "users x one sequence by the high bound, and one block that is held back from 0.29 on; "
        "skips the profile, not the check of the fraction at the start",
        "vLLM 0.32: v1/worker/gpu_worker.py, determine_available_memory",
        users=request.users,
    )
    yield entry(
        "settings.default_gpu_memory_utilization",
        settings.default_gpu_memory_utilization,
        "fraction of the total",
        "what this release takes where nothing is set: 0.9 up to 0.19, 0.92 from 0.20 on",
        "vLLM: config/cache.py of each release",
        engine_version=request.engine_version,
    )
    yield from taken_at_start(answer, total)


def taken_at_start(answer: MemoryEstimate, total: int) -> Iterator[Explained]:
    """Explain what the engine takes, and what it checks before."""
    yield entry(
        "reservation_bytes",
        answer.reservation_bytes,
        "bytes",
        "fraction x total, taken whole, whatever the model",
        STARTUP,
        mem_total_bytes=total,
    )
    check = answer.settings.start_check if answer.settings else None
    if check:
        yield entry(
            "settings.start_check.needs_bytes",
            check.needs_bytes,
            "bytes",
            "ceil(fraction x total) must be free at the start (MemAvailable on unified memory)",
            STARTUP,
            gpu_memory_utilization=check.gpu_memory_utilization,
            available_bytes=check.available_bytes,
            largest_fraction=check.largest_gpu_memory_utilization,
        )


def log_figures(answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain the figures of the engine's log, where they were asked for."""
    log = answer.engine_kv
    if log is None:
        return
    yield entry(
        "engine_kv.block_size",
        log.block_size,
        "tokens",
        "16; where recurrent layers share the pool, the least multiple whose page holds a state",
        "vLLM: platforms/interface.py, _align_hybrid_block_size",
    )
    yield entry(
        "engine_kv.blocks_per_request",
        log.blocks_per_request,
        "blocks",
        "sum of the groups of the cache",
        LAYOUT,
        context_tokens=answer.context_tokens,
    )
    yield entry(
        "engine_kv.num_blocks",
        log.num_blocks,
        "blocks",
        "floor(available / bytes a block)",
        LAYOUT,
        available_bytes=log.available_bytes,
    )
    yield from log_capacity(log, answer)


def log_capacity(log: EngineKv, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain what the blocks of the log are worth: sequences and tokens."""
    yield entry(
        "engine_kv.max_concurrency",
        log.max_concurrency,
        "sequences of full length",
        "blocks / blocks a sequence",
        LAYOUT,
        num_blocks=log.num_blocks,
        blocks_per_request=log.blocks_per_request,
    )
    yield entry(
        "engine_kv.admitted_sequences",
        log.admitted_sequences,
        "sequences of full length",
        "min(users, floor((blocks - 1) / blocks a sequence)): one block is the pool's own",
        "vLLM: v1/core/block_pool.py",
        users=answer.users,
    )
    yield entry(
        "engine_kv.kv_cache_tokens",
        log.kv_cache_tokens,
        "tokens",
        log.log_rule,
        LAYOUT,
        rules_since=log.engine_version,
        context_tokens=answer.context_tokens,
    )


FORECAST_RULES = {
    "single_user_tok_s": "share of the bandwidth / weights read a token, times tokens a step",
    "single_user_tok_s_at_context": "the same, with the cache of a full context read each step",
    "users_total_tok_s": "users x tokens a step / its time, which grows with the experts read",
    "users_total_tok_s_at_context": "the same, with every user's full cache read each step",
    "prefill_tok_s": "operations a second / (2 x active parameters)",
    "prefill_s_at_context": "context / prefill speed",
}


def forecast_figures(machine: Machine, answer: MemoryEstimate) -> Iterator[Explained]:
    """Explain the figures of the forecast, where there is one."""
    found = answer.forecast
    if found is None:
        return
    for name, rule in FORECAST_RULES.items():
        yield entry(
            f"forecast.{name}",
            getattr(found, name),
            "s" if name.endswith("_s_at_context") and "tok_s" not in name else "tok/s",
            f"estimated: {rule}; as wide as the largest error on a model that was left out",
            f"docs/speed.md, calibrated on: {found.method}",
            bandwidth_gb_s=machine.memory_bandwidth_gb_s,
            users=answer.users,
            context_tokens=answer.context_tokens,
            speculative=found.speculative,
        )
