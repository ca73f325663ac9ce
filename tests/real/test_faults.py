"""Faults of a whole install on a real Docker Engine: what the user sees, and that nothing is left.

The engine is the tiny server of two megabytes, which plays each fault in a second or two.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.conftest import TINY_IMAGE, CommandLine, docker, free_port
from tests.support.fault_table import faults

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
SECRET = "hf_PlantedSecretPlantedSecret0123456"


@pytest.fixture
def recipe(tiny_image: str, tiny_catalog: Path) -> dict[str, Any]:
    """The recipe as it is, served by the tiny server; ``write`` puts it into the catalog."""
    fields: dict[str, Any] = yaml.safe_load(
        (tiny_catalog / "recipes" / f"{RECIPE}.yaml").read_text()
    )
    fields["image"]["reference"] = tiny_image
    fields |= {"weights": None, "flags": [], "speculative": None, "startup_timeout_s": 10}
    return fields


@pytest.fixture
def sparkrecipes(docker_engine: str, tiny_catalog: Path, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line, beside a container of somebody else, with a planted secret."""
    cli = CommandLine(tmp_path, tiny_catalog)
    cli.env |= {
        "HF_TOKEN": SECRET,
        "VLLM_API_KEY": SECRET,
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    stranger = docker("run", "-d", TINY_IMAGE)
    yield cli
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)
    docker("rm", "--force", stranger, NAME, check=False)
    written = [file for name in ("state", "data") for file in (tmp_path / name).rglob("*")]
    assert not [file for file in written if file.is_file() and SECRET in file.read_text()]


def fails(
    cli: CommandLine, recipe: dict[str, Any], *args: str, fault: str, **env: str
) -> dict[str, Any]:
    """Install with a fault: exit code, code and words are those of the table, with a repair."""
    write(cli, recipe, **env)
    port = () if "--port" in args else ("--port", str(free_port()))
    row = faults()[fault]
    error: dict[str, Any] = cli("install", RECIPE, *port, *args, code=row.exits[0])["error"]
    assert error["code"] in row.codes, error
    assert [] == [words for words in row.words if words not in error["message"] + error["repair"]]
    assert error["repair"]
    assert SECRET not in json.dumps(error)
    return error


def write(cli: CommandLine, recipe: dict[str, Any], **env: str) -> None:
    """Write the recipe into the test's catalog."""
    path = Path(cli.env["SPARKRECIPES_CATALOG"]) / "recipes" / f"{RECIPE}.yaml"
    path.write_text(yaml.safe_dump({**recipe, "env": env}))


def none_left() -> None:
    """No container has our name."""
    assert "" == docker("ps", "--all", "--quiet", "--filter", f"name=^{NAME}$")


@pytest.mark.parametrize(
    ("env", "fault"),
    [
        ({"MODE": "exits"}, "engine ends at once"),
        ({"MODE": "silent"}, "engine hangs while loading"),
        ({"MODE": "wedged"}, "engine hangs when asked"),
        ({"MODEL": "other"}, "engine serves another model"),
    ],
)
def test_an_engine_that_does_not_get_ready(
    sparkrecipes: CommandLine, recipe: dict[str, Any], env: dict[str, str], fault: str
) -> None:
    """Each has its own name; the container that this install made is removed."""
    model = {"MODEL": recipe["served_model_name"]}
    error = fails(sparkrecipes, recipe, fault=fault, **(model | env))
    assert error["message"].startswith("wait: ")
    none_left()


def test_a_port_that_is_taken(sparkrecipes: CommandLine, recipe: dict[str, Any]) -> None:
    """Found before anything is fetched or started."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        error = fails(sparkrecipes, recipe, "--port", port, fault="port taken")
    assert port in error["message"]
    none_left()


def test_a_name_that_is_taken(sparkrecipes: CommandLine, recipe: dict[str, Any]) -> None:
    """A container of somebody else has it: it is named and left alone."""
    made = docker("run", "-d", "--name", NAME, TINY_IMAGE)
    error = fails(sparkrecipes, recipe, fault="name taken")
    assert TINY_IMAGE in error["message"]
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", made)
    docker("rm", "--force", made)


def started(cli: CommandLine, *args: str) -> subprocess.Popen[bytes]:
    """Begin an install and return when its container is there."""
    process = subprocess.Popen(
        [*cli.program, "install", RECIPE, "--port", str(free_port()), *args],
        env=cli.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cli.env["HOME"],
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not docker("ps", "--quiet", "--filter", f"name=^{NAME}$"):
        time.sleep(0.1)
    return process


def test_a_killed_install_is_gone_on_with(
    sparkrecipes: CommandLine, recipe: dict[str, Any]
) -> None:
    """Its container still loads: the next one waits for it, and removes it where that fails."""
    write(sparkrecipes, {**recipe, "startup_timeout_s": 60}, MODE="silent")
    process = started(sparkrecipes)
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert docker("ps", "--quiet", "--filter", f"name=^{NAME}$")
    error = fails(sparkrecipes, recipe, fault="engine hangs while loading", MODE="silent")
    assert error["message"].startswith("wait: ")
    none_left()


def test_a_container_that_is_killed_and_two_installs_at_once(
    sparkrecipes: CommandLine, recipe: dict[str, Any]
) -> None:
    """The second is refused and names the first; the first sees that its container was killed."""
    write(sparkrecipes, {**recipe, "startup_timeout_s": 60}, MODE="silent")
    process = started(sparkrecipes)
    refused = sparkrecipes("install", RECIPE, code=1)["error"]
    assert "install_running" == refused["code"]
    assert RECIPE in refused["message"]
    docker("kill", NAME)
    assert 1 == process.wait(30)
    none_left()
