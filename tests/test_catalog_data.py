"""The shipped catalog, value for value against copies of the published facts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.recommendation import understand
from sparkrecipes.recommendation.questions import words
from sparkrecipes.schema.model import GatedDeltaNet, LayerGroup, Mamba2, Model
from sparkrecipes.schema.recipe import Recipe

FACTS = Path(__file__).parent / "data" / "facts"
ROUND: dict[str, Any] = json.loads((FACTS / "october_round.json").read_text())
SHAPES: dict[str, Any] = json.loads((FACTS / "model_shapes.json").read_text())["models"]
ROWS: dict[str, Any] = {row["id"]: row for row in ROUND["rows"]}
SET = "standard-round-2026-10"
GIB = 2**30


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout, whatever the environment names."""
    return open_catalog(data_root() / "catalog")


def test_recipes_are_the_23_measured_configurations(catalog):
    """The catalog has one recipe for each row of the round, under the row's id."""
    measured = [
        recipe.id
        for recipe in catalog.recipes.values()
        if any(found.evidence == SET for found in catalog.published(recipe))
    ]
    assert all("measured" == catalog.status(catalog.recipes[key]) for key in measured)
    assert sorted(ROWS) == sorted(measured)
    assert 23 == len(measured)


@pytest.mark.parametrize("key", ROWS)
def test_recipe_is_the_measured_configuration(catalog, key):
    """Every setting of a recipe is the measured run's; flags are verbatim, and may only grow."""
    row, recipe = ROWS[key], catalog.recipes[key]
    measured = row["measured"]
    expected = {
        "weights": row["weights_repo"],
        "drafter": row["drafter_repo"],
        "engine": row["engine"],
        "image": row["image"],
        "served": row["served_model_name"],
        "serving": (
            measured["context_tokens"],
            measured["users"],
            measured["kv_cache_dtype"],
            row["gpu_memory_utilization"],
        ),
        "env": row["env"],
        "shm": row["shm_size"],
        "timeout": row["startup_timeout_s"],
        "flags": row["engine_args"],
    }
    serving = recipe.serving
    actual = {
        "weights": recipe.weights and recipe.weights.repo,
        "drafter": recipe.drafter and recipe.drafter.repo,
        "engine": recipe.engine,
        "image": recipe.image.reference,
        "served": recipe.served_model_name,
        "serving": (
            serving.context_tokens,
            serving.users,
            serving.kv_cache_dtype,
            serving.gpu_memory_utilization,
        ),
        "env": recipe.env,
        "shm": recipe.shm_size,
        "timeout": recipe.startup_timeout_s,
        "flags": [flag for flag in recipe.flags if flag not in added_flags(recipe)],
    }
    assert expected == actual


@pytest.mark.parametrize("key", ROWS)
def test_speculation_is_the_measured_one(catalog, key):
    """A recipe speculates as its row did; the drafter's folder is filled in when it runs."""
    expected = ROWS[key]["speculative"]
    given = catalog.recipes[key].speculative
    actual = given and given.model_dump(exclude_none=True)
    assert (expected and {k: v for k, v in expected.items() if k != "model"}) == actual
    uses_drafter = bool(expected and "model" in expected)
    assert uses_drafter == (catalog.recipes[key].drafter is not None)


def added_flags(recipe: Recipe) -> list[str]:
    """Flags that the measured run did not have."""
    return [flag for flag in recipe.flags if flag not in ROWS[recipe.id]["engine_args"]]


@pytest.mark.parametrize("key", ROWS)
def test_every_added_flag_is_said(catalog, key):
    """A flag that was not measured is one of tool calling, and ``mended`` names it."""
    recipe = catalog.recipes[key]
    said = " ".join(recipe.mended)
    added = added_flags(recipe)
    assert all(re.fullmatch(r"--(enable-auto-tool-choice|tool-call-parser=\w+)", f) for f in added)
    assert [] == [flag for flag in added if flag not in said]
    assert not added or "measured without" in said


