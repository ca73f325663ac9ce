"""Real parts for tests: a Docker Engine, a tiny image, and vLLM on the host and as an image.

Each is made by a script of ``.ci/parts`` when it is missing, and is used again when it is there.
Where ``DOCKER_HOST`` already leads to an engine (as in ``.ci/run``) that one is used.
"""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ROOT / ".ci" / "parts"
HERE = Path(__file__).parent / "parts"
TINY_IMAGE = "sparkrecipes-ci/tiny-server:1"


def part(script: str, *args: str) -> str:
    """Run a script of ``.ci/parts`` and return what it prints."""
    done = subprocess.run(
        ["bash", str(PARTS / script), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=1800,
    )
    return done.stdout.strip()


def docker(*args: str, check: bool = True, stdin: bytes | None = None) -> str:
    """Run the docker command itself, to look at what the code under test did."""
    done = subprocess.run(
        ["docker", *args],
        input=stdin or b"",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=300,
    )
    text = done.stdout.decode().strip()
    if check and done.returncode:
        raise AssertionError(f"docker {' '.join(args)}: {text}")
    return text


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    """Return the address of a real Docker Engine; one that was started here is stopped."""
    run = tempfile.mkdtemp(prefix="sparkrecipes-docker-")
    part("docker.sh", "install")
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = part("docker.sh", "start", run)
    try:
        yield os.environ["DOCKER_HOST"]
    finally:
        part("docker.sh", "stop", run)
        shutil.rmtree(run)
        os.environ.pop("DOCKER_HOST")
        if before is not None:
            os.environ["DOCKER_HOST"] = before


@pytest.fixture(scope="session")
def tiny_image(docker_engine: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an image of 2 MB that answers as an engine does."""
    entry = 'ENTRYPOINT ["/start.sh"]'
    layer = tiny_layer(tmp_path_factory.mktemp("rootfs"))
    docker("import", "--change", entry, "-", TINY_IMAGE, stdin=layer)
    return TINY_IMAGE


def tiny_layer(root: Path) -> bytes:
    """Return the files of the tiny image as a tar: its only layer."""
    shutil.copytree(HERE / "tiny_server", root, dirs_exist_ok=True)
    (root / "bin").mkdir()
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in ("sh", "nc", "head", "sleep", "printf", "tail"):
        (root / "bin" / name).symlink_to("busybox")
    tar = subprocess.run(
        ["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE, check=True, timeout=60
    )
    return tar.stdout


@pytest.fixture(scope="session")
def vllm_env() -> Path:
    """Return the folder of a Python environment that holds the real vLLM for the CPU."""
    return Path(part("vllm.sh", "env"))


@pytest.fixture(scope="session")
def vllm_image(docker_engine: str) -> str:
    """Return the name of an image that starts the real vLLM."""
    return part("vllm.sh", "image")


@pytest.fixture(scope="session")
def tiny_model(vllm_env: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny model with random weights, a tokenizer and a chat template."""
    folder = tmp_path_factory.mktemp("models") / "tiny-qwen3"
    subprocess.run(
        [str(vllm_env / "bin" / "python"), str(HERE / "tiny_model.py"), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    return folder


@pytest.fixture
def tiny_catalog(tmp_path: Path) -> Path:
    """Return a catalog of one recipe, which the real vLLM serves on a CPU, for this machine."""
    catalog = tmp_path / "catalog"
    shutil.copytree(HERE / "tiny_catalog", catalog)
    shutil.copytree(ROOT / "catalog" / "engines", catalog / "engines")
    shutil.copytree(ROOT / "catalog" / "diagnoses", catalog / "diagnoses")
    if platform.machine() == "aarch64":
        machine = catalog / "machines" / "ci.yaml"
        machine.write_text(machine.read_text().replace("linux/amd64", "linux/arm64"))
    return catalog


class CommandLine:
    """The command line as another program uses it: JSON on stdout, an exit code."""

    def __init__(self, home: Path, catalog: Path | None = None) -> None:
        """Run in an environment of its own: no data or weights of this user are read.

        Args:
            home: Holds the data folder and the weights cache.
            catalog: The catalog and its machine; None: the shipped ones.
        """
        self.program = [sys.executable, "-m", "sparkrecipes"]
        self.said = ""
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HF_")},
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        if catalog:
            self.env["SPARKRECIPES_CATALOG"] = str(catalog)
            self.env["SPARKRECIPES_MACHINE"] = str(catalog / "machines" / "ci.yaml")

    def __call__(
        self, *args: str, code: int | None = 0, timeout_s: float = 600.0
    ) -> dict[str, Any]:
        """Run ``sparkrecipes ARGS --json`` and return its one object.

        Args:
            args: The command and its options.
            code: The exit code that it must have; None: any.
            timeout_s: After this the test fails.
        """
        done = subprocess.run(
            [*self.program, *args, "--json"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            cwd=self.env["HOME"],
        )
        assert code in (None, done.returncode), f"{args}: {done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        self.said = done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer
