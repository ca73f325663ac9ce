"""Recipes of other tools: what is carried, what is not and why, and what is refused."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from sparkrecipes import operations as ops
from sparkrecipes.catalog import Catalog, open_catalog, validate_text
from sparkrecipes.cli import main
from sparkrecipes.errors import CatalogError, Misuse, Refused
from sparkrecipes.importing import import_text
from sparkrecipes.importing.matching import same_repository
from sparkrecipes.importing.shell_text import ShellError, split
from sparkrecipes.schema.importing import ImportedRecipe
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.strict_yaml import parse
from tests.support import foreign_recipes

DATA = Path(__file__).parent / "data" / "import"
CATALOG = open_catalog()
RAN = Path("/tmp/sparkrecipes-import-was-run")
SERVE = "docker run vllm/vllm-openai:v0.31.0 Qwen/Qwen3-8B-FP8 --max-num-seqs 4"


def take(name: str, **options: object) -> ImportedRecipe:
    """Import a file of tests/data/import."""
    return ops.import_recipe(DATA / name, catalog=CATALOG, **options)  # type: ignore[arg-type]


def line(text: str, **options: object) -> ImportedRecipe:
    """Import a text."""
    return import_text(text, CATALOG, name="line", **options)  # type: ignore[arg-type]


def fields(found: ImportedRecipe) -> dict:
    """Return what the written recipe says."""
    return parse(found.text).tree


def lost(found: ImportedRecipe) -> dict[str, int]:
    """Return what was not carried, with its line."""
    return {one.what: one.line for one in found.not_carried}


def test_sparkrun_v2_with_a_command() -> None:
    """The command decides: its placeholders are filled, what a shell would do is not done."""
    found = take("sparkrun_v2.yaml")
    recipe = fields(found)
    assert ("sparkrun-v2", True) == (found.format, found.valid)
    assert {"repo": "Qwen/Qwen3.6-35B-A3B-FP8", "revision": None} == recipe["weights"]
    assert ("qwen3.6-35b-a3b", "fp8") == (recipe["model"], recipe["quant"])
    assert {"method": "mtp", "num_speculative_tokens": 2} == recipe["speculative"]
    assert {
        "context_tokens": 262144,
        "users": 4,
        "kv_cache_dtype": "fp8",
        "gpu_memory_utilization": None,
    } == recipe["serving"]
    assert [
        '--limit-mm-per-prompt={"image": 4}',
        "--enable-auto-tool-choice",
        "--tool-call-parser=qwen3_coder",
    ] == recipe["flags"]
    assert {"VLLM_MARLIN_USE_ATOMIC_ADD": "1"} == recipe["env"]
    assert ["text", "tools"] == recipe["capabilities"]


def test_what_sparkrun_recipes_lose_is_listed_with_its_line() -> None:
    """Utilisation in GB, hooks, mods, nodes, placeholders and other commands: line and reason."""
    expected = {
        "min_nodes: 2": 8,
        "mods: mods/fix-qwen3-coder-next": 9,
        'compilation_config: {"level":3}': 22,
        "NODE_NAME=$HOSTNAME": 26,
        "HF_TOKEN": 27,
        "pre_exec: touch /tmp/sparkrecipes-import-was-run": 28,
        "post_commands: touch /tmp/sparkrecipes-import-was-run": 30,
        "pip install something": 33,
        "--host 0.0.0.0": 34,
        "--gpu-memory-utilization 108": 38,
        "--served-model-name $(hostname)": 40,
        "--attention-backend {attention_backend}": 42,
        "-tp 2": 45,
    }
    found = lost(take("sparkrun_v2.yaml"))
    assert expected == {what: found.get(what) for what in expected}
    assert all(one.why for one in take("sparkrun_v2.yaml").not_carried)


def test_sparkrun_v2_without_a_command() -> None:
    """The defaults are the options; a pin, shared memory and the wait are carried."""
    found = take("sparkrun_v2_defaults.yaml")
    recipe = fields(found)
    assert found.valid
    assert "220b46e3b2180893580a4454f21f22d3ebb187d3" == recipe["weights"]["revision"]
    assert ("16g", 900, "qwen3-8b") == (
        recipe["shm_size"],
        recipe["startup_timeout_s"],
        recipe["served_model_name"],
    )
    assert ["--enable-prefix-caching", "--reasoning-parser=qwen3"] == recipe["flags"]
    assert {"ipc: host": 10} == lost(found)


def test_eugr_v1() -> None:
    """A local image's name and a build are told; an image can be named instead."""
    found = take("eugr_v1.yaml")
    assert ("sparkrun-v1", False) == (found.format, found.valid)
    assert {"image vllm-node-mxfp4": 7, "build_args: --exp-mxfp4": 9, "--host 0.0.0.0": 26} == lost(
        found
    )
    assert ["serving.users"] == [
        p.message.partition(":")[0] for p in found.problems if p.level == "error"
    ]
    filled = take("eugr_v1.yaml", image="vllm/vllm-openai:v0.31.0", users=2)
    assert filled.valid
    assert "vllm/vllm-openai:v0.31.0" == fields(filled)["image"]["reference"]
    assert 2 == fields(filled)["serving"]["users"]


