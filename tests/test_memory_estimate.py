"""What fits and what does not: fixed expectations, field cases, bounds and their reasons."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fit_backtest import published_rows
from sparkrecipes.catalog import open_catalog
from sparkrecipes.memory import (
    FitRequest,
    added_compile_jobs,
    estimate,
    model_request,
    recipe_request,
)
from sparkrecipes.memory.components import encoder as encoder_of
from sparkrecipes.memory.components import overhead
from sparkrecipes.memory.request import flag_number, flag_on, flag_value
from sparkrecipes.memory.startup import compile_jobs, start_check
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import (
    Build,
    ByteRange,
    DrafterModel,
    FullAttention,
    GatedDeltaNet,
    Indexer,
    Model,
    SlidingAttention,
)
from sparkrecipes.schema.recipe import Recipe, Speculative, WeightsSource
from tests.support.models import (
    GIB,
    SPARK,
    engine,
    made_of,
    measured_ids,
    model,
    recipe,
    recipe_ids,
    row,
)

SEEN = json.loads((Path(__file__).parent / "data" / "memory" / "kv_observations.json").read_text())


def asked(name: str, **other: Any) -> FitRequest:
    """Ask about a recipe of the catalog as measured, or otherwise."""
    found = recipe(name)
    base = recipe_request(found, model(found.model), engine(found.engine), row(name))
    return replace(base, **other)


def bare(found: Model, **other: Any) -> FitRequest:
    """Ask about a model in all its builds: 131,072 tokens, 4 users, fp8, unless said."""
    given = {"context_tokens": 131072, "users": 4, "kv_cache_dtype": "fp8", **other}
    return model_request(found, found.builds, **given)


def dense(weights_bytes: int, *, layers: int = 80, drafters: Any = (), **facts: Any) -> Model:
    """Make a dense model with the attention of Llama 3.3 70B and weights of a known size."""
    attention = FullAttention(
        kind="full_attention", count=layers, kv_heads=8, head_dim_k=128, head_dim_v=128
    )
    size = ByteRange(
        low_bytes=weights_bytes, high_bytes=weights_bytes, what="loaded", source="a test"
    )
    build = Build(repo="owner/made-up", quant="nvfp4", weights=size)
    return made_of([attention], builds=(build,), drafters=drafters, **facts)


def test_llama_70b_at_128k_for_four_users_does_not_fit() -> None:
    """Seed case: 163,840 bytes a token, 85.9 GB of cache, about 133 GB and the reserve; 3 do."""
    answer = estimate(bare(model("llama-3.3-70b-instruct")), SPARK)
    assert "does_not_fit" == answer.verdict
    assert 163_840 == answer.kv_bytes_per_token
    assert 85_899_345_920 == answer.components.kv_cache_bytes
    assert answer.total_bounds is not None
    low, high = (side - SPARK.host_reserve_bytes for side in answer.total_bounds)
    assert low < 133e9 < high
    assert high < 1.03 * 133e9
    assert 3 == answer.max_users_at_context
    assert answer.min_gpu_memory_utilization is None


@pytest.mark.parametrize(("users", "verdict"), [(1, "fits"), (2, "fits"), (4, "does_not_fit")])
def test_llama_70b_fits_for_one_and_two_users(users: int, verdict: str) -> None:
    """As published: 1 to 2 users, or a shorter context."""
    assert verdict == estimate(bare(model("llama-3.3-70b-instruct"), users=users), SPARK).verdict


@pytest.mark.parametrize("name", recipe_ids())
def test_every_recipe_fits_at_its_settings(name: str) -> None:
    """Measured or not: fits or tight, each bound with its reason, the parts adding up."""
    answer = estimate(asked(name), SPARK)
    assert answer.verdict in ("fits", "tight")
    assert answer.total_bounds is not None
    pairs = [pair for pair in answer.bounds.values() if pair]
    assert 6 == len(pairs)
    assert answer.total_bounds == (sum(p[0] for p in pairs), sum(p[1] for p in pairs))
    assert answer.total_bytes == answer.total_bounds[1]
    assert answer.components.model_dump() == {k: v[1] for k, v in answer.bounds.items() if v}
    for part in ("weights", "drafter", "cache", "overhead", "host reserve"):
        assert any(line.startswith(f"{part}:") for line in answer.assumptions)


@pytest.mark.parametrize("name", measured_ids())
def test_the_published_memory_lies_between_need_and_reservation(name: str) -> None:
    """What ran took at least our least need, and at most its fraction, in one of both readings."""
    answer, found = estimate(asked(name), SPARK), row(name)
    assert found is not None
    assert found.figures.memory_gb is not None
    assert answer.total_bounds is not None
    assert answer.reservation_bytes is not None
    least = answer.total_bounds[0] - SPARK.host_reserve_bytes
    if answer.pool.ok is False:
        least -= answer.components.kv_cache_bytes or 0
    assert least <= found.figures.memory_gb * GIB <= answer.reservation_bytes


def test_mapped_embeddings_are_not_resident() -> None:
    """Flash-Next: VLLM_PLE_MMAP=1 leaves 74 to 101 GiB in memory; without it 126 do not fit."""
    name = "qwen3.8-flash-next-nvfp4-vllm-patched-mtp"
    mapped = estimate(asked(name), SPARK)
    loaded = estimate(asked(name, env={}), SPARK)
    weights = mapped.bounds["weights_bytes"]
    assert weights is not None
    assert (73.97, 100.59) == tuple(round(side / GIB, 2) for side in weights)
    assert any("VLLM_PLE_MMAP=1" in line for line in mapped.assumptions)
    assert mapped.verdict in ("fits", "tight")
    assert "does_not_fit" == loaded.verdict


def test_a_fraction_that_serves_fewer_users_is_said_and_does_not_change_the_verdict() -> None:
    """Llama 3.1 8B on NIM: 0.3 holds 2 to 3.5 contexts of 128K, not 4; the machine holds 4."""
    answer = estimate(asked("llama-3.1-8b-instruct-nim"), SPARK)
    assert "fits" == answer.verdict
    assert answer.pool.users_at_context is not None
    low, high = answer.pool.users_at_context
    assert 1.5 < low < 2.5 < 3.5 < high < 4
    assert answer.pool.ok is False
    assert any("not 4" in line for line in answer.warnings)


def test_a_bare_model_is_sized_over_its_builds() -> None:
    """From the smallest build's low bound to the largest's high bound."""
    found = model("qwen3.8-27b")
    whole = estimate(bare(found), SPARK).bounds["weights_bytes"]
    each = [
        estimate(
            model_request(found, (b,), context_tokens=8192, users=1, kv_cache_dtype="fp8"), SPARK
        ).bounds["weights_bytes"]
        for b in found.builds
    ]
    assert whole == (min(p[0] for p in each if p), max(p[1] for p in each if p))
    assert whole[1] > 2 * whole[0]


def test_a_model_that_nobody_has_seen_is_sized_from_its_facts() -> None:
    """4 full layers of 2 x 64, 4 of a window of 512, one state: each byte by hand."""
    layers = [
        FullAttention(kind="full_attention", count=4, kv_heads=2, head_dim_k=64, head_dim_v=64),
        SlidingAttention(
            kind="sliding_attention",
            count=4,
            kv_heads=2,
            head_dim_k=64,
            head_dim_v=64,
            window_tokens=512,
        ),
    ]
    found = made_of(layers, builds=(Build(repo="o/m", quant="bf16"),))
    answer = estimate(bare(found, context_tokens=32768, users=2, kv_cache_dtype="bfloat16"), SPARK)
    a_layer = 2 * (64 + 64) * 2
    assert 4 * a_layer == answer.kv_bytes_per_token
    least = 2 * 4 * (32768 + 512) * a_layer
    blocks = 32768 // 16 + -(-(511 + 2 * 8192) // 16) + 1
    assert (least, 2 * blocks * 4 * 16 * a_layer) == answer.bounds["kv_cache_bytes"]
    assert answer.bounds["weights_bytes"] == (15_520_000_000, 16_480_000_000)


def test_sliding_layers_stop_growing_at_their_window() -> None:
    """gpt-oss: half of its layers keep 128 tokens and what is in flight, whatever the context."""
    found = model("gpt-oss-120b")
    short = estimate(bare(found, users=1, context_tokens=65536), SPARK).components.kv_cache_bytes
    long = estimate(bare(found, users=1, context_tokens=131072), SPARK).components.kv_cache_bytes
    assert short is not None
    assert long is not None
    assert long - short == 65536 * 18 * 1024
    assert 18_432 == estimate(bare(found), SPARK).kv_bytes_per_token


def test_what_cannot_be_bounded_is_unknown_and_never_fits() -> None:
    """No size and no bits; and a drafter of a target whose width nobody states."""
    attention = FullAttention(
        kind="full_attention", count=8, kv_heads=2, head_dim_k=64, head_dim_v=64
    )
    strange = made_of([attention], builds=(Build(repo="o/m", quant="awq-special"),))
    answer = estimate(bare(strange), SPARK)
    assert ("unknown", None, None) == (answer.verdict, answer.total_bytes, answer.total_bounds)
    assert answer.components.weights_bytes is None
    assert answer.max_users_at_context is None
    assert any("not bounded" in line for line in answer.assumptions)
    no_width = asked("gpt-oss-20b-mxfp4-vllm-eagle3", drafter_repo="owner/unseen")
    nameless = no_width.model.model_copy(update={"hidden_size": None})
    assert "unknown" == estimate(replace(no_width, model=nameless), SPARK).verdict


def test_an_undescribed_drafter_is_bounded_by_its_method_and_its_target() -> None:
    """EAGLE-3 is one decoder layer: at most a layer and embeddings of the target's width."""
    request = asked("gpt-oss-20b-mxfp4-vllm-eagle3", drafter_repo="owner/unseen", published=None)
    answer = estimate(request, SPARK)
    assert "fits" == answer.verdict
    pair = answer.bounds["drafter_bytes"]
    assert pair is not None
    assert (0, 2 * (19 * 2880**2 + 2 * 201088 * 2880)) == pair
    assert any("no source describes" in line for line in answer.assumptions)


