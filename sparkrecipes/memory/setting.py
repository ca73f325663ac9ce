"""What to set so that the engine serves what is asked, and what each setting leaves unchecked."""

from __future__ import annotations

from sparkrecipes.memory.components import gib
from sparkrecipes.memory.engine_rules import release
from sparkrecipes.memory.need import Need
from sparkrecipes.memory.request import FitRequest
from sparkrecipes.memory.startup import (
    default_fraction,
    fraction_of,
    smallest_fraction,
    start_check,
)
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import Settings, StartCheck

HOLDS_A_BLOCK_BACK = (0, 29)
"""First release whose start-up check leaves one block of the cache out."""


def settings_of(
    need: Need, request: FitRequest, machine: Machine, available_bytes: int | None
) -> Settings:
    """Say what to set for the context and users asked for."""
    fraction = serving_fraction(need, request, machine)
    cache = cache_bytes(need, request)
    notes = []
    if fraction is not None:
        notes.append(
            f"--gpu-memory-utilization={fraction:g} holds the high bounds of weights, drafter, "
            f"overhead and {request.users} full sequences"
        )
    if cache is not None:
        notes.append(
            f"--kv-cache-memory-bytes={cache} gives the cache {gib(cache)} whatever the fraction "
            "and skips the profile of memory; it does not bypass the check that the fraction x "
            "total is free at the start, nor that one sequence of full length fits the cache, nor "
            "does it bound weights and activations: the host can run out after the start"
        )
    return Settings(
        gpu_memory_utilization=fraction,
        kv_cache_memory_bytes=cache,
        default_gpu_memory_utilization=default_fraction(request),
        start_check=check_of(fraction_of(request) or fraction, machine, available_bytes),
        notes=tuple(notes),
    )


def serving_fraction(need: Need, request: FitRequest, machine: Machine) -> float | None:
    """Give the smallest fraction that serves what is asked; null where the machine has it not."""
    needed = need.fraction_bytes(request.users, request.context_tokens)
    if needed is None:
        return None
    fraction = smallest_fraction(needed, machine.mem_total_bytes)
    spare = machine.mem_total_bytes - machine.host_reserve_bytes
    return fraction if fraction * machine.mem_total_bytes <= spare else None


def cache_bytes(need: Need, request: FitRequest) -> int | None:
    """Give the cache of all users at full length by the high bounds, with the block held back."""
    one = need.sequence.most_bytes(request.context_tokens)
    if not one:
        return None
    wanted = release(request.engine_version)
    held = 1 if wanted is None or wanted >= HOLDS_A_BLOCK_BACK else 0
    return request.users * one + held * need.sequence.high.bytes_per_block


def check_of(
    fraction: float | None, machine: Machine, available_bytes: int | None
) -> StartCheck | None:
    """Check a fraction against what is free; without a live figure only what it needs."""
    if not fraction or machine.gpu is None:
        return None
    total = machine.mem_total_bytes
    found = start_check(fraction, total, total if available_bytes is None else available_bytes)
    live = available_bytes is not None
    return StartCheck(
        gpu_memory_utilization=fraction,
        needs_bytes=found.needs_bytes,
        available_bytes=available_bytes,
        starts=found.starts if live else None,
        largest_gpu_memory_utilization=found.largest_fraction if live else None,
    )
