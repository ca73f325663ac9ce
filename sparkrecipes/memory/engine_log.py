"""What the engine's own start-up log prints of its KV cache."""

from __future__ import annotations

from typing import NamedTuple

from sparkrecipes.errors import Refused
from sparkrecipes.memory.cache_groups import CachePlan
from sparkrecipes.schema.memory import EngineKv

POOL_RULE = "0.21 and later: concurrency x the longest context"
BLOCK_RULE = "up to 0.20: blocks a group x the smallest block"


NULL_BLOCK = 1
"""Blocks that the pool keeps for itself and never gives to a sequence.

Source: vLLM 0.32.0 ``v1/core/block_pool.py`` (null_block).
"""

PRINTED_HALF_BYTES = 2**30 // 200
"""Half of the 0.01 GiB to which the log rounds the memory it prints."""


class LogFigures(NamedTuple):
    """What the log prints for one amount of memory."""

    blocks: int
    tokens: int
    concurrency: float


def log_figures(plan: CachePlan, available_bytes: int, context_tokens: int) -> LogFigures:
    """Compute blocks, tokens and concurrency from the memory that is left for the cache."""
    blocks = max(available_bytes, 0) // plan.bytes_per_block
    concurrency = blocks / plan.blocks_per_request(context_tokens)
    if plan.settings.rules.logs_pool_tokens:
        return LogFigures(blocks, int(concurrency * context_tokens), concurrency)
    groups = sum(g.copies for g in plan.groups)
    smallest = min(g.spec.block_tokens for g in plan.groups)
    return LogFigures(blocks, blocks // groups * smallest, concurrency)


def engine_kv(
    plan: CachePlan, available_bytes: int, context_tokens: int, *, users: int = 1
) -> EngineKv:
    """Give the log's figures, and their bounds for any memory that prints the same.

    Args:
        plan: The layout of the cache.
        available_bytes: "Available KV cache memory" of the log, in bytes; below zero where the
            engine had none left.
        context_tokens: Longest sequence, ``--max-model-len``.
        users: Sequences at once, ``--max-num-seqs``.

    Raises:
        Refused: The model keeps no cache, so the engine logs none.
    """
    one = plan.blocks_per_request(context_tokens)
    if not one:
        raise Refused("this model keeps no KV cache: the engine logs none", code="no_kv_cache")
    low, given, high = (
        log_figures(plan, available_bytes + side, context_tokens)
        for side in (-PRINTED_HALF_BYTES, 0, PRINTED_HALF_BYTES)
    )
    rules = plan.settings.rules
    return EngineKv(
        block_size=plan.block_tokens,
        num_blocks=given.blocks,
        blocks_per_request=one,
        admitted_sequences=min(users, max(given.blocks - NULL_BLOCK, 0) // one),
        kv_cache_tokens=given.tokens,
        max_concurrency=given.concurrency,
        kv_cache_tokens_bounds=(low.tokens, high.tokens),
        max_concurrency_bounds=(low.concurrency, high.concurrency),
        available_bytes=available_bytes,
        engine_version=".".join(map(str, rules.since)) + " and later",
        log_rule=POOL_RULE if rules.logs_pool_tokens else BLOCK_RULE,
    )
