"""Whole rounds over real sockets: each fault and each deception by its name, and its verdict."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from sparkrecipes.cli.verdicts import round_code
from sparkrecipes.reports import compare
from sparkrecipes.schema.round import Round
from sparkrecipes.standard_round import Limits
from tests.support.replay_server import (
    DONE,
    HEAD,
    Engine,
    Request,
    Script,
    answer,
    event,
    frame,
    page,
    stream,
    usage,
    words,
)
from tests.support.scripted_round import codes, measure

LIMITS = Limits(connect_s=1.0, first_event_s=0.6, between_events_s=0.3)
TEXT = event({"content": "hola "})
HTML = b"<html><head><title>503</title></head><body><h1>Service Unavailable</h1></body></html>"
RAW = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

FAULTS: dict[str, tuple[Script, str]] = {
    "reset": (stream([(0.0, TEXT)], "reset", 0.05, whole=False), "cut: Connection reset"),
    "stall": (stream([(0.0, TEXT)], "hold", whole=False), "timeout: no token for 0.3 s"),
    "half a chunk": (Script([(0.0, RAW + frame(TEXT)[:40])]), "cut: the body was cut"),
    "429": (page({"error": {"message": "slow down"}}, "429 Too Many Requests"), "http: HTTP 429"),
    "503": (page({"detail": "loading"}, "503 Service Unavailable"), "http: HTTP 503: loading"),
    "HTML error page": (
        page(HTML, "503 Service Unavailable", "text/html"),
        "http: HTTP 503: an HTML page: 503 Service Unavailable",
    ),
    "error inside the stream": (
        stream([(0.0, TEXT), (0.0, b'data: {"error": {"message": "engine dead"}}\n\n')]),
        "stream_error: engine dead",
    ),
    "endless stream": (stream([(0.0, TEXT * 4000)], "hold", whole=False), "endless"),
}


@pytest.mark.parametrize("when", ["from the start", "in the third request"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_unstable_and_the_round_ends_by_itself(fault: str, when: str) -> None:
    """Named in the errors, counted, exit 1, and no figure is made of what failed."""
    script, says = FAULTS[fault]
    healthy = 0 if when == "from the start" else 2
    seen: list[Request] = []

    def chat(request: Request) -> Script:
        seen.append(request)
        return answer(80) if len(seen) <= healthy else script

    begin = time.perf_counter()
    data, _ = measure(chat, quick=True, limits=LIMITS)
    round_ = Round.model_validate_json(json.dumps(data))

    assert data["stability"]["failed"] >= 1
    assert says in data["stability"]["errors"][0]
    assert data["stable"] is False
    assert 1 == round_code(round_)
    assert "unstable" == compare(round_, None, recipe_id=None).verdict
    single = round_.single
    assert single is None or single.decode_tok_s is None
    assert time.perf_counter() - begin < 8


def test_a_slow_start_is_slow_and_no_fault() -> None:
    """0.4 s to the first token in each request: measured as such, nothing failed."""
    data, _ = measure(lambda _: answer(80, first=0.4), quick=True, limits=Limits(1.0, 3.0, 0.3))
    assert (0, None) == (data["stability"]["failed"], data["stable"])
    assert 400 <= data["single"]["ttft_ms"]["min"]
    assert [] == codes(data)


def hidden(_: Request) -> Script:
    """260 of 300 tokens are counted as reasoning and never streamed."""
    texts = [(0.05 + 0.002 * n, event({"content": word})) for n, word in enumerate(words(40))]
    details = {"completion_tokens_details": {"reasoning_tokens": 260}}
    return stream([*texts, (0.2, event({}, "length") + usage(300, **details) + DONE)])


def early(_: Request) -> Script:
    """90 tokens, and an end of its own."""
    texts = [(0.001 * n, event({"content": word})) for n, word in enumerate(words(90))]
    return stream([*texts, (0.1, event({}, "stop") + usage(90) + DONE)])


def cached(_: Request) -> Script:
    """A cache held 48 of 50 tokens of the prompt."""
    return answer(80, prompt_tokens_details={"cached_tokens": 48})


def other(_: Request) -> Script:
    """The events bear another model's name."""
    texts = [event({"content": word}, model="other-model") for word in words(80)]
    return stream([(0.01, b"".join(texts) + event({}, "length") + usage(80) + DONE)])


def garbage(_: Request) -> Script:
    """C89: exclamation marks."""
    marks = [(0.001 * n, event({"content": "!"})) for n in range(80)]
    return stream([*marks, (0.08, event({}, "length") + usage(80) + DONE)])


def wedged(_: Request) -> Script:
    """A header, and no token ever."""
    return Script([(0.0, HEAD)], "hold")


DECEPTIONS: dict[str, Callable[[Request], Script]] = {
    "hidden_reasoning": hidden,
    "early_stop": early,
    "cached_prompt": cached,
    "wrong_model": other,
    "garbage_output": garbage,
    "wedged": wedged,
}


@pytest.mark.parametrize("name", DECEPTIONS)
def test_what_passes_for_a_good_server_is_found_and_named(name: str) -> None:
    """Each with its own word, in a round that ends by itself."""
    data, _ = measure(Engine(DECEPTIONS[name]), quick=True, limits=LIMITS)
    assert name in codes(data)


def test_a_good_server_is_none_of_these() -> None:
    """No warning at all."""
    data, _ = measure(lambda _: answer(200), quick=True, limits=LIMITS)
    assert [] == codes(data)
