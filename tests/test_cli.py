"""The command line: JSON, exit codes, and errors that name the next step."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.cli import main
from sparkrecipes.cli.progress import Display

CATALOG = Path(__file__).parents[1] / "catalog"
AGENTS_PICK = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
PYTHON = shlex.quote(sys.executable)
LLAMA = ("fit", "llama-3.3-70b-instruct-nvfp4", "--context", "131072", "--users")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    """Run a command with --json; return its exit code and the one object on stdout."""
    code = main([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_list_has_the_23_measured_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with the figures that people choose by."""
    code, answer = run(capsys, "list")
    rows = {r["id"]: r["published"] for r in answer["recipes"]}
    assert (0, 23) == (code, len(rows))
    assert None not in rows.values()
    code, whole = run(capsys, "list", "--all")
    assert (0, answer["more"] + 23) == (code, len(whole["recipes"]))
    assert answer["more"] > 10
    assert 102.3 == rows[AGENTS_PICK]["single_user_tok_s"]


def test_every_doubtful_figure_of_the_list_is_marked(capsys):
    """GPT-OSS's speed and TTFT, and the memory of Flash-Next and of Llama's NIM; no other."""
    assert 0 == main(["list", "--json"])
    listed = json.loads(capsys.readouterr().out)["recipes"]
    assert 0 == main(["list"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert {"memory_gb", "ttft_ms"} < {name for one in listed for name in one["doubtful"]}
    for one in listed:
        assert len(one["doubtful"]) == lines[one["id"]].count("*"), one["id"]
    assert lines["llama-3.1-8b-instruct-nim"].endswith(" 33.6*")
    assert " 96.2* " in lines["gpt-oss-20b-mxfp4-vllm"]
    assert " 3,319* " in lines["gpt-oss-20b-mxfp4-vllm"]


@pytest.mark.parametrize("words", [["agents"], ["agentes"], ["un", "modelo", "para", "agentes"]])
def test_recommend_takes_words_in_two_languages(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """A sentence needs no quotes."""
    code, answer = run(capsys, "recommend", *words)
    assert (0, AGENTS_PICK) == (code, answer["pick"]["id"])


def test_the_published_example_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3.3 70B NVFP4 at 128K x 4, fp8: 163,840 bytes a token, about 133 GB and the reserve."""
    code, answer = run(capsys, *LLAMA, "4", "--kv-cache-dtype", "fp8")
    assert (1, "does_not_fit", 163840) == (code, answer["verdict"], answer["kv_bytes_per_token"])
    reserve = answer["components"]["host_reserve_bytes"]
    assert 128e9 < answer["total_bytes"] - reserve < 137e9
    assert answer["max_users_at_context"] in (2, 3)


def test_common_options_stand_before_or_after_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--json fit X` and `fit X --json` are the same."""
    main(["--json", "--offline", *LLAMA, "1"])
    before = capsys.readouterr().out
    main([*LLAMA, "1", "--offline", "--json"])
    assert before == capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "names"),
    [
        (["show", "qwen3.6-35b-a3b-nvfp4-vllm-mpt"], 2, AGENTS_PICK),
        (["fit", "no-such-model"], 2, "sparkrecipes list"),
        (["fit", "owner/unknown", "--offline"], 3, "--offline"),
        (["image", "UPPER CASE"], 2, ""),
        (["recomend", "agents"], 2, "recommend"),
        (["list", "--machine", "nope"], 2, "dgx-spark"),
        (["show", AGENTS_PICK, "--machine", "nope"], 2, "dgx-spark"),
        (["fit", AGENTS_PICK, "--machine", "dgx-sparc"], 2, "did you mean dgx-spark"),
        (["list", "--jsn"], 2, "--help"),
        (["fit", AGENTS_PICK, "--users", "0"], 2, "--help"),
        (["fit", AGENTS_PICK, "--context", "1000000000"], 2, "1 to 999,999,999"),
        (["fit", AGENTS_PICK, "--context", "-5"], 2, "--help"),
        (["command", AGENTS_PICK, "--port", "99999"], 2, "--help"),
        (["report", "no-such-file.json"], 2, "sparkrecipes round"),
        (["report", "/dev/zero"], 2, "no file"),
        (["diagnose"], 2, "diagnose"),
        (["list", "--catalog", "no-such-folder"], 2, ""),
        (["fit", AGENTS_PICK, "--machine", "no-such-machine"], 2, ""),
        (["round", "--base-url", "http://127.0.0.1:9", "--only", "single"], 1, ""),
    ],
)
def test_errors_have_a_code_a_message_and_a_repair(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    argv: list[str],
    code: int,
    names: str,
) -> None:
    """As JSON on stdout, with the exit code of the table, and no traceback."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    got, answer = run(capsys, *argv)
    assert code == got
    assert {"code", "message", "repair"} == set(answer["error"])
    assert names in answer["error"]["message"] + answer["error"]["repair"]


def test_a_person_gets_the_next_command_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Stdout stays empty."""
    assert 2 == main(["show", "nothing-like-it"])
    shown = capsys.readouterr()
    assert ("", True) == (shown.out, "Next: " in shown.err)


@pytest.mark.parametrize("broken", ["{", "[]", '{"schema_version": 1}', "\x00\xff"])
def test_a_file_that_is_no_round_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, broken: str
) -> None:
    """With the place of the first fault."""
    file = tmp_path / "round.json"
    file.write_text(broken)
    code, answer = run(capsys, "report", str(file))
    assert (1, "invalid_file") == (code, answer["error"]["code"])


