"""Flags and variables against the engine's version: each rule finds its fault, and only that."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.engine_flags import env_problems, flag_problems, problems
from sparkrecipes.engine_flags.names import names_of
from sparkrecipes.engine_flags.options import option_table
from sparkrecipes.engine_flags.problem import FlagProblem
from sparkrecipes.engine_flags.renamed import former_variables, renamed_options
from sparkrecipes.schema.recipe import LocalBuild, Recipe, Serving, Speculative

DATA = Path(__file__).parent / "data"
VERSIONS = ("0.25.1", "0.27.1", "0.29.0", "0.30.0", "0.31.0", "0.32.0")
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser=hermes")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The small catalog of the tests."""
    return open_catalog(DATA / "catalog")


def recipe_with(catalog: Catalog, *flags: str, **fields: Any) -> Recipe:
    """Return the small recipe with these flags and fields."""
    recipe = catalog.recipe("tiny-8b-fp8-vllm")
    return recipe.model_copy(update={"flags": flags, **fields})


def found(catalog: Catalog, *flags: str, **fields: Any) -> list[FlagProblem]:
    """Return what is wrong with the small recipe with these flags."""
    return list(flag_problems(recipe_with(catalog, *flags, **fields), catalog.engine("vllm")))


def codes(problems: list[FlagProblem]) -> list[str]:
    """Return problems as ``level code``."""
    return [f"{problem.level} {problem.code}" for problem in problems]


RENAMED = [
    ("--disable-log-requests", "0.31.0", "error renamed_flag", ("--no-enable-log-requests",)),
    (
        "--cuda-graph-sizes=8",
        "0.31.0",
        "error renamed_flag",
        ("--cudagraph-capture-sizes=8",),
    ),
    ("--log-config-file=a.json", "0.31.0", "hint deprecated_flag", None),
    ("--disable-cascade-attn", "0.32.0", "hint deprecated_flag", ()),
    ("--use-v2-block-manager", "0.31.0", "error renamed_flag", ()),
    ("--rope-scaling={}", "0.31.0", "error renamed_flag", None),
    (
        "--guided-decoding-backend=xgrammar",
        "0.25.1",
        "error renamed_flag",
        ("--structured-outputs-config.backend=xgrammar",),
    ),
]


@pytest.mark.parametrize(("flag", "version", "code", "items"), RENAMED)
def test_a_renamed_flag_names_what_stands_for_it(catalog, flag, version, code, items):
    """With the change ready where it leaves no doubt; deprecated ones are hints."""
    [problem] = found(catalog, flag, engine_version=version)
    assert code == f"{problem.level} {problem.code}"
    if flag.startswith("--log-config-file"):
        items = ("--logging-config.pylogging_config_file=a.json",)
    assert items == (problem.fix.items if problem.fix else None)
    assert all(item in problem.repair for item in items or ())


@pytest.mark.parametrize(
    ("flag", "version"),
    [
        ("--log-config-file=a.json", "0.30.0"),
        ("--disable-cascade-attn", "0.31.0"),
        ("--no-enable-log-requests", "0.31.0"),
    ],
)
def test_a_flag_is_not_former_before_its_successor_came(catalog, flag, version):
    """0.30.0 knows no --logging-config, and cascade attention was removed in 0.32.0."""
    assert [] == found(catalog, flag, engine_version=version)


def test_a_removed_flag_names_its_last_release(catalog):
    """Known in 0.27.1, gone in 0.29.0."""
    assert [] == found(catalog, "--calculate-kv-scales", engine_version="0.27.1")
    [problem] = found(catalog, "--calculate-kv-scales", engine_version="0.29.0")
    assert ("removed_flag", "error") == (problem.code, problem.level)
    assert "0.27.1 is the last" in problem.repair


def test_choices_are_those_of_the_version(catalog):
    """moe_backend b12x came with 0.29.0, and a wrong case is put right."""
    assert [] == found(catalog, "--moe-backend=b12x", engine_version="0.31.0")
    assert ["error flag_choice"] == codes(
        found(catalog, "--moe-backend=b12x", engine_version="0.25.1")
    )
    for flag, code in (
        ("--moe-backend=MARLIN", "hint choice_spelling"),
        ("--dtype=BFLOAT16", "error flag_choice"),
    ):
        [problem] = found(catalog, flag)
        assert code == f"{problem.level} {problem.code}"
        assert problem.fix is not None
        assert (flag.lower(),) == problem.fix.items


