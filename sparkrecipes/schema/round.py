"""A standard round: what was measured, its spread, and how far it can be trusted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Id, Text

Count = Annotated[int, Field(ge=0)]

Figure = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
"""A measured figure: never negative, and a number that can be reckoned with."""

Change = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
"""A difference in per cent, up or down."""


class Spread(Frozen):
    """A figure over its repeats."""

    median: Figure
    min: Figure
    max: Figure
    n: Count | None = None
    """How many values it is taken from."""
    values: tuple[Figure, ...] = ()
    """Those values, in the order in which they were measured."""


class Percentiles(Frozen):
    """A distribution; a percentile is null where too few values stand behind it."""

    n: Count
    p50: Figure | None
    p95: Figure | None
    p99: Figure | None
    max: Figure | None


class ServerSeen(Frozen):
    """The endpoint that was measured."""

    base_url: Text
    model: Text
    engine: str | None
    engine_version: str | None
    context_tokens: Count | None = None
    """Longest sequence, as the server states it."""


class Single(Frozen):
    """One user at a time."""

    n: Count
    ttft_ms: Spread | None
    ttfo_ms: Spread | None
    decode_tok_s: Spread | None
    e2e_tok_s: Spread | None
    tpot_ms: Spread | None = None
    completion_tokens: Spread | None = None
    token_source: Literal["usage", "token_ids", "chunks"] | None = None
    """Where the number of tokens comes from; chunks is a lower bound and is never ranked."""
    comparable: bool = True
    """False where the answers were too short, or not words, to compare with anything."""
    e2e_ms: Spread | None = None
    """Request sent to last token."""
    icl_ms: Percentiles | None = None
    """Gaps between token-bearing events; under speculation that is the step time."""
    tokens_per_event: Figure | None = None
    prompt_tokens: Spread | None = None
    finish_reasons: dict[str, Count] = {}
    failed: Count = 0
    warmup_ttft_ms: Figure | None = None
    """First token of the discarded warm-up."""


class Concurrent(Frozen):
    """Several users at once."""

    users: Count
    rounds: Count
    aggregate_tok_s: Spread | None
    """All users together over the whole wall time."""
    steady_tok_s: Spread | None = None
    """All users together over the time in which all were active."""
    per_user_tok_s: Spread | None
    """Decode speed of each user."""
    ttft_ms: Spread | None
    requests: Count = 0
    failed: Count = 0
    """Where any request failed there is no speed: no aggregate comes from survivors."""
    e2e_s: Percentiles | None = None
    """Request sent to last token."""
    start_spread_ms: Figure | None = None
    """First request of a round to its last."""
    scenario: str | None = None
    """Kind of prompt, where a ladder has several."""


class LongPrompt(Frozen):
    """The prompt of about 46,000 tokens."""

    state: Literal["measured", "not_supported", "failed"]
    prompt_tokens: Count | None
    cached_tokens: Count | None
    wall_s: Figure | None
    ttft_ms: Figure | None
    prefill_tok_s: Figure | None
    """Uncached prompt tokens over the time to the first token."""
    n: Count = 0
    reason: str = ""
    wall_s_spread: Spread | None = None
    ttft_ms_spread: Spread | None = None
    prefill_tok_s_spread: Spread | None = None


class Stability(Frozen):
    """Every request of the run."""

    requests: Count
    failed: Count
    errors: tuple[Text, ...]
    restarted: bool | None
    """Null where restarts could not be observed."""


class Acceptance(Frozen):
    """What the engine's counters say of speculation."""

    rate_pct: Figure | None
    """Accepted of drafted tokens."""
    mean_length: Figure | None
    """Tokens a step, the target's own token included."""
    per_position_pct: tuple[Figure, ...]
    drafts: Count
    source: Text


class VariedRow(Frozen):
    """One kind of prompt at one temperature."""

    workload: Text
    temperature: Figure
    n: Count
    decode_tok_s: Spread | None
    acceptance: Acceptance | None
    ttft_ms: Spread | None = None
    failed: Count = 0
    state: Literal["measured", "not_supported", "failed"] = "measured"


