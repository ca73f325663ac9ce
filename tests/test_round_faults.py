"""Faults of servers and networks: each gets the right name, and the round ends by itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

from sparkrecipes.standard_round import Answer, Ask, Client, Endpoint, Limits, run_round
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
)
from tests.support.scripted_round import codes, measure

QUICK = Limits(connect_s=1.0, first_event_s=0.6, between_events_s=0.3)


def one(script: Script | Callable[[Request], Script], limits: Limits = QUICK) -> Answer:
    """Ask once and get a script."""
    play = script if callable(script) else lambda _: script
    with ReplayServer(play) as server:
        return Client(Endpoint.parse(server.base_url), "m", None, limits).ask(Ask("hola"), "a test")


TEXT = event({"content": "hola "})
RAW = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("script", "error", "detail"),
    [
        (page({"error": {"message": "slow down"}}, "429 Too Many Requests"), "http", "slow down"),
        (page({"detail": "loading"}, "503 Service Unavailable"), "http", "503: loading"),
        (
            page(b"<html><h1>Bad Gateway</h1>", "502 Bad Gateway", "text/html"),
            "http",
            "Bad Gateway",
        ),
        (page(b"<html>Welcome", kind="text/html"), "no_output", "Welcome"),
        (page({"choices": [{"message": {"content": "hi"}}]}), "no_output", "choices"),
        (page(b""), "no_output", "an empty body"),
        (stream([(0.0, TEXT)], "reset", 0.05, whole=False), "cut", "1 token events"),
        (Script([(0.0, RAW + frame(TEXT)[:40])]), "cut", "0 token events"),
        (Script([(0.0, RAW + b"zz\r\n" + TEXT)]), "cut", "not HTTP/1.1"),
        (Script([(0.0, b"SSH-2.0-OpenSSH_9.2\r\n")]), "cut", "not HTTP/1.1"),
        (Script([(0.0, b"")]), "cut", "the body was cut"),
        (stream([(0.0, TEXT)]), "cut", "no finish reason and no [DONE] came"),
        (Script([], "reset"), "cut", "0 token events"),
        (stream([(0.0, TEXT)], "hold", whole=False), "timeout", "no token for 0.3 s"),
        (Script([(0.0, HEAD)], "hold"), "timeout", "no token for 0.6 s"),
        (Script([], "hold"), "timeout", "no token for 0.6 s"),
    ],
)
def test_each_fault_has_its_name(script: Script, error: str, detail: str) -> None:
    """HTTP errors, error pages, half a chunk, no HTTP at all, resets and stalls."""
    begin = time.perf_counter()
    reading = one(script).reading

    assert error == reading.error
    assert detail in reading.detail
    assert time.perf_counter() - begin < 2


def test_a_slow_start_is_not_a_failure() -> None:
    """The first event may take its own time, comments or not; silence is measured after it."""
    pings = [(0.1 * n, b": ping\n\n") for n in range(1, 5)]
    for early in ([], pings, [(0.0, event({"role": "assistant", "content": ""}))]):
        ending = (0.5, TEXT + event({}, "stop") + DONE)
        assert one(stream([*early, ending])).reading.error is None


def test_comments_keep_a_stream_alive_but_not_for_ever() -> None:
    """Pings past the limit between events are fine, past the limit to the first they are not."""
    pings = [(0.1 * n, b": ping\n\n") for n in range(1, 15)]
    alive = one(stream([(0.0, TEXT), *pings[:4], (0.45, event({}, "stop") + DONE)]))
    dead = one(stream([(0.0, TEXT), *pings], "hold"))

    assert (None, "timeout") == (alive.reading.error, dead.reading.error)


def test_an_answer_is_over_when_it_is_whole_and_not_when_the_server_hangs_up() -> None:
    """Keep-alive servers that ignore `Connection: close` cost a moment and change no figure."""
    body = TEXT + event({}, "stop") + DONE
    begin = time.perf_counter()
    held = [one(stream([(0.05, body)], "hold"), Limits()) for _ in range(5)]
    unfinished = one(stream([(0.05, body)], "hold", whole=False))

    assert all(answer.ok for answer in held)
    assert unfinished.ok
    # The soonest: a busy machine may be late with each, never early.
    assert 0.05 == pytest.approx(min(answer.exchange.end_s for answer in held), abs=0.04)
    assert time.perf_counter() - begin < 4


def test_a_refused_connection_is_named_and_ends_the_round() -> None:
    """Nothing listens: one request, one error with its reason, nothing else is tried."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    data = run_round(f"http://127.0.0.1:{port}", "m", limits=QUICK)

    assert (1, 1, False) == (
        data["stability"]["requests"],
        data["stability"]["failed"],
        data["stable"],
    )
    assert "connect: Connection refused" in data["stability"]["errors"][0]
    assert "stopped" in codes(data)


