#!/usr/bin/env python3
"""The standard round: measure an OpenAI-compatible server as its users feel it.

One file, standard library only. Copy it to the machine and run it::

    python standard_round.py --base-url http://127.0.0.1:8000 --model NAME > round.json

Two readings of the same bytes are kept apart: the *true figures* (TTFT to the first generated text
of any kind, decode speed from the first token to the last) and the *published method* (what the
script of October 2026 would have printed), for only like may be compared with like. What cannot be
known is null, with a warning that says why; a failed request is counted and shown, never averaged
in. A warning starts with a word for programs: ``too_short: the answers have ...``.

In reading order: transport, stream, one request's figures, prompts, client, counters, statistics,
the round, command line.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import functools
import itertools
import json
import math
import os
import re
import secrets
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

clock = time.perf_counter
Json = dict[str, Any]
Pieces = Sequence[tuple[float, bytes]]
"""A body as it came: (seconds after the request was sent, bytes) of each network read."""

# ------------------------------------------------------------------------------- transport

MAX_BODY_BYTES = 16 * 1024 * 1024
STAGGER_S = 0.000_5
"""Between the starts of one burst, so that no request waits while others are written."""
QUIET_S = 5.0  # after this long without a byte, look whether the stream has ended or failed
LINGER_S = 0.2  # how long a server may keep the connection open after the end of the body


@dataclass(frozen=True)
class Limits:
    """How long a request may take before it has failed, in seconds."""

    connect_s: float = 10.0
    first_event_s: float = 900.0
    between_events_s: float = 60.0
    total_s: float = 1800.0  # to the end of the stream, however lively it is


@dataclass(frozen=True)
class Endpoint:
    """Where the server is; ``root`` is its path without ``/v1``."""

    tls: bool
    host: str
    port: int
    root: str

    @classmethod
    def parse(cls, base_url: str) -> Endpoint:
        """Read a base URL, with or without ``http://`` and ``/v1``.

        Raises:
            ValueError: It cannot be used; the message says how it should look.
        """
        try:
            parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        usable = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        odd = parts.query or parts.fragment or not re.fullmatch("[!-~]*", base_url)
        if not usable or odd or port == 0:
            raise ValueError(
                "the base URL must look like http://127.0.0.1:8000, without credentials or query"
            )
        tls = parts.scheme == "https"
        root = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
        return cls(tls, str(parts.hostname), port or (443 if tls else 80), root)

    @property
    def netloc(self) -> str:
        """Host and port as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL with ``/v1``."""
        return f"http{'s' * self.tls}://{self.netloc}{self.root}/v1"

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def connect(self, timeout_s: float) -> socket.socket:
        """Open a connection, TLS included; OSError where that fails."""
        sock = socket.create_connection((self.host, self.port), timeout=timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            import ssl

            return ssl.create_default_context().wrap_socket(sock, server_hostname=self.host)
        return sock

    def request(self, method: str, path: str, body: bytes = b"", key: str | None = None) -> bytes:
        """Write out one request, after whose answer the connection is closed."""
        lines = [f"{method} {self.root}{path} HTTP/1.1", f"Host: {self.netloc}"]
        lines += ["Connection: close", "Accept: */*", "User-Agent: sparkrecipes-round"]
        lines += [f"Authorization: Bearer {key}"] if key else []
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


@dataclass
class Exchange:
    """One request and what came back, in seconds after its first byte was written."""

    pieces: Pieces = ()  # of the body; of the whole response until it is decoded
    end: str = "connect"
    """eof, incomplete (a cut body), malformed, reset, timeout (silence), endless (too much or too
    long), time_up (of a quick round), or connect (never connected)."""
    end_s: float = 0.0
    status: int = 0
    t0: float = 0.0
    """``perf_counter`` just before the first byte was written."""
    connect_s: float = 0.0
    detail: str = ""
    head: bytes = b""  # the header lines

    @property
    def body(self) -> bytes:
        """The whole payload."""
        return b"".join(data for _, data in self.pieces)

    def decode(self) -> Exchange:
        """Take the HTTP response out of what was read; a whole body outdoes what came after it."""
        read_until = self.pieces[-1][0] if self.pieces else 0.0
        self.status, self.head, self.pieces, state = decode_http(self.pieces)
        if state == "whole":
            self.end, self.end_s, self.detail = "eof", read_until, ""
        elif self.end == "closed":
            self.end = "eof" if state == "open" else state
        return self

    def header(self, name: str) -> str:
        """A header's value in one short line, or nothing."""
        found = re.search(rb"(?im)^%b:[ \t]*([^\r\n]*)" % name.encode(), self.head)
        return _line(found[1].decode("latin-1"))[:200] if found else ""


_HEAD = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?!\d)(.*?)\r\n\r\n", re.DOTALL)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:.*chunked[ \t]*\r?$")
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*([0-9]{1,15})[ \t]*\r?$")


def decode_http(reads: Pieces) -> tuple[int, bytes, Pieces, str]:
    """Take an HTTP/1.1 response out of what was read until now.

    Returns:
        Status (0: none), header, the body's pieces with their times, and its state: whole,
        incomplete (more was announced), open (ends with the connection) or malformed.
    """
    raw = b"".join(data for _, data in reads)
    head = _HEAD.match(raw)
    while head and head[1] < b"200":  # 100 Continue: the real answer follows
        head = _HEAD.match(raw, head.end())
    if not head:
        return 0, b"", (), "incomplete" if raw[:5] == b"HTTP/"[: len(raw)] else "malformed"
    at, length = head.end(), _LENGTH.search(head[2])
    if _CHUNKED.search(head[2]):
        spans, state = _chunk_spans(raw, at)
    else:
        stop = at + int(length[1]) if length else len(raw)
        spans = [(at, min(stop, len(raw)))]
        state = "open" if not length else "whole" if stop <= len(raw) else "incomplete"
    return int(head[1]), head[2], _cut_out(reads, raw, spans), state


def _chunk_spans(raw: bytes, at: int) -> tuple[list[tuple[int, int]], str]:
    """Where the payload of a chunked body lies, and the body's state."""
    spans: list[tuple[int, int]] = []
    while line := _CHUNK.match(raw, at):
        at, size = line.end(), int(line[1], 16)
        if size == 0:
            return spans, "whole"
        spans.append((at, min(at + size, len(raw))))
        at += size + 2
    return spans, "malformed" if b"\n" in raw[at:] else "incomplete"


def _cut_out(reads: Pieces, raw: bytes, spans: list[tuple[int, int]]) -> Pieces:
    """The bytes of some spans, each read's with its time."""
    pieces, offset, left = list[tuple[float, bytes]](), 0, spans[::-1]
    for t, data in reads:
        offset += len(data)
        fresh = []
        while left and left[-1][0] < offset:
            begin, stop = left.pop()
            fresh.append(raw[begin : min(stop, offset)])
            if stop > offset:
                left.append((offset, stop))
        if fresh:
            pieces.append((t, b"".join(fresh)))
    return pieces


def transfer(
    sock: socket.socket, request: bytes, limits: Limits, at: float = 0.0, most_events: int = 10_000
) -> Exchange:
    """Send a request on an open connection at a ``perf_counter`` time; read the answer to its end.

    Each network read gets one time stamp and is kept; all decoding comes afterwards, so that a
    burst of many streams is not delayed by our own work. The connection is closed.
    """
    reads: list[tuple[float, bytes]] = []
    done, size, events, now = Exchange(reads, "closed"), 0, 0, 0.0
    check_at = min(limits.first_event_s, limits.total_s)
    quiet = min(check_at, limits.between_events_s, QUIET_S, limits.total_s / 60)
    sock.settimeout(max(quiet, 0.05))
    time.sleep(max(at - clock(), 0.0))
    done.t0 = t0 = clock()
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(request)  # a request refused half-way may have an answer all the same
        while True:
            try:
                data: bytes | None = sock.recv(65536)
            except TimeoutError:
                data = None
            now = clock() - t0
            if data:
                reads.append((now, data))
                size += len(data)
                events += data.count(b"data:")
                if data.endswith(b"0\r\n\r\n"):
                    sock.settimeout(LINGER_S)  # most likely the end: look soon whether it is
            elif data is not None:
                break
            if size > MAX_BODY_BYTES or events > most_events:
                done.end, done.detail = "endless", f"{events} events, {size} bytes and no end"
                break
            if data is None or now > check_at:
                done.end, done.detail = _overdue(reads, now, limits)
                if done.detail:
                    break
                check_at = min(now + limits.between_events_s, limits.total_s)
    except OSError as err:
        done.end, done.detail, now = "reset", err.strerror or str(err), clock() - t0
    finally:
        sock.close()
    done.end_s = now
    return done


