"""What the engine checks and does when it starts: its fraction against free memory, compiling."""

from __future__ import annotations

import math
from typing import NamedTuple

from sparkrecipes.memory.engine_rules import release
from sparkrecipes.memory.request import FitRequest

GIB = 2**30

START_MARGIN_BYTES = GIB // 4
"""Left between a fraction that is advised and what is free: free memory moves until the start."""

COMPILE_JOB_BYTES = 8 * GIB
"""Most memory of one kernel compiler (3 to 8 GiB seen on a DGX Spark, flashinfer issue 3634)."""

COMPILE_HEADROOM_BYTES = 16 * GIB
"""Left to the host while kernels compile (same source)."""


class StartCheck(NamedTuple):
    """Whether an engine with this fraction would start."""

    needs_bytes: int
    """Its fraction of the total memory, whatever the model."""
    starts: bool
    largest_fraction: float
    """The largest fraction, in hundredths, that would pass now."""


def start_check(fraction: float, total_bytes: int, available_bytes: int) -> StartCheck:
    """Check a fraction as the engine does: that share of the total must be free at the start.

    On unified memory the engine reads MemAvailable, not what CUDA calls free.

    Source: vLLM ``v1/worker/utils.py``, request_memory; PR 35356 for integrated GPUs.
    """
    needs = math.ceil(total_bytes * fraction)
    spare = max(available_bytes - START_MARGIN_BYTES, 0)
    return StartCheck(needs, needs <= available_bytes, math.floor(100 * spare / total_bytes) / 100)


def smallest_fraction(needed_bytes: int, total_bytes: int) -> float:
    """Give the smallest fraction, in hundredths, of which the total holds what is needed."""
    return math.ceil(100 * needed_bytes / total_bytes) / 100


def compile_jobs(free_bytes: int) -> int:
    """Give how many kernel compilers may run at once in this much free memory, at least one."""
    return max((free_bytes - COMPILE_HEADROOM_BYTES) // COMPILE_JOB_BYTES, 1)


def told_jobs(request: FitRequest) -> int | None:
    """Read ``MAX_JOBS`` of the recipe's environment; null where it is not set.

    ``validate`` refuses what is no whole number from 1 on: ninja would not be bound by it.
    """
    name = request.engine.compile_jobs_env if request.engine else None
    told = request.env.get(name, "") if name else ""
    return int(told) if told.isdecimal() and int(told) else None


def fraction_of(request: FitRequest) -> float | None:
    """Give the fraction that the engine would take: the recipe's, else its release's default."""
    return request.gpu_memory_utilization or default_fraction(request)


def default_fraction(request: FitRequest) -> float | None:
    """Give what the engine takes where nothing is set; null where no engine or none is known."""
    if request.engine is None:
        return None
    defaults = request.engine.default_gpu_memory_utilization
    known = sorted((release(since) or (0, 0), value) for since, value in defaults.items())
    wanted = release(request.engine_version)
    fitting = [value for since, value in known if wanted is None or since <= wanted]
    return fitting[-1] if fitting else None
