"""Limits: whatever a server does or leaves undone, a round ends, and says why."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from sparkrecipes import operations as ops
from sparkrecipes import standard_round as sr
from sparkrecipes.cli import main
from sparkrecipes.errors import Misuse
from sparkrecipes.standard_round import Answer, Ask, Client, Endpoint, Limits
from tests.support.replay_server import (
    DONE,
    HEAD,
    Engine,
    ReplayServer,
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
from tests.support.scripted_round import codes, good, measure

TEXT = event({"content": "hola "})


def one(script: Script, limits: Limits | None = None, tokens: int = 300) -> Answer:
    """Ask once and get a script."""
    with ReplayServer(lambda _: script) as server:
        client = Client(Endpoint.parse(server.base_url), "m", None, limits or Limits())
        return client.ask(Ask("hola", tokens), "a test")


def test_a_stream_of_more_events_than_it_may_have_is_cut_and_named() -> None:
    """20 tokens were asked for: after 416 events it is over, long before 16 MiB."""
    endless = stream([(0.0, TEXT * 50) for _ in range(2000)], "hold", whole=False)
    reading = one(endless, tokens=20).reading
    assert "endless" == reading.error
    assert 416 <= len(reading.arrivals) < 3000
    assert "events" in reading.detail
    assert "no end" in reading.detail


def test_a_stream_of_events_without_text_is_cut_too() -> None:
    """Roles, usage and progress are no tokens, and no sign that an end will come."""
    empty = stream([(0.0, event({"role": "assistant"}) * 600)], "hold", whole=False)
    assert "endless" == one(empty, tokens=20).reading.error


def test_a_body_without_an_event_is_cut_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 MiB (here: 64 KiB) without a line end are no answer."""
    monkeypatch.setattr(sr, "MAX_BODY_BYTES", 65_536)
    reading = one(Script([(0.0, HEAD), (0.0, frame(b"x" * 200_000))], "hold")).reading
    assert "endless" == reading.error


def test_a_lively_stream_has_a_total_time() -> None:
    """A token each 50 ms, for ever: over after the total time, whatever the gaps are."""
    lively = stream([(0.05 * n, TEXT) for n in range(100)], "hold", whole=False)
    begin = time.perf_counter()
    reading = one(lively, Limits(1.0, 0.6, 0.3, 0.5)).reading
    assert ("endless", True) == (reading.error, "no end after" in reading.detail)
    assert len(reading.arrivals) >= 2
    assert time.perf_counter() - begin < 3


def test_an_answer_as_long_as_it_may_be_is_whole() -> None:
    """One token an event, a role, usage and progress: far below the limit."""
    full = answer(300)
    assert one(full).ok


def test_an_endless_server_ends_the_round() -> None:
    """Each further request would take as long."""
    chat = stream([(0.0, TEXT * 3000)], "hold", whole=False)
    data, server = measure(lambda _: chat, quick=True)
    assert ["stopped"] == codes(data)
    assert 1 == len(server.chats)
    assert "endless" in data["stability"]["errors"][0]


@pytest.fixture
def short_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick round of 1.5 s instead of 117, which waits 0.5 s for a token instead of 75."""
    monkeypatch.setattr(sr, "QUICK_S", 1.5)
    monkeypatch.setattr(sr, "QUICK_FIRST_S", 0.5)


@pytest.mark.usefixtures("short_quick")
def test_a_quick_round_of_a_wedged_engine_ends_in_time() -> None:
    """Health answers, no token comes: named after one wait, with no limits set by the caller."""
    begin = time.perf_counter()
    data, server = measure(Engine(lambda _: Script([(0.0, HEAD)], "hold")), quick=True)
    assert ["wedged", "stopped"] == codes(data)
    assert 1 == len(server.chats)
    assert data["stable"] is False
    assert time.perf_counter() - begin < 6


@pytest.mark.usefixtures("short_quick")
def test_a_server_that_answers_nothing_at_all_is_silent() -> None:
    """Not even health answers: that is said instead of wedged."""

    def nothing(request: Request) -> Script:
        return Script([], "hold") if "completions" in request.path else page({}, "503 Loading")

    with ReplayServer(nothing) as server:
        data = sr.run_round(server.base_url, "m", quick=True)
    assert ["silent", "stopped"] == codes(data)


@pytest.mark.usefixtures("short_quick")
def test_a_quick_round_of_a_slow_server_ends_in_time_and_says_so() -> None:
    """What was under way is no failure of the server; what was measured before is kept."""
    seen: list[Request] = []

    def chat(request: Request) -> Script:
        seen.append(request)
        texts = [(0.01 * n, event({"content": word})) for n, word in enumerate(words(300))]
        return stream(texts, "hold", whole=False) if len(seen) > 5 else answer(80)

    begin = time.perf_counter()
    data, _ = measure(chat, quick=True)
    assert ["time_up"] == codes(data)
    assert (0, None) == (data["stability"]["failed"], data["stable"])
    assert 3 == data["single"]["n"]
    assert data["long_prompt"] is None
    assert "a quick round ends after 2 s" in data["warnings"][0]
    assert time.perf_counter() - begin < 6


@pytest.mark.usefixtures("short_quick")
def test_a_rehearsal_may_play_as_slowly_as_it_was_asked_to() -> None:
    """Its server is ours and always ends."""
    data, _ = measure(lambda _: answer(100, each=0.003), quick=True, simulated=True)
    assert [] == codes(data)
    assert data["long_prompt"]["state"] == "measured"


# What came is named


def test_a_redirect_names_where_it_leads() -> None:
    """The address to measure instead; no credentials are sent after it."""
    place = "https://other.example/v1/chat/completions"
    head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
    reading = one(Script([(0.0, head.encode())])).reading
    assert ("http", True) == (reading.error, f"redirected to {place}" in reading.detail)


def test_a_page_for_people_is_called_that() -> None:
    """200 with HTML, as a web interface answers on the wrong port: its text, without its style."""
    body = b"<!doctype html><style>p{color:red}</style><title>Open WebUI</title><p>Sign in</p>"
    reading = one(page(body, kind="text/html; charset=utf-8")).reading
    assert "no_output" == reading.error
    assert "the answer is text/html, not a stream of events" in reading.detail
    assert "an HTML page: Open WebUI Sign in" in reading.detail
    gone = one(page(body, "502 Bad Gateway", "text/html")).reading
    assert "HTTP 502: an HTML page: Open WebUI Sign in" == gone.detail


def test_an_answer_that_was_not_streamed_is_called_that() -> None:
    """JSON where a stream was asked for."""
    reading = one(page({"choices": [{"message": {"content": "hi"}}]})).reading
    assert "the answer is application/json, not a stream" in reading.detail


def test_one_user_is_one_user() -> None:
    """In labels and errors."""
    data, _ = measure(lambda _: page({"error": "no"}, "500 E"), only="concurrent", users=1)
    assert data["stability"]["errors"][0].startswith("1 user, warm-up: http")


# No network


@pytest.mark.parametrize(
    "url", ["https://api.example.com/v1", "http://192.168.1.20:8000", "http://spark.local:8000"]
)
def test_offline_measures_nothing_that_is_elsewhere(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is sent; exit 2, with what to do."""
    with pytest.raises(Misuse, match="--offline asks no network"):
        ops.run_round(base_url=url, model="m", quick=True, offline=True)
    assert 2 == main(["round", "--base-url", url, "--quick", "--offline", "--json"])
    assert "offline" == json.loads(capsys.readouterr().out)["error"]["code"]


def test_offline_measures_this_host() -> None:
    """Loopback is no network."""
    with ReplayServer(Engine(good)) as server:
        measured = ops.run_round(base_url=server.base_url, only="single", offline=True)
    assert measured.single


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf"), 1e9])
def test_a_sustained_load_takes_minutes_that_there_are(minutes: float) -> None:
    """Not a number, less than none or weeks: misuse, before anything is sent."""
    options: dict[str, Any] = {"base_url": "http://127.0.0.1:9", "sustained_minutes": minutes}
    with pytest.raises(Misuse, match="0 \\(left out\\) to 1440"):
        ops.run_round(**options)


def test_the_command_takes_a_ladder_of_users(capsys: pytest.CaptureFixture[str]) -> None:
    """`--users 1,2` is a curve; 0 and words are misuse; the school climbs its own ladder."""
    with ReplayServer(Engine(good)) as server:
        at = ("--base-url", server.base_url, "--json")
        assert 0 == main(["round", *at, "--only", "concurrent", "--users", "1,2"])
        curve = json.loads(capsys.readouterr().out)["users_curve"]
        school = ops.run_round(base_url=server.base_url, method="school")
    assert [1, 2] == [step["users"] for step in curve]
    assert [1, 2, 4, 8, 16] * 3 == [step.users for step in school.users_curve]
    for bad in ("0", "1,x", "1,"):
        assert 2 == main(["round", *at, "--users", bad])


def test_a_context_that_holds_no_prompt_at_all_ends_the_round(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nothing fits 200 tokens: not supported, not failed, and no thread dies with a traceback."""
    refusal = "This model's maximum context length is 200 tokens"

    def chat(request: Request) -> Script:
        if request.body["max_tokens"] > 300:
            return page({"error": {"message": refusal}}, "400 Bad Request")
        return answer(80, prompt=len(request.prompt) // 3)

    data, _ = measure(Engine(chat, context=300), sustained_minutes=0.02)
    assert {"not_supported"} == {row["state"] for row in data["varied"]}
    assert data["sustained"] is None
    assert 0 == data["stability"]["failed"]
    assert "" == capfd.readouterr().err


@pytest.mark.parametrize("tokens", [10**9, 10**40, -1, True])
@pytest.mark.parametrize("counter", ["NaN", "+Inf", "1e300", "-1e300"])
def test_figures_that_cannot_be_are_no_figures(tokens: int, counter: str) -> None:
    """A server that counts absurdly in usage and on its page of counters is measured all the same.

    Its tokens are then its events, its counters are not there, and the round is of its type.
    """
    names = ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "generation_tokens")
    page_ = "".join(f"vllm:{name}_total {counter}\n" for name in names)
    texts = [(0.0005 * n, event({"content": word})) for n, word in enumerate(words(80))]
    ending = event({}, "length") + usage(tokens, tokens) + DONE
    chat = stream([*texts, (0.05, ending)])
    with ReplayServer(Engine(lambda _: chat, metrics=lambda: page_)) as server:
        measured = ops.run_round(base_url=server.base_url, model="m", only="single")
    assert measured.single
    assert ("chunks", 3) == (measured.single.token_source, measured.single.n)
    assert measured.acceptance is None