def test_claim_of_tools_carries_the_parser(catalog):
    """A recipe that claims tools sets automatic tool choice and a parser."""
    claiming = [r for r in catalog.recipes.values() if "tools" in r.capabilities]
    without = [
        r.id
        for r in claiming
        if ("--enable-auto-tool-choice" not in r.flags and r.engine != "sglang")
        or not any(flag.startswith("--tool-call-parser=") for flag in r.flags)
    ]
    assert [] == without
    assert 20 == len([r for r in claiming if r.id in ROWS])


def test_dropped_claims_are_said(catalog):
    """Only Gemma's claim of audio differs from the public recipes, and it says so."""
    dropped = {}
    for recipe in (catalog.recipes[key] for key in ROWS):
        gone = [c for c in ROWS[recipe.id]["capabilities"] if c not in recipe.capabilities]
        if gone:
            dropped[recipe.id] = gone
            assert any("audio claim is dropped" in line for line in recipe.mended), recipe.id
    assert {key: ["audio"] for key in ROWS if key.startswith("gemma")} == dropped


def test_eagle3_recipes_fetch_their_target(catalog):
    """The Eagle3 recipes name the target's weights, which the public ones forget, and say so."""
    for recipe in catalog.recipes.values():
        if recipe.speculative and recipe.speculative.method == "eagle3":
            assert recipe.weights is not None
            assert recipe.weights.repo.startswith("openai/gpt-oss-")
            assert any("target's weights are fetched too" in line for line in recipe.mended)


def test_fields_are_not_repeated_as_flags(catalog):
    """No flag states what a field states: one fact stands in one place."""
    aliases = {"--device-memory-utilization", "-sc", "--model", "--host", "--port"}
    for recipe in catalog.recipes.values():
        names = {*catalog.engine(recipe.engine).flags.model_dump().values(), *aliases}
        assert [] == [flag for flag in recipe.flags if flag.partition("=")[0] in names], recipe.id


def test_nim_is_told_its_name_once(catalog):
    """The measured NIM variable and the field say the same name."""
    for recipe in catalog.recipes.values():
        named = recipe.env.get("NIM_SERVED_MODEL_NAME", recipe.served_model_name)
        assert recipe.served_model_name == named


def test_only_the_patched_image_is_built_locally(catalog):
    """Flash-Next says how its image is built, and pins its weights; no other invents a pin."""
    local = [r for r in catalog.recipes.values() if r.image.local_build]
    pinned = [r for r in catalog.recipes.values() if r.weights and r.weights.revision]
    assert ["qwen3.8-flash-next-nvfp4-vllm-patched-mtp"] == [r.id for r in local]
    assert local == pinned
    assert "docker build -t qwen38-flash-dgx" in local[0].image.local_build.how
    assert "7b719225242aacd3dbd3f9407468c2ee9a9d2594" == local[0].weights.revision


@pytest.mark.parametrize("key", ROWS)
def test_evidence_is_as_published(catalog, key):
    """A row's figures and settings are the published ones, value for value."""
    recipe = catalog.recipes[key]
    assert f"{SET}#{key}" == recipe.evidence[0]
    published, *contributed = catalog.published(recipe)
    assert all(found.evidence.startswith("contributed-") for found in contributed)
    row, measured = published.row, ROWS[key]["measured"]
    actual = {**row.figures.model_dump(), **row.model_dump(include={*measured} - {"figures"})}
    assert measured == actual


def test_doubts_stand_at_the_figures_that_they_concern(catalog):
    """Only the five GPT-OSS rows have doubtful speeds; a doubt about memory demotes no speed."""
    doubtful = {
        row.id: sorted({name for caveat in row.caveats for name in caveat.figures})
        for row in catalog.evidence[SET].rows
        if row.caveats
    }
    speed = {k: ["single_user_tok_s", "ttft_ms"] for k in ROWS if k.startswith("gpt-oss")}
    memory = {
        "llama-3.1-8b-instruct-nim": ["memory_gb"],
        "qwen3.8-flash-next-nvfp4-vllm-patched-mtp": ["memory_gb"],
    }
    assert {**speed, **memory} == doubtful
    assert 5 == len(speed)


def test_whole_request_speeds_of_gpt_oss_are_reckoned_from_the_row(catalog):
    """The bound in a caveat is 300 tokens over TTFT and the time that the speed gives them."""
    for row in catalog.evidence[SET].rows:
        if row.id.startswith("gpt-oss"):
            figures = row.figures
            whole = 300 / (300 / figures.single_user_tok_s + figures.ttft_ms / 1000)
            assert f"at most {whole:.1f} tok/s" in row.caveats[0].text


