"""Install, whole: a real vLLM in a real container, with the argv that the product renders."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.operations.walk import STEPS
from tests.real.conftest import CommandLine, docker, free_port
from tests.support.hub import Hub, HubRepo

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
REPO = "sparkrecipes-ci/tiny-qwen3"


@pytest.fixture(scope="module")
def hub(tiny_model: Path) -> Iterator[Hub]:
    """A hub on this host that has the tiny model."""
    files = {file.name: file.read_bytes() for file in tiny_model.iterdir()}
    with Hub({REPO: HubRepo(files)}) as hub:
        yield hub


@pytest.fixture
def sparkrecipes(vllm_image: str, hub: Hub, tiny_catalog: Path, tmp_path: Path) -> CommandLine:
    """The command line with the test's catalog, machine, hub and folders."""
    assert vllm_image in (tiny_catalog / "recipes" / f"{RECIPE}.yaml").read_text()
    cli = CommandLine(tmp_path, tiny_catalog)
    cli.env["HF_ENDPOINT"] = hub.url
    return cli


@pytest.fixture
def stranger(tiny_image: str) -> Iterator[str]:
    """A container of somebody else, which must outlive the walk."""
    made = docker("run", "-d", tiny_image)
    yield made
    docker("rm", "--force", made)


@pytest.fixture(autouse=True)
def nothing_left(docker_engine: str) -> Iterator[None]:
    """A test that failed half-way leaves no engine running."""
    yield
    docker("rm", "--force", NAME, check=False)


def steps_of(report: dict[str, Any]) -> dict[str, str]:
    """Return the state of each step."""
    return {step["step"]: step["state"] for step in report["steps"]}


def test_install_walks_from_nothing_to_a_proven_endpoint(
    sparkrecipes: CommandLine, stranger: str
) -> None:
    """Check, download, launch, wait, smoke, round, report; again is no second start; then stop."""
    port = str(free_port())
    installed = sparkrecipes("install", RECIPE, "--port", port)
    assert [(step, "done") for step in STEPS] == list(steps_of(installed).items())
    assert (True, False) == (installed["ok"], installed["simulated"])
    assert f"http://127.0.0.1:{port}" == installed["base_url"]
    check_round(installed["round"])
    assert "faster" == installed["report"]["verdict"]
    check_container(installed["command"], port)

    again = sparkrecipes("install", RECIPE, "--port", port)
    assert "skipped" == steps_of(again)["launch"]
    servers = sparkrecipes("status")["servers"]
    assert [(NAME, "running", 0)] == [(s["name"], s["state"], s["restarts"]) for s in servers]
    assert "tiny-qwen3" == sparkrecipes("wait", RECIPE)["model"]
    assert any("startup complete" in line for line in sparkrecipes("logs", RECIPE)["lines"])
    assert "faster" == sparkrecipes("report")["verdict"]

    assert sparkrecipes("stop", RECIPE)["stopped"]
    assert not sparkrecipes("stop", RECIPE)["stopped"]
    assert [] == sparkrecipes("status")["servers"]
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)


def check_round(measured: dict[str, Any]) -> None:
    """The round has words, speeds, acceptance, and no failed request."""
    assert RECIPE == measured["recipe_id"]
    assert measured["smoke"]["words"]
    assert (0, False) == (measured["stability"]["failed"], measured["stability"]["restarted"])
    assert measured["single"]["decode_tok_s"], (measured["warnings"], measured["single"])
    assert 4 == measured["concurrent"]["users"]
    assert measured["acceptance"]["drafts"] > 0
    assert "not_supported" == measured["long_prompt"]["state"]


def check_container(shell: str, port: str) -> None:
    """What runs is what ``command`` shows: loopback, our label, weights read-only, no GPU."""
    seen = json.loads(docker("container", "inspect", NAME))[0]
    assert RECIPE == seen["Config"]["Labels"]["org.sparkrecipes.recipe"]
    bound = seen["HostConfig"]["PortBindings"]["8000/tcp"]
    assert [{"HostIp": "127.0.0.1", "HostPort": port}] == bound
    assert [False] * len(seen["Mounts"]) == [mount["RW"] for mount in seen["Mounts"]]
    assert "--gpus" not in shell
    assert all(argument in shell for argument in seen["Config"]["Cmd"][:1])


def test_a_failed_install_keeps_weights_and_removes_only_its_container(
    sparkrecipes: CommandLine, tiny_catalog: Path, stranger: str, tmp_path: Path
) -> None:
    """A flag that this engine does not know: the cause and a repair, and what was kept."""
    recipe = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    recipe.write_text(recipe.read_text().replace("--dtype=bfloat16", "--dtype=bfloat17"))
    failed = sparkrecipes("install", RECIPE, "--port", str(free_port()), code=1)["error"]
    assert failed["repair"]
    assert "wait" in failed["message"]
    assert "bfloat17" in json.dumps(failed)
    assert f"weights {REPO}" in json.dumps(failed)
    assert list((tmp_path / "hub").rglob("model.safetensors"))
    assert [] == sparkrecipes("status")["servers"]
    assert "" == docker("ps", "--all", "--quiet", "--filter", f"name={NAME}")
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)
