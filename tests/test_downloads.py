"""Downloads with the real Hub client, against a small Hub on this host."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.downloads.failures import Asking, explain
from sparkrecipes.downloads.parts import Part
from sparkrecipes.downloads.progress import DownloadProgress, Meter, watch
from sparkrecipes.errors import DownloadFailed
from sparkrecipes.schema.recipe import Recipe, RecipeImage, Serving, WeightsSource
from sparkrecipes.weights_cache import find
from tests.support.hub import Fault, Hub, HubRepo, sha256
from tests.support.hub_client import HubClient, environment

SHA = "a" * 40
DRAFT_SHA = "b" * 40
TARGET, DRAFT = "acme/tiny", "acme/draft"


def recipe(revision: str | None = SHA, drafter: str | None = None, **fields: Any) -> Recipe:
    """Return a recipe of the small repositories."""
    return Recipe(
        id="tiny-vllm",
        title="Tiny",
        model="tiny",
        quant="bf16",
        weights=WeightsSource(repo=TARGET, revision=revision),
        drafter=WeightsSource(repo=drafter) if drafter else None,
        image=RecipeImage(reference="vllm/vllm-openai:v0.31.0"),
        engine="vllm",
        engine_version="0.31.0",
        served_model_name="tiny",
        serving=Serving(
            context_tokens=1024, users=4, kv_cache_dtype="fp8", gpu_memory_utilization=0.3
        ),
        startup_timeout_s=600,
        capabilities=("text",),
        sources=("a test",),
    ).model_copy(update=fields)


def target(**fields: Any) -> HubRepo:
    """Return a sharded repository with a second copy of its weights and a picture."""
    files = {
        "README.md": b"# tiny",
        "config.json": b"{}",
        "model-00001-of-00002.safetensors": b"1" * 40_000,
        "model-00002-of-00002.safetensors": b"2" * 30_000,
        "model.safetensors.index.json": b'{"weight_map": {}}',
        "original/consolidated.00.pth": b"3" * 70_000,
        "picture.png": b"4" * 10_000,
        "tokenizer.json": b"{ }",
    }
    return HubRepo(files, commit=SHA, **fields)


def draft(**fields: Any) -> HubRepo:
    """Return a drafter: one file of weights."""
    files = {"config.json": b"{  }", "model.safetensors": b"5" * 5_000}
    return HubRepo(files, commit=DRAFT_SHA, **fields)


WANTED = {
    name: content
    for name, content in target().files.items()
    if name not in ("original/consolidated.00.pth", "picture.png")
}
WANTED_BYTES = sum(map(len, WANTED.values()))


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Hub, HubClient]]:
    """Keep one hub and one client process for all tests here."""
    with Hub() as server, tempfile.TemporaryDirectory() as home:
        client = HubClient(server.url, Path(home))
        yield server, client
        client.close()


@pytest.fixture
def hub(running: tuple[Hub, HubClient]) -> Hub:
    """Return the hub with a target and a drafter, and nothing wrong."""
    running[0].reset({TARGET: target(), DRAFT: draft()})
    return running[0]


@pytest.fixture
def client(running: tuple[Hub, HubClient]) -> HubClient:
    """Return the client process."""
    return running[1]


def failed(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the error of an answer; each must say what to do."""
    error: dict[str, Any] = answer["error"]
    assert error["repair"]
    return error


def test_only_what_the_engine_reads_is_fetched_and_proved(hub, client, tmp_path):
    """A sharded repository at the recipe's commit: every wanted file, no second copy."""
    answer = client.ask("download", recipe(), tmp_path)
    (repo,) = answer["result"]["repos"]
    assert {
        "role": "weights",
        "repo": TARGET,
        "revision": SHA,
        "snapshot": str(tmp_path / "models--acme--tiny" / "snapshots" / SHA),
        "files": 6,
        "total_bytes": WANTED_BYTES,
        "fetched_bytes": WANTED_BYTES,
        "complete": True,
    } == repo
    snapshot = Path(repo["snapshot"])
    on_disk = {str(p.relative_to(snapshot)): p.read_bytes() for p in snapshot.rglob("*.*")}
    assert on_disk == WANTED
    assert [] == answer["result"]["warnings"]
    found = find(TARGET, SHA, root=tmp_path)
    assert found is not None
    assert found.complete is True


def test_progress_ends_at_the_whole(hub, client, tmp_path):
    """Bytes and files of target and drafter together; nothing goes backwards."""
    answer = client.ask("download", recipe(drafter=DRAFT), tmp_path)
    seen = answer["progress"]
    total = WANTED_BYTES + 5_004
    assert [total, total, 8, 8] == seen[-1]
    assert sorted(seen) == seen
    assert {total} == {total_bytes for _, total_bytes, _, _ in seen}