def test_acceptance_by_workload_is_as_published(catalog):
    """Speed and acceptance of MTP by workload, both temperatures, and the 15 minutes of load."""
    with_mtp, without = catalog.evidence[SET].by_workload
    published = ROUND["acceptance_qwen36_mtp"]
    expected = [
        (r["workload"], t, r[f"mtp_{k}"], r["without_mtp"], r[f"acceptance_{k}"])
        for r in published["rows"]
        for t, k in ((0, "temp0"), (0.7, "temp07"))
    ]
    actual = [
        (w.workload, w.temperature, w.tok_s, w.without_speculation_tok_s, w.acceptance_pct)
        for w in with_mtp.workloads
    ]
    assert expected == actual
    assert published["recipe"] == with_mtp.recipe
    assert (15, 4, 218.0, 69.3, 0) == tuple(with_mtp.sustained.model_dump().values())
    assert (15, 4, 170.9, None, None) == tuple(without.sustained.model_dump().values())
    assert any("0 first is assumed" in note for note in with_mtp.notes)


def test_models_are_the_14_known_ones(catalog):
    """The catalog has a file for each model whose shape is known, with its known builds."""
    assert sorted(SHAPES) == sorted(catalog.models)
    for key, shape in SHAPES.items():
        builds = {build.repo for build in catalog.models[key].builds}
        assert set() == set(shape["hf_repos"]) - builds, key


@pytest.mark.parametrize("key", SHAPES)
def test_model_has_the_shape_of_its_configuration(catalog, key):
    """Sizes are the configuration's, and the layers add up to all of them."""
    shape, model = SHAPES[key], catalog.models[key]
    beside = {"indexer", "short_conv"}
    layers = sum(group.count for group in model.layers if group.kind not in beside)
    actual = (model.hidden_size, model.vocab_size, model.context_tokens, layers)
    names = ("hidden_size", "vocab_size", "max_position_embeddings", "num_hidden_layers")
    assert tuple(shape[name] for name in names) == actual
    mtp = shape["mtp_layers_in_checkpoint"]
    assert (None if mtp == "unknown" else mtp) == model.mtp_layers


@pytest.mark.parametrize("key", SHAPES)
def test_cache_of_a_token_is_the_one_reckoned_elsewhere(catalog, key):
    """Full and sliding layers give the bytes a token that were reckoned apart from us."""
    kv, layers = SHAPES[key]["kv"], catalog.models[key].layers
    full = [g for g in layers if g.kind == "full_attention"]
    sliding = [g for g in layers if g.kind == "sliding_attention"]
    assert kv["bytes_per_token_fp8"] == sum(token_bytes(g) * g.count for g in full)
    assert kv["bytes_per_token_bf16"] == 2 * sum(token_bytes(g) * g.count for g in full)
    assert kv.get("sliding_layers", 0) == sum(g.count for g in sliding)
    for group in sliding:
        assert kv["sliding_window"] == group.window_tokens
        assert kv["sliding_bytes_per_token_per_layer_bf16"] == 2 * token_bytes(group)


def token_bytes(group: LayerGroup) -> int:
    """K and V of one token in one layer, one byte each."""
    return group.kv_heads * (group.head_dim_k + group.head_dim_v)


@pytest.mark.parametrize("key", [k for k, s in SHAPES.items() if "linear_attention" in s])
def test_recurrent_state_is_the_one_reckoned_elsewhere(catalog, key):
    """The state of one sequence in one layer, in float32, is the one reckoned apart from us."""
    shape = SHAPES[key]["linear_attention"]
    (group,) = (g for g in catalog.models[key].layers if isinstance(g, GatedDeltaNet | Mamba2))
    sizes = [
        v for k, v in shape.items() if re.fullmatch(r"state_bytes_per_layer_per_seq(_fp32)?", k)
    ]
    assert sizes == [state_bytes(group)]
    dtype = shape.get("ssm_state_dtype") or shape.get("ssm_cache_dtype_config")
    assert ("float32" if dtype.startswith("float32") else None) == group.ssm_dtype