def test_a_wedged_engine_is_named_and_ends_the_round() -> None:
    """Health answers, no token comes: the round does not wait for it in every part."""
    data, _ = measure(Engine(lambda _: Script([(0.0, HEAD)], "hold")), quick=True, limits=QUICK)

    assert ["wedged", "stopped"] == codes(data)
    assert (1, 1) == (data["stability"]["requests"], data["stability"]["failed"])


def test_a_hang_in_mid_round_ends_it_and_keeps_what_was_measured() -> None:
    """The second of three rounds hangs for one user: its 3/4 is shown, and the third is not run."""
    seen: list[int] = []

    def chat(_: Request) -> Script:
        seen.append(1)
        return Script([(0.0, HEAD)], "hold") if len(seen) == 10 else answer(80)

    data, server = measure(chat, only="concurrent", limits=QUICK)

    assert 12 == len(server.chats)
    assert (8, 1) == (data["concurrent"]["requests"], data["concurrent"]["failed"])
    assert ["concurrency_failed", "wedged", "stopped"] == codes(data)
    assert data["concurrent"]["aggregate_tok_s"] is None


def test_one_hang_among_four_users_leaves_no_speed() -> None:
    """C117: 3 of 4 failed: success 1/4 is said, no aggregate comes from the one survivor."""
    seen: list[int] = []

    def chat(request: Request) -> Script:
        seen.append(1)
        return answer(80) if len(seen) <= 6 else page({"error": "deadlock"}, "500 Error")

    data, _ = measure(Engine(chat), quick=True, limits=QUICK)
    users = data["concurrent"]

    assert (4, 3) == (users["requests"], users["failed"])
    assert users["aggregate_tok_s"] is users["per_user_tok_s"] is users["steady_tok_s"] is None
    assert data["published_method"]["four_users_total_tok_s"] is None
    assert any(w.startswith("concurrency_failed: 1/4 requests") for w in data["warnings"])
    assert data["stable"] is False


def test_failed_requests_are_counted_and_never_averaged_in() -> None:
    """Two of three singles fail: one figure, two errors, each with the part it came from."""
    seen: list[int] = []

    def chat(request: Request) -> Script:
        seen.append(1)
        return stream([(0.0, TEXT)]) if len(seen) in (3, 4) else answer(80)

    data, _ = measure(Engine(chat), quick=True, limits=QUICK)

    assert (1, 2) == (data["single"]["n"], data["single"]["failed"])
    assert 1 == data["single"]["ttft_ms"]["n"]
    assert ["one user, request 1", "one user, request 2"] == [
        error.split(":")[0] for error in data["stability"]["errors"]
    ]


def refusing(*names: str, said: str = "extra fields not permitted: {}") -> Callable[..., Script]:
    """A chat that refuses fields, one at a time."""

    def chat(request: Request) -> Script:
        given = [name for name in names if name in request.body]
        if given:
            return page({"error": {"message": said.format(given[0])}}, "400 Bad Request")
        return answer(80)

    return chat


def test_a_refused_field_is_dropped_tried_once_more_and_noted() -> None:
    """The 400 names a field: it is left out from then on; it is no failure."""
    with ReplayServer(Engine(refusing("chat_template_kwargs"))) as server:
        data = run_round(server.base_url, "m", only="single", limits=QUICK)
        bodies = [request.body for request in server.chats]

    assert 5 == len(bodies)
    assert ["chat_template_kwargs" in body for body in bodies] == [True, False, False, False, False]
    assert all("stream_options" in body for body in bodies)
    assert "field_dropped: refused and left out: chat_template_kwargs" in data["warnings"]
    assert (4, 0) == (data["stability"]["requests"], data["stability"]["failed"])


def test_a_400_that_names_no_field_drops_all_that_are_optional() -> None:
    """Some servers only say that the request is invalid."""
    refuse = refusing("stream_options", said="Invalid request")

    def chat(request: Request) -> Script:
        script = refuse(request)
        return Script([(t, raw.replace(b"usage", b"other")) for t, raw in script.steps])

    with ReplayServer(Engine(chat)) as server:
        data = run_round(server.base_url, "m", only="single", limits=QUICK)

    assert 0 == data["stability"]["failed"]
    assert ["chunks_only", "field_dropped"] == codes(data)
    assert data["single"]["comparable"] is False
    assert "temperature" in server.chats[-1].body


