#!/usr/bin/env python3
"""The standard round: measure an OpenAI-compatible server as its users feel it.

One file, standard library only. Copy it to the machine and run it::

    python standard_round.py --base-url http://127.0.0.1:8000 --model qwen3.6-35b-a3b > round.json

Two readings of the same bytes are kept apart: the *true figures* (TTFT to the first generated
text of any kind, decode speed between the first and the last token) and the *published method*
(what the script of October 2026 would have printed), for only like may be compared with like.
What cannot be known is null with a warning that says why; a failed request is counted and shown
and never averaged in. Every warning starts with a word for programs: ``too_short: ...``.

Layout, in reading order: transport, stream, figures of one request, prompts, client, counters,
watch, statistics, the round, command line.
"""

from __future__ import annotations

import argparse
import base64
import bisect
import contextlib
import itertools
import json
import math
import os
import re
import secrets
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

clock = time.perf_counter

# ------------------------------------------------------------------------------- transport

MAX_BODY_BYTES = 16 * 1024 * 1024
STAGGER_S = 0.000_25
"""Starts of one burst lie this far apart, so that no request waits for our own writing of others."""
QUIET_S = 5.0
"""After this long without a byte, look whether the stream has ended or failed."""


class BadEndpoint(ValueError):
    """The base URL cannot be used; the message says how it should look."""