def state_bytes(group: GatedDeltaNet | Mamba2) -> int:
    """Convolution state in two bytes and recurrent state in four, of one layer."""
    if isinstance(group, Mamba2):
        inner = group.num_heads * group.head_dim
        conv = (inner + 2 * group.n_groups * group.d_state) * (group.conv_kernel - 1) * 2
        return conv + inner * group.d_state * 4
    keys, values = group.num_key_heads * group.key_head_dim, group.num_value_heads
    conv = (2 * keys + values * group.value_head_dim) * (group.conv_kernel - 1) * 2
    return conv + values * group.value_head_dim * group.key_head_dim * 4


def test_layers_without_a_cache_are_named(catalog):
    """Nemotron's expert layers keep nothing, and Flash-Next's indexer keeps its own keys."""
    nothing = {
        key: sum(g.count for g in model.layers if g.kind == "no_cache")
        for key, model in catalog.models.items()
    }
    expected = {
        "nemotron-3.5-lightning-30b-a3b": 23,
        "nemotron-3-nano-omni-30b-a3b": 23,
        "nemotron-3-super-120b-a12b": 40,
    }
    assert expected == {key: count for key, count in nothing.items() if count}
    (indexer,) = (g for g in catalog.models["qwen3.8-flash-next"].layers if g.kind == "indexer")
    facts = SHAPES["qwen3.8-flash-next"]["indexer"]
    assert facts["kv_heads"] == indexer.kv_heads
    assert facts["head_dim"] == indexer.head_dim
    assert facts["compress_ratio"] == indexer.compress_ratio


@pytest.mark.parametrize("key", SHAPES)
def test_every_build_is_bounded_with_its_reason(catalog, key):
    """Each build has a size or bits a parameter, and says where that comes from."""
    model = catalog.models[key]
    quants = [build.quant for build in model.builds]
    assert len(quants) == len(set(quants))
    for build in model.builds:
        assert build.weights or (build.bits_per_param and build.bits_source), build.repo
        low, high = build.bits_per_param or (0, 0)
        assert low <= high <= 32


def test_measured_sizes_keep_their_unit(catalog):
    """What logs print in GiB is 2^30 bytes, what pages print in GB is 10^9."""
    builds = {b.repo: b for m in catalog.models.values() for b in m.builds}
    super_ = builds["nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"].weights
    assert (round(69.5 * GIB), round(75.03 * GIB)) == (super_.low_bytes, super_.high_bytes)
    exact = builds["Qwen/Qwen3.8-27B-FP8"].weights
    assert (30866866928, 30866866928) == (exact.low_bytes, exact.high_bytes)
    llama = builds["nvidia/Llama-3.3-70B-Instruct-NVFP4"].weights
    assert (40_000_000_000, 43_000_000_000) == (llama.low_bytes, llama.high_bytes)
    (mapped,) = builds["RadixArk/Qwen3.8-Flash-Next-NVFP4"].residency
    assert {"VLLM_PLE_MMAP": "1"} == mapped.env
    assert (74, 101) == tuple(
        round(size / GIB) for size in (mapped.weights.low_bytes, mapped.weights.high_bytes)
    )


def test_unknown_is_null(catalog):
    """A licence that no source states, or that sources dispute, is null."""
    for key, shape in SHAPES.items():
        stated = shape["licence"]
        open_ = stated == "unknown" or stated.startswith("CONFLICT")
        assert open_ == (catalog.models[key].licence is None), key


@pytest.mark.parametrize("key", ROWS)
def test_recipe_and_model_agree(catalog, key):
    """A recipe serves a build and a drafter that its model lists, and senses that it has."""
    recipe = catalog.recipes[key]
    model = catalog.model(recipe.model)
    assert_build_known(recipe, model)
    senses = {"image", "audio", "video"}.intersection(recipe.capabilities)
    assert set() == senses - set(model.modalities)
    if recipe.drafter:
        (drafter,) = (d for d in model.drafters if d.repo == recipe.drafter.repo)
        assert recipe.speculative.method == drafter.method