def test_a_beginning_of_a_flag_is_not_its_name(catalog):
    """Argparse takes one that is unambiguous; two that begin alike it refuses."""
    [problem] = found(catalog, "--enable-prefix-cach")
    assert ("abbreviated_flag", "error") == (problem.code, problem.level)
    assert problem.fix is not None
    assert ("--enable-prefix-caching",) == problem.fix.items
    [problem] = found(catalog, "--enable-e")
    assert "unknown_flag" == problem.code
    [problem] = found(catalog, "--no-such-flag")
    assert ("unknown_flag", None) == (problem.code, problem.fix)


NUMBERS = [
    ("--max-num-batched-tokens", ["8192", "8k", "8K", "8_192"], ["8,192", "lots", "1.5", "auto"]),
    ("--seed", ["7", "-1"], ["7k", "1.5", "x"]),
    ("--cpu-offload-gb", ["4", "1.5", "1e1"], ["4k", "x"]),
    ("--max-num-active-seqs", ["4", "None"], ["none", "x"]),
]


@pytest.mark.parametrize(("option", "right", "wrong"), NUMBERS)
def test_a_number_is_written_as_the_option_reads_it(catalog, option, right, wrong):
    """Suffixes, decimals and words only where its parser takes them."""
    for value in right:
        assert [] == found(catalog, f"{option}={value}"), value
    for value in wrong:
        assert ["error flag_value"] == codes(found(catalog, f"{option}={value}")), value


def test_a_grouped_number_is_shown_without_its_commas(catalog):
    """8,192 is 8192 to people only."""
    [problem] = found(catalog, "--max-num-batched-tokens=8,192")
    assert ("write 8192", "is no whole number") == (problem.repair, problem.message[-18:])


NAMES = [
    ("--tool-call-parser", "hermes", "hermez", "error unknown_tool_parser"),
    ("--reasoning-parser", "qwen3", "qwen33", "error unknown_reasoning_parser"),
    ("--quantization", "fp8", "fp9", "error unknown_quantization"),
]


@pytest.mark.parametrize(("option", "right", "wrong", "code"), NAMES)
def test_named_values_are_those_of_the_version(catalog, option, right, wrong, code):
    """A parser or method that the release does not have ends its start."""
    assert [] == found(catalog, f"{option}={right}")
    [problem] = found(catalog, f"{option}={wrong}")
    assert code == f"{problem.level} {problem.code}"
    assert f"did you mean {right}" in problem.repair


def test_a_parser_of_another_release_names_it(catalog):
    """qwen3_json came with 0.32.0."""
    flags = ("--enable-auto-tool-choice", "--tool-call-parser=qwen3_json")
    assert [] == found(catalog, *flags, engine_version="0.32.0")
    [problem] = found(catalog, *flags, engine_version="0.31.0")
    assert "0.32.0 to 0.32.0 have it" in problem.repair


def test_a_plugin_may_bring_a_parser(catalog):
    """Then its name cannot be known."""
    flags = ("--tool-call-parser=mine", "--tool-parser-plugin=/x.py")
    assert ["hint foreign_code"] == codes(found(catalog, *flags))


JSON_KEYS = [
    ("-cc.cudagraph_mode=PIECEWISE", "-cc.cudagraph_mod=PIECEWISE", "cudagraph_mode"),
    (
        '--compilation-config={"pass_config":{"enable_sp":true}}',
        '--compilation-config={"pass_config":{"enable_ps":true}}',
        "pass_config.enable_sp",
    ),
    (
        "--structured-outputs-config.backend=xgrammar",
        "--structured-outputs-config.bakend=xgrammar",
        "backend",
    ),
    (
        '-cc.inductor_compile_config={"any":{"key":1}}',
        '-cc={"inductor_compile_confg":{"any":1}}',
        "inductor_compile_config",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "near"), JSON_KEYS)
def test_keys_inside_json_are_known(catalog, right, wrong, near):
    """By whichever name of the option, in one piece or key by key; free parts stay free."""
    assert [] == found(catalog, right)
    said = found(catalog, wrong)
    assert {"error unknown_json_key"} == set(codes(said))
    assert near in said[0].repair


@pytest.mark.parametrize(
    "value", ["[" * 100_000, '{"mode":' * 5_000 + "1" + "}" * 5_000, "{", "NaN"]
)
def test_json_that_cannot_be_read_is_one_error_and_no_traceback(catalog, value):
    """However deep it is nested; its keys are not asked about then."""
    said = codes(found(catalog, f"--compilation-config={value}"))
    assert said in (["error bad_json"], [])


