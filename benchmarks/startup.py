"""How long a command takes from the shell, beside a peer in the same run.

    python benchmarks/startup.py [--peer PATH_OF_SPARKFIT] [--runs 11]

Prints the median and the range of wall time, and the CPU time, of whole processes. The peer is
sparkfit (``pip install sparkfit`` in an environment of its own); without it only our rows appear.
Goals: ``--help`` at most 110 ms and ``list`` at most 150 ms on two slow cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

OURS = str(Path(sys.executable).parent / "sparkrecipes")


def commands(peer: str | None) -> dict[str, list[str]]:
    """Name the commands that are timed, ours and the peer's taking turns."""
    rows = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import sparkrecipes": [sys.executable, "-c", "import sparkrecipes"],
        "sparkrecipes --help": [OURS, "--help"],
        "sparkrecipes list": [OURS, "list"],
        "sparkrecipes list --json": [OURS, "list", "--json"],
        "sparkrecipes fit (llama 70B)": [
            *(OURS, "fit", "llama-3.3-70b-instruct-nvfp4", "--context", "131072"),
            *("--users", "4", "--kv-cache-dtype", "fp8", "--json"),
        ],
        "sparkrecipes recommend agents": [OURS, "recommend", "agents", "--json"],
    }
    if peer:
        rows["sparkfit --help"] = [peer, "--help"]
        rows["sparkfit plan (llama 70B)"] = [peer, "plan", "llama-3.3-70b"]
    return rows


def timed(argv: list[str]) -> tuple[float, float]:
    """Run a command once; return its wall and CPU milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, cpu * 1000


def main() -> None:
    """Time every command in turns, so that a busy moment falls on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="path of the sparkfit command")
    parser.add_argument("--runs", type=int, default=11)
    options = parser.parse_args()
    rows = commands(options.peer)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(options.runs + 1):
        for name, argv in rows.items():
            seen[name].append(timed(argv))
    print(f"{options.runs} runs after one warm-up, load {os.getloadavg()[0]:.1f}")
    print(f"{'command':34} {'wall ms':>8} {'min':>7} {'max':>7} {'CPU ms':>8}")
    for name, pairs in seen.items():
        walls = [wall for wall, _ in pairs[1:]]
        cpu = statistics.median(cpu for _, cpu in pairs[1:])
        print(
            f"{name:34} {statistics.median(walls):8.0f} {min(walls):7.0f} {max(walls):7.0f} "
            f"{cpu:8.0f}"
        )


if __name__ == "__main__":
    main()