def test_mtp_layers_count_as_full_attention_of_the_target() -> None:
    """Qwen3.6: an eleventh layer of 1,024 bytes a token; a separate drafter adds its own."""
    plain = estimate(asked("qwen3.6-35b-a3b-nvfp4-vllm"), SPARK)
    mtp = estimate(asked("qwen3.6-35b-a3b-nvfp4-vllm-mtp"), SPARK)
    dflash = estimate(asked("qwen3.6-35b-a3b-nvfp4-vllm-dflash"), SPARK)
    per_token = [a.kv_bytes_per_token for a in (plain, mtp, dflash)]
    assert [10_240, 11_264, 18_432] == per_token


def test_a_drafter_that_reuses_the_targets_cache_adds_none() -> None:
    """Gemma 4 with its assistant: weights, but no bytes a token."""
    alone = estimate(asked("gemma-4-26b-a4b-nvfp4-vllm"), SPARK)
    assisted = estimate(asked("gemma-4-26b-a4b-nvfp4-vllm-mtp"), SPARK)
    assert alone.kv_bytes_per_token == assisted.kv_bytes_per_token
    assert (assisted.components.drafter_bytes or 0) > 0 == alone.components.drafter_bytes


def test_a_measured_row_bounds_the_overhead() -> None:
    """It started within its fraction; beyond the measured settings that proves nothing."""
    name = "qwen3.6-35b-a3b-nvfp4-vllm"
    measured = estimate(asked(name), SPARK)
    beyond = estimate(asked(name, users=5), SPARK)
    overheads = [a.components.overhead_bytes or 0 for a in (measured, beyond)]
    assert overheads[0] < overheads[1]
    assert any("measured to start at 0.4" in line for line in measured.assumptions)
    assert not any("measured to start" in line for line in beyond.assumptions)


