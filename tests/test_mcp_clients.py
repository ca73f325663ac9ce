"""The SDK's own client drives every tool, and is told how long work goes on.

The other two pairs of transport and era are driven in ``tests/real/test_mcp_clients.py``.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from sparkrecipes import jobs
from sparkrecipes.jobs import store
from sparkrecipes.mcp_server import acting
from sparkrecipes.schema.job import JobSpec
from tests.support import fast_catalog
from tests.support.mcp import with_client
from tests.support.mcp_driver import Driver, Open, drive, opened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Start a server."""
    with opened(tmp_path_factory.mktemp("clients")) as found:
        yield found


@pytest.mark.parametrize(("transport", "era"), [("stdio", "legacy"), ("http", "2026-07-28")])
def test_the_sdks_own_client_drives_every_tool(served: Open, transport: str, era: str) -> None:
    """All thirteen, prompts, a resource; while a server loads the client hears of it."""
    asyncio.run(drive(served, transport, era))


def test_what_waits_also_tells_a_client_that_only_wants_signs_of_life(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A job that says nothing new is told of again and again, always a little further."""
    fast_catalog.use(monkeypatch, tmp_path)
    monkeypatch.setattr(acting, "TELL_EVERY_S", 0.1)
    spec = {"kind": "round", "subject": "x", "recipe": None, "catalog": None, "machine": None}
    folder, lock = store.new_job(JobSpec.model_validate_json(json.dumps(spec | {"offline": True})))

    async def ask(client: Client) -> Driver:
        driver = Driver(client)
        await driver.call("get_job", job_id=folder.id, wait_s=1.2)
        return driver

    told = with_client(ask).told
    os.close(lock)
    assert jobs.get_job(folder.id).state == "lost"
    assert len(told) >= 3
    assert sorted({progress for progress, _, _ in told}) == [progress for progress, _, _ in told]