def assert_build_known(recipe: Recipe, model: Model) -> None:
    """Fail unless weights and quant name one build of the model."""
    if recipe.weights is None:
        assert recipe.quant in {None, *(b.quant for b in model.builds)}
        return
    (build,) = (b for b in model.builds if b.repo == recipe.weights.repo)
    assert recipe.quant == build.quant


def test_parameters_are_those_of_the_published_table(catalog):
    """People choose by the table's counts; finer ones stand in a model's notes."""
    for key, row in ROWS.items():
        model = catalog.model(catalog.recipes[key].model)
        expected = (row["params_total_b"], row["params_active_b"])
        assert expected == (model.params_total_b, model.params_active_b), key


def test_use_cases_share_no_word(catalog):
    """Each id, name and synonym is understood as its own use case."""
    for key, use in catalog.use_cases.items():
        for phrase in (key, *use.names.values(), *use.synonyms["en"], *use.synonyms["es"]):
            assert key == understand(phrase, catalog.use_cases).id, phrase


def test_no_use_case_is_invented(catalog):
    """The page asks about content writing and research and answers neither; chat has no pick."""
    published = {p["use_case"] for p in ROUND["picks"]}
    general = {key for key, use in catalog.use_cases.items() if use.general}
    assert ({"chat"}, published | general) == (general, set(catalog.use_cases))
    assert catalog.use_cases["chat"].published_pick is None
    for published in ROUND["picks"]:
        stored = catalog.use_cases[published["use_case"]].published_pick
        assert (published["pick"], tuple(published["also"])) == (stored.recipe, stored.also)


def test_synonyms_are_written_once(catalog):
    """No synonym repeats another one of its language in other case or accents."""
    for use in catalog.use_cases.values():
        for synonyms in use.synonyms.values():
            spoken = [words(synonym) for synonym in synonyms]
            assert len(spoken) == len(set(spoken)), [s for s in spoken if spoken.count(s) > 1]


def test_spark_is_the_published_machine(catalog):
    """MemTotal is 127,600,748 kB, the reserve 5 GiB, the bandwidth 273 GB/s."""
    spark = catalog.machine("dgx-spark")
    assert (127_600_748 * 1024, 5 * GIB) == (spark.mem_total_bytes, spark.host_reserve_bytes)
    assert ("linux/arm64", True, 273) == (
        spark.platform,
        spark.unified_memory,
        spark.memory_bandwidth_gb_s,
    )
    assert 121.69 == round(spark.mem_total_bytes / GIB, 2)


def test_what_does_not_run_rules_out_no_measured_recipe(catalog):
    """No entry concerns a recipe at its settings: nothing is offered that is known not to run."""
    concerned = [
        (entry.title, recipe.id)
        for entry in catalog.does_not_run
        for recipe in catalog.recipes.values()
        if entry.concerns(recipe)
    ]
    assert [] == concerned
    assert {"measured", "untested"} == {catalog.status(r) for r in catalog.recipes.values()}


def test_what_does_not_run_rules_out_what_it_names(catalog):
    """MTP on the older Gemma image, and Flash-Next on a stock image, are known not to run."""
    gemma = catalog.recipes["gemma-4-26b-a4b-nvfp4-vllm-mtp"]
    old = catalog.recipes["gemma-4-26b-a4b-nvfp4-vllm-gemma4-image"].image
    on_old_image = gemma.model_copy(update={"image": old})
    flash = catalog.recipes["qwen3.8-flash-next-nvfp4-vllm-patched-mtp"]
    stock = flash.model_copy(update={"image": gemma.image})
    for recipe in (on_old_image, stock):
        assert 1 == sum(entry.concerns(recipe) for entry in catalog.does_not_run)


def test_what_does_not_fit_holds_from_its_settings_upwards(catalog):
    """Llama 3.3 70B is ruled out at 128K x 4 and beyond, not for two users."""
    entry = next(e for e in catalog.does_not_run if e.kind == "memory")
    base = catalog.recipes["qwen3-8b-fp8-vllm"]
    llama = base.model_copy(update={"model": "llama-3.3-70b-instruct"})
    assert entry.concerns(llama)
    assert entry.concerns(llama, users=8)
    assert not entry.concerns(llama, users=2)
    assert not entry.concerns(llama, context_tokens=32768)
    wider = llama.serving.model_copy(update={"kv_cache_dtype": "bfloat16"})
    assert not entry.concerns(llama.model_copy(update={"serving": wider}))


