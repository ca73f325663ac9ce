"""Bystanders of an install on a real Docker Engine: it works for them, or says why it does not."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.conftest import CommandLine, docker, free_port
from tests.real.fault_bench import NAME, RECIPE, FaultBench, everything

pytestmark = pytest.mark.real

NOBODY = 65534
READS_ALL = ("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search")
"""So that another user can read this Python and checkout, wherever they lie, and write nothing."""


@pytest.fixture
def bench(tiny_image: str, tiny_catalog: Path, tmp_path: Path) -> Iterator[FaultBench]:
    """The command line with a recipe that the tiny server serves; nothing of it stays."""
    before = everything()
    bench = FaultBench(tmp_path, tiny_catalog)
    bench.write()
    yield bench
    docker("rm", "--force", NAME, check=False)
    assert before == everything()


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of these tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def docker_group() -> int:
    """The group that may use the engine's socket."""
    return Path(os.environ["DOCKER_HOST"].removeprefix("unix://")).stat().st_gid


def as_user(bench: FaultBench, gid: int, home: Path) -> None:
    """Run as a user without rights, whose group may or may not use Docker's socket."""
    user = ("setpriv", "--reuid", str(NOBODY), "--regid", str(gid), "--clear-groups", *READS_ALL)
    bench.program = [*user, *bench.program]
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        bench.env[name] = str(home)
    bench.env["PATH"] = os.environ["PATH"]


def test_a_second_user_without_docker_is_told_so(bench: FaultBench, tmp_path: Path) -> None:
    """Permission on the socket: exit 3 where Docker is asked, a blocker where it is checked."""
    as_user(bench, NOBODY, tmp_path)
    for words in (("status",), ("launch", RECIPE, "--force"), ("stop", RECIPE)):
        error = CommandLine.__call__(bench, *words, code=3)["error"]
        assert "docker_denied" == error["code"]
        assert "usermod -aG docker" in error["repair"]
    findings = CommandLine.__call__(bench, "check", RECIPE, code=1)["findings"]
    (found,) = [f for f in findings if f["check"] == "docker"]
    assert ("blocker", True) == (found["level"], "usermod -aG docker" in found["repair"])


def test_a_read_only_home(bench: FaultBench, outside: Path) -> None:
    """Starting, waiting and stopping need none; an install says at once where it may not write."""
    closed = outside / "closed"
    closed.mkdir(mode=0o555)
    as_user(bench, docker_group(), closed)
    bench.env["HF_HUB_CACHE"] = str(closed / "hub")
    call = lambda *args, **options: CommandLine.__call__(bench, *args, **options)  # noqa: E731
    call("launch", RECIPE, "--port", str(free_port()))
    assert call("wait", RECIPE)["base_url"]
    assert call("stop", RECIPE)["stopped"]
    error = call("install", RECIPE, code=2)["error"]
    assert ("data_folder", True) == (error["code"], "XDG_DATA_HOME" in error["repair"])
    assert [] == list(closed.iterdir())


def test_a_read_only_home_with_folders_elsewhere(bench: FaultBench, outside: Path) -> None:
    """Where the data folder may be written, an install goes its way, without a journal."""
    closed, opened = outside / "closed", outside / "opened"
    closed.mkdir(mode=0o555)
    opened.mkdir()
    os.chown(opened, NOBODY, NOBODY)
    as_user(bench, docker_group(), closed)
    bench.env["XDG_DATA_HOME"] = str(opened)
    bench.write(mode="exits")
    error = CommandLine.__call__(bench, "install", RECIPE, "--port", str(free_port()), code=1)
    assert "exited" == error["error"]["code"]
    assert "" == docker("ps", "--all", "--quiet", "--filter", f"name=^{NAME}$")


def test_a_weights_cache_elsewhere_is_mounted(bench: FaultBench, tmp_path: Path) -> None:
    """HF_HOME of the caller: its hub is where the container's weights come from."""
    bench.env.pop("HF_HUB_CACHE")
    bench.env["HF_HOME"] = str(tmp_path / "elsewhere")
    bench.write(weights={"repo": "acme/tiny", "revision": None})
    argv = bench("command", RECIPE)["argv"]
    mount = argv[argv.index("--mount") + 1]
    assert f"source={tmp_path}/elsewhere/hub/models--acme--tiny," in mount


