"""A server over HTTP in a process of its own, for the clients of tests."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    """A server that listens.

    Attributes:
        port: On 127.0.0.1.
        log: What it printed.
    """

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


@contextmanager
def serve(folder: Path, env: dict[str, str]) -> Iterator[Served]:
    """Start a server and stop it again.

    Args:
        folder: For its log.
        env: What its environment has beside this process's own.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = folder / "log.txt"
    words = ["-m", "sparkrecipes", "mcp", "--http", "--offline", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **env, "SPARKRECIPES_MCP_TOKEN": TOKEN},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    deadline = time.monotonic() + 30
    while not listens(port):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    try:
        yield Served(port, log)
    finally:
        process.terminate()
        process.wait(timeout=15)


def listens(port: int) -> bool:
    """Say whether somebody answers there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
