"""A disk of Docker's own that is too small for an image: a real engine on a small tmpfs."""

import io
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.conftest import CommandLine, docker, free_port, part, tiny_layer
from tests.real.fault_bench import NAME, RECIPE
from tests.support.fault_table import faults
from tests.support.oci import Content
from tests.support.planted import leaks, plant
from tests.support.registry import docker_registry, push

pytestmark = pytest.mark.real

HERE = "arm64" if platform.machine() == "aarch64" else "amd64"
SMALL_MB, LARGE_MB, FILLER_MB = 40, 400, 60


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep the images of an engine of its own on a tmpfs of 40 MB."""
    part("docker.sh", "install")
    disk, run = tmp_path / "disk", tempfile.mkdtemp(prefix="sr-")
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_MB}m", "tmpfs", str(disk)]
    subprocess.run(mounted, check=True, timeout=20)
    # An address at which nobody answers, so that no engine that is there already is taken.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{run}/nobody.sock")
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    try:
        monkeypatch.setenv("DOCKER_HOST", part("docker.sh", "start", run))
        yield disk
    finally:
        part("docker.sh", "stop", run)
        subprocess.run(["umount", str(disk)], check=True, timeout=20)
        shutil.rmtree(run)


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """Serve the tiny server with 60 MB that do not get smaller from a real registry."""
    part("registry.sh")
    filler = io.BytesIO()
    with tarfile.open(fileobj=filler, mode="w") as tar:
        about = tarfile.TarInfo("filler")
        about.size = FILLER_MB * 10**6
        tar.addfile(about, io.BytesIO(os.urandom(about.size)))
    stock = Content()
    layers = (tiny_layer(tmp_path / "rootfs"), filler.getvalue())
    stock.image(HERE, tag="large", layers=layers, inner={"Entrypoint": ["/start.sh"]})
    with docker_registry(tmp_path / "registry") as address:
        push(stock, "large", address, "eng/tiny")
        yield f"{address}/eng/tiny:large"


@pytest.fixture
def cli(tmp_path: Path, tiny_catalog: Path, disk: Path, image: str) -> CommandLine:
    """The command line with planted secrets, and a recipe whose image does not fit the disk."""
    path = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    fields |= {"weights": None, "flags": [], "speculative": None, "startup_timeout_s": 20}
    fields |= {"image": {"reference": image, "digest": None}}
    fields["env"] = {"MODEL": fields["served_model_name"]}
    path.write_text(yaml.safe_dump(fields))
    cli = CommandLine(tmp_path, tiny_catalog)
    cli.env |= {"XDG_STATE_HOME": str(tmp_path / "state"), "DOCKER_CONFIG": str(tmp_path)}
    plant(tmp_path, cli.env, "docker")
    return cli


def test_the_disk_of_docker_fills(cli: CommandLine, disk: Path) -> None:
    """Blocked before the first byte; forced, Docker's own end is explained, and nothing stays."""
    row = faults()["disk of Docker too small for the image"]
    port = str(free_port())
    errors = [
        cli("install", RECIPE, "--port", port, *force, code=row.exits[0])["error"]
        for force in ((), ("--force",))
    ]
    assert row.codes == tuple(error["code"] for error in errors)
    assert f"free at {disk}" in errors[0]["message"]
    for words, error in zip(row.words, errors, strict=True):
        assert words in error["message"]
        assert "docker system df" in error["repair"]
    assert "" == docker("image", "ls", "--all", "--quiet") + docker("ps", "--all", "--quiet")

    larger = ["mount", "-o", f"remount,size={LARGE_MB}m", str(disk)]
    subprocess.run(larger, check=True, timeout=20)
    assert cli("install", RECIPE, "--port", port)["ok"]
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", NAME)
    assert cli("stop", RECIPE)["stopped"]
    assert [] == leaks(Path(cli.env["HOME"]))