def test_fields_of_speculation_are_keys_of_the_version(catalog):
    """draft_sample_method is a key of 0.31.0's option."""
    fields = {"method": "mtp", "num_speculative_tokens": 2, "draft_sample_method": "greedy"}
    assert [] == found(catalog, speculative=Speculative(**fields))
    known = names_of("vllm", "0.25.1")
    assert known is not None
    for name in Speculative.model_fields:
        assert name in known.json_keys["--speculative-config"]


def test_a_field_of_speculation_that_the_version_has_no_key_for_is_an_error(catalog, monkeypatch):
    """No recorded release lacks one: asked about one that does, made up of a real one."""
    real = names_of("vllm", "0.31.0")
    assert real is not None
    few = {"--speculative-config": frozenset({"method", "num_speculative_tokens"})}
    older = dataclasses.replace(real, json_keys={**real.json_keys, **few})
    monkeypatch.setattr(problems, "names_of", lambda *_: older)
    fields = {"method": "mtp", "num_speculative_tokens": 2}
    assert [] == found(catalog, speculative=Speculative(**fields))
    [problem] = found(catalog, speculative=Speculative(**fields, draft_sample_method="greedy"))
    assert ("error", "unknown_json_key") == (problem.level, problem.code)
    assert ("speculative", "draft_sample_method") == problem.path


CONFLICTS = [
    ({"flags": ("--enable-auto-tool-choice",)}, "error flag_needs_other"),
    ({"flags": ("--enable-log-outputs",)}, "error flag_needs_other"),
    ({"flags": ("--enforce-eager", "-O3")}, "hint conflicting_flags"),
    ({"flags": ("--enforce-eager", "-cc.cudagraph_mode=PIECEWISE")}, "hint conflicting_flags"),
    (
        {"flags": ("--no-enable-chunked-prefill", "--max-num-batched-tokens=8192")},
        "error conflicting_flags",
    ),
    ({"flags": ("--max-num-batched-tokens=2",)}, "error conflicting_flags"),
    ({"flags": ("--kv-cache-memory-bytes=8G",)}, "hint conflicting_flags"),
    (
        {"flags": ("--language-model-only",), "capabilities": ("text", "image")},
        "error conflicting_flags",
    ),
    (
        {"flags": ("--limit-mm-per-prompt.image=0",), "capabilities": ("text", "image")},
        "error conflicting_flags",
    ),
    (
        {"flags": ('--limit-mm-per-prompt={"image": 0}',), "capabilities": ("text", "image")},
        "error conflicting_flags",
    ),
    ({"flags": ("--quantization=modelopt_fp4",), "quant": "fp8"}, "error quantization_mismatch"),
    ({"flags": ("--quantization=awq",), "quant": "nvfp4"}, "error quantization_mismatch"),
    ({"flags": ("--quantization=fp8",), "quant": "nvfp4-nvidia"}, "error quantization_mismatch"),
    (
        {
            "flags": ("--async-scheduling",),
            "speculative": Speculative(method="ngram", num_speculative_tokens=3),
        },
        "error conflicting_flags",
    ),
]


@pytest.mark.parametrize(("fields", "code"), CONFLICTS)
def test_a_contradiction_is_found(catalog, fields, code):
    """Between flags, with a field, or with the checkpoint."""
    assert [code] == codes(found(catalog, *fields.pop("flags"), **fields))


AGREEING: list[dict[str, Any]] = [
    {"flags": TOOLS},
    {"flags": ("--no-enable-auto-tool-choice",)},
    {"flags": ("--enable-log-outputs", "--enable-log-requests")},
    {"flags": ("--enforce-eager", "-O0")},
    {"flags": ("--no-enforce-eager", "-cc.cudagraph_mode=PIECEWISE")},
    {"flags": ("--enable-chunked-prefill", "--max-num-batched-tokens=8192")},
    {"flags": ("--no-enable-chunked-prefill", "--max-num-batched-tokens=64k")},
    {"flags": ("--language-model-only",)},
    {"flags": ("--limit-mm-per-prompt.image=4",), "capabilities": ("text", "image")},
    {"flags": ("--limit-mm-per-prompt.video=0",), "capabilities": ("text", "image")},
    {"flags": ('--limit-mm-per-prompt={"image": 10}',), "capabilities": ("text", "image")},
    {"flags": ("--quantization=modelopt_fp4",), "quant": "nvfp4"},
    {"flags": ("--quantization=fp8",), "quant": "bf16"},
    {"flags": ("--quantization=compressed-tensors",), "quant": "nvfp4"},
    {
        "flags": ("--async-scheduling",),
        "speculative": Speculative(method="mtp", num_speculative_tokens=3),
    },
]


@pytest.mark.parametrize("fields", AGREEING)
def test_what_agrees_is_not_complained_of(catalog, fields):
    """The same options where they fit together."""
    assert [] == found(catalog, *fields.pop("flags"), **fields)