def test_a_400_of_another_cause_drops_nothing_that_worked_before() -> None:
    """The tool call of the smoke test fails, as on vLLM 0.32 without a parser, and nothing else."""
    refusal = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'

    def chat(request: Request) -> Script:
        if "tools" in request.body:
            return page({"error": {"message": refusal}}, "400 Bad Request")
        return answer(80, each=0.0005)

    data, server = measure(chat, quick=True, capabilities=["tools"], limits=QUICK)

    assert data["smoke"]["tool_call"] is False
    assert ["no_tool_call"] == codes(data)
    assert 1 == data["stability"]["failed"]
    assert all("stream_options" in request.body for request in server.chats)


def test_a_400_of_another_cause_fails_after_one_more_try() -> None:
    """No endless retries."""
    with ReplayServer(Engine(lambda _: page({"error": "no"}, "400 Bad Request"))) as server:
        data = run_round(server.base_url, "m", only="single", limits=QUICK)

    assert 4 >= data["stability"]["failed"] >= 1
    assert 5 >= len(server.chats)


CONTEXT = "This model's maximum context length is 16384 tokens. However, you requested 46512 tokens"


@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error"])
def test_a_prompt_that_the_server_calls_too_long_is_not_supported(status: str) -> None:
    """C111: neither failed nor 0 tok/s, through a proxy too."""

    def chat(request: Request) -> Script:
        if len(request.prompt) > 60_000:
            return page({"error": {"message": CONTEXT}}, status)
        return answer(80, prompt=50 + len(request.prompt) // 3)

    data, _ = measure(Engine(chat), quick=True, limits=QUICK)

    assert "not_supported" == data["long_prompt"]["state"]
    assert 0 == data["stability"]["failed"]


def test_a_prompt_longer_than_the_stated_context_is_not_sent() -> None:
    """C111: 46 thousand tokens into 32,768 do not go; what it needs and what there is are said."""
    with ReplayServer(Engine(sized, context=32_768)) as server:
        data = run_round(server.base_url, "m", quick=True, limits=QUICK)
        longest = max(len(request.prompt) for request in server.chats)

    assert "not_supported" == data["long_prompt"]["state"]
    assert "the context holds 32768" in data["long_prompt"]["reason"]
    assert "stopped" not in codes(data)
    assert longest < 10_000
    assert 32_768 == data["server"]["context_tokens"]


def sized(request: Request) -> Script:
    """A chat whose prompt tokens grow with the prompt, three characters each."""
    return answer(80, prompt=50 + len(request.prompt) // 3)


@pytest.mark.parametrize(
    ("each", "lines"), [(2.4, 3000), (1.5, 1880), (8, 10_100)], ids=["usual", "small", "large"]
)
def test_the_long_prompt_is_sized_by_the_servers_own_count(each: float, lines: int) -> None:
    """3,000 lines, unless this tokenizer would make far more or fewer than 46,000 tokens of it."""

    def chat(request: Request) -> Script:
        return answer(80, prompt=40 + int(len(request.prompt) / each))

    with ReplayServer(Engine(chat)) as server:
        data = run_round(server.base_url, "m", only="long", limits=QUICK)
        sent = [request.prompt.count("paso") for request in server.chats]

    assert 4 == len(sent)
    assert sent[1] == pytest.approx(lines, rel=0.2)
    assert 46_000 == pytest.approx(data["long_prompt"]["prompt_tokens"], rel=0.2)


def test_a_broken_usage_does_not_break_the_round() -> None:
    """Usage of wrong types is no usage."""
    bad = {"prompt_tokens": "many", "completion_tokens": -3, "prompt_tokens_details": [1]}
    ending = event({}, "length") + b"".join([b'data: {"usage": 7}\n\n']) + DONE

    def chat(_: Request) -> Script:
        texts = [(0.01 * n, event({"content": f"palabra{n} "})) for n in range(3)]
        return stream([*texts, (0.03, event({}, usage=bad) + ending)])

    data, _ = measure(Engine(chat), only="single", limits=QUICK)

    assert (3, "chunks") == (data["single"]["n"], data["single"]["token_source"])
    assert 0 == data["stability"]["failed"]


def test_usage_counts_of_hidden_tokens_leave_no_decode_speed_in_the_round() -> None:
    """C100 in a round: the figure is refused with the reason; the whole-request speed stays."""

    def chat(_: Request) -> Script:
        texts = [(0.05 + 0.002 * n, event({"content": f" palabra{n}"})) for n in range(40)]
        details = {"completion_tokens_details": {"reasoning_tokens": 260}}
        return stream([*texts, (0.2, event({}, "length") + usage(300, **details) + DONE)])

    data, _ = measure(Engine(chat), quick=True, limits=QUICK)

    assert data["single"]["decode_tok_s"] is data["single"]["tpot_ms"] is None
    assert data["single"]["e2e_tok_s"]["n"] == 3
    assert "hidden_reasoning" in codes(data)
