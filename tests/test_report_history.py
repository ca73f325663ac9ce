"""The journal of rounds: what is in it after crashes, and what is made of it."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import operations as ops
from sparkrecipes.cli import main
from sparkrecipes.errors import Misuse, RoundFailed
from sparkrecipes.operations.results import rounds_folder, save_round
from sparkrecipes.operations.round_journal import (
    append_line,
    journal_path,
    note_round,
    read_journal,
)
from sparkrecipes.schema.report import History
from sparkrecipes.schema.round import Round
from tests.support.full_round import full_round
from tests.support.replay_server import Engine, ReplayServer, Request, Script, event, page, stream
from tests.support.scripted_round import good

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
DATA = json.loads(full_round().model_dump_json())


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data and state folders that nothing was written to."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    """Run a command as JSON."""
    code = main([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_each_round_is_a_line_as_it_begins_and_one_as_it_ends() -> None:
    """Versioned, with its file; the history shows it once, with figures and state."""
    with ReplayServer(Engine(good)) as server:
        measured = ops.run_round(base_url=server.base_url, model="m", only="single")
    lines = [json.loads(line) for line in journal_path().read_text().splitlines()]
    assert [(1, "began"), (1, "ended")] == [(x["schema_version"], x["event"]) for x in lines]
    assert {measured.saved_to} == {line["file"] for line in lines}
    history = ops.list_rounds()
    (row,) = history.rows
    assert ("ended", measured.saved_to, 4, 0) == (row.state, row.file, row.requests, row.failed)
    assert measured.single
    assert measured.single.decode_tok_s
    assert measured.single.decode_tok_s.median == row.single_user_tok_s
    assert ("not_comparable", ()) == (row.verdict, history.warnings)


def test_a_round_that_failed_throughout_is_in_the_history_too() -> None:
    """The operation raises, and the line is there."""
    with (
        ReplayServer(Engine(lambda _: page({"error": "no"}, "500 Error"))) as server,
        pytest.raises(RoundFailed),
    ):
        ops.run_round(base_url=server.base_url, model="m", only="single")
    (row,) = ops.list_rounds().rows
    assert ("ended", "unstable", True) == (row.state, row.verdict, row.requests == row.failed)


def saved(started: str, **changes: Any) -> Path:
    """A round in the data folder and in the journal."""
    round_ = full_round(started_at=started, **changes)
    stamp = started.replace("-", "").replace(":", "")[:15]
    path = rounds_folder() / f"{stamp}-{round_.recipe_id or 'endpoint'}.json"
    data = json.loads(round_.model_dump_json())
    save_round(path, data)
    note_round(path)
    note_round(path, data)
    return path


def test_the_history_is_filtered_by_recipe_and_the_newest_is_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """When, recipe, method, tok/s, verdict and file, as a table and as JSON."""
    saved("2026-12-01T10:00:00+00:00")
    newest = saved("2026-12-02T10:00:00+00:00", method="school")
    saved("2026-12-01T12:00:00+00:00", recipe_id=None)
    code, answer = run(capsys, "report", "--history", "--recipe", RECIPE)
    assert 0 == code
    assert [("school", "not_comparable"), ("october", "matches")] == [
        (row["method"], row["verdict"]) for row in answer["rows"]
    ]
    assert 3 == len(ops.list_rounds().rows)
    History.model_validate_json(json.dumps(answer))
    assert 0 == main(["report", "--history"])
    shown = capsys.readouterr().out
    assert str(newest) in shown
    assert "2026-12-02 10:00" in shown


def test_an_empty_history_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """No round yet is no error."""
    assert 0 == main(["report", "--history"])
    assert "sparkrecipes round" in capsys.readouterr().out


def test_a_torn_last_line_is_skipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    """C113: NULs after a host crash, or half a line: the others are read, the next one is whole."""
    saved("2026-12-01T10:00:00+00:00")
    whole = journal_path().read_bytes()
    for torn in (b"\0\0\0\0", whole.splitlines()[-1][:900], b"\xff\xfe{"):
        journal_path().write_bytes(whole + torn)
        history = ops.list_rounds()
        assert 1 == len(history.rows)
        assert ["line 3", "torn"] == [w for w in ("line 3", "torn") if w in history.warnings[0]]
        newer = saved("2026-12-02T10:00:00+00:00")
        after = ops.list_rounds()
        assert (2, 1) == (len(after.rows), len(after.warnings))
        newer.unlink()
    code, answer = run(capsys, "report", "--history")
    assert (0, 2, 1) == (code, len(answer["rows"]), len(answer["warnings"]))


def test_the_case_of_the_crash_reads_two_records_and_a_torn_tail(tmp_path: Path) -> None:
    """C113 as handed: two records are read, the torn tail is reported, the third is appended."""
    path = tmp_path / "rounds.jsonl"
    line = json.dumps({"schema_version": 1, "event": "began", "file": "x", "round": None}).encode()
    path.write_bytes(line + b"\n" + line + b"\n\0\0\0\0")
    lines, trouble = read_journal(path)
    assert (2, 1) == (len(lines), len(trouble))
    append_line(path, line)
    lines, trouble = read_journal(path)
    assert (3, 1) == (len(lines), len(trouble))


def test_lines_of_a_later_version_are_skipped_and_named() -> None:
    """An older sparkrecipes beside a newer one."""
    saved("2026-12-01T10:00:00+00:00")
    append_line(journal_path(), b'{"schema_version": 2, "event": "ended"}')
    append_line(journal_path(), b'{"some": "thing"}')
    warnings = ops.list_rounds().warnings
    assert "version 2" in warnings[0]
    assert "not a round" in warnings[1]


def test_appends_at_once_are_all_there(tmp_path: Path) -> None:
    """Eight processes, 25 long lines each: none is lost, none is mixed with another."""
    path = tmp_path / "rounds.jsonl"
    code = (
        "import sys; from pathlib import Path; from sparkrecipes.operations.round_journal import "
        "append_line\nfor n in range(25): append_line(Path(sys.argv[1]), "
        "(sys.argv[2] * 9000 + str(n)).encode())"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), c]) for c in "abcdefgh"]
    assert [0] * 8 == [writer.wait(60) for writer in writers]
    lines = path.read_text().splitlines()
    assert {c * 9000 + str(n) for c in "abcdefgh" for n in range(25)} == set(lines)
    assert 200 == len(lines)


def test_a_closed_state_folder_ends_no_round(folders: Path) -> None:
    """What cannot be written is said, and the round itself is kept."""
    folders.joinpath("state").write_text("a file where a folder should be")
    said: list[str] = []
    with ReplayServer(Engine(good)) as server:
        measured = ops.run_round(
            base_url=server.base_url, model="m", only="single", progress=said.append
        )
    assert any("history" in line and "cannot be written" in line for line in said)
    assert Path(measured.saved_to or "").exists()


def held_after(count: int, seen: list[Request]) -> Engine:
    """An engine that answers so many requests, and leaves the next one without an end."""

    def chat(request: Request) -> Script:
        seen.append(request)
        if len(seen) > count:
            return stream([(0.0, event({"content": "a"}))], "hold", whole=False)
        return good(request)

    return Engine(chat)


def start_round(url: str, only: str) -> subprocess.Popen[bytes]:
    """A round in a process of its own."""
    argv = [sys.executable, "-m", "sparkrecipes", "round", "--base-url", url, "--model", "m"]
    return subprocess.Popen(
        [*argv, "--only", only], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )


def wait_for(seen: list[Request], count: int) -> None:
    """Wait until so many requests have come, and a moment for what is saved before."""
    end = time.monotonic() + 30
    while len(seen) < count and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)


def test_a_killed_round_loses_the_request_in_flight_and_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """C113: kill -9 in the third single: warm-up and two singles are in its file and history."""
    seen: list[Request] = []
    with ReplayServer(held_after(3, seen)) as server:
        process = start_round(server.base_url, "single")
        wait_for(seen, 4)
        process.kill()
        process.communicate()
    (row,) = ops.list_rounds().rows
    assert ("unfinished", 3, 0) == (row.state, row.requests, row.failed)
    assert row.single_user_tok_s
    assert json.loads(Path(row.file).read_text())["single"]["n"] == 2
    code, report = run(capsys, "report")
    assert (3, row.file) == (code, report["round_file"])


def test_ctrl_c_keeps_what_was_measured_and_says_so() -> None:
    """130, two singles in the file, `interrupted` in the history."""
    seen: list[Request] = []
    with ReplayServer(held_after(3, seen)) as server:
        process = start_round(server.base_url, "single")
        wait_for(seen, 4)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert 130 == process.returncode
    assert b"interrupted: what was measured until the interruption is kept" in out
    (row,) = ops.list_rounds().rows
    assert ("interrupted", 3) == (row.state, row.requests)
    assert json.loads(Path(row.file).read_text())["single"]["n"] == 2


def test_misuse_is_no_round() -> None:
    """Options that cannot be used leave no file and no line."""
    with pytest.raises(Misuse):
        ops.run_round(base_url="http://127.0.0.1:9", sustained_minutes=-1.0)
    assert ((), ()) == (ops.list_rounds().rows, ops.list_rounds().warnings)
    assert [] == list(rounds_folder().iterdir())


def test_a_round_whose_file_is_gone_is_said() -> None:
    """It has no end in the journal, and its file was removed: no row, and a line that says so."""
    note_round(rounds_folder() / "20261201T100000-endpoint.json")
    history = ops.list_rounds()
    assert ((), True) == (history.rows, "left nothing" in history.warnings[0])


def test_a_lost_journal_loses_no_round() -> None:
    """What is in the data folder is in the history; files that are no rounds are not."""
    saved("2026-12-01T10:00:00+00:00")
    journal_path().unlink()
    (rounds_folder() / "notes.json").write_text("{}")
    history = ops.list_rounds()
    assert (["ended"], ()) == ([row.state for row in history.rows], history.warnings)


def test_two_rounds_of_one_second_are_two_files() -> None:
    """None overwrites the other."""
    files = set()
    with ReplayServer(Engine(good)) as server:

        def measure() -> None:
            files.add(ops.run_round(base_url=server.base_url, model="m", only="single").saved_to)

        measure()
        measure()
    assert 2 == len(files) == len(ops.list_rounds().rows)


# Which round a bare report takes


def test_a_bare_report_takes_the_newest_round_that_measured_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A newer one that failed throughout, and a file that is none, are passed over and named."""
    usable = saved("2026-12-01T10:00:00+00:00")
    failed = saved(
        "2026-12-02T10:00:00+00:00", stability__requests=3, stability__failed=3, stable=False
    )
    broken = rounds_folder() / f"20261203T100000-{RECIPE}.json"
    broken.write_text("{")
    code, answer = run(capsys, "report")
    assert (0, "matches", str(usable)) == (code, answer["verdict"], answer["round_file"])
    assert str(broken) in answer["warnings"][0]
    assert f"3 of 3 requests failed in {failed}" in answer["warnings"][1]
    assert 0 == main(["report", "--recipe", RECIPE])
    assert str(usable) in capsys.readouterr().out


