"""The stream: what counts as a token and as an end, and that nothing a server sends breaks it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkrecipes.standard_round import (
    Exchange,
    Published,
    Reading,
    decode_http,
    sse_events,
)
from tests.support.replay_server import DONE, HEAD, event, frame, usage

END = event({}, "stop")


def read(*pieces: tuple[float, str | bytes], end: str = "eof") -> Reading:
    """Read pieces at times in ms."""
    timed = [(t / 1000, p.encode() if isinstance(p, str) else p) for t, p in pieces]
    return Reading.of(Exchange(timed, end, timed[-1][0], 200))


def said(text: str, **more: Any) -> bytes:
    """An event with content."""
    return event({"content": text}, **more)


def test_reasoning_is_the_first_token_and_the_answer_is_reported_apart() -> None:
    """C96: TTFT at the first reasoning, not at the role; TTFO at the first content."""
    reading = read(
        (180, event({"role": "assistant", "content": ""})),
        (200, event({"reasoning": "Okay"})),
        (300, event({"reasoning": ", so"})),
        (5200, said("Yes")),
        (5250, END),
        (5251, usage(52, 20)),
        (5252, DONE),
    )

    assert (0.2, 5.2, 52) == (reading.ttft_s, reading.ttfo_s, reading.completion_tokens)
    assert reading.ok


def test_both_names_of_reasoning_are_read_and_one_text_counts_once() -> None:
    """C97: `reasoning`, `reasoning_content`, and both in one event."""
    reading = read(
        (100, event({"reasoning_content": "A"})),
        (150, event({"reasoning": "B"})),
        (160, event({"reasoning": "C", "reasoning_content": "C"})),
    )

    assert ("ABC", 3) == (reading.text, len(reading.arrivals))


def test_tokens_come_from_the_usage_and_not_from_the_chunks() -> None:
    """C98: five chunks of four tokens are 20 tokens; 10 tok/s is never the answer."""
    texts = ["aaaa ", "bbbb ", "cccc ", "dddd ", "eeee"]
    chunks = [(400 + 100 * n, said(text)) for n, text in enumerate(texts)]
    reading = read(*chunks, (801, END), (802, usage(20, 10)), (803, DONE))

    assert (20, 0.4) == (reading.completion_tokens, reading.ttft_s)
    assert reading.decode_tok_s is not None
    assert 40.0 <= reading.decode_tok_s <= 47.5


def test_hidden_reasoning_makes_the_decode_speed_unknowable() -> None:
    """C100: 880 of 900 tokens came before the first text; 97.8 tok/s over the whole request."""
    details = {"completion_tokens_details": {"reasoning_tokens": 880}}
    reading = read(
        (9000, said("The ")),
        (9200, said("end")),
        (9201, END),
        (9202, usage(900, 30, **details)),
        (9203, DONE),
    )

    assert "880 of 900 tokens are reasoning" in reading.hidden_reasoning()
    assert 97.8 == round(reading.e2e_tok_s or 0, 1)


@pytest.mark.parametrize(
    ("tokens", "first_ms", "hidden"),
    [
        (60, 60, False),
        (300, 60, False),
        (900, 60, True),
        (300, 3000, True),
        (120, 3000, False),
        (70, 3000, False),
    ],
)
def test_hidden_reasoning_is_inferred_from_missing_text_and_a_late_start(
    tokens: int, first_ms: float, hidden: bool
) -> None:
    """600 bytes of text are not 900 tokens; nor 300, where the first of them came late."""
    text = "palabra " * 74
    chunks = [(first_ms + 10 * n, said(text[n * 10 : n * 10 + 10])) for n in range(60)]
    reading = read(*chunks, (9000, END + usage(tokens) + DONE))

    assert hidden == bool(reading.hidden_reasoning())


def test_a_slow_server_of_short_tokens_hides_nothing() -> None:
    """A token an event and two bytes a token: slow prefill is no hidden reasoning."""
    chunks = [(3000 + 10 * n, said("ab")) for n in range(80)]

    assert "" == read(*chunks, (4000, END + usage(80) + DONE)).hidden_reasoning()


def test_usage_without_choices_is_read() -> None:
    """C101: usage comes with empty choices, or with none at all."""
    for last in (usage(2, 5), b'data: {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}\n\n'):
        reading = read((120, said("hi")), (140, END), (141, last), (142, DONE))
        assert (2, 5, True) == (reading.completion_tokens, reading.prompt_tokens, reading.ok)


def test_without_usage_the_chunks_are_a_marked_lower_bound() -> None:
    """C102: two chunks, at least two tokens, and the source says so."""
    reading = read((100, said("one two")), (200, said(" three four")), (210, END), (211, DONE))

    assert (2, "chunks") == (reading.completion_tokens, reading.token_source)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"error": {"message": "TimeoutError", "code": 504}}, "TimeoutError"),
        ({"error": "engine died"}, "engine died"),
        ({"object": "error", "message": "bad", "code": 400}, "bad"),
        ({"error": {}}, "{}"),
    ],
)
def test_an_error_object_fails_the_request_wherever_it_comes(error: Any, message: str) -> None:
    """C103: an object or a string, first or after tokens, whatever follows."""
    for before in ((), ((40, said("x")),)):
        reading = read(*before, (50, b"data: " + json.dumps(error).encode() + b"\n\n"), (51, DONE))
        assert ("stream_error", message) == (reading.error, reading.detail.split(" (")[0])


def test_a_null_error_is_none() -> None:
    """Servers that always send the key."""
    assert read((1, said("x", error=None)), (2, END + DONE)).ok


def test_an_event_named_error_fails_the_request() -> None:
    """Some gateways name the event and send the message alone."""
    assert "stream_error" == read((5, b'event: error\ndata: {"message": "no"}\n\n')).error


def test_a_cut_connection_is_no_answer() -> None:
    """C105: no finish reason, no [DONE], a transport error."""
    pieces = ((100, said("Hello")), (150, said(" wor")))
    for end in ("eof", "incomplete", "reset"):
        reading = read(*pieces, end=end)
        assert ("cut", 2) == (reading.error, len(reading.arrivals))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (said("x"), "cut"),
        (said("x") + DONE, None),
        (event({"content": "x"}, "stop") + DONE, None),
        (said("x") + END, None),
        (said("x") + END + usage(1) + DONE, None),
    ],
)
def test_the_table_of_endings(body: bytes, error: str | None) -> None:
    """C106: only the first is truncated, and a merged finish reason loses no text."""
    reading = read((5, body))

    assert (error, 1) == (reading.error, len(reading.arrivals))


def test_comments_and_empty_events_are_not_tokens() -> None:
    """C107: pings in a long prefill; `data:` needs no space."""
    reading = read(
        (15000, ": ping\n\n"),
        (15100, ":\n\n"),
        (15200, "event: ping\ndata:\n\n"),
        (20000, 'data:{"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n'),
        (20010, "data: [DONE]\n\n"),
    )

    assert (20.0, True) == (reading.ttft_s, reading.ok)


def test_line_ends_may_be_mixed_and_cut_between_reads() -> None:
    """C108: CR LF over two reads is one line end; bare CR is one too."""
    reading = read(
        (100, said("a").replace(b"\n\n", b"\r\n\r")),
        (110, b"\n" + said("b").replace(b"\n\n", b"\n\r\n")),
        (115, said("c").replace(b"\n", b"\r")),
        (120, "data: [DONE]\r\n\r\n"),
    )

    assert ("abc", True) == (reading.text, reading.ok)
    assert [0.1, 0.11, 0.115] == reading.arrivals


def test_characters_may_be_cut_between_reads() -> None:
    """C109: one event, at the time of the read that completes it, no U+FFFD."""
    whole = '{"choices":[{"index":0,"delta":{"content":"你好"},"finish_reason":null}]}'
    raw = f"data: {whole}\n\n".encode()
    at = raw.index("好".encode()) + 1
    reading = read((100, raw[:at]), (104, raw[at:]), (105, DONE))

    assert ("你好", [0.104]) == (reading.text, reading.arrivals)


def test_a_last_event_without_its_blank_line_counts_if_it_is_whole() -> None:
    """A whole one ends the request well, half of one is a cut."""
    whole = said("x") + event({}, "stop").rstrip(b"\n")

    assert read((5, whole)).ok
    assert "cut" == read((5, whole[:-3])).error
    assert "cut" == read((5, said("x") + END + usage(1)[:-9])).error


def test_token_ids_with_empty_text_add_tokens_and_no_arrival() -> None:
    """Half a character: the tokens are there, the text comes with the next."""
    pieces = [("a", [1, 2]), ("", [3]), ("b", [4])]
    chunks = [
        b"data: "
        + json.dumps({"choices": [{"delta": {"content": text}, "token_ids": ids}]}).encode()
        + b"\n\n"
        for text, ids in pieces
    ]
    reading = read(*[(100 + 20 * n, chunk) for n, chunk in enumerate(chunks)], (150, DONE))

    assert (4, "token_ids", 2) == (
        reading.completion_tokens,
        reading.token_source,
        len(reading.arrivals),
    )
    assert 50.0 == pytest.approx(reading.decode_tok_s)


def test_a_byte_order_mark_is_skipped() -> None:
    """The event-stream format allows one."""
    assert "x" == read((1, b"\xef\xbb\xbf" + said("x")), (2, DONE)).text


# Fuzz: no crash, no hang, no wrong "ok".

TEXTS = ("a", "ñ", "日本", "🚀", '"', "\\n", " ")
WIRE = st.sampled_from(
    [
        *(said(text) for text in TEXTS),
        event({"reasoning": "r"}),
        event({"tool_calls": [{"function": {"name": "f"}}]}),
        event({"role": "assistant", "content": ""}),
        b": ping\n\n",
        b"data:\n\n",
        b"event: message\n",
        usage(3),
        b'data: {"choices": null, "usage": null}\n\n',
        b'data: {"choices": [null, {"delta": []}, {"delta": {"content": 5}}]}\n\n',
    ]
)
FINISH, FAULT = event({}, "length"), b'data: {"error": {"message": "died"}}\n\n'


@settings(max_examples=150, deadline=None)
@given(events=st.lists(WIRE, max_size=12), cuts=st.lists(st.integers(0, 3000), max_size=20))
def test_where_the_network_cuts_a_stream_changes_nothing_but_times(
    events: list[bytes], cuts: list[int]
) -> None:
    """Any cut, inside characters and line ends, gives the same events and the same text."""
    body = b"".join(events) + FINISH + DONE
    edges = [0, *sorted({min(cut, len(body)) for cut in cuts}), len(body)]
    pieces = [(float(n), body[a:b]) for n, (a, b) in enumerate(itertools.pairwise(edges))]
    once, cut = (Reading.of(Exchange(p, "eof", 99.0, 200)) for p in ([(0.0, body)], pieces))

    assert [(e[1], e[2], e[3]) for e in sse_events([(0.0, body)])] == [
        (e[1], e[2], e[3]) for e in sse_events(pieces)
    ]
    assert (once.text, once.error, once.completion_tokens) == (
        cut.text,
        cut.error,
        cut.completion_tokens,
    )
    assert sorted(cut.arrivals) == cut.arrivals


@settings(max_examples=300, deadline=None)
@given(
    body=st.one_of(
        st.binary(max_size=400),
        st.lists(st.one_of(WIRE, st.binary(max_size=30)), max_size=8).map(b"".join),
    ),
    end=st.sampled_from(["eof", "incomplete", "reset", "timeout", "malformed", "connect"]),
    status=st.sampled_from([0, 200, 204, 404, 500]),
)
def test_a_stream_without_an_end_is_never_ok(body: bytes, end: str, status: int) -> None:
    """Bytes of any kind: no crash; without [DONE] and a finish reason it has failed."""
    exchange = Exchange([(0.1, body)], end, 1.0, status)
    reading = Reading.of(exchange)
    Published.of(exchange)

    ended = b"[DONE]" in body or b"finish_reason" in body
    assert not reading.ok or (ended and 200 <= status < 300)
    assert reading.hidden_reasoning() is not None


@settings(max_examples=150, deadline=None)
@given(before=st.lists(WIRE, max_size=6), after=st.lists(WIRE, max_size=3))
def test_an_error_before_the_end_is_never_ok(before: list[bytes], after: list[bytes]) -> None:
    """Whatever surrounds it."""
    body = b"".join([*before, b"\n\n", FAULT, *after, FINISH, DONE])

    assert "stream_error" == Reading.of(Exchange([(0.1, body)], "eof", 1.0, 200)).error


@settings(max_examples=200, deadline=None)
@given(
    payload=st.lists(st.binary(min_size=1, max_size=60), max_size=6),
    cuts=st.lists(st.integers(0, 600), max_size=12),
    missing=st.integers(0, 40),
)
def test_a_chunked_body_is_whole_only_to_its_last_byte(
    payload: list[bytes], cuts: list[int], missing: int
) -> None:
    """Any cut gives the same payload; a body that lacks bytes is never called whole."""
    raw = HEAD + b"".join(map(frame, payload)) + b"0\r\n\r\n"
    kept = raw[: len(raw) - missing]
    edges = [0, *sorted({min(cut, len(kept)) for cut in cuts}), len(kept)]
    reads = [(float(n), kept[a:b]) for n, (a, b) in enumerate(itertools.pairwise(edges))]
    status, _, pieces, state = decode_http([r for r in reads if r[1]])
    body = b"".join(data for _, data in pieces)

    assert b"".join(payload).startswith(body)
    if missing <= 2:  # the blank line after the last chunk is an empty trailer
        assert (200, b"".join(payload), "whole") == (status, body, state)
    else:
        assert "incomplete" == state


@settings(max_examples=200, deadline=None)
@given(raw=st.one_of(st.binary(max_size=300), st.binary(max_size=200).map(lambda b: HEAD + b)))
def test_what_is_not_http_breaks_nothing(raw: bytes) -> None:
    """Garbage has a state, and its bytes are not invented."""
    status, _, pieces, state = decode_http([(0.0, raw)])

    assert state in ("whole", "incomplete", "open", "malformed")
    assert sum(len(data) for _, data in pieces) <= len(raw)
    assert status in (0, *range(200, 600))
