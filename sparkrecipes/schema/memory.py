"""The answer to "does it fit": components with bounds, for a context and a number of users."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Bytes, Frozen, Id, Text, Tokens, Users

FitVerdict = Literal["fits", "tight", "does_not_fit", "unknown"]


class Components(Frozen):
    """High bounds, in bytes; null where a component cannot be bounded."""

    weights_bytes: Bytes | None
    drafter_bytes: Bytes | None
    kv_cache_bytes: Bytes | None
    state_bytes: Bytes | None
    """Recurrent state of linear-attention and Mamba layers."""
    overhead_bytes: Bytes | None
    """Activations, CUDA graphs, workspaces and the process itself."""
    host_reserve_bytes: Bytes


class Pool(Frozen):
    """What the fraction that the recipe gives the engine can serve."""

    gpu_memory_utilization: float | None
    users_at_context: tuple[float, float] | None
    """Full contexts served at once: low and high bound; null where unknown."""
    ok: bool | None
    """Whether that covers the users asked for; null where the bounds straddle them."""


class EngineKv(Frozen):
    """What the engine's own start-up log would print for its KV cache."""

    block_size: Annotated[int, Field(ge=1)]
    """Tokens a block of the attention layers."""
    num_blocks: Annotated[int, Field(ge=0)]
    blocks_per_request: Annotated[int, Field(ge=1)]
    kv_cache_tokens: Annotated[int, Field(ge=0)]
    """The figure behind "GPU KV cache size"."""
    max_concurrency: float
    log_rule: Text
    """Which releases print it this way."""


class MemoryEstimate(Frozen):
    """What a recipe or model needs on a machine, with bounds and reasons."""

    subject: Text
    """The recipe, model or repository asked about."""
    model: Id | None
    verdict: FitVerdict
    """Against the whole machine."""
    verdict_now: FitVerdict | None
    """Against what is free now; null where that is not known."""
    context_tokens: Tokens
    users: Users
    kv_cache_dtype: Text
    kv_bytes_per_token: Annotated[int, Field(ge=0)]
    """Growth of one sequence's cache a token, in bytes, while it grows."""
    components: Components
    bounds: dict[Text, tuple[int, int] | None]
    """Low and high of each component, in bytes, by its name."""
    total_bytes: Bytes | None
    """Sum of the high bounds."""
    total_bounds: tuple[int, int] | None
    usable_bytes: Bytes
    usable_source: Text
    available_bytes: Bytes | None
    """MemAvailable now, where this host is the machine asked about."""
    max_users_at_context: Annotated[int, Field(ge=0)] | None
    """Most users at this context by the high bounds."""
    max_context_at_users: Annotated[int, Field(ge=0)] | None
    """Longest context for these users by the high bounds, at most the model's."""
    min_gpu_memory_utilization: float | None
    """Smallest fraction that serves what was asked, rounded up to 0.01; null where none does."""
    reservation_bytes: Bytes | None
    """What the recipe's fraction makes the engine take."""
    pool: Pool
    engine_kv: EngineKv | None = None
    assumptions: tuple[Text, ...]
    """Every bound and its reason."""
    warnings: tuple[Text, ...]