@dataclass(frozen=True)
class Limits:
    """How long a request may take before it has failed, in seconds."""

    connect_s: float = 10.0
    first_event_s: float = 900.0
    between_events_s: float = 60.0


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
            BadEndpoint: Another scheme, no host, a bad port, credentials or a query.
        """
        how = "give it like http://127.0.0.1:8000"
        try:
            parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
            host, port = parts.hostname, parts.port
        except ValueError as err:
            raise BadEndpoint(f"the base URL cannot be read ({err}); {how}") from None
        if parts.username is not None or parts.password is not None:
            raise BadEndpoint(f"the base URL holds credentials; pass an API key instead; {how}")
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise BadEndpoint(f"the base URL is not http(s)://HOST:PORT[/v1]; {how}")
        if not re.fullmatch(r"[!-~]*", parts.path + host):
            raise BadEndpoint(f"the base URL has a space or a control character; {how}")
        root = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
        tls = parts.scheme == "https"
        return cls(tls, host, port or (443 if tls else 80), root)

    @property
    def netloc(self) -> str:
        """Host and port as a URL and the Host header write them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL with ``/v1``."""
        return f"{'https' if self.tls else 'http'}://{self.netloc}{self.root}/v1"

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def connect(self, timeout_s: float) -> socket.socket:
        """Open a connection, TLS included.

        Raises:
            OSError: Refused, unknown host, bad certificate or no answer in time.
        """
        sock = socket.create_connection((self.host, self.port), timeout=timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            import ssl

            return ssl.create_default_context().wrap_socket(sock, server_hostname=self.host)
        return sock

    def request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Write out one request whose connection is closed after the answer."""
        lines = [f"{method} {self.root}{path} HTTP/1.1", f"Host: {self.netloc}"]
        fixed = {"Connection": "close", "Accept": "*/*", "User-Agent": "sparkrecipes-round"}
        if body:
            fixed |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines += [f"{name}: {value}" for name, value in {**fixed, **headers}.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


class MalformedResponse(ValueError):
    """The server does not speak HTTP/1.1."""


class Response:
    """An HTTP response as it arrives: each piece of its body with the time of its network read."""

    _CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[tuple[float, bytes]] = []
        self.complete = False
        self.body_bytes = 0
        self._rest = b""
        self._left: int | None = 0
        self._chunked = False

    def feed(self, t: float, data: bytes) -> None:
        """Take what one network read at time ``t`` (seconds) brought.

        Raises:
            MalformedResponse: Not HTTP, a broken chunk, or a body without end.
        """
        if self.status:
            self._body(t, data)
            return
        self._rest += data
        head, blank, body = self._rest.partition(b"\r\n\r\n")
        if blank:
            self._rest = b""
            self._head(head)
            if self.status:
                self._body(t, body)
            elif body:
                self.feed(t, body)
        elif len(self._rest) > 65536 or not b"HTTP/".startswith(self._rest[:5]):
            raise MalformedResponse("the answer is not HTTP")

    def _head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        match = re.match(r"HTTP/1\.[01] (\d{3})(?!\d)", first)
        if not match:
            raise MalformedResponse("the answer is not HTTP/1.1")
        status = int(match[1])
        if 100 <= status < 200:
            return
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        length = self.headers.get("content-length", "")
        if not self._chunked:
            self._left = int(length) if length.isdecimal() and len(length) < 16 else None
            self.complete = self._left == 0 or status in (204, 304)
        self.status = status

    def _keep(self, t: float, data: bytes) -> None:
        self.body_bytes += len(data)
        if self.body_bytes > MAX_BODY_BYTES:
            raise MalformedResponse(f"the answer is larger than {MAX_BODY_BYTES} bytes")
        self.pieces.append((t, data))

    def _body(self, t: float, data: bytes) -> None:
        if self.complete or not data:
            return
        if self._chunked:
            self._chunks(t, self._rest + data)
        elif self._left is None:
            self._keep(t, data)
        else:
            self._keep(t, data[: self._left])
            self._left = max(self._left - len(data), 0)
            self.complete = self._left == 0

    def _chunks(self, t: float, data: bytes) -> None:
        """Take the payload out of a chunked body; ``_left`` counts a chunk and its line end."""
        at, left, payload = 0, self._left or 0, []
        while at < len(data):
            if left == 0:
                line = self._CHUNK.match(data, at)
                if line is None and (b"\n" in data[at:] or len(data) - at > 4096):
                    raise MalformedResponse("the chunked body is broken")
                if line is None:
                    break
                size = int(line[1], 16)
                self.complete = size == 0
                if self.complete:
                    break
                at, left = line.end(), size + 2
            payload.append(data[at : at + max(left - 2, 0)])
            taken = min(left, len(data) - at)
            at, left = at + taken, left - taken
        self._left, self._rest = left, data[at:]
        if body := b"".join(payload):
            self._keep(t, body)

    @property
    def end(self) -> str:
        """How the body ended, if the connection was closed now."""
        unbounded = self.status and not self._chunked and self._left is None
        return "eof" if self.complete or unbounded else "incomplete"


@dataclass
class Exchange:
    """One request and what came back, times in seconds after its first byte was written."""

    t0: float = 0.0
    connect_s: float = 0.0
    status: int = 0
    content_type: str = ""
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    end: str = "connect"
    """eof, incomplete (a cut body), reset, timeout, malformed, or connect (never connected)."""
    end_s: float = 0.0
    detail: str = ""

    @property
    def body(self) -> bytes:
        """The whole payload."""
        return b"".join(data for _, data in self.pieces)


def transfer(
    sock: socket.socket, request: bytes, limits: Limits, start_at: float = 0.0
) -> Exchange:
    """Send one request on an open connection and take the answer to its end.

    Each network read gets one time stamp before anything is decoded; the stream is parsed later.

    Args:
        sock: The connection; it is closed.
        request: Head and body.
        limits: When to give up.
        start_at: Wait for this ``perf_counter`` time before sending.
    """
    response, now = Response(), 0.0
    sock.settimeout(min(limits.first_event_s, limits.between_events_s, QUIET_S))
    time.sleep(max(start_at - clock(), 0.0))
    done = Exchange(t0=clock())
    check_at = limits.first_event_s
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(request)  # what was refused half-way may have been answered
        while not response.complete:
            try:
                data = sock.recv(65536)
            except TimeoutError:
                data = None
            now = clock() - done.t0
            if data is None or now > check_at:
                if _overdue(response.pieces, now, limits):
                    done.detail = f"nothing more after {now:.1f} s"
                    break
                check_at = now + limits.between_events_s
            if data == b"":
                break
            if data:
                response.feed(now, data)
        done.end = "timeout" if done.detail else response.end
    except MalformedResponse as err:
        done.end, done.detail = "malformed", str(err)
    except OSError as err:
        done.end, done.detail, now = "reset", err.strerror or str(err), clock() - done.t0
    finally:
        sock.close()
    done.end_s, done.status, done.pieces = now, response.status, response.pieces
    done.content_type = response.headers.get("content-type", "")
    return done


def _overdue(pieces: list[tuple[float, bytes]], now: float, limits: Limits) -> bool:
    """Whether a silent stream has failed; a comment is a sign of life, but not for ever."""
    reading = Reading.of(Exchange(pieces=pieces, end="eof", end_s=now, status=200))
    if reading.done:
        return True
    if not reading.arrivals:
        return now >= limits.first_event_s
    silent, idle = now - pieces[-1][0], now - reading.arrivals[-1]
    return silent >= limits.between_events_s or idle >= limits.first_event_s


# ---------------------------------------------------------------------------------- stream


class Event(NamedTuple):
    """One server-sent event."""

    t: float
    """Time of the network read that completed its last data line."""
    name: str
    data: bytes
    whole: bool
    """False where the stream ended before the blank line that closes the event."""


_LINE_END = re.compile(rb"\r\n|\n|\r")


def _lines(pieces: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Split a stream at LF, CR LF or CR, wherever the network cut it; each with its end's time."""
    held, after_cr, t = list[bytes](), False, 0.0
    for t, piece in pieces:
        fresh = piece[1:] if after_cr and piece[:1] == b"\n" else piece
        if not fresh:
            after_cr = after_cr and not piece
            continue
        after_cr = fresh.endswith(b"\r")
        head, *lines = _LINE_END.split(fresh)
        held.append(head)
        for line in lines:
            yield t, b"".join(held)
            held = [line]
    if any(held):
        yield t, b"".join(held)


def sse_events(pieces: Iterable[tuple[float, bytes]]) -> Iterator[Event]:
    """Split a stream, as (time, bytes) of each network read, into events.

    Only whole lines are decoded, so that a character or a line end may be cut anywhere.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """
    name, data, last, bom = "", list[bytes](), 0.0, b"\xef\xbb\xbf"
    for t, raw in _lines(pieces):
        line, bom = raw.removeprefix(bom), b""
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            data.append(value)
            last = t
        elif key == b"event":
            name = value.decode("ascii", "replace")
        elif not line:
            if data:
                yield Event(last, name, b"\n".join(data), True)
            name, data = "", []
    if data:
        yield Event(last, name, b"\n".join(data), False)


# ---------------------------------------------------------------- figures of one request


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str:
    """The text of a delta's field: a string, or parts that hold strings (Mistral's thinking)."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part) for part in value)
    if isinstance(value, dict):
        return _text(value.get("text")) + _text(value.get("thinking"))
    return ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


@dataclass
class Reading:
    """True figures of one streamed request; times in seconds after it was sent.

    A *token-bearing event* has some choice whose delta holds non-empty ``content``, ``reasoning``,
    ``reasoning_content`` or ``refusal``, or a tool-call fragment with a name or arguments. Roles,
    empty strings, usage, progress and comments are not tokens.
    """

    error: str | None = None
    """http, connect, timeout, stream_error, cut, no_output or bad_json; None: a good request."""
    detail: str = ""
    done: bool = False
    """Whether ``[DONE]`` came."""
    finish_reason: str | None = None
    arrivals: list[float] = field(default_factory=list)
    ttfo_s: float | None = None
    stream_end_s: float = 0.0
    text: str = ""
    tool_names: str = ""
    reasoning_field: str | None = None
    model: str | None = None
    first_chunk_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    timings: dict[str, Any] = field(default_factory=dict)
    """llama.cpp's own figures of the request."""
    usage_tokens: int = 0
    id_tokens: int = 0

    @classmethod
    def of(cls, exchange: Exchange) -> Reading:
        """Read an exchange by the true definitions."""
        self = cls(stream_end_s=exchange.end_s)
        bad_json = torn = False
        error: Any = None
        for event in sse_events(exchange.pieces):
            data = event.data.strip()
            if data == b"[DONE]":
                self.done, self.stream_end_s = True, event.t
                break
            if not data:
                continue
            try:
                parsed = json.loads(data)
            except (ValueError, RecursionError):
                bad_json, torn = bad_json or event.whole, not event.whole
                continue
            if not isinstance(parsed, dict):
                bad_json = True
                continue
            error = _error_of(parsed, event.name)
            if error is not None:
                break
            self._take(event.t, parsed)
        self._judge(exchange, error, bad_json, torn)
        return self

    def _take(self, t: float, event: dict[str, Any]) -> None:
        """Add one event: its usage, its token ids, and its tokens as one arrival."""
        usage = _dict(event.get("usage"))
        completed = _count(usage.get("completion_tokens")) or 0
        self.usage_tokens = completed or self.usage_tokens
        self._details(usage)
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

    def _details(self, usage: dict[str, Any]) -> None:
        for name, value in (
            ("prompt_tokens", usage.get("prompt_tokens")),
            ("cached_tokens", _dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
            (
                "reasoning_tokens",
                _dict(usage.get("completion_tokens_details")).get("reasoning_tokens"),
            ),
        ):
            if _count(value) is not None:
                setattr(self, name, value)

    def _delta(self, delta: dict[str, Any]) -> tuple[bool, bool]:
        """Take one choice's delta: whether it holds reasoning, whether it holds output."""
        thought = ""
        for name in ("reasoning", "reasoning_content"):  # both names with one text count once
            if not thought and (thought := _text(delta.get(name))):
                self.reasoning_field = self.reasoning_field or name
        said = _text(delta.get("content")) + _text(delta.get("refusal"))
        for call in _dicts(delta.get("tool_calls")):
            function = _dict(call.get("function"))
            self.tool_names += _text(function.get("name"))
            said += _text(function.get("name")) + _text(function.get("arguments"))
        self.text += thought + said
        return bool(thought), bool(said)

    def _judge(self, exchange: Exchange, error: Any, bad_json: bool, torn: bool) -> None:
        """Name the failure, the most telling one first."""
        ended = self.done or (self.finish_reason is not None and not torn)
        self.detail = exchange.detail
        if exchange.end == "connect":
            self.error = "connect"
        elif exchange.status and not 200 <= exchange.status < 300:
            self.error = "http"
            self.detail = f"HTTP {exchange.status}: {_plain(exchange.body)}"
        elif error is not None:
            self.error, self.detail = "stream_error", _plain(error)
        elif not self.done and exchange.end == "timeout":
            self.error = "timeout"
        elif not self.done and exchange.end != "eof":
            self.error = "cut"
        elif bad_json:
            self.error, self.detail = "bad_json", "an event of the stream is not a JSON object"
        elif not self.arrivals:
            self.error, self.detail = "no_output", _plain(exchange.body) or "an empty body"
        elif not ended:
            self.error = "cut"
        if self.error == "cut":
            self.detail = f"ended after {len(self.arrivals)} token events; {self.detail}".strip(
                "; "
            )

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
        """Tokens after the first event over the time to the last one; None where undefined."""
        if not self.arrivals or self.arrivals[-1] <= self.arrivals[0]:
            return None
        tokens = self.completion_tokens - (self.first_chunk_tokens or 1)
        return tokens / (self.arrivals[-1] - self.arrivals[0])

    @property
    def tpot_s(self) -> float | None:
        """Seconds a token after the first."""
        return 1 / self.decode_tok_s if self.decode_tok_s else None

    @property
    def e2e_tok_s(self) -> float | None:
        """All tokens over the whole request; hidden reasoning cannot inflate it."""
        return self.completion_tokens / self.arrivals[-1] if self.e2e_s else None

    @property
    def gaps_s(self) -> list[float]:
        """Time between token-bearing events."""
        return [after - before for before, after in itertools.pairwise(self.arrivals)]

    def tokens_by(self, t: float) -> float:
        """Tokens that had arrived at ``t``, the unseen sizes of later events taken as equal."""
        first = self.first_chunk_tokens or 1
        seen = bisect.bisect_right(self.arrivals, t)
        each = (self.completion_tokens - first) / max(len(self.arrivals) - 1, 1)
        return first + each * (seen - 1) if seen else 0.0

    def hidden_reasoning(self) -> str:
        """Say why the decode speed cannot be known: tokens were counted that never were streamed.

        Certain where the server reports reasoning tokens and streamed none, or counts more tokens
        than the text has bytes. Inferred where half the text that so many tokens make is missing
        and the time before the first text is what the missing tokens take at the speed of the rest.
        """
        total, size = self.usage_tokens, len(self.text.encode("utf-8", "replace"))
        if total and self.reasoning_tokens and not self.reasoning_field:
            return f"{self.reasoning_tokens} of {total} tokens are reasoning that was not streamed"
        if total > size + 16:
            return f"{total} tokens were counted, but only {size} bytes of text were streamed"
        visible = size / 4  # a token of prose is about 4 bytes; fewer than 2.4 mean missing text
        if total < 64 or self.tool_names or size / total > 2.4 or max(self.text) > "\u024f":
            return ""
        window = (self.e2e_s or 0.0) - (self.ttft_s or 0.0)
        expected = (total - visible) * window / max(visible, 1)
        if window and (self.ttft_s or 0.0) > max(0.5 * expected, 0.25 * (self.e2e_s or 0.0)):
            return f"{total} tokens were counted, but the text holds about {visible:.0f}"
        return ""


def _error_of(event: dict[str, Any], name: str) -> Any:
    """The error an event carries, whatever HTTP status the stream has."""
    error = event.get("error")
    if error not in (None, False, ""):
        return error
    return event if name == "error" or event.get("object") == "error" else None


def _plain(error: Any) -> str:
    """The message of an error body, in one short line."""
    if isinstance(error, bytes):
        try:
            error = json.loads(error)
        except (ValueError, RecursionError):
            error = re.sub(r"<[^>]*>", " ", error[:4000].decode("utf-8", "replace"))
    for key in ("error", "message", "detail"):
        if isinstance(error, dict) and error.get(key):
            error = error[key]
    text = error if isinstance(error, str) else json.dumps(error, default=str)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]


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

        Source: the script beside the published table, restated.
        """
        if exchange.end in ("connect", "reset", "timeout", "malformed"):
            return cls(False)
        if not 200 <= (exchange.status or 0) < 300:
            return cls(False)
        try:
            first, tokens = _published_lines(exchange)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls(False)
        first = exchange.end_s if first is None else first
        speed = tokens / max(exchange.end_s - first, 1e-6)
        return cls(True, first + exchange.connect_s, speed, tokens, exchange.end_s)


def _published_lines(exchange: Exchange) -> tuple[float | None, int]:
    held, first, tokens, chunks = b"", None, 0, 0
    for t, piece in [*exchange.pieces, (exchange.end_s, b"\n")]:
        *lines, held = (held + piece).split(b"\n")
        for raw in lines:
            line = raw.decode().strip()
            if not line.startswith("data:") or line == "data: [DONE]":
                continue
            event = json.loads(line[5:])
            if event.get("usage"):
                tokens = event["usage"].get("completion_tokens") or tokens
            for choice in event.get("choices") or []:
                delta = choice.get("delta") or {}
                if delta.get("content") or delta.get("reasoning_content"):
                    chunks += 1
                    first = t if first is None else first
    return first, int(tokens or chunks)


# --------------------------------------------------------------------------------- prompts

TOPICS = (
    "por qué los faros antiguos usaban lentes de vidrio y qué los reemplazó",
    "cómo se forma el granizo y por qué daña más a unos cultivos que a otros",
    "qué hace un archivo municipal y cómo ayuda a contar la historia de un barrio",
    "por qué el pan de masa madre fermenta despacio y qué cambia en su sabor",
    "cómo funciona una esclusa y qué papel tuvo en el comercio por los ríos",
    "qué es una marea viva y cómo la aprovechan los pescadores de la costa",
    "por qué los teatros de ópera cuidan tanto la forma de su sala",
    "cómo se restaura un mural sin borrar la mano de quien lo pintó",
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
LONG_LINES, LONG_TOKENS = 3000, 46_000


def writing_prompt(index: int = 0) -> str:
    """About 200 Spanish words are asked for: more than 300 tokens with most tokenizers."""
    topic = TOPICS[index % len(TOPICS)]
    return f"Escribe en español neutro, en un solo párrafo de unas 200 palabras, {topic}."


def log_text(lines: int) -> str:
    """The first lines of one fixed event log, about 15 tokens each."""
    return " ".join(f"paso {n}: la tarea terminó en {n * 7 % 97} ms." for n in range(lines))


def long_prompt(lines: int = LONG_LINES) -> str:
    """An event log to summarise; 3,000 lines are about 46,000 tokens."""
    return f"Resume en pocas frases este registro de eventos. {log_text(lines)}"


def varied_prompts() -> dict[str, str]:
    """The four kinds of work that speculation likes or dislikes."""
    notes = " ".join(
        f"En la visita {n} la cuadrilla midió el caudal del canal {n % 5 + 1}, anotó una pérdida "
        f"del {n % 13 + 2} % y propuso revisar la compuerta número {n % 7 + 1} antes del riego."
        for n in range(400)
    )
    return {
        "code": "Escribe en Python una clase que guarde lecturas de sensores (hora, sensor, valor) y "
        "devuelva el promedio por sensor y por hora, con pruebas en pytest. Solo código.",
        "json_tools": "Devuelve solo un JSON válido con esta forma: "
        '{"llamadas":[{"herramienta":"agenda"|"correo"|"mapa","argumentos":{"asunto":str,'
        '"prioridad":1-3}}]} con 8 llamadas para organizar la mudanza de una biblioteca.',
        "summary": f"Resume en 8 viñetas lo más importante de estas notas: {notes}",
        "writing": writing_prompt(),
    }


def red_square_png() -> str:
    """A 64 x 64 red square as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xe0\x10\x10" * 64) * 64)
    png = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()


@dataclass(frozen=True)
class Ask:
    """One request to make."""

    content: Any
    max_tokens: int = 300
    temperature: float = 0.0
    nonce: bool = True
    """Whether to put a fresh word at the very start, so that no cached prefix can answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def fields(self, model: str) -> dict[str, Any]:
        """The body of the request, every optional field included."""
        content = self.content
        if self.nonce and isinstance(content, str):
            content = f"[ronda {secrets.token_hex(6)}] {content}"
        return {
            "model": model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "chat_template_kwargs": {"enable_thinking": False},
            **self.extra,
        }


# ---------------------------------------------------------------------------------- client

OPTIONAL_FIELDS = {
    "chat_template_kwargs": ("chat_template_kwargs", "enable_thinking"),
    "stream_options": ("stream_options", "include_usage"),
    "seed": ("seed",),
    "temperature": ("temperature",),
}
"""What may be left out when a server refuses it, and the words by which refusals name it."""
CONTEXT_WORDS = re.compile(
    r"context (length|size|window)|max_model_len|maximum (context|model|input|sequence) ?len"
    r"|exceed\w*[\w ]*context|longer than the model|prompt is too long",
    re.IGNORECASE,
)


@dataclass
class Answer:
    """One finished request: both readings, and when it ran."""

    t0: float
    reading: Reading
    published: Published
    too_long: bool = False
    """The prompt does not fit the server's context: not supported, which is not a failure."""

    @property
    def ok(self) -> bool:
        """Whether its figures count."""
        return self.reading.ok


class Client:
    """Sends requests to one model, remembers what it refused, and counts all of them."""

    def __init__(self, endpoint: Endpoint, model: str, api_key: str | None, limits: Limits) -> None:
        self.endpoint, self.model, self.limits = endpoint, model, limits
        self.dropped: list[str] = []
        self.requests = self.failed = 0
        self.errors: list[str] = []
        self.answers: list[Answer] = []
        self._key = api_key
        self._live: set[socket.socket] = set()
        self._lock = threading.Lock()

    def get(self, path: str, *, under_v1: bool = False) -> tuple[int, str]:
        """GET a page within 10 s; status 0 where there is none."""
        limits = Limits(min(self.limits.connect_s, 5), 10, 10)
        request = self._request("GET", f"{'/v1' if under_v1 else ''}{path}", b"")
        try:
            done = transfer(self.endpoint.connect(limits.connect_s), request, limits)
        except OSError:
            return 0, ""
        return (done.status if done.end == "eof" else 0), done.body.decode("utf-8", "replace")

    def get_json(self, path: str, *, under_v1: bool = False) -> Any:
        """GET a JSON page; None where there is none."""
        status, text = self.get(path, under_v1=under_v1)
        try:
            return json.loads(text) if status == 200 else None
        except (ValueError, RecursionError):
            return None

    def ask(self, ask: Ask, label: str) -> Answer:
        """Make one request and count it."""
        return self.burst([ask], label)[0]

    def burst(self, asks: Sequence[Ask], label: str) -> list[Answer]:
        """Make requests at once and count them; a field that is refused is dropped, once."""
        done = self._send_all(asks)
        if self._drop_refused(done):
            done = self._send_all(asks)
        answers = [self._answer(exchange) for exchange in done]
        with self._lock:
            for number, answer in enumerate(answers, 1):
                self._count(answer, label if len(asks) == 1 else f"{label}, user {number}")
        return answers

    def abort(self) -> None:
        """Close what is still under way."""
        for sock in tuple(self._live):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return self.endpoint.request(method, path, body, headers)

    def _send_all(self, asks: Sequence[Ask]) -> list[Exchange]:
        """Connect all first, then write each request a moment after the one before it."""
        bodies = [ask.fields(self.model) for ask in asks]
        requests = [
            self._request(
                "POST", "/v1/chat/completions", json.dumps(without(b, self.dropped)).encode()
            )
            for b in bodies
        ]
        done = [Exchange() for _ in asks]
        ready: list[tuple[int, socket.socket, float]] = []
        try:
            for number in range(len(asks)):
                before = clock()
                sock = self.endpoint.connect(self.limits.connect_s)
                ready.append((number, sock, clock() - before))
        except OSError as err:
            for exchange in done:
                exchange.detail = f"{self.endpoint.netloc}: {err.strerror or err}"
            for _, sock, _ in ready:
                sock.close()
            return done
        start = clock() + 0.000_2 * len(asks)

        def run(number: int, sock: socket.socket, connect_s: float) -> None:
            self._live.add(sock)
            begin = start + number * STAGGER_S
            done[number] = transfer(sock, requests[number], self.limits, begin)
            done[number].connect_s = connect_s
            self._live.discard(sock)

        if len(ready) == 1:
            run(*ready[0])
            return done
        threads = [threading.Thread(target=run, args=args, daemon=True) for args in ready]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done

    def _drop_refused(self, done: Sequence[Exchange]) -> bool:
        """Leave out the optional fields that a 400 names, or all of them where it names none."""
        refused = [x for x in done if x.status in (400, 422) and not _too_long(x)]
        left = [name for name in OPTIONAL_FIELDS if name not in self.dropped]
        if not refused or not left:
            return False
        text = " ".join(_plain(x.body) for x in refused)
        named = [name for name in left if any(word in text for word in OPTIONAL_FIELDS[name])]
        with self._lock:
            self.dropped += named or left[:2]
        return True

    def _answer(self, exchange: Exchange) -> Answer:
        answer = Answer(
            exchange.t0, Reading.of(exchange), Published.of(exchange), _too_long(exchange)
        )
        if self._key:
            answer.reading.detail = answer.reading.detail.replace(self._key, "***")
        return answer

    def _count(self, answer: Answer, label: str) -> None:
        self.requests += 1
        self.answers.append(answer)
        if answer.reading.error and not answer.too_long:
            self.failed += 1
            what = f"{answer.reading.error} ({answer.reading.detail})".replace(" ()", "")
            self.errors.append(f"{label}: {what}")


def without(body: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A request body without the fields that the server refuses."""
    return {name: value for name, value in body.items() if name not in names}


def _too_long(exchange: Exchange) -> bool:
    refused = exchange.status in (400, 413, 422, 500)
    return refused and bool(CONTEXT_WORDS.search(_plain(exchange.body)))


# -------------------------------------------------------------------------------- counters

_SERIES = re.compile(r"([A-Za-z_:][\w:]*)(\{.*\})?[ \t]+(\S+)")
_VLLM = "vllm:spec_decode_num_"


def parse_counters(text: str, model: str) -> dict[str, float]:
    """Read a Prometheus page: each series summed over its labels, positions as ``name@position``.

    ``_created`` times and histogram buckets are left out; where series name a model, other models'
    are too.
    """
    rows = []
    for line in text.splitlines():
        match = _SERIES.match(line)
        if match and not match[1].endswith(("_created", "_bucket")):
            with contextlib.suppress(ValueError):
                rows.append((match[1], match[2] or "", float(match[3])))
    ours = f'model_name="{model}"'
    named = any(ours in labels for _, labels, _ in rows)
    totals: dict[str, float] = {}
    for name, labels, value in rows:
        if named and "model_name=" in labels and ours not in labels:
            continue
        position = re.search(r'position="(\d+)"', labels)
        key = f"{name}@{position[1]}" if position else name
        totals[key] = totals.get(key, 0.0) + value
    return totals


def _first(counters: Mapping[str, float], *names: str) -> str:
    return next((name for name in names if name in counters), "")


def acceptance(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any] | None:
    """What the counters say of speculation between two readings of ``/metrics``.

    vLLM: rate = accepted / drafted, mean length = 1 + accepted / drafts, per position = accepted
    there / drafts. SGLang counts verify steps only: a length and no rate. llama.cpp: a rate only.
    0/0 is not measured (null), and a counter that fell means a restart: None.
    """
    delta = {name: value - before.get(name, 0.0) for name, value in after.items()}
    positions: list[str] = []
    if _VLLM + "drafts_total" in after:
        source, drafts = _VLLM + "*", delta[_VLLM + "drafts_total"]
        drafted = delta.get(_VLLM + "draft_tokens_total", 0.0)
        accepted = delta.get(_VLLM + "accepted_tokens_total", 0.0)
        steps, made = drafts, drafts + accepted
        per = _VLLM + "accepted_tokens_per_pos_total@"
        positions = sorted(
            (n for n in after if n.startswith(per)), key=lambda n: int(n[len(per) :])
        )
    elif steps_name := _first(after, "sglang:spec_verify_calls_total"):
        source, drafted, accepted = steps_name, 0.0, 0.0
        drafts = steps = delta[steps_name]
        made = delta.get("sglang:generation_tokens_total", 0.0)
        made -= delta.get("sglang:num_requests_total", 0.0)
    elif name := _first(after, "llamacpp:n_drafted_total", "llamacpp:n_draft_total"):
        source, drafted = name, delta[name]
        hit = _first(after, *(f"llamacpp:{n}_total" for n in LLAMACPP_ACCEPTED))
        drafts, accepted, steps, made = drafted, delta.get(hit, 0.0), 0.0, 0.0
    else:
        return None
    if min(drafts, drafted, accepted, made) < 0:
        return None
    return {
        "rate_pct": round(100 * accepted / drafted, 2) if drafted else None,
        "mean_length": round(made / steps, 3) if steps else None,
        "per_position_pct": [round(100 * delta[n] / steps, 2) for n in positions] if steps else [],
        "drafts": int(drafts),
        "source": source,
    }


LLAMACPP_ACCEPTED = ("n_drafted_accepted", "n_draft_accepted", "n_accepted")


def acceptance_from_timings(answers: Iterable[Answer]) -> dict[str, Any] | None:
    """The same from the figures llama.cpp sends with each answer."""
    timings = [a.reading.timings for a in answers if a.ok and "draft_n" in a.reading.timings]
    drafted = sum(_count(t.get("draft_n")) or 0 for t in timings)
    accepted = sum(_count(t.get("draft_n_accepted")) or 0 for t in timings)
    made = sum(_count(t.get("predicted_n")) or 0 for t in timings)
    if not timings:
        return None
    return {
        "rate_pct": round(100 * accepted / drafted, 2) if drafted else None,
        "mean_length": round(made / (made - accepted), 3) if made > accepted else None,
        "per_position_pct": [],
        "drafts": drafted,
        "source": "timings.draft_n",
    }


class Watch:
    """What happens around the requests: counters, restarts, and the machine if it is this one."""

    def __init__(self, client: Client, restart_probe: Callable[[], str | None] | None) -> None:
        self.client, self.probe = client, restart_probe
        self.page = "/metrics"
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.identities: list[str] = []
        self.fell = False
        self.mem_low: int | None = None
        self.gpu: list[dict[str, float]] = []
        self._stop = threading.Event()

    def mark(self) -> dict[str, float]:
        """Read the counters and who the server is."""
        status, text = self.client.get(self.page)
        if status != 200 and not self.last:
            self.page = "/v1/metrics" if self.page == "/metrics" else "/metrics"  # NIM
            status, text = self.client.get(self.page)
        counters = parse_counters(text, self.client.model) if status == 200 else {}
        total = _first(counters, *GENERATED)
        if total and counters[total] < self.last.get(total, 0.0):
            self.fell = True
        identity = self.probe() if self.probe else None
        if identity is None and "process_start_time_seconds" in counters:
            identity = str(counters["process_start_time_seconds"])
        if identity is not None:
            self.identities.append(identity)
        self.first, self.last = self.first or counters, counters or self.last
        return counters

    @property
    def restarted(self) -> bool | None:
        """None where it could not be observed."""
        if self.fell or len(set(self.identities)) > 1:
            return True
        return False if len(self.identities) > 1 else None

    def start(self) -> None:
        """Sample memory and GPU clocks beside the round, where the server is on this machine."""
        if self.client.endpoint.local:
            threading.Thread(target=self._sample, daemon=True).start()

    def stop(self) -> None:
        """End the sampling."""
        self._stop.set()

    def _sample(self) -> None:
        with_gpu = True
        while not self._stop.wait(5.0):
            self.mem_low = min((m for m in (self.mem_low, mem_available()) if m), default=None)
            if with_gpu and (sample := gpu_sample()):
                self.gpu.append(sample)
            with_gpu = bool(self.gpu)


GENERATED = (
    "vllm:generation_tokens_total",
    "sglang:generation_tokens_total",
    "llamacpp:tokens_predicted_total",
)


def mem_available() -> int | None:
    """MemAvailable of this machine in bytes."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def gpu_sample() -> dict[str, float] | None:
    """SM clock, utilisation and power of the first GPU; what it answers with [N/A] is left out."""
    names = ("clocks.sm", "utilization.gpu", "power.draw", "temperature.gpu")
    argv = ["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    values = zip(names, done.stdout.split("\n")[0].split(","), strict=False)
    sample = {name: float(v) for name, v in values if re.fullmatch(r"\s*\d+(\.\d+)?\s*", v)}
    return sample or None


def host_degraded(samples: Iterable[Mapping[str, float]]) -> str:
    """Say when the GPU's clock fell by more than 40 % under load: the host, not the recipe."""
    clocks = [
        s["clocks.sm"] for s in samples if s.get("utilization.gpu", 0) >= 80 and "clocks.sm" in s
    ]
    if len(clocks) < 2 or min(clocks) >= 0.6 * max(clocks):
        return ""
    return f"the GPU clock fell from {max(clocks):.0f} to {min(clocks):.0f} MHz under load"


# ------------------------------------------------------------------------------ statistics


def spread(values: Iterable[float | None], scale: float = 1.0) -> dict[str, Any] | None:
    """Median, range and number of the values that are known."""
    known = [value * scale for value in values if value is not None]
    if not known:
        return None
    return {
        "median": round(statistics.median(known), 4),
        "min": round(min(known), 4),
        "max": round(max(known), 4),
        "n": len(known),
    }


def percentiles(
    values: Iterable[float], scale: float = 1.0, *, always: bool = False
) -> dict[str, Any]:
    """Nearest-rank percentiles, null where n is too small for a 95 % interval around them.

    That takes 6 values for the median, 72 for p95 and 368 for p99. ``always`` gives p50 and p95
    of any n, as the school's method does.
    """
    known = sorted(value * scale for value in values)

    def rank(share: float, needs: int) -> float | None:
        if not known or (len(known) < needs and not (always and share < 0.99)):
            return None
        return round(known[max(math.ceil(share * len(known)) - 1, 0)], 4)

    top = round(known[-1], 4) if known else None
    return {
        "n": len(known),
        "p50": rank(0.5, 6),
        "p95": rank(0.95, 72),
        "p99": rank(0.99, 368),
        "max": top,
    }


def decode_spread(answers: Iterable[Answer]) -> dict[str, Any] | None:
    """Decode speed; nothing where reasoning was hidden, for then it cannot be known."""
    good = [a.reading for a in answers if a.ok]
    if any(reading.hidden_reasoning() for reading in good):
        return None
    return spread(reading.decode_tok_s for reading in good)


def single_figures(answers: Sequence[Answer], warmup: Answer | None) -> dict[str, Any]:
    """One user at a time."""
    good = [a.reading for a in answers if a.ok]
    decode = decode_spread(answers)
    sources = {reading.token_source for reading in good}
    tokens = spread(reading.completion_tokens for reading in good)
    gaps = [gap for reading in good for gap in reading.gaps_s]
    short = tokens is None or tokens["median"] < TOO_SHORT
    return {
        "n": len(good),
        "failed": sum(1 for a in answers if not a.ok and not a.too_long),
        "ttft_ms": spread((r.ttft_s for r in good), 1000),
        "ttfo_ms": spread((r.ttfo_s for r in good), 1000),
        "decode_tok_s": decode,
        "e2e_tok_s": spread(r.e2e_tok_s for r in good),
        "tpot_ms": spread((r.tpot_s for r in good), 1000) if decode else None,
        "e2e_ms": spread((r.e2e_s for r in good), 1000),
        "icl_ms": percentiles(gaps, 1000),
        "tokens_per_event": round(tokens["median"] * len(good) / (len(gaps) + len(good)), 3)
        if tokens
        else None,
        "completion_tokens": tokens,
        "prompt_tokens": spread(r.prompt_tokens for r in good),
        "finish_reasons": dict(Counter(r.finish_reason or "none" for r in good)),
        "token_source": min(sources, default=None),  # chunks, the weakest, sorts first
        "comparable": not short and "chunks" not in sources,
        "warmup_ttft_ms": warmup.reading.ttft_s * 1000
        if warmup and warmup.reading.ttft_s
        else None,
    }


def burst_figures(answers: Sequence[Answer]) -> tuple[float | None, float | None]:
    """Tokens a second of all users: over the whole wall time, and while all were decoding."""
    runs = [(a.t0, a.reading) for a in answers if a.reading.arrivals]
    begin, end = min(t0 for t0, _ in runs), max(t0 + r.arrivals[-1] for t0, r in runs)
    total = sum(r.completion_tokens for _, r in runs)
    full_from = max(t0 + r.arrivals[0] for t0, r in runs)
    full_to = min(t0 + r.arrivals[-1] for t0, r in runs)
    steady = None
    if full_to - full_from > 0.2 * (end - begin):
        inside = sum(r.tokens_by(full_to - t0) - r.tokens_by(full_from - t0) for t0, r in runs)
        steady = inside / (full_to - full_from)
    return (total / (end - begin) if end > begin else None), steady


def concurrent_figures(
    rounds: Sequence[Sequence[Answer]], users: int, scenario: str | None = None
) -> dict[str, Any]:
    """Several users at once; where any failed there is no speed, for survivors flatter."""
    answers = [answer for burst in rounds for answer in burst]
    failed = sum(1 for a in answers if not a.ok)
    whole = [burst_figures(burst) for burst in rounds] if answers and not failed else []
    good = [a.reading for a in answers] if whole else []
    school = scenario is not None
    return {
        "users": users,
        "rounds": len(rounds),
        "requests": len(answers),
        "failed": failed,
        "aggregate_tok_s": spread(aggregate for aggregate, _ in whole),
        "steady_tok_s": spread(steady for _, steady in whole),
        "per_user_tok_s": spread(r.e2e_tok_s for r in good)
        if school
        else decode_spread(answers if whole else []),
        "ttft_ms": spread((r.ttft_s for r in good), 1000),
        "e2e_s": percentiles((r.e2e_s or 0.0 for r in good), always=school) if good else None,
        "start_spread_ms": round(
            max(1000 * (max(x) - min(x)) for x in ([a.t0 for a in b] for b in rounds)), 3
        )
        if rounds
        else None,
        "scenario": scenario,
    }


def published_total(rounds: Sequence[Sequence[Answer]]) -> float | None:
    """All tokens over the wall time of the burst, as the published method has it."""
    if not rounds or any(not a.ok for burst in rounds for a in burst):
        return None
    walls = [
        max(a.t0 + a.published.end_s for a in burst) - min(a.t0 for a in burst) for burst in rounds
    ]
    return statistics.median(
        sum(a.published.tokens for a in burst) / wall
        for burst, wall in zip(rounds, walls, strict=True)
    )


def published_median(answers: Sequence[Answer], name: str) -> float | None:
    """Median of one of the published method's figures, absurd ones left out."""
    seen = [a.published for a in answers if a.ok and a.published.ok]
    values = [getattr(p, name) for p in seen if p.tok_s < ABSURD_TOK_S]
    return round(statistics.median(values), 4) if values else None


def kendall_p(values: Sequence[float]) -> float:
    """Two-sided p of a trend in a series (Kendall's tau against time, normal approximation)."""
    n = len(values)
    score = sum((b > a) - (b < a) for a, b in itertools.combinations(values, 2))
    sigma = math.sqrt(n * (n - 1) * (2 * n + 5) / 18) if n > 1 else 1.0
    return math.erfc(max(abs(score) - 1, 0) / sigma / math.sqrt(2))


def sustained_figures(
    done: Sequence[tuple[str, Answer]], start: float, seconds: float
) -> dict[str, Any]:
    """Tokens by the minute they arrived in, and the drift of the decode speed over time."""
    good = [(kind, a.t0 - start, a.reading) for kind, a in done if a.ok]
    width = min(60.0, seconds / 3)
    edges = [width * i for i in range(int(seconds / width + 1e-6) + 1)]
    arrived = [sum(r.tokens_by(edge - t0) for _, t0, r in good) for edge in edges]
    usual = {
        kind: statistics.median(speeds)
        for kind in {kind for kind, _, _ in good}
        if (speeds := [r.decode_tok_s for k, _, r in good if k == kind and r.decode_tok_s])
    }
    relative = [(t0, r.decode_tok_s / usual[kind]) for kind, t0, r in good if r.decode_tok_s]
    early = [speed for t0, speed in relative if t0 < seconds / 3]
    late = [speed for t0, speed in relative if t0 >= seconds * 2 / 3]
    drift = (
        100 * (statistics.median(late) / statistics.median(early) - 1) if early and late else None
    )
    bins = [[s for t0, s in relative if a <= t0 < b] for a, b in itertools.pairwise(edges)]
    series = [statistics.median(speeds) for speeds in bins[1:] if speeds]
    verdict = "too_short"
    if drift is not None and len(series) >= 6:
        real = abs(drift) > 5 and kendall_p(series) < 0.05
        verdict = ("slower" if drift < 0 else "faster") if real else "none"
    return {
        "tok_s": round(sum(r.tokens_by(seconds - t0) for _, t0, r in good) / seconds, 3)
        if good
        else None,
        "per_minute_tok_s": [round((b - a) / width, 3) for a, b in itertools.pairwise(arrived)],
        "drift_pct": None if drift is None else round(drift, 2),
        "drift": verdict,
        "requests": len(done),
        "failed": sum(1 for _, a in done if not a.ok and not a.too_long),
    }


def degenerate(text: str) -> str:
    """Say why a text is not words (``!!!!``, ``lockhandlehandle``, no letters), or nothing."""
    text = text.strip()
    dense = re.sub(r"\s", "", text)
    if sum(c.isalpha() for c in dense) < max(0.5 * len(dense), 4):
        return "the answer has hardly any letters"
    if text.count("\ufffd") * 20 > len(text):
        return "the answer is broken text"
    repeated = re.search(r"(.{1,20}?)\1{5,}", text[:2000], re.DOTALL)
    if repeated and len(repeated[0]) > 0.5 * min(len(text), 2000):
        return f"the answer repeats {repeated[1]!r}"
    words = re.findall(r"\w+", text.lower())
    if len(words) >= 12 and len(set(words)) < 0.25 * len(words):
        return "the answer repeats a few words"
    return ""


# ------------------------------------------------------------------------------- the round

PARTS = ("single", "concurrent", "long", "stability")
METHODS = ("october", "school")
SCHOOL_LADDER = (1, 2, 4, 8, 16)
TOO_SHORT = 64
"""Answers with fewer tokens say little of decode speed."""
ABSURD_TOK_S = 5000.0
"""No stream of one user on this hardware comes near; the published method prints such figures
where it saw no text at all."""
SLOW_S = 10.0


class _Stop(Exception):
    """The rest of the round makes no sense."""


class StandardRound:
    """Runs the parts in order, keeps what each measured, and saves after every request."""

    def __init__(
        self,
        client: Client,
        watch: Watch,
        data: dict[str, Any],
        *,
        users: Sequence[int],
        quick: bool,
        capabilities: Collection[str],
        context_tokens: int | None,
        say: Callable[[str], None],
        save: Callable[[dict[str, Any]], None],
    ) -> None:
        self.client, self.watch, self.data = client, watch, data
        self.ladder, self.users = users, 4 if 4 in users else users[-1]
        self.quick, self.capabilities, self.context = quick, capabilities, context_tokens
        self.say, self.save = say, save
        self.notes: dict[str, str] = {}

    def run(self, parts: Iterable[tuple[str, Callable[[], None]]]) -> dict[str, Any]:
        """Run the parts; what was measured survives Ctrl-C and a server that dies."""
        try:
            self.watch.mark()
            for name, part in parts:
                self.say(name)
                before = len(self.client.answers)
                part()
                self.watch.mark()
                self._still_there(name, self.client.answers[before:])
        except _Stop as stop:
            self.note("stopped", str(stop))
        except KeyboardInterrupt:
            self.client.abort()
            self.note(
                "interrupted", "the round was interrupted; what was measured until then is kept"
            )
        self._look_back()
        return self.record()

    def note(self, code: str, text: str) -> None:
        """Keep one warning a code, the first."""
        if code not in self.notes:
            self.notes[code] = text
            self.say(f"warning: {code}: {text}")

    def record(self, **parts: Any) -> dict[str, Any]:
        """Keep what parts measured, bring the verdicts up to date, and save."""
        self.data.update(parts)
        client, restarted = self.client, self.watch.restarted
        self.data["stability"] = {
            "requests": client.requests,
            "failed": client.failed,
            "errors": client.errors[:100],
            "restarted": restarted,
        }
        if client.failed or restarted:
            self.data["stable"] = False
        self.data["acceptance"] = acceptance(self.watch.first, self.watch.last)
        self.data["acceptance"] = self.data["acceptance"] or acceptance_from_timings(client.answers)
        self.data["warnings"] = [f"{code}: {text}" for code, text in self.notes.items()]
        self.save(self.data)
        return self.data

    def _still_there(self, part: str, answers: Sequence[Answer]) -> None:
        """Stop where the server hangs, or answered nothing at all in a part."""
        stuck = [a for a in answers if a.reading.error == "timeout"]
        if stuck and not any(a.reading.arrivals for a in stuck):
            if self.client.get("/health")[0] == 200:
                self.note(
                    "wedged", "/health answers 200, but requests get no token: restart the server"
                )
        if stuck:
            raise _Stop(f"a request of {part} hung; the rest was not run, restart the server first")
        if answers and all(a.reading.error and not a.too_long for a in answers):
            raise _Stop(f"every request of {part} failed; the rest was not run")

    def _look_back(self) -> None:
        """What only the whole run can tell."""
        first, last = self.watch.first, self.watch.last
        made = _first(last, *GENERATED)
        ours = sum(a.reading.completion_tokens for a in self.client.answers)
        theirs = last.get(made, 0.0) - first.get(made, 0.0)
        if made and not self.client.failed and theirs > 1.05 * ours + 64 * self.users:
            self.note(
                "other_traffic", f"the server generated {theirs:.0f} tokens, this round {ours}"
            )
        preempted = "vllm:num_preemptions_total"
        if last.get(preempted, 0.0) > first.get(preempted, 0.0):
            self.note(
                "preempted",
                "the engine preempted requests: the KV cache is too small for this load",
            )
        speculation = acceptance(first, last)
        if speculation and not speculation["drafts"] and ours:
            self.note("speculation_inactive", "speculation is set up, but nothing was drafted")
        if self.client.dropped:
            self.note(
                "field_dropped",
                f"refused by the server and left out: {', '.join(self.client.dropped)}",
            )
        if self.watch.restarted:
            self.note("restarted", "the server restarted during the round")
        served = {a.reading.model for a in self.client.answers if a.reading.model}
        if served - {self.client.model}:
            self.note(
                "wrong_model",
                f"asked for {self.client.model}, answered by {', '.join(sorted(served))}",
            )

    # The parts, in the order of a full round.

    def smoke(self) -> None:
        """Before any figure: words, a tool call where claimed, an image where claimed."""
        answer = self.client.ask(Ask("Escribe una frase sencilla sobre el mar.", 24), "smoke test")
        trouble = degenerate(answer.reading.text) if answer.ok else answer.reading.detail
        smoke: dict[str, Any] = {
            "words": not trouble,
            "tool_call": None,
            "image": None,
            "message": trouble,
        }
        if trouble and answer.ok:
            self.note("garbage_output", trouble)
        if "tools" in self.capabilities:
            ask = Ask("What is the weather in Lima now? Use the tool.", 256, extra={"tools": TOOLS})
            reading = self.client.ask(ask, "smoke test, tool call").reading
            called = "get_weather" in reading.tool_names
            smoke["tool_call"] = (
                None if reading.finish_reason == "length" and not called else called
            )
            if not called:
                self.note("no_tool_call", "the recipe claims tools, but no tool call came")
        if "image" in self.capabilities:
            picture = {"type": "image_url", "image_url": {"url": red_square_png()}}
            text = {"type": "text", "text": "Which colour fills this picture? One word."}
            reading = self.client.ask(Ask([text, picture], 128), "smoke test, image").reading
            seen = re.search(r"\b(red|roj[oa]|crimson|scarlet)\b", reading.text, re.IGNORECASE)
            smoke["image"] = (
                bool(seen) if reading.ok and reading.finish_reason != "length" else None
            )
            if not seen:
                self.note("no_image", f"a red square was described as {reading.text[-60:]!r}")
        self.record(smoke=smoke)

    def published(self) -> None:
        """The published method as it was run: one prompt, no nonce, no warm-up."""
        ask = Ask(writing_prompt(), nonce=False)
        single = [self.client.ask(ask, "published, one user") for _ in range(3)]
        self._publish("separate_pass", single=single)
        self._publish("separate_pass", rounds=[self.client.burst([ask] * self.users, "published")])
        if self._fits(LONG_LINES * 15):
            answer = self.client.ask(Ask(long_prompt(), 100, nonce=False), "published, long prompt")
            self._publish("separate_pass", long=[answer])

    def _publish(
        self,
        read_from: str,
        *,
        single: Sequence[Answer] = (),
        rounds: Sequence[Sequence[Answer]] = (),
        long: Sequence[Answer] = (),
    ) -> None:
        """Keep the published method's figures, unless its own pass has given them."""
        figures = dict(self.data["published_method"])
        if figures["read_from"] not in (None, read_from):
            return
        figures["read_from"] = read_from
        if single:
            figures["single_user_tok_s"] = published_median(single, "tok_s")
            figures["ttft_ms"] = _times(published_median(single, "ttft_s"), 1000)
            figures["n"] = sum(1 for a in single if a.ok)
        if rounds and len(rounds[0]) == 4:
            figures["four_users_total_tok_s"] = published_total(rounds)
        if long:
            figures["long_prompt_46k_s"] = published_median(long, "end_s")
        self.record(published_method=figures)

    def single(self, repeats: int) -> None:
        """One user at a time, after a warm-up."""
        warmup: Answer | None = self.client.ask(Ask(writing_prompt()), "warm-up")
        answers: list[Answer] = []
        if self.quick and warmup and (warmup.reading.e2e_s or 0.0) > SLOW_S:
            answers, warmup, repeats = [warmup], None, 0
        for number in range(repeats):
            answers.append(self.client.ask(Ask(writing_prompt()), f"one user, {number + 1}"))
            self._keep_single(answers, warmup)
        self._keep_single(answers, warmup)
        self._judge_single([a.reading for a in answers if a.ok])
        self._publish("same_bytes", single=answers)

    def _keep_single(self, answers: Sequence[Answer], warmup: Answer | None) -> None:
        figures = single_figures(answers, warmup)
        figures["comparable"] = figures["comparable"] and "garbage_output" not in self.notes
        self.record(single=figures)

    def _judge_single(self, good: Sequence[Reading]) -> None:
        """Name what makes the answers doubtful."""
        if not good:
            return
        tokens = statistics.median(reading.completion_tokens for reading in good)
        if tokens < TOO_SHORT:
            self.note(
                "too_short",
                f"the answers have {tokens:.0f} tokens; below {TOO_SHORT} speeds say little",
            )
        elif tokens < 150 and any(reading.finish_reason == "stop" for reading in good):
            self.note(
                "early_stop", f"the answers stop after {tokens:.0f} of the 300 tokens asked for"
            )
        if hidden := next((why for r in good if (why := r.hidden_reasoning())), ""):
            self.note(
                "hidden_reasoning", f"decode speed cannot be measured: {hidden}; see e2e_tok_s"
            )
        if any(reading.token_source == "chunks" for reading in good):
            self.note("chunks_only", "no usage came: tokens are counted by events, a lower bound")
        if any(2 * (r.cached_tokens or 0) > (r.prompt_tokens or 1) for r in good):
            self.note(
                "cached_prompt",
                "a cache answered most of the short prompt: its TTFT is not prefill",
            )
        if garbage := next((why for r in good if (why := degenerate(r.text))), ""):
            self.note("garbage_output", garbage)
        if any(r.reasoning_field == "reasoning" and r.ttfo_s != r.ttft_s for r in good):
            self.note(
                "published_blind",
                "the published method does not see this server's reasoning: "
                "its TTFT is too long and its speed too high",
            )

    def concurrent(self, repeats: int, *, warm: bool = False) -> None:
        """All users at once, each with a prompt of its own, for each step of the ladder."""
        curve: list[dict[str, Any]] = []
        for users in self.ladder:
            asks = [Ask(writing_prompt(user)) for user in range(users)]
            if warm:
                self.client.burst(asks, f"{users} users, warm-up")
            rounds: list[list[Answer]] = []
            for number in range(repeats):
                rounds.append(self.client.burst(asks, f"{users} users, round {number + 1}"))
                figures = concurrent_figures(rounds, users)
                done = {"concurrent": figures} if users == self.users else {}
                self.record(users_curve=[*curve, figures] if len(self.ladder) > 1 else [], **done)
            curve.append(figures)
            if users == self.users:
                self._publish("same_bytes", rounds=rounds)
            if figures["failed"]:
                self.note(
                    "concurrency_failed",
                    f"{figures['failed']} of {figures['requests']} requests of "
                    f"{users} users failed: no speed comes from the rest",
                )

    def long(self, repeats: int) -> None:
        """The prompt of about 46,000 tokens, sized by the server's own count."""
        sample = 100
        probe = self.client.ask(Ask(long_prompt(sample), 1), "long prompt, sizing")
        lines, counted = LONG_LINES, probe.reading.prompt_tokens
        each = max(counted - 40, sample) / sample if counted else 15.0
        if not 0.8 < each * LONG_LINES / LONG_TOKENS < 1.2:
            lines = round(LONG_TOKENS / each)
        if probe.too_long or not self._fits(round(lines * each)):
            need = f"{lines * each:.0f} + 100 tokens"
            reason = f"the prompt needs {need}, the context is {self.context or 'smaller'}"
            self.note("not_supported", f"long prompt: {reason}")
            self.record(long_prompt=long_figures([], "not_supported", reason))
            return
        answers: list[Answer] = []
        for number in range(repeats):
            answers.append(
                self.client.ask(Ask(long_prompt(lines), 100), f"long prompt {number + 1}")
            )
            self.record(long_prompt=long_figures(answers))
        cached = [
            a
            for a in answers
            if 10 * (a.reading.cached_tokens or 0) > (a.reading.prompt_tokens or 1)
        ]
        if cached:
            self.note("cached_long_prompt", "a cache answered part of the long prompt")
        self._publish("same_bytes", long=answers)

    def _fits(self, tokens: int) -> bool:
        return self.context is None or tokens + 100 <= self.context

    def stability(self) -> None:
        """Rounds of all users and the long prompt; any failure or restart makes it unstable."""
        asks = [Ask(writing_prompt(user)) for user in range(self.users)]
        speeds: list[float] = []
        for number in range(3):
            burst = self.client.burst(asks, f"stability, round {number + 1}")
            speeds += [total for total in [published_total([burst])] if total]
            self.record()
        if self._fits(LONG_LINES * 15):
            self.client.ask(Ask(long_prompt(), 100), "stability, long prompt")
        if speeds and min(speeds) < 0.7 * max(speeds):
            self.note("speed_drop", f"rounds ran at {min(speeds):.1f} to {max(speeds):.1f} tok/s")
        self.watch.mark()
        stable = None if self.watch.restarted is None else not self.watch.restarted
        self.record(stable=stable)

    def varied(self) -> None:
        """Each kind of work at two temperatures, with the acceptance of speculation."""
        rows: list[dict[str, Any]] = []
        for temperature, (kind, prompt) in itertools.product((0.0, 0.7), varied_prompts().items()):
            before = self.watch.mark()
            answers: list[Answer] = []
            while len(answers) < 3:
                answers.append(
                    self.client.ask(Ask(prompt, 400, temperature), f"{kind} at {temperature}")
                )
                if not answers[-1].ok or (answers[-1].reading.e2e_s or 0.0) > SLOW_S:
                    break
            counted = acceptance(before, self.watch.mark()) or acceptance_from_timings(answers)
            good = [a.reading for a in answers if a.ok]
            state = "measured" if good else "not_supported" if answers[0].too_long else "failed"
            rows.append(
                {
                    "workload": kind,
                    "temperature": temperature,
                    "n": len(good),
                    "state": state,
                    "decode_tok_s": decode_spread(answers),
                    "acceptance": counted,
                    "ttft_ms": spread((r.ttft_s for r in good), 1000),
                    "failed": sum(1 for a in answers if not a.ok and not a.too_long),
                }
            )
            self.record(varied=rows)

    def sustained(self, minutes: float) -> None:
        """Closed loop: each user sends its next request when the last one has ended."""
        prompts = list(varied_prompts().items())
        unfit = {r["workload"] for r in self.data["varied"] if r["state"] == "not_supported"}
        prompts = [(kind, prompt) for kind, prompt in prompts if kind not in unfit]
        done: list[tuple[str, Answer]] = []
        before, start, seconds = self.watch.mark(), clock(), minutes * 60
        over = threading.Event()

        def work(turn: int) -> None:
            failures = 0
            while clock() - start < seconds and not over.is_set() and failures < 5:
                kind, prompt = prompts[turn % len(prompts)]
                answer = self.client.ask(Ask(prompt, 400, 0.7 * (turn % 2)), f"sustained, {kind}")
                done.append((kind, answer))
                failures = 0 if answer.ok else failures + 1
                over.wait(0 if answer.ok else 1.0)
                turn += 1

        workers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(self.users)]
        for worker in workers:
            worker.start()
        try:
            while any(worker.is_alive() for worker in workers):
                workers[0].join(15.0) if workers[0].is_alive() else over.wait(1.0)
                self._keep_sustained(done, start, seconds, before)
        finally:
            over.set()
        self._keep_sustained(done, start, seconds, before)
        if self.data["sustained"]["drift"] in ("slower", "faster"):
            self.note(
                "drift", f"speed drifted by {self.data['sustained']['drift_pct']} % over the run"
            )

    def _keep_sustained(
        self,
        done: Sequence[tuple[str, Answer]],
        start: float,
        seconds: float,
        before: Mapping[str, float],
    ) -> None:
        ran = min(clock() - start, seconds)
        after = self.watch.mark()
        figures = sustained_figures(list(done), start, ran) | {
            "minutes": round(ran / 60, 3),
            "users": self.users,
            "acceptance": acceptance(before, after) or acceptance_from_timings(a for _, a in done),
            "mem_available_low_bytes": self.watch.mem_low,
        }
        self.record(sustained=figures)

    def school(self) -> None:
        """The school's ladder: three scenarios, tok/s over the whole wall time, seed 42."""
        scenarios = {
            "chat": ("Explica en pocas frases qué es un glaciar y cómo se mueve.", 256),
            "qa": (
                "¿Cómo se organiza una biblioteca escolar? Responde con detalle y ejemplos.",
                512,
            ),
            "rag": (
                f"Contexto: {log_text(265)} ¿Qué pasos tardaron más y qué conviene revisar?",
                256,
            ),
        }
        curve: list[dict[str, Any]] = []
        for (name, (prompt, tokens)), users in itertools.product(scenarios.items(), self.ladder):
            asks = [Ask(prompt, tokens, extra={"seed": 42})] * users
            self.client.burst(asks, f"{name}, {users} users, warm-up")
            rounds = [self.client.burst(asks, f"{name}, {users} users") for _ in range(3)]
            curve.append(concurrent_figures(rounds, users, name))
            self.record(users_curve=curve)
            self.watch.mark()


def long_figures(answers: Sequence[Answer], state: str = "", reason: str = "") -> dict[str, Any]:
    """The long prompt: prefill speed = uncached prompt tokens / TTFT."""
    good = [a.reading for a in answers if a.ok]
    state = state or (
        "measured" if good else "not_supported" if all(a.too_long for a in answers) else "failed"
    )
    wall, ttft = spread(r.stream_end_s for r in good), spread((r.ttft_s for r in good), 1000)
    speeds = spread(
        (r.prompt_tokens - (r.cached_tokens or 0)) / r.ttft_s
        for r in good
        if r.prompt_tokens and r.ttft_s
    )
    return {
        "state": state,
        "prompt_tokens": good[-1].prompt_tokens if good else None,
        "cached_tokens": good[-1].cached_tokens if good else None,
        "wall_s": wall["median"] if wall else None,
        "ttft_ms": ttft["median"] if ttft else None,
        "prefill_tok_s": speeds["median"] if speeds else None,
        "n": len(good),
        "reason": reason or next((a.reading.detail for a in answers if not a.ok), ""),
        "wall_s_spread": wall,
        "ttft_ms_spread": ttft,
        "prefill_tok_s_spread": speeds,
    }


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 4)


def look_at_server(client: Client) -> tuple[dict[str, Any], int | None, str]:
    """Ask what is served: (server facts, context in tokens, a warning or nothing)."""
    models = _dicts(_dict(client.get_json("/models", under_v1=True)).get("data"))
    ids = [_text(model.get("id")) for model in models]
    if not client.model and len(ids) == 1:
        client.model = ids[0]
    served = next((m for m in models if client.model in (m.get("id"), m.get("root"))), {})
    warning = "" if served or not ids else f"the server lists {', '.join(ids)}, not {client.model}"
    engine = _text(served.get("owned_by"))
    version = _dict(client.get_json("/version") or client.get_json("/version", under_v1=True))
    props = _dict(client.get_json("/props")) if engine in ("", "llamacpp") else {}
    context = _count(served.get("max_model_len"))
    context = context or _count(_dict(props.get("default_generation_settings")).get("n_ctx"))
    seen = (
        _text(version.get("version"))
        or _text(version.get("release"))
        or _text(props.get("build_info"))
    )
    facts = {
        "base_url": client.endpoint.url,
        "model": client.model or "unknown",
        "engine": engine or None,
        "engine_version": seen or None,
    }
    return facts, context, warning


def run_round(
    base_url: str,
    model: str,
    *,
    method: str = "october",
    quick: bool = False,
    only: str | None = None,
    users: int | Sequence[int] | None = 4,
    context_tokens: int | None = None,
    capabilities: Collection[str] = (),
    api_key: str | None = None,
    recipe_id: str | None = None,
    simulated: bool = False,
    tool_version: str = "",
    restart_probe: Callable[[], str | None] | None = None,
    progress: Callable[[str], None] | None = None,
    save: Callable[[dict[str, Any]], None] | None = None,
    sustained_minutes: float = 15.0,
    limits: Limits = Limits(),
) -> dict[str, Any]:
    """Measure a server.

    Args:
        base_url: The endpoint, with or without ``/v1``.
        model: The name to ask for; empty: the only one that is served.
        method: ``october``, or ``school`` (ladders of users over three scenarios).
        quick: Fewer repeats, no stability part: under two minutes.
        only: One part alone: single, concurrent, long or stability.
        users: Users at once; several numbers make a curve.
        context_tokens: Longest sequence the server takes, where it does not say so itself.
        capabilities: What the recipe claims; ``tools`` and ``image`` are tried in the smoke test.
        api_key: Sent as a Bearer token, and never shown.
        recipe_id: Noted in the result.
        simulated: Noted in the result.
        tool_version: Noted in the result.
        restart_probe: Gives a word that changes when the server restarts.
        progress: Called with a line for people.
        save: Called with the result so far after every request.
        sustained_minutes: Length of the sustained part of a full round; 0 leaves it out.
        limits: When a request has failed.

    Returns:
        The round as JSON data. A failed request is a figure in it, not an exception; Ctrl-C gives
        what was measured until then, with a warning.

    Raises:
        BadEndpoint: The base URL cannot be used.
        ValueError: Another option has a bad value.
    """
    ladder = [users] if isinstance(users, int) else list(users or ())
    ladder = ladder or list(SCHOOL_LADDER if method == "school" else (4,))
    if method not in METHODS or only not in (None, *PARTS) or min(ladder) < 1:
        raise ValueError(f"method is one of {METHODS}, only one of {PARTS}, users are 1 or more")
    say = progress or (lambda line: None)
    client = Client(Endpoint.parse(base_url), model, api_key, limits)
    server, context, warning = look_at_server(client)
    data = {
        "schema_version": 1,
        "method": method,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tool_version": tool_version or "standalone",
        "server": server,
        "machine": None,
        "recipe_id": recipe_id,
        "simulated": simulated,
        "smoke": None,
        "single": None,
        "concurrent": None,
        "long_prompt": None,
        "stable": None,
        "varied": [],
        "sustained": None,
        "acceptance": None,
        "users_curve": [],
        "warnings": [],
        "published_method": dict.fromkeys(
            (
                "single_user_tok_s",
                "ttft_ms",
                "four_users_total_tok_s",
                "long_prompt_46k_s",
                "read_from",
            )
        )
        | {"n": 0},
    }
    watch = Watch(client, restart_probe)
    run = StandardRound(
        client,
        watch,
        data,
        users=ladder,
        quick=quick,
        capabilities=capabilities,
        context_tokens=context or context_tokens,
        say=say,
        save=save or (lambda so_far: None),
    )
    if warning:
        run.note("wrong_model", warning)
    watch.start()
    try:
        return run.run(plan(run, method, quick, only, sustained_minutes))
    finally:
        watch.stop()


def plan(
    run: StandardRound, method: str, quick: bool, only: str | None, sustained_minutes: float
) -> list[tuple[str, Callable[[], None]]]:
    """The parts of a round, in order."""
    if method == "school":
        return [("school", run.school)]
    if only:
        alone: dict[str, Callable[[], None]] = {
            "single": lambda: run.single(3),
            "concurrent": lambda: run.concurrent(3, warm=True),
            "long": lambda: run.long(3),
            "stability": run.stability,
        }
        return [(only, alone[only])]
    singles, rounds, longs = (3, 1, 1) if quick else (6, 6, 3)
    parts: list[tuple[str, Callable[[], None]]] = [
        ("smoke test", run.smoke),
        ("published method", run.published),
        ("single", lambda: run.single(singles)),
        ("concurrent", lambda: run.concurrent(rounds)),
        ("long prompt", lambda: run.long(longs)),
        ("stability", run.stability),
        ("varied", run.varied),
        ("sustained", lambda: run.sustained(sustained_minutes)),
    ]
    if quick:
        return [parts[i] for i in (0, 2, 3, 4)]
    return parts if sustained_minutes > 0 else parts[:-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a round from the command line; the JSON goes to stdout, progress to stderr."""
    cli = argparse.ArgumentParser(description="Measure an OpenAI-compatible server.")
    cli.add_argument("--base-url", default="http://127.0.0.1:8000")
    cli.add_argument("--model", default="", help="default: the only one that is served")
    cli.add_argument("--users", default="", help="4, or a ladder like 1,2,4,8,16")
    cli.add_argument("--quick", action="store_true", help="under two minutes")
    cli.add_argument("--only", choices=PARTS)
    cli.add_argument("--method", choices=METHODS, default="october")
    cli.add_argument(
        "--context", type=int, help="context of the server in tokens, if it does not say"
    )
    cli.add_argument("--capabilities", default="", help="what to try first: tools,image")
    cli.add_argument("--sustained-minutes", type=float, default=15.0)
    cli.add_argument("--api-key-env", metavar="NAME", help="environment variable with the API key")
    cli.add_argument("--output", type=Path, help="also save here after every request")
    options = cli.parse_args(argv)

    def save(data: dict[str, Any]) -> None:
        if options.output:
            partial = options.output.with_suffix(".partial")
            partial.write_text(json.dumps(data, indent=1))
            partial.replace(options.output)

    try:
        result = run_round(
            options.base_url,
            options.model,
            method=options.method,
            quick=options.quick,
            only=options.only,
            users=[int(n) for n in options.users.split(",") if n],
            context_tokens=options.context,
            capabilities=options.capabilities.split(","),
            sustained_minutes=options.sustained_minutes,
            api_key=os.environ.get(options.api_key_env or ""),
            save=save,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except ValueError as err:
        cli.error(str(err))
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if any(line.startswith("interrupted:") for line in result["warnings"]):
        return 130
    return 1 if result["stability"]["failed"] or result["stable"] is False else 0


if __name__ == "__main__":
    sys.exit(main())
