"""A server that plays scripts: exact bytes at exact times, and an exact way to end.

It copies what engines were recorded to put on the wire, and the faults of networks and proxies
that no engine shows on demand: a cut body, a reset, a stall, an error page, an event in pieces.

    with ReplayServer(lambda request: stream([(0.1, event({"content": "hi"})), ...])) as server:
        ... server.base_url ...
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

End = Literal["close", "reset", "hold"]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Script:
    """What one connection gets: (seconds after the request was read, bytes), then its end."""

    steps: list[tuple[float, bytes]]
    end: End = "close"
    end_at: float = 0.0


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    head: str
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> Any:
        """What the user asks."""
        return self.body["messages"][0]["content"]


def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a chat completion as an event."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return data({"choices": [choice], **more})


def usage(completion: int, prompt: int = 50, **more: Any) -> bytes:
    """The event that brings the usage."""
    counted = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return data({"choices": [], "usage": counted})


def data(body: Any) -> bytes:
    """Anything as an event."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def frame(body: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


def stream(
    steps: Iterable[tuple[float, bytes]],
    end: End = "close",
    end_at: float = 0.0,
    whole: bool = True,
) -> Script:
    """A chunked stream of events; ``whole`` is False for a body without its last chunk."""
    framed = [(0.0, HEAD), *((at, frame(body)) for at, body in steps)]
    last = [(max(end_at, framed[-1][0]), b"0\r\n\r\n")] if whole else []
    return Script(framed + last, end, end_at)


def page(body: Any, status: str = "200 OK", kind: str = "application/json") -> Script:
    """A plain answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n\r\n"
    return Script([(0.0, head.encode() + raw)])


class ReplayServer:
    """Plays what ``answer`` gives for each request, a thread a connection."""

    def __init__(self, answer: Callable[[Request], Script]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock
        """What a connection goes through first: TLS, for instance."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._closing = threading.Event()

    def __enter__(self) -> ReplayServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def chats(self) -> list[Request]:
        """The requests that asked for a completion."""
        return [request for request in self.requests if request.path.endswith("/completions")]

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            sock = self.wrap(plain)
        except OSError:
            plain.close()
            return
        with sock:
            request = self._read(sock)
            if request is None:
                return
            begin = time.perf_counter()
            self.requests.append(request)
            script = self.answer(request)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for at, body in script.steps:
                    self._wait(begin + at)
                    sock.sendall(body)
                self._wait(begin + script.end_at)
                self._end(sock, script.end)
            except OSError:
                return  # the client left

    def _end(self, sock: socket.socket, end: End) -> None:
        if end == "hold":
            self._closing.wait(30)
        if end == "reset":  # linger on, no time: the kernel sends a reset
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _wait(self, until: float) -> None:
        if (left := until - time.perf_counter()) > 0:
            self._closing.wait(left)

    def _read(self, sock: socket.socket) -> Request | None:
        raw = b""
        while b"\r\n\r\n" not in raw:
            if not (fresh := sock.recv(65536)):
                return None
            raw += fresh
        head, _, body = raw.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        while len(body) < int(length[1] if length else 0):
            if not (fresh := sock.recv(1 << 20)):
                return None
            body += fresh
        method, path, _ = head.decode("latin-1").split(" ", 2)
        return Request(method, path, head.decode("latin-1"), json.loads(body or b"{}"))


@dataclass
class Engine:
    """An engine for ``ReplayServer``: models, counters, and a chat that a test can bend.

    ``chat`` gives the script of a completion; the rest copies what vLLM 0.32 answers.
    """

    chat: Callable[[Request], Script]
    model: str = "m"
    context: int | None = None
    metrics: Callable[[], str] | None = None
    version: str = "0.32.0"

    def __call__(self, request: Request) -> Script:
        """Answer one request."""
        if request.path.endswith("/chat/completions"):
            return self.chat(request)
        if request.path.endswith("/models"):
            listed = {"id": self.model, "owned_by": "vllm", "max_model_len": self.context}
            return page({"object": "list", "data": [listed]})
        if request.path == "/metrics" and self.metrics:
            return page(self.metrics().encode(), kind="text/plain")
        if request.path == "/version":
            return page({"version": self.version})
        if request.path == "/health":
            return page(b"")
        return page({"error": {"message": "Not Found", "code": 404}}, "404 Not Found")


SENTENCE = "El mar golpea despacio la piedra y deja sobre la arena una línea de espuma clara. "


def words(count: int) -> list[str]:
    """Words of an answer that says something."""
    base = SENTENCE.split()
    return [f" {base[i % len(base)]}{'' if i < len(base) else i}" for i in range(count)]


def answer(
    tokens: int = 100,
    *,
    first: float = 0.002,
    each: float = 0.0,
    prompt: int = 50,
    **usage_more: Any,
) -> Script:
    """A good answer of one-word tokens."""
    steps = [(first + each * n, event({"content": word})) for n, word in enumerate(words(tokens))]
    last = steps[-1][0]
    ending = event({}, "length") + usage(tokens, prompt, **usage_more) + DONE
    return stream([*steps, (last, ending)])