def test_the_fraction_is_free_where_the_cache_has_a_size(catalog):
    """Without a fraction the two do not meet."""
    serving = Serving(
        context_tokens=32768, users=4, kv_cache_dtype="fp8", gpu_memory_utilization=None
    )
    assert [] == found(catalog, "--kv-cache-memory-bytes=8G", serving=serving)


def test_another_version_and_a_patched_build_are_not_checked(catalog):
    """Said as a hint; what does not hang on the version still is."""
    flags = ("--no-such-flag", "--seed=1", "--seed=2")
    built = catalog.recipe("tiny-8b-fp8-vllm").image.model_copy(
        update={"local_build": LocalBuild(how="docker build .", source="made up")}
    )
    for fields in ({"engine_version": "0.28.0"}, {"engine_version": None}, {"image": built}):
        said = found(catalog, *flags, **fields)
        assert ["hint flags_not_checked", "error duplicate_flag"] == codes(said)
        assert said[0].message.startswith("not checked: which flags ")
        assert [] == env_found(catalog, {"VLLM_NO_SUCH": "1"}, **fields)
    assert "built as the recipe says" in said[0].message


def env_found(catalog: Catalog, env: dict[str, str], **fields: Any) -> list[FlagProblem]:
    """Return what is wrong with the variables of a recipe."""
    recipe = recipe_with(catalog, "--seed=1", env=env, **fields)
    return list(env_problems(recipe, catalog.engine("vllm")))


def test_variables_of_the_engine_are_known_by_version(catalog):
    """Misspelt, gone, too new, replaced; other programs' variables are none of its business."""
    assert [] == env_found(catalog, {"VLLM_USE_FLASHINFER_SAMPLER": "1", "CUTE_DSL_ARCH": "x"})
    said = {
        problem.path[1]: problem.repair
        for problem in env_found(
            catalog,
            {
                "VLLM_USE_FLASHINFER_SAMPLR": "1",
                "VLLM_TEST_FORCE_FP8_MARLIN": "1",
                "VLLM_P2P_MAX_PEERS": "1",
                "VLLM_NVFP4_GEMM_BACKEND": "marlin",
                "VLLM_PLE_MMAP": "1",
            },
        )
    }
    assert "did you mean VLLM_USE_FLASHINFER_SAMPLER" in said["VLLM_USE_FLASHINFER_SAMPLR"]
    assert "0.27.1 is the last" in said["VLLM_TEST_FORCE_FP8_MARLIN"]
    assert "use 0.32.0 or newer" in said["VLLM_P2P_MAX_PEERS"]
    assert "--linear-backend" in said["VLLM_NVFP4_GEMM_BACKEND"]
    assert "remove it" == said["VLLM_PLE_MMAP"]


def test_a_joined_or_repeated_flag_can_be_put_right(catalog):
    """One item of name and value, and the same flag twice in other words; not two values."""
    [joined] = found(catalog, "--seed 7")
    assert joined.fix is not None
    assert ("--seed=7",) == joined.fix.items
    [again] = found(catalog, "--seed=7", "--seed", "7")
    assert again.fix is not None
    assert ((), 2, ("flags", 1)) == (again.fix.items, again.fix.count, again.fix.path)
    [other] = found(catalog, "--seed=7", "--seed=8")
    assert other.fix is None


def test_what_is_recorded_belongs_to_the_recorded_versions():
    """The three files of an engine speak of the same releases, and of options that exist."""
    table = option_table("vllm")
    assert table is not None
    assert VERSIONS == table.versions
    recorded = json.loads((data_root() / "catalog/engines/names/vllm.json").read_text())
    assert list(VERSIONS) == recorded["versions"]
    for version in VERSIONS:
        names, options = names_of("vllm", version), table.of(version)
        assert names is not None
        assert options is not None
        assert {"hermes", "openai", "qwen3_coder"} <= names.tool_parsers
        for option, keys in names.json_keys.items():
            assert not keys or options[option].takes == "json", (version, option)


def test_every_former_option_is_gone_or_has_a_successor():
    """And no variable is called former that a recorded release still knows."""
    table = option_table("vllm")
    assert table is not None
    newest = table.of("0.32.0") or {}
    for former in renamed_options("vllm").values():
        assert former.new is not None or former.instead
        for item in former.new or ():
            assert item.partition("=")[0].partition(".")[0] in newest, former.old
    known = set().union(*(n.env for v in VERSIONS if (n := names_of("vllm", v))))
    assert set() == known & former_variables("vllm").keys()
