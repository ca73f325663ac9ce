"""The arithmetic of decoding and prefill: bytes read a step, tokens a step, operations a prompt."""

from __future__ import annotations

import math
from typing import NamedTuple

from sparkrecipes.schema.model import Model

EMBEDDING_BYTES = 2
"""Bytes a value of embeddings and output head: builds below 16 bits leave them at 16."""


class Shape(NamedTuple):
    """What of a model and its build decides its speed."""

    read_bytes: tuple[float, float]
    """Weights read for one token, low and high."""
    active_params: float
    total_params: float
    kv_bytes_per_token: int
    """Cache read a step for each token of each sequence."""

    @property
    def dense(self) -> bool:
        """Whether every token reads all weights."""
        return self.active_params >= self.total_params


class Parameters(NamedTuple):
    """What evidence says of the hardware and the engine; every one is a plain ratio or rate."""

    dense_share: float
    """Share of the peak bandwidth that decoding a dense model reaches."""
    mixture_share: float
    """The same of a mixture of experts, whose kernels are small."""
    expert_growth: float
    """Share of the active weights that other tokens of a step do not share (routed experts)."""
    draft_cost: float
    """Time of one draft token, in steps of one token."""
    draft_hit: float
    """Chance that the target takes a draft token whose forerunners it took."""
    dense_tflops: float
    """Operations a second of a prefill: two for each active parameter and token."""
    mixture_tflops: float


def at_peak(known: Parameters) -> Parameters:
    """Give the parameters that no machine beats: full bandwidth, weights read once, free drafts."""
    return known._replace(dense_share=1.0, mixture_share=1.0, expert_growth=0.0, draft_cost=0.0)


class Load(NamedTuple):
    """What is served."""

    users: int
    draft_tokens: int
    """Draft tokens a step; 0 without speculation."""
    context_tokens: int
    """Tokens of each sequence that are in the cache."""


def shape_of(
    model: Model, weights: tuple[int, int] | None, kv_bytes_per_token: int
) -> Shape | None:
    """Take what decides the speed; null where weights or active parameters are not known.

    Args:
        model: Its parameters and embeddings.
        weights: Bounds of the build's weights in memory, bytes.
        kv_bytes_per_token: Growth of one sequence's cache a token.
    """
    active, total = model.params_active_b, model.params_total_b
    if weights is None or active is None or total is None:
        return None
    table = (model.vocab_size or 0) * (model.hidden_size or 0)
    low, high = (read_bytes(side, active * 1e9, total * 1e9, table) for side in weights)
    return Shape((low, high), active * 1e9, total * 1e9, kv_bytes_per_token)


def read_bytes(weights: float, active: float, total: float, table: float) -> float:
    """Give the weights read for one token: active layers at the build's bits, the head at 16.

    Of the two embedding tables (``table`` values each) the input is looked up, not read.
    """
    tables = min(2 * table, total / 2)
    head = tables / 2 * EMBEDDING_BYTES
    each = max(weights - 2 * head, 0) / (total - tables)
    return each * max(active - tables / 2, 0) + head


def tokens_a_step(draft_tokens: int, hit: float) -> float:
    """Count the tokens that a step yields: drafts up to the first that is refused, and one more."""
    return math.fsum(math.pow(hit, position) for position in range(draft_tokens + 1))


def step_growth(shape: Shape, tokens: float, growth: float) -> float:
    """Say how much longer a step is that works on several tokens at once.

    A dense model reads the same weights for all. Of a mixture each token chooses experts, so
    ``tokens`` of them read (1 - (1 - r)^tokens) / r times the experts of one, r being the active
    share.
    """
    if shape.dense:
        return 1.0
    share = shape.active_params / shape.total_params
    covered = (1 - math.pow(1 - share, tokens)) / share
    return 1 + growth * (covered - 1)


def decode_tok_s(
    shape: Shape,
    read: float,
    load: Load,
    known: Parameters,
    bandwidth_gb_s: float,
    *,
    tokens: float | None = None,
) -> float:
    """Give the tokens a second of all users together.

    Args:
        shape: The model.
        read: Weights read for one token, in bytes.
        load: Users, draft tokens and context.
        known: The calibration.
        bandwidth_gb_s: Peak memory bandwidth, GB/s.
        tokens: Tokens that a step yields each user; null: by the calibrated chance.
    """
    drafts = load.draft_tokens
    steps = step_growth(shape, load.users * (drafts + 1), known.expert_growth)
    steps += known.draft_cost * drafts
    cache = load.users * load.context_tokens * shape.kv_bytes_per_token
    share = known.dense_share if shape.dense else known.mixture_share
    seconds = (steps * read + cache) / (share * bandwidth_gb_s * 1e9)
    yielded = tokens_a_step(drafts, known.draft_hit) if tokens is None else tokens
    return load.users * yielded / seconds


def prefill_tok_s(shape: Shape, known: Parameters) -> float:
    """Give the prompt tokens a second: two operations for each active parameter and token."""
    tflops = known.dense_tflops if shape.dense else known.mixture_tflops
    return tflops * 1e12 / (2 * shape.active_params)
