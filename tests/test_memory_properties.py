"""What must hold for every model, not only those of the catalog."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkrecipes.memory import FitRequest, estimate, verdict_of
from sparkrecipes.memory.need import need_of
from sparkrecipes.schema.model import (
    FullAttention,
    GatedDeltaNet,
    Indexer,
    LayerGroup,
    Mamba2,
    MlaAttention,
    ShortConv,
    SlidingAttention,
)
from sparkrecipes.schema.recipe import Speculative
from tests.support.models import GIB, SPARK, engine, made_of

quick = settings(max_examples=60, deadline=None)
counts = st.integers(1, 64)
heads = st.sampled_from((1, 2, 4, 8))
dims = st.sampled_from((64, 128, 256))
full = st.builds(
    lambda n, h, d: FullAttention(
        kind="full_attention", count=n, kv_heads=h, head_dim_k=d, head_dim_v=d
    ),
    counts,
    heads,
    dims,
)
sliding = st.builds(
    lambda n, h, d, w: SlidingAttention(
        kind="sliding_attention",
        count=n,
        kv_heads=h,
        head_dim_k=d,
        head_dim_v=d,
        window_tokens=w,
    ),
    counts,
    heads,
    dims,
    st.sampled_from((128, 1024, 4096)),
)
latent = st.builds(
    lambda n: MlaAttention(kind="mla_attention", count=n, kv_lora_rank=512, qk_rope_head_dim=64),
    counts,
)
types = st.sampled_from(("float32", "bfloat16", None))
linear = st.builds(
    lambda n, v, t: GatedDeltaNet(
        kind="gated_delta_net",
        count=n,
        num_key_heads=16,
        num_value_heads=v,
        key_head_dim=128,
        value_head_dim=128,
        conv_kernel=4,
        ssm_dtype=t,
    ),
    counts,
    st.sampled_from((16, 32, 48)),
    types,
)
mamba = st.builds(
    lambda n, h, t: Mamba2(
        kind="mamba2",
        count=n,
        num_heads=h,
        head_dim=64,
        d_state=128,
        n_groups=8,
        conv_kernel=4,
        ssm_dtype=t,
    ),
    counts,
    st.sampled_from((64, 128)),
    types,
)
indexed = st.builds(
    lambda n, h, linear: (
        FullAttention(kind="full_attention", count=n, kv_heads=h, head_dim_k=256, head_dim_v=256),
        Indexer(kind="indexer", count=n, kv_heads=1, head_dim=128, compress_ratio=4),
        ShortConv(kind="short_conv", count=1, channels=10240, state_tokens=9),
        linear,
    ),
    st.integers(2, 24),
    heads,
    linear,
)
models = st.one_of(
    indexed,
    st.tuples(full),
    st.tuples(latent),
    st.tuples(full, sliding),
    st.tuples(full, linear),
    st.tuples(full, mamba),
    st.tuples(full, sliding, linear),
)
versions = st.sampled_from(("0.20.2", "0.25.1", "0.27.1", "0.31.0", "0.32.0", None))
tokens = st.integers(1, 300_000)
users = st.integers(1, 64)


@st.composite
def requests(draw: Any) -> FitRequest:
    """Ask about any model, on vLLM of any release or on an engine that nobody has chosen."""
    layers: tuple[LayerGroup, ...] = draw(models)
    found = made_of(list(layers), mtp_layers=1, params_total_b=draw(st.floats(0.1, 400)))
    chosen = draw(st.booleans())
    drafts = draw(st.integers(0, 15))
    return FitRequest(
        subject="made-up",
        model=found,
        builds=found.builds,
        engine=engine("vllm") if chosen else None,
        engine_version=draw(versions) if chosen else None,
        context_tokens=draw(tokens),
        users=draw(users),
        kv_cache_dtype=draw(st.sampled_from(("fp8", "bfloat16", "auto"))),
        gpu_memory_utilization=draw(st.sampled_from((None, 0.3, 0.9))),
        speculative=Speculative(method="mtp", num_speculative_tokens=drafts) if drafts else None,
        drafter_repo=None,
        flags=draw(st.sampled_from(((), ("--enable-prefix-caching",)))),
        env={},
        shm_size=draw(st.sampled_from((None, "16g"))),
        published=None,
    )


def total(request: FitRequest) -> tuple[int, int]:
    """Bound everything."""
    found = need_of(request, SPARK).total(request.users, request.context_tokens)
    assert found is not None
    return found


@quick
@given(requests())
def test_bounds_are_ordered_and_never_negative(request: FitRequest) -> None:
    """0 <= low <= high for each component, and the total is their sum."""
    answer = estimate(request, SPARK)
    pairs = [pair for pair in answer.bounds.values() if pair]
    assert all(0 <= low <= high for low, high in pairs)
    assert answer.total_bounds == (sum(p[0] for p in pairs), sum(p[1] for p in pairs))
    assert answer.verdict == verdict_of(request, SPARK)
    parts = answer.overhead_parts.values()
    assert all(0 <= low <= high for low, high in parts)
    assert answer.bounds["overhead_bytes"] == tuple(sum(p[i] for p in parts) for i in (0, 1))
    if answer.first_start:
        assert answer.first_start.peak_bounds[0] <= answer.first_start.peak_bounds[1]


@quick
@given(requests(), tokens)
def test_more_context_never_needs_less(request: FitRequest, more: int) -> None:
    """Both bounds grow with the context."""
    longer = replace(request, context_tokens=request.context_tokens + more)
    assert all(a <= b for a, b in zip(total(request), total(longer), strict=True))


@quick
@given(requests(), users)
def test_more_users_never_need_less(request: FitRequest, more: int) -> None:
    """Both bounds grow with the users."""
    fuller = replace(request, users=request.users + more)
    assert all(a <= b for a, b in zip(total(request), total(fuller), strict=True))


@quick
@given(requests())
def test_a_wider_cache_never_needs_less(request: FitRequest) -> None:
    """16 bits need at least what 8 bits need.

    Not where a window lies beside recurrent layers: there the engine itself may pad the pages of
    the one type and not of the other. Nor where an indexer does: a block of the narrower type holds
    twice the tokens, so twice the keys, which are 16 bits in both.
    """
    kinds = {g.kind for g in request.model.layers}
    assume(not kinds >= {"sliding_attention", "gated_delta_net"})
    assume("indexer" not in kinds)
    narrow = replace(request, kv_cache_dtype="fp8")
    wide = replace(request, kv_cache_dtype="bfloat16")
    assert all(a <= b for a, b in zip(total(narrow), total(wide), strict=True))


@quick
@given(requests())
def test_limits_agree_with_verdicts(request: FitRequest) -> None:
    """The most users fit and one more does not; so does the longest context up to the model's."""
    need, usable = need_of(request, SPARK), SPARK.mem_total_bytes
    answer = estimate(request, SPARK)

    def fits(n: int, length: int) -> bool:
        found = need.total(n, length)
        return found is not None and found[1] <= usable

    most, longest = answer.max_users_at_context, answer.max_context_at_users
    assert most is not None
    assert longest is not None
    assert most == 0 or fits(most, request.context_tokens)
    assert most == 4096 or not fits(most + 1, request.context_tokens)
    assert longest == 0 or fits(request.users, longest)
    model_tokens = request.model.context_tokens
    assert longest == model_tokens or not fits(request.users, longest + 1)


@quick
@given(requests(), st.integers(0, 130))
def test_less_free_memory_never_gives_a_better_verdict(request: FitRequest, free: int) -> None:
    """What fits now in less fits in more."""
    order = ["does_not_fit", "tight", "fits"]
    less = estimate(request, SPARK, available_bytes=free * GIB).verdict_now
    more = estimate(request, SPARK, available_bytes=(free + 20) * GIB).verdict_now
    assert less is not None
    assert more is not None
    assert order.index(less) <= order.index(more)
