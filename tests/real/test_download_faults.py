"""Downloads by the command line, in bad weather: real processes, signals, and a disk that fills.

The Hub is the small one of the tests, which counts every byte that it sends.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import CommandLine
from tests.support.fault_table import faults
from tests.support.hub import Fault, Hub, HubRepo, sha256
from tests.support.planted import HF_TOKEN, leaks, plant

pytestmark = pytest.mark.real

RECIPE, REPO = "tiny-qwen3-bf16-vllm-ngram", "sparkrecipes-ci/tiny-qwen3"
FOLDER = "models--sparkrecipes-ci--tiny-qwen3"
PART_BYTES = 10 * 2**20
WORKERS = 8
COUNT = 10
"""Shards: two more than are fetched at a time."""
SHARD_BYTES, HELD_AT = 13_000_000, 12_000_000
SHARDS = {
    f"model-{n:05d}-of-{COUNT:05d}.safetensors": bytes([48 + n]) * (SHARD_BYTES + n)
    for n in range(1, COUNT + 1)
}
FILES = {"config.json": b"{}", "tokenizer.json": b"{ }", **SHARDS}
TOTAL = sum(map(len, FILES.values()))


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub with one gated repository; the planted token may read it."""
    with Hub() as hub:
        hub.tokens[HF_TOKEN] = True
        fill(hub)
        yield hub
        free(hub)


def fill(hub: Hub) -> None:
    """Let the Hub hold the repository, nothing wrong, and count from nothing."""
    hub.reset({REPO: HubRepo(dict(FILES), gated=True)})


def hold(hub: Hub, names: list[str]) -> None:
    """Hold these files near their end."""
    waits = threading.Event()
    hub.faults = [
        Fault(f"GET /cdn/{sha256(FILES[name])}", cut_after=HELD_AT, hold=waits) for name in names
    ]


def free(hub: Hub) -> None:
    """Let go what is held."""
    for fault in hub.faults:
        if fault.hold is not None:
            fault.hold.set()
    hub.faults = []


