"""The SDK's own client, over either transport, and a walk over every tool with it."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from sparkrecipes.jobs import store
from sparkrecipes.jobs.diary import Diary
from sparkrecipes.operations.walk import STEPS
from sparkrecipes.schema.job import JobSpec
from tests.support import fast_catalog
from tests.support.fake_docker import FakeDocker, described
from tests.support.fast_catalog import RECIPE
from tests.support.mcp import facts, fault
from tests.support.mcp_http import TOKEN, serve

MEASURING = ("round", "report")
"""Steps of a rehearsal after its load."""

MILESTONES = ("loading weights: 1 of 3 shards", "compiling kernels", "capturing CUDA graphs")
LOADING = {
    "kind": "rehearse",
    "subject": RECIPE,
    "recipe": None,
    "catalog": None,
    "machine": None,
    "offline": True,
}
"""A job that the test itself works on."""


class Open:
    """How clients reach servers that share one state folder."""

    def __init__(self, url: str, env: dict[str, str]) -> None:
        """Remember where the one listens and what the other is started with."""
        self.url = url
        self.env = env

    @asynccontextmanager
    async def client(self, transport: str, era: str) -> AsyncIterator[Client]:
        """Open a client."""
        if transport == "stdio":
            words = ["-m", "sparkrecipes", "mcp", "--offline"]
            target = StdioServerParameters(command=sys.executable, args=words, env=self.env)
            async with Client(target, mode=era) as client:
                yield client
            return
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            over_http = streamable_http_client(self.url, http_client=http_client)
            async with Client(over_http, mode=era) as client:
                yield client


@contextmanager
def opened(folder: Path) -> Iterator[Open]:
    """Start a server over HTTP; its Docker has one server of ours, which ended."""
    programs = folder / "bin"
    programs.mkdir()
    docker = FakeDocker(programs)
    docker.answer("ps", stdout="x")
    docker.answer("container", "inspect", stdout=described("oom", recipe_id=RECIPE))
    docker.answer("logs", stdout="torch.OutOfMemoryError: CUDA out of memory.\n")
    docker.answer("rm")
    env = fast_catalog.environment(folder) | {"PATH": str(programs)}
    with serve(folder, env) as found:
        yield Open(found.url, {**os.environ, **env})


class Driver:
    """Calls tools, and notes which, and what it was told meanwhile."""

    def __init__(self, client: Client) -> None:
        """Take the client to call with."""
        self.client = client
        self.called: list[str] = []
        self.told: list[tuple[float, float | None, str | None]] = []

    async def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Call a tool and return its facts."""
        self.called.append(tool)
        return facts(await self.client.call_tool(tool, given, progress_callback=self.hear))

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one progress notification."""
        self.told.append((progress, total, message))


async def drive(served: Open, transport: str, era: str) -> None:
    """Walk over every tool, the prompts and a resource."""
    async with served.client(transport, era) as client:
        driver = Driver(client)
        await ask_all(driver)
        await heard(served, client)
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert (13, listed) == (len(listed), set(driver.called))
        assert 5 == len((await client.list_prompts()).prompts)
        read = await client.read_resource(f"recipe://{RECIPE}")
        assert "title:" in read.contents[0].text


async def ask_all(driver: Driver) -> None:
    """Read, plan, start, watch, cancel, measure, diagnose and stop."""
    pick = await driver.call("search_recipes", use_case="agents")
    recipe_id = pick["pick"]["id"]
    assert recipe_id == (await driver.call("get_recipe", recipe_id=recipe_id))["id"]
    fit = await driver.call("estimate_memory", recipe_or_model=recipe_id, users=1)
    assert "fits" == fit["verdict"]
    assert (await driver.call("check_recipe", recipe_id=recipe_id))["problems"]
    plan = await driver.call("plan_install", recipe_id=recipe_id, rehearse=True)
    job = await driver.call("start_install", plan_id=plan["plan_id"])
    jobs = (await driver.call("list_jobs"))["jobs"]
    assert (job["job_id"], "running") == (jobs[0]["job_id"], jobs[0]["state"])
    while (await driver.call("get_job", job_id=job["job_id"], wait_s=20))["step"] not in MEASURING:
        pass
    # On a busy machine the round may be over by now; that a job is cancelled is held elsewhere.
    ended = await driver.call("cancel_job", job_id=job["job_id"])
    assert ended["state"] in ("cancelled", "done"), ended
    measured = await driver.call("start_round", base_url="http://127.0.0.1:9", model="none")
    while (ended := await driver.call("get_job", job_id=measured["job_id"], wait_s=20)) and (
        ended["state"] == "running"
    ):
        pass
    assert "round_failed" == ended["error"]["code"]
    assert [RECIPE] == [row["recipe_id"] for row in (await driver.call("list_servers"))["servers"]]
    assert "found" == (await driver.call("diagnose", server=RECIPE))["verdict"]
    assert (await driver.call("stop_server", name=RECIPE))["stopped"]
    unknown = await driver.client.call_tool("get_recipe", {"recipe_id": "nothing"})
    assert "unknown_id" == fault(unknown)["code"]


async def heard(served: Open, client: Client) -> None:
    """Hear every milestone of a load: each is reached only when the client was told of the last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", served.env["XDG_STATE_HOME"])
        folder, lock = store.new_job(JobSpec.model_validate_json(json.dumps(LOADING)))
    diary = Diary(folder)
    diary.begin("wait")
    to_come = iter(MILESTONES)
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        if milestone := next(to_come, None):
            diary.update(at_once=True, message=milestone)
        else:
            diary.end("cancelled", message="the test has heard enough")

    wait = {"job_id": folder.id, "wait_s": 40}
    ended = facts(await client.call_tool("get_job", wait, progress_callback=hear))
    os.close(lock)
    assert "cancelled" == ended["state"]
    counts = [progress for progress, _, _ in told]
    assert sorted(set(counts)) == counts, "each progress must be above the last"
    assert {float(len(STEPS))} == {total for _, total, _ in told}
    assert ["wait: wait ...", *(f"wait: {m}" for m in MILESTONES)] == [line for _, _, line in told]