def test_files_that_are_equal_count_as_done(hub, client, tmp_path):
    """The library transfers equal files once; the display ends at the whole all the same."""
    hub.reset({TARGET: HubRepo({"a.json": b"{}", "b.json": b"{}", "model.safetensors": b"x"})})
    answer = client.ask("download", recipe(), tmp_path)
    assert [5, 5, 3, 3] == answer["progress"][-1]


def test_success_of_the_library_is_not_believed(hub, client, tmp_path):
    """A file that is not as long as it was listed makes the download incomplete."""
    hub.repos[TARGET].claimed_sizes["tokenizer.json"] = 4
    error = failed(client.ask("download", recipe(), tmp_path))
    assert ("incomplete", 1) == (error["code"], error["exit_code"])
    assert "tokenizer.json" in error["message"]


def test_a_finished_download_asks_nothing_again(hub, client, tmp_path):
    """A pinned commit that is whole needs no network, and no byte."""
    client.ask("download", recipe(), tmp_path)
    hub.reset({})
    answer = client.ask("download", recipe(), tmp_path)
    assert 0 == answer["result"]["repos"][0]["fetched_bytes"]
    assert 6 == answer["result"]["repos"][0]["files"]
    assert [] == hub.requests


def test_an_unpinned_recipe_gets_the_commit_of_main(hub, client, tmp_path):
    """The commit that is used is reported, recorded as main, and fetched by its hash."""
    answer = client.ask("download", recipe(None), tmp_path)
    assert SHA == answer["result"]["repos"][0]["revision"]
    assert [f"the recipe pins no revision of {TARGET}: main is {SHA} now"] == (
        answer["result"]["warnings"]
    )
    assert SHA == (tmp_path / "models--acme--tiny" / "refs" / "main").read_text()
    assert [] == [line for line in hub.requests if "resolve/main" in line]
    found = find(TARGET, root=tmp_path)
    assert found is not None
    assert (SHA, True) == (found.revision, found.complete)


def test_main_moves_only_when_the_new_commit_is_whole(hub, client, tmp_path):
    """A download that fails leaves main at the commit that an engine can load."""
    client.ask("download", recipe(None), tmp_path)
    newer = HubRepo({**WANTED, "model-00002-of-00002.safetensors": b"6" * 30_000}, commit="c" * 40)
    hub.reset({TARGET: newer})
    assert 30_000 == client.ask("plan", recipe(None), tmp_path)["result"]["fetch_bytes"]
    hub.faults = [Fault("GET /cdn/", status=404)]
    assert "error" in client.ask("download", recipe(None), tmp_path)
    assert SHA == (tmp_path / "models--acme--tiny" / "refs" / "main").read_text()
    hub.faults = []
    answer = client.ask("download", recipe(None), tmp_path)
    assert 30_000 == answer["result"]["repos"][0]["fetched_bytes"]
    assert "c" * 40 == (tmp_path / "models--acme--tiny" / "refs" / "main").read_text()


def test_the_plan_counts_what_is_cached_and_writes_nothing(hub, client, tmp_path):
    """What is on disk is not counted; the cache is as it was."""
    first = client.ask("plan", recipe(drafter=DRAFT), tmp_path / "hub")["result"]
    assert WANTED_BYTES + 5_004 == first["fetch_bytes"]
    assert [SHA, DRAFT_SHA] == first["revisions"]
    assert first["free_bytes"] > 0
    assert not (tmp_path / "hub").exists()
    client.ask("download", recipe(), tmp_path / "hub")
    second = client.ask("plan", recipe(drafter=DRAFT), tmp_path / "hub")["result"]
    assert 5_004 == second["fetch_bytes"]


def test_too_little_room_is_refused_before_the_first_byte(hub, client, tmp_path):
    """C53: the sum of all missing files, with 5 percent, against the cache's own disk."""
    huge = 10**15
    hub.repos[DRAFT].claimed_sizes["model.safetensors"] = huge
    error = failed(client.ask("download", recipe(drafter=DRAFT), tmp_path / "hub"))
    assert ("no_disk_space", 1) == (error["code"], error["exit_code"])
    assert "1000000.0 GB are to be fetched and need 1050000.0 GB" in error["message"]
    assert "HF_HUB_CACHE" in error["repair"]
    assert not (tmp_path / "hub").exists()
    assert 0 == hub.sent


def test_a_gated_repository_without_a_token(hub, client, tmp_path):
    """C48: the licence page and how to log in; asked once, not in a loop."""
    hub.repos[TARGET].gated = True
    error = failed(client.ask("download", recipe(), tmp_path))
    assert ("gated_no_token", 1) == (error["code"], error["exit_code"])
    assert "https://huggingface.co/acme/tiny" in error["repair"]
    assert "hf auth login (or set HF_TOKEN)" in error["repair"]
    assert 1 == len([line for line in hub.requests if line.startswith("HEAD")])