def test_vllm_recipe_by_variant() -> None:
    """One variant with the features that are on; what is for other hardware stays out."""
    found = take("vllm_recipe.yaml", select="nvfp4", image="vllm/vllm-openai:v0.31.0", users=4)
    recipe = fields(found)
    assert ("vllm-recipe", True) == (found.format, found.valid)
    assert ("nvidia/Qwen3.6-35B-A3B-NVFP4", "nvfp4") == (
        recipe["weights"]["repo"],
        recipe["quant"],
    )
    assert [
        "--trust-remote-code",
        "--enable-auto-tool-choice",
        "--tool-call-parser=qwen3_coder",
        "--reasoning-parser=qwen3",
        "--moe-backend=marlin",
    ] == recipe["flags"]
    assert {} == recipe["env"]
    assert None is recipe["speculative"]
    assert {"variant default", "feature spec_decoding", "hardware_overrides: rtx_5090"} <= {
        *lost(found)
    }
    with pytest.raises(CatalogError, match="no variant fp4") as refused:
        take("vllm_recipe.yaml", select="fp4")
    assert "--select: default, nvfp4" in refused.value.repair


def test_compose_service() -> None:
    """The service that serves is found; host IPC, host network, open ports and mounts are told."""
    found = take("compose.yaml")
    recipe = fields(found)
    assert ("compose", True) == (found.format, found.valid)
    assert (32000, 4, "16g") == (
        recipe["serving"]["context_tokens"],
        recipe["serving"]["users"],
        recipe["shm_size"],
    )
    assert {"VLLM_LOGGING_LEVEL": "INFO", "REGION": "no"} == recipe["env"]
    assert {
        "service webui": 3,
        "ipc: host": 8,
        "network_mode: host": 9,
        "restart: unless-stopped": 10,
        "ports: 8000:8000": 13,
        "volumes: ./templates:/templates": 16,
        "HF_TOKEN": 18,
        "REGION: no": 20,
        "CACHE=${CACHE_DIR:-/tmp}": 21,
        "--served-model-name qwen": 23,
    } == lost(found)


