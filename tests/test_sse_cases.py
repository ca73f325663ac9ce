"""Every handed transcript, by both methods: through the parser, and over a socket at its times."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.standard_round import Answer, Ask, Client, Endpoint, Exchange, Limits, Published
from sparkrecipes.standard_round import Reading as TrueReading
from tests.support.replay_server import ReplayServer, Script, stream

CASES: dict[str, Any] = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "data/sse_cases.json").read_text())["cases"]
}
LATE_S = 0.04
"""How late a read may be on a busy machine."""


def chunks_of(case: dict[str, Any]) -> list[tuple[float, bytes]]:
    """Arrival in seconds, and bytes, of each network read."""
    return [
        (
            chunk["t_ms"] / 1000,
            base64.b64decode(chunk["raw"]) if chunk.get("enc") else chunk["raw"].encode(),
        )
        for chunk in case["chunks"]
    ]


def true_figures(reading: TrueReading) -> dict[str, Any]:
    """A reading under the names of the handed file."""

    def ms(value: float | None) -> float | None:
        return None if value is None else 1000 * value

    return {
        "ok": reading.ok,
        "error": reading.error,
        "done": reading.done,
        "finish_reason": reading.finish_reason,
        "ttft_ms": ms(reading.ttft_s),
        "ttfo_ms": ms(reading.ttfo_s),
        "last_token_ms": ms(reading.e2e_s),
        "stream_end_ms": ms(reading.stream_end_s),
        "chunks": len(reading.arrivals),
        "completion_tokens": reading.completion_tokens,
        "token_source": reading.token_source,
        "first_chunk_tokens": reading.first_chunk_tokens,
        "reasoning_tokens": reading.reasoning_tokens,
        "prompt_tokens": reading.prompt_tokens,
        "cached_tokens": reading.cached_tokens,
        "reasoning_field": reading.reasoning_field,
        "decode_tok_s": reading.decode_tok_s,
        "tpot_ms": 1000 / reading.decode_tok_s if reading.decode_tok_s else None,
        "icl_ms": [1000 * gap for gap in reading.gaps_s],
        "max_icl_ms": ms(max(reading.gaps_s, default=None)),
        "e2e_tok_s": reading.e2e_tok_s,
    }


def published_figures(published: Published) -> dict[str, Any]:
    """The published method's reading under the names of the handed file."""
    return {
        "ok": published.ok,
        "ttft_ms": 1000 * published.ttft_s,
        "tok_s": published.tok_s,
        "tokens": published.tokens,
    }


def rounded(value: Any) -> Any:
    """Figures to the four decimals of the handed file."""
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def same(expected: dict[str, Any], actual: dict[str, Any]) -> None:
    """Compare figures, ints and floats alike."""
    assert list(expected) == [name for name in actual if name in expected]
    for name, value in expected.items():
        assert (name, pytest.approx(rounded(value), abs=2e-4)) == (name, rounded(actual[name]))


@pytest.mark.parametrize("name", CASES)
def test_the_parser_reads_every_transcript_by_both_methods(name: str) -> None:
    """From (time, bytes) pairs alone, each figure is the expected one to four decimals."""
    case = CASES[name]
    end = case["end"]
    exchange = Exchange(chunks_of(case), end["kind"], end["t_ms"] / 1000, 200)

    same(case["expected"], true_figures(TrueReading.of(exchange)))
    same(case["expected_compat"], published_figures(Published.of(exchange)))


def script_of(case: dict[str, Any]) -> Script:
    """A transcript as a server sends it."""
    kind, at = case["end"]["kind"], case["end"]["t_ms"] / 1000
    end = "reset" if kind == "reset" else "close"
    return stream(chunks_of(case), end, at, whole=kind == "eof")


def is_late(name: str, answer: Answer) -> bool:
    """Whether this busy machine let an event wait before it was read."""
    expected, reading = CASES[name]["expected"], answer.reading
    seen = (reading.ttft_s, reading.e2e_s, reading.stream_end_s, answer.published.end_s)
    planned = [expected[key] for key in ("ttft_ms", "last_token_ms", "stream_end_ms")]
    planned.append(CASES[name]["end"]["t_ms"])
    return any(t and t - p / 1000 > LATE_S for t, p in zip(seen, planned, strict=True) if p)


@pytest.fixture(scope="module")
def over_sockets() -> dict[str, Answer]:
    """All transcripts, a connection each, some at a time; what came late is played once more."""
    answers: dict[str, Answer] = {}
    with ReplayServer(lambda request: script_of(CASES[request.prompt])) as server:
        client = Client(Endpoint.parse(server.base_url), "m", None, Limits())
        todo = sorted(CASES, key=lambda name: CASES[name]["end"]["t_ms"])
        for together in (10, 4, 1, 1, 1, 1):
            for at in range(0, len(todo), together):
                names = todo[at : at + together]
                asks = [Ask(name, nonce=False) for name in names]
                answers.update(zip(names, client.burst(asks, "replay"), strict=True))
            todo = [name for name in todo if is_late(name, answers[name])]
    return answers


EXACT = (
    "ok",
    "error",
    "done",
    "finish_reason",
    "chunks",
    "completion_tokens",
    "token_source",
    "first_chunk_tokens",
    "reasoning_tokens",
    "prompt_tokens",
    "cached_tokens",
    "reasoning_field",
)


@pytest.mark.parametrize("name", CASES)
def test_every_transcript_reads_the_same_over_a_socket(
    name: str, over_sockets: dict[str, Answer]
) -> None:
    """Verdicts and counts are exact, times as late as the machine lets them be."""
    expected, answer = CASES[name]["expected"], over_sockets[name]
    actual = true_figures(answer.reading)

    assert {key: expected[key] for key in EXACT} == {key: actual[key] for key in EXACT}
    for key in ("ttft_ms", "ttfo_ms", "last_token_ms", "stream_end_ms"):
        if expected[key] is None:
            assert (key, None) == (key, actual[key])
        else:
            assert expected[key] - 2 <= actual[key] <= expected[key] + 1000 * LATE_S, key
    speed_is_near(expected["decode_tok_s"], actual["decode_tok_s"], expected)


def speed_is_near(expected: float | None, actual: float | None, case: dict[str, Any]) -> None:
    """The speed lies where the lateness of its two ends may have put it."""
    if expected is None:
        return  # one arrival: undefined, unless the network cut it in two
    assert actual is not None
    window = (case["last_token_ms"] - case["ttft_ms"]) / 1000
    shortest = max(window - LATE_S, 0.001)
    assert expected * window / (window + LATE_S) <= actual <= expected * window / shortest


@pytest.mark.parametrize("name", CASES)
def test_the_published_method_reads_the_same_over_a_socket(
    name: str, over_sockets: dict[str, Answer]
) -> None:
    """What the October script counts and when, its blind spots included."""
    expected, actual = CASES[name]["expected_compat"], over_sockets[name].published

    assert (expected["ok"], expected["tokens"]) == (actual.ok, actual.tokens)
    late_by = 1000 * actual.ttft_s - expected["ttft_ms"]
    assert not actual.ok or -2 <= late_by <= 1000 * LATE_S
    if actual.ok and 0 < expected["tok_s"] < 1000:
        window = expected["tokens"] / expected["tok_s"]
        assert math.isclose(window, actual.tokens / actual.tok_s, abs_tol=LATE_S)
