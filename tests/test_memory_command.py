"""``fit`` as a command: the logs of real servers, options, tables and explanations."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import sparkrecipes as sr
from sparkrecipes.cli.fit_page import print_fit
from sparkrecipes.cli.main import main
from sparkrecipes.errors import Misuse, Unknown
from sparkrecipes.machine import host_platform
from sparkrecipes.memory import estimate, explain, grid, to_free
from sparkrecipes.schema.machine import LiveMemory, MemoryUser
from tests.support.models import CATALOG, SPARK
from tests.test_memory_engine import SEEN, marked
from tests.test_memory_estimate import asked
from tests.test_memory_properties import requests

LLAMA = "llama-3.3-70b-instruct-nvfp4"


@pytest.fixture(scope="module")
def shapes_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped catalog with the models that only logs know, as a user would add them."""
    folder: Path = tmp_path_factory.mktemp("catalog")
    shutil.copytree(CATALOG, folder, dirs_exist_ok=True)
    for name, layers in SEEN["shapes"].items():
        model = {
            "title": name,
            "family": "test",
            "params_total_b": 30,
            "params_active_b": 3,
            "context_tokens": 262144,
            "hidden_size": 2688,
            "vocab_size": 131072,
            "layers": layers,
            "mtp_layers": 0,
            "modalities": [],
            "licence": None,
            "builds": [{"repo": f"owner/{name}", "quant": "bf16"}],
            "sources": dict.fromkeys(
                (
                    "params_total_b",
                    "params_active_b",
                    "context_tokens",
                    "hidden_size",
                    "vocab_size",
                    "layers",
                    "mtp_layers",
                    "modalities",
                ),
                "a test",
            ),
        }
        (folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(model))
    return folder


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    """Run the command line in this process; give its exit code and its JSON."""
    code = main([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def argv_of(log: dict[str, Any]) -> list[str]:
    """Write the command that answers a log."""
    words = ["fit", log["model"].removeprefix("test:")]
    words += ["--available-kv-gib", str(log["available_kv_gib"])]
    words += ["--context", str(log["context_tokens"]), "--users", "1"]
    words += ["--kv-cache-dtype", log["kv_cache_dtype"], "--engine-version", log["engine_version"]]
    words += ["--prefix-caching" if log["prefix_caching"] else "--no-prefix-caching"]
    for key in ("speculative", "max_num_batched_tokens", "mamba_ssm_cache_dtype"):
        if key in log:
            words += ["--" + key.replace("_", "-"), str(log[key])]
    return words


@pytest.mark.parametrize("log", [marked(log) for log in SEEN["logs"]])
def test_a_log_is_answered_by_the_command(
    log: dict[str, Any], shapes_catalog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokens to the last one and concurrency, from a memory that prints as the log's."""
    more = ["--catalog", str(shapes_catalog)] if log["model"].startswith("test:") else []
    found: dict[str, Any] = {}
    for step in (0, *range(-8, 8)):
        gib = log["available_kv_gib"] + step * 0.01 / 16
        code, answer = run(capsys, *argv_of({**log, "available_kv_gib": gib}), *more)
        assert code in (0, 1)
        found = answer["engine_kv"]
        if found["kv_cache_tokens"] == log["kv_cache_tokens"]:
            break
    assert log["kv_cache_tokens"] == found["kv_cache_tokens"]
    if "max_concurrency" in log:
        digits = len(log["max_concurrency"].partition(".")[2])
        assert log["max_concurrency"] == f"{found['max_concurrency']:.{digits}f}"
    if "attention_block" in log:
        assert log["attention_block"] == found["block_size"]


def test_the_bounds_are_those_of_the_printed_rounding(capsys: pytest.CaptureFixture[str]) -> None:
    """0.01 GiB are 16 blocks of Gemma 4: the log's 177,440 tokens lie between the bounds."""
    log = next(log for log in SEEN["logs"] if log["n"] == 17)
    low, high = run(capsys, *argv_of(log))[1]["engine_kv"]["kv_cache_tokens_bounds"]
    assert low < log["kv_cache_tokens"] <= high
    assert high - low <= 64


def test_all_keys_of_the_engines_cache_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """The command of the observation n=0: 1403 blocks of 1600, 179 a request, 2,054,681 tokens."""
    code, answer = run(capsys, *argv_of(SEEN["logs"][0]))
    found = answer["engine_kv"]
    assert 0 == code
    assert (1600, 1403, 179, 2_054_681) == tuple(
        found[k] for k in ("block_size", "num_blocks", "blocks_per_request", "kv_cache_tokens")
    )
    assert "7.84" == f"{found['max_concurrency']:.2f}"
    assert "0.21" in found["log_rule"]


@pytest.mark.parametrize(
    ("users", "gib", "admitted", "warned"),
    [
        ("4", "72.79", 4, ""),
        ("8", "72.79", 7, "7 of 8 sequences"),
        ("2000", "72.79", 7, "refuses to capture"),
        # 179 blocks are one sequence by the log, but one block is the pool's own.
        ("1", "9.287", 0, "0 of 1 sequences"),
    ],
)
def test_admission_follows_the_users(
    users: str, gib: str, admitted: int, warned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Full sequences at once: at most --max-num-seqs, and what the pool holds without its own."""
    log = {**SEEN["logs"][0], "available_kv_gib": gib}
    _, answer = run(capsys, *argv_of(log), "--users", users)
    assert admitted == answer["engine_kv"]["admitted_sequences"]
    told = " ".join(line for line in answer["warnings"] if line.startswith("engine_kv"))
    assert warned in told
    assert bool(warned) == bool(told)


def test_a_build_and_a_recipe_answer_as_the_model_does() -> None:
    """The cache does not depend on the weights; a recipe brings its own settings."""
    given = {
        "available_kv_gib": 40.0,
        "context_tokens": 131072,
        "kv_cache_dtype": "fp8",
        "users": 1,
    }
    whole = sr.estimate_memory("qwen3.8-27b", engine_version="0.31.0", speculative="mtp:2", **given)
    build = sr.estimate_memory(
        "qwen3.8-27b-fp8", engine_version="0.31.0", speculative="mtp:2", **given
    )
    recipe = sr.estimate_memory("qwen3.8-27b-nvfp4-vllm-mtp", **given)
    assert whole.engine_kv == build.engine_kv == recipe.engine_kv
    off = sr.estimate_memory("qwen3.8-27b-nvfp4-vllm-mtp", speculative="none", **given)
    assert off.engine_kv != recipe.engine_kv


def test_a_repository_of_the_catalog_needs_no_network() -> None:
    """The build that has it is sized, wherever its model stands in the catalog."""
    repo = sr.estimate_memory("nvidia/Qwen3.6-35B-A3B-NVFP4", offline=True)
    build = sr.estimate_memory("qwen3.6-35b-a3b-nvfp4", offline=True)
    assert build == repo


def test_settings_size_the_need_too() -> None:
    """A draft token lengthens the state; a published row says nothing of other settings."""
    plain = sr.estimate_memory("qwen3.8-27b-nvfp4", users=4, kv_cache_dtype="fp8")
    drafting = sr.estimate_memory(
        "qwen3.8-27b-nvfp4", users=4, kv_cache_dtype="fp8", speculative="mtp:3"
    )
    assert plain.kv_bytes_per_token < drafting.kv_bytes_per_token
    changed = sr.estimate_memory("qwen3.6-35b-a3b-nvfp4-vllm", max_num_batched_tokens=8192)
    assert not any("measured to start" in line for line in changed.assumptions)


def test_a_drafter_that_nobody_described(capsys: pytest.CaptureFixture[str]) -> None:
    """Its layers decide the log: unknown, 3; the need is bounded by its method all the same."""
    words = ["fit", "gemma-4-26b-a4b-nvfp4", "--context", "8192", "--speculative", "dflash:15"]
    code, answer = run(capsys, *words, "--available-kv-gib", "65.25")
    assert (3, "unknown_drafter") == (code, answer["error"]["code"])
    assert "without it" in answer["error"]["repair"]
    code, answer = run(capsys, *words)
    assert (0, "fits") == (code, answer["verdict"])
    assert any("no source describes" in line for line in answer["assumptions"])


@pytest.mark.parametrize(
    ("options", "code", "repair"),
    [
        (["--speculative", "mpt:3"], "bad_speculative", "did you mean mtp"),
        (["--speculative", "mtp"], "bad_speculative", "mtp:3"),
        (["--speculative", "mtp:0"], "bad_speculative", "mtp:3"),
        (["--available-kv-gib", "nan"], "bad_available_kv_gib", "72.79"),
        (["--available-kv-gib", "lots"], "bad_arguments", "--help"),
        (["--mamba-ssm-cache-dtype", "int8"], "bad_arguments", "--help"),
        (["--max-num-batched-tokens", "0"], "bad_arguments", "--help"),
        (["--kv-cache-dtype", "fp9"], "bad_arguments", "did you mean fp8"),
    ],
)
def test_misuse_is_told_with_its_repair(
    options: list[str], code: str, repair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and what to write instead."""
    found, answer = run(capsys, "fit", "qwen3.8-27b", *options)
    assert (2, code) == (found, answer["error"]["code"])
    assert repair in answer["error"]["repair"]


def test_python_refuses_what_the_command_refuses() -> None:
    """Values that argparse would not let through."""
    for wrong in ({"mamba_ssm_cache_dtype": "int8"}, {"max_num_batched_tokens": 0}):
        with pytest.raises(Misuse):
            sr.estimate_memory("qwen3.8-27b", **wrong)
    with pytest.raises(Unknown):
        sr.estimate_memory("llama-3.1-8b-instruct", available_kv_gib=9.0, speculative="eagle3:3")


def test_less_memory_than_one_sequence_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A log may print less than nothing: no blocks, and the engine would not start."""
    _, answer = run(capsys, "fit", "qwen3.8-27b", "--available-kv-gib", "-2.14")
    assert 0 == answer["engine_kv"]["num_blocks"]
    assert any("refuses to start" in line for line in answer["warnings"])


def test_what_the_log_takes_for_granted_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """No release, type auto: the newest rules and 16 bits, both said."""
    _, answer = run(capsys, "fit", "qwen3.8-27b", "--available-kv-gib", "20")
    told = " ".join(answer["warnings"])
    assert "newest rules" in told
    assert "16 bits" in told


def test_a_rope_override_is_the_limit() -> None:
    """Qwen3-8B with YaRN x4: 131,072, not the 40,960 that the model was made for."""
    answer = sr.estimate_memory("qwen3-8b-fp8-vllm", machine="dgx-spark")
    assert 131_072 == answer.max_context_at_users
    wider = asked("qwen3-8b-fp8-vllm", flags=(), published=None)
    assert 40_960 == estimate(wider, SPARK).max_context_at_users


@pytest.mark.parametrize(
    "flag",
    [
        '--hf-overrides={"text_config":{"max_position_embeddings":163840}}',
        '--hf-overrides={"rope_scaling":{"factor":4.0,"original_max_position_embeddings":40960}}',
        '--rope-scaling={"factor":4.0,"original_max_position_embeddings":40960}',
    ],
)
def test_rope_overrides_are_read_in_all_forms(flag: str) -> None:
    """The positions as told, or the factor times the positions that it stretches."""
    request = asked("qwen3-8b-fp8-vllm", flags=(flag,), published=None, context_tokens=163840)
    answer = estimate(request, SPARK)
    assert any("stretches it to 163,840" in line for line in answer.warnings)
    beyond = asked("qwen3-8b-fp8-vllm", flags=(flag,), published=None, context_tokens=200000)
    assert any("163,840 only" in line for line in estimate(beyond, SPARK).warnings)


def test_the_table_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3.3 70B: 1 and 2 users of 128K fit, 4 do not; the table says all at once."""
    words = ["fit", LLAMA, "--context", "131072", "--users", "4", "--kv-cache-dtype", "fp8"]
    code, answer = run(capsys, *words, "--grid")
    cells = {(c["context_tokens"], c["users"]): c["verdict"] for c in answer["grid"]}
    assert 1 == code
    assert ["fits", "fits", "does_not_fit"] == [cells[131072, n] for n in (1, 2, 4)]
    assert (answer["context_tokens"], answer["users"]) in cells
    assert run(capsys, *words)[1]["grid"] is None


@settings(max_examples=50, deadline=None)
@given(requests(), st.sampled_from((None, 20 * 2**30, 60 * 2**30, 100 * 2**30)))
def test_each_cell_equals_the_single_answer(request: Any, free: int | None) -> None:
    """Verdicts and bytes of every cell are those of the question asked alone."""
    for cell in grid(request, SPARK, contexts=(4096, 131072), users=(1, 7), available_bytes=free):
        alone = estimate(
            replace(request, context_tokens=cell.context_tokens, users=cell.users),
            SPARK,
            available_bytes=free,
        )
        assert (alone.verdict, alone.verdict_now, alone.total_bytes, alone.total_bounds) == (
            cell.verdict,
            cell.verdict_now,
            cell.total_bytes,
            cell.total_bounds,
        )


def test_every_number_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Rule, inputs and source of each number of the answer, and the number itself."""
    log = SEEN["logs"][0]
    _, answer = run(capsys, *argv_of(log), "--explain")
    lines = {line["number"]: line for line in answer["explain"]}
    for name, pair in answer["bounds"].items():
        assert pair == [lines[f"bounds.{name}"]["low"], lines[f"bounds.{name}"]["high"]]
    for name, pair in answer["overhead_parts"].items():
        assert pair == [
            lines[f"overhead_parts.{name}"]["low"],
            lines[f"overhead_parts.{name}"]["high"],
        ]
    peak = answer["first_start"]["peak_bounds"]
    assert peak == [lines["first_start.peak_bounds"][side] for side in ("low", "high")]
    for name in (
        "kv_bytes_per_token",
        "max_users_at_context",
        "max_context_at_users",
        "min_gpu_memory_utilization",
        "reservation_bytes",
        "usable_bytes",
    ):
        assert answer[name] == lines[name]["high"]
    assert answer["engine_kv"]["num_blocks"] == lines["engine_kv.num_blocks"]["low"]
    assert all(line["rule"] and line["source"] for line in answer["explain"])
    for name in ("single_user_tok_s", "users_total_tok_s_at_context", "prefill_s_at_context"):
        told = lines[f"forecast.{name}"]
        assert answer["forecast"][name] == [told["low"], told["high"]]
    assert "s" == lines["forecast.prefill_s_at_context"]["unit"]
    groups = [line for name, line in lines.items() if name.startswith("cache.group_")]
    assert answer["engine_kv"]["blocks_per_request"] == sum(line["low"] for line in groups)


def test_shared_memory_is_explained_as_it_counts() -> None:
    """A published drop of free memory leaves less than the 64 GiB; unpublished, all counts."""
    published = asked("qwen3.6-35b-a3b-nvfp4-vllm", users=8)
    unpublished = asked("qwen3.6-35b-a3b-nvfp4-vllm", users=8, published=None)
    lines = [
        next(
            line
            for line in explain(request, SPARK, estimate(request, SPARK))
            if line.number == "bounds.overhead_bytes"
        )
        for request in (published, unpublished)
    ]
    asked_for, counted = (lines[0].inputs[f"shm_{k}_bytes"] for k in ("size", "counted"))
    assert 64 * 2**30 == asked_for
    assert isinstance(counted, int)
    assert 0 <= counted < 16 * 2**30
    assert "pages are taken when written" in lines[0].rule
    assert 64 * 2**30 == lines[1].inputs["shm_counted_bytes"]
    assert "at worst" in lines[1].rule


def test_what_to_set_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """The smallest fraction, the cache's bytes, and the check that neither bypasses."""
    _, answer = run(capsys, "fit", "qwen3.8-27b-nvfp4-vllm", "--machine", "dgx-spark")
    told = answer["settings"]
    assert answer["min_gpu_memory_utilization"] == told["gpu_memory_utilization"]
    cache = answer["components"]["kv_cache_bytes"] + answer["components"]["state_bytes"]
    assert told["kv_cache_memory_bytes"] > cache
    assert any("does not bypass the check" in note for note in told["notes"])
    assert 0.92 == told["default_gpu_memory_utilization"]
    assert 0.4 == told["start_check"]["gpu_memory_utilization"]
    assert answer["reservation_bytes"] <= told["start_check"]["needs_bytes"]
    assert told["start_check"]["starts"] is None


def test_the_page_shows_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """For people: the log's figures, the table, and every rule with its source."""
    words = [*argv_of(SEEN["logs"][0]), "--grid", "--explain"]
    assert 0 == main(words)
    page = " ".join(capsys.readouterr().out.split())
    assert "2,054,681 tokens" in page
    assert "maximum concurrency 7.84x" in page
    assert "32 users" in page
    assert "bounds.kv_cache_bytes = " in page
    assert "source: vLLM" in page
    assert "estimated speed: one user" in page
    assert 0 == main(argv_of(SEEN["logs"][0]))
    assert "bounds.kv_cache_bytes" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verdict", "options", "told"),
    [("fits", (), False), ("fits", ("--explain",), True), ("unknown", (), True)],
)
def test_the_page_is_short_unless_its_reasons_are_the_answer(
    capsys: pytest.CaptureFixture[str], verdict: str, options: tuple[str, ...], told: bool
) -> None:
    """The way to reasons and sources is named; what is unknown says at once why it is."""
    known = sr.estimate_memory(LLAMA, explain=bool(options))
    answer = known.model_copy(update={"verdict": verdict})
    print_fit(answer)
    page = " ".join(capsys.readouterr().out.split())
    assert answer.assumptions
    for reason in answer.assumptions:
        assert told == (f"- {' '.join(reason.split())}" in page), reason
    assert (not options) == ("Next: add --explain" in page)


def live(*users: MemoryUser, free_gib: float, swapped_gib: int = 0) -> LiveMemory:
    """Make a machine in use."""
    return LiveMemory(
        mem_total_bytes=SPARK.mem_total_bytes,
        mem_available_bytes=int(free_gib * 2**30),
        page_cache_bytes=9 * 2**30,
        swap_total_bytes=16 * 2**30,
        swap_used_bytes=swapped_gib * 2**30,
        users=users,
    )


def freed(name: str, now: LiveMemory) -> tuple[str, ...]:
    """Say what to free for a recipe."""
    answer = estimate(asked(name), SPARK, available_bytes=now.mem_available_bytes)
    return to_free(answer, now)


def test_what_to_free_is_named() -> None:
    """Fits this machine, not now: how much, and the containers and processes that hold it."""
    box = MemoryUser(
        kind="container", name="other-vllm", host_bytes=2 * 2**30, gpu_bytes=50 * 2**30
    )
    script = MemoryUser(
        kind="gpu_process", name="python3", pid=4711, host_bytes=None, gpu_bytes=6 * 2**30
    )
    told = freed("qwen3.8-27b-nvfp4-vllm", live(box, script, free_gib=40.0, swapped_gib=2))
    assert told[0].startswith("fits this machine, not now: 40.00 GiB are available")
    assert "free at least 8.68 GiB more" in told[0]
    assert "container other-vllm (2.00 GiB in the kernel's count, 50.00 GiB on GPU)" in told[1]
    assert "docker stop other-vllm" in told[1]
    assert "GPU process 4711 python3" in told[2]
    assert "page cache (9.00 GiB) counts as available already" in told[3]
    assert "2.00 GiB are swapped out" in told[4]


def test_the_probe_says_who_holds_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """Live memory of this host, whatever machine recipes are judged for; the page names it."""
    code, answer = run(capsys, "probe")
    assert 0 == code
    assert answer["mem_total_bytes"] == answer["live"]["mem_total_bytes"]
    assert 0 < answer["live"]["page_cache_bytes"] < answer["mem_total_bytes"]
    assert 0 == main(["probe"])
    page = capsys.readouterr().out
    assert "holds memory: " in page or "was seen to hold memory" in page
    assert "counts as available already" in page


def test_nothing_is_to_be_freed_where_it_fits_now_or_never() -> None:
    """Silence where it fits; and freeing helps nothing where the machine is too small."""
    assert () == freed("qwen3.8-27b-nvfp4-vllm", live(free_gib=115.0))
    llama = sr.estimate_memory(
        "llama-3.3-70b-instruct-nvfp4", context_tokens=131072, users=4, kv_cache_dtype="fp8"
    )
    assert () == to_free(llama, live(free_gib=10.0))


def test_a_tight_now_says_what_would_be_enough() -> None:
    """Free memory between the bounds: how much more would do by every bound."""
    told = freed("gpt-oss-120b-mxfp4-vllm", live(free_gib=86.0))
    assert told[0].startswith("tight now: 86.00 GiB are available")
    assert "no container and no GPU process was seen" in told[1]


def test_this_host_as_the_machine_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine file of this platform without a GPU: live memory is read and judged."""
    spec = {
        "title": "this host",
        "platform": host_platform(),
        "gpu": None,
        "mem_total_bytes": 2**40,
        "host_reserve_bytes": 0,
        "unified_memory": False,
        "memory_bandwidth_gb_s": None,
        "sources": ["a test"],
    }
    file = tmp_path / "host.yaml"
    file.write_text(yaml.safe_dump(spec))
    _, answer = run(capsys, "fit", "qwen3.8-27b-bf16", "--machine", str(file))
    assert answer["live"]["mem_available_bytes"] == answer["available_bytes"]
    assert answer["verdict_now"] is not None
    assert answer["forecast"] is None
    _, elsewhere = run(capsys, "fit", "qwen3.8-27b-bf16", "--machine", "dgx-spark")
    assert elsewhere["live"] is None