def _overdue(reads: Pieces, now: float, limits: Limits) -> tuple[str, str]:
    """How and why to end it; a comment in the stream is a sign of life, but not for ever."""
    status, _, pieces, state = decode_http(reads)
    reading = Reading.of(Exchange(pieces, "eof", now, status))
    if reading.done or state == "whole" or (reads and state == "malformed"):
        return "timeout", "the connection was left open"
    last = reading.arrivals[-1] if reading.arrivals else 0.0
    silent = last and now - reads[-1][0] >= limits.between_events_s
    if silent or now - last >= limits.first_event_s:
        return "timeout", f"no token for {now - last:.1f} s"
    return ("endless", f"no end after {now:.1f} s") if now >= limits.total_s else ("closed", "")


# ---------------------------------------------------------------------------------- stream


def timed_lines(pieces: Pieces) -> Iterator[tuple[float, bytes]]:
    """Split a body at LF, CR LF or CR; each line with the time of the read that completed it."""
    upto = list(itertools.accumulate(len(data) for _, data in pieces))
    end = at = 0
    for line in b"".join(data for _, data in pieces).splitlines(keepends=True):
        end += len(line)
        bare = line.rstrip(b"\r\n")
        while upto[at] < min(end, end - len(line) + len(bare) + 1):
            at += 1
        yield pieces[at][0], bare


def sse_events(pieces: Pieces) -> Iterator[tuple[float, bytes, bytes, bool]]:
    """Split a stream into events: (time of its last data line, name, data, closed by a blank line).

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """
    name, data, last, bom = b"", list[bytes](), 0.0, b"\xef\xbb\xbf"
    for t, raw in timed_lines(pieces):
        line, bom = raw.removeprefix(bom), b""
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            data.append(value)
            last = t
        elif key == b"event":
            name = value
        elif not line:
            if data:
                yield last, name, b"\n".join(data), True
            name, data = b"", []
    if data:
        yield last, name, b"\n".join(data), False


# ------------------------------------------------------------------- one request's figures


def _count(value: Any) -> int | None:
    """A number of tokens; what no request can have is none."""
    return value if type(value) is int and 0 <= value < 10**8 else None


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """The text of a field: a string, or parts that hold strings."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    if isinstance(value, dict):
        return _text(value.get("text")) + _text(value.get("thinking"))
    return value if isinstance(value, str) else ""


def _line(text: str) -> str:
    """A text in one line, without what a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _message(error: Any) -> str:
    """The message of an error body (JSON, HTML or plain), in one short line."""
    if isinstance(error, bytes):
        try:
            error = json.loads(error)
        except (ValueError, RecursionError):
            text = error[:20_000].decode("utf-8", "replace")
            text = re.sub(r"(?is)<(style|script)\b.*?</\1>|<[^>]*>", " ", text)
            error = f"an HTML page: {text}" if re.match(rb"\s*<[!a-zA-Z]", error) else text
    for key in ("error", "message", "detail"):
        error = _dict(error).get(key) or error
    return _line(error if isinstance(error, str) else json.dumps(error, default=str))[:300]


LATE = ("timeout", "endless", "time_up")  # how a request ends that was broken off here
_CUT = {
    "eof": "no finish reason and no [DONE] came",
    "incomplete": "the body was cut",
    "malformed": "the answer is not HTTP/1.1",
}


@dataclass
class Reading:
    """True figures of one streamed request; times in seconds after it was sent.

    A *token-bearing event* has a choice whose delta holds non-empty ``content``, ``reasoning``,
    ``reasoning_content`` or ``refusal``, or a tool-call fragment with a name or arguments. Roles,
    empty strings, usage, progress and comments are not tokens.
    """

    error: str | None = None
    """http, connect, timeout, endless, time_up, stream_error, cut, no_output or bad_json; None: a
    good request."""
    detail: str = ""
    done: bool = False  # whether ``[DONE]`` came
    finish_reason: str | None = None
    arrivals: list[float] = field(default_factory=list)  # times of the token-bearing events
    ttfo_s: float | None = None  # first content, refusal or tool call: what the user waits for
    stream_end_s: float = 0.0
    text: str = ""
    tool_names: str = ""
    reasoning_field: str | None = None
    model: str | None = None
    usage_tokens: int = 0
    id_tokens: int = 0
    first_chunk_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    timings: Json = field(default_factory=dict)  # llama.cpp's own figures of the request

    @classmethod
    def of(cls, exchange: Exchange) -> Reading:
        """Read an exchange by the true definitions."""
        self = cls(stream_end_s=exchange.end_s)
        bad_json = torn = False
        error: Any = None
        for t, name, raw, closed in sse_events(exchange.pieces):
            data = raw.strip()
            if data == b"[DONE]":
                self.done, self.stream_end_s = True, t
                break
            try:
                event = json.loads(data.decode() or "{}")
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict):
                bad_json, torn = bad_json or closed, not closed
                continue
            failed = name == b"error" or event.get("object") == "error"
            error = event if failed else event.get("error")
            if error not in (None, False, ""):
                break
            self._take(t, event)
        self._judge(exchange, error, bad_json, torn)
        return self

    def _take(self, t: float, event: Json) -> None:
        """Add one event: its usage, its token ids, and its text as one arrival."""
        usage = _dict(event.get("usage"))
        completed = _count(usage.get("completion_tokens")) or 0
        prompt = _dict(usage.get("prompt_tokens_details"))
        completion = _dict(usage.get("completion_tokens_details"))
        for name, source in (
            ("prompt_tokens", usage),
            ("cached_tokens", prompt),
            ("reasoning_tokens", completion),
        ):
            if _count(source.get(name)) is not None:
                setattr(self, name, source[name])
        self.usage_tokens = completed or self.usage_tokens
        self.timings = _dict(event.get("timings")) or self.timings
        self.model = self.model or _text(event.get("model")) or None
        heard = output = False
        for choice in _dicts(event.get("choices")):
            ids = choice.get("token_ids")
            self.id_tokens += len(ids) if isinstance(ids, list) else 0
            self.finish_reason = self.finish_reason or _text(choice.get("finish_reason")) or None
            thought, said = self._delta(_dict(choice.get("delta")))
            heard, output = heard or thought or said, output or said
        if heard:
            if not self.arrivals:
                self.first_chunk_tokens = completed or self.id_tokens or None
            self.arrivals.append(t)
        if output and self.ttfo_s is None:
            self.ttfo_s = t

    def _delta(self, delta: Json) -> tuple[bool, bool]:
        """Take one choice's delta: whether it holds reasoning, whether it holds output."""
        thought, said = "", _text(delta.get("content")) + _text(delta.get("refusal"))
        for name in ("reasoning", "reasoning_content"):  # one text under both names counts once
            if not thought and (thought := _text(delta.get(name))):
                self.reasoning_field = self.reasoning_field or name
        for call in _dicts(delta.get("tool_calls")):
            function = _dict(call.get("function"))
            self.tool_names += _text(function.get("name"))
            said += _text(function.get("name")) + _text(function.get("arguments"))
        self.text += thought + said
        return bool(thought), bool(said)

    def _judge(self, exchange: Exchange, error: Any, bad_json: bool, torn: bool) -> None:
        """Name the failure, the most telling one first; nothing after ``[DONE]`` is one."""
        self.detail = exchange.detail
        if exchange.end == "connect":
            self.error = "connect"
        elif exchange.status and not 200 <= exchange.status < 300:
            self.error = "http"
            place = exchange.header("location") if exchange.status // 100 == 3 else ""
            said = f"redirected to {place}: measure that address" if place else ""
            self.detail = f"HTTP {exchange.status}: {said or _message(exchange.body)}"
        elif error not in (None, False, ""):
            self.error, self.detail = "stream_error", _message(error)
        elif not self.done and exchange.end != "eof":
            self.error = exchange.end if exchange.end in LATE else "cut"
        elif bad_json:
            self.error, self.detail = "bad_json", "an event of the stream is not a JSON object"
        elif not self.arrivals:
            kind = exchange.header("content-type").partition(";")[0]
            self.error = "no_output"
            self.detail = _message(exchange.body) or "an empty body"
            if kind not in ("", "text/event-stream"):
                self.detail = f"the answer is {kind}, not a stream of events: {self.detail}"
        elif not self.done and (torn or self.finish_reason is None):
            self.error = "cut"
        if self.error in ("cut", *LATE):
            why = self.detail or _CUT.get(exchange.end, "the connection was reset")
            self.detail = f"{why}; {len(self.arrivals)} token events had come"

    @property
    def ok(self) -> bool:
        """Whether the request did all it should."""
        return self.error is None

    @property
    def completion_tokens(self) -> int:
        """Generated tokens, reasoning included."""
        return self.usage_tokens or self.id_tokens or len(self.arrivals)

    @property
    def token_source(self) -> str:
        """usage, token_ids, or chunks, which is a lower bound."""
        return "usage" if self.usage_tokens else "token_ids" if self.id_tokens else "chunks"

    @property
    def ttft_s(self) -> float | None:
        """Request sent to first token-bearing event."""
        return self.arrivals[0] if self.arrivals else None

    @property
    def e2e_s(self) -> float | None:
        """Request sent to last token-bearing event."""
        return self.arrivals[-1] if self.arrivals else None

    @property
    def decode_tok_s(self) -> float | None:
        """Tokens after the first event over the time to the last one; TPOT is its inverse."""
        window = self.arrivals[-1] - self.arrivals[0] if self.arrivals else 0.0
        tokens = self.completion_tokens - (self.first_chunk_tokens or 1)
        return tokens / window if window else None

    @property
    def e2e_tok_s(self) -> float | None:
        """All tokens over the whole request; hidden reasoning cannot inflate it."""
        return self.completion_tokens / self.e2e_s if self.e2e_s else None

    @property
    def gaps_s(self) -> list[float]:
        """Times between token-bearing events."""
        return [after - before for before, after in itertools.pairwise(self.arrivals)]

    def tokens_by(self, t: float) -> float:
        """Tokens that had come by ``t``, those of events after the first taken as equal."""
        first, seen = self.first_chunk_tokens or 1, bisect.bisect_right(self.arrivals, t)
        each = (self.completion_tokens - first) / max(len(self.arrivals) - 1, 1)
        return first + each * (seen - 1) if seen else 0.0

    def hidden_reasoning(self) -> str:
        """Say why the decode speed cannot be known: tokens were counted that were never streamed.

        Certain where the server counts reasoning and streams none, or counts more tokens than the
        text has bytes. Inferred where there is too little text for so many tokens (prose has about
        4 bytes a token), in too few events, and its first piece came late.
        """
        total, size = self.usage_tokens, len(self.text.encode("utf-8", "replace"))
        if total and self.reasoning_tokens and not self.reasoning_field:
            return f"{self.reasoning_tokens} of {total} tokens are reasoning that was not streamed"
        late = total >= TOO_SHORT and (self.ttft_s or 0.0) > 0.25 * (self.e2e_s or 0.0)
        sparse = size < 2.4 * total and total > 1.25 * len(self.arrivals)
        if total > size + 16 or (late and sparse):
            return f"{total} tokens were counted, but only {size} bytes of text were streamed"
        return ""


