"""The peak of a first start: kernels are compiled beside the weights, before there is a cache."""

from __future__ import annotations

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
    compilers at once, by the recipe's environment, else as many as are advised.

    Returns:
        Null without a GPU, and where the weights have no bound.
    """
    if machine.gpu is None or need.weights is None or need.drafter is None:
        return None
    loaded = need.weights.low + need.drafter.low, need.weights.high + need.drafter.high
    told = told_jobs(request)
    jobs = told or compile_jobs(machine.mem_total_bytes - need.host_reserve - loaded[1])
    compiling = jobs * COMPILE_JOB_BYTES
    peak = loaded[0] + need.host_reserve, loaded[1] + need.host_reserve + compiling
    return FirstStart(
        jit_compile_bytes=(0, compiling),
        max_jobs=jobs,
        max_jobs_source="recipe" if told else "advised",
        peak_bounds=peak,
        verdict=verdict(peak, machine.mem_total_bytes),
    )