def test_a_docker_context_leads_to_the_engine(bench: FaultBench, docker_engine: str) -> None:
    """Without DOCKER_HOST, by a context as rootless Docker makes one."""
    bench.env.pop("DOCKER_HOST")
    bench.env["DOCKER_CONFIG"] = str(bench.home / "docker-config")
    make = ["docker", "context", "create", "mine", "--docker", f"host={docker_engine}"]
    subprocess.run(make, env=bench.env, check=True, capture_output=True, timeout=60)
    bench.env["DOCKER_CONTEXT"] = "mine"
    bench("launch", RECIPE, "--port", str(free_port()))
    assert bench("wait", RECIPE)["base_url"]
    assert bench("stop", RECIPE)["stopped"]


@pytest.mark.parametrize(
    ("how", "words"),
    [("DOCKER_HOST", "DOCKER_HOST says where Docker is"), ("context", "docker context ls")],
)
def test_a_docker_that_is_not_where_it_was_said_to_be(
    bench: FaultBench, how: str, words: str
) -> None:
    """Whose setting it was is said: starting the system's Docker would not help."""
    nowhere = f"unix://{bench.home}/nowhere.sock"
    bench.env.pop("DOCKER_HOST")
    if how == "DOCKER_HOST":
        bench.env["DOCKER_HOST"] = nowhere
    else:
        bench.env["DOCKER_CONFIG"] = str(bench.home / "docker-config")
        make = ["docker", "context", "create", "gone", "--docker", f"host={nowhere}"]
        subprocess.run(make, env=bench.env, check=True, capture_output=True, timeout=60)
        bench.env["DOCKER_CONTEXT"] = "gone"
    error = bench("launch", RECIPE, "--force", code=3)["error"]
    assert "docker_not_running" == error["code"]
    assert words in error["repair"]
    assert nowhere in error["message"]


@pytest.mark.parametrize("address", ["tcp://198.18.255.254:2375", "ssh://me@198.18.255.254"])
def test_a_docker_of_another_host_is_refused(bench: FaultBench, address: str) -> None:
    """It has neither the weights nor the memory of this host; nobody is asked to find that out."""
    bench.env["DOCKER_HOST"] = address
    error = bench("launch", RECIPE, code=1)["error"]
    assert "docker_elsewhere" == error["code"]
    assert "198.18.255.254" in error["message"]
    assert "unset DOCKER_HOST" in error["repair"]


def test_proxies_are_passed_by_whoever_asks_this_host(bench: FaultBench) -> None:
    """Proxy variables that lead nowhere: the server on loopback is reached all the same."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        bench.env[name] = "http://127.0.0.1:9"
    made = bench("launch", RECIPE, "--port", str(free_port()))
    assert bench("wait", RECIPE, "--timeout", "30")["base_url"] == made["base_url"]
    url = ("--base-url", made["base_url"], "--model", bench.fields["served_model_name"])
    measured = bench("round", *url, "--quick", "--only", "single", code=None)
    assert "127.0.0.1:9" not in json.dumps(measured)
    assert (True, 0) == (measured["single"]["n"] > 0, measured["stability"]["failed"])
    assert bench("stop", RECIPE)["stopped"]


HOLD = "head -c 400m /dev/zero >/dev/shm/held; sleep 600"


def test_who_holds_the_memory_is_named_and_left_alone(bench: FaultBench, tiny_image: str) -> None:
    """A recipe that fits the machine and not what is free now: the container that holds some."""
    model = next((bench.catalog / "models").iterdir())
    fields: dict[str, Any] = yaml.safe_load(model.read_text())
    fields["builds"][0]["weights"] |= {"low_bytes": 10**15, "high_bytes": 10**15}
    model.write_text(yaml.safe_dump(fields))
    machine = Path(bench.env["SPARKRECIPES_MACHINE"])
    spec: dict[str, Any] = yaml.safe_load(machine.read_text())
    machine.write_text(
        yaml.safe_dump(spec | {"unified_memory": False, "mem_total_bytes": 2 * 10**15})
    )
    run = ("run", "-d", "--shm-size", "1g", "--entrypoint", "/bin/sh", "--name", "memory-holder")
    holder = docker(*run, tiny_image, "-c", HOLD)
    try:
        time.sleep(2)
        error = bench("launch", RECIPE, code=1)["error"]
        assert "no_memory_now" == error["code"]
        assert "memory-holder (0." in error["message"], error
        assert "true" == docker("inspect", "--format", "{{.State.Running}}", holder)
    finally:
        docker("rm", "--force", holder)