class Published(NamedTuple):
    """What the script of October 2026 makes of the same bytes."""

    ok: bool
    ttft_s: float = 0.0
    tok_s: float = 0.0
    tokens: int = 0
    end_s: float = 0.0

    @classmethod
    def of(cls, exchange: Exchange) -> Published:
        """Read an exchange as the published script does, its blind spots included.

        It reads line by line, knows only ``content`` and ``reasoning_content``, divides all tokens
        by first text to end of body, and fails only on a refused or reset connection, an HTTP
        error or a line that is not JSON: a cut body and an error event pass for success.
        """
        if exchange.end not in ("eof", "incomplete") or not 200 <= exchange.status < 300:
            return cls(False)
        first, tokens, chunks = None, 0, 0
        try:
            for t, raw in timed_lines(exchange.pieces):
                line = raw.decode().strip()
                if not line.startswith("data:") or line == "data: [DONE]":
                    continue
                event = json.loads(line[5:])
                if event.get("usage"):
                    tokens = int(event["usage"].get("completion_tokens") or tokens)
                for choice in event.get("choices") or []:
                    delta = choice.get("delta") or {}
                    if delta.get("content") or delta.get("reasoning_content"):
                        chunks += 1
                        first = t if first is None else first
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls(False)
        start, tokens = exchange.end_s if first is None else first, tokens or chunks
        speed = tokens / max(exchange.end_s - start, 1e-6)
        return cls(True, start + exchange.connect_s, speed, tokens, exchange.end_s)


# --------------------------------------------------------------------------------- prompts

TOPICS = (
    "por qué los faros antiguos usaban lentes de vidrio y qué los reemplazó",
    "cómo se forma el granizo y por qué daña más a unos cultivos que a otros",
    "qué hace un archivo municipal y cómo ayuda a contar la historia de un barrio",
    "por qué el pan de masa madre fermenta despacio y qué cambia en su sabor",
    "cómo funciona una esclusa y qué papel tuvo en el comercio por los ríos",
    "cómo se restaura un mural sin borrar la mano de quien lo pintó",
)
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Json = {"name": "get_weather", "description": "Weather of a city.", "parameters": WEATHER}
LONG_LINES, LONG_TOKENS = 3000, 46_000


def writing_prompt(user: int = 0) -> str:
    """About 200 Spanish words are asked for: some 300 tokens."""
    topic = TOPICS[user % len(TOPICS)]
    return f"Escribe en español neutro, en un solo párrafo de unas 200 palabras, {topic}."


def log_text(lines: int) -> str:
    """The first lines of one fixed event log, about 15 tokens each."""
    return " ".join(f"paso {n}: la tarea terminó en {n * 7 % 97} ms." for n in range(lines))


def long_prompt(lines: int = LONG_LINES) -> str:
    """An event log to summarise; 3,000 lines are about 46,000 tokens."""
    return f"Resume en pocas frases este registro de eventos. {log_text(lines)}"


def varied_prompts() -> dict[str, str]:
    """Four kinds of work, which speculation likes or dislikes."""
    notes = " ".join(
        f"En la visita {n} la cuadrilla midió el caudal del canal {n % 5 + 1}, anotó una pérdida "
        f"del {n % 13 + 2} % y propuso revisar la compuerta número {n % 7 + 1} antes del riego."
        for n in range(400)
    )
    return {
        "code": "Escribe en Python una clase que guarde lecturas de sensores (hora, sensor, valor) "
        "y devuelva el promedio por sensor y por hora, con pruebas en pytest. Solo código.",
        "json_tools": "Devuelve solo un JSON válido con esta forma: "
        '{"llamadas":[{"herramienta":"agenda"|"correo"|"mapa","argumentos":{"asunto":str,'
        '"prioridad":1-3}}]} con 8 llamadas para organizar la mudanza de una biblioteca.',
        "summary": f"Resume en 8 viñetas lo más importante de estas notas: {notes}",
        "writing": writing_prompt(),
    }


RED_SQUARE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAeUlEQVR4nO3PQQkAMAzAwEqof3WT"
    "MhF7HINABFzm7H7dcEEDWtCAFjSgBQ1oQQNa0IAWNKAFDWhBA1rQgBY0oAUNaEEDWtCAFjSgBQ1oQQNa0IAWNKAFDWhB"
    "A1rQgBY0oAUNaEEDWtCAFjSgBQ1oQQNa0IAWNKAFj13QTQDxOzzMEAAAAABJRU5ErkJggg=="
)
"""A PNG of 64 x 64 pixels, all (224, 16, 16)."""


@dataclass(frozen=True)
class Ask:
    """One request to make."""

    content: Any
    max_tokens: int = 300
    temperature: float = 0.0
    nonce: bool = True
    """Whether a fresh word stands at the very start, so that no cached prefix can answer."""
    extra: Json = field(default_factory=dict)

    @property
    def most_events(self) -> int:
        """More events than this are no answer to so few tokens: the stream does not end."""
        return 8 * self.max_tokens + 256

    def body(self, model: str, without: Collection[str]) -> bytes:
        """The request as JSON, without the fields that the server refused."""
        content = self.content
        if self.nonce and isinstance(content, str):
            content = f"[ronda {secrets.token_hex(6)}] {content}"
        fields = {
            "model": model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "chat_template_kwargs": {"enable_thinking": False},
            **self.extra,
        }
        return json.dumps({k: v for k, v in fields.items() if k not in without}).encode()


# ---------------------------------------------------------------------------------- client

OPTIONAL = {
    "chat_template_kwargs": r"chat_template_kwargs|enable_thinking",
    "stream_options": r"stream_options|include_usage",
    "seed": r"\bseed\b",
    "temperature": r"\btemperature\b",
}
"""What may be left out when a server refuses it, and how refusals name it."""
TOO_LONG = re.compile(
    r"context (length|size|window)|max_model_len|maximum (context|model|input|sequence) ?len"
    r"|exceed\w*[\w ]*context|longer than the model|prompt is too long",
    re.IGNORECASE,
)


@dataclass
class Answer:
    """One finished request."""

    exchange: Exchange
    reading: Reading

    @property
    def ok(self) -> bool:
        """Whether its figures count."""
        return self.reading.ok

    @property
    def t0(self) -> float:
        """When it was sent."""
        return self.exchange.t0

    @functools.cached_property
    def published(self) -> Published:
        """The same by the published method."""
        return Published.of(self.exchange)

    @functools.cached_property
    def too_long(self) -> bool:
        """Whether the prompt does not fit the context: not supported, which is no failure."""
        refused = self.exchange.status in (400, 413, 422, 500)
        return refused and bool(TOO_LONG.search(_message(self.exchange.body)))

    @property
    def failed(self) -> bool:
        """Whether it counts against the server."""
        return not (self.ok or self.too_long or self.reading.error == "time_up")