def test_a_gated_repository_with_a_token_that_was_not_accepted(hub, client, tmp_path):
    """Another answer than without a token: it is the access that is missing."""
    hub.repos[TARGET].gated = True
    error = failed(client.ask("download", recipe(), tmp_path, token="hf_notaccepted"))
    assert "gated_not_accepted" == error["code"]
    assert "hf_notaccepted" not in str(error)


def test_a_gated_repository_with_access_is_fetched(hub, client, tmp_path):
    """The client sends the token of HF_TOKEN itself."""
    hub.repos[TARGET].gated = True
    answer = client.ask("download", recipe(), tmp_path, token="hf_accepted")
    assert answer["result"]["repos"][0]["complete"] is True


def test_a_gated_drafter_is_found_before_the_target_is_fetched(hub, client, tmp_path):
    """Not a byte of the target, where the drafter cannot be had."""
    hub.repos[DRAFT].gated = True
    error = failed(client.ask("download", recipe(drafter=DRAFT), tmp_path))
    assert "gated_no_token" == error["code"]
    assert 0 == hub.sent


@pytest.mark.parametrize("token", [None, "hf_accepted"])
def test_a_repository_that_is_not_shown(hub, client, tmp_path, token):
    """C50: misspelt, gone or private get the same answer, and neither is claimed."""
    del hub.repos[TARGET]
    error = failed(client.ask("download", recipe(), tmp_path, token=token))
    assert "not_found_or_private" == error["code"]
    assert "it does not exist or is private" in error["message"]
    assert "check the spelling" in error["repair"]


def test_a_token_that_the_hub_refuses(hub, client, tmp_path):
    """A wrong or expired token is no missing repository; it is never shown."""
    error = failed(client.ask("download", recipe(), tmp_path, token="hf_expired0000000000"))
    assert "bad_token" == error["code"]
    assert "hf_expired" not in str(error)


def test_a_revision_that_is_not_there(hub, client, tmp_path):
    """The commit is named, with where to find the right one."""
    error = failed(client.ask("download", recipe("f" * 40), tmp_path))
    assert "revision_not_found" == error["code"]
    assert "f" * 40 in error["message"]


def test_a_repository_that_the_hub_has_closed(hub, client, tmp_path):
    """Closed is neither missing nor gated."""
    hub.repos[TARGET].disabled = True
    assert "repo_disabled" == failed(client.ask("download", recipe(), tmp_path))["code"]


def test_a_repository_without_weights(hub, client, tmp_path):
    """Only ONNX: nothing that an engine loads."""
    hub.reset({TARGET: HubRepo({"config.json": b"{}", "onnx/model.onnx": b"x"})})
    assert "no_weights" == failed(client.ask("download", recipe(), tmp_path))["code"]


@pytest.mark.parametrize("commit", ["main", "a" * 39, "../../../evil", ""])
def test_a_hub_that_names_no_commit(hub, client, tmp_path, commit):
    """What is no commit is no pin, and names no folder: unknown, and nothing is written."""
    files = {"config.json": b"{}", "model.safetensors": b"x"}
    hub.reset({TARGET: HubRepo(files, commit=commit)})
    answer = failed(client.ask("download", recipe(None), tmp_path))
    assert ("no_commit", 3) == (answer["code"], answer["exit_code"])
    assert [] == list(tmp_path.iterdir())


def test_a_listing_that_leads_out_of_the_cache(hub, client, tmp_path):
    """Paths of a hostile answer are refused before anything is written."""
    hub.reset({TARGET: HubRepo({"../../evil.py": b"x", "model.safetensors": b"x"})})
    assert "bad_listing" == failed(client.ask("download", recipe(), tmp_path))["code"]
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (Fault("/api/models", 429, {"Retry-After": "17"}), "rate_limited", "wait 17 s"),
        (
            Fault("/api/models", 429, {"RateLimit": '"api";r=0;t=55'}),
            "rate_limited",
            "wait 55 s",
        ),
        (Fault("/api/models", 503), "hub_down", "status.huggingface.co"),
        (Fault("/api/models", 500), "hub_down", "status.huggingface.co"),
    ],
)
def test_a_hub_that_gives_no_answer_is_unknown(hub, client, tmp_path, fault, code, said):
    """Too many requests and errors of the Hub say nothing about the weights: exit 3."""
    hub.faults = [fault]
    error = failed(client.ask("download", recipe(), tmp_path))
    assert (code, 3) == (error["code"], error["exit_code"])
    assert said in error["repair"]
    assert 1 == len([line for line in hub.requests if "/api/models" in line])


