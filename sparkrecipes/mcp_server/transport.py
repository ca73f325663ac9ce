"""How clients reach the server: a pipe, or HTTP on this host alone with a token.

The pipe is the default. HTTP answers only on loopback, only to a Host and Origin of loopback (a
page in a browser may resolve any name to 127.0.0.1), and only with the bearer token.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import sys
from typing import Any

from sparkrecipes.errors import Misuse
from sparkrecipes.mcp_server.house import Settings
from sparkrecipes.mcp_server.server import build_server

TOKEN_VARIABLE = "SPARKRECIPES_MCP_TOKEN"  # noqa: S105 (the name of a variable)
SHORTEST_TOKEN = 16
PATH = "/mcp"
MAX_BODY_BYTES = 1024 * 1024

Message = dict[str, Any]


def serve_stdio(settings: Settings) -> None:
    """Serve one client over standard input and output, until it closes them."""
    build_server(settings).run("stdio")


def serve_http(settings: Settings, *, host: str = "127.0.0.1", port: int = 8765) -> None:
    """Serve clients on this host over streamable HTTP, until interrupted.

    The token is ``SPARKRECIPES_MCP_TOKEN``, or one that is made once and kept in the state folder,
    readable by this user alone. It is never printed.

    Raises:
        Misuse: An address that is not loopback, or a token that is too short.
    """
    import uvicorn

    token = access_token()
    app = http_app(settings, token, host=loopback(host), port=port)
    print(f"http://{host}:{port}{PATH}", file=sys.stderr)  # noqa: T201
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        # A client's open stream must not keep a server that is told to end.
        timeout_graceful_shutdown=3,
    )


def http_app(settings: Settings, token: str, *, host: str, port: int) -> Any:
    """Make the application: Host and Origin are looked at first, then the token.

    Args:
        settings: How the server behaves.
        token: What a client must send as a bearer token.
        host: The loopback address that it listens on.
        port: The port that it listens on.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    shown = f"[{host}]" if ":" in host else host
    names = [f"{name}:{port}" for name in dict.fromkeys((shown, "127.0.0.1", "localhost"))]
    app = build_server(settings).streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=names,
            allowed_origins=[f"http://{name}" for name in names],
        ),
    )
    return Guarded(app, token, names)


class Guarded:
    """An application that answers nobody without the token."""

    def __init__(self, app: Any, token: str, hosts: list[str]) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()
        self.hosts = [host.encode() for host in hosts]

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if headers.get(b"host") not in self.hosts:
            await refuse(send, 421, b"unknown Host")
        elif not self.origin_ok(headers.get(b"origin")):
            await refuse(send, 403, b"unknown Origin")
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self.expected):
            await refuse(send, 401, b"a bearer token is needed", (b"www-authenticate", b"Bearer"))
        else:
            await self.app(scope, receive, send)

    def origin_ok(self, origin: bytes | None) -> bool:
        """Say whether a request comes from a page of this host, or from no page at all."""
        return origin is None or origin.removeprefix(b"http://") in self.hosts


async def refuse(send: Any, status: int, why: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Answer a request that is not passed on."""
    kind = (b"content-type", b"text/plain")
    await send({"type": "http.response.start", "status": status, "headers": [kind, *headers]})
    await send({"type": "http.response.body", "body": why})


def loopback(host: str) -> str:
    """Return an address that only this host reaches.

    Raises:
        Misuse: Others could reach it.
    """
    try:
        inside = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise Misuse(
            f"{host} is not a loopback address, and this server starts programs on this host",
            code="not_loopback",
            repair="use 127.0.0.1; from another machine, forward the port with ssh -L",
        )
    return host


def access_token() -> str:
    """Return the token that clients must send.

    Raises:
        Misuse: The one in the environment is too short to be one.
    """
    given = os.environ.get(TOKEN_VARIABLE)
    if given is not None:
        if len(given) < SHORTEST_TOKEN:
            raise Misuse(
                f"{TOKEN_VARIABLE} is shorter than {SHORTEST_TOKEN} characters",
                repair=f"export {TOKEN_VARIABLE}=$(openssl rand -hex 32)",
            )
        return given
    from sparkrecipes.jobs.store import state_root

    path = state_root() / "mcp_token"
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(secrets.token_urlsafe(32))
    print(f"the bearer token is in {path}", file=sys.stderr)  # noqa: T201
    return path.read_text().strip()
