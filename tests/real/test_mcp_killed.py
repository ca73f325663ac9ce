"""Killed at any moment, started again: the same good end, rehearsed and on a real Docker Engine.

The moments are spread over the whole of a job. ``server``: the MCP server is killed and a new one
is asked to start the same plan. ``worker``: the process that does the work is killed, as an
out-of-memory killer does it. Every step of a *start* is killed in ``tests/test_jobs_killed.py``.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from sparkrecipes.operations.walk import STEPS
from tests.real.conftest import CommandLine, docker, free_port
from tests.support import fast_catalog
from tests.support.hub import Hub, HubRepo
from tests.support.mcp import Pipe, calls_in

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
REPO = "sparkrecipes-ci/tiny-qwen3"
FILES = {"config.json": b"{}", "model.safetensors": b"x" * 3_000_000}
REHEARSED_S = (0.0, 0.4, 0.9, 1.5, 2.2, 3.0, 4.0, 5.0)
REAL_S = (0.0, 0.7, 1.4, 2.1, 2.8, 3.5, 4.5, 6.0)
"""Seconds from the start of a job to the kill."""

Victim = Literal["server", "worker"]
VICTIMS: tuple[Victim, ...] = ("server", "worker")


class Killing:
    """A job whose server or worker is killed once, and what comes of it."""

    def __init__(self, env: dict[str, str], *options: str) -> None:
        """Remember how servers are started."""
        self.env = env
        self.options = options

    def server(self) -> Pipe:
        """Start a server."""
        return Pipe(self.env, *self.options)

    def run(self, victim: Victim, after_s: float, **plan: Any) -> dict[str, Any]:
        """Plan, start, kill after some seconds, start the same plan again, and wait for the end.

        A plan whose job came to its end before the kill is used up: its job is the answer.
        """
        server = self.server()
        plan_id = server.call("plan_install", **plan)["plan_id"]
        first = server.call("start_install", plan_id=plan_id)["job_id"]
        time.sleep(after_s)
        if victim == "server":
            server.kill()
        else:
            self.kill_worker(first)
            server.__exit__()
        with self.server() as again:
            seen = again.call("get_job", job_id=first)
            assert seen["state"] in ("running" if victim == "server" else "lost", "done"), (
                json.dumps(seen)
            )
            if seen["state"] == "done":
                return seen
            second = started(again, plan_id)
            assert second == first if victim == "server" else second != first
            assert second == started(again, plan_id)
            return ended(again, second)

    def kill_worker(self, job_id: str) -> None:
        """Kill a worker as soon as it has written who it is; it may have ended already."""
        record = Path(self.env["XDG_STATE_HOME"]) / "sparkrecipes/jobs" / job_id / "state.json"
        while (seen := json.loads(record.read_text()))["pid"] is None:
            time.sleep(0.01)
        if seen["state"] == "running":
            os.kill(seen["pid"], signal.SIGKILL)


def started(server: Pipe, plan_id: str) -> str:
    """Start a plan; one whose job has ended by now is used up, and names that job."""
    given = {"name": "start_install", "arguments": {"plan_id": plan_id}}
    result = server.ask("tools/call", given)["structuredContent"]
    if "error" not in result:
        return str(result["job_id"])
    assert "used_plan" == result["error"]["code"], result
    return str(calls_in(result["error"]["repair"])[0][1]["job_id"])


def ended(server: Pipe, job_id: str) -> dict[str, Any]:
    """Do what ``next`` says until the job ends."""
    step: tuple[str, dict[str, Any]] = ("get_job", {"job_id": job_id, "wait_s": 45})
    while (seen := server.call(step[0], **step[1]))["state"] == "running":
        step = calls_in(seen["next"])[0]
    return seen


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_rehearsal_that_is_killed_at_any_moment(tmp_path: Path, victim: Victim) -> None:
    """All steps walked, simulated, with all figures; three moments at a time."""

    def one(after_s: float) -> tuple[Any, ...]:
        home = tmp_path / f"{after_s}"
        home.mkdir()
        killing = Killing(fast_catalog.environment(home), "--offline")
        seen = killing.run(victim, after_s, recipe_id=fast_catalog.RECIPE, rehearse=True)
        steps = tuple(step.split()[0] for step in seen["done_steps"])
        figures = tuple(row["figure"] for row in seen["result"]["figures"])
        return seen["state"], steps, seen["result"]["simulated"], len(figures)

    with ThreadPoolExecutor(max_workers=3) as pool:
        ends = list(pool.map(one, REHEARSED_S))
    assert [("done", STEPS, True, 4)] * len(REHEARSED_S) == ends


@pytest.fixture
def env(docker_engine: str, tiny_image: str, tiny_catalog: Path, tmp_path: Path) -> Iterator[Any]:
    """A hub, a recipe that the tiny server serves, and folders of its own for each moment."""
    path = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    fields = yaml.safe_load(path.read_text())
    fields["image"]["reference"] = tiny_image
    fields |= {"flags": [], "speculative": None, "env": {"MODEL": fields["served_model_name"]}}
    path.write_text(yaml.safe_dump(fields))
    with Hub({REPO: HubRepo(FILES)}) as hub:

        def made(name: str) -> dict[str, str]:
            home = tmp_path / name
            home.mkdir()
            found = CommandLine(home, tiny_catalog).env
            return {
                **found,
                "HF_ENDPOINT": hub.url,
                "HF_HUB_OFFLINE": "0",
                "XDG_STATE_HOME": str(home / "state"),
                "DOCKER_HOST": docker_engine,
            }

        yield made
    docker("rm", "--force", NAME, check=False)


@pytest.mark.parametrize("victim", VICTIMS)
def test_an_install_that_is_killed_at_any_moment(env: Any, victim: Victim) -> None:
    """One container of ours, up and measured; the weights whole; nothing left to go on with."""
    for after_s in REAL_S:
        docker("rm", "--force", NAME, check=False)
        found = env(f"{victim}-{after_s}")
        seen = Killing(found).run(victim, after_s, recipe_id=RECIPE, port=free_port())
        assert "done" == seen["state"], (victim, after_s, json.dumps(seen))
        assert (False, 0) == (seen["result"]["simulated"], seen["result"]["failed_requests"])
        check_world(found, after_s)


def check_world(env: dict[str, str], after_s: float) -> None:
    """Look at Docker, the weights and the state folder."""
    running = docker("ps", "--filter", f"name=^{NAME}$", "--format", "{{.Names}} {{.State}}")
    assert f"{NAME} running" == running, after_s
    assert NAME == docker("ps", "--all", "--filter", f"name={NAME}", "--format", "{{.Names}}")
    whole = {
        path.name: path.read_bytes()
        for path in Path(env["HF_HUB_CACHE"]).rglob("snapshots/*/*")
        if path.is_file()
    }
    assert FILES == whole, after_s
    state = Path(env["XDG_STATE_HOME"]) / "sparkrecipes"
    assert ["lock"] == [path.name for path in (state / "installs").iterdir()], after_s
    assert [] == [path.name for path in (state / "jobs").glob(".2*")]
