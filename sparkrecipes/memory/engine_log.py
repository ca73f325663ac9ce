"""What the engine's own start-up log prints of its KV cache."""

from __future__ import annotations

from sparkrecipes.errors import Refused
from sparkrecipes.memory.cache_groups import CachePlan
from sparkrecipes.schema.memory import EngineKv

POOL_RULE = "0.21 and later: concurrency x the longest context"
BLOCK_RULE = "up to 0.20: blocks a group x the smallest block"


def engine_kv(plan: CachePlan, available_bytes: int, context_tokens: int) -> EngineKv:
    """Compute the log's figures from the memory that is left for the cache.

    Args:
        plan: The layout of the cache.
        available_bytes: "Available KV cache memory" of the log, in bytes.
        context_tokens: Longest sequence, ``--max-model-len``.

    Raises:
        Refused: The model keeps no cache, so the engine logs none.
    """
    a_request = plan.blocks_per_request(context_tokens)
    if not a_request:
        raise Refused("this model keeps no KV cache: the engine logs none", code="no_kv_cache")
    blocks = max(available_bytes, 0) // plan.bytes_per_block
    concurrency = blocks / a_request
    if plan.settings.rules.logs_pool_tokens:
        tokens, rule = int(concurrency * context_tokens), POOL_RULE
    else:
        groups = sum(g.copies for g in plan.groups)
        smallest = min(g.spec.block_tokens for g in plan.groups)
        tokens, rule = blocks // groups * smallest, BLOCK_RULE
    return EngineKv(
        block_size=plan.block_tokens,
        num_blocks=blocks,
        blocks_per_request=a_request,
        kv_cache_tokens=tokens,
        max_concurrency=concurrency,
        log_rule=rule,
    )