@dataclass
class Client:
    """Sends requests to one model, remembers what it refuses, and counts all of them."""

    endpoint: Endpoint
    model: str
    api_key: str | None = field(repr=False)
    limits: Limits
    deadline: float = math.inf
    dropped: list[str] = field(default_factory=list)
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)  # one of each request
    _live: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, path: str) -> str | None:
        """GET a page; None where it is not to be had within some seconds."""
        limits = Limits(min(self.limits.connect_s, 5), 5, 5, 10)
        try:
            sock = self.endpoint.connect(limits.connect_s)
        except OSError:
            return None
        done = transfer(sock, self.endpoint.request("GET", path, key=self.api_key), limits).decode()
        good = done.end == "eof" and done.status == 200
        return done.body.decode("utf-8", "replace") if good else None

    def get_json(self, *paths: str) -> Json:
        """GET the first page there is of these as a JSON object, or an empty one."""
        for path in paths:
            with contextlib.suppress(ValueError, RecursionError):
                if found := _dict(json.loads(self.get(path) or "")):
                    return found
        return {}

    def ask(self, ask: Ask, label: str) -> Answer:
        """Make one request and count it."""
        return self.burst([ask], label)[0]

    def burst(self, asks: Sequence[Ask], label: str) -> list[Answer]:
        """Make requests at once and count them; a field that is refused is dropped, once.

        Raises:
            _Stop: The time of a quick round was up before they had ended.
        """
        answers = self._send(asks)
        if refused := self._refused(answers):
            self.dropped += refused
            answers = self._send(asks)
        with self._lock:
            for number, answer in enumerate(answers, 1):
                self._tally(answer, label if len(asks) == 1 else f"{label}, user {number}")
        if any(answer.reading.error == "time_up" for answer in answers):
            said = f"a quick round ends after {QUICK_S:.0f} s, which were up in: {label}"
            raise _Stop("time_up", f"{said}; that and the rest were not measured")
        return answers

    def abort(self) -> None:
        """Break off what is under way."""
        for sock in tuple(self._live):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _send(self, asks: Sequence[Ask]) -> list[Answer]:
        """Connect all first, then write each request a moment after the one before it."""
        done = [Exchange() for _ in asks]
        jobs: list[tuple[int, socket.socket, float]] = []
        for number in range(len(asks)):
            before = clock()
            try:
                sock = self.endpoint.connect(self.limits.connect_s)
            except OSError as err:
                done[number:] = [Exchange(detail=err.strerror or str(err))] * (len(asks) - number)
                break
            jobs.append((number, sock, clock() - before))
        start = clock() + STAGGER_S * len(jobs)
        left = min(self.limits.total_s, max(self.deadline - start, 0.1))
        limits = replace(self.limits, total_s=left)

        def run(number: int, sock: socket.socket, connect_s: float) -> None:
            self._live.add(sock)
            at, most = start + number * STAGGER_S, asks[number].most_events
            done[number] = transfer(sock, requests[number], limits, at, most)
            done[number].connect_s = connect_s
            if done[number].end == "endless" and clock() >= self.deadline:
                done[number].end = "time_up"
            self._live.discard(sock)

        bodies = [ask.body(self.model, self.dropped) for ask in asks]
        path = "/v1/chat/completions"
        requests = [self.endpoint.request("POST", path, body, self.api_key) for body in bodies]
        threads = [threading.Thread(target=run, args=job, daemon=True) for job in jobs[1:]]
        for thread in threads:
            thread.start()
        for job in jobs[:1]:
            run(*job)
        for thread in threads:
            thread.join()
        return [Answer(exchange, Reading.of(exchange)) for exchange in map(Exchange.decode, done)]

    def _refused(self, answers: Sequence[Answer]) -> list[str]:
        """The optional fields that a 400 names; or, before anything went well, the rarer ones."""
        refused = [a for a in answers if a.exchange.status in (400, 422) and not a.too_long]
        text = " ".join(a.reading.detail for a in refused)
        left = [name for name in OPTIONAL if name not in self.dropped]
        named = [name for name in left if re.search(OPTIONAL[name], text)]
        unsure = refused and not any(reading.ok for reading in self.readings)
        return named or [name for name in left if unsure and name != "temperature"]

    def _tally(self, answer: Answer, label: str) -> None:
        reading = answer.reading
        self.readings.append(reading)
        if self.api_key:
            reading.detail = reading.detail.replace(self.api_key, "***")
        if answer.failed:
            self.failed += 1
            self.errors.append(f"{label}: {reading.error}: {reading.detail or 'no more is known'}")


# -------------------------------------------------------------------------------- counters

_SERIES = re.compile(r"([A-Za-z_:][\w:]*)(\{.*\})?[ \t]+(\S+)")
GENERATED = (
    "vllm:generation_tokens_total",
    "sglang:generation_tokens_total",
    "llamacpp:tokens_predicted_total",
)


def parse_counters(text: str, model: str) -> dict[str, float]:
    """Read a Prometheus page: each series summed over its labels, positions as ``name@position``.

    ``_created`` times, histogram buckets and what cannot be a count (NaN, infinity) are left out;
    where series name our model, those of other models are too.
    """
    rows = []
    for match in filter(None, map(_SERIES.match, text.splitlines())):
        name, labels, value = match[1], match[2] or "", math.nan
        with contextlib.suppress(ValueError):
            value = float(match[3])
        if abs(value) < 1e15 and not name.endswith(("_created", "_bucket")):  # NaN is not less
            rows.append((name, labels, value))
    ours = f'model_name="{model}"'
    named = any(ours in labels for _, labels, _ in rows)
    totals: dict[str, float] = {}
    for name, labels, value in rows:
        if not (named and "model_name=" in labels and ours not in labels):
            position = re.search(r'position="(\d+)"', labels)
            key = f"{name}@{position[1]}" if position else name
            totals[key] = totals.get(key, 0.0) + value
    return totals


def _first(counters: Mapping[str, float], *names: str) -> str:
    return next((name for name in names if name in counters), "")


def acceptance(before: Mapping[str, float], after: Mapping[str, float]) -> Json | None:
    """What the counters say of speculation between two readings of ``/metrics``.

    vLLM and llama.cpp: rate = accepted / drafted, length = 1 + accepted / drafts, per position =
    accepted there / drafts. SGLang counts verify steps only: a length and no rate. 0/0 is not
    measured (null); a counter that fell means a restart (None).
    """
    delta = {name: value - before.get(name, 0.0) for name, value in after.items()}
    own = "spec_decode_num_drafts_total"
    source = _first(after, f"vllm:{own}", f"llamacpp:{own}", "sglang:spec_verify_calls_total")
    if not source:
        return None
    name, steps = source.removesuffix("drafts_total"), delta[source]
    drafted = delta.get(f"{name}draft_tokens_total", 0.0)
    accepted = delta.get(f"{name}accepted_tokens_total", 0.0)
    made = steps + accepted
    if source.startswith("sglang:"):
        made = delta.get("sglang:generation_tokens_total", 0.0)
        made -= delta.get("sglang:num_requests_total", 0.0)
    at = f"{name}accepted_tokens_per_pos_total@"
    positions = sorted((n for n in after if n.startswith(at)), key=lambda n: int(n[len(at) :]))
    if min(steps, drafted, accepted, made) < 0:
        return None
    rates = [round(100 * delta[n] / steps, 2) for n in positions] if steps else []
    return _acceptance(source, steps, drafted, accepted, made, rates)


def acceptance_of(readings: Iterable[Reading]) -> Json | None:
    """The same from the timings that llama.cpp sends with each answer."""
    timings = [r.timings for r in readings if r.ok and "draft_n" in r.timings]
    names = ("draft_n", "draft_n_accepted", "predicted_n")
    drafted, accepted, made = (sum(_count(t.get(n)) or 0 for t in timings) for n in names)
    figures = _acceptance("timings.draft_n", made - accepted, drafted, accepted, made, [])
    return figures if timings else None


def _acceptance(
    source: str, steps: float, drafted: float, accepted: float, made: float, rates: list[float]
) -> Json:
    return {
        "rate_pct": round(100 * accepted / drafted, 2) if drafted else None,
        "mean_length": round(made / steps, 3) if steps > 0 else None,
        "per_position_pct": rates,
        "drafts": int(steps),
        "source": source,
    }


def mem_available() -> int | None:
    """MemAvailable of this machine in bytes."""
    with contextlib.suppress(OSError):
        if found := re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text()):
            return int(found[1]) * 1024
    return None


