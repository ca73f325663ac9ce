"""The engine's own arithmetic, against the start-up logs of real servers."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.errors import Misuse, Refused, Unknown
from sparkrecipes.memory import EngineSettings, FitRequest, engine_request, estimate
from sparkrecipes.memory.cache_groups import CachePlan, plan_cache
from sparkrecipes.memory.cache_specs import CacheSettings, indexer_specs, token_bytes
from sparkrecipes.memory.engine_log import engine_kv
from sparkrecipes.memory.engine_rules import CacheMode, cache_mode, rules_for
from sparkrecipes.memory.sequence_cost import sequence_cost
from sparkrecipes.schema.model import (
    FullAttention,
    GatedDeltaNet,
    LayerGroup,
    Mamba2,
    MlaAttention,
    Model,
    NoCache,
    SlidingAttention,
)
from tests.support.models import GIB, SPARK, engine, made_of, model

SEEN = json.loads((Path(__file__).parent / "data" / "memory" / "kv_observations.json").read_text())
KINDS: dict[str, Any] = {
    "full_attention": FullAttention,
    "sliding_attention": SlidingAttention,
    "gated_delta_net": GatedDeltaNet,
    "mamba2": Mamba2,
}


def full(count: int, heads: int, dim: int) -> FullAttention:
    """Make layers of full attention."""
    return FullAttention(
        kind="full_attention", count=count, kv_heads=heads, head_dim_k=dim, head_dim_v=dim
    )


def sliding(count: int, heads: int, dim: int, window: int) -> SlidingAttention:
    """Make layers that keep a window."""
    return SlidingAttention(
        kind="sliding_attention",
        count=count,
        kv_heads=heads,
        head_dim_k=dim,
        head_dim_v=dim,
        window_tokens=window,
    )


def settings(
    version: str, *, dtype: str = "fp8", mode: CacheMode = "align", drafts: int = 0, flying: int = 0
) -> CacheSettings:
    """Make settings of a release."""
    return CacheSettings(rules_for(version), dtype, 4, mode, drafts, flying)


def seen_model(name: str) -> Model:
    """Find a model of a log: of the catalog, or of the test data's own shapes."""
    shape = SEEN["shapes"].get(name.removeprefix("test:"))
    if not name.startswith("test:"):
        return model(name)
    return made_of([KINDS[g["kind"]](**g) for g in shape])


def seen_request(log: dict[str, Any]) -> FitRequest:
    """Ask what a log answers."""
    return engine_request(
        seen_model(log["model"]),
        engine("vllm"),
        context_tokens=log.get("context_tokens", 131072),
        kv_cache_dtype=log["kv_cache_dtype"],
        settings=EngineSettings(
            engine_version=log["engine_version"],
            speculative=log.get("speculative") or None,
            prefix_caching=log.get("prefix_caching", True),
            max_num_batched_tokens=log.get("max_num_batched_tokens"),
            mamba_ssm_cache_dtype=log.get("mamba_ssm_cache_dtype"),
        ),
    )


def plan_of(log: dict[str, Any]) -> CachePlan:
    """Lay out the cache of a log's settings."""
    return sequence_cost(seen_request(log), SPARK.mem_total_bytes).high


