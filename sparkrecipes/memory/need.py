"""What serving needs as a function of users and context, and the largest that still fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkrecipes.memory import components
from sparkrecipes.memory.components import Bound, Overhead
from sparkrecipes.memory.request import FitRequest
from sparkrecipes.memory.sequence_cost import (
    GIB,
    SequenceCost,
    batched_tokens,
    sequence_cost,
)
from sparkrecipes.schema.machine import Machine

if TYPE_CHECKING:
    from sparkrecipes.schema.evidence import EvidenceRow

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
        ceiling = self.measured_ceiling(users, context_tokens)
        return self.overhead.low, self.capped(self.overhead.high, ceiling)

    def all_overhead(self, users: int, context_tokens: int) -> Pair:
        """Bound the overhead with shared memory, which comes from the same pool."""
        ceiling = self.measured_ceiling(users, context_tokens)
        return self.overhead.low, self.capped(self.overhead.high + self.overhead.shm, ceiling)

    def overhead_parts(self, users: int, context_tokens: int) -> dict[str, Pair]:
        """Bound what the overhead is made of: each at most what the whole leaves for it."""
        low, high = self.all_overhead(users, context_tokens)
        parts = {name: (part.low, part.high) for name, part in self.overhead.parts.items()}
        parts["shared_memory_bytes"] = (0, self.overhead.shm)
        return {name: (a, min(b, high - low + a)) for name, (a, b) in parts.items()}

    def capped(self, high: int, ceiling: int | None) -> int:
        """Lower a high bound of the overhead to what a published row leaves for it."""
        if ceiling is None or not self.weights or not self.drafter:
            return high
        left = ceiling - self.weights.high - self.drafter.high
        return min(high, max(self.overhead.low, left))

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

    def fixed_high(self, *, measured: bool) -> int | None:
        """Sum the high bounds of all but the cache, within or beyond what a row measured."""
        if self.weights is None or self.drafter is None:
            return None
        overhead = self.overhead.high + self.overhead.shm
        ceiling = self.ceiling if measured else None
        return (
            self.weights.high
            + self.drafter.high
            + self.capped(overhead, ceiling)
            + self.host_reserve
        )

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
    overhead = components.overhead(request, batched, sequence.high.bytes_per_block)
    return Need(
        weights=components.weights(request),
        drafter=components.drafter(request),
        overhead=overhead._replace(shm=shm_within(request, overhead)),
        sequence=sequence,
        host_reserve=machine.host_reserve_bytes,
        ceiling=published_ceiling(request, sequence),
        published=request.published,
    )


def shm_within(request: FitRequest, overhead: Overhead) -> int:
    """Bound what is written of the container's shared memory.

    ``--shm-size`` is a limit: its pages are taken when they are written, so at worst all of it. A
    published row of the same recipe shows more: free memory fell by so much with the engine's
    fraction and shared memory together, and the engine fills its fraction but for the overhead that
    its profile reckoned with. One GPU's shared memory does not grow with context or users, so that
    holds for other settings too.
    """
    row, fraction = request.published, request.gpu_memory_utilization
    if row is None or fraction is None or row.figures.memory_gb is None:
        return overhead.shm
    fell = int(row.figures.memory_gb * GIB)
    taken = int(fraction * MEASURED_MEM_TOTAL_BYTES)
    return min(overhead.shm, max(fell - taken + overhead.high, 0))


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


def most_users(need: Need, usable_bytes: int, context_tokens: int) -> int | None:
    """Find the most users at a context, by the high bounds; null where one is missing."""
    one = need.sequence.most_bytes(context_tokens)
    loose, tight = need.fixed_high(measured=False), need.fixed_high(measured=True)
    if one is None or loose is None or tight is None:
        return None
    if not one:
        return MOST_USERS if loose <= usable_bytes else 0
    users = (usable_bytes - loose) // one
    row = need.published
    if need.ceiling is not None and row is not None and context_tokens <= row.context_tokens:
        users = max(users, min(row.users, (usable_bytes - tight) // one))
    return min(max(users, 0), MOST_USERS)


def longest_context(need: Need, usable_bytes: int, users: int, model_tokens: int) -> int | None:
    """Find the longest context for a number of users, at most the model's, by the high bounds."""
    loose, tight = need.fixed_high(measured=False), need.fixed_high(measured=True)
    if loose is None or tight is None or need.sequence.drafter_token_bytes is None:
        return None
    longest = need.sequence.longest_within((usable_bytes - loose) // users, model_tokens)
    row = need.published
    if need.ceiling is not None and row is not None and users <= row.users:
        covered = min(row.context_tokens, model_tokens)
        if longest < covered:
            measured = need.sequence.longest_within((usable_bytes - tight) // users, covered)
            longest = max(longest, measured)
    return longest
