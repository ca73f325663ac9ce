"""An OpenAI-compatible streaming server whose timing is known, to measure how wrong a client is.

What it plays is read from the model's name, parts joined by ``-`` in any order::

    t100-r60            first token after 100 ms, then 60 tokens a second
    ...-c3              three tokens an event, as under speculation
    ...-k40             the first 40 tokens are reasoning
    ...-words           a Spanish text that is never the same word twice in a row

Time zero is the moment the whole request was read; each event's real time of writing is kept, on
the clock that all processes of a machine share, so that a client is compared with what the server
did and not with its schedule. ``GET /log`` gives and clears that list.

One thread, one selector and a heap of what is due: the server must stay faster than its clients.
Run it: ``python -m tests.support.timing_server --port 8399``.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import re
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

clock = time.perf_counter

TEXT = """
el faro alumbra la costa mientras las barcas vuelven con redes llenas de sardinas y los niños
cuentan historias de tormentas antiguas que nadie recuerda del todo pero que todos repiten cada
verano junto al fuego antes de dormir bajo un cielo claro sin luna ni viento cuando una campana
lejana marca horas lentas para quien espera noticias desde otra orilla entre rocas negras mar
adentro donde nacen corrientes frías según dicen viejos marineros
"""
WORDS = TEXT.split()
BOOK = " ".join(f"word{i % 97} on line {i % 13}" for i in range(20_000)).encode()


@dataclass(frozen=True)
class Timing:
    """What one model name asks for."""

    ttft_s: float = 0.1
    rate: float = 50.0
    per_event: int = 1
    reasoning: int = 0
    words: bool = False

    @classmethod
    def of(cls, model: str) -> Timing:
        """Read a model name; parts that say nothing are ignored."""
        values: dict[str, float] = {}
        for part in model.split("-"):
            if match := re.fullmatch(r"([trck])(\d+(?:\.\d+)?)", part):
                values[match[1]] = float(match[2])
        return cls(
            ttft_s=values.get("t", 100) / 1000,
            rate=values.get("r", 50),
            per_event=int(values.get("c", 1)),
            reasoning=int(values.get("k", 0)),
            words="words" in model.split("-"),
        )


@dataclass
class Stream:
    """One request being answered."""

    sock: socket.socket
    timing: Timing
    head: dict[str, Any]
    tokens: int
    usage: dict[str, int]
    with_usage: bool
    t_request: float
    sent: int = 0
    times: list[float] = field(default_factory=list)

    def due(self) -> float:
        """When the next event is to be written."""
        return self.t_request + self.timing.ttft_s + self.sent / self.timing.rate

    def next_event(self) -> bytes:
        """The next event, framed; the last one brings usage and the end of the body with it."""
        size = min(self.timing.per_event, self.tokens - self.sent)
        name = "reasoning" if self.sent < self.timing.reasoning else "content"
        text = "".join(f" {self.word(self.sent + i)}" for i in range(size))
        first = chunk(self.event({"role": "assistant", "content": ""})) if not self.sent else b""
        self.sent += size
        last = self.sent >= self.tokens
        body = chunk(self.event({name: text}, "length" if last else None))
        return first + body + (self.ending() if last else b"")

    def word(self, index: int) -> str:
        """A word of the answer."""
        return WORDS[index % len(WORDS)] if self.timing.words else "tok"

    def event(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """One chunk as the API has it."""
        return {**self.head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def ending(self) -> bytes:
        """Usage, ``[DONE]`` and the end of the chunked body."""
        usage = chunk({**self.head, "choices": [], "usage": self.usage}) if self.with_usage else b""
        return usage + frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def frame(body: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def chunk(event: dict[str, Any]) -> bytes:
    """One server-sent event as one chunk."""
    return frame(b"data: " + json.dumps(event).encode() + b"\n\n")


class TimingServer:
    """The server, on a thread of its own; a context manager for tests."""

    def __init__(self, model: str = "t100-r60", port: int = 0) -> None:
        self.model = model
        self.log: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._selector = selectors.DefaultSelector()
        self._due: list[tuple[float, int, Stream]] = []
        self._order = itertools.count()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()

    def __enter__(self) -> TimingServer:
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(5)

    def serve(self) -> None:
        """Answer until closed."""
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while not self._closing.is_set():
            wait = max(self._due[0][0] - clock(), 0.0) if self._due else 0.05
            for key, _ in self._selector.select(min(wait, 0.05)):
                key.data()
            self._write_due()
        for sock in [*self._open, self._listener]:
            sock.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.add(sock)
        self._selector.register(sock, selectors.EVENT_READ, self._reader(sock))

    def _reader(self, sock: socket.socket) -> Callable[[], None]:
        held = bytearray()

        def read() -> None:
            try:
                data = sock.recv(1 << 20)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            now = clock()
            held.extend(data)
            head, blank, body = bytes(held).partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            if not data:
                self._drop(sock)
            elif blank and len(body) >= int(length[1] if length else 0):
                held.clear()
                self._answer(sock, head.split()[1].decode(), body, now)

        return read

    def _answer(self, sock: socket.socket, path: str, body: bytes, now: float) -> None:
        if path.endswith("/chat/completions"):
            self._start(sock, json.loads(body), now)
        elif path.endswith("/models"):
            listed = [{"id": self.model, "object": "model", "owned_by": "timing"}]
            self._page(sock, {"object": "list", "data": listed})
        elif path == "/log":
            used = resource.getrusage(resource.RUSAGE_SELF)
            self._page(sock, {"cpu_s": used.ru_utime + used.ru_stime, "rows": self.log})
            self.log = []
        elif path == "/health":
            self._page(sock, {})
        elif path == "/book.txt":  # for clients that cut their prompts from a book
            self._page(sock, BOOK)
        else:
            self._page(sock, {"error": {"message": "not found"}}, "404 Not Found")

    def _page(self, sock: socket.socket, data: Any, status: str = "200 OK") -> None:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        sock.setblocking(True)
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self._drop(sock)

    def _start(self, sock: socket.socket, request: dict[str, Any], now: float) -> None:
        self.requests.append(request)
        tokens = int(request.get("max_completion_tokens") or request.get("max_tokens") or 64)
        prompt = sum(len(str(m.get("content", "")).split()) for m in request["messages"])
        model = request.get("model", "")
        stream = Stream(
            sock=sock,
            timing=Timing.of(model),
            head={"id": f"c{next(self._order)}", "object": "chat.completion.chunk", "model": model},
            tokens=tokens,
            usage={
                "prompt_tokens": prompt,
                "completion_tokens": tokens,
                "total_tokens": prompt + tokens,
            },
            with_usage=bool((request.get("stream_options") or {}).get("include_usage")),
            t_request=now,
        )
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        sock.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        heapq.heappush(self._due, (stream.due(), next(self._order), stream))

    def _write_due(self) -> None:
        while self._due and self._due[0][0] <= clock():
            _, _, stream = heapq.heappop(self._due)
            try:
                stream.sock.send(stream.next_event())
            except OSError:
                self._drop(stream.sock)
                continue
            stream.times.append(clock())
            if stream.sent < stream.tokens:
                heapq.heappush(self._due, (stream.due(), next(self._order), stream))
            else:
                self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        self.log.append(
            {
                "model": stream.head["model"],
                "tokens": stream.tokens,
                "per_event": stream.timing.per_event,
                "t_request": stream.t_request,
                "t_first": stream.times[0],
                "t_last": stream.times[-1],
            }
        )
        self._drop(stream.sock)

    def _drop(self, sock: socket.socket) -> None:
        if sock in self._open:
            self._open.discard(sock)
            self._selector.unregister(sock)
            sock.close()


def main() -> None:
    """Serve until interrupted."""
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--port", type=int, default=8399)
    cli.add_argument("--model", default="t100-r60")
    options = cli.parse_args()
    server = TimingServer(options.model, options.port)
    print(server.base_url, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
