"""How wrong is the round's client? Measured against a server of known timing, beside its peers.

Every client gets the same server process, one after the other; its figures are compared with what
the server wrote and when, on the clock that both share. CPU is user and system time of the whole
client process, its start included.

    python benchmarks/client_accuracy.py
    python benchmarks/client_accuracy.py --llama-benchy PATH --vllm-python PATH --runs 3

The peers are used where they are found: the ``llama-benchy`` command, and the request function of
vLLM's own benchmark, loaded alone by the Python of an environment that holds vLLM. Two probes with
the standard library alone (``urllib`` and ``http.client``, a thread a stream) are always there.
Run it on a quiet machine; the load is printed beside the results.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
clock = time.perf_counter

LOADS = ((4, 60, 120, 3), (32, 20, 60, 2), (256, 10, 40, 1))
"""Streams, tokens a second of each, tokens, bursts."""
GOALS = {4: 1.5, 32: 2.5, 256: 3.0}
"""Bias of the time to first token, ms."""

Figures = dict[str, list[float]]
"""``ttft_ms`` and ``decode_tok_s``, one value a stream."""


def request_body(model: str, tokens: int, number: int) -> dict[str, Any]:
    """The request that all clients of this file send."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"[{number}] Describe a lighthouse."}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


# Clients. Each makes one burst and returns the figures of its streams.


def ours(url: str, model: str, streams: int, tokens: int) -> Figures:
    """The client of the standard round."""
    sys.path.insert(0, str(ROOT / "sparkrecipes"))
    import standard_round as sr  # type: ignore[import-not-found]

    client = sr.Client(sr.Endpoint.parse(url), model, None, sr.Limits())
    answers = client.burst([sr.Ask("Describe a lighthouse.", tokens)] * streams, "burst")
    good = [answer.reading for answer in answers if answer.ok]
    return {
        "ttft_ms": [1000 * reading.ttft_s for reading in good],
        "decode_tok_s": [reading.decode_tok_s for reading in good],
    }


def threaded(one: Callable[[int], tuple[float, float]], streams: int) -> Figures:
    """Run a stream a thread; each gives (ttft in ms, decode tokens a second)."""
    seen: list[tuple[float, float]] = []
    threads = [
        threading.Thread(target=lambda n=n: seen.append(one(n)), daemon=True)
        for n in range(streams)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"ttft_ms": [s[0] for s in seen], "decode_tok_s": [s[1] for s in seen]}


def figures_of(t0: float, times: Sequence[float], tokens: int) -> tuple[float, float]:
    """TTFT and decode speed from the times of the events that carry text."""
    return 1000 * (times[0] - t0), (tokens - 1) / (times[-1] - times[0])


def is_text(data: bytes) -> bool:
    """Whether one line or piece of the stream holds a token of this file's server."""
    return b'"content": " ' in data


def urllib_threads(url: str, model: str, streams: int, tokens: int) -> Figures:
    """urllib, lines, the clock before the connection."""

    def one(number: int) -> tuple[float, float]:
        body = json.dumps(request_body(model, tokens, number)).encode()
        request = urllib.request.Request(f"{url}/v1/chat/completions", data=body)
        t0 = clock()
        with urllib.request.urlopen(request, timeout=60) as response:
            times = [clock() for line in response if is_text(line)]
        return figures_of(t0, times, tokens)

    return threaded(one, streams)


def http_client_threads(url: str, model: str, streams: int, tokens: int) -> Figures:
    """http.client, connected first, all at once, a stamp a read."""
    host = url.removeprefix("http://")
    ready = threading.Barrier(streams)

    def one(number: int) -> tuple[float, float]:
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.connect()
        body = json.dumps(request_body(model, tokens, number))
        ready.wait()
        t0 = clock()
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        times = []
        while data := response.read1(65536):
            now = clock()
            times += [now] if is_text(data) else []
        return figures_of(t0, times, tokens)

    return threaded(one, streams)


def vllm_function(url: str, model: str, streams: int, tokens: int) -> Figures:
    """The request function of vLLM's benchmark, all streams gathered in one loop."""
    package = importlib.util.find_spec("vllm")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this Python has no vllm")
    path = Path(package.submodule_search_locations[0]) / "benchmarks/lib/endpoint_request_func.py"
    spec = importlib.util.spec_from_file_location("endpoint_request_func", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"no {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    import aiohttp  # type: ignore[import-not-found]

    async def burst() -> list[Any]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            inputs = [
                module.RequestFuncInput(
                    prompt=f"[{n}] Describe a lighthouse.",
                    api_url=f"{url}/v1/chat/completions",
                    prompt_len=4,
                    output_len=tokens,
                    model=model,
                )
                for n in range(streams)
            ]
            calls = [module.async_request_openai_chat_completions(i, session) for i in inputs]
            return list(await asyncio.gather(*calls))

    done = [result for result in asyncio.run(burst()) if result.success]
    return {
        "ttft_ms": [1000 * result.ttft for result in done],
        "decode_tok_s": [
            (result.output_tokens - 1) / (result.latency - result.ttft) for result in done
        ],
    }


CLIENTS = {
    "sparkrecipes": ours,
    "urllib, threads": urllib_threads,
    "http.client, threads": http_client_threads,
    "vLLM bench function": vllm_function,
}


def word_tokenizer(folder: Path) -> Path:
    """A word tokenizer for clients that insist on one; nothing here depends on it."""
    words = ["[UNK]", *(f"word{i}" for i in range(97)), "on", "line", *map(str, range(13))]
    data = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: n for n, word in enumerate(words)},
            "unk_token": "[UNK]",
        },
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(data))
    return path