def test_no_network_is_unknown_unless_the_cache_is_whole(hub, client, tmp_path):
    """Without a Hub the last known main will do, if it is whole; else nothing is known."""
    client.ask("download", recipe(None), tmp_path)
    hub.faults = [Fault("/api/models", 503)]
    answer = client.ask("download", recipe(None), tmp_path)
    assert [f"the Hub answers 503: {SHA} of the cache is used"] == answer["result"]["warnings"]
    assert 3 == failed(client.ask("download", recipe(None), tmp_path / "2"))["exit_code"]


def test_a_hub_that_is_not_there(tmp_path):
    """A refused connection is no network: exit 3."""
    client = HubClient("http://127.0.0.1:9", tmp_path / "home")
    error = failed(client.ask("download", recipe(), tmp_path / "hub"))
    client.close()
    assert ("no_network", 3) == (error["code"], error["exit_code"])


def test_what_answers_is_no_hub(hub, client, tmp_path):
    """A captive portal or a wrong HF_ENDPOINT answers 200 without the Hub's headers."""
    hub.faults = [Fault("HEAD ", 200)]
    assert "not_a_hub" == failed(client.ask("download", recipe(), tmp_path))["code"]


def test_a_cut_connection_goes_on_where_it_was(hub, client, tmp_path):
    """Inside one run the library asks for the rest of a file, from the last whole 10 MiB on."""
    size, cut = 12_000_000, 11_000_000
    hub.reset({TARGET: HubRepo({"model.safetensors": b"7" * size}, commit=SHA)})
    hub.faults = [Fault("GET /cdn/", cut_after=cut, times=1)]
    answer = client.ask("download", recipe(), tmp_path)
    assert answer["result"]["repos"][0]["complete"] is True
    assert cut + size - 10 * 2**20 == hub.sent
    assert 2 == len(hub.gets("/cdn/"))


def test_a_connection_that_stays_cut_keeps_finished_files(hub, client, tmp_path):
    """The error says so, and the next run fetches only the rest."""
    hub.faults = [Fault("GET /cdn/", cut_after=0)]
    error = failed(client.ask("download", recipe(), tmp_path))
    assert ("no_network", 1) == (error["code"], error["exit_code"])
    assert error["message"].endswith("finished files are kept")
    hub.reset({TARGET: target()})
    answer = client.ask("download", recipe(), tmp_path)
    assert 70_000 == hub.sent == answer["result"]["repos"][0]["fetched_bytes"]


def test_a_file_that_is_listed_and_gone(hub, client, tmp_path):
    """An error in the middle is explained, too."""
    hub.faults = [Fault("GET /cdn/", 404, {"X-Error-Code": "EntryNotFound"})]
    assert "file_not_found" == failed(client.ask("download", recipe(), tmp_path))["code"]


def test_a_damaged_file_is_fetched_again_alone(hub, client, tmp_path):
    """C56: the library trusts a short file for ever; its size gives it away."""
    client.ask("download", recipe(), tmp_path)
    snapshot = tmp_path / "models--acme--tiny" / "snapshots" / SHA
    (snapshot / "model-00002-of-00002.safetensors").resolve().write_bytes(b"")
    hub.reset({TARGET: target()})
    answer = client.ask("download", recipe(), tmp_path)
    assert 30_000 == answer["result"]["repos"][0]["fetched_bytes"]
    assert b"2" * 30_000 == (snapshot / "model-00002-of-00002.safetensors").read_bytes()
    assert 1 == len(hub.gets("/cdn/"))


def test_verify_finds_a_changed_byte_and_mends_it(hub, client, tmp_path):
    """Sizes cannot see it; with verify=True the hash does."""
    client.ask("download", recipe(), tmp_path)
    snapshot = tmp_path / "models--acme--tiny" / "snapshots" / SHA
    file = snapshot / "model-00001-of-00002.safetensors"
    file.resolve().write_bytes(b"9" + b"1" * 39_999)
    assert "result" in client.ask("download", recipe(), tmp_path)
    assert b"9" == file.read_bytes()[:1]
    answer = client.ask("download", recipe(), tmp_path, verify=True)
    assert 40_000 == answer["result"]["repos"][0]["fetched_bytes"]
    assert b"1" == file.read_bytes()[:1]


