"""The answer to "does it fit": components with bounds, for a context and a number of users."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Bytes, Frozen, Id, Text, Tokens, Users
from sparkrecipes.schema.machine import LiveMemory

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


class FirstStart(Frozen):
    """The peak of a first start with an empty kernel cache, before the cache is allocated."""

    jit_compile_bytes: tuple[int, int]
    """What compilers of kernels take: nothing where kernels are cached, to all jobs at once."""
    max_jobs: Annotated[int, Field(ge=1)]
    """Compilers at once: ``MAX_JOBS``."""
    max_jobs_source: Literal["recipe", "command"]
    """Who sets it: the recipe's own environment, or the command, which adds it to that."""
    peak_bounds: tuple[int, int]
    """Weights, drafter, host reserve and compilers together."""
    verdict: FitVerdict


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
    admitted_sequences: Annotated[int, Field(ge=0)]
    """Sequences of full length that run at once: at most ``--max-num-seqs``, which the users are;
    one block is the pool's own."""
    kv_cache_tokens: Annotated[int, Field(ge=0)]
    """The figure behind "GPU KV cache size"."""
    max_concurrency: float
    kv_cache_tokens_bounds: tuple[int, int]
    """For any memory that prints as the one given: the log rounds it to 0.01 GiB."""
    max_concurrency_bounds: tuple[float, float]
    available_bytes: int
    """"Available KV cache memory" as given; below one block none are made."""
    engine_version: Text
    """Release whose rules were applied."""
    log_rule: Text
    """Which releases print it this way."""


class StartCheck(Frozen):
    """The engine's check when it starts: its fraction of the total must be free."""

    gpu_memory_utilization: float
    needs_bytes: Bytes
    available_bytes: Bytes | None
    """MemAvailable now; null where this host is not the machine asked about."""
    starts: bool | None
    largest_gpu_memory_utilization: float | None
    """The largest fraction, in hundredths, that would pass now."""


class Settings(Frozen):
    """What to set so that the engine serves what was asked, and no more."""

    gpu_memory_utilization: float | None
    """Smallest fraction that serves it; null where none does."""
    kv_cache_memory_bytes: Bytes | None
    """The same as ``--kv-cache-memory-bytes``: the cache alone, whatever the fraction."""
    default_gpu_memory_utilization: float | None
    """What this release takes when nothing is set; null where it is not known."""
    start_check: StartCheck | None
    """Of the recipe's fraction, else of the smallest one; null without a GPU or a fraction."""
    notes: tuple[Text, ...]
    """What these settings do, and what they do not bypass."""


class GridCell(Frozen):
    """One answer of a table of users and contexts."""

    context_tokens: Tokens
    users: Users
    verdict: FitVerdict
    verdict_now: FitVerdict | None
    total_bytes: Bytes | None
    total_bounds: tuple[int, int] | None


class Explained(Frozen):
    """One number of the answer, and how it came about."""

    number: Text
    """Its key in the answer; of a key within a key, with a dot."""
    low: int | float | None
    high: int | float | None
    """Equal to ``low`` where it is no range; null where nothing bounds it."""
    unit: Text
    rule: Text
    inputs: dict[Text, int | float | str | None]
    source: Text


class Forecast(Frozen):
    """How fast it would be, where nothing was measured: always a range."""

    basis: Literal["estimated"] = "estimated"
    method: Text
    """Whose figures it is calibrated on: one method of measuring."""
    speculative: Text | None
    """Way of speculation and draft tokens, or null."""
    single_user_tok_s: tuple[float, float]
    """Decode speed of one user with a short prompt, tokens a second."""
    single_user_tok_s_at_context: tuple[float, float]
    """The same while the context asked about is full."""
    users_total_tok_s: tuple[float, float]
    """All users together, short prompts."""
    users_total_tok_s_at_context: tuple[float, float]
    """All users together, each with a full context."""
    prefill_tok_s: tuple[float, float]
    """Prompt tokens a second."""
    prefill_s_at_context: tuple[float, float]
    """Time to read one prompt of the context asked about."""
    by_acceptance: dict[Text, tuple[float, float]]
    """Decode speed of one user by the acceptance rate of drafts, percent; empty without."""
    error_pct: dict[Text, float]
    """Largest error of each figure on a model that was left out of the calibration, percent."""
    usable: bool | None
    """False: too slow to use even at best; null: the range is on both sides of that."""
    notes: tuple[Text, ...]


class EstimatedSpeed(Frozen):
    """The forecast in brief, for a list: what a recipe without published figures may reach."""

    basis: Literal["estimated"] = "estimated"
    users: Users
    single_user_tok_s: tuple[float, float]
    """Decode speed of one user with a short prompt, tokens a second."""
    users_total_tok_s: tuple[float, float]
    """All users together, short prompts."""
    usable: bool | None
    """False: too slow to use even at best; null: the range is on both sides of that."""


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
    weights_source: Text | None = None
    """Where the size of the weights comes from: ``hub`` (files today), ``catalog`` (a fact with its
    source), ``hub and catalog``, ``parameters`` (times bits); of several builds all."""
    overhead_parts: dict[Text, tuple[int, int]] = {}
    """Low and high of what the overhead is made of, in bytes; each at most what the whole leaves:
    activations, CUDA graphs, process, encoder, the block held back, shared memory."""
    first_start: FirstStart | None = None
    """Compiling kernels: a peak of its own, not a part of the total; null without a GPU."""
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
    """What the engine's log would print, where its available memory was given."""
    settings: Settings | None = None
    """What to set for what was asked."""
    forecast: Forecast | None = None
    """Speed, estimated; null where bandwidth, weights or active parameters are not known."""
    grid: tuple[GridCell, ...] | None = None
    """Answers for more users and contexts, where asked for."""
    explain: tuple[Explained, ...] | None = None
    """Every number with its rule, inputs and source, where asked for."""
    live: LiveMemory | None = None
    """What uses this machine's memory now, where this host is the machine asked about."""
    assumptions: tuple[Text, ...]
    """Every bound and its reason."""
    warnings: tuple[Text, ...]