def printed(log: dict[str, Any]) -> set[tuple[int, str]]:
    """List what may be printed for a memory that prints as the log's: tokens and concurrency."""
    plan = plan_of(log)
    digits = len(log.get("max_concurrency", ".00").partition(".")[2])
    gib = log["available_kv_gib"]
    least, most = (int((gib + half) * GIB) // plan.bytes_per_block for half in (-0.005, 0.005))
    answers = (
        engine_kv(plan, blocks * plan.bytes_per_block, log["context_tokens"])
        for blocks in range(least, most + 1)
    )
    return {(a.kv_cache_tokens, f"{a.max_concurrency:.{digits}f}") for a in answers}


def marked(log: dict[str, Any]) -> Any:
    """Mark a log that is known not to be reproduced, and name each by its model and settings."""
    marks = [] if log["reproduced"] else [pytest.mark.xfail(strict=True, reason=log["note"])]
    name = f"{log['n']}-{log['model']}-{log['engine_version']}-{log['settings']}"
    return pytest.param(log, id=name, marks=marks)


@pytest.mark.parametrize("log", [marked(log) for log in SEEN["logs"]])
def test_a_log_is_reproduced_within_its_printed_rounding(log: dict[str, Any]) -> None:
    """Tokens to the last one and the concurrency, from the printed memory; C42 among others."""
    answers = printed(log)
    tokens = log["kv_cache_tokens"]
    assert tokens in {found for found, _ in answers}
    if "max_concurrency" in log:
        assert (tokens, log["max_concurrency"]) in answers


@pytest.mark.parametrize(
    "log", [x for x in SEEN["logs"] if "attention_block" in x], ids=lambda x: str(x["n"])
)
def test_the_attention_block_is_the_printed_one(log: dict[str, Any]) -> None:
    """Where a log prints its attention block, it is ours."""
    assert log["attention_block"] == plan_of(log).block_tokens


@pytest.mark.parametrize("log", SEEN["attention_blocks"], ids=lambda x: str(x["n"]))
def test_the_attention_block_of_servers_that_crashed_later(log: dict[str, Any]) -> None:
    """Three servers printed their block and no more."""
    assert log["attention_block"] == plan_of(log).block_tokens


@pytest.mark.parametrize("log", SEEN["blocks"], ids=lambda x: str(x["n"]))
def test_printed_tokens_are_whole_blocks(log: dict[str, Any]) -> None:
    """Ten reports have tokens only: a whole number of our blocks gives each."""
    plan = plan_of(log)
    answer = engine_kv(plan, log["num_blocks"] * plan.bytes_per_block, log["context_tokens"])
    assert log["kv_cache_tokens"] == answer.kv_cache_tokens


def test_the_schools_budget() -> None:
    """int4 + DFlash k=8, 66.8 GiB of 16-bit cache: 1,300,074 tokens, 9.92 requests of 131K."""
    log = {
        "model": "qwen3.6-35b-a3b",
        "engine_version": "0.21.0",
        "kv_cache_dtype": "bfloat16",
        "speculative": "dflash:8",
        "drafter": "z-lab/Qwen3.6-35B-A3B-DFlash",
    }
    seen = engine_kv(plan_of(log), int(66.8 * GIB), 131072)
    read_as_gb = engine_kv(plan_of(log), 66_800_000_000, 131072)
    assert (1_300_074, "9.92") == (seen.kv_cache_tokens, f"{seen.max_concurrency:.2f}")
    assert "9.24" == f"{read_as_gb.max_concurrency:.2f}"


def test_gemma_31b_as_a_user_reported_it() -> None:
    """Gemma 4 31B on 0.20.0: "~55k tokens" in "~50 GB" is the old meaning of the figure."""
    log = {"model": "gemma-4-31b", "engine_version": "0.20.0", "kv_cache_dtype": "bfloat16"}
    old = engine_kv(plan_of(log), 50 * GIB, 131072)
    new = engine_kv(plan_of({**log, "engine_version": "0.21.0"}), 50 * GIB, 131072)
    assert 54_608 == old.kv_cache_tokens
    assert old.num_blocks == new.num_blocks
    assert new.kv_cache_tokens > 5 * old.kv_cache_tokens


def test_gpt_oss_a_token_costs_what_llama_cpp_allocates() -> None:
    """9216 MiB for two contexts of 131,072 cells: 36,864 bytes a token in the 18 full layers."""
    layers = [g for g in model("gpt-oss-120b").layers if g.kind == "full_attention"]
    assert 9216 * 2**20 == 2 * 131072 * sum(g.count * token_bytes(g, "float16") for g in layers)


def test_equal_layers_of_a_drafter_join_the_targets() -> None:
    """gpt-oss-20b with EAGLE-3: 12 sliding + 13 full are padded to 13 + 13, not 12 + 24."""
    plan = plan_cache(
        (sliding(12, 8, 64, 128), full(12, 8, 64)), (full(1, 8, 64),), settings("0.31.0")
    )
    assert [13, 12] == sorted((g.layers for g in plan.groups), reverse=True)
    assert 13 * 16 * 1024 == plan.bytes_per_block
    assert [1, 1] == [g.copies for g in plan.groups]


def test_layers_that_need_the_same_tokens_share_one_group() -> None:
    """Full attention of two sizes: one group, whose block holds a page of each layer."""
    plan = plan_cache((full(32, 8, 128),), (full(1, 4, 64),), settings("0.31.0"))
    assert 1 == len(plan.groups)
    assert 16 * (32 * 2048 + 512) == plan.bytes_per_block
    assert 8192 == plan.blocks_per_request(131072)


def test_a_page_that_does_not_divide_the_largest_is_padded() -> None:
    """A drafter of 3 heads beside 8: its page is padded, its block stays."""
    plan = plan_cache(
        (full(4, 8, 64), sliding(4, 8, 64, 128)), (full(4, 3, 64),), settings("0.31.0")
    )
    (padded,) = (g for g in plan.groups if g.spec.shape == (3, 64, 64))
    assert 16 == padded.spec.block_tokens
    assert 4 * 16 * 1024 == padded.page_bytes


def test_a_window_holds_what_is_in_flight() -> None:
    """From 0.26 on two batches may be in flight: blocks for window - 1 + 2 x batched, and one."""
    layers = (sliding(5, 1, 64, 1024), full(5, 1, 64))
    old = plan_cache(layers, (), settings("0.25.1", flying=2048)).blocks_per_request(65536)
    new = plan_cache(layers, (), settings("0.26.0", flying=4096)).blocks_per_request(65536)
    assert (4096 + 192 + 1, 4096 + 320 + 1) == (old, new)


def test_asynchronous_scheduling_doubles_what_is_in_flight() -> None:
    """Not before 0.26, not where a flag or the way of speculation switches it off."""
    base = {"model": "gemma-4-26b-a4b", "kv_cache_dtype": "fp8", "max_num_batched_tokens": 4096}

    def flying(version: str, *flags: str, speculative: str = "") -> int:
        log = {**base, "engine_version": version, "speculative": speculative}
        asked = seen_request(log)
        told = FitRequest(**{**asked.__dict__, "flags": (*asked.flags, *flags)})
        return sequence_cost(told, SPARK.mem_total_bytes).high.settings.in_flight_tokens

    assert 4096 == flying("0.25.1")
    assert 8192 == flying("0.26.0")
    assert 4096 == flying("0.31.0", "--no-async-scheduling")
    assert 4096 == flying("0.31.0", speculative="ngram:3")
    assert 8192 == flying("0.31.0", speculative="mtp:3")


def test_the_hybrid_manager_switched_off_keeps_every_token() -> None:
    """--disable-hybrid-kv-cache-manager: sliding layers cost as full ones do."""
    log = {"model": "gemma-4-26b-a4b", "engine_version": "0.31.0", "kv_cache_dtype": "fp8"}
    asked = seen_request(log)
    off = FitRequest(
        **{**asked.__dict__, "flags": (*asked.flags, "--disable-hybrid-kv-cache-manager")}
    )
    plan = sequence_cost(off, SPARK.mem_total_bytes).high
    assert 1 == len(plan.groups)
    assert 8192 == plan.blocks_per_request(131072)


def test_what_is_kept_of_states_differs_by_release() -> None:
    """Mamba-2 kept all states from 0.25 to 0.27; 0.32 adds a checkpoint block in mode align."""
    mamba = next(g for g in model("nemotron-3-super-120b-a12b").layers if g.kind == "mamba2")
    layers: tuple[LayerGroup, ...] = (mamba, full(8, 2, 128))

    def mode(version: str, *, speculative: bool) -> str:
        rules = rules_for(version)
        return cache_mode(rules, prefix_caching=True, mamba2=True, speculative=speculative)

    def state(version: str, kept: CacheMode) -> int:
        return plan_cache(layers, (), settings(version, mode=kept)).state_blocks(131072)

    assert ("all", "align") == (mode("0.20.0", speculative=False), mode("0.20.0", speculative=True))
    assert ("all", "align") == (mode("0.27.1", speculative=True), mode("0.28.0", speculative=True))
    assert (5, 10, 15) == (
        state("0.31.0", "none"),
        state("0.31.0", "align"),
        state("0.32.0", "align"),
    )
    assert 5 * 16 == state("0.27.1", "all")
    drafting = settings("0.27.1", mode="all", drafts=3)
    assert 5 * (16 + 3) == plan_cache(layers, (), drafting).state_blocks(131072)


def test_the_mode_that_keeps_all_states_aligns_to_their_chunk() -> None:
    """4,224 tokens are 33 chunks of 128, where 4,176 would hold a state."""
    log = SEEN["attention_blocks"][0]
    assert 4176 == plan_of(log).block_tokens
    assert 4224 == plan_of({**log, "prefix_caching": True}).block_tokens


def test_latent_attention_beside_states_takes_blocks_of_128() -> None:
    """Its kernels want whole multiples; alone it keeps the smallest block."""
    latent = MlaAttention(kind="mla_attention", count=8, kv_lora_rank=512, qk_rope_head_dim=64)
    mamba = next(g for g in model("nemotron-3-super-120b-a12b").layers if g.kind == "mamba2")
    hybrid = plan_cache((latent, mamba), (), settings("0.31.0", dtype="bfloat16"))
    alone = plan_cache((latent,), (), settings("0.31.0", dtype="bfloat16"))
    assert (0, 16) == (hybrid.block_tokens % 128, alone.block_tokens)
    assert hybrid.block_tokens * 1152 >= 4_255_744 > (hybrid.block_tokens - 128) * 1152


def test_a_model_of_states_alone_keeps_them_unpadded() -> None:
    """No attention to pad to: a block is one state of each layer."""
    mamba = next(g for g in model("nemotron-3-super-120b-a12b").layers if g.kind == "mamba2")
    plan = plan_cache((mamba,), (), settings("0.31.0", mode="none"))
    assert (40 * 4_255_744, 1) == (plan.bytes_per_block, plan.blocks_per_request(131072))


@pytest.mark.parametrize(
    ("version", "dtype", "backend", "blocks"),
    [
        ("0.24.0", "fp8", None, 4176),
        ("0.30.0", "fp8", None, 2784),
        ("0.31.0", "fp8", None, 4176),
        ("0.31.0", "fp8", "flashinfer", 64),
        ("0.31.0", "bfloat16", None, 2096),
        ("0.31.0", "bfloat16", "FLASHINFER", 64),
    ],
)
def test_a_window_beside_states_starts_from_another_block_by_release(
    version: str, dtype: str, backend: str | None, blocks: int
) -> None:
    """From 0.31 on the largest block that its kernels run whole: with FLASHINFER at most 64.

    Before, the smallest (0.25 to 0.30), scaled up where it divides, or the attention block.
    """
    lightning = model("nemotron-3.5-lightning-30b-a3b")
    asked = engine_request(lightning, engine("vllm"), context_tokens=131072, kv_cache_dtype=dtype)
    flags = (*asked.flags, *([f"--attention-backend={backend}"] if backend else []))
    plain = FitRequest(**{**asked.__dict__, "flags": flags, "engine_version": version})
    found = sequence_cost(plain, SPARK.mem_total_bytes).high.settings._replace(mode="align")
    plan = plan_cache(lightning.layers, (sliding(6, 3, 128, 1024),), found)
    (window,) = (g.spec.block_tokens for g in plan.groups if g.spec.kind == "sliding")
    assert blocks == window


def test_a_ring_holds_the_open_group_and_all_drafts() -> None:
    """Groups of 4 with 5 drafts: 9 rows, rounded up to 12."""
    indexer = next(g for g in model("qwen3.8-flash-next").layers if g.kind == "indexer")
    keys, ring = indexer_specs(indexer, 1600, 5)
    assert (400 * 256, 1600) == (keys.page_bytes, keys.block_tokens)
    assert (12, 12 * 256, 1) == (ring.block_tokens, ring.page_bytes, ring.held_blocks)


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("0.20.2rc1", (0, 0)),
        ("v0.21.0", (0, 21)),
        ("0.31.0", (0, 31)),
        ("1.0.0", (0, 32)),
        ("0.1.dev20073+g8e685d198", (0, 32)),
        (None, (0, 32)),
        ("nightly", (0, 32)),
    ],
)
def test_the_rules_of_a_version(version: str | None, since: tuple[int, int]) -> None:
    """A number that names no release has the newest rules, never the oldest."""
    assert since == rules_for(version).since