def test_offline_answers_from_the_cache(hub, client, tmp_path):
    """Whole: done, without a request. Not whole: what is missing. Not there: said."""
    absent = failed(client.ask("download", recipe(), tmp_path, offline=True))
    assert ("not_cached", 1) == (absent["code"], absent["exit_code"])
    client.ask("download", recipe(), tmp_path)
    hub.reset({})
    whole = client.ask("download", recipe(), tmp_path, offline=True)["result"]
    assert (True, 0) == (whole["repos"][0]["complete"], whole["repos"][0]["fetched_bytes"])
    (tmp_path / "models--acme--tiny" / "snapshots" / SHA / "config.json").unlink()
    error = failed(client.ask("download", recipe(), tmp_path, offline=True))
    assert "incomplete" == error["code"]
    assert "config.json is missing" in error["message"]
    assert [] == hub.requests


def test_offline_that_nothing_proves_is_unknown(hub, client, tmp_path):
    """C55: a folder that is there proves nothing."""
    snapshot = tmp_path / "models--acme--tiny" / "snapshots" / SHA
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    error = failed(client.ask("download", recipe(), tmp_path, offline=True))
    assert ("unproved", 3) == (error["code"], error["exit_code"])


def test_the_librarys_own_offline_switch_counts(tmp_path):
    """HF_HUB_OFFLINE=1 is as --offline."""
    client = HubClient("http://127.0.0.1:9", tmp_path / "home", HF_HUB_OFFLINE="1")
    error = failed(client.ask("download", recipe(), tmp_path / "hub"))
    client.close()
    assert "not_cached" == error["code"]


def test_an_image_that_fetches_its_own_weights(hub, client, tmp_path):
    """Nothing to do for a NIM, and what it needs instead."""
    answer = client.ask("download", recipe(weights=None, engine="nim"), tmp_path)["result"]
    assert [] == answer["repos"]
    assert "NGC_API_KEY" in answer["warnings"][0]
    assert [] == hub.requests


def test_parts_of_a_killed_run_are_named(hub, client, tmp_path):
    """Nothing will use them again, and it is not ours to delete them."""
    blobs = tmp_path / "models--acme--tiny" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "x.1234.incomplete").write_bytes(b"0" * 20_000_000)
    answer = client.ask("download", recipe(), tmp_path)["result"]
    expected = "0.02 GB of unfinished parts are of no use any more: hf cache prune"
    assert [expected] == answer["warnings"]
    assert answer["repos"][0]["complete"] is True
    assert (blobs / "x.1234.incomplete").exists()


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from pathlib import Path
from sparkrecipes.downloads import download
from tests.test_downloads import recipe
try:
    download(recipe(), root=Path(sys.argv[1]))
except KeyboardInterrupt as stop:
    print(*stop.__notes__)