def test_weights_that_were_read_are_within_what_is_reckoned_with(catalog):
    """RedHatAI's FP8 build of Gemma 4 26B-A4B: 26.67 GiB of files, as whoever served it printed."""
    model = catalog.model("gemma-4-26b-a4b")
    [build] = [build for build in model.builds if build.quant == "fp8"]
    assert build.weights.low_bytes <= 26.67 * GIB <= build.weights.high_bytes
    assert build.weights.high_bytes - build.weights.low_bytes <= 0.0101 * GIB


def test_a_repository_has_one_spelling(catalog):
    """Folders of the cache are named by it: recipes and models write each one alike."""
    spelt = {}
    for model in catalog.models.values():
        for repo in (one.repo for one in (*model.builds, *model.drafters) if one.repo):
            assert repo == spelt.setdefault(repo.lower(), repo)
    for recipe in catalog.recipes.values():
        for source in (recipe.weights, recipe.drafter):
            assert source is None or source.repo == spelt[source.repo.lower()]
    assert "google/gemma-4-31B-it-assistant" in spelt.values()


REAL_LINES = (
    "INFO 11-27 02:03:09 model_runner.py:1072] Starting to load model /models/Meta-Llama-3.1...",
    "Loading safetensors checkpoint shards:  27% Completed | 4/15 [00:02<00:06,  1.57it/s]",
    "INFO 08-17 [gpu_model_runner.py:2005] Model loading took 11.0802 GiB and 3.1 seconds",
    "INFO 04-20 15:32:51 [backends.py:872] Dynamo bytecode transform time: 15.12 s",
    "INFO 03-13 17:30:51 [monitor.py:48] torch.compile took 1.71 s in total",
    "INFO [kv_cache_utils.py:864] GPU KV cache size: 582,832 tokens",
    "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|   | 0/4 [00:00<?]",
    "INFO [gpu_model_runner.py] Graph capturing finished in 20 secs, took 0.66 GiB",
    "INFO:     Application startup complete.",
)


def test_milestones_follow_a_real_start(catalog):
    """The milestones of vLLM are found in lines of public start-up logs, in their order."""
    milestones = catalog.engine("vllm").milestones
    assert len(REAL_LINES) == len(milestones)
    for milestone, line in zip(milestones, REAL_LINES, strict=True):
        assert re.search(milestone.pattern, line)
        others = [other for other in REAL_LINES if other != line]
        assert not any(re.search(milestone.pattern, other) for other in others)


def test_default_fraction_changes_with_the_release(catalog):
    """C32: vLLM's default fraction is not always 0.9, so each recipe sets its own.

    0.92 of 121.69 GiB is 112.0 GiB, 0.9 is 109.5.
    """
    assert {"0.2.6": 0.9, "0.20.0": 0.92} == catalog.engine("vllm").default_gpu_memory_utilization
    fractions = [r.serving.gpu_memory_utilization for r in catalog.recipes.values()]
    assert None not in fractions


def test_nim_gets_arguments_by_its_variable(catalog):
    """NIM takes the engine's arguments from its documented variable, its key by name only."""
    nim = catalog.engine("nim")
    assert ("env", "NIM_PASSTHROUGH_ARGS", False) == (
        nim.arguments,
        nim.arguments_env,
        nim.model_argument,
    )
    assert ("/opt/nim/.cache", "/v1/health/ready") == (nim.cache_volume, nim.health_path)
    assert ("NGC_API_KEY",) == nim.secrets


def test_files_name_their_schema_and_no_place_of_ours(catalog):
    """Each file names its schema in the first line, and nothing of the workshop it came from."""
    for path in sorted(catalog.root.rglob("*.yaml")):
        first, _, rest = path.read_text().partition("\n")
        assert re.fullmatch(
            r"# yaml-language-server: \$schema=(\.\./)?schemas/[a-z_]+\.schema\.json", first
        ), path
        found = re.findall(r"(?i)/work/|\bseed 0|index id|models\.json|standard_round_method", rest)
        assert [] == found, path
