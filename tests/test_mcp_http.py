"""HTTP: on this host alone, for clients with the token, and never for a web page."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sparkrecipes.cli import main
from sparkrecipes.errors import Misuse
from sparkrecipes.mcp_server.transport import MAX_BODY_BYTES, access_token, loopback
from tests.support import fast_catalog
from tests.support.mcp import ERAS, facts

TOKEN = "0123456789abcdef0123456789abcdef"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@dataclass
class Served:
    """A server over HTTP in a process of its own."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(self, body: bytes | None = None, **headers: str) -> int:
        """Post a message; return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {TOKEN}",
            **headers,
        }
        try:
            connection.request("POST", "/mcp", body or json.dumps(HELLO).encode(), sent)
            return connection.getresponse().status
        finally:
            connection.close()


def listens(port: int) -> bool:
    """Say whether somebody answers there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start one server for all tests here."""
    folder = tmp_path_factory.mktemp("http")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sparkrecipes",
                "mcp",
                "--http",
                "--offline",
                "--port",
                str(port),
            ],
            env={
                **os.environ,
                **fast_catalog.environment(folder),
                "SPARKRECIPES_MCP_TOKEN": TOKEN,
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    deadline = time.monotonic() + 30
    while not listens(port):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    try:
        yield Served(port, log)
    finally:
        process.terminate()
        process.wait(timeout=15)


@pytest.mark.parametrize("era", ERAS)
def test_the_sdks_own_client_drives_it(served: Served, era: str) -> None:
    """With the token, in both eras: tools, a prompt, a resource."""

    async def run() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http_client:
            transport = streamable_http_client(served.url, http_client=http_client)
            async with Client(transport, mode=era) as client:
                assert 13 == len((await client.list_tools()).tools)
                found = facts(await client.call_tool("search_recipes", {"use_case": "agents"}))
                assert found["pick"]["id"] == found["recipes"][0]["id"]
                assert 5 == len((await client.list_prompts()).prompts)
                read = await client.read_resource(f"recipe://{fast_catalog.RECIPE}")
                assert "title:" in read.contents[0].text

    asyncio.run(run())


def test_without_the_token_nothing_is_answered(served: Served) -> None:
    """None, a wrong one, a longer one, another scheme: 401."""
    for header in ("", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        assert 401 == served.post(Authorization=header), header
    assert 200 == served.post()


def test_a_page_in_a_browser_cannot_reach_it(served: Served) -> None:
    """DNS rebinding: a foreign name in Host or Origin is refused, even with the token."""
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1.evil.example", ""):
        assert 421 == served.post(Host=host), host
    for origin in ("http://evil.example", f"http://evil.example:{served.port}", "null"):
        assert 403 == served.post(Origin=origin), origin
    own = f"127.0.0.1:{served.port}"
    assert 200 == served.post(Host=own, Origin=f"http://{own}")


def test_a_huge_body_is_refused(served: Served) -> None:
    """Over 1 MiB."""
    assert 413 == served.post(b"{" + b" " * (MAX_BODY_BYTES + 10) + b"}")


def test_the_token_is_never_printed(served: Served) -> None:
    """Nor is anything else but the address."""
    text = served.log.read_text()
    assert (True, False) == (served.url in text, TOKEN in text)


def test_a_token_is_made_once_for_this_user_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept in the state folder, mode 0600; a short one in the environment is refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARKRECIPES_MCP_TOKEN", raising=False)
    token = access_token()
    assert (True, token) == (len(token) >= 32, access_token())
    file = tmp_path / "sparkrecipes" / "mcp_token"
    assert "0o600" == oct(file.stat().st_mode & 0o777)
    assert token not in capsys.readouterr().err
    monkeypatch.setenv("SPARKRECIPES_MCP_TOKEN", "short")
    with pytest.raises(Misuse):
        access_token()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "example.com", "::", ""])
def test_only_loopback_is_served(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Others could start programs on this host: refused before anything listens."""
    with pytest.raises(Misuse):
        loopback(host)
    assert 2 == main(["mcp", "--http", "--host", host])
    assert "loopback" in capsys.readouterr().err
