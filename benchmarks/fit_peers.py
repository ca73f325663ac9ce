"""``fit`` as a command beside hf-mem and sparkfit: time, and how right the answers are, in one run.

    python -m benchmarks.fit_peers --hf-mem-python PATH --sparkfit PATH [--runs 9]

Every tool is asked whether three models serve four users of 131,072 tokens with an 8-bit cache on a
DGX Spark. The reference is the models' own arithmetic: layers that grow x heads x sizes, windows
at their window. All take turns, so that a busy moment falls on all. Peers run where they are named:
the ``sparkfit`` command, and the Python of an environment that holds hf-mem. hf-mem asks the Hub at
an address in its code, which a launcher sends to the small hub of our tests on this host; each
repository there has its real configuration and one tensor of the build's size.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.hub import Hub, HubRepo

OURS = str(Path(sys.executable).parent / "sparkrecipes")
TOKENS, USERS = 131072, 4

LAUNCHER = """
import sys
import httpx2
from hf_mem.cli import main
send, hub = httpx2.AsyncClient.send, httpx2.URL(sys.argv.pop(1))
async def to_hub(self, request, **more):
    request.url = request.url.copy_with(scheme="http", host=hub.host, port=hub.port)
    request.headers["Host"] = f"{hub.host}:{hub.port}"
    return await send(self, request, **more)
httpx2.AsyncClient.send = to_hub
main()
"""
"""Runs hf-mem as its command does, but for the host that its requests go to."""


class Question(NamedTuple):
    """One model, as each tool names it, with what is true of it."""

    ours: str
    sparkfit: tuple[str, ...]
    repo: str
    config: dict[str, Any]
    """What the repository's config.json says, as far as a sizing tool reads it."""
    weights_bytes: int
    kv_gb: float
    """Cache of all users: the reference."""
    verdict: str


def cache_gb(layers: int, heads: int, size: int, tokens: int = TOKENS) -> float:
    """Give the 8-bit cache of all users in layers that keep so many tokens, GB."""
    return USERS * layers * 2 * heads * size * tokens / 1e9


QUESTIONS = (
    Question(
        "llama-3.3-70b-instruct-nvfp4",
        ("-m", "llama3.1-70b", "-q", "nvfp4"),
        "peers/Llama-3.3-70B",
        {
            "architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "hidden_size": 8192,
        },
        41_500_000_000,
        cache_gb(80, 8, 128),
        "does_not_fit",
    ),
    Question(
        "gpt-oss-120b-mxfp4",
        ("-m", "gpt-oss-120b", "-q", "nvfp4"),
        "peers/gpt-oss-120b",
        {
            "architectures": ["GptOssForCausalLM"],
            "num_hidden_layers": 36,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "hidden_size": 2880,
            "sliding_window": 128,
            "layer_types": ["sliding_attention", "full_attention"] * 18,
        },
        65_000_000_000,
        cache_gb(18, 8, 64) + cache_gb(18, 8, 64, 128),
        "fits",
    ),
    Question(
        "qwen3.6-35b-a3b-nvfp4",
        (
            *("--params", "35", "--active", "3", "--layers", "40", "--hidden", "2048"),
            *("--kv-heads", "2", "--head-dim", "256", "-q", "nvfp4"),
        ),
        "peers/Qwen3.6-35B-A3B",
        {
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "text_config": {
                "num_hidden_layers": 40,
                "num_attention_heads": 16,
                "num_key_value_heads": 2,
                "head_dim": 256,
                "hidden_size": 2048,
                "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 10,
                "max_position_embeddings": 262144,
                "dtype": "bfloat16",
            },
        },
        24_000_000_000,
        cache_gb(10, 2, 256),
        "fits",
    ),
)


class Told(NamedTuple):
    """What a tool answered."""

    kv_gb: float | None
    verdict: str | None
    """Null where the tool gives none."""


def read_ours(text: str) -> Told:
    """Read the cache (low bound: tokens alone) and the verdict of ``fit``."""
    answer = json.loads(text)
    return Told(answer["bounds"]["kv_cache_bytes"][0] / 1e9, answer["verdict"])