def llama_benchy_argv(
    program: str, url: str, model: str, load: Sequence[int], to: Path
) -> list[str]:
    """Its command for the same load; warm-up and checks off, so that CPU is comparable."""
    streams, _, tokens, bursts = load
    argv = [program, "--base-url", f"{url}/v1", "--model", model, "--book-url", f"{url}/book.txt"]
    argv += ["--tokenizer", str(word_tokenizer(to.parent)), "--pp", "16", "--tg", str(tokens)]
    argv += ["--concurrency", str(streams), "--runs", str(bursts), "--latency-mode", "none"]
    argv += ["--no-warmup", "--skip-coherence", "--no-adapt-prompt"]
    return [*argv, "--format", "json", "--save-result", str(to)]


def llama_benchy_figures(path: Path) -> Figures:
    """What it says of each request."""
    run = json.loads(path.read_text())["benchmarks"][-1]
    return {
        "ttft_ms": run["e2e_ttft"]["values"],
        "decode_tok_s": run["tg_req_throughput"]["values"],
    }


def measure(argv: list[str]) -> tuple[str, float]:
    """Run a client: its output, and the CPU seconds of its whole process."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{argv[0]} ended with {process.returncode}")
    return output, used.ru_utime + used.ru_stime


def server_log(url: str) -> list[dict[str, Any]]:
    """What the server did since it was last asked."""
    with urllib.request.urlopen(f"{url}/log", timeout=10) as response:
        rows: list[dict[str, Any]] = json.load(response)["rows"]
    return rows


def compare(
    name: str, load: Sequence[int], seen: Figures, log: list[dict[str, Any]], cpu: float
) -> dict[str, Any]:
    """A client's figures against what the server did."""
    ttft = sorted(1000 * (row["t_first"] - row["t_request"]) for row in log)
    speed = sorted((row["tokens"] - 1) / (row["t_last"] - row["t_first"]) for row in log)
    p95 = int(0.95 * len(ttft))
    return {
        "streams": load[0],
        "client": name,
        "requests": f"{len(seen['ttft_ms'])}/{len(log)}",
        "ttft_bias_ms": statistics.mean(seen["ttft_ms"]) - statistics.mean(ttft),
        "ttft_p95_bias_ms": sorted(seen["ttft_ms"])[p95] - ttft[p95],
        "decode_error_pct": 100
        * (statistics.mean(seen["decode_tok_s"]) / statistics.mean(speed) - 1),
        "slowest_error_pct": 100 * (min(seen["decode_tok_s"]) / speed[0] - 1),
        "cpu_s": cpu,
    }


def run_all(url: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every client at every load."""
    pythons = dict.fromkeys(CLIENTS, sys.executable)
    pythons["vLLM bench function"] = options.vllm_python
    rows = []
    for load in LOADS:
        model = f"t100-r{load[1]}"
        for name, python in pythons.items():
            if python:
                burst = [python, __file__, "--client", name, "--url", url, "--model", model]
                output, cpu = measure([*burst, "--load", ",".join(map(str, load))])
                rows.append(compare(name, load, json.loads(output), server_log(url), cpu))
        if options.llama_benchy:
            with tempfile.TemporaryDirectory() as folder:
                to = Path(folder) / "result.json"
                _, cpu = measure(llama_benchy_argv(options.llama_benchy, url, model, load, to))
                figures = llama_benchy_figures(to)
            rows.append(compare("llama-benchy", load, figures, server_log(url), cpu))
    return rows


def one_client(options: argparse.Namespace) -> None:
    """Be one client: print its figures as JSON."""
    streams, _, tokens, bursts = map(int, options.load.split(","))
    figures: Figures = {"ttft_ms": [], "decode_tok_s": []}
    for _ in range(bursts):
        for key, values in CLIENTS[options.client](
            options.url, options.model, streams, tokens
        ).items():
            figures[key] += values
    print(json.dumps(figures))


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown, medians where a client ran several times."""
    lines = [
        "| streams | client | requests | TTFT bias ms | p95 bias ms | decode error % | slowest % "
        "| CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for streams, client in dict.fromkeys((row["streams"], row["client"]) for row in rows):
        same = [row for row in rows if (row["streams"], row["client"]) == (streams, client)]
        mid = {key: statistics.median(row[key] for row in same) for key in list(same[0])[3:]}
        goal = f" (goal {GOALS[streams]})" if client == "sparkrecipes" else ""
        lines.append(
            f"| {streams} | {client} | {same[0]['requests']} | {mid['ttft_bias_ms']:+.2f}{goal} | "
            f"{mid['ttft_p95_bias_ms']:+.2f} | {mid['decode_error_pct']:+.3f} | "
            f"{mid['slowest_error_pct']:+.3f} | {mid['cpu_s']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Start the server, run the clients, print the table."""
    cli = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    cli.add_argument("--llama-benchy", default=shutil.which("llama-benchy"))
    cli.add_argument("--vllm-python", help="Python of an environment that holds vLLM")
    cli.add_argument("--runs", type=int, default=1)
    cli.add_argument("--json", action="store_true")
    for internal in ("--client", "--url", "--model", "--load"):
        cli.add_argument(internal, help=argparse.SUPPRESS)
    options = cli.parse_args()
    if options.client:
        one_client(options)
        return
    argv = [sys.executable, "-m", "tests.support.timing_server", "--port", "0"]
    server = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        load_before = os.getloadavg()[0]
        rows = [row for _ in range(options.runs) for row in run_all(url, options)]
    finally:
        server.terminate()
        server.wait(10)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        load_after = os.getloadavg()[0]
        print(f"load {load_before:.1f} before, {load_after:.1f} after; {os.cpu_count()} cores\n")
        print(table(rows))


if __name__ == "__main__":
    main()