def test_limits_are_the_last_that_fit() -> None:
    """One user more, or one token more, does not fit by the high bounds."""
    request = asked("qwen3.8-27b-nvfp4-vllm-mtp", users=12)
    answer = estimate(request, SPARK)
    users, context = answer.max_users_at_context, answer.max_context_at_users
    assert users is not None
    assert context is not None
    assert "fits" == estimate(replace(request, users=users), SPARK).verdict
    assert "fits" != estimate(replace(request, users=users + 1), SPARK).verdict
    assert "fits" == estimate(replace(request, context_tokens=context), SPARK).verdict
    assert "fits" != estimate(replace(request, context_tokens=context + 1), SPARK).verdict


def test_the_smallest_fraction_serves_what_was_asked() -> None:
    """At that fraction the pool holds all users at full length by every bound; a step below not."""
    request = asked("qwen3.8-27b-nvfp4-vllm-mtp", published=None)
    smallest = estimate(request, SPARK).min_gpu_memory_utilization
    assert smallest is not None
    serves = estimate(replace(request, gpu_memory_utilization=smallest), SPARK).pool
    below = estimate(replace(request, gpu_memory_utilization=smallest - 0.01), SPARK).pool
    assert (True, None) == (serves.ok, below.ok)


def test_a_context_above_the_models_is_computed_with_a_warning() -> None:
    """Qwen3-8B at 131,072 tokens: above its 40,960, with a rope override in the recipe."""
    answer = estimate(asked("qwen3-8b-fp8-vllm"), SPARK)
    assert any("above the 40,960" in w and "stretches it to 131,072" in w for w in answer.warnings)
    plain = estimate(bare(model("qwen3-8b-fp8")), SPARK)
    assert any("it needs one" in w for w in plain.warnings)
    assert plain.max_context_at_users == 40_960


