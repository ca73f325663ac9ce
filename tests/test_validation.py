"""`validate`: every fault has its place and repair, and no fault is accepted."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkrecipes.catalog import Catalog, data_root, open_catalog, validate, validate_text
from sparkrecipes.catalog.kinds import kind_of
from sparkrecipes.engine_flags import flag_problems, given_flags, known_versions
from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.schema.findings import Problem

DATA = Path(__file__).parent / "data"
FAULTS = DATA / "recipes"
GOOD = (DATA / "catalog" / "recipes" / "tiny-8b-fp8-vllm.yaml").read_text()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def catalog() -> Catalog:
    """The small catalog of the tests."""
    return open_catalog(DATA / "catalog")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the small catalog that a test may break."""
    return Path(shutil.copytree(DATA / "catalog", tmp_path / "catalog"))


def problems_of(path: Path, catalog: Catalog | None = None) -> list[Problem]:
    """Return the problems of one file."""
    return list(validate([path], catalog).problems)


def changed(
    copy: Path, old: str, new: str, file: str = "recipes/tiny-8b-fp8-vllm.yaml"
) -> list[Problem]:
    """Replace a text in a file of the copy and return the problems of that file."""
    path = copy / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return problems_of(path)


def places(problems: list[Problem]) -> list[str]:
    """Return problems as ``line:column level code``."""
    return [f"{p.line}:{p.column} {p.level} {p.code}" for p in problems]


EXPECTED = {
    "unquoted_version": ["12:1 error wrong_type"],
    "boolean_words": ["23:20 error ambiguous", "24:20 error ambiguous", "25:11 error ambiguous"],
    "duplicate_key": ["16:3 error duplicate_key"],
    "anchor_bomb": ["2:4 error alias"],
    "tab": ["23:1 error tab"],
    "doubled_braces": ["22:5 error bad_json"],
    "foreign_format": [
        *["2:1 error missing_key"] * 11,
        "2:1 error unknown_key",
        "4:1 error unknown_key",
        "5:1 error unknown_key",
    ],
    "flag_twice": ["23:5 error duplicate_flag"],
    "moving_tag": ["9:3 hint moving_tag", "10:1 error not_reproducible"],
    "several_nodes": ["11:1 error unsupported_topology", "23:5 error unsupported_topology"],
    "unknown_keys": [
        "2:1 error missing_key",
        "13:1 error unknown_key",
        "14:1 error missing_key",
        "16:3 error unknown_key",
        "24:1 error unknown_key",
    ],
    "unknown_ids": [
        "3:1 error unknown_model",
        "11:1 error unknown_engine",
        "29:5 error unknown_evidence",
        "30:5 error unknown_evidence",
    ],
    "wrong_types": [
        "2:1 error wrong_type",
        "10:3 error wrong_value",
        "16:3 error wrong_type",
        "17:3 error wrong_value",
        "18:3 error out_of_range",
        "24:1 error wrong_type",
        "25:1 error wrong_type",
    ],
    "unknown_flags": [
        "22:5 error abbreviated_flag",
        "23:5 error removed_flag",
        "24:5 error unknown_flag",
        "25:5 error flag_value",
        "26:5 error flag_value",
        "27:5 error joined_flag",
        "30:5 error flag_choice",
        "32:5 error duplicate_flag",
        "32:5 error flag_value",
    ],
    "field_flags": [f"{line}:5 error field_flag" for line in (22, 23, 24, 26)],
    "secrets": ["22:5 error secret", *[f"{line}:3 error secret" for line in (24, 25, 26, 27)]],
    "foreign_code": [
        "22:5 hint foreign_code",
        "24:3 error dangerous_env",
        "25:3 error dangerous_env",
    ],
    "tools_without_parser": ["20:5 error flag_needs_other", "26:5 error tools_without_parser"],
    "context_above_model": ["15:3 error context_above_model"],
    "drafter_missing": ["20:3 error drafter_missing"],
    "not_pinned": ["6:3 hint revision_not_pinned", "9:3 hint image_not_pinned"],
    "option_as_image": ["9:3 error wrong_value"],
}


