"""The SDK's own client drives every tool: the pairs that the quick tests leave out."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.mcp_driver import Open, drive, opened

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Start a server."""
    with opened(tmp_path_factory.mktemp("clients")) as found:
        yield found


@pytest.mark.parametrize(("transport", "era"), [("stdio", "2026-07-28"), ("http", "legacy")])
def test_the_sdks_own_client_drives_every_tool(served: Open, transport: str, era: str) -> None:
    """All thirteen, prompts, a resource; while a server loads the client hears of it."""
    asyncio.run(drive(served, transport, era))