class Sustained(Frozen):
    """Load over many minutes."""

    minutes: Figure
    users: Count
    tok_s: Figure | None
    per_minute_tok_s: tuple[Figure, ...]
    drift_pct: Change | None
    """Decode speed of the last third against the first, each prompt kind against itself."""
    failed: Count
    acceptance: Acceptance | None
    mem_available_low_bytes: Count | None
    """Lowest MemAvailable, where the server is on this machine."""
    requests: Count = 0
    drift: Literal["none", "slower", "faster", "too_short"] = "too_short"
    """A trend that is both larger than 5 % and unlikely to be chance."""


class PublishedMethod(Frozen):
    """What the October script would have printed: the only figures to set beside published ones."""

    single_user_tok_s: Figure | None
    ttft_ms: Figure | None
    four_users_total_tok_s: Figure | None
    long_prompt_46k_s: Figure | None
    read_from: Literal["separate_pass", "same_bytes"] | None = None
    """Its own pass (same prompt, no nonce, no warm-up), or the bytes of the true figures."""
    n: Count = 0
    """Single-user requests behind the medians."""


class Gpu(Frozen):
    """The GPU of this machine while the round ran: its samples under load, else all of them."""

    samples: Count
    under_load: Count
    """How many of the samples found it at 80 % or more."""
    sm_clock_mhz: Spread | None
    utilization_pct: Spread | None
    power_w: Spread | None
    temperature_c: Spread | None


class Smoke(Frozen):
    """The test before any figure."""

    words: bool | None
    tool_call: bool | None
    image: bool | None
    message: str = ""


class Round(Frozen):
    """One standard round."""

    schema_version: Literal[1] = 1
    method: Text
    started_at: Text
    tool_version: Text
    server: ServerSeen
    machine: dict[str, Any] | None
    gpu: Gpu | None = None
    """Null without nvidia-smi, and where the server is on another machine."""
    recipe_id: Id | None
    simulated: bool
    """True for a rehearsal: measured over a socket against a server that plays published timing."""
    smoke: Smoke | None = None
    single: Single | None
    concurrent: Concurrent | None
    long_prompt: LongPrompt | None
    stability: Stability
    stable: bool | None
    varied: tuple[VariedRow, ...]
    sustained: Sustained | None
    acceptance: Acceptance | None
    published_method: PublishedMethod
    users_curve: tuple[Concurrent, ...] = ()
    warnings: tuple[Text, ...]
    saved_to: str | None = None
    """File that holds this round."""

    @property
    def interrupted(self) -> bool:
        """True where Ctrl-C ended it: what was measured until then is kept."""
        return any(warning.startswith("interrupted") for warning in self.warnings)


class ReportRow(Frozen):
    """One figure beside the published one."""

    figure: Text
    unit: Text
    better: Literal["higher", "lower"]
    published: Figure | None
    measured: Figure | None
    """By the published method: the only one that may be compared with it."""
    measured_range: tuple[Figure, Figure] | None
    true_value: Figure | None
    """By the true definitions, where they differ."""
    difference_pct: Change | None
    verdict: Literal["matches", "slower", "faster", "not_comparable"]
    note: str = ""


class Report(Frozen):
    """A measured round against the published figures of its recipe."""

    verdict: Literal["matches", "slower", "faster", "not_comparable", "unstable"]
    recipe_id: Id | None
    simulated: bool
    summary: Text
    """The verdict in a sentence."""
    rows: tuple[ReportRow, ...]
    warnings: tuple[Text, ...]
    round_file: str | None = None


class Step(Frozen):
    """One step of the walk."""

    step: Id
    state: Literal["done", "warned", "skipped", "failed", "simulated"]
    message: Text
    seconds: Figure


class InstallReport(Frozen):
    """The whole walk, from the pick to the report."""

    recipe_id: Id
    simulated: bool
    ok: bool
    steps: tuple[Step, ...]
    command: Text
    """The command that starts it on the real machine."""
    base_url: str | None
    round: Round | None
    report: Report | None
    kept: tuple[Text, ...] = ()
    """What a failed install left in place."""
    next: Text