def test_the_start_check_is_of_the_total_whatever_the_model() -> None:
    """C31: 0.5 x 119.56 = 59.78 GiB wanted, 56.33 free: refused; at most 0.46."""
    total, free = int(119.56 * GIB), 59_063_644 * 1024
    check = start_check(0.5, total, free)
    assert not check.starts
    assert 59.78 == round(check.needs_bytes / GIB, 2)
    assert 0.46 == check.largest_fraction
    assert start_check(0.46, total, free).starts


def test_the_highest_fraction_that_an_idle_machine_passes() -> None:
    """C34: 101.3 of 121.69 GiB free at boot: 0.87 never passes, 0.83 does."""
    request = asked("gpt-oss-20b-mxfp4-vllm", gpu_memory_utilization=0.87)
    answer = estimate(request, SPARK, available_bytes=int(101.3 * GIB))
    assert ("fits", "does_not_fit") == (answer.verdict, answer.verdict_now)
    (line,) = (w for w in answer.warnings if "refuse to start" in w)
    assert "105.87 GiB" in line
    assert "at most 0.83" in line


@pytest.mark.parametrize(("free_gib", "now"), [(100, "fits"), (60, "does_not_fit"), (None, None)])
def test_the_verdict_now_is_against_what_is_free(free_gib: int | None, now: str | None) -> None:
    """The host's own part is already gone from what is free."""
    request = replace(bare(dense(60 * GIB, layers=1)), users=1)
    free = None if free_gib is None else free_gib * GIB
    answer = estimate(request, SPARK, available_bytes=free)
    assert ("fits", now) == (answer.verdict, answer.verdict_now)
    assert free == answer.available_bytes


def test_tight_now_lies_between_the_bounds() -> None:
    """Free memory between low and high need: tight, neither yes nor no."""
    request = replace(bare(dense(60 * GIB, layers=1)), users=1)
    total = estimate(request, SPARK).total_bounds
    assert total is not None
    middle = (total[0] + total[1]) // 2 - SPARK.host_reserve_bytes
    assert "tight" == estimate(request, SPARK, available_bytes=middle).verdict_now


@pytest.mark.parametrize(
    ("version", "takes"), [("0.19.1", "109.52 GiB"), ("0.20.0", "111.95 GiB"), (None, "111.95 GiB")]
)
def test_a_missing_fraction_is_warned_of(version: str | None, takes: str) -> None:
    """C32: 0.9 in older releases, 0.92 in newer ones: 109.5 or 112.0 GiB of one box."""
    request = asked("gpt-oss-20b-mxfp4-vllm", gpu_memory_utilization=None, engine_version=version)
    answer = estimate(request, SPARK)
    (line,) = (w for w in answer.warnings if "missing gpu_memory_utilization" in w)
    assert takes in line


