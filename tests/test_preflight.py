"""What is asked before anything acts: of this host, of Docker, and of a Hub that may not answer."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import containers, weights_cache
from sparkrecipes.checks import ESSENTIAL
from sparkrecipes.errors import DownloadFailed, Unknown
from sparkrecipes.machine.docker import CONTAINERD_ROOT, image_store
from sparkrecipes.machine.driver import cdi_driver, parse_cuda_version
from sparkrecipes.machine.host import read_disks
from sparkrecipes.machine.ports import listener_of
from sparkrecipes.operations.gathering import facts_of_trouble, within
from tests.support.fake_docker import FakeDocker
from tests.support.fast_catalog import RECIPE, environment
from tests.support.hub import Hub, HubRepo

ROOT = Path(__file__).parents[1]
RECORDED = json.loads((Path(__file__).parent / "data" / "docker" / "inspect.json").read_text())
REPO, COMMIT = "example/Tiny-8B-FP8", "0123456789abcdef0123456789abcdef01234567"
SECRET = "hf_PlantedSecretPlantedSecret0123456"
KEY = "nvapi-PlantedSecretPlantedSecret0123456"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Put a fake docker, and nothing else, on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return FakeDocker(tmp_path)


@pytest.mark.parametrize(
    ("head", "version"),
    [
        (
            "| NVIDIA-SMI 580.95.05      Driver Version: 580.95.05      CUDA Version: 13.0     |",
            "13.0",
        ),
        ("| NVIDIA-SMI 595.71   KMD Version: 595.71   CUDA UMD Version: 13.2 |", "13.2"),
        ("CUDA Version        : 12.4", "12.4"),
        ("CUDA Version: N/A", None),
        ("NVIDIA-SMI has failed because it couldn't communicate with the driver", None),
    ],
)
def test_the_newest_cuda_of_the_driver(head: str, version: str | None) -> None:
    """As the head of nvidia-smi states it, in its older and newer words."""
    assert version == parse_cuda_version(head)


def test_the_driver_that_a_cdi_file_was_made_for(tmp_path: Path) -> None:
    """By the library that it mounts; what is not there or not NVIDIA's says nothing."""
    assert cdi_driver([tmp_path / "none", tmp_path]) is None
    (tmp_path / "other.yaml").write_text("hostPath: /usr/lib/libcuda.so.1.2.3")
    (tmp_path / "nvidia-empty.yaml").write_text("kind: nvidia.com/gpu")
    assert cdi_driver([tmp_path]) is None
    (tmp_path / "nvidia.yaml").write_text(
        "kind: nvidia.com/gpu\n  mounts:\n"
        "  - containerPath: /usr/lib/aarch64-linux-gnu/libcuda.so.580.95.05\n"
        "    hostPath: /usr/lib/aarch64-linux-gnu/libcuda.so.580.95.05\n"
    )
    assert "580.95.05" == cdi_driver([tmp_path / "none", tmp_path])


def test_where_docker_keeps_its_images() -> None:
    """In its own root, in containerd's, or on another host, whose disk nobody here can see."""
    root, here = Path("/default"), os.uname().nodename
    assert Path("/d") == image_store({"DockerRootDir": "/d", "Name": here}, root)
    assert root == image_store({}, root)
    containerd = [["driver-type", "io.containerd.snapshotter.v1"]]
    assert CONTAINERD_ROOT == image_store({"DockerRootDir": "/d", "DriverStatus": containerd}, root)
    assert image_store({"DockerRootDir": "/d", "Name": f"not-{here}"}, root) is None
    elsewhere = {disk.what: disk for disk in read_disks(None)}["docker"]
    assert (None, "the Docker host") == (elsewhere.free_bytes, elsewhere.path)


def test_the_process_that_has_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ss names it to its owner; without ss, or where it may not be seen, nobody is named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert listener_of(8000) is None
    program = tmp_path / "ss"
    seen = 'LISTEN 0 128 127.0.0.1:8000 0.0.0.0:* users:(("ollama",pid=4711,fd=3))'
    for line, named in (
        (seen, "the process ollama (pid 4711)"),
        (seen.partition(" users")[0], None),
    ):
        program.write_text(f"#!/bin/sh\necho '{line}'\n")
        program.chmod(0o755)
        assert named == listener_of(8000)


def test_an_image_that_docker_has(fake: FakeDocker) -> None:
    """Its platform and the CUDA that it was built with; not here is None, and so is no Docker."""
    image = {
        "Os": "linux",
        "Architecture": "arm64",
        "Config": {"Env": ["PATH=/bin", "CUDA_VERSION=13.0.1"]},
    }
    fake.answer("image", "inspect", stdout=json.dumps(image))
    fake.answer("image", "inspect", stdout=json.dumps(image | {"Config": None}))
    fake.answer("image", "inspect", stderr="Error: No such image: x", exit_code=1)
    found = containers.local_image("x")
    assert found is not None
    assert ("linux/arm64", "13.0.1") == (found.platform, found.cuda_version)
    bare = containers.local_image("x")
    assert bare is not None
    assert bare.cuda_version is None
    assert containers.local_image("x") is None