def test_every_fault_file_is_expected():
    """A file without an expectation would test nothing."""
    assert sorted(EXPECTED) == sorted(path.stem for path in FAULTS.glob("*.yaml"))


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_has_its_places(catalog, fault):
    """Everything that is wrong with the file, by line, and nothing else."""
    report = validate([FAULTS / f"{fault}.yaml"], catalog)
    assert EXPECTED[fault] == places(list(report.problems))
    assert report.valid == ("error" not in " ".join(EXPECTED[fault]))
    assert {str(FAULTS / f"{fault}.yaml")} == {problem.file for problem in report.problems}


def only(fault: str, catalog: Catalog, code: str) -> Problem:
    """Return the one problem of a code in a fault file."""
    found = problems_of(FAULTS / f"{fault}.yaml", catalog)
    [problem] = [problem for problem in found if problem.code == code]
    return problem


def test_c01_an_unquoted_version_is_quoted_as_it_was_written(catalog):
    """C01: 0.10 is the float 0.1; the repair has the zero that loading lost."""
    problem = only("unquoted_version", catalog, "wrong_type")
    assert "engine_version: 0.10 is read as a number, but text is wanted" in problem.message
    assert 'write engine_version: "0.10"' == problem.repair


def test_c02_words_that_are_booleans_are_quoted(catalog):
    """C02: off, yes and no; y stays a text."""
    repairs = [problem.repair for problem in problems_of(FAULTS / "boolean_words.yaml", catalog)]
    assert [f'write true or false, or quote it: "{w}"' for w in ("off", "yes", "no")] == repairs


def test_c04_a_duplicate_key_names_both_lines(catalog):
    """C04: the last would win silently."""
    problem = only("duplicate_key", catalog, "duplicate_key")
    assert "the key 'context_tokens' is given twice: lines 15 and 16" == problem.message


def test_c05_an_anchor_bomb_is_refused_at_once(catalog):
    """C05: refused before it is walked."""
    begin = time.process_time()
    assert not validate([FAULTS / "anchor_bomb.yaml"], catalog).valid
    assert time.process_time() - begin < 0.5


def test_c06_a_tab_names_its_place(catalog):
    """C06: the message names line and column, the repair the spaces."""
    problem = only("tab", catalog, "tab")
    assert (23, 1, "replace the tab by spaces") == (problem.line, problem.column, problem.repair)


def test_c08_doubled_braces_are_explained(catalog):
    """C08: JSON inside a flag is parsed, and what a template left is named."""
    problem = only("doubled_braces", catalog, "bad_json")
    assert "--limit-mm-per-prompt: the value is not valid JSON" in problem.message
    assert "braces are doubled" in problem.message


def test_c09_all_findings_of_a_foreign_file_come_in_one_pass(catalog):
    """C09: the version key, the missing title and the container, each with what stands for it."""
    repairs = {p.message: p.repair for p in problems_of(FAULTS / "foreign_format.yaml", catalog)}
    assert "no version key" in repairs["unknown key recipe_version"]
    assert "digest" in repairs["unknown key container"]
    assert "the key title is missing" in repairs


def test_c10_a_flag_given_twice_names_the_value_that_would_win(catalog):
    """C10: dashes and underscores, one item or two are the same flag; argparse takes the last."""
    problem = only("flag_twice", catalog, "duplicate_flag")
    assert "--max_num_batched_tokens is given twice (item 3 too)" in problem.message
    assert "the engine would take the last: 16384" in problem.message


def test_c10_a_flag_that_repeats_a_field_is_an_error(catalog, copy):
    """C10: the case's own flag, --max-model-len, is a field here: memory is reckoned by it."""
    found = changed(copy, "flags:\n", "flags:\n  - --max-model-len\n  - '131072'\n")
    assert ["20:5 error field_flag"] == places(found)
    assert "remove the flag and set serving.context_tokens" == found[0].repair