def test_latent_attention_keeps_one_latent() -> None:
    """C38: 512 + 64 values a token and layer, or 656 packed bytes; never 2 x head size x heads."""
    layer = MlaAttention(kind="mla_attention", count=43, kv_lora_rank=512, qk_rope_head_dim=64)
    packed = 43 * token_bytes(layer, "fp8_ds_mla") * 1048576 / GIB
    assert 27.55 == round(packed, 2)
    assert 43 * 1152 == 43 * token_bytes(layer, "bfloat16")
    assert 43 * 1152 < 88_064


def test_state_is_counted_apart_from_the_growing_cache() -> None:
    """C42: 36 linear layers keep 73.69 MB a sequence whatever its length; 12 layers grow."""
    linear = GatedDeltaNet(
        kind="gated_delta_net",
        count=36,
        num_key_heads=16,
        num_value_heads=32,
        key_head_dim=128,
        value_head_dim=128,
        conv_kernel=4,
        ssm_dtype="float32",
    )
    plan = plan_cache((linear, full(12, 2, 256)), (), settings("0.31.0", dtype="bfloat16"))
    assert plan.state_blocks(4096) == plan.state_blocks(262144)
    assert plan.attention_blocks(4096) < plan.attention_blocks(262144)


def test_a_model_without_a_cache_has_no_log() -> None:
    """Nothing is kept: no blocks, and no figure of the log."""
    nothing = made_of([NoCache(kind="no_cache", count=4)])
    plan = plan_cache(nothing.layers, (), settings("0.31.0"))
    assert (0, 0) == (plan.bytes_per_block, plan.blocks_per_request(131072))
    with pytest.raises(Refused, match="keeps no KV cache"):
        engine_kv(plan, GIB, 131072)


