"""How fast weights are fetched, beside plain ``hf download`` of the same files in the same run.

    python benchmarks/download_speed.py [--files 8] [--megabytes 256] [--runs 5]

Both fetch from a small Hub in a process of its own on this host, by plain HTTP, into empty caches,
taking turns. Ours also checks room and access first and keeps parts for a later process, which the
plain one does not. Goal: at least 0.95 times its speed. A Hub on loopback is the hardest case: over
a network both wait for bytes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPO = "acme/large"
HUB = """
import sys, threading
from tests.support.hub import Hub, HubRepo
count, size = int(sys.argv[1]), int(sys.argv[2])
names = [f"model-{n:05d}-of-{count:05d}.safetensors" for n in range(1, count + 1)]
files = {name: bytes([n % 256]) * size for n, name in enumerate(names)}
with Hub({"acme/large": HubRepo({"config.json": b"{}", **files})}) as hub:
    print(hub.url, flush=True)
    sys.stdin.read()
"""
OURS = """
import sys
from pathlib import Path
from sparkrecipes.catalog import open_catalog
from sparkrecipes.downloads import download
from sparkrecipes.schema.recipe import WeightsSource
recipe = open_catalog().recipe("gpt-oss-20b-mxfp4-vllm")
source = WeightsSource(repo="acme/large", revision="a" * 40)
download(recipe.model_copy(update={"weights": source, "drafter": None}), root=Path(sys.argv[1]))
"""


def timed(argv: list[str], cache: Path, url: str) -> float:
    """Run a download into an empty cache and return its wall seconds."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1"}
    started = time.perf_counter()
    subprocess.run(
        argv, env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    seconds = time.perf_counter() - started
    shutil.rmtree(cache)
    return seconds


def main() -> None:
    """Time both in turns and print the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    size = options.megabytes * 10**6
    hub = subprocess.Popen(
        [sys.executable, "-c", HUB, str(options.files), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert hub.stdout is not None
    url = hub.stdout.readline().strip()
    plain = str(Path(sys.executable).parent / "hf")
    seconds: dict[str, list[float]] = {"hf download": [], "sparkrecipes": []}
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place) / "hub"
        commands = {
            "hf download": [plain, "download", REPO, "--cache-dir", str(cache)],
            "sparkrecipes": [sys.executable, "-c", OURS, str(cache)],
        }
        for _ in range(options.runs):
            for name, argv in commands.items():
                seconds[name].append(timed(argv, cache, url))
    hub.terminate()
    hub.wait()
    total = options.files * size
    for name, times in seconds.items():
        median = statistics.median(times)
        print(
            f"{name:13} {total / median / 1e6:6.0f} MB/s, median {median:.2f} s of {len(times)} "
            f"({min(times):.2f} to {max(times):.2f})"
        )
    ratio = statistics.median(seconds["hf download"]) / statistics.median(seconds["sparkrecipes"])
    print(f"ratio         {ratio:6.2f} (goal: at least 0.95)")


if __name__ == "__main__":
    main()
