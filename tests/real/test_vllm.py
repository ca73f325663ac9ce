"""The round against a real vLLM on the CPU, with speculation and a reasoning parser on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sparkrecipes.standard_round import Ask, Client, Endpoint, Limits, writing_prompt
from tests.real.conftest import CommandLine, free_port
from tests.support.timing_retry import measured

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
MODEL = "tiny-qwen3"
SPECULATION = {
    "method": "ngram",
    "num_speculative_tokens": 3,
    "prompt_lookup_max": 4,
    "prompt_lookup_min": 2,
}
COUNTERS = {
    "generated": "vllm:generation_tokens_total",
    "requests": "vllm:request_success_total",
    "drafts": "vllm:spec_decode_num_drafts_total",
    "drafted": "vllm:spec_decode_num_draft_tokens_total",
    "accepted": "vllm:spec_decode_num_accepted_tokens_total",
}
Counts = dict[str, float]


@pytest.fixture(scope="module")
def vllm(
    vllm_env: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve the tiny model on this host; yield the address."""
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "vllm.log"
    options = (
        *(f"--served-model-name={MODEL}", "--host=127.0.0.1", f"--port={port}"),
        *("--max-model-len=2048", "--max-num-seqs=4", "--enforce-eager", "--dtype=bfloat16"),
        *("--reasoning-parser=qwen3", f"--speculative-config={json.dumps(SPECULATION)}"),
    )
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with log.open("wb") as out:
        server = subprocess.Popen(
            [str(vllm_env / "bin" / "vllm"), "serve", str(tiny_model), *options],
            env=os.environ | quiet,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(server, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def wait_for(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the engine is healthy, or say how it ended."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, log.read_text()[-3000:]
            time.sleep(1)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture
def sparkrecipes(tiny_catalog: Path, tmp_path: Path) -> CommandLine:
    """The command line with the test's catalog."""
    return CommandLine(tmp_path, tiny_catalog)


def counted(url: str) -> Counts:
    """Read the engine's own counters."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(counter))
        for name, counter in COUNTERS.items()
    }


def difference(before: Counts, after: Counts) -> Counts:
    """Return what was counted between two readings."""
    return {name: after[name] - before[name] for name in after}


def test_the_round_agrees_with_the_engines_own_counters(
    vllm: str, sparkrecipes: CommandLine
) -> None:
    """Requests, tokens and acceptance are those that vLLM counted in the same time."""
    before = counted(vllm)
    measured = sparkrecipes("round", RECIPE, "--base-url", vllm, "--quick", "--only", "single")
    engine = difference(before, counted(vllm))
    single, seen = measured["single"], measured["acceptance"]
    assert engine["requests"] == measured["stability"]["requests"]
    assert ("usage", {"length": single["n"]}) == (single["token_source"], single["finish_reasons"])
    answers = (single["n"] + 1) * single["completion_tokens"]["median"]
    assert answers <= engine["generated"] < answers + 300
    assert 0 < seen["drafts"] <= engine["drafts"]
    assert 100 * engine["accepted"] / engine["drafted"] == pytest.approx(seen["rate_pct"], abs=3)
    assert 3 == len(seen["per_position_pct"])
    assert sorted(seen["per_position_pct"], reverse=True) == seen["per_position_pct"]
    assert 1 + engine["accepted"] / engine["drafts"] == pytest.approx(seen["mean_length"], abs=0.1)
    assert ("vllm", "0.32.0") == (
        measured["server"]["engine"],
        measured["server"]["engine_version"],
    )


def histogram(url: str, name: str) -> Histogram:
    """Read one of the engine's histograms: its sum, its count, and how many lie up to each edge."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    edges: dict[float, float] = {}
    for edge, value in re.findall(rf'^{name}_bucket{{.*?le="([^"]+)".*?}} (\S+)', page, re.M):
        edges[float(edge)] = edges.get(float(edge), 0.0) + float(value)
    total, count = (
        sum(map(float, re.findall(rf"^{name}_{end}{{.*?}} (\S+)", page, re.M)))
        for end in ("sum", "count")
    )
    return Histogram(total, count, edges)


class Histogram(NamedTuple):
    """A Prometheus histogram."""

    total: float
    count: float
    edges: dict[float, float]

    def since(self, before: Histogram) -> Histogram:
        """What was added since another reading."""
        edges = {edge: n - before.edges.get(edge, 0.0) for edge, n in self.edges.items()}
        return Histogram(self.total - before.total, self.count - before.count, edges)


TTFT, ITL, E2E = (
    f"vllm:{name}_seconds"
    for name in ("time_to_first_token", "inter_token_latency", "e2e_request_latency")
)


@measured
def test_times_agree_with_the_engines_own_histograms(vllm: str) -> None:
    """TTFT within what a histogram resolves, gaps and whole requests by their sums.

    Six requests, one after the other, read by the client alone: so that each of the engine's
    figures is one of ours. A token travels before it is read, so that ours are never earlier.
    """
    client = Client(Endpoint.parse(vllm), MODEL, None, Limits())
    client.ask(Ask(writing_prompt()), "warm-up")
    before = {name: histogram(vllm, name) for name in (TTFT, ITL, E2E)}
    counters = counted(vllm)
    readings = [client.ask(Ask(writing_prompt(n)), "one").reading for n in range(6)]
    time.sleep(1)
    made = difference(counters, counted(vllm))
    engine = {name: histogram(vllm, name).since(before[name]) for name in before}
    assert all(reading.ok for reading in readings)
    assert made["generated"] == sum(reading.completion_tokens for reading in readings)

    firsts = [reading.ttft_s or 0.0 for reading in readings]
    assert len(firsts) == engine[TTFT].count
    assert engine[TTFT].total - 0.001 <= sum(firsts)
    never_earlier(firsts, engine[TTFT])
    timeliest_agree(firsts, engine[TTFT])
    wholes = [reading.e2e_s or 0.0 for reading in readings]
    on_the_way = 6 * 0.1  # from the engine through its server and a socket, on a busy machine
    assert engine[E2E].total - 0.001 <= sum(wholes) <= 1.05 * engine[E2E].total + on_the_way
    between = sum(wholes) - sum(firsts)
    assert between == pytest.approx(engine[ITL].total, rel=0.1)
    gaps = sum(len(reading.gaps_s) for reading in readings)
    assert gaps == pytest.approx(engine[ITL].count, rel=0.05)
    assert between / gaps == pytest.approx(engine[ITL].total / engine[ITL].count, rel=0.1)


def never_earlier(values: list[float], engine: Histogram) -> None:
    """Up to each edge the engine counted at least as many as the client."""
    for edge, count in engine.edges.items():
        assert sum(value <= edge for value in values) <= count, (edge, values, engine)


def timeliest_agree(values: list[float], engine: Histogram) -> None:
    """The earliest of ours lies in the bucket of the engine's earliest, or in the next one.

    Not each of them: on a busy machine the engine's other process, which sends, is late at times.
    """
    edges = sorted(engine.edges)
    first = next(at for at, edge in enumerate(edges) if engine.edges[edge])
    assert min(values) <= edges[first + 1], (values, engine)


def test_speed_and_first_token_are_those_of_the_stream(
    vllm: str, sparkrecipes: CommandLine
) -> None:
    """TPOT is the inverse of decode speed, and the whole request holds both its parts."""
    single = sparkrecipes("round", RECIPE, "--base-url", vllm, "--quick", "--only", "single")[
        "single"
    ]
    # Not the medians: of an even number of requests the median of inverses is another one.
    for slow, fast in (("min", "max"), ("max", "min")):
        assert 1000 / single["decode_tok_s"][slow] == pytest.approx(
            single["tpot_ms"][fast], rel=0.001
        )
    # Each bound with its own length: the model may end one answer earlier than another.
    parts = {
        end: single["ttft_ms"][end]
        + (single["completion_tokens"][end] - 1) * single["tpot_ms"][end]
        for end in ("min", "max")
    }
    assert 0.99 * parts["min"] <= single["e2e_ms"]["min"]
    assert single["e2e_ms"]["max"] <= 1.01 * parts["max"]
    assert single["tokens_per_event"] > 1


def test_a_prompt_beyond_the_context_is_not_supported(vllm: str, sparkrecipes: CommandLine) -> None:
    """46,000 tokens do not fit 2,048: said, not failed."""
    measured = sparkrecipes("round", RECIPE, "--base-url", vllm, "--quick", "--only", "long")
    assert "not_supported" == measured["long_prompt"]["state"]
    assert measured["long_prompt"]["wall_s"] is None
    assert 0 == measured["stability"]["failed"]


def test_a_wrong_model_is_named(vllm: str, sparkrecipes: CommandLine) -> None:
    """A name that the server does not serve: an error with the names that it does."""
    failed = sparkrecipes("round", "--base-url", vllm, "--model", "other", "--quick", code=1)[
        "error"
    ]
    assert MODEL in failed["message"] + failed["repair"]


@pytest.mark.parametrize(
    ("factor", "verdict", "code"),
    [(1.0, "matches", 0), (1.6, "slower", 1), (0.6, "faster", 0)],
    ids=["its own figures", "1.6 times as fast", "0.6 times as fast"],
)
def test_the_report_judges_by_the_published_method(
    vllm: str,
    sparkrecipes: CommandLine,
    tiny_catalog: Path,
    factor: float,
    verdict: str,
    code: int,
) -> None:
    """A round against its own figures matches; against faster or slower ones it says so."""
    measured = sparkrecipes("round", RECIPE, "--base-url", vllm, "--quick")
    publish(tiny_catalog, measured["published_method"], factor)
    report = sparkrecipes("report", measured["saved_to"], code=code)
    assert verdict == report["verdict"]
    assert not report["simulated"]


def publish(catalog: Path, figures: dict[str, Any], factor: float) -> None:
    """Write the recipe's row as if somebody had published these figures, ``factor`` as fast."""
    row = {
        "single_user_tok_s": figures["single_user_tok_s"] * factor,
        "four_users_total_tok_s": figures["four_users_total_tok_s"] * factor,
        "ttft_ms": figures["ttft_ms"] / factor,
    }
    path = catalog / "evidence" / "tiny-round.yaml"
    lines = path.read_text().splitlines()
    changed = [
        f"      {key}: {row[key]}" if (key := line.strip().partition(":")[0]) in row else line
        for line in lines
    ]
    path.write_text("\n".join(changed) + "\n")