def read_sparkfit(text: str) -> Told:
    """Read sparkfit's plan."""
    answer = json.loads(text)
    return Told(answer["budget_gb"]["kv"], "fits" if answer["fits"] else "does_not_fit")


def read_hf_mem(text: str) -> Told:
    """Read hf-mem's estimate; it has no budget, so no verdict."""
    return Told(json.loads(text)["kv_cache"] / 1e9, None)


def repository(question: Question) -> HubRepo:
    """Make a repository: the configuration, and the header of one tensor of the build's size."""
    size = question.weights_bytes
    tensor = {"model.weight": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    header = json.dumps(tensor).encode()
    config = {
        "max_position_embeddings": TOKENS,
        "dtype": "bfloat16",
        "torch_dtype": "bfloat16",
        "model_type": "peer",
        **question.config,
    }
    return HubRepo(
        {
            "config.json": json.dumps(config).encode(),
            "model.safetensors": struct.pack("<Q", len(header)) + header,
        }
    )


Command = tuple[list[str], Callable[[str], Told]]


def commands(question: Question, options: argparse.Namespace, hub: str) -> dict[str, Command]:
    """Write each tool's command for a question."""
    sizes = ["--context", str(TOKENS), "--users", str(USERS), "--kv-cache-dtype", "fp8"]
    fit = [OURS, "fit", question.ours, *sizes, "--json", "--offline", "--machine", "dgx-spark"]
    found: dict[str, Command] = {"sparkrecipes fit": (fit, read_ours)}
    if options.sparkfit:
        plan = [options.sparkfit, "plan", *question.sparkfit, "-c", str(TOKENS), "-n", str(USERS)]
        found["sparkfit plan"] = ([*plan, "--kv-dtype", "fp8", "--json"], read_sparkfit)
    if options.hf_mem_python:
        argv = [options.hf_mem_python, "-c", LAUNCHER, hub, "--model-id", question.repo]
        argv += ["--experimental", "--max-model-len", str(TOKENS), "--batch-size", str(USERS)]
        found["hf-mem"] = ([*argv, "--kv-cache-dtype", "fp8", "--json-output"], read_hf_mem)
    return found


def timed(argv: list[str]) -> tuple[float, float, str]:
    """Run a command: wall and CPU milliseconds, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not ran.stdout:
        raise RuntimeError(f"{argv[0]} printed nothing: {ran.stderr[-500:]}")
    return wall * 1000, cpu * 1000, ran.stdout


def row(question: Question, name: str, runs: list[tuple[float, float, str]], told: Told) -> str:
    """Write what one tool took and said."""
    wall = statistics.median(run[0] for run in runs)
    cpu = statistics.median(run[1] for run in runs)
    error = "" if told.kv_gb is None else f"{100 * (told.kv_gb / question.kv_gb - 1):+.0f} %"
    right = {None: "none given", question.verdict: "right"}.get(told.verdict, "wrong")
    size = "none" if told.kv_gb is None else f"{told.kv_gb:.2f}"
    return (
        f"| {question.ours} | {name} | {wall:.0f} | {cpu:.0f} | {size} of {question.kv_gb:.2f} "
        f"| {error} | {told.verdict or 'none'} ({right}) |"
    )


def main() -> None:
    """Ask all, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sparkfit", help="path of the sparkfit command")
    parser.add_argument("--hf-mem-python", help="Python of an environment that holds hf-mem")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    print(f"{options.runs} runs in turns after one warm-up, load {os.getloadavg()[0]:.1f}\n")
    print("| model, 131,072 x 4, fp8 | tool | wall ms | CPU ms | cache, GB | error | verdict |")
    print("|---|---|---|---|---|---|---|")
    with Hub({question.repo: repository(question) for question in QUESTIONS}) as hub:
        for question in QUESTIONS:
            asked = commands(question, options, hub.url)
            seen: dict[str, list[tuple[float, float, str]]] = {name: [] for name in asked}
            for _ in range(options.runs + 1):
                for name, (argv, _) in asked.items():
                    seen[name].append(timed(argv))
            for name, (_, read) in asked.items():
                print(row(question, name, seen[name][1:], read(seen[name][-1][2])))


if __name__ == "__main__":
    main()