"""


def held_download(
    hub: Hub, root: Path, home: Path
) -> tuple[subprocess.Popen[str], threading.Event]:
    """Start a download in a process of its own, and hold one file when all others are done."""
    hold = threading.Event()
    held = sha256(WANTED["model-00001-of-00002.safetensors"])
    hub.faults = [Fault(f"GET /cdn/{held}", cut_after=20_000, hold=hold, times=1)]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(root)],
        env=environment(hub.url, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    snapshot = root / "models--acme--tiny" / "snapshots" / SHA
    deadline = time.monotonic() + 20
    while len(list(snapshot.glob("*"))) < len(WANTED) - 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    return process, hold


def test_ctrl_c_keeps_finished_files_and_says_so(hub, client, tmp_path):
    """KeyboardInterrupt passes through with a note; the next run fetches the one in flight."""
    process, hold = held_download(hub, tmp_path / "hub", tmp_path / "home")
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    hold.set()
    output, _ = process.communicate(timeout=20)
    assert "finished files of acme/tiny and parts of large ones are kept" in output
    assert "sparkrecipes download tiny-vllm" in output
    assert [] == list((tmp_path / "hub").rglob("*.incomplete"))
    hub.reset({TARGET: target()})
    answer = client.ask("download", recipe(), tmp_path / "hub")
    assert answer["result"]["repos"][0]["complete"] is True
    assert 40_000 == hub.sent


def test_a_kill_loses_only_the_files_in_flight(hub, client, tmp_path):
    """After kill -9 the cache is incomplete, not corrupt, and a new run mends it."""
    process, hold = held_download(hub, tmp_path / "hub", tmp_path / "home")
    process.kill()
    process.communicate(timeout=20)
    hold.set()
    found = find(TARGET, SHA, root=tmp_path / "hub")
    assert found is not None
    assert found.complete is False
    hub.reset({TARGET: target()})
    answer = client.ask("download", recipe(), tmp_path / "hub")["result"]
    assert 40_000 == answer["repos"][0]["fetched_bytes"]
    assert 1 == len(list((tmp_path / "hub").rglob("*.incomplete")))


LARGE = {
    "config.json": b"{}",
    "model-00001-of-00002.safetensors": b"1" * 25_000_000,
    "model-00002-of-00002.safetensors": b"2" * 12_000_000,
    "tokenizer.json": b"{ }",
}
BIG = sha256(LARGE["model-00001-of-00002.safetensors"])
WRITTEN = 20 * 2**20


def cut_in_the_middle(
    hub: Hub, root: Path, home: Path, *, xet: bool = False
) -> subprocess.Popen[str]:
    """Start a download, and hold its largest file when two parts of 10 MiB have been written."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    hub.xet = xet
    hub.faults = [Fault(f"GET /cdn/{BIG}", cut_after=24_000_000, hold=threading.Event(), times=1)]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(root)],
        env=environment(hub.url, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    blobs = root / "models--acme--tiny" / "blobs"
    other, part = blobs / sha256(LARGE["model-00002-of-00002.safetensors"]), part_of(root)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if other.is_file() and part.is_file() and part.stat().st_size == WRITTEN:
            break
        time.sleep(0.02)
    return process


def part_of(root: Path) -> Path:
    """Return where the beginning of the largest file is kept."""
    return root / "models--acme--tiny" / "blobs" / f"{BIG}.part.incomplete"


def go_on(hub: Hub, client: HubClient, root: Path, *, xet: bool = False) -> dict[str, Any]:
    """Let the hub forget what it sent, and run again."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    hub.xet = xet
    answer = client.ask("download", recipe(), root)
    snapshot = root / "models--acme--tiny" / "snapshots" / SHA
    for name, content in LARGE.items():
        assert content == (snapshot / name).read_bytes(), name
    assert [] == list(root.rglob("*.incomplete"))
    return answer


def test_a_kill_loses_at_most_the_last_10_mib_of_a_large_file(hub, client, tmp_path):
    """Kill -9: the next process asks for the rest alone, and counts the part as there."""
    process = cut_in_the_middle(hub, tmp_path / "hub", tmp_path / "home")
    process.kill()
    process.communicate(timeout=20)
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    rest = sum(map(len, LARGE.values())) - 12_000_000 - WRITTEN
    assert rest == client.ask("plan", recipe(), tmp_path / "hub")["result"]["fetch_bytes"]
    answer = go_on(hub, client, tmp_path / "hub")
    assert rest == hub.sent == answer["result"]["repos"][0]["fetched_bytes"]
    assert (25_000_000 - WRITTEN) == hub.sent - len(LARGE["config.json"] + LARGE["tokenizer.json"])
    assert [37_000_005, 37_000_005, 4, 4] == answer["progress"][-1]
    assert min(at[0] for at in answer["progress"]) >= 12_000_000 + WRITTEN
    assert [] == answer["result"]["warnings"]


def test_a_file_in_xet_is_gone_on_with_as_well(hub, client, tmp_path):
    """A Xet transfer would begin anew: what can be had by plain HTTP comes in parts, too."""
    process = cut_in_the_middle(hub, tmp_path / "hub", tmp_path / "home", xet=True)
    process.kill()
    process.communicate(timeout=20)
    assert WRITTEN == part_of(tmp_path / "hub").stat().st_size
    rest = sum(map(len, LARGE.values())) - 12_000_000 - WRITTEN
    answer = go_on(hub, client, tmp_path / "hub", xet=True)
    assert rest == hub.sent == answer["result"]["repos"][0]["fetched_bytes"]
    assert [] == hub.gets("/api/xet-token")


def test_who_asks_for_xet_gets_it(hub, tmp_path):
    """The library's own switch for it: then large files are left to the library."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    hub.xet = True
    client = HubClient(hub.url, tmp_path / "home", HF_XET_HIGH_PERFORMANCE="1")
    error = failed(client.ask("download", recipe(), tmp_path / "hub"))
    client.close()
    assert [] == hub.gets("/cdn/")
    assert hub.gets("/api/xet-token")
    assert error["code"]


def test_ctrl_c_keeps_the_part_of_a_large_file(hub, client, tmp_path):
    """Interrupted, not killed: the note says so, and the next run goes on."""
    process = cut_in_the_middle(hub, tmp_path / "hub", tmp_path / "home")
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    for fault in hub.faults:
        assert fault.hold is not None
        fault.hold.set()
    output, _ = process.communicate(timeout=20)
    assert "parts of large ones are kept; go on with: sparkrecipes download tiny-vllm" in output
    go_on(hub, client, tmp_path / "hub")
    assert hub.sent < 25_000_000 - WRITTEN + 10


def test_a_network_cut_keeps_the_part_of_a_large_file(hub, client, tmp_path):
    """The connection stays broken: a clear answer, and the next run goes on."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    hub.faults = [
        Fault(f"GET /cdn/{BIG}", cut_after=24_000_000, times=1),
        Fault(f"GET /cdn/{BIG}", cut_after=0),
    ]
    error = failed(client.ask("download", recipe(), tmp_path))
    assert ("no_network", 1) == (error["code"], error["exit_code"])
    assert WRITTEN == part_of(tmp_path).stat().st_size
    go_on(hub, client, tmp_path)
    assert hub.sent <= 25_000_000 - WRITTEN + 12_000_005


def test_a_token_that_expires_on_the_way_keeps_the_part(hub, client, tmp_path):
    """The Hub refuses in the middle; with a good token the same command goes on."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA, gated=True)})
    hub.faults = [Fault("GET /acme/tiny/resolve/", 401)]
    part_of(tmp_path).parent.mkdir(parents=True)
    part_of(tmp_path).write_bytes(b"1" * WRITTEN)
    error = failed(client.ask("download", recipe(), tmp_path, token="hf_accepted"))
    assert "bad_token" == error["code"]
    assert "hf auth login" in error["repair"]
    assert "hf_accepted" not in str(error)
    go_on(hub, client, tmp_path)
    assert hub.sent <= 25_000_000 - WRITTEN + 12_000_005


def test_a_token_goes_to_the_hub_alone(hub, client, tmp_path):
    """Where large files are stored is another host: it gets none."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA, gated=True)})
    assert "result" in client.ask("download", recipe(), tmp_path, token="hf_accepted")
    assert [] == hub.leaked


@pytest.mark.parametrize(
    ("kept", "fetched"),
    [(b"9" + b"1" * (WRITTEN - 1), 2), (b"1" * 24_999_999 + b"9", 1), (b"1" * 26_000_000, 1)],
    ids=["a changed byte", "whole and wrong", "too long"],
)
def test_a_part_that_is_not_of_the_file_is_never_used(hub, client, tmp_path, kept, fetched):
    """After a power cut a part can hold anything: the hash finds it, and the file begins anew."""
    part_of(tmp_path).parent.mkdir(parents=True)
    part_of(tmp_path).write_bytes(kept)
    go_on(hub, client, tmp_path)
    assert fetched == len(hub.gets(f"/cdn/{BIG}"))


def test_a_server_without_ranges_sends_the_whole_again(hub, client, tmp_path):
    """What was kept is given up, and nothing is stitched together wrongly."""
    part_of(tmp_path).parent.mkdir(parents=True)
    part_of(tmp_path).write_bytes(b"1" * WRITTEN)
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    hub.ranges = False
    assert "result" in client.ask("download", recipe(), tmp_path)
    blob = part_of(tmp_path).with_name(BIG)
    assert LARGE["model-00001-of-00002.safetensors"] == blob.read_bytes()


def test_a_file_whose_hash_is_wrong_is_not_kept(hub, client, tmp_path):
    """Begun anew it is wrong again: corrupt, and nothing of it stays in the cache."""
    hub.reset({TARGET: HubRepo(dict(LARGE), commit=SHA)})
    part_of(tmp_path).parent.mkdir(parents=True)
    part_of(tmp_path).write_bytes(b"1")
    hub.served[BIG] = b"9" * 25_000_000
    error = failed(client.ask("download", recipe(), tmp_path))
    assert "corrupt" == error["code"]
    assert "model-00001-of-00002.safetensors" in error["message"]
    assert not part_of(tmp_path).exists()
    assert not part_of(tmp_path).with_name(BIG).exists()


def test_two_downloads_at_once_fetch_each_file_once(hub, client, tmp_path):
    """The second waits for the first one's lock, and finds the file."""
    process = cut_in_the_middle(hub, tmp_path / "hub", tmp_path / "home")
    (fault,) = hub.faults
    assert fault.hold is not None
    threading.Timer(1.0, fault.hold.set).start()
    answer = client.ask("download", recipe(), tmp_path / "hub")
    process.communicate(timeout=20)
    assert answer["result"]["repos"][0]["complete"] is True
    assert 1 == len(hub.gets(f"/cdn/{BIG}"))


def hexdigest(part: Part) -> str:
    """Return the hash that a part has so far."""
    assert part.hash is not None
    return part.hash.hexdigest()


def test_a_full_disk_is_counted_to_the_byte(tmp_path):
    """What was not written is neither counted nor hashed: the part goes on where it really ends."""
    path = tmp_path / "part"
    with Part(path, 100, prove=True) as part:
        part.write(b"abc")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, limit[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                part.write(b"defgh")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)
        assert (5, sha256(b"abcde")) == (part.tell(), hexdigest(part))
    with Part(path, 100, prove=True) as part:
        assert (5, sha256(b"abcde")) == (part.tell(), hexdigest(part))


OTHER_USER = """
import os, sys
from pathlib import Path
from sparkrecipes.downloads import plan
from sparkrecipes.errors import DownloadFailed
from tests.test_downloads import recipe
plan(recipe(), root=Path(sys.argv[1]) / "mine")  # loads all that is loaded late
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
else:
    Path(sys.argv[1], "hub").chmod(0o555)
try:
    plan(recipe(), root=Path(sys.argv[1]) / "hub")
except DownloadFailed as err:
    print(err.code, err.message, err.repair, sep="|")
"""


def test_a_cache_of_another_user_is_refused_with_its_owner(hub, tmp_path):
    """C61: a folder that a root container made; the repair names that one folder."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        root = Path(place) / "hub"
        root.mkdir(mode=0o755)
        seen = subprocess.run(
            [sys.executable, "-c", OTHER_USER, place],
            env=environment(hub.url, Path(place)),
            capture_output=True,
            text=True,
        )
    code, message, repair = seen.stdout.strip().split("|")
    assert "permission" == code
    assert f"{root} belongs to user {os.geteuid()}" in message
    assert repair.startswith("sudo chown -R ")
    assert str(root) in repair


ASKING = Asking("tiny-vllm", TARGET, SHA, started=True)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", "hf cache ls"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "disk_full", "hf cache"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk_full", "hf cache"),
        (PermissionError(errno.EACCES, "denied", "/c/hub"), "permission", "chown -R"),
        (OSError(errno.EROFS, "Read-only file system", "/c/hub"), "permission", "/c/hub"),
        (OSError("Consistency check failed: file should be of size 2"), "no_network", "check"),
        (ValueError("token hf_abcdefghijklmnopqrst is odd"), "download_failed", "run again"),
    ],
)
def test_what_goes_wrong_on_this_host_is_explained(error, code, said):
    """Full, forbidden, read-only, cut short: each its own code, with what to do, no secret."""
    explained = explain(error, ASKING)
    assert (code, 1) == (explained.code, explained.exit_code)
    assert said in explained.repair
    assert "hf_abcdef" not in explained.message
    assert explained.message.endswith("; finished files are kept")


def test_the_cause_inside_a_wrapping_error_counts():
    """DryRunError and LocalEntryNotFoundError only wrap what happened."""
    from huggingface_hub.errors import DryRunError, LocalEntryNotFoundError, XetDownloadError

    wrapped: list[Exception] = [DryRunError("no"), LocalEntryNotFoundError("no")]
    for outer in wrapped:
        outer.__cause__ = OSError(errno.ENOSPC, "full")
        assert "disk_full" == explain(outer, ASKING).code
    xet = explain(XetDownloadError("broken pipe"), ASKING)
    assert "xet_failed" == xet.code
    assert xet.repair.endswith("HF_HUB_DISABLE_XET=1 sparkrecipes download tiny-vllm")


def meter() -> Meter:
    """Return a meter over 100 bytes in one file."""
    return Meter(present_bytes=0, total_bytes=100, total_files=1)


def test_a_transfer_that_hangs_is_ended():
    """C51: no byte for the time allowed, and no error from the library: stalled, not for ever."""
    counted, freed = meter(), threading.Event()

    def hang() -> None:
        counted.add(fetched_bytes=65)
        freed.wait(10)

    counted.start(TARGET, 0)
    threading.Timer(1.0, freed.set).start()
    with pytest.raises(DownloadFailed) as caught:
        watch(hang, counted, None, stall_s=0.3, again="sparkrecipes download x")
    assert "stalled" == caught.value.code
    assert "new process" in caught.value.repair
    assert "HF_HUB_DISABLE_XET=1 sparkrecipes download x" in caught.value.repair


def test_progress_is_called_in_the_callers_own_thread():
    """So that a display needs no lock, and its errors reach the caller."""
    counted, threads = meter(), set()

    def work() -> str:
        counted.add(fetched_bytes=100, files=1)
        return "done"

    def show(at: DownloadProgress) -> None:
        threads.add(threading.current_thread())

    assert "done" == watch(work, counted, show, stall_s=9, again="")
    assert {threading.current_thread()} == threads


def test_the_rate_counts_this_run_alone():
    """What was there before makes no download fast; the time left follows from the rate."""
    counted = Meter(present_bytes=10**12, total_bytes=10**12 + 100, total_files=1)
    assert (0.0, None) == (counted.now().bytes_per_s, counted.now().transfer.eta_s)
    counted.started_s -= 10
    counted.add(fetched_bytes=50)
    now = counted.now()
    assert 5 == round(now.bytes_per_s)
    assert now.transfer.eta_s is not None
    assert 10 == round(now.transfer.eta_s)
