"""What one sequence costs in the cache, between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkrecipes.memory.cache_groups import CachePlan, plan_cache
from sparkrecipes.memory.cache_specs import (
    SMALLEST_BLOCK,
    CacheSettings,
    kv_width,
    state_bytes,
    token_bytes,
)
from sparkrecipes.memory.engine_rules import (
    ASYNC_SPECULATION,
    CacheMode,
    EngineRules,
    cache_mode,
    release,
    rules_for,
)
from sparkrecipes.memory.request import (
    FitRequest,
    drafter_of,
    flag_number,
    flag_on,
    flag_value,
    target_layers,
)
from sparkrecipes.schema.model import LayerGroup

GIB = 2**30

BATCHED_TOKENS = ((160 * GIB, 16384), (70 * GIB, 8192), (0, 2048))
"""Default ``--max-num-batched-tokens`` of a server by the device's memory, from there upwards.

Source: vLLM 0.31.0 ``engine/arg_utils.py``, get_batch_defaults.
"""

SSM_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}

DRAFTER_LAYERS = {"eagle3": 1, "mtp": 1, "dflash": 8, "dspark": 8}
"""Attention layers of a drafter that nobody described, at most: EAGLE-3 is one decoder layer; the
largest known DFlash and DSpark drafters have 8 and 6."""

DRAFTER_HEADS_TO_HIDDEN = 2
"""Widest attention of an undescribed drafter, in hidden sizes of its target (gpt-oss: 1.42)."""

FLASHINFER = "FLASHINFER"

UNQUANTISED = ("bf16", "bfloat16", "fp16", "float16")


class SequenceCost(NamedTuple):
    """Bytes that one sequence takes of the cache, and where that comes from."""

    layers: tuple[LayerGroup, ...]
    """All layers that keep a cache, those of the drafter among them."""
    low: CachePlan | None
    """The layout with the narrower types; null where the engine's arithmetic is not known."""
    high: CachePlan
    low_settings: CacheSettings
    drafter_token_bytes: int | None
    """More for each token, at most, for a drafter that nobody described; null: no bound."""

    def kv_bytes(self, context_tokens: int) -> tuple[int, int] | None:
        """Bound what attention keeps of one sequence of this length."""
        if self.drafter_token_bytes is None:
            return None
        high = self.high.attention_blocks(context_tokens) * self.high.bytes_per_block
        if self.low is None:
            low = kept_bytes(self.layers, self.low_settings, context_tokens)
        elif self.low is self.high:
            low = high
        else:
            low = self.low.attention_blocks(context_tokens) * self.low.bytes_per_block
        return min(low, high), max(low, high) + self.drafter_token_bytes * context_tokens

    def state_bytes(self, context_tokens: int) -> tuple[int, int]:
        """Bound what recurrent layers keep of one sequence."""
        high = self.high.state_blocks(context_tokens) * self.high.bytes_per_block
        if self.low is None:
            low = sum(g.count * state_bytes(g, self.low_settings.ssm_width, 0) for g in self.layers)
        elif self.low is self.high:
            low = high
        else:
            low = self.low.state_blocks(context_tokens) * self.low.bytes_per_block
        return min(low, high), max(low, high)

    def with_fixed_blocks(self) -> CachePlan:
        """Lay the cache out for kernels that run blocks of 16, 32 or 64 tokens only."""
        return plan_cache(self.layers, (), self.high.settings._replace(any_block=False))

    def most_bytes(self, context_tokens: int) -> int | None:
        """Give the high bound of one sequence of this length; null where there is none."""
        if self.drafter_token_bytes is None:
            return None
        if self.low is None or self.low is self.high:
            blocks = self.high.blocks_per_request(context_tokens)
            return blocks * self.high.bytes_per_block + self.drafter_token_bytes * context_tokens
        kv, state = self.kv_bytes(context_tokens), self.state_bytes(context_tokens)
        return kv[1] + state[1] if kv else None

    def longest_within(self, budget_bytes: int, most_tokens: int) -> int:
        """Find the longest sequence, up to ``most_tokens``, whose high bound is in a budget."""
        low, high = 0, most_tokens + 1
        if (self.most_bytes(most_tokens) or 0) <= budget_bytes:
            return most_tokens
        while high - low > 1:
            middle = (low + high) // 2
            if (self.most_bytes(middle) or 0) <= budget_bytes:
                low = middle
            else:
                high = middle
        return low


def kept_bytes(layers: Sequence[LayerGroup], settings: CacheSettings, context_tokens: int) -> int:
    """Sum what attention keeps of a sequence, token by token: no engine can keep less."""
    total = 0
    for group in layers:
        tokens = context_tokens
        if group.kind == "sliding_attention" and not settings.window_is_full:
            tokens = min(context_tokens, group.window_tokens)
        total += group.count * tokens * token_bytes(group, settings.kv_cache_dtype)
    return total


