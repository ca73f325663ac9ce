"""The Docker Engine's socket for quick tests.

It answers a pull with what a real one was recorded to say: Docker Engine 20.10, in
``tests/data/docker/pull_events.jsonl``.
"""

import json
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class FakeEngine:
    """Listens on a unix socket, as a context manager.

    Attributes:
        path: The socket.
        status: HTTP status of the answer to a pull.
        lines: Its lines.
        pause_s: Waited before each line.
        asked: Path and query of every request, and the login that it carried.
    """

    def __init__(self, path: Path, lines: list[dict[str, Any]], status: int = 200) -> None:
        self.path, self.lines, self.status = path, lines, status
        self.pause_s = 0.0
        self.asked: list[tuple[str, str | None]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Answer a pull, line by line."""
                engine.asked.append((self.path, self.headers.get("X-Registry-Auth")))
                self.send_response(engine.status)
                self.end_headers()
                for line in engine.lines:
                    time.sleep(engine.pause_s)
                    self.wfile.write(json.dumps(line).encode() + b"\r\n")
                    self.wfile.flush()

            def handle(self) -> None:
                """Serve; a client that leaves is no error here."""
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def address_string(self) -> str:
                """A unix socket has no address."""
                return "unix"

        self.server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self.server.daemon_threads = True

    def __enter__(self) -> Self:
        """Start to listen."""
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to listen."""
        self.server.shutdown()
        self.server.server_close()
