"""The answer to "does it fit": all components, verdicts, limits, and every reason."""

from __future__ import annotations

from sparkrecipes.memory.cache_specs import growing_bytes
from sparkrecipes.memory.cautions import (
    compile_warning,
    log_warnings,
    warnings_of,
    window_warning,
)
from sparkrecipes.memory.components import weights_source
from sparkrecipes.memory.engine_log import engine_kv
from sparkrecipes.memory.engine_settings import undescribed
from sparkrecipes.memory.first_start import first_start
from sparkrecipes.memory.need import Need, Pair, longest_context, most_users, need_of
from sparkrecipes.memory.reasons import assumptions_of
from sparkrecipes.memory.request import FitRequest, context_limit
from sparkrecipes.memory.setting import serving_fraction, settings_of
from sparkrecipes.memory.startup import fraction_of, start_check
from sparkrecipes.memory.verdict import verdict
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import Components, EngineKv, FitVerdict, MemoryEstimate, Pool


def estimate(
    request: FitRequest,
    machine: Machine,
    *,
    available_bytes: int | None = None,
    available_kv_bytes: int | None = None,
) -> MemoryEstimate:
    """Size what is asked on a machine.

    Args:
        request: Model, builds, settings and what is published of them.
        machine: Its memory and the reserve of the host.
        available_bytes: MemAvailable now, where this host is that machine.
        available_kv_bytes: "Available KV cache memory" of an engine's log, to get its figures.

    Raises:
        Misuse: Nobody knows the type of the KV cache.
        Refused: The log is asked for of a model that keeps no cache.
        Unknown: The log is asked for, and no source describes the drafter's layers.
    """
    need = need_of(request, machine)
    users, context = request.users, request.context_tokens
    usable = machine.mem_total_bytes
    bounds = bounds_of(need, users, context)
    total = need.total(users, context)
    pool = pool_of(need, request, machine)
    return MemoryEstimate(
        subject=request.subject,
        model=request.model.id,
        verdict=verdict(total, usable),
        verdict_now=verdict_now(total, request, machine, available_bytes),
        context_tokens=context,
        users=users,
        kv_cache_dtype=request.kv_cache_dtype,
        kv_bytes_per_token=growing_bytes(need.sequence.layers, request.kv_cache_dtype),
        components=components_of(bounds, need),
        bounds=bounds,
        weights_source=weights_source(request),
        overhead_parts=need.overhead_parts(users, context),
        first_start=(peak := first_start(need, request, machine)),
        total_bytes=total[1] if total else None,
        total_bounds=total,
        usable_bytes=usable,
        usable_source=usable_source(machine, live=available_bytes is not None),
        available_bytes=available_bytes,
        max_users_at_context=most_users(need, usable, context),
        max_context_at_users=longest_context(need, usable, users, context_limit(request)),
        min_gpu_memory_utilization=serving_fraction(need, request, machine),
        reservation_bytes=reservation(request, machine),
        pool=pool,
        engine_kv=(log := log_of(need, request, available_kv_bytes)),
        settings=settings_of(need, request, machine, available_bytes),
        assumptions=assumptions_of(need, request, machine),
        warnings=(
            *warnings_of(request, machine, pool, available_bytes),
            *log_warnings(need, request, log),
            *compile_warning(peak, verdict(total, usable)),
            *window_warning(need, request),
        ),
    )


def verdict_of(request: FitRequest, machine: Machine) -> FitVerdict:
    """Give the verdict of ``estimate`` alone: for those who ask very often."""
    total = need_of(request, machine).total(request.users, request.context_tokens)
    return verdict(total, machine.mem_total_bytes)


def log_of(need: Need, request: FitRequest, available_kv_bytes: int | None) -> EngineKv | None:
    """Give what the engine's log would print, where it is asked for.

    Raises:
        Unknown: No source describes the drafter's layers.
    """
    if available_kv_bytes is None:
        return None
    if need.sequence.drafter_token_bytes != 0 and request.speculative:
        raise undescribed(request.model, request.speculative.method)
    plan = need.sequence.high
    return engine_kv(plan, available_kv_bytes, request.context_tokens, users=request.users)


def reservation(request: FitRequest, machine: Machine) -> int | None:
    """Give what the engine's fraction takes; null where none is known, or without a GPU."""
    fraction = fraction_of(request)
    return int(fraction * machine.mem_total_bytes) if fraction and machine.gpu else None


def usable_source(machine: Machine, *, live: bool) -> str:
    """Say whose memory it is: this host's, where it is that machine, or the machine file's."""
    return f"MemTotal of this host ({machine.id})" if live else f"MemTotal of {machine.id}"


def bounds_of(need: Need, users: int, context_tokens: int) -> dict[str, Pair | None]:
    """List the bounds of each component by its name."""
    return {
        "weights_bytes": (need.weights.low, need.weights.high) if need.weights else None,
        "drafter_bytes": (need.drafter.low, need.drafter.high) if need.drafter else None,
        "kv_cache_bytes": need.kv_cache(users, context_tokens),
        "state_bytes": need.state(users, context_tokens),
        "overhead_bytes": need.all_overhead(users, context_tokens),
        "host_reserve_bytes": (need.host_reserve, need.host_reserve),
    }


def components_of(bounds: dict[str, Pair | None], need: Need) -> Components:
    """Take the high bound of each component."""
    high = {name: pair[1] if pair else None for name, pair in bounds.items()}
    return Components(
        weights_bytes=high["weights_bytes"],
        drafter_bytes=high["drafter_bytes"],
        kv_cache_bytes=high["kv_cache_bytes"],
        state_bytes=high["state_bytes"],
        overhead_bytes=high["overhead_bytes"],
        host_reserve_bytes=need.host_reserve,
    )


def verdict_now(
    total: Pair | None, request: FitRequest, machine: Machine, available_bytes: int | None
) -> FitVerdict | None:
    """Judge against what is free now: the host's own part is already gone from that.

    An engine that is told a fraction takes it whole, and does not start where it is not free.
    """
    if available_bytes is None:
        return None
    told = request.gpu_memory_utilization
    if told and machine.gpu:
        check = start_check(told, machine.mem_total_bytes, available_bytes)
        if not check.starts:
            return "does_not_fit"
    reserve = machine.host_reserve_bytes
    return verdict(total and (total[0] - reserve, total[1] - reserve), available_bytes)


def pool_of(need: Need, request: FitRequest, machine: Machine) -> Pool:
    """Say how many sequences of full length the engine's fraction serves at once."""
    taken = reservation(request, machine)
    served = users_in(need, taken, request) if taken else None
    ok: bool | None = None
    if served:
        ok = True if served[0] >= request.users else None
        ok = False if served[1] < request.users else ok
    return Pool(gpu_memory_utilization=fraction_of(request), users_at_context=served, ok=ok)


def users_in(need: Need, fraction_bytes: int, request: FitRequest) -> tuple[float, float] | None:
    """Bound the sequences that a fraction holds beside weights, drafter and overhead.

    One block is held back, which the overhead counts.
    """
    context = request.context_tokens
    kv = need.sequence.kv_bytes(context)
    state = need.sequence.state_bytes(context)
    if kv is None or need.weights is None or need.drafter is None:
        return None
    low_one, high_one = kv[0] + state[0], kv[1] + state[1]
    if not low_one:
        return None
    overhead = need.engine_overhead(request.users, context)
    least = fraction_bytes - need.weights.high - need.drafter.high - overhead[1]
    most = fraction_bytes - need.weights.low - need.drafter.low - overhead[0]
    return round(max(least, 0) / high_one, 2), round(max(most, 0) / low_one, 2)
