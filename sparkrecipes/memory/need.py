"""What serving needs as a function of users and context, and the largest that still fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkrecipes.memory import components
from sparkrecipes.memory.components import Bound, Overhead
from sparkrecipes.memory.request import FitRequest
from sparkrecipes.memory.sequence_cost import (
    GIB,
    SequenceCost,
    batched_tokens,
    sequence_cost,
)
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.machine import Machine

MEASURED_MEM_TOTAL_BYTES = 127_600_748 * 1024
"""MemTotal of a DGX Spark, on which the published rows were measured (121.69 GiB)."""

MOST_USERS = 4096
"""Largest number of users that is looked for."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Need:
    """The bounds of each component, as far as they can be had."""

    weights: Bound | None
    drafter: Bound | None
    overhead: Overhead
    sequence: SequenceCost
    host_reserve: int
    ceiling: int | None
    """Weights, drafter and overhead together, at most, as a published row proves."""
    published: EvidenceRow | None

    def kv_cache(self, users: int, context_tokens: int) -> Pair | None:
        """Bound the KV cache of all users."""
        one = self.sequence.kv_bytes(context_tokens)
        return None if one is None else (users * one[0], users * one[1])

    def state(self, users: int, context_tokens: int) -> Pair:
        """Bound the recurrent state of all users."""
        low, high = self.sequence.state_bytes(context_tokens)
        return users * low, users * high

    def engine_overhead(self, users: int, context_tokens: int) -> Pair:
        """Bound the overhead inside the engine's fraction."""
        low, high, _ = self.overhead.engine
        return low, self.capped(low, high, users, context_tokens)

    def all_overhead(self, users: int, context_tokens: int) -> Pair:
        """Bound the overhead with shared memory, which comes from the same pool."""
        low, high, _ = self.overhead.engine
        return low, self.capped(low, high + self.overhead.shm, users, context_tokens)

    def capped(self, low: int, high: int, users: int, context_tokens: int) -> int:
        """Lower the bound of the overhead to what a published row leaves for it."""
        ceiling = self.measured_ceiling(users, context_tokens)
        if ceiling is None or not self.weights or not self.drafter:
            return high
        return min(high, max(low, ceiling - self.weights.high - self.drafter.high))

    def measured_ceiling(self, users: int, context_tokens: int) -> int | None:
        """Give the ceiling where the published row covers these settings, else null."""
        row = self.published
        if row is None or users > row.users or context_tokens > row.context_tokens:
            return None
        return self.ceiling

    def total(self, users: int, context_tokens: int) -> Pair | None:
        """Bound everything, the host's reserve with it; null where a component has no bound."""
        kv = self.kv_cache(users, context_tokens)
        if self.weights is None or self.drafter is None or kv is None:
            return None
        parts = (
            (self.weights.low, self.weights.high),
            (self.drafter.low, self.drafter.high),
            kv,
            self.state(users, context_tokens),
            self.all_overhead(users, context_tokens),
            (self.host_reserve, self.host_reserve),
        )
        return sum(p[0] for p in parts), sum(p[1] for p in parts)

    def fraction_bytes(self, users: int, context_tokens: int) -> int | None:
        """Give what the engine's fraction must hold, at most: all but reserve and shared memory."""
        total = self.total(users, context_tokens)
        if total is None:
            return None
        outside = (
            self.all_overhead(users, context_tokens)[1]
            - self.engine_overhead(users, context_tokens)[1]
        )
        return total[1] - outside - self.host_reserve


def need_of(request: FitRequest, machine: Machine) -> Need:
    """Bound every component of what is asked."""
    sequence = sequence_cost(request, machine.mem_total_bytes)
    batched = batched_tokens(request, machine.mem_total_bytes)
    return Need(
        weights=components.weights(request),
        drafter=components.drafter(request),
        overhead=components.overhead(request, batched, sequence.high.bytes_per_block),
        sequence=sequence,
        host_reserve=machine.host_reserve_bytes,
        ceiling=published_ceiling(request, sequence),
        published=request.published,
    )


def published_ceiling(request: FitRequest, sequence: SequenceCost) -> int | None:
    """Bound weights, drafter and overhead together by a published row; null without one.

    The engine started, so its fraction of the total held them and the cache of one request of full
    length, without which it refuses to start. The published memory is the drop of free memory, so
    shared memory is in it; read as GiB, the larger reading.
    """
    row, fraction = request.published, request.gpu_memory_utilization
    if row is None or fraction is None or row.figures.memory_gb is None:
        return None
    taken = max(int(fraction * MEASURED_MEM_TOTAL_BYTES), int(row.figures.memory_gb * GIB))
    if row.kv_cache_dtype != request.kv_cache_dtype:
        return taken
    one = sequence.kv_bytes(row.context_tokens)
    return taken - (one[0] if one else 0) - sequence.state_bytes(row.context_tokens)[0]


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Find the largest number up to ``most`` for which ``fits`` holds; 0 where none does.

    ``fits`` must not become true again once it is false.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def most_users(need: Need, usable_bytes: int, context_tokens: int) -> int | None:
    """Find the most users at a context, by the high bounds; null where one is missing."""
    if need.total(1, context_tokens) is None:
        return None
    return largest(MOST_USERS, lambda n: within(need.total(n, context_tokens), usable_bytes))


def longest_context(need: Need, usable_bytes: int, users: int, model_tokens: int) -> int | None:
    """Find the longest context for a number of users, at most the model's, by the high bounds."""
    if need.total(users, 1) is None:
        return None
    return largest(model_tokens, lambda n: within(need.total(users, n), usable_bytes))


def within(total: Pair | None, usable_bytes: int) -> bool:
    """Say whether a high bound is within what can be used."""
    return total is not None and total[1] <= usable_bytes