@dataclass
class Watch:
    """Looks at the server around the requests: its counters, and whether it restarted."""

    client: Client
    probe: Callable[[], str | None] | None
    first: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)
    fell: bool = False

    def mark(self) -> dict[str, float]:
        """Read the counters, and who the server is."""
        pages = map(self.client.get, ("/metrics", "/v1/metrics"))  # the second is NIM's
        counters = parse_counters(next(filter(None, pages), ""), self.client.model)
        made = _first(counters, *GENERATED)
        self.fell |= bool(made) and counters[made] < self.last.get(made, 0.0)
        identity = None
        with contextlib.suppress(Exception):  # a probe that fails has seen nothing
            identity = self.probe() if self.probe else None
        started = counters.get("process_start_time_seconds")
        if identity or started:
            self.identities.append(identity or str(started))
        self.first, self.last = self.first or counters, counters or self.last
        return counters

    @property
    def restarted(self) -> bool | None:
        """None where it could not be observed."""
        if self.fell or len(set(self.identities)) > 1:
            return True
        return False if len(self.identities) > 1 else None


# ------------------------------------------------------------------------------ statistics


def spread(values: Iterable[float | None], scale: float = 1.0) -> Json | None:
    """Median, range and number of the values that are known, and the values."""
    known = [round(value * scale, 4) for value in values if value is not None]
    if not known:
        return None
    middle, least, most = round(statistics.median(known), 4), min(known), max(known)
    return {"median": middle, "min": least, "max": most, "n": len(known), "values": known}


def percentiles(values: Iterable[float], scale: float = 1.0) -> Json:
    """Nearest-rank percentiles, null where n is so small that the rank would be the maximum."""
    known = sorted(round(value * scale, 4) for value in values)
    figures: Json = {"n": len(known), "p50": statistics.median(known) if known else None}
    for name, share, needs in (("p95", 0.95, 20), ("p99", 0.99, 100)):
        enough = len(known) >= needs
        figures[name] = known[math.ceil(share * len(known)) - 1] if enough else None
    return figures | {"max": known[-1] if known else None}


def decode_spread(readings: Sequence[Reading]) -> Json | None:
    """Decode speed; nothing where reasoning was hidden, for then it cannot be known."""
    if any(reading.hidden_reasoning() for reading in readings):
        return None
    return spread(reading.decode_tok_s for reading in readings)


def good_readings(answers: Iterable[Answer]) -> list[Reading]:
    """The readings that count."""
    return [answer.reading for answer in answers if answer.ok]


def single_figures(answers: Sequence[Answer], warmup: Answer | None) -> Json:
    """One user at a time."""
    good = good_readings(answers)
    decode = decode_spread(good)
    tpot = spread(1000 / r.decode_tok_s if r.decode_tok_s else None for r in good)
    tokens = spread(reading.completion_tokens for reading in good)
    sources = {reading.token_source for reading in good}
    events = max(sum(len(reading.arrivals) for reading in good), 1)
    return {
        "n": len(good),
        "failed": sum(answer.failed for answer in answers),
        "ttft_ms": spread((r.ttft_s for r in good), 1000),
        "ttfo_ms": spread((r.ttfo_s for r in good), 1000),
        "decode_tok_s": decode,
        "e2e_tok_s": spread(r.e2e_tok_s for r in good),
        "tpot_ms": tpot if decode else None,
        "e2e_ms": spread((r.e2e_s for r in good), 1000),
        "icl_ms": percentiles((gap for r in good for gap in r.gaps_s), 1000),
        "tokens_per_event": round(sum(r.completion_tokens for r in good) / events, 3),
        "completion_tokens": tokens,
        "prompt_tokens": spread(r.prompt_tokens for r in good),
        "finish_reasons": dict(Counter(r.finish_reason or "none" for r in good)),
        "token_source": min(sources, default=None),  # chunks, the weakest, sorts first
        "comparable": bool(tokens and tokens["median"] >= TOO_SHORT and "chunks" not in sources),
        "warmup_ttft_ms": (warmup.reading.ttft_s or 0.0) * 1000 or None if warmup else None,
    }


def burst_speeds(answers: Sequence[Answer]) -> tuple[float | None, float | None]:
    """Tokens a second of all users: over the wall time, and while all of them were decoding."""
    runs = [(a.t0, a.reading) for a in answers]
    begin, end = min(t0 for t0, _ in runs), max(t0 + r.arrivals[-1] for t0, r in runs)
    all_from = max(t0 + r.arrivals[0] for t0, r in runs)
    all_to = min(t0 + r.arrivals[-1] for t0, r in runs)
    steady = None
    if all_to - all_from > 0.2 * (end - begin):
        inside = sum(r.tokens_by(all_to - t0) - r.tokens_by(all_from - t0) for t0, r in runs)
        steady = inside / (all_to - all_from)
    total = sum(r.completion_tokens for _, r in runs)
    return (total / (end - begin) if end > begin else None), steady


def concurrent_figures(rounds: Sequence[Sequence[Answer]], scenario: str | None = None) -> Json:
    """Several users at once; where any failed there is no speed, for survivors flatter."""
    answers = [answer for burst in rounds for answer in burst]
    whole = all(answer.ok for answer in answers)
    good = good_readings(answers) if whole else []
    speeds = [burst_speeds(burst) for burst in rounds] if whole else []
    starts = [[answer.t0 for answer in burst] for burst in rounds]
    school = spread(r.e2e_tok_s for r in good)  # the school divides by the whole time of a request
    return {
        "users": len(rounds[0]),
        "rounds": len(rounds),
        "requests": len(answers),
        "failed": sum(not answer.ok for answer in answers),
        "aggregate_tok_s": spread(aggregate for aggregate, _ in speeds),
        "steady_tok_s": spread(steady for _, steady in speeds),
        "per_user_tok_s": school if scenario else decode_spread(good),
        "ttft_ms": spread((r.ttft_s for r in good), 1000),
        "e2e_s": percentiles(r.e2e_s or 0.0 for r in good) if good else None,
        "start_spread_ms": round(1000 * max(max(t) - min(t) for t in starts), 3) if whole else None,
        "scenario": scenario,
    }


def long_figures(answers: Sequence[Answer], unfit: str = "") -> Json:
    """The long prompt: prefill speed = uncached prompt tokens / TTFT."""
    good = good_readings(answers)
    failed = "not_supported" if unfit or any(a.too_long for a in answers) else "failed"
    figures: Json = {
        "wall_s": spread(r.stream_end_s for r in good),
        "ttft_ms": spread((r.ttft_s for r in good), 1000),
        "prefill_tok_s": spread(
            (r.prompt_tokens - (r.cached_tokens or 0)) / r.ttft_s
            for r in good
            if r.prompt_tokens and r.ttft_s
        ),
    }
    spreads = {f"{name}_spread": value for name, value in figures.items()}
    medians = {name: value["median"] if value else None for name, value in figures.items()}
    return {
        **medians,
        **spreads,
        "state": "measured" if good else failed,
        "prompt_tokens": good[-1].prompt_tokens if good else None,
        "cached_tokens": good[-1].cached_tokens if good else None,
        "n": len(good),
        "reason": unfit or next((a.reading.detail for a in answers if not a.ok), ""),
    }


def kendall_p(series: Sequence[float]) -> float:
    """Two-sided p of a trend (Kendall's tau against time, normal approximation)."""
    n = len(series)
    score = sum((b > a) - (b < a) for a, b in itertools.combinations(series, 2))
    sigma = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return math.erfc(max(abs(score) - 1, 0) / sigma / math.sqrt(2))


def sustained_figures(done: Iterable[tuple[str, Answer]], start: float, seconds: float) -> Json:
    """Tokens by the minute in which they came, and the drift of the decode speed.

    For the drift each request is set against the median of its own kind of prompt, so that the
    mix plays no part; the first minute is left out of the trend.
    """
    runs = [(kind, a.t0 - start, a.reading) for kind, a in done if a.ok]
    width = min(60.0, seconds / 3)
    edges = [width * n for n in range(int(seconds / width + 1e-6) + 1)]
    came = [sum(r.tokens_by(edge - t0) for _, t0, r in runs) for edge in edges]
    speeds: dict[str, list[tuple[float, float]]] = {}
    for kind, t0, reading in runs:
        if reading.decode_tok_s:
            speeds.setdefault(kind, []).append((t0, reading.decode_tok_s))
    relative = [
        (t0, speed / statistics.median(s for _, s in same))
        for same in speeds.values()
        for t0, speed in same
    ]

    def usual(begin: float, end: float) -> float | None:
        within = [speed for t0, speed in relative if begin <= t0 < end]
        return statistics.median(within) if within else None

    early, late = usual(0, seconds / 3), usual(seconds * 2 / 3, math.inf)
    drift = round(100 * (late / early - 1), 2) if early and late else None
    series = [s for a, b in itertools.pairwise(edges[1:]) if (s := usual(a, b)) is not None]
    verdict = "too_short"
    if drift is not None and len(series) >= 6:
        real = abs(drift) > 5 and kendall_p(series) < 0.05
        verdict = ("slower" if drift < 0 else "faster") if real else "none"
    total = sum(r.tokens_by(seconds - t0) for _, t0, r in runs)
    return {
        "tok_s": round(total / seconds, 3) if runs else None,
        "per_minute_tok_s": [round((b - a) / width, 3) for a, b in itertools.pairwise(came)],
        "drift_pct": drift,
        "drift": verdict,
    }