def test_docker_run_line() -> None:
    """A shell text with other commands: only the docker run line is read, and nothing is run."""
    found = take("docker_run.sh")
    recipe = fields(found)
    assert ("docker", True) == (found.format, found.valid)
    assert (32768, ["--enable-prefix-caching"]) == (
        recipe["serving"]["context_tokens"],
        recipe["flags"],
    )
    assert {"VLLM_LOGGING_LEVEL": "INFO", "NCCL_DEBUG": "WARN"} == recipe["env"]
    assert {
        "export HF_TOKEN=***": 3,
        "touch /tmp/sparkrecipes-import-was-run": 4,
        "--ipc host": 6,
        "--network host": 6,
        "--privileged": 6,
        "--ulimit memlock=-1": 7,
        "--publish 8000:8000": 7,
        "--volume $PWD/templates:/templates": 8,
        "HF_TOKEN": 9,
        "an earlier --max-model-len": 12,
        "--api-key": 13,
        "--chat-template $TEMPLATE": 14,
    } == lost(found)


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_nothing_is_run_and_no_secret_is_told(path: Path) -> None:
    """Hooks and other commands would leave a file; tokens of the file are nowhere in the answer."""
    text = ops.import_recipe(path, catalog=CATALOG).model_dump_json()
    assert not RAN.exists()
    assert "abcdefghijklmnop" not in text
    assert "secret123" not in text


@pytest.mark.parametrize(
    "text",
    [
        "docker run hf_abcdefghijklmnop vllm serve Qwen/Qwen3-8B-FP8",
        "docker run vllm/vllm-openai:v0.31.0 acme/hf_abcdefghijklmnop",
        "docker run -e hf_abcdefghijklmnopLEVEL=INFO vllm/vllm-openai:v0.31.0 acme/a",
        "container: vllm/x\nmodel: acme/hf_abcdefghijklmnop\ndefaults: {max_num_seqs: 1}\n",
        "container: vllm/x\nmodel: a/b\nmetadata: {description: use hf_abcdefghijklmnop}\n",
    ],
)
def test_a_token_in_a_strange_place_is_not_carried(text: str) -> None:
    """As an image, a model or a title: it is neither in the recipe nor in what is told."""
    assert "abcdefghijklmnop" not in line(text).model_dump_json()


def test_a_token_is_not_in_a_refusal() -> None:
    """An option that nobody knows may be a token that slipped."""
    with pytest.raises(CatalogError) as refused:
        line("docker run --hf_abcdefghijklmnop image")
    assert "abcdefghijklmnop" not in f"{refused.value.message} {refused.value.repair}"


@pytest.mark.parametrize("format", ["docker", "compose", "json"])
@pytest.mark.parametrize("recipe_id", [*CATALOG.recipes])
def test_a_rendered_command_is_imported_as_its_recipe(recipe_id: str, format: str) -> None:
    """What ``command`` writes comes back as the same recipe, field for field."""
    command = ops.render_command(
        recipe_id, format=format.replace("json", "docker"), catalog=CATALOG
    )
    text = command.model_dump_json() if format == "json" else command.shell
    found = line(text)
    assert recipe_id == found.same_as
    assert CATALOG.recipe(recipe_id) == Recipe.model_validate_json(
        json.dumps({**fields(found), "id": recipe_id})
    )