def test_a_drafter_that_nobody_described_has_no_log() -> None:
    """Its layers decide the figures: unknown, with the remedy; n-gram speculation needs none."""
    llama = {
        "model": "llama-3.1-8b-instruct",
        "engine_version": "0.31.0",
        "kv_cache_dtype": "fp8",
        "speculative": "eagle3:3",
    }
    with pytest.raises(Unknown) as caught:
        seen_request(llama)
    assert "drafters" in caught.value.repair
    assert seen_request({**llama, "speculative": "ngram:3"}).drafter_repo is None


def test_an_unknown_type_of_the_cache_is_refused() -> None:
    """The error names the types that exist."""
    with pytest.raises(Misuse) as caught:
        token_bytes(full(1, 1, 64), "int3")
    assert "fp8" in caught.value.repair


def test_estimate_answers_what_the_log_prints() -> None:
    """With the printed memory, the answer holds the log's figures, and which releases print so."""
    log = next(x for x in SEEN["logs"] if x["n"] == 0)
    answer = estimate(seen_request(log), SPARK, available_kv_bytes=int(72.79 * GIB)).engine_kv
    assert answer is not None
    assert (1600, 1403, 179, 2_054_681) == (
        answer.block_size,
        answer.num_blocks,
        answer.blocks_per_request,
        answer.kv_cache_tokens,
    )
    assert "0.21" in answer.log_rule
