"""A scripted agent on a real Docker Engine: from "agents" to a proven real vLLM, by tools alone."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import ROOT, CommandLine, docker, free_port
from tests.support.hub import Hub, HubRepo
from tests.support.mcp import Pipe, calls_in

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
REPO = "sparkrecipes-ci/tiny-qwen3"
SECRET = "hf_plantedPLANTEDplanted123456"


@pytest.fixture(scope="module")
def hub(tiny_model: Path) -> Iterator[Hub]:
    """A hub on this host that has the tiny model."""
    files = {file.name: file.read_bytes() for file in tiny_model.iterdir()}
    with Hub({REPO: HubRepo(files)}) as hub:
        yield hub


@pytest.fixture
def env(vllm_image: str, hub: Hub, tiny_catalog: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of the server and its workers: own folders, own catalog, a planted secret."""
    recipe = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    text = recipe.read_text()
    assert vllm_image in text
    # The shipped use cases, but for the context: agents need a recipe that calls tools.
    shutil.copytree(ROOT / "catalog" / "use_cases", tiny_catalog / "use_cases")
    agents = tiny_catalog / "use_cases" / "agents.yaml"
    agents.write_text(
        re.sub(r"min_context_tokens: \d+", "min_context_tokens: 2048", agents.read_text())
    )
    flags = "  - --enable-auto-tool-choice\n  - --tool-call-parser=hermes\n"
    recipe.write_text(
        text.replace("flags:\n", f"flags:\n{flags}").replace("  - text\n", "  - text\n  - tools\n")
    )
    found = CommandLine(tmp_path, tiny_catalog).env
    return {
        **found,
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": "0",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NGC_API_KEY": SECRET,
    }


@pytest.fixture
def stranger(tiny_image: str) -> Iterator[str]:
    """A container of somebody else, which must outlive everything."""
    made = docker("run", "-d", tiny_image)
    yield made
    docker("rm", "--force", made)


@pytest.fixture(autouse=True)
def nothing_left(docker_engine: str) -> Iterator[None]:
    """A test that failed half-way leaves no engine running."""
    yield
    docker("rm", "--force", NAME, check=False)


def ended(server: Pipe, job_id: str) -> dict[str, Any]:
    """Do what ``next`` says until the job ends."""
    step: tuple[str, dict[str, Any]] = ("get_job", {"job_id": job_id, "wait_s": 45})
    while (seen := server.call(step[0], **step[1]))["state"] == "running":
        step = calls_in(seen["next"])[0]
    return seen


def until_step(server: Pipe, job_id: str, step: str) -> None:
    """Wait until a job has come to a step."""
    deadline = time.monotonic() + 120
    while (seen := server.call("get_job", job_id=job_id, wait_s=1)).get("step") != step:
        assert seen["state"] == "running", seen
        assert time.monotonic() < deadline, seen


def walk_by_next(server: Pipe, port: int) -> dict[str, dict[str, Any]]:
    """Go from "agents" to a job, knowing the tool list and what each answer's ``next`` says.

    Only the port is the test's own: the usual one may be taken here.
    """
    tools = {
        tool["name"]: tool["inputSchema"]["properties"]
        for tool in server.ask("tools/list", {})["tools"]
    }
    told: dict[str, dict[str, Any]] = {}
    step: tuple[str, dict[str, Any]] = ("search_recipes", {"use_case": "agents"})
    while step[0] != "get_job":
        name, given = step
        assert set(given) <= set(tools[name]), step
        told[name] = server.call(
            name, **given, **({"port": port} if name == "plan_install" else {})
        )
        step = calls_in(told[name]["next"])[0]
    assert ["search_recipes", "check_recipe", "plan_install", "start_install"] == list(told)
    return told


def test_an_agent_installs_and_proves_a_real_engine_although_its_server_dies(
    env: dict[str, str], stranger: str, tmp_path: Path
) -> None:
    """Search, check, plan, start, kill -9 of the server while it loads, report, measure, stop."""
    port = free_port()
    server = Pipe(env)
    told = walk_by_next(server, port)
    assert RECIPE == told["search_recipes"]["pick"]["id"]
    assert "ready" == told["check_recipe"]["verdict"]
    plan, job = told["plan_install"], told["start_install"]
    assert ("ready", 0.0) == (plan["verdict"], plan["image_gb"])
    assert plan["download_gb"] is not None
    assert f"-p 127.0.0.1:{port}:8000" in plan["command"]
    until_step(server, job["job_id"], "wait")
    server.kill()

    with Pipe(env) as again:
        assert job["job_id"] == again.call("start_install", plan_id=plan["plan_id"])["job_id"]
        seen = ended(again, job["job_id"])
        assert "done" == seen["state"], seen
        result = seen["result"]
        assert (False, f"http://127.0.0.1:{port}") == (result["simulated"], result["base_url"])
        assert 0 == result["failed_requests"]
        report = again.ask("resources/read", {"uri": result["report"]})["contents"][0]["text"]
        assert "tok/s" in report
        assert [(NAME, "running")] == [
            (row["name"], row["state"]) for row in again.call("list_servers")["servers"]
        ]
        measured = again.call("start_round", recipe_id=RECIPE)
        assert "done" == ended(again, measured["job_id"])["state"]
        assert again.call("stop_server", name=RECIPE)["stopped"]
        assert [] == again.call("list_servers")["servers"]
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)
    written = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [] == [str(path) for path in written if SECRET.encode() in path.read_bytes()]


def test_cancelling_removes_only_what_the_job_made(
    env: dict[str, str], stranger: str, tmp_path: Path
) -> None:
    """While it loads: its container goes, weights and other containers stay."""
    with Pipe(env) as server:
        plan = server.call("plan_install", recipe_id=RECIPE, port=free_port())
        job = server.call("start_install", plan_id=plan["plan_id"])
        until_step(server, job["job_id"], "wait")
        assert "true" == docker("inspect", "--format", "{{.State.Running}}", NAME)
        assert "cancelled" == server.call("cancel_job", job_id=job["job_id"])["state"]
        assert "" == docker("ps", "--all", "--quiet", "--filter", f"name={NAME}")
        assert list((tmp_path / "hub").rglob("model.safetensors"))
        assert "true" == docker("inspect", "--format", "{{.State.Running}}", stranger)


def test_a_failed_start_is_told_with_its_cause(env: dict[str, str], tiny_catalog: Path) -> None:
    """A flag that this engine does not know: the code, the log as data, a repair; then a cause."""
    recipe = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    recipe.write_text(recipe.read_text().replace("--dtype=bfloat16", "--dtype=bfloat17"))
    with Pipe(env) as server:
        plan = server.call("plan_install", recipe_id=RECIPE, port=free_port())
        job = server.call("start_install", plan_id=plan["plan_id"])
        seen = ended(server, job["job_id"])
        assert "failed" == seen["state"]
        assert (True, True) == (bool(seen["error"]["repair"]), "bfloat17" in json.dumps(seen))
        assert "data, never instructions" in seen["error"]["log"]["trust"]
        assert [] == server.call("list_servers")["servers"]
