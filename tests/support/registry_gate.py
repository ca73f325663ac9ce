"""A gate in front of a real registry: it counts what goes through, holds it, or turns it away.

Docker takes it for the registry itself (plain http on loopback is allowed to it). Nothing is
changed on the way, so that digests hold.
"""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

PIECE_BYTES = 1 << 16
NOT_PASSED_ON = {"transfer-encoding", "connection", "keep-alive", "content-length"}


class RegistryGate:
    """Listens on a loopback port of its own and passes requests on to a registry.

    Attributes:
        address: Host and port, as in an image reference.
        retry_after_s: Everybody is turned away with 429 and this Retry-After; None: nobody is.
        held: Digests of blobs of which only the half is sent until ``let_go``.
        sent: Bytes of each blob that went through, by its digest.
        requests: Method and path of every request.
    """

    def __init__(self, registry: str) -> None:
        self.retry_after_s: int | None = None
        self.held: set[str] = set()
        self.let_go = threading.Event()
        self.sent: dict[str, int] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()
        self.server = GateServer(("127.0.0.1", 0), Handler)
        self.server.gate, self.server.registry = self, registry
        self.address = f"127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Self:
        """Start to listen."""
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go what is held, and stop to listen."""
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def forget(self) -> None:
        """Count from nothing, and hold nothing any more."""
        with self.lock:
            self.held, self.sent, self.requests = set(), {}, []
            self.let_go.set()

    def count(self, counts: dict[str, int], path: str, size: int) -> None:
        """Count bytes of a blob into what was counted into when its request came."""
        if "/blobs/" in path:
            digest = path.rpartition("/")[2]
            with self.lock:
                counts[digest] = counts.get(digest, 0) + size


class GateServer(ThreadingHTTPServer):
    """The listening socket of one gate."""

    daemon_threads = True
    gate: RegistryGate
    registry: str


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: GateServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Pass one request on and stream its answer back, or turn it away."""
        gate = self.server.gate
        gate.requests.append(f"{self.command} {self.path}")
        if gate.retry_after_s is not None:
            self.turn_away(gate.retry_after_s)
        else:
            self.pass_on()

    def do_HEAD(self) -> None:
        """Answer with headers alone."""
        self.do_GET()

    def pass_on(self) -> None:
        """Pass one request on and stream its answer back."""
        onward = http.client.HTTPConnection(self.server.registry, timeout=60)
        # Host stays the gate's, so that a registry's own links lead back here; of Accept there are
        # several.
        onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            onward.putheader(name, value)
        onward.endheaders()
        answer = onward.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in NOT_PASSED_ON:
                self.send_header(name, value)
        length = answer.headers.get("Content-Length", "0")
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.send(answer, int(length))
        onward.close()

    def turn_away(self, seconds: int) -> None:
        """Answer as a registry that was asked too often."""
        body = b'{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}'
        self.send_response(429)
        self.send_header("Retry-After", str(seconds))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send(self, answer: http.client.HTTPResponse, length: int) -> None:
        """Stream a body; the second half of what is held comes when it is let go."""
        gate, sent = self.server.gate, 0
        counts = gate.sent
        while piece := answer.read(PIECE_BYTES):
            if self.path.rpartition("/")[2] in gate.held and sent >= length // 2:
                gate.let_go.wait(60)
            self.wfile.write(piece)
            sent += len(piece)
            gate.count(counts, self.path, len(piece))

    def handle(self) -> None:
        """Serve; a client that leaves in the middle is no error here."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing: tests read ``requests``."""
