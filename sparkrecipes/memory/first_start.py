"""The peak of a first start: kernels are compiled beside the weights, before there is a cache."""

from __future__ import annotations

from dataclasses import replace

from sparkrecipes.memory import components
from sparkrecipes.memory.need import Need
from sparkrecipes.memory.request import FitRequest
from sparkrecipes.memory.startup import COMPILE_JOB_BYTES, compile_jobs, told_jobs
from sparkrecipes.memory.verdict import verdict
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import FirstStart


def first_start(need: Need, request: FitRequest, machine: Machine) -> FirstStart | None:
    """Bound the first start with an empty kernel cache.

    Compilers run before the cache is allocated, so their memory is not added to that of serving:
    it is a peak of its own. Nothing where kernels are cached or shipped; at most ``MAX_JOBS``
    compilers at once, by the recipe's environment, else as many as the command sets.

    Returns:
        Null without a GPU, with an engine that compiles nothing, and where weights have no bound.
    """
    added = added_compile_jobs(request, machine)
    jobs = told_jobs(request) or added
    if jobs is None or need.weights is None or need.drafter is None:
        return None
    loaded = need.weights.low + need.drafter.low, need.weights.high + need.drafter.high
    compiling = jobs * COMPILE_JOB_BYTES
    peak = loaded[0] + need.host_reserve, loaded[1] + need.host_reserve + compiling
    return FirstStart(
        jit_compile_bytes=(0, compiling),
        max_jobs=jobs,
        max_jobs_source="recipe" if added is None else "command",
        peak_bounds=peak,
        verdict=verdict(peak, machine.mem_total_bytes),
    )


def added_compile_jobs(request: FitRequest, machine: Machine) -> int | None:
    """Give the ``MAX_JOBS`` that the command sets: as many as leave the host its headroom.

    It follows from the catalog and the machine alone, and neither from context and users nor from
    what the Hub says today: so the command has the number by which ``fit`` bounds the start.

    Returns:
        Null where none is set: without a GPU, with an engine that compiles nothing, where the
        recipe sets its own, and where the weights have no bound.
    """
    compiles = request.engine is None or request.engine.compile_jobs_env is not None
    if machine.gpu is None or not compiles or told_jobs(request):
        return None
    offline = replace(request, hub_sizes={})
    weights, drafter = components.weights(offline), components.drafter(offline)
    if weights is None or drafter is None:
        return None
    loaded = weights.high + drafter.high
    return compile_jobs(machine.mem_total_bytes - machine.host_reserve_bytes - loaded)