def test_where_all_failed_the_newest_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Unstable is an answer; nothing is passed over for it."""
    changes = {"stability__requests": 3, "stability__failed": 3, "stable": False}
    saved("2026-12-01T10:00:00+00:00", **changes)
    newest = saved("2026-12-02T10:00:00+00:00", **changes)
    code, answer = run(capsys, "report")
    assert (1, str(newest)) == (code, answer["round_file"])
    assert not any("passed over" in warning for warning in answer["warnings"])


# Export


def exported(*argv: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What an export prints."""
    assert 0 == main(["report", *argv])
    return capsys.readouterr().out


def test_the_json_export_has_the_shape_of_llama_benchy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its names for the whole and for each test; mean, deviation and values of what was measured.

    Names copied from BenchmarkMetadata, BenchmarkRun and BenchmarkMetric of
    eugr/llama-benchy@ae09cab, src/llama_benchy/results.py.
    """
    path = saved("2026-12-01T10:00:00+00:00")
    report = json.loads(exported(str(path), "--export", "json", capsys=capsys))
    top = {"version", "timestamp", "latency_mode", "latency_ms", "model", "prefix_caching_enabled"}
    assert top | {"max_concurrency", "benchmarks"} <= set(report)
    names = {"concurrency", "context_size", "prompt_size", "response_size"}
    metrics = {"pp_throughput", "pp_req_throughput", "tg_throughput", "tg_req_throughput", "ttfr"}
    metrics |= {"peak_throughput", "peak_req_throughput", "est_ppt", "e2e_ttft"}
    series = {"throughput_over_time", "requests_throughput_over_time", "is_context_prefill_phase"}
    assert all(names | metrics | series == set(run) for run in report["benchmarks"])
    single = report["benchmarks"][0]
    assert (1, 60, 300) == (single["concurrency"], single["prompt_size"], single["response_size"])
    assert {"mean", "std", "values"} == set(single["tg_throughput"])
    assert 102.3 == pytest.approx(single["tg_throughput"]["mean"])
    assert 102.3 * 0.02 / 3**0.5 == pytest.approx(single["tg_throughput"]["std"])
    assert single["ttfr"] is single["peak_throughput"] is None
    assert [1, 1, 4, 2, 8, 16] == [run["concurrency"] for run in report["benchmarks"]]
    assert 5445 == pytest.approx(report["benchmarks"][1]["pp_throughput"]["mean"])


def test_the_csv_export_has_the_columns_of_llama_benchy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its 16 columns in its order, then ours; a line for each test of each round."""
    saved("2026-12-01T10:00:00+00:00")
    saved("2026-12-02T10:00:00+00:00")
    text = exported("--history", "--export", "csv", capsys=capsys)
    heads = "model,test_name,t_s_mean,t_s_std,t_s_req_mean,t_s_req_std,peak_ts_mean,peak_ts_std,"
    heads += "peak_ts_req_mean,peak_ts_req_std,ttfr_mean,ttfr_std,est_ppt_mean,est_ppt_std,"
    heads += "e2e_ttft_mean,e2e_ttft_std,started_at,recipe_id,tool_version,simulated"
    assert heads == text.splitlines()[0]
    rows = list(csv.DictReader(io.StringIO(text)))
    tests = ["tg300 (c1)", "pp46012 (c1)", *(f"tg300 (c{n})" for n in (4, 2, 8, 16))]
    assert tests * 2 == [row["test_name"] for row in rows]
    assert "2026-12-01T10:00:00+00:00" == rows[0]["started_at"]
    assert 106.0 == pytest.approx(float(rows[0]["e2e_ttft_mean"]))


