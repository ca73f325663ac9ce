"""The round against a real llama.cpp server: other metric names, usage and timings of its own."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import standard_round
from sparkrecipes.schema.round import Round
from sparkrecipes.standard_round import (
    Answer,
    Ask,
    Client,
    Endpoint,
    Limits,
    acceptance,
    acceptance_of,
    parse_counters,
    run_round,
    writing_prompt,
)
from tests.real.conftest import HERE, free_port, part

pytestmark = pytest.mark.real

CONTEXT = 4096


@pytest.fixture(scope="module")
def llamacpp() -> Iterator[str]:
    """Serve SmolLM2 with two slots; yield the address."""
    python = Path(part("llamacpp.sh", "env")) / "bin" / "python"
    argv = [str(python), str(HERE / "llamacpp_server.py"), str(free_port()), str(CONTEXT)]
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            yield address
        finally:
            server.kill()


def counters(address: str) -> dict[str, float]:
    """What the server itself counts."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as page:
        return parse_counters(page.read().decode(), "smollm2")


@pytest.fixture(scope="module")
def measured(llamacpp: str) -> tuple[dict[str, Any], dict[str, float], dict[str, float]]:
    """Return a quick round of two users, with the server's counters before and after.

    It may take longer than a quick round should: a CPU that is shared is no Spark.
    """
    before = counters(llamacpp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standard_round, "QUICK_S", 1800.0)
        patch.setattr(standard_round, "QUICK_FIRST_S", 900.0)
        data = run_round(llamacpp, "", quick=True, users=2)
    return data, before, counters(llamacpp)


def test_the_same_round_works(measured: tuple[dict[str, Any], ...]) -> None:
    """Engine, version and context are told; words come; nothing fails."""
    data, _, _ = measured
    Round.model_validate_json(json.dumps(data))

    assert ("smollm2", "llamacpp", CONTEXT) == (
        data["server"]["model"],
        data["server"]["engine"],
        data["server"]["context_tokens"],
    )
    assert data["smoke"]["words"] is True
    assert (0, []) == (data["stability"]["failed"], data["stability"]["errors"])
    assert "usage" == data["single"]["token_source"]
    assert data["single"]["decode_tok_s"]["median"] > 0
    assert data["concurrent"]["aggregate_tok_s"]["median"] > 0


def test_a_prompt_longer_than_the_context_is_not_supported(
    measured: tuple[dict[str, Any], ...],
) -> None:
    """46 thousand tokens do not fit 4,096: neither sent nor failed."""
    assert "not_supported" == measured[0]["long_prompt"]["state"]
    assert f"the context holds {CONTEXT}" in measured[0]["long_prompt"]["reason"]


def test_tokens_are_those_that_the_server_counts(measured: tuple[dict[str, Any], ...]) -> None:
    """Completion tokens of the round against the server's own counter."""
    data, before, after = measured
    name = "llamacpp:tokens_predicted_total"
    single, together = data["single"], data["concurrent"]
    least = single["n"] * single["completion_tokens"]["min"] + 2

    assert after[name] - before[name] >= least
    assert "other_traffic" not in " ".join(data["warnings"])
    assert together["failed"] == 0


@pytest.fixture(scope="module")
def answer(llamacpp: str) -> tuple[Answer, dict[str, Any]]:
    """Return one answer that repeats itself, so that n-grams draft, and the counters' view."""
    client = Client(Endpoint.parse(llamacpp), "smollm2", None, Limits())
    before = counters(llamacpp)
    text = "Repeat this line ten times: the lamp is lit, the door is shut, the cat is out."
    seen = client.ask(Ask(text, 150), "one")
    counted = acceptance(before, counters(llamacpp))
    assert counted is not None
    return seen, counted


def test_its_own_timings_agree(answer: tuple[Answer, dict[str, Any]]) -> None:
    """Decode speed within a tenth of what the server says, TTFT not below its prompt time."""
    reading = answer[0].reading
    timings = reading.timings

    assert reading.ok
    assert timings["predicted_n"] == reading.completion_tokens
    assert reading.decode_tok_s == pytest.approx(timings["predicted_per_second"], rel=0.15)
    assert 1000 * (reading.ttft_s or 0) >= timings["prompt_ms"] - 5


def test_acceptance_equals_the_counters_and_the_timings(
    answer: tuple[Answer, dict[str, Any]],
) -> None:
    """One request, three sources: the counters, and what came with the answer."""
    reading, counted = answer[0].reading, answer[1]
    told = acceptance_of([reading])

    assert told is not None
    assert told["rate_pct"] == counted["rate_pct"]
    assert counted["drafts"] > 0
    assert counted["source"] == "llamacpp:spec_decode_num_drafts_total"


def test_a_prompt_that_does_not_fit_is_refused_and_no_failure(llamacpp: str) -> None:
    """The server's own words for a prompt beyond its context are understood."""
    client = Client(Endpoint.parse(llamacpp), "smollm2", None, Limits())
    answer = client.ask(Ask(" ".join([writing_prompt()] * 200), 10), "too long")

    assert answer.too_long
    assert (1, 0) == (len(client.readings), client.failed)