@pytest.mark.parametrize("format", ["docker", "compose", "sparkrun"])
def test_what_the_command_adds_is_told_from_what_the_recipe_sets(
    format: str, tmp_path: Path
) -> None:
    """MAX_JOBS of the command is left out again; one of the recipe itself is carried."""
    added = ops.render_command("qwen3-8b-fp8-vllm", format=format, catalog=CATALOG)
    assert "MAX_JOBS" in added.added_env
    env = CATALOG.recipe("qwen3-8b-fp8-vllm").env
    assert env == fields(line(added.shell))["env"]
    text = (CATALOG.root / "recipes" / "qwen3-8b-fp8-vllm.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("env:\n", 'env:\n  MAX_JOBS: "2"\n'))
    own = ops.render_command(str(path), format=format, catalog=CATALOG)
    assert {} == own.added_env
    assert {**env, "MAX_JOBS": "2"} == fields(line(own.shell))["env"]


def test_a_foreign_label_takes_no_variable_away() -> None:
    """Only how many kernels may compile at once is ever ours to leave out."""
    text = (
        "docker run --label org.sparkrecipes.added-env=MAX_JOBS,NCCL_DEBUG -l other=MAX_JOBS "
        "-e MAX_JOBS=4 -e NCCL_DEBUG=INFO vllm/vllm-openai:v0.31.0 Qwen/Qwen3-8B-FP8"
    )
    assert {"NCCL_DEBUG": "INFO"} == fields(line(text))["env"]
    unmarked = text.replace("org.sparkrecipes.added-env", "some.other")
    assert {"MAX_JOBS": "4", "NCCL_DEBUG": "INFO"} == fields(line(unmarked))["env"]


def test_a_pin_of_the_command_is_kept() -> None:
    """A digest that only the command has is added to the recipe; another flag is another recipe."""
    text = ops.render_command("qwen3-8b-fp8-vllm", catalog=CATALOG).shell
    reference = CATALOG.recipe("qwen3-8b-fp8-vllm").image.reference
    digest = "sha256:" + "d" * 64
    pinned = line(text.replace(reference, f"{reference}@{digest}"))
    assert ("qwen3-8b-fp8-vllm", digest) == (pinned.same_as, fields(pinned)["image"]["digest"])
    other = line(text + " --enforce-eager")
    assert (None, "qwen3-8b-fp8-vllm-imported") == (other.same_as, other.id)
    assert "evidence" not in fields(other)


@pytest.mark.parametrize(
    ("text", "code", "place", "repair"),
    [
        ("a: &a [x]\nb: [*a, *a]\n", "invalid_yaml", "1:4", "write the values out"),
        ("env:\n\tA: 1\n", "invalid_yaml", "2:1", "replace the tab"),
        ("model: a\nmodel: b\ncontainer: c\n", "invalid_yaml", "2:1", "keep one"),
        ("container: x\ncommand: vllm serve 'a\n", "bad_command", "2", "correct"),
        ("container: x\ncommand: |\n  vllm serve a/b\n  --x\n", "cut_command", "4", "backslash"),
        ("docker run --gpus all", "no_image", "1", "whole command"),
        ("docker run --gpu all img", "unknown_option", "1", "did you mean --gpus"),
        (
            "docker run ghcr.io/ggml-org/llama.cpp:server --x",
            "unknown_engine",
            "1",
            "engines/<id>.yaml",
        ),
        ("apiVersion: v1\nkind: Pod\n", "unknown_format", "1", "docker run"),
        ("title: x\nserving: {}\n", "unknown_format", "1", "sparkrecipes validate"),
        ("[1, 2]", "unknown_format", "1", "--from"),
        ("\0\0\0", "invalid_yaml", "1:1", "delete"),
        ("services: {a: {image: x}, b: {image: y}}", "which_service", "1", "--select: a, b"),
    ],
)
def test_what_cannot_be_read_is_refused_with_place_and_repair(
    text: str, code: str, place: str, repair: str
) -> None:
    """Cases C04 (duplicate key), C05 (anchor bomb), C06 (tab), C72 (missing backslash), others."""
    with pytest.raises(CatalogError) as refused:
        line(text)
    assert code == refused.value.code
    assert refused.value.message.startswith(f"line:{place}:")
    assert repair in refused.value.repair


def test_an_anchor_bomb_is_refused_at_once() -> None:
    """Case C05: nine levels of nine aliases stand for 387 million leaves; none is made."""
    levels = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        levels.append(f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]")
    started = time.monotonic()
    with pytest.raises(CatalogError, match="anchor or alias"):
        line("\n".join(levels))
    assert time.monotonic() - started < 1


def test_ten_megabytes_and_binary_files_are_refused(tmp_path: Path) -> None:
    """The large one is not even read; the binary one is told by its first byte that is no text."""
    large, binary = tmp_path / "large.yaml", tmp_path / "binary.yaml"
    large.write_text("x: 1\n" * 2_100_000)
    binary.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(CatalogError, match="10,500,000 bytes"):
        ops.import_recipe(large, catalog=CATALOG)
    with pytest.raises(CatalogError, match="byte 0xff is not UTF-8"):
        ops.import_recipe(binary, catalog=CATALOG)
    with pytest.raises(CatalogError, match="cannot be read"):
        ops.import_recipe(tmp_path / "none.yaml", catalog=CATALOG)


def test_a_growing_template_is_stopped() -> None:
    """Placeholders that name placeholders could grow without end: they stop at a bound."""
    defaults = "".join(f"  {a}: '{f'{{{b}}}' * 40}'\n" for a, b in zip("abcd", "bcde", strict=True))
    text = f"container: x/y\nmodel: a/b\ndefaults:\n{defaults}command: vllm serve {{a}}\n"
    with pytest.raises(CatalogError, match="grows beyond"):
        line(text)


@pytest.mark.parametrize(
    ("words", "expected", "told"),
    [
        # C08: doubled braces of a template.
        (
            """--speculative-config '{{"method":"mtp","num_speculative_tokens":3}}'""",
            {"speculative": {"method": "mtp", "num_speculative_tokens": 3}},
            None,
        ),
        (
            """--speculative-config '{"method":"mtp",}'""",
            {"speculative": None},
            "Illegal trailing|Expecting property name",
        ),
        # C10: the engine takes the last, and both spellings are the same flag.
        ("--max-model-len 262144 --max_model_len 131072", {"context_tokens": 131072}, "line 1"),
        ("--enforce-eager --enforce-eager", {"flags": ["--enforce-eager"]}, "takes the last"),
        # C14: one Spark has one GPU.
        ("--tensor-parallel-size 8", {"flags": []}, "one GPU"),
        ("-tp=1 --nnodes 1", {"flags": []}, None),
        ("--max-model-len 1M", {"context_tokens": 2**20}, None),
        ("--max-model-len auto", {"context_tokens": 40960}, "no whole number"),
        ("--kv-cache-dtype nvfp4", {"kv_cache_dtype": "auto"}, "not reckoned"),
        ("--gpu-memory-utilization 112", {"gpu_memory_utilization": None}, "amount in GB"),
        ("--gpu-memory-utilization .5", {"gpu_memory_utilization": 0.5}, None),
        ("--revision main", {"weights": {"repo": "Qwen/Qwen3-8B-FP8", "revision": None}}, "moves"),
        ('--speculative-config \'{"method":"medusa"}\'', {"speculative": None}, "medusa"),
        ("-O3", {"flags": ["-O3"]}, None),
        ("--allowed-origins '[\"*\"]'", {"flags": ['--allowed-origins=["*"]']}, None),
        ("--lora-modules a=b c=d", {"flags": ["--lora-modules", "a=b", "c=d"]}, None),
        ("--foo=hf_abcdefghijklmnop", {"flags": []}, "no secret"),
    ],
)
def test_engine_arguments(words: str, expected: dict, told: str | None) -> None:
    """Each argument becomes a field or a flag, or is told why not (C08, C10, C14)."""
    found = line(f"{SERVE} {words}")
    recipe = fields(found)
    recipe |= recipe["serving"]
    assert expected == {key: recipe[key] for key in expected}
    if told:
        assert re.search(told, " ".join(one.why for one in found.not_carried))
    else:
        assert () == found.not_carried


def test_a_version_and_a_boolean_without_quotes() -> None:
    """C01 and C02: a word that readers differ on is taken as it is written, never as a number."""
    text = (
        "recipe_version: 2\nmodel: Qwen/Qwen3-8B-FP8\nruntime: vllm\ncontainer: v/vllm:v0.31.0\n"
        "env:\n  TELEMETRY: off\n  VERSION: 0.10\n  PLAIN: y\n"
        "defaults: {max_model_len: 4096, max_num_seqs: 1}\n"
    )
    found = line(text)
    assert {"TELEMETRY": "off", "VERSION": "0.10", "PLAIN": "y"} == fields(found)["env"]
    assert {"TELEMETRY: off": 6} == lost(found)


def test_a_moving_tag_with_patches_is_no_measured_image() -> None:
    """C09 and C12: a version 1 without a name is read; the moving tag and the mods are told."""
    found = line(
        "recipe_version: 1\nmodel: Qwen/Qwen3-8B-FP8\ncontainer: ghcr.io/org/vllm:latest\n"
        "mods: [fix-attn]\ncommand: vllm serve {model} --max-num-seqs 1\n"
    )
    assert "sparkrun-v1" == found.format
    assert {"mods: fix-attn": 4} == lost(found)
    assert "moving_tag" in {problem.code for problem in found.problems}


def test_a_version_1_that_says_what_a_recipe_is_anyway_loses_nothing_by_it() -> None:
    """``solo_only: false`` and the like are no loss; doubled braces of its template are undone."""
    found = line(
        'recipe_version: "1"\nmodel: Qwen/Qwen3-8B-FP8\ncontainer: ghcr.io/org/vllm:v0.31.0\n'
        "cluster_only: false\nsolo_only: false\nmods: []\nbuild_args: null\ncommand: |\n"
        "  vllm serve Qwen/Qwen3-8B-FP8 --max-num-seqs 1 \\\n"
        "    --compilation-config '{{\"mode\":3}}'\n"
    )
    assert () == found.not_carried
    assert ['--compilation-config={"mode":3}'] == fields(found)["flags"]
    assert """  - '--compilation-config={"mode":3}'""" in found.text


def test_an_unknown_model_stays_null() -> None:
    """A repository that no model of the catalog lists is not guessed: an error says what to add."""
    found = line("docker run vllm/vllm-openai:v0.31.0 acme/unknown-7b --max-num-seqs 1")
    recipe = fields(found)
    assert (None, None, None) == (
        recipe["model"],
        recipe["quant"],
        recipe["serving"]["context_tokens"],
    )
    assert not found.valid
    assert "model: null  # no model of the catalog has this repository" in found.text


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ('a \'b c\' "d\\"e" f\\ g', [["a", "b c", 'd"e', "f g"]]),
        ("a \\\n  b\n\nc # d\n#e\nf", [["a", "b"], ["c"], ["f"]]),
        ("a \\  \n b", [["a", "b"]]),
        ("a;b&&c|d", [["a"], ["b"], ["c"], ["d"]]),
        ("a '' b#c", [["a", "", "b#c"]]),
        ("a $(b; c) ${d} `e f`", [["a", "$(b; c)", "${d}", "`e f`"]]),
    ],
)
def test_shell_words(text: str, commands: list[list[str]]) -> None:
    """Words are those of a shell; operators end a command, expansions are one marked word."""
    found = split(text)
    assert commands == [[word.text for word in command.words] for command in found]


