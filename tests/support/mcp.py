"""Clients for the MCP server: the SDK's own, in memory, and a bare pipe that can be killed."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Self, TypeVar

from mcp import Client
from mcp_types import ElicitRequestParams, ElicitResult

from sparkrecipes.mcp_server import Settings, build_server
from sparkrecipes.mcp_server.server import Server

T = TypeVar("T")
ERAS = ("legacy", "2026-07-28")
PLACES = ("SPARKRECIPES_CATALOG", "SPARKRECIPES_MACHINE")
"""Variables that a server looks at when it opens its catalog."""
Answerer = Callable[[Any, ElicitRequestParams], Awaitable[ElicitResult]]

CALL = re.compile(r"\b(diagnose|[a-z]+_[a-z]+)\(([^()]*)\)")
ARGUMENT = re.compile(r'(\w+)=("[^"]*"|\.\.\.|\w+)')


@cache
def server_for(settings: Settings, _places: tuple[str | None, ...]) -> Server:
    """Build a server once for each way to start it: building one takes longer than most calls."""
    return build_server(settings)


def with_client(
    work: Callable[[Client], Awaitable[T]],
    settings: Settings | None = None,
    *,
    era: str = "2026-07-28",
    answer: Answerer | None = None,
) -> T:
    """Run some calls against a server in this process."""
    places = tuple(os.environ.get(name) for name in PLACES)
    server = server_for(settings or Settings(offline=True), places)

    async def run() -> T:
        async with Client(server, mode=era, elicitation_callback=answer) as client:
            return await work(client)

    return asyncio.run(run())


def call(
    name: str,
    arguments: dict[str, Any] | None = None,
    settings: Settings | None = None,
    *,
    era: str = "2026-07-28",
    answer: Answerer | None = None,
) -> Any:
    """Call one tool; return the SDK's result."""
    return with_client(
        lambda client: client.call_tool(name, arguments or {}), settings, era=era, answer=answer
    )


def facts(result: Any) -> dict[str, Any]:
    """Return the facts of a good answer; its text must say the same."""
    assert not result.is_error, result.content[0].text
    assert result.structured_content == json.loads(result.content[0].text)
    found: dict[str, Any] = result.structured_content
    return found


def fault(result: Any) -> dict[str, str]:
    """Return the error of an answer that is one; its text must say the same."""
    assert result.is_error, result.content[0].text
    assert result.structured_content == json.loads(result.content[0].text)
    assert ["error"] == list(result.structured_content)
    error: dict[str, str] = result.structured_content["error"]
    assert {"code", "message", "repair"} == set(error) - {"parameter"}
    return error


def calls_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read the tool calls that a text names, with their arguments; open ones are left open."""
    found = []
    for name, arguments in CALL.findall(text):
        given: dict[str, Any] = {}
        for key, value in ARGUMENT.findall(arguments):
            try:
                given[key] = json.loads(value)
            except ValueError:
                given[key] = value
        found.append((name, given))
    return found


class Pipe:
    """A server in a process of its own, spoken to line by line, as a host program does."""

    def __init__(self, env: dict[str, str], *options: str) -> None:
        """Start it and shake hands."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sparkrecipes", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **env},
            text=True,
        )
        self.asked = 0
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        self.server = self.ask("initialize", hello)
        self.tell("notifications/initialized")

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it as a client does: by closing the pipe."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()

    def tell(self, method: str) -> None:
        """Send a notification."""
        self.write({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result; every line must be a message."""
        self.asked += 1
        self.write({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.asked:
                result: dict[str, Any] = message["result"]
                return result
        raise AssertionError(f"the server ended: {self.process.wait()}")

    def write(self, message: dict[str, Any]) -> None:
        """Write one line."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its facts."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        facts: dict[str, Any] = result["structuredContent"]
        return facts

    def kill(self) -> None:
        """Kill it as an out-of-memory killer does."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
