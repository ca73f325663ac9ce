"""A whole install as an ordinary user, on a real rootless Docker Engine of that user's own."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkrecipes.operations.walk import STEPS
from tests.real.conftest import TINY_IMAGE, CommandLine, docker, free_port, part, tiny_layer
from tests.real.fault_bench import NAME, RECIPE, everything, inspected
from tests.support.fault_table import faults
from tests.support.oci import Content
from tests.support.planted import leaks, plant
from tests.support.registry import docker_registry, push

pytestmark = pytest.mark.real

READS_ALL = ("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search")
"""So that the user can read this Python and checkout, wherever they lie, and write nothing."""

ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "amd64"


class Rootless:
    """The engine and its user."""

    def __init__(self, run: Path, user: str) -> None:
        """Remember where its socket and the user's home are."""
        self.user, self.home, self.runtime = user, run / "home", run / "run"
        self.host = f"unix://{self.runtime}/docker.sock"

    @property
    def network_pid(self) -> str:
        """A process in the engine's own network, whose loopback is not that of this host."""
        return (self.runtime / "rootlesskit" / "child_pid").read_text().strip()


@pytest.fixture(scope="module")
def engine() -> Iterator[Rootless]:
    """Start the engine; the user, its processes and its files are removed again."""
    part("rootless.sh", "install")
    own = None if os.environ.get("CI_RUN") else tempfile.mkdtemp(prefix="sr-")
    run = Path(own or os.environ["CI_RUN"]) / "rootless"
    run.parent.chmod(0o755)
    before = os.environ.get("DOCKER_HOST")
    try:
        engine = Rootless(run, part("rootless.sh", "start", str(run)))
        os.environ["DOCKER_HOST"] = engine.host
        yield engine
    finally:
        part("rootless.sh", "stop", str(run))
        shutil.rmtree(own or run)
        os.environ.pop("DOCKER_HOST", None)
        if before is not None:
            os.environ["DOCKER_HOST"] = before


@pytest.fixture(scope="module")
def tiny(engine: Rootless, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Give the engine the tiny image; return its only layer."""
    layer = tiny_layer(tmp_path_factory.mktemp("rootfs"))
    docker("import", "--change", 'ENTRYPOINT ["/start.sh"]', "-", TINY_IMAGE, stdin=layer)
    return layer


@pytest.fixture
def cli(engine: Rootless, tiny: bytes, tiny_catalog: Path) -> Iterator[CommandLine]:
    """The command line as that user, beside a container and a volume of somebody else's."""
    stranger = docker("run", "-d", "-v", "/data", "--name", "stranger", TINY_IMAGE)
    before = everything()
    cli = CommandLine(engine.home, tiny_catalog)
    cli.env |= {"XDG_RUNTIME_DIR": str(engine.runtime), "XDG_STATE_HOME": f"{engine.home}/state"}
    plant(tiny_catalog.parent, cli.env, "docker")
    tiny_catalog.parent.chmod(0o755)
    (tiny_catalog.parent / "argv").touch()
    (tiny_catalog.parent / "argv").chmod(0o666)
    as_user = ("setpriv", "--reuid", engine.user, "--regid", engine.user, "--init-groups")
    cli.program = [*as_user, *READS_ALL, *cli.program]
    write(cli, TINY_IMAGE)
    try:
        yield cli
        assert [] == leaks(tiny_catalog.parent) + leaks(engine.home)
        docker("rm", "--force", NAME, check=False)
        assert before["containers"] == everything()["containers"]
        assert before["volumes"] == everything()["volumes"]
        assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)
    finally:
        docker("rm", "--force", "--volumes", stranger, NAME, check=False)


def write(cli: CommandLine, image: str, *, local: bool = True) -> None:
    """Write a recipe that the tiny server serves."""
    path = Path(cli.env["SPARKRECIPES_CATALOG"]) / "recipes" / f"{RECIPE}.yaml"
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    build = fields["image"].get("local_build") or {"how": "see tests", "source": "tests/real"}
    fields["image"] = {"reference": image, "digest": None} | (
        {"local_build": build} if local else {}
    )
    fields |= {"weights": None, "flags": [], "speculative": None, "startup_timeout_s": 20}
    fields["env"] = {"MODEL": fields["served_model_name"]}
    path.write_text(yaml.safe_dump(fields))


def finding(report: dict[str, Any], check: str) -> dict[str, Any]:
    """The first finding of a check."""
    found: dict[str, Any] = next(f for f in report["findings"] if f["check"] == check)
    return found