def sequence_cost(request: FitRequest, mem_total_bytes: int) -> SequenceCost:
    """Lay out the cache of what is asked.

    Where the engine's arithmetic is not known, a sequence costs at least its tokens, and at most
    what vLLM's newest release takes in whole blocks.

    Raises:
        Misuse: Nobody knows the type of the KV cache.
    """
    layers = target_layers(request)
    known = drafter_of(request)
    drafter = (known.layers if known else None) or ()
    low, high = cache_settings(request, layers, mem_total_bytes)
    plan = plan_cache(layers, drafter, high)
    counted = request.engine is not None and request.engine.kv_rules == "vllm"
    return SequenceCost(
        layers=(*layers, *drafter),
        low=(plan if low == high else plan_cache(layers, drafter, low)) if counted else None,
        high=plan,
        low_settings=low,
        drafter_token_bytes=undescribed_drafter_bytes(request),
    )


def undescribed_drafter_bytes(request: FitRequest) -> int | None:
    """Bound the bytes a token of a separate drafter whose layers no source gives; else 0."""
    known, spec = drafter_of(request), request.speculative
    if request.drafter_repo is None or spec is None or (known and known.layers is not None):
        return 0
    hidden = request.model.hidden_size
    if hidden is None or spec.method not in DRAFTER_LAYERS:
        return None
    heads = DRAFTER_HEADS_TO_HIDDEN * hidden * kv_width(request.kv_cache_dtype)
    return DRAFTER_LAYERS[spec.method] * 2 * heads


def cache_settings(
    request: FitRequest, layers: tuple[LayerGroup, ...], mem_total_bytes: int
) -> tuple[CacheSettings, CacheSettings]:
    """Read the settings that decide the layout, with the narrower and the wider types."""
    rules = rules_for(request.engine_version)
    low_ssm, high_ssm = ssm_widths(request, layers)
    high = CacheSettings(
        rules=rules,
        kv_cache_dtype=request.kv_cache_dtype,
        ssm_width=high_ssm,
        mode=mode_of(request, rules, layers),
        speculative_tokens=request.speculative.num_speculative_tokens if request.speculative else 0,
        in_flight_tokens=batched_tokens(request, mem_total_bytes) * batches(request, rules),
        block_tokens=flag_number(request.flags, "--block-size") or SMALLEST_BLOCK,
        any_block=runs_any_block(request.flags),
        window_is_full=flag_on(request.flags, "disable-hybrid-kv-cache-manager") or False,
    )
    quantised = any(b.quant.lower() not in UNQUANTISED for b in request.builds)
    own_type = request.kv_cache_dtype == "auto" and quantised
    dtype = "fp8" if own_type else request.kv_cache_dtype
    return high._replace(ssm_width=low_ssm, kv_cache_dtype=dtype), high


def runs_any_block(flags: tuple[str, ...]) -> bool:
    """Say whether the kernels of attention run any multiple of 16 tokens a block.

    FLASHINFER, where it is told, runs blocks of 16, 32 or 64 tokens on a GB10.

    Source: vLLM 0.32.0 ``v1/attention/backends/flashinfer.py``.
    """
    return (flag_value(flags, "--attention-backend") or "").upper() != FLASHINFER


def ssm_widths(request: FitRequest, layers: tuple[LayerGroup, ...]) -> tuple[int, int]:
    """Give the bytes a value of the recurrent state: flag, else the model's, else both types."""
    told = SSM_WIDTHS.get(flag_value(request.flags, "--mamba-ssm-cache-dtype") or "")
    if told:
        return told, told
    stated = {g.ssm_dtype for g in layers if g.kind in ("gated_delta_net", "mamba2")}
    widths = [SSM_WIDTHS[name] for name in stated if name]
    if None in stated:
        widths += [2, 4]
    return (min(widths), max(widths)) if widths else (4, 4)


def mode_of(request: FitRequest, rules: EngineRules, layers: tuple[LayerGroup, ...]) -> CacheMode:
    """Say what is kept of recurrent states: by flag, else by release and prefix caching."""
    prefix_caching = flag_on(request.flags, "enable-prefix-caching")
    if prefix_caching is None:
        prefix_caching = rules.hybrid_prefix_caching or release(request.engine_version) is None
    told = flag_value(request.flags, "--mamba-cache-mode")
    if prefix_caching and told == "align":
        return "align"
    if prefix_caching and told == "all":
        return "all"
    return cache_mode(
        rules,
        prefix_caching=prefix_caching,
        mamba2=any(g.kind == "mamba2" for g in layers),
        speculative=request.speculative is not None,
    )


def batched_tokens(request: FitRequest, mem_total_bytes: int) -> int:
    """Read the most tokens a step, or the engine's default for this much memory."""
    told = flag_number(request.flags, "--max-num-batched-tokens")
    return told or next(tokens for least, tokens in BATCHED_TOKENS if mem_total_bytes >= least)


def batches(request: FitRequest, rules: EngineRules) -> int:
    """Count the batches in flight: one unless scheduling is asynchronous."""
    told = flag_on(request.flags, "async-scheduling")
    if told is None:
        spec = request.speculative
        told = spec is None or spec.method in ASYNC_SPECULATION
    return rules.batches_in_flight if told else 1