def test_the_container_that_publishes_a_port(fake: FakeDocker) -> None:
    """Of any owner; nobody and no Docker are both None."""
    fake.answer("ps", "--filter", "publish=8000", stdout="webui\n")
    fake.answer("ps", "--filter", "publish=8001", stdout="\n")
    fake.answer("ps", stderr="Cannot connect to the Docker daemon", exit_code=1)
    assert "webui" == containers.publisher_of(8000)
    assert containers.publisher_of(8001) is None
    assert containers.publisher_of(8002) is None


@pytest.mark.parametrize(
    ("label", "foreign"), [({}, True), ({"org.sparkrecipes.recipe": "x"}, False)]
)
def test_a_foreign_container_with_our_name(
    fake: FakeDocker, label: dict[str, str], foreign: bool
) -> None:
    """Only one without our label is in the way."""
    item = RECORDED["container"] | {
        "Name": "/sparkrecipes-x",
        "State": RECORDED["states"]["running"],
    }
    item["Config"] = item["Config"] | {"Labels": label}
    fake.answer("container", "inspect", stdout=json.dumps([item]))
    holder = containers.foreign_holder("x")
    assert foreign == (holder is not None)
    assert not foreign or str(holder).startswith("sparkrecipes-x (")


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file"])
def test_a_token_is_seen_where_the_library_looks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the environment, or in the file that a login leaves; an empty one is none."""
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "token").write_text("")
    assert not weights_cache.token_is_set()
    if name == "file":
        (tmp_path / "token").write_text(SECRET)
    else:
        monkeypatch.setenv(name, SECRET)
    assert weights_cache.token_is_set()


def test_a_question_that_nobody_answers_ends() -> None:
    """A name server that hangs cannot hold up a check; an error is the question's own."""
    began = time.monotonic()
    with pytest.raises(Unknown, match="no answer within"):
        within(0.1, lambda: time.sleep(5))
    assert time.monotonic() - began < 3
    assert 7 == within(5, lambda: 7)

    def refuse() -> None:
        raise DownloadFailed("it is gated", code="gated_no_token", repair="log in")

    with pytest.raises(DownloadFailed) as refused:
        within(5, refuse)
    assert facts_of_trouble(refused.value)["hub_problem"].known
    assert not facts_of_trouble(Unknown("no answer"))["hub_problem"].known


def checked(folder: Path, url: str, **env: str) -> dict[str, dict[str, Any]]:
    """Run `check` of the tiny recipe with a Hub of its own; return its findings by name."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    nowhere = {"HF_ENDPOINT": url, "HF_HOME": str(folder), "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-m", "sparkrecipes", "check", RECIPE, "--json"],
        env={**kept, **environment(folder), **nowhere, "NGC_API_KEY": KEY, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert SECRET not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_the_hub_is_asked_before_anything_is_fetched(tmp_path: Path) -> None:
    """What is to be fetched is the Hub's own count; a gated repository blocks at once."""
    sizes = {"model.safetensors": 2 * 10**9}
    repo = HubRepo({"config.json": b"{}", "model.safetensors": b"1"}, COMMIT, claimed_sizes=sizes)
    with Hub({REPO: repo}) as hub:
        found = checked(tmp_path / "1", hub.url)
        assert ("ok", True) == (found["hub"]["level"], "2.0 GB to fetch" in found["hub"]["message"])
        assert "gated" not in found
        repo.gated = True
        hub.tokens[SECRET] = False
        gated = checked(tmp_path / "2", hub.url, HF_TOKEN=SECRET)["hub"]
        assert ("blocker", True) == (gated["level"], "no access yet" in gated["message"])
        assert 0 == hub.sent


def test_a_hub_that_is_not_there_leaves_it_open(tmp_path: Path) -> None:
    """Unknown, with what to do; the image's registry behind a dead proxy is unknown, too."""
    found = checked(tmp_path, "http://127.0.0.1:9")
    assert ("unknown", "unknown") == (found["hub"]["level"], found["image"]["level"])
    assert found["hub"]["repair"]


def test_the_page_names_every_finding() -> None:
    """docs/checks.md has a row for each check, and none for one that is not there."""
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "checks.md").read_text(), re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    source = "\n".join(p.read_text() for p in (ROOT / "sparkrecipes" / "checks").glob("*.py"))
    given = set(re.findall(r'(?:ok|warning|blocker|unknown|make)\(\s*"(\w+)"', source))
    assert given | {"drafter", "weights_revision", "drafter_revision", "weights"} == named
    essential = {m for row in rows if "!" in row for m in re.findall(r"`(\w+)`", row)}
    assert ESSENTIAL == essential
