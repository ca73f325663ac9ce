"""A proxy that adds the bearer token, for a test suite that cannot send headers of its own.

Everything else goes through as it comes, a foreign Host and Origin too; only the proxy's own
address becomes the server's.
"""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

NOT_PASSED_ON = {"transfer-encoding", "connection", "keep-alive"}


class TokenProxy:
    """Listens on a loopback port and passes requests on."""

    def __init__(self, port: int, token: str) -> None:
        """Remember where to and with what."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def pass_on(self) -> None:
                """Pass one request on and stream its answer back."""
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                onward = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                onward.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    onward.putheader(name, value.replace(proxy.address, f"127.0.0.1:{port}"))
                onward.putheader("Authorization", f"Bearer {token}")
                onward.endheaders(body)
                answer = onward.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in NOT_PASSED_ON:
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    while data := answer.read1(65536):
                        self.wfile.write(data)
                        self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    onward.close()
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = do_OPTIONS = pass_on  # noqa: N815 (http.server's names)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        """Start it."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()