def test_a_rootless_engine_serves_a_whole_install(cli: CommandLine, engine: Rootless) -> None:
    """Probe, check, install, again, status, logs, report, stop; what it cannot do is said."""
    seen = cli("probe")["docker"]
    assert ("ok", True, False) == (seen["state"], seen["rootless"], seen["limits"])
    assert str(engine.home) in json.dumps(cli("probe")["disks"])
    port = str(free_port())
    checked = cli("check", RECIPE, "--port", port)
    assert "rootless" in finding(checked, "docker")["message"]
    assert "neither counts nor limits" in finding(checked, "docker_limits")["message"]

    installed = cli("install", RECIPE, "--port", port)
    assert (STEPS, True) == (tuple(s["step"] for s in installed["steps"]), installed["ok"])
    (made,) = inspected(NAME)
    assert 2**30 == made["HostConfig"]["ShmSize"]
    owner = Path(f"/proc/{made['State']['Pid']}").stat().st_uid
    assert engine.home.stat().st_uid == owner != 0
    again = cli("install", RECIPE, "--port", port)
    assert "skipped" in [s["state"] for s in again["steps"] if s["step"] == "launch"]
    assert made["Id"] == inspected(NAME)[0]["Id"]

    assert [(NAME, "running")] == [(s["name"], s["state"]) for s in cli("status")["servers"]]
    assert any("startup complete" in line for line in cli("logs", RECIPE)["lines"])
    assert RECIPE == cli("report")["recipe_id"]
    assert "stranger" in " ".join(cli("probe")["live"]["notes"])
    assert cli("stop", RECIPE)["stopped"]
    assert not cli("stop", RECIPE)["stopped"]


def test_an_image_is_pulled_through_the_rootless_socket(
    cli: CommandLine, engine: Rootless, tiny: bytes, tmp_path: Path
) -> None:
    """By digest, from a registry that stands in both networks: the engine has its own loopback."""
    part("registry.sh")
    stock = Content()
    stock.image(ARCHITECTURE, tag="1", layers=(tiny,), inner={"Entrypoint": ["/start.sh"]})
    with docker_registry(tmp_path / "registry") as address:
        push(stock, "1", address, "eng/tiny")
        inside = subprocess.Popen(
            [
                *("nsenter", "--net", "--target", engine.network_pid, "docker-registry", "serve"),
                str(tmp_path / "registry" / "config.yml"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            write(cli, f"{address}/eng/tiny:1", local=False)
            installed = cli("install", RECIPE, "--port", str(free_port()))
        finally:
            inside.terminate()
            inside.wait(20)
    (image,) = [step for step in installed["steps"] if step["step"] == "image"]
    assert f"eng/tiny@{stock.tags['1']} pulled" in image["message"]
    assert cli("stop", RECIPE)["stopped"]


def test_a_port_for_root_alone(cli: CommandLine) -> None:
    """Blocked before anything is fetched; forced, the engine's own words are explained."""
    row = faults()["port for root alone, rootless"]
    for forced in ((), ("--force",)):
        error = cli("install", RECIPE, "--port", "81", *forced, code=row.exits[0])["error"]
        assert error["code"] in row.codes
        assert [] == [words for words in row.words if words not in error["message"]]
        assert "--port 8000" in error["repair"]
    assert [] == inspected(*docker("ps", "-aq", "--filter", f"name=^{NAME}$").split())


def test_a_rootless_engine_that_nobody_pointed_to(cli: CommandLine, engine: Rootless) -> None:
    """Without DOCKER_HOST docker asks the system's: the rootless one that answers is named."""
    # A system's Docker that does run would not let this user in: the same is said then.
    cli.env.pop("DOCKER_HOST")
    use = f"export DOCKER_HOST={engine.host}"
    found = finding(cli("check", RECIPE, code=1), "docker")
    assert ("blocker", True) == (found["level"], use in found["repair"])
    assert use in cli("launch", RECIPE, "--force", code=3)["error"]["repair"]


def test_a_context_leads_to_the_rootless_engine(cli: CommandLine, engine: Rootless) -> None:
    """As dockerd-rootless-setuptool.sh makes one: no variable is needed then."""
    cli.env.pop("DOCKER_HOST")
    cli.env |= {"DOCKER_CONFIG": f"{engine.home}/.docker", "DOCKER_CONTEXT": "rootless"}
    make = ["docker", "context", "create", "rootless", "--docker", f"host={engine.host}"]
    as_user = cli.program[: cli.program.index(sys.executable)]
    subprocess.run([*as_user, *make], env=cli.env, check=True, capture_output=True, timeout=60)
    assert "rootless" in finding(cli("check", RECIPE), "docker")["message"]
    assert cli("launch", RECIPE, "--port", str(free_port()))["base_url"]
    assert cli("wait", RECIPE)["base_url"]
    assert cli("stop", RECIPE)["stopped"]


def test_a_gpu_that_a_rootless_engine_cannot_give(cli: CommandLine) -> None:
    """The repair is the one for a rootless Docker: its own daemon.json, and no cgroups."""
    machine = Path(cli.env["SPARKRECIPES_MACHINE"])
    fields = yaml.safe_load(machine.read_text())
    fields["gpu"] = {"name": "GB10", "compute_capability": "12.1", "docker_gpus": "all"}
    machine.write_text(yaml.safe_dump(fields))
    found = finding(cli("check", RECIPE, code=1), "gpu_toolkit")
    assert "blocker" == found["level"]
    assert "no-cgroups" in found["repair"]
    assert "systemctl --user restart docker" in found["repair"]