def test_more_than_one_machine_holds_never_fits() -> None:
    """C39: 210.78 GiB of weights and 30 of cache: no; a share that leaves 0.6 GiB is no fit."""
    big = estimate(bare(dense(int(210.78 * GIB))), SPARK)
    share = estimate(replace(bare(dense(int(105.39 * GIB), layers=24)), users=2), SPARK)
    assert "does_not_fit" == big.verdict
    assert "fits" != share.verdict


def test_files_bound_loaded_weights_only_loosely() -> None:
    """C40: kernels repack weights: a size on disk is a range in memory."""
    found = model("qwen3.8-27b")
    (build,) = (b for b in found.builds if b.quant == "nvfp4-inferact")
    answer = estimate(
        model_request(found, (build,), context_tokens=8192, users=1, kv_cache_dtype="fp8"), SPARK
    )
    pair = answer.bounds["weights_bytes"]
    assert pair is not None
    assert pair[0] < 26_381_249_312 < pair[1]
    assert any("on disk" in line for line in answer.assumptions)


def test_shared_memory_counts_against_the_same_pool() -> None:
    """C44: 64g is at worst 64 GiB less for the engine; it is counted and warned of."""
    request = asked("qwen3.6-35b-a3b-nvfp4-vllm", published=None)
    with_shm, without = estimate(request, SPARK), estimate(replace(request, shm_size=None), SPARK)
    assert with_shm.components.overhead_bytes is not None
    assert without.components.overhead_bytes is not None
    assert 64 * GIB == with_shm.components.overhead_bytes - without.components.overhead_bytes
    assert with_shm.min_gpu_memory_utilization == without.min_gpu_memory_utilization
    assert any("--shm-size" in line for line in with_shm.warnings)
    assert not any("--shm-size" in line for line in without.warnings)


def test_compile_jobs_are_bounded_by_free_memory() -> None:
    """C45: 60 GiB free after the weights: 5 jobs of 8 GiB beside a headroom of 16, not 20."""
    assert 5 == compile_jobs(60 * GIB)
    assert 1 == compile_jobs(GIB)
    answer = estimate(asked("gpt-oss-120b-mxfp4-vllm"), SPARK)
    assert any("MAX_JOBS=4" in line for line in answer.assumptions)


def test_a_first_start_is_a_peak_of_its_own() -> None:
    """C45: compilers run beside the weights, before there is a cache: bounded by MAX_JOBS."""
    added = estimate(asked("gpt-oss-120b-mxfp4-vllm"), SPARK).first_start
    assert added is not None
    assert ("command", 4, (0, 32 * GIB), "fits") == (
        added.max_jobs_source,
        added.max_jobs,
        added.jit_compile_bytes,
        added.verdict,
    )
    many = estimate(asked("gpt-oss-120b-mxfp4-vllm", env={"MAX_JOBS": "20"}), SPARK)
    assert many.first_start is not None
    assert ("recipe", (0, 160 * GIB), "tight") == (
        many.first_start.max_jobs_source,
        many.first_start.jit_compile_bytes,
        many.first_start.verdict,
    )
    assert any("the recipe's MAX_JOBS=20" in line for line in many.warnings)
    assert "fits" == many.verdict
    assert estimate(asked("gpt-oss-20b-mxfp4-vllm"), plain_host()).first_start is None


def test_the_number_of_compilers_follows_from_the_catalog_and_the_machine_alone() -> None:
    """The command has no Hub to ask: sizes found there change the peak, and not the number."""
    request = asked("gpt-oss-120b-mxfp4-vllm")
    assert 4 == added_compile_jobs(request, SPARK)
    large = ByteRange(
        low_bytes=90 * GIB, high_bytes=90 * GIB, what="on_disk", source="files on the Hub"
    )
    seen = replace(request, hub_sizes={"openai/gpt-oss-120b": large}, users=1, context_tokens=4096)
    peak = estimate(seen, SPARK).first_start
    assert peak is not None
    assert (4, "tight") == (peak.max_jobs, peak.verdict)
    assert peak.peak_bounds[1] > 120 * GIB
    assert 4 == added_compile_jobs(seen, SPARK)