def published_total(rounds: Sequence[Sequence[Answer]]) -> float | None:
    """All tokens over the wall time of a burst, as the published method has it."""
    speeds = []
    for burst in rounds:
        if any(not answer.ok or not answer.published.tokens for answer in burst):
            return None
        wall = max(a.t0 + a.published.end_s for a in burst) - min(a.t0 for a in burst)
        speeds.append(sum(a.published.tokens for a in burst) / wall)
    return round(statistics.median(speeds), 3)


def published_median(answers: Iterable[Answer], name: str, scale: float = 1.0) -> float | None:
    """Median of one of the published method's figures, absurd ones left out."""
    seen = [a.published for a in answers if a.ok and a.published.ok]
    figure = spread((getattr(p, name) for p in seen if 0 < p.tok_s < ABSURD_TOK_S), scale)
    return float(figure["median"]) if figure else None


def degenerate(text: str) -> str:
    """Say why a text is not words (``!!!!``, ``lockhandlehandle``, no letters), or nothing."""
    text = text.strip()[:4000]
    dense = "".join(text.split())
    if sum(c.isalpha() for c in dense) < max(0.5 * len(dense), 4):
        return f"the answer has hardly any letters: {text[:40]!r}"
    if text.count("\ufffd") * 20 > len(text):
        return "the answer is broken text"
    repeated = re.search(r"(.{1,20}?)\1{5,}", text, re.DOTALL)
    words = re.findall(r"\w+", text.lower())
    few = len(words) >= 12 and len(set(words)) < min(0.25 * len(words), 25)
    if few or (repeated and len(repeated[0]) > 0.5 * len(text)):
        return f"the answer repeats itself: {text[-40:]!r}"
    return ""


# ------------------------------------------------------------------------------- the round

PARTS = ("single", "concurrent", "long", "stability")  # in the order of a round
METHODS = ("october", "school")
SCHOOL_LADDER = (1, 2, 4, 8, 16)
TOO_SHORT = 64  # answers with fewer tokens say little of decode speed
ABSURD_TOK_S = 5000.0
"""What the published method prints where it saw no text at all; no single stream comes near."""
SLOW_S = 10.0  # a request that takes longer is not repeated in a quick round
QUICK_S, QUICK_FIRST_S = 117.0, 75.0
"""When a quick round ends, to 2 s, and how long it waits for a first token: the slowest published
row takes 48 s for its long prompt, and 113 s for the whole quick round."""


Part = tuple[str, Callable[[], None]]  # its name, and what runs it


class _Stop(Exception):
    """The rest of the round makes no sense: a word for programs, and why."""