def test_help_names_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    """The help page is the map."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    text = capsys.readouterr().out
    assert 0 == ended.value.code
    for command in ("recommend", "fit", "check", "install", "rehearse", "round", "diagnose"):
        assert command in text


def test_a_fault_of_ours_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how to report it."""
    monkeypatch.setattr("sparkrecipes.cli.handlers.HANDLERS", {})
    assert 1 == main(["probe", "--json"])
    assert "internal" == json.loads(capsys.readouterr().out)["error"]["code"]


def test_a_closed_pipe_ends_quietly() -> None:
    """`sparkrecipes list | head -1` prints no complaint."""
    out = subprocess.run(
        ["sh", "-c", f"{PYTHON} -m sparkrecipes list --json | head -c 1"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert ("{", "") == (out.stdout, out.stderr)


def test_a_context_above_the_models_is_said_before_launch_refuses_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`command` shows it, with the limit."""
    _, answer = run(capsys, "command", AGENTS_PICK, "--context", "300k")
    assert any("262,144" in warning for warning in answer["warnings"])


def test_nothing_is_measured_that_could_not_be_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folder is looked at first, and named."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    code, answer = run(capsys, "round", "--base-url", "http://127.0.0.1:9")
    assert (2, "data_folder") == (code, answer["error"]["code"])


@pytest.mark.parametrize("argv", [["recommend", "agents"], [*LLAMA, "1"]])
def test_a_closed_pipe_does_not_change_the_answers_code(argv: list[str]) -> None:
    """A yes stays a yes when its reader has seen enough."""
    command = f"{PYTHON} -m sparkrecipes {' '.join(argv)} | head -c 1; echo ${{PIPESTATUS[0]}}"
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ("0", "") == (out.stdout.splitlines()[-1][-1], out.stderr)


def test_a_full_disk_is_one_line() -> None:
    """No traceback from the last words either."""
    command = f"{PYTHON} -m sparkrecipes probe --json > /dev/full"
    out = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (1, 1) == (out.returncode, len(out.stderr.splitlines()))


def test_image_of_a_recipe_is_asked_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody has to copy the reference out of the recipe; offline that is unknown."""
    code, answer = run(capsys, "image", AGENTS_PICK, "--offline")
    assert (3, "vllm/vllm-openai:v0.31.0-aarch64") == (code, answer["ref"])


def test_a_catalog_without_the_default_machine_is_enough(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`download` and `wait` need a recipe and its engine; no machine is opened for them."""
    shutil.copytree(CATALOG, tmp_path / "catalog", ignore=shutil.ignore_patterns("machines"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    where = ("--catalog", str(tmp_path / "catalog"))
    code, answer = run(capsys, "download", AGENTS_PICK, "--offline", *where)
    assert (1, "not_cached") == (code, answer["error"]["code"])
    code, answer = run(capsys, "wait", AGENTS_PICK, *where)
    assert (3, "docker_missing") == (code, answer["error"]["code"])


def test_install_without_docker_answers_with_the_blocker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not with a question to Docker that nobody could answer: the check says what to mend."""
    monkeypatch.setenv("PATH", str(tmp_path))
    code, answer = run(capsys, "install", AGENTS_PICK, "--offline")
    assert (1, "blocked") == (code, answer["error"]["code"])
    assert "there is no Docker here" in answer["error"]["message"]


@pytest.mark.parametrize("command", ["show", "fit", "check"])
def test_a_line_in_a_pipe_ends_with_its_text(command: str) -> None:
    """One fact is one line, without the blanks of a table: it is searched and copied."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkrecipes", "--offline", command, AGENTS_PICK],
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert ([], True) == ([line for line in lines if line != line.rstrip()], len(lines) > 5)


def test_a_transfer_is_a_line_in_five_seconds_and_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where nobody watches a terminal: the first line, and where it ended, before what follows."""
    moved = [f"image: {n}.00 of 9.00 GB, {n} of 9 layers, 100 MB/s" for n in range(10)]
    with Display() as display:
        for text in (*moved[:5], "image: pulled", *moved[5:]):
            display.line(text)
    shown = capsys.readouterr()
    assert [moved[0], moved[4], "image: pulled", moved[9]] == shown.err.splitlines()
    assert "" == shown.out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1:strict", "utf-8:strict"])
def test_what_an_encoding_lacks_is_an_escape(encoding: str) -> None:
    """Whatever the locale: the designed exit code, no traceback, and JSON that reads back."""
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    name = os.fsdecode(b"/no/\xff\xe2\x82\xac")

    def ask(*argv: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "sparkrecipes", *argv]
        return subprocess.run(command, capture_output=True, env=env, timeout=60)

    wrong, told = ask("--catalog", name, "list", "--json"), ask("recommend", "programación")
    assert (2, b"") == (wrong.returncode, wrong.stderr)
    assert "/no/\udcff€ is not a catalog" in json.loads(wrong.stdout)["error"]["message"]
    assert (0, b"coding:") == (told.returncode, told.stdout[:7])


def test_names_of_files_give_a_terminal_no_orders(tmp_path: Path) -> None:
    """Escape sequences and bytes that are not UTF-8 are shown as escapes, by every face."""
    folder = tmp_path / "catalog"
    shutil.copytree(CATALOG, folder)
    broken = folder / "recipes" / os.fsdecode(b"a\x1b[2J\xff.yaml")
    shutil.copy(folder / "recipes" / f"{AGENTS_PICK}.yaml", broken)
    for argv in (("validate", str(broken)), ("--catalog", str(folder), "list")):
        for extra in ((), ("--json",)):
            done = subprocess.run(
                [sys.executable, "-m", "sparkrecipes", *argv, *extra],
                capture_output=True,
                timeout=60,
            )
            said = done.stdout + done.stderr
            assert (1, False, False) == (done.returncode, b"\x1b" in said, b"internal" in said)
            assert b"udcff.yaml" in said