def test_no_compilers_are_reckoned_with_where_the_engine_starts_none() -> None:
    """Atlas brings its kernels; a recipe's own number stays its own; a machine needs a GPU."""
    atlas = asked("qwen3.6-35b-a3b-fp8-atlas-mtp")
    assert (None, None) == (added_compile_jobs(atlas, SPARK), estimate(atlas, SPARK).first_start)
    own = asked("gpt-oss-120b-mxfp4-vllm", env={"MAX_JOBS": "2"})
    assert added_compile_jobs(own, SPARK) is None
    assert added_compile_jobs(asked("gpt-oss-120b-mxfp4-vllm"), plain_host()) is None


def plain_host() -> Machine:
    """Make a machine without a GPU."""
    return SPARK.model_copy(update={"gpu": None, "id": "plain"})


def test_windows_beside_states_may_cost_more_with_other_kernels() -> None:
    """Lightning with DSpark, 8 bits: FLASHINFER pads 64 tokens of a window to a state's page."""
    request = asked("nemotron-3.5-lightning-30b-a3b-nvfp4-vllm-dspark")
    (line,) = (w for w in estimate(request, SPARK).warnings if "FLASHINFER" in w)
    assert "takes 324 blocks, not 57" in line
    told = replace(request, flags=(*request.flags, "--attention-backend=FLASHINFER"))
    answer = estimate(told, SPARK)
    assert not any("FLASHINFER" in w for w in answer.warnings)
    assert any("324 blocks" in line for line in answer.assumptions)
    for other in ("qwen3.6-35b-a3b-nvfp4-vllm", "gpt-oss-20b-mxfp4-vllm"):
        assert not any("FLASHINFER" in w for w in estimate(asked(other), SPARK).warnings)


def test_the_parts_of_the_overhead_add_up() -> None:
    """Activations, graphs, process, encoder, a block and shared memory are all there is."""
    answer = estimate(asked("qwen3.6-35b-a3b-nvfp4-vllm", published=None), SPARK)
    parts = answer.overhead_parts
    assert answer.bounds["overhead_bytes"] == tuple(
        sum(p[i] for p in parts.values()) for i in (0, 1)
    )
    assert (30 * 32768 * 2048, 97 * 32768 * 2048) == parts["activations_bytes"]
    assert (0, 64 * GIB) == parts["shared_memory_bytes"]
    assert {"cuda_graphs_bytes", "process_bytes", "held_block_bytes", "encoder_bytes"} <= set(parts)


@pytest.mark.parametrize("name", recipe_ids())
def test_no_part_is_more_than_the_whole_leaves_for_it(name: str) -> None:
    """A published row caps the sum: then each part is capped by what the others leave at least."""
    answer = estimate(asked(name), SPARK)
    whole = answer.bounds["overhead_bytes"]
    assert whole is not None
    parts = answer.overhead_parts.values()
    assert whole[0] == sum(low for low, _ in parts)
    assert all(0 <= low <= high for low, high in parts)
    assert all(high + whole[0] - low <= whole[1] for low, high in parts)


def test_no_graphs_are_captured_where_the_engine_runs_eagerly() -> None:
    """--enforce-eager: 0.2 to 3 GiB less."""
    request = asked("qwen3.6-35b-a3b-nvfp4-vllm", published=None)
    eager = replace(request, flags=(*request.flags, "--enforce-eager"))
    graphs = estimate(request, SPARK).overhead_parts["cuda_graphs_bytes"]
    assert (int(0.2 * GIB), 3 * GIB) == graphs
    assert (0, 0) == estimate(eager, SPARK).overhead_parts["cuda_graphs_bytes"]
    less = [estimate(r, SPARK).bounds["overhead_bytes"] for r in (request, eager)]
    assert less[0] is not None
    assert less[1] is not None
    assert graphs == (less[0][0] - less[1][0], less[0][1] - less[1][1])