@dataclass
class StandardRound:
    """Runs the parts in order, keeps what each measured, and saves after every request."""

    client: Client
    watch: Watch
    data: Json
    ladder: Sequence[int]
    context: int | None
    capabilities: Collection[str]
    quick: bool
    say: Callable[[str], None]
    save: Callable[[Json], None]
    notes: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    @property
    def users(self) -> int:
        """Users of all parts but the ladder."""
        return 4 if 4 in self.ladder else self.ladder[-1]

    def run(self, parts: Iterable[Part]) -> Json:
        """Run the parts; what was measured survives Ctrl-C and a server that dies."""
        try:
            self.watch.mark()
            for name, part in parts:
                self.say(name)
                before = len(self.client.readings), self.client.failed
                part()
                self.watch.mark()
                made, failed = len(self.client.readings) - before[0], self.client.failed - before[1]
                if made and made == failed:
                    raise _Stop("stopped", f"no request was answered in: {name}; no more was run")
        except _Stop as stop:
            self.note(*stop.args)
        except KeyboardInterrupt:
            self.client.abort()
            self.note("interrupted", "what was measured until the interruption is kept")
        self.ended = True
        self._look_back()
        return self.record()

    def note(self, code: str, text: str, seen: bool | None = True) -> None:
        """Keep one warning of a kind, the first, if it was seen."""
        if seen and code not in self.notes:
            self.notes[code] = text
            self.say(f"warning: {code}: {text}")

    def record(self, **parts: Any) -> Json:
        """Keep what a part measured, bring the verdicts up to date, and save."""
        client, restarted = self.client, self.watch.restarted
        self.data |= parts | {
            "stability": {
                "requests": len(client.readings),
                "failed": client.failed,
                "errors": client.errors[:100],
                "restarted": restarted,
            },
            "warnings": [f"{code}: {text}" for code, text in self.notes.items()],
        }
        if client.failed or restarted:
            self.data["stable"] = False
        counted = acceptance(self.watch.first, self.watch.last)
        self.data["acceptance"] = counted or acceptance_of(client.readings)
        self.save(self.data)
        if not self.ended:
            self._still_there()
        return self.data

    def _still_there(self) -> None:
        """Stop where the server hangs or is gone: each further request would wait as long."""
        stuck = [r for r in self.client.readings if r.error in ("timeout", "endless", "connect")]
        if not stuck:
            return
        if stuck[0].error == "timeout" and not stuck[0].arrivals:
            well = self.client.get("/health") is not None
            said = "/health answers, but" if well else "neither /health nor"
            said += " requests get no token" if well else " requests get an answer"
            self.note("wedged" if well else "silent", f"{said}: restart the server")
        raise _Stop("stopped", f"{self.client.errors[-1]}; the rest was not run")

    def _look_back(self) -> None:
        """Name what only the whole run can tell."""
        first, last, client = self.watch.first, self.watch.last, self.client
        made = _first(last, *GENERATED)
        ours = sum(reading.completion_tokens for reading in client.readings)
        theirs = last.get(made, 0.0) - first.get(made, 0.0)
        foreign = bool(made) and not client.failed and theirs > 1.05 * ours + 64
        preempted = "vllm:num_preemptions_total"
        full = last.get(preempted, 0.0) > first.get(preempted, 0.0)
        speculation = acceptance(first, last)
        idle = bool(speculation and not speculation["drafts"] and ours)
        dropped = ", ".join(client.dropped)
        others = ", ".join(sorted({r.model or "" for r in client.readings} - {"", client.model}))
        says = f"the server made {theirs:.0f} tokens, this round {ours}"
        self.note("other_traffic", says, foreign)
        self.note("preempted", "the engine preempted requests: its KV cache is too small", full)
        self.note("speculation_inactive", "speculation is set up, but nothing was drafted", idle)
        self.note("field_dropped", f"refused and left out: {dropped}", bool(dropped))
        self.note("restarted", "the server restarted during the round", self.watch.restarted)
        says = f"asked for {client.model}, answered by {others}"
        self.note("wrong_model", says, bool(others))

    def smoke(self) -> None:
        """Before any figure: words, a tool call where claimed, an image where claimed."""
        answer = self.client.ask(Ask("Escribe una frase sencilla sobre el mar.", 24), "smoke test")
        trouble = degenerate(answer.reading.text) if answer.ok else answer.reading.detail
        seen: Json = {"words": not trouble, "tool_call": None, "image": None, "message": trouble}
        self.note("garbage_output", trouble, answer.ok and bool(trouble))
        if "tools" in self.capabilities:
            extra = {"tools": [{"type": "function", "function": TOOL}]}
            ask = Ask("What is the weather in Lima now? Use the tool.", 256, extra=extra)
            reading = self.client.ask(ask, "smoke test, tool call").reading
            called = TOOL["name"] in reading.tool_names
            seen["tool_call"] = called or (None if reading.finish_reason == "length" else False)
            self.note("no_tool_call", "tools are claimed, but no tool call came", not called)
        if "image" in self.capabilities:
            question = {"type": "text", "text": "Which colour fills this picture? One word."}
            picture = {"type": "image_url", "image_url": {"url": RED_SQUARE}}
            reading = self.client.ask(Ask([question, picture], 128), "smoke test, image").reading
            named = bool(re.search(r"\b(red|roj[oa]|crimson)\b", reading.text, re.IGNORECASE))
            seen["image"] = named or (None if reading.finish_reason == "length" else False)
            said = f"a red square was described as {reading.text[-60:]!r}"
            self.note("no_image", said, not named)
        self.record(smoke=seen)

    def published(self) -> None:
        """The published method as it was run: one prompt, no nonce, no warm-up."""
        ask, own, singles = Ask(writing_prompt(), nonce=False), "separate_pass", list[Answer]()
        while len(singles) < 3:
            singles.append(self.client.ask(ask, "published method"))
            self._publish(own, singles=singles)
        self._publish(own, rounds=[self.client.burst([ask] * self.users, "published method")])
        if self._fits(LONG_LINES * 15):
            ask = Ask(long_prompt(), 100, nonce=False)
            self._publish(own, long=[self.client.ask(ask, "published method, long prompt")])

    def _publish(
        self,
        read_from: str,
        singles: Sequence[Answer] = (),
        rounds: Sequence[Sequence[Answer]] = (),
        long: Sequence[Answer] = (),
    ) -> None:
        """Keep the published method's figures, unless its own pass has given them."""
        figures: Json = self.data["published_method"]
        if figures["read_from"] in (None, read_from):
            figures["read_from"] = read_from
            if singles:
                figures["n"] = sum(answer.ok for answer in singles)
                figures["single_user_tok_s"] = published_median(singles, "tok_s")
                figures["ttft_ms"] = published_median(singles, "ttft_s", 1000)
            if rounds and len(rounds[0]) == 4:
                figures["four_users_total_tok_s"] = published_total(rounds)
            if long:
                figures["long_prompt_46k_s"] = published_median(long, "end_s")
            self.record()

    def single(self, repeats: int) -> None:
        """One user at a time, after a warm-up."""
        ask, answers = Ask(writing_prompt()), list[Answer]()
        warmup: Answer | None = self.client.ask(ask, "warm-up")
        self.record()
        if warmup and self.quick and (warmup.reading.e2e_s or 0.0) > SLOW_S:
            answers, warmup, repeats = [warmup], None, 0
        for number in range(repeats):
            answers.append(self.client.ask(ask, f"one user, request {number + 1}"))
            self._keep_single(answers, warmup)
        self._keep_single(answers, warmup)
        self._doubt(good_readings(answers))
        self._publish("same_bytes", singles=answers)

    def _keep_single(self, answers: Sequence[Answer], warmup: Answer | None) -> None:
        figures = single_figures(answers, warmup)
        figures["comparable"] = figures["comparable"] and "garbage_output" not in self.notes
        self.record(single=figures)

    def _doubt(self, good: Sequence[Reading]) -> None:
        """Name what makes the answers of one user doubtful."""
        tokens = statistics.median([r.completion_tokens for r in good] or [300])
        hidden = next((why for r in good if (why := r.hidden_reasoning())), "")
        garbage = next((why for r in good if (why := degenerate(r.text))), "")
        blind = any(r.reasoning_field == "reasoning" and r.ttfo_s != r.ttft_s for r in good)
        cached = any(2 * (r.cached_tokens or 0) > (r.prompt_tokens or 1) for r in good)
        stopped = any(r.finish_reason == "stop" for r in good)
        chunks = any(not r.usage_tokens and not r.id_tokens for r in good)
        few = f"answers of {tokens:.0f} tokens, where 300 may come"
        self.note("too_short", f"{few}: they say little of speed", tokens < TOO_SHORT)
        self.note("early_stop", few, stopped and TOO_SHORT <= tokens < 150)
        self.note("hidden_reasoning", f"decode speed cannot be known: {hidden}", bool(hidden))
        self.note("published_blind", "the published method does not see this reasoning", blind)
        self.note("chunks_only", "no usage is sent: events were counted, a lower bound", chunks)
        self.note("cached_prompt", "a cache held most of the prompt: TTFT is not prefill", cached)
        self.note("garbage_output", garbage, bool(garbage))

    def concurrent(self, repeats: int, *, warm: bool = False) -> None:
        """All users at once, each with a prompt of its own, for each step of the ladder."""
        for users in self.ladder:
            asks = [Ask(writing_prompt(user)) for user in range(users)]
            rounds = self._climb(asks, of_users(users), repeats, warm)
            if users == self.users:
                self._publish("same_bytes", rounds=rounds)

    def _climb(
        self, asks: Sequence[Ask], label: str, repeats: int, warm: bool, scenario: str | None = None
    ) -> list[list[Answer]]:
        """One step of a ladder: rounds of the same users, whose figures are kept after each."""
        curve, rounds = self.data["users_curve"], list[list[Answer]]()
        if warm:
            self.client.burst(asks, f"{label}, warm-up")
            self.record()
        while len(rounds) < repeats:
            rounds.append(self.client.burst(asks, f"{label}, round {len(rounds) + 1}"))
            figures = concurrent_figures(rounds, scenario)
            done = figures["requests"] - figures["failed"]
            why = f"{done}/{figures['requests']} requests of {label} succeeded: no speed is given"
            self.note("concurrency_failed", why, figures["failed"] > 0)
            main = {"concurrent": figures} if len(asks) == self.users and not scenario else {}
            climbs = scenario or self.ladder[1:]
            self.record(users_curve=[*curve, figures] if climbs else [], **main)
        return rounds

    def long(self, repeats: int) -> None:
        """The prompt of about 46,000 tokens, sized by the server's own count."""
        sample, lines, each = 100, LONG_LINES, 15.0
        probe = self.client.ask(Ask(long_prompt(sample), 1), "long prompt, sizing")
        if probe.reading.prompt_tokens:
            each = max(probe.reading.prompt_tokens - 40, sample) / sample
        if not 0.8 < each * LONG_LINES / LONG_TOKENS < 1.2:
            lines = round(LONG_TOKENS / each)
        need = round(lines * each)
        if probe.too_long or not self._fits(need):
            have = self.context or probe.reading.detail
            unfit = f"the prompt needs {need} + 100 tokens, the context holds {have}"
            self.note("not_supported", f"long prompt: {unfit}")
            self.record(long_prompt=long_figures([], unfit))
            return
        answers: list[Answer] = []
        while len(answers) < repeats and not any(a.too_long for a in answers):
            ask = Ask(long_prompt(lines), 100)
            answers.append(self.client.ask(ask, f"long prompt, request {len(answers) + 1}"))
            self.record(long_prompt=long_figures(answers))
        good = good_readings(answers)
        cached = any(10 * (r.cached_tokens or 0) > (r.prompt_tokens or 1) for r in good)
        self.note("cached_long_prompt", "a cache held part of the long prompt", cached)
        self._publish("same_bytes", long=answers)

    def _fits(self, tokens: int) -> bool:
        return self.context is None or tokens + 100 <= self.context

    def stability(self) -> None:
        """Rounds of all users, and the long prompt; a failure or a restart makes it unstable."""
        asks = [Ask(writing_prompt(user)) for user in range(self.users)]
        speeds: list[float] = []
        for number in range(3):
            burst = self.client.burst(asks, f"stability, round {number + 1}")
            speeds += filter(None, [published_total([burst])])
            self.record()
        if self._fits(LONG_LINES * 15):
            self.client.ask(Ask(long_prompt(), 100), "stability, long prompt")
        if speeds and min(speeds) < 0.7 * max(speeds):
            self.note("speed_drop", f"rounds ran at {min(speeds):.1f} to {max(speeds):.1f} tok/s")
        self.watch.mark()
        self.record(stable=None if self.watch.restarted is None else True)

    def varied(self) -> None:
        """Each kind of work at two temperatures, with the acceptance of speculation."""
        rows: list[Json] = []
        for temperature, (kind, prompt) in itertools.product((0.0, 0.7), varied_prompts().items()):
            before, answers = self.watch.mark(), list[Answer]()
            slow = False
            while len(answers) < 3 and not slow:
                ask = Ask(prompt, 400, temperature)
                answers.append(self.client.ask(ask, f"{kind} at {temperature}"))
                slow = not answers[-1].ok or (answers[-1].reading.e2e_s or 0.0) > SLOW_S
            good = good_readings(answers)
            unfit = any(answer.too_long for answer in answers)
            row = {
                "workload": kind,
                "temperature": temperature,
                "n": len(good),
                "failed": sum(answer.failed for answer in answers),
                "state": "measured" if good else "not_supported" if unfit else "failed",
                "decode_tok_s": decode_spread(good),
                "ttft_ms": spread((r.ttft_s for r in good), 1000),
                "acceptance": acceptance(before, self.watch.mark()) or acceptance_of(good),
            }
            rows.append(row)
            self.record(varied=rows)

    def sustained(self, minutes: float) -> None:
        """Closed loop: each user sends its next request when its last one has ended."""
        unfit = {row["workload"] for row in self.data["varied"] if row["state"] == "not_supported"}
        prompts = [(k, prompt) for k, prompt in varied_prompts().items() if k not in unfit]
        if not prompts:
            return
        done: list[tuple[str, Answer]] = []
        before, over, seconds = self.watch.mark(), threading.Event(), minutes * 60
        start = clock()

        def work(turn: int) -> None:
            failures = 0
            while clock() - start < seconds and failures < 3 and not over.is_set():
                (kind, prompt), temperature = prompts[turn % len(prompts)], 0.7 * (turn % 2)
                answer = self.client.ask(Ask(prompt, 400, temperature), f"sustained, {kind}")
                done.append((f"{kind} at {temperature}", answer))
                failures = 0 if answer.ok else failures + 1
                over.wait(0 if answer.ok else 1.0)
                turn += 1

        workers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(self.users)]
        for worker in workers:
            worker.start()
        low: list[int] = []
        try:
            while alive := [worker for worker in workers if worker.is_alive()]:
                alive[0].join(15.0)
                after = self.watch.mark()
                low += [free for free in [mem_available()] if free and self.client.endpoint.local]
                ran = min(clock() - start, seconds)
                ended = list(done)  # the workers go on adding
                answers = [answer for _, answer in ended]
                counted = acceptance(before, after)
                figures = sustained_figures(ended, start, ran) | {
                    "minutes": round(ran / 60, 3),
                    "users": self.users,
                    "requests": len(ended),
                    "failed": sum(answer.failed for answer in answers),
                    "acceptance": counted or acceptance_of(a.reading for a in answers),
                    "mem_available_low_bytes": min(low, default=None),
                }
                self.record(sustained=figures)
        finally:
            over.set()
        if figures["drift"] in ("slower", "faster"):
            self.note("drift", f"decode speed drifted by {figures['drift_pct']} % over the run")

    def school(self) -> None:
        """The school's ladder: three scenarios, greedy, seed 42, speed over all wall time."""
        scenarios = {
            "chat": ("Explica en pocas frases qué es un glaciar y cómo se mueve.", 256),
            "qa": ("¿Cómo se organiza una biblioteca? Responde con detalle y con ejemplos.", 512),
            "rag": (f"Contexto: {log_text(265)} ¿Qué pasos tardaron más y qué revisarías?", 256),
        }
        for (name, (prompt, tokens)), users in itertools.product(scenarios.items(), self.ladder):
            asks = [Ask(prompt, tokens, extra={"seed": 42})] * users
            self._climb(asks, f"{name}, {of_users(users)}", 3, True, name)
            self.watch.mark()