def test_c12_a_moving_tag_is_a_hint_and_a_patch_an_error(catalog):
    """C12: not reproducible, by the tag and by the patch at start."""
    hint, error = problems_of(FAULTS / "moving_tag.yaml", catalog)
    assert "the tag latest moves" in hint.message
    assert "patched when it starts" in error.repair


def test_c14_several_nodes_are_refused(catalog):
    """C14: one GB10 shows one GPU."""
    key, flag = problems_of(FAULTS / "several_nodes.yaml", catalog)
    assert "a recipe is for one Spark" in key.repair
    assert "-tp 8" in flag.message


def test_secrets_are_not_repeated_in_what_is_said(catalog):
    """Neither message nor repair holds the value."""
    said = " ".join(
        f"{p.message} {p.repair}" for p in problems_of(FAULTS / "secrets.yaml", catalog)
    )
    assert "hf_abc" not in said
    assert "letmein" not in said


def test_unknown_keys_are_answered_with_the_nearest(catalog):
    """Also where the key belongs one level down."""
    repairs = [p.repair for p in problems_of(FAULTS / "unknown_keys.yaml", catalog)]
    assert "did you mean served_model_name?" in repairs
    assert "did you mean users?" in repairs
    assert "did you mean serving: {context_tokens: ...}?" in repairs


def test_unknown_ids_are_answered_with_the_nearest(catalog):
    """Models, engines and evidence rows."""
    repairs = [p.repair for p in problems_of(FAULTS / "unknown_ids.yaml", catalog)]
    wanted = ["tiny-8b", "vllm", "round#a", "round#tiny-8b-fp8-vllm"]
    assert [f"did you mean {word}?" for word in wanted] == repairs


def test_an_unknown_flag_is_answered_by_version(catalog):
    """A misspelt flag, one that was removed, and one that is too new."""
    found = problems_of(FAULTS / "unknown_flags.yaml", catalog)
    codes = ("abbreviated_flag", "unknown_flag", "removed_flag")
    near, removed, newer = [p.repair for p in found if p.code in codes]
    assert "write --enable-prefix-caching" == near
    assert "remove it: 0.27.1 is the last that has it" == removed
    assert "remove it, or use 0.32.0 or newer" == newer


CHANGES = [
    ("id key", "title:", "id: x\ntitle:", "2:1 error id_key"),
    ("empty text", "title: Tiny 8B FP8", 'title: ""', "2:1 error wrong_length"),
    ("empty list", "sources:\n  - made up for the tests", "sources: []", "30:1 error wrong_length"),
    ("list for mapping", "weights:\n", "weights: []\nenv2:\n", "5:1 error wrong_type"),
    ("number in env", '"1"', "1", "23:3 error wrong_type"),
    ("env name", "HF_HUB_OFFLINE", "HF-HUB", "23:3 error wrong_value"),
    ("unknown variable", "HF_HUB_OFFLINE", "VLLM_NO_SUCH", "23:3 hint unknown_env"),
    ("unknown build", "quant: fp8", "quant: fp4", "4:1 error unknown_build"),
    ("other repository", "Tiny-8B-FP8", "Tiny-8B-FP9", "6:3 hint unknown_build"),
    ("unknown modality", "  - text\n", "  - text\n  - image\n", "27:5 hint unknown_modality"),
    ("no row named", "round#tiny-8b-fp8-vllm", "round", "29:5 error unknown_evidence"),
    ("tag and version", "v0.31.0-aarch64", "v0.32.0", "12:1 hint version_mismatch"),
    ("no tag", ":v0.31.0-aarch64\n  digest: sha256:" + "a" * 64, "", "9:3 hint moving_tag"),
    (
        "unused drafter",
        "image:\n",
        "drafter:\n  repo: a/b\n  revision: null\nimage:\n",
        "8:1 error",
    ),
    ("version not recorded", '"0.31.0"', '"0.28.0"', "12:1 hint flags_not_checked"),
    ("version not named", '"0.31.0"', "null", "12:1 hint flags_not_checked"),
]