@pytest.mark.parametrize("seen", SEEN["overheads"], ids=lambda x: str(x["n"]))
def test_overheads_derived_from_logs_lie_in_our_bounds(seen: dict[str, Any]) -> None:
    """Fraction x total - loaded weights - available cache, of every log that prints all three."""
    active = 4.0 if seen["mixture"] else 8.0
    layer = FullAttention(kind="full_attention", count=1, kv_heads=1, head_dim_k=8, head_dim_v=8)
    found = made_of([layer], hidden=seen["hidden_size"], params_active_b=active)
    tokens = seen["max_num_batched_tokens"]
    bound = overhead(bare(found), tokens, 0)
    encoder = encoder_of(found, tokens).high if seen.get("sees") else 0
    assert bound.low <= seen["overhead_gib"] * GIB <= bound.high + encoder
    graphs = bound.parts["cuda_graphs_bytes"]
    if "cuda_graphs_gib" in seen:
        stated = seen["cuda_graphs_gib"] * GIB
        assert graphs.low <= stated <= graphs.high
        rest = seen["overhead_gib"] * GIB - stated
        assert bound.low - graphs.low <= rest <= bound.high - graphs.high + encoder


def test_recurrent_state_of_an_unknown_type_is_a_range() -> None:
    """No source gives the type: 16 to 32 bits; a flag decides it."""
    found = model("qwen3-coder-next-fp8")
    request = replace(
        bare(found), engine=engine("vllm"), engine_version="0.31.0", builds=found.builds[:1]
    )
    pair = estimate(request, SPARK).bounds["state_bytes"]
    told = estimate(replace(request, flags=("--mamba-ssm-cache-dtype=float32",)), SPARK)
    assert pair is not None
    assert 1.8 * pair[0] < pair[1]
    assert told.bounds["state_bytes"] == (pair[1], pair[1])


def test_type_auto_is_sixteen_bits_at_most() -> None:
    """A quantised checkpoint may say fp8 for its cache: half of it is the low bound."""
    quantised = estimate(bare(dense(GIB), kv_cache_dtype="auto"), SPARK).bounds["kv_cache_bytes"]
    assert quantised is not None
    assert 2 * quantised[0] == quantised[1]


def test_an_indexer_keeps_its_keys_beside_the_cache() -> None:
    """One key of 128 values for 4 tokens: 64 bytes a token and layer more."""
    layers = [
        FullAttention(kind="full_attention", count=4, kv_heads=2, head_dim_k=128, head_dim_v=128),
        Indexer(kind="indexer", count=4, kv_heads=1, head_dim=128, compress_ratio=4),
    ]
    with_keys = estimate(bare(made_of(list(layers))), SPARK).kv_bytes_per_token
    without = estimate(bare(made_of(list(layers[:1]))), SPARK).kv_bytes_per_token
    assert 4 * 64 == with_keys - without


def test_a_machine_without_a_gpu_has_no_fraction() -> None:
    """Then nothing is reserved and no pool is judged."""
    answer = estimate(asked("gpt-oss-20b-mxfp4-vllm"), plain_host(), available_bytes=60 * GIB)
    assert (None, None) == (answer.reservation_bytes, answer.pool.users_at_context)
    assert answer.verdict_now in ("fits", "tight")


def test_another_engine_keeps_at_least_its_tokens() -> None:
    """No arithmetic is known of it: each token's bytes, up to whole blocks."""
    exact = estimate(asked("gpt-oss-20b-mxfp4-vllm"), SPARK).bounds["kv_cache_bytes"]
    ranged = estimate(asked("gpt-oss-20b-mxfp4-nim"), SPARK).bounds["kv_cache_bytes"]
    assert exact is not None
    assert ranged is not None
    assert exact[0] == exact[1]
    assert ranged[0] < ranged[1]