def of_users(count: int) -> str:
    """Name a number of users."""
    return "1 user" if count == 1 else f"{count} users"


def plan(run: StandardRound, method: str, only: str | None, minutes: float) -> list[Part]:
    """The parts of a round, in order; ``minutes`` are those of the sustained load."""
    if method == "school":
        return [("school", run.school)]
    singles, rounds, longs = (3, 3, 3) if only else (3, 1, 1) if run.quick else (6, 6, 3)
    parts: list[Part] = [
        ("single user", lambda: run.single(singles)),
        ("users at once", lambda: run.concurrent(rounds, warm=bool(only))),
        ("long prompt", lambda: run.long(longs)),
        ("stability", run.stability),
    ]
    if only:
        return [parts[PARTS.index(only)]]
    if run.quick:
        return [("smoke test", run.smoke), *parts[:3]]
    parts.append(("varied prompts", run.varied))
    if minutes > 0:
        parts.append(("sustained load", lambda: run.sustained(minutes)))
    return [("smoke test", run.smoke), ("published method", run.published), *parts]


def look_at_server(client: Client) -> tuple[Json, str]:
    """What is served, and a warning or nothing."""
    models = _dicts(client.get_json("/v1/models").get("data"))
    ids = [_text(model.get("id")) for model in models]
    if not client.model and len(ids) == 1:
        client.model = ids[0]
    served: Json = next((m for m in models if client.model in (m.get("id"), m.get("root"))), {})
    engine = _text(served.get("owned_by"))
    props = client.get_json("/props") if engine in ("", "llamacpp") else {}
    version = client.get_json("/version", "/v1/version") if not props else {}
    slot = _dict(props.get("default_generation_settings"))
    names = (version.get("version"), version.get("release"), props.get("build_info"))
    facts = {
        "base_url": client.endpoint.url,
        "model": client.model or "unknown",
        "engine": engine or None,
        "engine_version": next(filter(None, map(_text, names)), None),
        "context_tokens": _count(served.get("max_model_len")) or _count(slot.get("n_ctx")),
    }
    unlisted = f"the server lists {', '.join(ids)}, not {client.model or 'one model alone'}"
    return facts, "" if served or not ids else unlisted


def run_round(
    base_url: str,
    model: str,
    *,
    method: str = "october",
    quick: bool = False,
    only: str | None = None,
    users: int | Sequence[int] | None = None,
    context_tokens: int | None = None,
    capabilities: Collection[str] = (),
    api_key: str | None = None,
    recipe_id: str | None = None,
    simulated: bool = False,
    tool_version: str = "",
    restart_probe: Callable[[], str | None] | None = None,
    progress: Callable[[str], None] | None = None,
    save: Callable[[Json], None] | None = None,
    sustained_minutes: float = 15.0,
    limits: Limits | None = None,
) -> Json:
    """Measure a server, and return the round as JSON data.

    Failed requests are figures in it; Ctrl-C gives what was measured until then, with a warning.
    An empty ``model`` means the only one that is served; several ``users`` are a ladder.
    ``context_tokens`` is for servers that do not tell theirs, ``capabilities`` what to try first
    (tools, image). ``restart_probe`` gives a word that changes when the server restarts;
    ``save`` is called with the result so far after every request.

    Raises:
        ValueError: The base URL or an option cannot be used.
    """
    ladder = [users] if isinstance(users, int) else list(users or ())
    ladder = ladder or list(SCHOOL_LADDER if method == "school" else (4,))
    if method not in METHODS or only not in (None, *PARTS) or min(ladder) < 1:
        raise ValueError(f"method is one of {METHODS}, only one of {PARTS}, users are 1 or more")
    if not 0 <= sustained_minutes <= 24 * 60:
        raise ValueError("the sustained load takes 0 (left out) to 1440 minutes")
    limits, deadline = limits or Limits(), math.inf
    if quick and not simulated:  # a rehearsal plays as slowly as it was asked to
        limits = replace(limits, first_event_s=min(limits.first_event_s, QUICK_FIRST_S))
        deadline = clock() + QUICK_S
    client = Client(Endpoint.parse(base_url), model, api_key, limits, deadline)
    server, unlisted = look_at_server(client)
    data = empty_round(method, server, tool_version or "standalone", recipe_id, simulated)
    watch, context = Watch(client, restart_probe), server["context_tokens"] or context_tokens
    say, keep = progress or (lambda _: None), save or (lambda _: None)
    run = StandardRound(client, watch, data, ladder, context, capabilities, quick, say, keep)
    run.note("wrong_model", unlisted, bool(unlisted))
    return run.run(plan(run, method, only, sustained_minutes))


def empty_round(
    method: str, server: Json, tool: str, recipe_id: str | None, simulated: bool
) -> Json:
    """A round in which nothing was measured yet."""
    figures = ("single_user_tok_s", "ttft_ms", "four_users_total_tok_s", "long_prompt_46k_s")
    unknown = ("machine", "smoke", "single", "concurrent", "long_prompt", "stable", "sustained")
    return dict[str, Any].fromkeys(unknown) | {
        "schema_version": 1,
        "method": method,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tool_version": tool,
        "server": server,
        "recipe_id": recipe_id,
        "simulated": simulated,
        "varied": [],
        "users_curve": [],
        "published_method": {**dict.fromkeys(figures), "read_from": None, "n": 0},
    }


# ---------------------------------------------------------------------------- command line


def numbers(text: str) -> list[int]:
    """Read numbers of users, with commas between them."""
    return [int(number) for number in text.split(",")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a round; the JSON goes to stdout, progress to stderr."""
    cli = argparse.ArgumentParser(description="Measure an OpenAI-compatible server.")
    add = cli.add_argument
    add("--base-url", default="http://127.0.0.1:8000", help="with or without /v1")
    add("--model", default="", help="default: the only one that is served")
    add("--users", type=numbers, metavar="N[,N...]", help="4, or a ladder like 1,2,4,8,16")
    add("--quick", action="store_true", help="fewer repeats, under two minutes")
    add("--only", choices=PARTS, help="one part alone: a warm-up and three")
    add("--method", choices=METHODS, default="october", help="school: its ladder")
    add("--context", dest="context_tokens", type=int, help="the server's, if it does not tell")
    add("--capabilities", type=lambda text: text.split(","), default=(), help="tools,image")
    add("--sustained-minutes", type=float, default=15.0, help="0 leaves it out")
    add("--api-key-env", metavar="NAME", help="variable that holds the API key")
    add("--output", type=Path, help="also save here after every request")
    options = vars(cli.parse_args(argv))
    key, output = os.environ.get(options.pop("api_key_env") or ""), options.pop("output")

    def save(data: Json) -> None:
        if output:
            partial = output.with_suffix(".partial")
            with partial.open("w") as file:
                json.dump(data, file, indent=1, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())  # a host may die in mid-round
            partial.replace(output)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        result = run_round(**options, api_key=key, progress=say, save=save)
    except ValueError as err:
        cli.error(str(err))
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if any(line.startswith("interrupted:") for line in result["warnings"]):
        return 130
    return 1 if result["stability"]["failed"] or result["stable"] is False else 0


if __name__ == "__main__":
    sys.exit(main())
