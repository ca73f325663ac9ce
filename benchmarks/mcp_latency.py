"""How quick the MCP server is, beside a bare server on the same SDK, in the same run.

    python benchmarks/mcp_latency.py [--calls 200] [--starts 7]

Both are processes of their own, spoken to over a pipe by the same client, taking turns so that a
busy moment falls on both. The bare server has one tool, which returns the text that it is given.

Goals: a round trip of a reading tool at most 1.5 times the echo, start-up to the first answer
of a tool at most 1.3 times the bare server's, a job started in under a second. Answers that hang on
the free memory are kept for five seconds, and the catalog stays open; ``first`` is the first call
of its kind, before anything was kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

BARE = """
from mcp.server import MCPServer

server = MCPServer("bare", log_level="WARNING")

@server.tool()
def echo(text: str) -> str:
    "Return the text."
    return text

server.run("stdio")
"""

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
READING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_recipes", {"use_case": "agents"}),
    ("search_recipes", {"query": "gemma"}),
    ("get_recipe", {"recipe_id": RECIPE}),
    ("estimate_memory", {"recipe_or_model": RECIPE}),
    ("list_jobs", {}),
)
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Server:
    """A server in a process of its own."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **env},
            text=True,
        )
        self.asked = 0

    def __enter__(self) -> Self:
        self.ask("initialize", HELLO)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()

    def write(self, message: dict[str, Any]) -> None:
        """Send one line."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.asked += 1
        self.write({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.asked:
                return answer["result"]
        raise SystemExit("the server ended")

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; an error ends the benchmark."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise SystemExit(f"{name}: {result['content'][0]['text']}")
        return result


def timed(server: Server, name: str, arguments: dict[str, Any]) -> float:
    """Return the milliseconds of one call."""
    began = time.perf_counter()
    server.call(name, arguments)
    return (time.perf_counter() - began) * 1000


def round_trips(bare: Server, ours: Server, calls: int) -> None:
    """Compare each reading tool with the echo, call by call."""
    print(f"\nround trip over a pipe, {calls} calls each, ms")
    print(f"{'tool':34} {'first':>8} {'median':>8} {'p95':>8} {'echo':>8} {'ratio':>7}")
    for name, arguments in READING:
        first = timed(ours, name, arguments)
        echo, mine = [], []
        for _ in range(calls):
            echo.append(timed(bare, "echo", {"text": "hello"}))
            mine.append(timed(ours, name, arguments))
        median, base = statistics.median(mine), statistics.median(echo)
        p95 = statistics.quantiles(mine, n=20)[-1]
        shown = f"{name} {' '.join(map(str, arguments.values()))}"[:34]
        print(f"{shown:34} {first:8.1f} {median:8.2f} {p95:8.2f} {base:8.2f} {median / base:7.2f}")


def start_ups(bare: list[str], ours: list[str], env: dict[str, str], starts: int) -> None:
    """Compare the time from the start of the process to the first answer of a tool."""
    seen: dict[str, list[float]] = {"bare": [], "ours": []}
    wanted = {
        "bare": (bare, "echo", {"text": "hello"}),
        "ours": (ours, "search_recipes", {"query": "gemma"}),
    }
    for _ in range(starts + 1):
        for which, (argv, tool, arguments) in wanted.items():
            began = time.perf_counter()
            with Server(argv, env) as server:
                server.call(tool, arguments)
                seen[which].append((time.perf_counter() - began) * 1000)
    print(f"\nstart of the process to the first answer of a tool, {starts} starts, ms")
    for which, all_times in seen.items():
        times = all_times[1:]
        print(
            f"{which:34} median {statistics.median(times):7.0f}  min {min(times):7.0f}  "
            f"max {max(times):7.0f}"
        )
    median = statistics.median(seen["ours"][1:]) / statistics.median(seen["bare"][1:])
    print(f"{'ratio':34} median {median:7.2f}  min {min(seen['ours']) / min(seen['bare']):7.2f}")


def job_start(ours: Server) -> None:
    """Time how long starting a job takes; it is cancelled at once."""
    plan = ours.call("plan_install", {"recipe_id": RECIPE, "rehearse": True})
    began = time.perf_counter()
    job = ours.call("start_install", {"plan_id": plan["structuredContent"]["plan_id"]})
    took = (time.perf_counter() - began) * 1000
    ours.call("cancel_job", {"job_id": job["structuredContent"]["job_id"]})
    print(f"\nstart_install answered with a job after {took:.0f} ms")


def main() -> None:
    """Run all three, in folders of their own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--starts", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {"XDG_STATE_HOME": folder, "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder}
        script = Path(folder) / "bare.py"
        script.write_text(BARE)
        bare = [sys.executable, str(script)]
        ours = [sys.executable, "-m", "sparkrecipes", "mcp", "--offline"]
        print(f"load {os.getloadavg()[0]:.1f}")
        start_ups(bare, ours, env, options.starts)
        with Server(bare, env) as echo, Server(ours, env) as server:
            round_trips(echo, server, options.calls)
            job_start(server)


if __name__ == "__main__":
    main()