@pytest.fixture
def cli(tiny_catalog: Path, tmp_path: Path, hub: Hub) -> CommandLine:
    """The command line with planted secrets and the small Hub."""
    cli = CommandLine(tmp_path, tiny_catalog)
    plant(tmp_path, cli.env, "docker", "ss", "nvidia-smi")
    cli.env |= {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    return cli


def started(cli: CommandLine) -> subprocess.Popen[str]:
    """Begin a download."""
    return subprocess.Popen(
        [*cli.program, "download", RECIPE, "--json"],
        env=cli.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cli.env["HOME"],
    )


def ended(cli: CommandLine, process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Wait for a download; return its answer and what was shown, without any secret."""
    out, err = process.communicate(timeout=120)
    assert [] == leaks(Path(cli.env["HOME"]), out, err)
    assert "Traceback" not in err
    return json.loads(out or "{}"), err


def held_back(cli: CommandLine, hub: Hub, names: list[str]) -> subprocess.Popen[str]:
    """Begin a download; return when these files have come as far as they may."""
    hold(hub, names)
    process = started(cli)
    parts = [blobs(cli) / f"{sha256(FILES[name])}.part.incomplete" for name in names]
    others = [blobs(cli) / sha256(FILES[name]) for name in SHARDS if name not in names]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        came = all(part.is_file() and part.stat().st_size == PART_BYTES for part in parts)
        if came and (len(names) == WORKERS or all(blob.is_file() for blob in others)):
            break
        time.sleep(0.05)
    return process


def blobs(cli: CommandLine) -> Path:
    """Return where the cache keeps the repository's files."""
    return Path(cli.env["HF_HUB_CACHE"]) / FOLDER / "blobs"


def nothing_corrupt(cli: CommandLine) -> None:
    """Every blob is what its name says; what is unfinished is named so."""
    known = {sha256(content): content for content in FILES.values()}
    for blob in blobs(cli).iterdir():
        if blob.name in known:
            assert known[blob.name] == blob.read_bytes()
        else:
            assert blob.name.endswith(".incomplete") or len(blob.name) == 40


def goes_on(cli: CommandLine, hub: Hub, most: int) -> None:
    """Run again: whole, every file right, and at most so many bytes were sent."""
    free(hub)
    time.sleep(0.5)  # what was held goes to nobody, and does not count any more
    fill(hub)
    report, shown = ended(cli, started(cli))
    (repo,) = report["repos"]
    assert (True, TOTAL) == (repo["complete"], repo["total_bytes"])
    for name, content in FILES.items():
        assert content == (Path(repo["snapshot"]) / name).read_bytes()
    assert hub.sent <= most
    assert hub.sent == repo["fetched_bytes"]
    assert [] == list(blobs(cli).glob("*.incomplete"))
    assert f"{REPO}: " in shown
    assert f"{len(FILES)} of {len(FILES)} files" in shown


def fault_of(process: subprocess.Popen[str], answer: dict[str, Any], fault: str) -> dict[str, Any]:
    """Return the error, which is that of the table."""
    error: dict[str, Any] = answer["error"]
    row = faults()[fault]
    assert process.returncode in row.exits
    assert error["code"] in row.codes, error
    assert [] == [words for words in row.words if words not in error["message"] + error["repair"]]
    assert f"sparkrecipes download {RECIPE}" in error["message"] + error["repair"] or (
        error["code"] == "bad_token"
    )
    return error


def test_c52_a_download_that_is_killed(cli: CommandLine, hub: Hub) -> None:
    """C52: SIGKILL (out of memory): finished files stay, and of each other one part is lost."""
    names = list(SHARDS)[-WORKERS:]
    finished = sum(len(content) for name, content in SHARDS.items() if name not in names)
    process = held_back(cli, hub, names)
    process.kill()
    ended(cli, process)
    assert -signal.SIGKILL == process.returncode
    first = hub.sent
    nothing_corrupt(cli)
    goes_on(cli, hub, TOTAL - finished - WORKERS * PART_BYTES)
    assert first + hub.sent - TOTAL <= WORKERS * PART_BYTES


def test_a_download_that_is_interrupted(cli: CommandLine, hub: Hub) -> None:
    """Ctrl-C: exit code 130, what is kept, and the command that goes on."""
    names = list(SHARDS)[-2:]
    process = held_back(cli, hub, names)
    process.send_signal(signal.SIGINT)
    threading.Timer(1.0, free, (hub,)).start()
    answer, _ = ended(cli, process)
    error = fault_of(process, answer, "download interrupted (Ctrl-C)")
    assert "parts of large ones are kept" in error["message"]
    nothing_corrupt(cli)
    goes_on(cli, hub, TOTAL - 2 * PART_BYTES)


def test_the_network_is_cut_in_the_middle(cli: CommandLine, hub: Hub) -> None:
    """It stays cut: a clear answer after the library's own retries, and the parts stay."""
    name = next(iter(SHARDS))
    stored = f"GET /cdn/{sha256(FILES[name])}"
    hub.faults = [Fault(stored, cut_after=HELD_AT, times=1), Fault(stored, cut_after=0)]
    process = started(cli)
    answer, _ = ended(cli, process)
    error = fault_of(process, answer, "network cut while downloading")
    assert "finished files are kept" in error["message"]
    nothing_corrupt(cli)
    assert PART_BYTES == (blobs(cli) / f"{sha256(FILES[name])}.part.incomplete").stat().st_size
    goes_on(cli, hub, TOTAL - PART_BYTES)


def test_a_token_expires_on_the_way(cli: CommandLine, hub: Hub) -> None:
    """The Hub refuses it while files are on their way: how to log in, and the parts stay."""
    names = list(SHARDS)[:WORKERS]
    process = held_back(cli, hub, names)
    del hub.tokens[HF_TOKEN]
    free(hub)
    answer, _ = ended(cli, process)
    error = fault_of(process, answer, "wrong or expired token")
    assert "hf auth login" in error["repair"]
    nothing_corrupt(cli)
    hub.tokens[HF_TOKEN] = True
    goes_on(cli, hub, TOTAL - WORKERS * PART_BYTES)


def test_a_wrong_token_is_refused_before_the_first_byte(cli: CommandLine, hub: Hub) -> None:
    """By `download`, and by `install` as a blocker of its check."""
    del hub.tokens[HF_TOKEN]
    process = started(cli)
    answer, _ = ended(cli, process)
    fault_of(process, answer, "wrong or expired token")
    installed = cli("install", RECIPE, code=1)["error"]
    assert "blocked" == installed["code"]
    assert "the Hub refused the token" in installed["message"]
    assert [] == leaks(Path(cli.env["HOME"]), json.dumps(installed))
    assert 0 == hub.sent


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system in memory that holds the files, and little more."""
    place = tmp_path / "disk"
    place.mkdir()
    root = () if os.geteuid() == 0 else ("sudo", "-n")
    size = f"size={round(TOTAL * 1.1)}"
    mount = [*root, "mount", "-t", "tmpfs", "-o", f"{size},mode=1777", "tmpfs", str(place)]
    subprocess.run(mount, check=True, timeout=30)
    yield place
    subprocess.run([*root, "umount", "--lazy", str(place)], check=True, timeout=30)


def fill_disk(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    assert 0 == shutil.disk_usage(path).free


def test_the_disk_fills_while_a_download_runs(cli: CommandLine, hub: Hub, small_disk: Path) -> None:
    """Somebody else fills it: what to free, nothing corrupt, and a re-run goes on."""
    cli.env["HF_HUB_CACHE"] = str(small_disk / "hub")
    names = list(SHARDS)[-2:]
    process = held_back(cli, hub, names)
    others = sum(len(content) for name, content in FILES.items() if name not in names)
    filler = small_disk / "filler"
    fill_disk(filler)
    free(hub)
    answer, _ = ended(cli, process)
    error = fault_of(process, answer, "disk full while writing")
    assert "finished files are kept" in error["message"]
    nothing_corrupt(cli)
    filler.unlink()
    goes_on(cli, hub, TOTAL - others - 2 * PART_BYTES + len(b"{}{ }"))


def test_a_disk_that_is_too_small_is_refused(cli: CommandLine, hub: Hub, small_disk: Path) -> None:
    """Both figures, before the first byte; the check of an install says the same."""
    cli.env["HF_HUB_CACHE"] = str(small_disk / "hub")
    (small_disk / "filler").write_bytes(b"x" * round(TOTAL * 0.3))
    process = started(cli)
    answer, _ = ended(cli, process)
    error: dict[str, Any] = answer["error"]
    assert (1, "no_disk_space") == (process.returncode, error["code"])
    assert "GB are to be fetched" in error["message"]
    hub_finding = next(
        finding
        for finding in cli("check", RECIPE, code=None)["findings"]
        if finding["check"] == "hub"
    )
    assert ("blocker", error["message"]) == (hub_finding["level"], hub_finding["message"])
    assert 0 == hub.sent