def test_tests_of_one_user_alone_are_not_told_apart_by_users() -> None:
    """As llama-benchy names them: the number of users is added where there are several."""
    alone = {**DATA, "concurrent": None, "users_curve": []}
    text = ops.export_rounds([Round.model_validate_json(json.dumps(alone))], format="csv").text
    rows = csv.DictReader(io.StringIO(text))
    assert ["tg300", "pp46012"] == [row["test_name"] for row in rows]


def test_a_figure_whose_values_were_not_kept_is_not_exported(tmp_path: Path) -> None:
    """A median is no mean: the metric is null."""
    data = json.loads(json.dumps(DATA))
    del data["single"]["decode_tok_s"]["values"]
    path = tmp_path / "round.json"
    path.write_text(json.dumps(data))
    report = json.loads(ops.export_rounds([path]).text)
    assert report["benchmarks"][0]["tg_throughput"] is None


def test_a_measured_round_is_exported_with_its_values() -> None:
    """The client keeps each value: mean and deviation are those of the requests."""
    with ReplayServer(Engine(good)) as server:
        measured = ops.run_round(base_url=server.base_url, model="m", only="single")
    report = json.loads(ops.export_rounds().text)
    assert measured.single
    assert measured.single.decode_tok_s
    values = report["benchmarks"][0]["tg_throughput"]["values"]
    assert list(measured.single.decode_tok_s.values) == values
    assert 3 == len(values)


def test_nothing_to_export_is_misuse() -> None:
    """With the command that measures."""
    for history in (True, False):
        with pytest.raises(Misuse, match="no"):
            ops.export_rounds(history=history)
    assert 2 == main(["report", "--export", "csv"])
    assert 2 == main(["report", "--history", "--markdown"])


def test_readers_and_writers_at_once_see_whole_lines() -> None:
    """A history that is read while rounds end has no torn line."""
    path, stop, torn = journal_path(), threading.Event(), list[str]()

    def read() -> None:
        while not stop.is_set():
            torn.extend(ops.list_rounds().warnings)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(8):
        note_round(path.with_name(f"{number}.json"), DATA)
    stop.set()
    reader.join()
    assert [] == torn
    assert 8 == len(ops.list_rounds().rows)
