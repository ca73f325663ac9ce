"""How vLLM groups layers over one pool of blocks, and what a sequence takes of it.

Source: vLLM 0.32.0 ``v1/core/kv_cache_utils.py``: ``get_kv_cache_groups``,
``unify_kv_cache_spec_page_size``, ``_get_kv_cache_groups_uniform_page_size``,
``_get_packed_kv_cache_groups``, ``_get_kv_cache_bytes_per_block``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from sparkrecipes.memory.cache_specs import (
    CacheSettings,
    CacheSpec,
    attention_block,
    ceil_div,
    layer_specs,
)
from sparkrecipes.schema.model import LayerGroup

PADDING_LIMIT = 1.5
"""Where the largest kind has fewer layers than this times the smallest, groups take its size."""


class Group(NamedTuple):
    """Layers that share one block table, and how often such a group occurs."""

    spec: CacheSpec
    """How blocks are counted; of layers that differ in size, any one."""
    layers: int
    page_bytes: int
    """Bytes of one block over all its layers."""
    copies: int


class CachePlan(NamedTuple):
    """A pool of equal blocks that all groups draw from."""

    block_tokens: int
    """Tokens of an attention block."""
    bytes_per_block: int
    attention: tuple[Group, ...]
    """Groups of attention layers, and of the rings of their indexers."""
    states: tuple[Group, ...]
    """Groups of recurrent layers."""
    settings: CacheSettings

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups."""
        return self.attention + self.states

    def blocks_per_request(self, context_tokens: int) -> int:
        """Count the blocks that one sequence of this length takes."""
        return self.attention_blocks(context_tokens) + self.state_blocks(context_tokens)

    def attention_blocks(self, context_tokens: int) -> int:
        """Count the blocks that attention layers take for one sequence of this length."""
        return total_blocks(self.attention, context_tokens, self.settings)

    def state_blocks(self, context_tokens: int) -> int:
        """Count the blocks that recurrent layers take for one sequence of this length."""
        return total_blocks(self.states, context_tokens, self.settings)


def total_blocks(groups: tuple[Group, ...], context_tokens: int, settings: CacheSettings) -> int:
    """Count the blocks that groups take for one sequence of this length."""
    total = 0
    for spec, _, _, copies in groups:
        total += copies * blocks_of(spec, context_tokens, settings)
    return total


def blocks_of(spec: CacheSpec, context_tokens: int, settings: CacheSettings) -> int:
    """Count the blocks of one group for one sequence of this length.

    A window takes one block more, as it need not begin at a block's edge; blocks below it are
    held until the tokens in flight have settled.
    """
    if spec.held_blocks:
        return spec.held_blocks
    if spec.kind == "sliding":
        kept = min(spec.window_tokens - 1 + settings.in_flight_tokens, context_tokens)
        return ceil_div(kept, spec.block_tokens) + 1
    blocks = ceil_div(context_tokens, spec.block_tokens)
    if spec.kind == "state" and settings.rules.all_adds_speculation:
        return blocks + settings.speculative_tokens
    return blocks


@lru_cache(maxsize=1024)
def plan_cache(
    layers: tuple[LayerGroup, ...], drafter: tuple[LayerGroup, ...], settings: CacheSettings
) -> CachePlan:
    """Lay out the cache of a model and its drafter.

    Args:
        layers: The target's layers, its MTP layers among them where they are used.
        drafter: Layers of a separate drafter.
        settings: Type, mode and release.
    """
    groups = group_layers(layer_specs(layers, drafter, settings))
    return CachePlan(
        block_tokens=attention_block(layers, settings),
        bytes_per_block=max((g.page_bytes for g in groups), default=0),
        attention=tuple(g for g in groups if g.spec.kind != "state"),
        states=tuple(g for g in groups if g.spec.kind == "state"),
        settings=settings,
    )


def group_layers(specs: Mapping[CacheSpec, int]) -> tuple[Group, ...]:
    """Group the layers of each spec.

    Layers that all need the same tokens share one group, whatever their sizes. An indexer's pages
    lie beside those of attention in each block; all else is brought to one page size.
    """
    buckets = alike(specs)
    if len(buckets) <= 1:
        return tuple(whole(bucket) for bucket in buckets)
    if any(spec.kind == "ring" for spec in specs):
        return packed_groups(buckets)
    return even_groups(one_page_size(specs))