@pytest.mark.parametrize(
    ("old", "new", "place"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_a_small_change_of_a_good_recipe_is_found(copy, old, new, place):
    """Each rule that has no file of its own."""
    assert place in " | ".join(places(changed(copy, old, new)))


FLAGS = [
    ("--no-enable-auto-tool-choice", "error duplicate_flag"),
    ("--speculative-config=mtp", "error field_flag"),
    ('--hf-overrides={"a": 1', "error bad_json"),
    ('--hf-overrides={"a": 1, "a": 2}', "error bad_json"),
    ("--hf-overrides=rope", "error bad_json"),
    ("--hf-overrides=" + "[" * 100_000, "error bad_json"),
    ("--hf-overrides=" + '{"a":' * 65 + "1" + "}" * 65, "error bad_json"),
    ("--distributed-executor-backend=ray", "error unsupported_topology"),
    ("--chat-template=<wieghts>/x", "error unknown_placeholder"),
    ("--chat-template=<drafter>/x", "error unknown_placeholder"),
    ("--download-dir=$HOME", "hint shell_syntax"),
    ("--dtype=nvidia", "error flag_choice"),
    ("value", "error stray_argument"),
    ("--hf-token=hf_abcdefghijklmnopqrstuvwx", "error secret"),
    ("--host=0.0.0.0", "error field_flag"),
    ("--model=x", "error field_flag"),
    ("--spec-method=mtp", "error field_flag"),
    ("-pp=2", "error unsupported_topology"),
    ("--middleware=a.b", "hint foreign_code"),
]


@pytest.mark.parametrize(("flag", "expected"), FLAGS, ids=[f[0][:30] for f in FLAGS])
def test_a_wrong_flag_is_found(copy, flag, expected):
    """The flag stands first in the list, at line 20 (or 21 where it is one too many)."""
    found = changed(copy, "flags:\n", f"flags:\n  - '{flag}'\n")
    assert expected in {f"{p.level} {p.code}" for p in found}
    assert {20, 21} >= {p.line for p in found}


GOOD_FLAGS = [
    "-cc.cudagraph_mode=PIECEWISE",
    '-cc.splitting_ops=["a::b"]',
    "--no-enable-prefix-caching",
    '--limit-mm-per-prompt={"image":4}',
    "--hf_overrides.max_position_embeddings=1",
    '--additional-config={"cpu_bytes_to_use": 80m}',
    "-O3",
    "--chat-template=<weights>/chat_template.jinja",
    "--chat-template={% if a %}$b{% endif %}",
    "--tensor-parallel-size=1",
]


@pytest.mark.parametrize("flag", GOOD_FLAGS)
def test_a_right_flag_is_not_complained_of(copy, flag):
    """What vLLM 0.31.0 takes."""
    assert [] == changed(copy, "flags:\n", f"flags:\n  - '{flag}'\n")


def test_keys_of_one_option_may_be_given_one_by_one(copy):
    """But not the same key twice, nor beside the whole value, which would be dropped."""
    one, other = "--limit-mm-per-prompt.image=2", "--limit-mm-per-prompt.video=0"
    assert [] == changed(copy, "flags:\n", f"flags:\n  - {one}\n  - {other}\n")
    again = changed(copy, f"  - {other}\n", f"  - {one}\n")
    whole = changed(copy, f"  - {one}\n", "  - '--limit-mm-per-prompt={}'\n")
    assert ["21:5 error duplicate_flag"] * 2 == [*places(again), *places(whole)]


def test_a_list_may_be_given_item_by_item(copy):
    """A key that ends in + adds to a list, so it may come again."""
    flags = "flags:\n  - -cc.splitting_ops+=a\n  - -cc.splitting_ops+=b\n"
    assert [] == changed(copy, "flags:\n", flags)


def test_a_repeatable_option_may_repeat(copy):
    """VLLM appends every --middleware."""
    flags = "flags:\n  - --middleware=a.b\n  - --middleware=c.d\n"
    assert {"foreign_code"} == {p.code for p in changed(copy, "flags:\n", flags)}


def test_a_rope_override_allows_a_longer_context(copy):
    """In one piece, key by key, or by the older flag; another override does not."""
    longer = ("context_tokens: 32768", "context_tokens: 131072")
    assert ["15:3 error context_above_model"] == places(changed(copy, *longer))
    for flag in (
        '--hf-overrides={"rope_parameters":{}}',
        "--hf-overrides.rope_parameters.factor=4",
    ):
        text = (copy / "recipes/tiny-8b-fp8-vllm.yaml").read_text()
        assert [] == changed(copy, "flags:\n", f"flags:\n  - '{flag}'\n")
        (copy / "recipes/tiny-8b-fp8-vllm.yaml").write_text(text)
    other = "flags:\n  - '--hf-overrides={\"max_position_embeddings\":131072}'\n"
    assert ["15:3 error context_above_model"] == places(changed(copy, "flags:\n", other))


def test_an_older_rope_flag_counts_too(copy):
    """Images older than the recorded releases have --rope-scaling."""
    changed(copy, "context_tokens: 32768", "context_tokens: 131072")
    changed(copy, '"0.31.0"', "null")
    found = changed(copy, "flags:\n", "flags:\n  - '--rope-scaling={}'\n")
    assert ["12:1 hint flags_not_checked"] == places(found)


def test_a_drafter_that_nothing_uses_is_an_error(copy):
    """N-grams come from the prompt."""
    drafter = "drafter:\n  repo: a/b\n  revision: " + "a" * 40 + "\n"
    ngram = "speculative:\n  method: ngram\n  num_speculative_tokens: 3\n"
    assert ["8:1 error unused_drafter"] == places(changed(copy, "image:", f"{drafter}image:"))
    assert ["8:1 error unused_drafter"] == places(changed(copy, "flags:", f"{ngram}flags:"))
    assert [] == changed(copy, "method: ngram", "method: eagle3")


@pytest.mark.parametrize("value", ["0", "auto", "-1", "4.0", " 4"])
def test_compilers_that_nothing_bounds_are_a_fault(copy, value):
    """Ninja takes 0 as no bound, and what is no number is not read: fit could promise nothing."""
    found = changed(copy, 'HF_HUB_OFFLINE: "1"', f'MAX_JOBS: "{value}"')
    assert ["23:3 error bad_value"] == places(found)


def test_compilers_that_are_bounded_are_fine(copy):
    """A whole number from 1 on is the recipe's own choice."""
    assert [] == changed(copy, 'HF_HUB_OFFLINE: "1"', 'MAX_JOBS: "4"')


def test_a_secret_is_one_by_the_engine_too(copy):
    """Whatever it is called."""
    changed(copy, "VLLM_API_KEY", "MY_LOGIN", "engines/vllm.yaml")
    assert ["23:3 error secret"] == places(changed(copy, "HF_HUB_OFFLINE", "MY_LOGIN"))


def test_what_follows_from_another_fault_is_not_said(copy):
    """A list with a wrong item is not also called too short."""
    found = changed(copy, "  - made up for the tests", "  - 8")
    assert ["31:5 error wrong_type"] == places(found)
    assert 'write - "8"' == found[0].repair


def test_a_key_of_a_mapping_is_named_as_it_stands(copy):
    """Without pydantic's own words for it."""
    [problem] = changed(copy, "HF_HUB_OFFLINE", "HF-HUB")
    assert "env.HF-HUB: HF-HUB is not letters, digits and _" == problem.message


def test_known_keys_are_those_of_the_layers_kind(copy):
    """A full-attention layer is not told of a window."""
    layer = "    count: 32\n"
    found = changed(copy, layer, f"{layer}    window_token: 5\n", "models/tiny-8b.yaml")
    assert ["known here: count, head_dim_k, head_dim_v, kind, kv_heads"] == [
        p.repair for p in found
    ]


def test_mtp_needs_layers_or_a_drafter(copy):
    """None in the checkpoint is an error; not known is a hint."""
    mtp = copy / "recipes" / "tiny-8b-fp8-vllm-mtp.yaml"
    seen = []
    for old, new in (("mtp_layers: 1", "mtp_layers: 0"), ("mtp_layers: 0", "mtp_layers: null")):
        assert [] == changed(copy, old, new, "models/tiny-8b.yaml")
        seen += places(problems_of(mtp))
    assert ["20:3 error drafter_missing", "20:3 hint drafter_missing"] == seen


def test_tools_need_no_parser_where_the_engine_is_not_known(copy):
    """NIM sets its parsers itself; its options are not recorded, which is a hint."""
    other = copy / "engines" / "other.yaml"
    assert [] == problems_of(other)
    found = changed(copy, "engine: vllm", "engine: other")
    assert ["12:1 hint flags_not_checked"] == places(found)
    found = changed(copy, "  - --tool-call-parser=hermes\n", "")
    assert ["12:1 hint flags_not_checked"] == places(found)
    text = "  OTHER_ARGS: x\n"
    found = changed(copy, '  HF_HUB_OFFLINE: "1"\n', text)
    assert "22:3 error field_flag" in places(found)


OTHER_KINDS = [
    ("models/tiny-8b.yaml", "  mtp_layers: made up\n", "", "2:1 error wrong_value"),
    ("models/tiny-8b.yaml", "  mtp_layers: made", "  mtp_layer: made", "2:1 error wrong_value"),
    ("models/tiny-8b.yaml", "  layers: made up", "  layers: x\n  ctx: y", "28:3 hint unknown_key"),
    ("models/tiny-8b.yaml", "full_attention", "full_atention", "10:5 error wrong_value"),
    (
        "models/tiny-8b.yaml",
        "  - kind: full_attention\n    count",
        "  - count",
        "10:5 error missing",
    ),
    ("models/tiny-8b.yaml", "    kv_heads: 8\n", "    kv_head: 8\n", "12:5 error unknown_key"),
    (
        "models/tiny-8b.yaml",
        "8B-NVFP4\n    quant: nvfp4",
        "8B-FP8\n    quant: fp8",
        "21:5 error duplicate_id",
    ),
    ("engines/vllm.yaml", "kv_rules: vllm", "kv_rules: sglang", "23:1 error wrong_value"),
    ("engines/vllm.yaml", "arguments: command", "arguments: env", "3:1 error missing_key"),
    (
        "engines/vllm.yaml",
        "sources:",
        "milestones:\n  - {pattern: '(', says: x}\nsources:",
        "25:6 error",
    ),
    (
        "engines/vllm.yaml",
        "sources:",
        'default_gpu_memory_utilization: {"1.0": 9}\nsources:',
        "24:34 error out_of_range",
    ),
    ("evidence/round.yaml", '"2026-10-06"', "6 October", "14:5 error wrong_value"),
    (
        "evidence/round.yaml",
        "id: tiny-8b-fp8-vllm-mtp",
        "id: tiny-8b-fp8-vllm",
        "26:5 error duplicate_id",
    ),
    (
        "evidence/round.yaml",
        "figures: [single_user_tok_s]",
        "figures: [tok_s]",
        "40:19 error wrong_value",
    ),
    ("use_cases/agents.yaml", "[agent, tools]", "[agent, Agent]", "6:15 error duplicate_id"),
    ("use_cases/agents.yaml", "en: agents", "de: Agenten", "3:3 error wrong_value"),
    (
        "use_cases/agents.yaml",
        "needs: [text",
        "means: {tools: [tools, gear]}\nneeds: [text",
        "8:24 error unknown_synonym",
    ),
    ("machines/box.yaml", "1000000000\n", "99000000000\n", "6:1 error out_of_range"),
    (
        "diagnoses/out_of_memory.yaml",
        "CUDA out of memory.",
        "CUDA oom.",
        "8:1 error example_not_found",
    ),
    ("does_not_run.yaml", "model: tiny-8b", "model: tiny-8", "4:5 error unknown_model"),
    ("does_not_run.yaml", "kind: engine", "kind: engin", "8:5 error wrong_value"),
]


@pytest.mark.parametrize(("file", "old", "new", "place"), OTHER_KINDS)
def test_other_kinds_are_held_as_strictly(copy, file, old, new, place):
    """Every kind of file has its types and rules."""
    assert place in " | ".join(places(changed(copy, old, new, file)))


def test_the_small_catalog_is_right(catalog):
    """What the faults are made from has none, not even a hint."""
    report = validate([DATA / "catalog"])
    assert ((), 12, True) == (report.problems, report.files, report.valid)


def test_the_shipped_catalog_is_right():
    """No error, and hints only of what the sources did not record."""
    report = validate([data_root() / "catalog"])
    assert [] == [problem for problem in report.problems if problem.level == "error"]
    assert report.files > 80
    assert {p.code for p in report.problems} <= {
        "drafter_missing",
        "flags_not_checked",
        "foreign_code",
        "image_not_pinned",
        "moving_tag",
        "revision_not_pinned",
        "unknown_build",
        "unknown_env",
        "unknown_modality",
    }


def test_a_folder_is_walked_by_kind(copy):
    """A catalog, one of its folders, and a folder of recipes outside of any."""
    assert 12 == validate([copy]).files
    assert 4 == validate([copy / "recipes"]).files
    assert 2 == validate([copy / "engines"]).files
    outside = copy.parent / "mine"
    outside.mkdir()
    shutil.copy(copy / "recipes" / "tiny-8b-fp8-vllm.yaml", outside)
    assert (1, ()) == (lambda r: (r.files, r.problems))(validate([outside], open_catalog(copy)))


def test_a_file_is_validated_once(copy):
    """However often it is named."""
    file = copy / "recipes" / "tiny-8b-fp8-vllm.yaml"
    assert 4 == validate([file, copy / "recipes", file]).files


def test_a_file_of_a_catalog_is_checked_against_its_own(copy):
    """Not against the one that the command opened."""
    shipped = open_catalog(data_root() / "catalog")
    assert [] == problems_of(copy / "recipes" / "tiny-8b-fp8-vllm.yaml", shipped)


def test_what_lies_beside_is_hinted_at(copy):
    """A wrong ending and a misspelt folder are not silently left out."""
    (copy / "recipes" / "mine.yml").write_text(GOOD)
    (copy / "model").mkdir()
    report = validate([copy])
    assert ["file_name", "unknown_folder"] == [problem.code for problem in report.problems]
    assert ["rename it to mine.yaml", "did you mean models/?"] == [
        p.repair for p in report.problems
    ]
    assert report.valid


def test_a_path_that_is_not_there_is_misuse(tmp_path):
    """Nothing was validated: that is no verdict."""
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(Misuse) as caught:
            validate([path])
        assert ("no_file", 2) == (caught.value.code, caught.value.exit_code)


def test_the_kind_follows_from_folder_name_or_schema_line():
    """The folder first, then the line for editors, else a recipe."""
    line = "# yaml-language-server: $schema=../schemas/machine.schema.json\n"
    assert "models" == kind_of(Path("/x/models/a.yaml"), line)
    assert "machines" == kind_of(Path("/x/y/a.yaml"), line)
    assert "does_not_run.yaml" == kind_of(Path("does_not_run.yaml"))
    assert "recipes" == kind_of(Path("/x/a.yaml"), "# yaml-language-server: $schema=other.json\n")
    assert "recipes" == kind_of(Path("/x/a.yaml"))


def test_the_text_of_a_recipe_is_one_in_any_folder(tmp_path, monkeypatch, catalog):
    """Who imports into a folder that is called models gets a recipe checked, not a model."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert () == validate_text(GOOD, "x.yaml", catalog)


@pytest.mark.parametrize("text", ["", "- a\n", "a\n", "null\n", "8\n"])
def test_what_is_no_mapping_is_said_to_be_none(copy, text):
    """Empty files, lists and single values."""
    path = copy / "recipes" / "x.yaml"
    path.write_text(text)
    assert ["1:1 error wrong_type"] == places(problems_of(path))


def test_a_file_name_that_is_no_id_is_an_error(copy):
    """Ids are typed by people and stand in container names."""
    path = copy / "recipes" / "My Recipe.yaml"
    path.write_text(GOOD)
    assert ["2:1 error file_name"] == places(problems_of(path))


def test_a_broken_model_does_not_hide_the_recipe(copy):
    """The recipe's own problems are still found; the model's are its own."""
    (copy / "models" / "tiny-8b.yaml").write_text("title: x\n")
    found = changed(copy, "engine: vllm", "engine: vlm")
    assert ["11:1 error unknown_engine"] == places(found)
    assert {"models", "recipes"} == {Path(p.file).parent.name for p in validate([copy]).problems}


def test_huge_and_unreadable_files_are_problems(copy):
    """10 MB, a pipe: refused unread, and the other files are validated all the same."""
    huge = copy / "recipes" / "huge.yaml"
    huge.touch()
    os.truncate(huge, 10_000_000)
    os.mkfifo(copy / "recipes" / "pipe.yaml")
    report = validate([copy])
    assert ["too_large", "not_a_file"] == [problem.code for problem in report.problems]
    assert 14 == report.files


def test_validation_changes_nothing_on_disk(copy):
    """Neither files nor cache."""
    before = sorted((p, p.stat().st_mtime_ns) for p in copy.parent.rglob("*"))
    validate([copy])
    assert before == sorted((p, p.stat().st_mtime_ns) for p in copy.parent.rglob("*"))


def test_flags_are_taken_apart_as_the_engine_does():
    """Names, keys, values in one item or two."""
    given, stray = given_flags(["x", "--a_b=1", "--c.d_e", "2", "3", "-tp", "4", "-O3", "--f g"])
    assert [0] == stray
    assert [
        ("--a-b", "", "1"),
        ("--c", "d_e", "2"),
        ("-tp", "", "4"),
        ("--optimization-level", "", "3"),
        ("--f", "", "g"),
    ] == [(flag.name, flag.key, flag.value) for flag in given]
    assert (1, ("2", "3"), True) == (given[0].index, given[1].values, given[4].joined)
    [adds] = given_flags(["--h.i+=1"])[0]
    assert ("i", True, "1") == (adds.key, adds.appends, adds.value)


def test_the_recorded_versions_are_those_of_the_facts():
    """Six releases of vLLM; nothing of others."""
    assert ("0.25.1", "0.27.1", "0.29.0", "0.30.0", "0.31.0", "0.32.0") == known_versions("vllm")
    assert () == known_versions("nim")


def test_the_fraction_has_two_names_since_0_31(catalog):
    """--gpu-memory-utilization stayed as the second name of --device-memory-utilization."""
    recipe = catalog.recipe("tiny-8b-fp8-vllm")
    flags = (*recipe.flags, "--device-memory-utilization=0.5")
    codes = {
        version: {
            p.code
            for p in flag_problems(
                recipe.model_copy(update={"engine_version": version, "flags": flags}),
                catalog.engine("vllm"),
            )
        }
        for version in ("0.30.0", "0.31.0")
    }
    assert {"0.30.0": {"unknown_flag"}, "0.31.0": {"field_flag"}} == codes


LINES = GOOD.splitlines(keepends=True)
BAD_LINES = st.sampled_from(
    [*LINES, "a: 1\n", "  - x\n", "  x: [\n", "flags: null\n", "env: {a: {b: c}}\n", "model: []\n"]
)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_scrambled_recipe_never_ends_in_a_traceback(tmp_path, catalog, data):
    """And what is called valid loads, what is not does not."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(BAD_LINES, max_size=2))
    path = tmp_path / "scrambled.yaml"
    path.write_text("".join(lines))
    report = validate([path], catalog)
    try:
        loaded = catalog.recipe(path).id == "scrambled"
    except CatalogError:
        loaded = False
    assert loaded or not report.valid