def test_expansions_and_lines_are_marked() -> None:
    """What a shell would replace is marked, unless single quotes or a backslash protect it."""
    words = [word for command in split("a $X '$X' \"$X\" \\$X ~/x\nb") for word in command.words]
    assert [False, True, False, True, False, True, False] == [word.expands for word in words]
    assert [1, 1, 1, 1, 1, 1, 2] == [word.line for word in words]
    with pytest.raises(ShellError, match="not closed"):
        split("a $(b")


def test_a_forced_format_and_an_unknown_one() -> None:
    """``--from`` overrides what was recognised; a word that is no format is a misuse."""
    text = "model: Qwen/Qwen3-8B-FP8\ncontainer: a/vllm\ndefaults: {max_num_seqs: 1}\n"
    assert "sparkrun-v1" == line(text, format="sparkrun-v1").format
    with pytest.raises(Misuse):
        line(text, format="toml")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Saved once and not over another file; the exit code says whether it is valid; JSON is one."""
    out = tmp_path / "mine.yaml"
    file = str(DATA / "eugr_v1.yaml")
    assert 1 == main(["import", file])
    shown = capsys.readouterr()
    assert shown.out.startswith("# yaml-language-server")
    assert "to mend, line 17: serving.users" in shown.err
    assert 0 == main(["import", file, "--users", "4", "-o", str(out), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (True, str(out)) == (answer["valid"], answer["saved_to"])
    assert out.read_text(encoding="utf-8") == answer["text"]
    assert 0 == main(["validate", str(out)])
    assert 1 == main(["import", file, "--users", "4", "-o", str(out)])
    assert "is there already" in capsys.readouterr().err
    assert 2 == main(["import", file, "--from", "dockr"])


def test_a_folder_takes_the_id_as_name(tmp_path: Path) -> None:
    """``-o FOLDER`` saves under the proposed id; a place that cannot be written is an error."""
    found = take("sparkrun_v2_defaults.yaml", output=tmp_path)
    assert str(tmp_path / "qwen3-8b-fp8-vllm-imported.yaml") == found.saved_to
    with pytest.raises(Refused):
        take("sparkrun_v2_defaults.yaml", output=tmp_path)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(text=foreign_recipes.DOCUMENTS)
def test_any_document_gets_an_answer_or_our_error(text: str) -> None:
    """Damaged files, trees, shell lines, noise; 10,000 of them in tests/real/test_fuzz.py."""
    foreign_recipes.hold(text, CATALOG)


def test_catalog_is_not_changed(tmp_path: Path) -> None:
    """An import only reads the catalog."""
    assert isinstance(CATALOG, Catalog)
    before = sorted(p.name for p in (CATALOG.root / "recipes").iterdir())
    take("compose.yaml", output=tmp_path)
    assert before == sorted(p.name for p in (CATALOG.root / "recipes").iterdir())


def test_what_would_run_other_code_or_hold_a_secret_is_refused_as_validate_does() -> None:
    """Each variable that validate calls an error is left out by an import, and no other."""
    names = ("LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "MY_API_KEY", "DB_PASSWORD", "HF_TOKEN")
    options = " ".join(f"-e {name}=x" for name in (*names, "VLLM_LOGGING_LEVEL"))
    found = line(SERVE.replace("docker run", f"docker run {options}"))
    assert {"VLLM_LOGGING_LEVEL": "x"} == fields(found)["env"]
    dropped = {what.partition("=")[0] for what in lost(found)}
    assert set(names) <= dropped
    text = (CATALOG.root / "recipes" / "qwen3-8b-fp8-vllm.yaml").read_text()
    for name in names:
        bad = text.replace("env:\n", f'env:\n  {name}: "x"\n', 1)
        codes = {p.code for p in validate_text(bad, "mine.yaml", CATALOG) if p.level == "error"}
        assert codes <= {"dangerous_env", "secret"}, name
        assert codes, name


@pytest.mark.parametrize(
    ("flags", "capabilities"),
    [
        ("", ["text"]),
        ("--tool-call-parser=hermes", ["text"]),
        ("--enable-auto-tool-choice", ["text"]),
        ("--enable-auto-tool-choice --tool-call-parser=hermes", ["text", "tools"]),
        ("--reasoning-parser=qwen3", ["text", "reasoning"]),
    ],
)
def test_only_what_the_flags_show_is_claimed(flags: str, capabilities: list[str]) -> None:
    """A parser alone calls no tool: vLLM wants both flags."""
    assert capabilities == fields(line(f"{SERVE} {flags}"))["capabilities"]


def test_a_drafter_of_unknown_speculation_is_not_kept() -> None:
    """The recipe has no speculation, so it has no use for its drafter."""
    for method, drafter in (("medusa", None), ("eagle3", {"repo": "a/draft", "revision": None})):
        option = json.dumps({"method": method, "model": "a/draft", "num_speculative_tokens": 3})
        assert drafter == fields(line(f"{SERVE} --speculative-config='{option}'"))["drafter"]


def test_another_commit_of_the_same_weights_is_another_recipe() -> None:
    """A pin that only one has says which of several states; two pins say two things."""
    one, other = ({"repo": "a/b", "revision": letter * 40} for letter in "ab")
    unpinned = {"repo": "a/b", "revision": None}
    assert same_repository(one, unpinned)
    assert same_repository(one, dict(one))
    assert not same_repository(one, other)
    assert not same_repository(one, None)