def alike(specs: Mapping[CacheSpec, int]) -> list[dict[CacheSpec, int]]:
    """Put together what needs the same blocks, whatever its size: one kind, block and window.

    Recurrent layers must also agree in their pages, and the short convolutions stand alone (they
    are replicated where others are sharded).
    """
    buckets: dict[tuple[object, ...], dict[CacheSpec, int]] = {}
    for spec, count in specs.items():
        key: tuple[object, ...] = (spec.kind, spec.block_tokens, spec.window_tokens)
        if spec.kind == "state":
            key += (spec.page_bytes, spec.held_blocks, spec.shape[0] == "short_conv")
        buckets.setdefault(key, {})[spec] = count
    return list(buckets.values())


def whole(bucket: Mapping[CacheSpec, int]) -> Group:
    """Make one group of a bucket."""
    page = sum(count * spec.page_bytes for spec, count in bucket.items())
    return Group(next(iter(bucket)), sum(bucket.values()), page, 1)


def one_page_size(specs: Mapping[CacheSpec, int]) -> dict[CacheSpec, int]:
    """Bring all pages to the largest: more tokens a block where that divides it, else padding.

    Releases before 0.25 refuse to start where a page can only be padded.
    """
    largest = max(spec.page_bytes for spec in specs)
    return {grown(spec, largest): count for spec, count in specs.items()}


def grown(spec: CacheSpec, page_bytes: int) -> CacheSpec:
    """Give a spec the page size of others."""
    times, rest = divmod(page_bytes, spec.page_bytes)
    if rest or spec.kind == "state":
        return spec._replace(page_bytes=page_bytes)
    return spec._replace(page_bytes=page_bytes, block_tokens=spec.block_tokens * times)


def even_groups(specs: Mapping[CacheSpec, int]) -> tuple[Group, ...]:
    """Split each spec's layers into groups of one size.

    The size is the smallest count of layers, or the largest where all counts are close.
    """
    size, most = min(specs.values()), max(specs.values())
    if most < size * PADDING_LIMIT:
        size = most
    return tuple(split(spec, count, ceil_div(count, size)) for spec, count in specs.items())


def split(spec: CacheSpec, count: int, copies: int) -> Group:
    """Deal a spec's layers out to a number of groups."""
    layers = ceil_div(count, copies)
    return Group(spec, layers, layers * spec.page_bytes, copies)


def packed_groups(buckets: list[dict[CacheSpec, int]]) -> tuple[Group, ...]:
    """Group layers whose pages of several sizes lie side by side in each block.

    Buckets that repeat a pattern of sizes stay whole and set how many repeats a group holds;
    others are split to that. Recurrent layers and rings are split further, so that they do not
    widen the block that attention needs.
    """
    patterns = [max(b.values()) for b in buckets if len(b) > 1 and balanced(b)]
    repeats = best_repeats([max(b.values()) for b in buckets if balanced(b)], max(patterns))
    copies = [ceil_div(max(b.values()), repeats) if balanced(b) else 1 for b in buckets]
    block_bytes = max(
        max(spec.page_bytes for spec in bucket) if is_state(bucket) else bytes_in(bucket, n)
        for bucket, n in zip(buckets, copies, strict=True)
    )
    return tuple(
        dealt(bucket, state_copies(bucket, n, block_bytes) if is_state(bucket) else n)
        for bucket, n in zip(buckets, copies, strict=True)
    )


def balanced(bucket: Mapping[CacheSpec, int]) -> bool:
    """Say whether a bucket has as many layers of each page size."""
    sizes: dict[int, int] = {}
    for spec, count in bucket.items():
        sizes[spec.page_bytes] = sizes.get(spec.page_bytes, 0) + count
    return len(set(sizes.values())) == 1


def is_state(bucket: Iterable[CacheSpec]) -> bool:
    """Say whether a bucket holds states, one block each."""
    return next(iter(bucket)).kind in ("state", "ring")


def bytes_in(bucket: Mapping[CacheSpec, int], copies: int) -> int:
    """Give the bytes a block of the widest of a bucket's groups."""
    return sum(ceil_div(count, copies) * spec.page_bytes for spec, count in bucket.items())


def state_copies(bucket: Mapping[CacheSpec, int], copies: int, block_bytes: int) -> int:
    """Say into how many groups states go so that they fit the block."""
    page = next(iter(bucket)).page_bytes
    return max(copies, ceil_div(sum(bucket.values()), max(block_bytes // page, 1)))


def dealt(bucket: Mapping[CacheSpec, int], copies: int) -> Group:
    """Make equal groups of a bucket."""
    layers = sum(ceil_div(count, copies) for count in bucket.values())
    return Group(next(iter(bucket)), layers, bytes_in(bucket, copies), copies)


def best_repeats(counts: list[int], at_least: int) -> int:
    """Find how many repeats a group holds with the least padding; of equals the largest."""
    return min(
        range(at_least, max(counts) + 1),
        key=lambda d: (sum(-count % d for count in counts), -d),
    )