def test_drafters_are_found_by_their_repository() -> None:
    """Only the drafter that is asked for counts, with the layers that its model file states."""
    layer = FullAttention(
        kind="full_attention", count=2, kv_heads=8, head_dim_k=128, head_dim_v=128
    )
    known = DrafterModel(
        repo="owner/drafter",
        method="eagle3",
        layers=(layer,),
        weights=ByteRange(low_bytes=GIB, high_bytes=GIB, what="loaded", source="a test"),
        sources={"layers": "a test"},
    )
    found = dense(GIB, drafters=(known,))
    spec = Speculative(method="eagle3", num_speculative_tokens=3)
    with_it = replace(bare(found), speculative=spec, drafter_repo="owner/drafter")
    answer = estimate(with_it, SPARK)
    assert 82 * 2048 == answer.kv_bytes_per_token
    assert (GIB, GIB) == answer.bounds["drafter_bytes"]


def test_a_recipe_runs_the_build_of_its_repository() -> None:
    """Two builds of one quantisation: the recipe's own repository decides; else both are sized."""
    found = recipe("gpt-oss-20b-mxfp4-vllm")
    twin = Build(repo="owner/twin", quant="mxfp4")
    both = model("gpt-oss-20b").model_copy(update={"builds": (twin, *model("gpt-oss-20b").builds)})
    stranger = found.model_copy(update={"weights": WeightsSource(repo="owner/unseen")})
    unnamed = found.model_copy(update={"weights": None, "quant": None})

    def repos(of: Recipe) -> list[str]:
        return [b.repo for b in recipe_request(of, both, engine("vllm"), None).builds]

    assert ["openai/gpt-oss-20b"] == repos(found)
    assert ["owner/twin", "openai/gpt-oss-20b"] == repos(stranger) == repos(unnamed)


def test_an_encoder_of_images_adds_to_the_overhead() -> None:
    """Up to 1.8 GiB and a cache of 16,384 x 5,120 values; none for language only."""
    request = asked("qwen3.8-27b-nvfp4-vllm", published=None)
    sees = estimate(request, SPARK).components.overhead_bytes or 0
    flags = (*request.flags, "--language-model-only")
    blind = estimate(replace(request, flags=flags), SPARK).components.overhead_bytes or 0
    assert int(1.8 * GIB) + 16384 * 5120 * 2 == sees - blind


def test_flags_are_read_in_both_forms() -> None:
    """--name=value and --name value; numbers as the engine reads them; the last switch wins."""
    flags = ("--a=1", "--b", "8k", "--c", "--enable-x", "--no-enable-x", "--d", "8K")
    assert ("1", "8k", None) == tuple(flag_value(flags, n) for n in ("--a", "--b", "--c"))
    assert (1, 8000, 8192, None) == tuple(
        flag_number(flags, n) for n in ("--a", "--b", "--d", "--z")
    )
    assert (False, None) == (flag_on(flags, "enable-x"), flag_on(flags, "y"))


def test_the_answer_is_json_and_back() -> None:
    """What the command line prints reads back as the same value."""
    answer = estimate(asked("qwen3.6-35b-a3b-nvfp4-vllm-mtp"), SPARK, available_bytes=GIB)
    assert answer == MemoryEstimate.model_validate_json(answer.model_dump_json())


def test_linear_layers_are_not_charged_for_every_token() -> None:
    """C42: 28 slots of 73.69 MiB beside a cache that grows in 12 attention layers only."""
    layers = [
        FullAttention(kind="full_attention", count=12, kv_heads=2, head_dim_k=256, head_dim_v=256),
        GatedDeltaNet(
            kind="gated_delta_net",
            count=36,
            num_key_heads=16,
            num_value_heads=32,
            key_head_dim=128,
            value_head_dim=128,
            conv_kernel=4,
            ssm_dtype="float32",
        ),
    ]
    answer = estimate(bare(made_of(list(layers)), users=28), SPARK)
    assert 12 * 1024 == answer.kv_bytes_per_token
    state = answer.bounds["state_bytes"]
    assert state is not None
    assert 28 * 36 * 2_146_304 == state[0]
    assert 73.69 == round(state[0] / 28 / 2**20, 2)


def test_the_backtest_table_of_the_docs_is_current() -> None:
    """docs/memory.md shows what benchmarks/fit_backtest.py prints."""
    page = (Path(__file__).parents[1] / "docs" / "memory.md").read_text()
    assert "\n".join(published_rows(open_catalog())) in page
