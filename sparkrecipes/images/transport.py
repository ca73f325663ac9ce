"""One HTTP question to a registry: bounded in time and size, and careful with secrets.

Rules that hold whatever a server answers:

- plain http only between this machine and itself (loopback);
- an Authorization header goes to the origin it was meant for, and is dropped for good at the
  first redirect that leaves it;
- a body is read up to a cap, and everything together ends at the deadline.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkrecipes import __version__
from sparkrecipes.images.problem import RegistryProblem
from sparkrecipes.images.reference import is_loopback

if TYPE_CHECKING:
    import httpx2

MAX_BODY_BYTES = 4 << 20
"""Registries refuse larger manifests.

Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests
"""
MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Answer:
    """A response that was read to its end; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Deadline:
    """The moment at which the whole inspection ends."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def remaining(self) -> float:
        """Return the seconds that are left.

        Raises:
            RegistryProblem: None are.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise no_answer(self.timeout_s)
        return left


class Transport:
    """GET with the rules of this module; proxies come from the environment, as for Docker."""

    def __init__(self, deadline: Deadline, *, allow_http: bool) -> None:
        self._deadline = deadline
        self._allow_http = allow_http
        self._client = _open_client()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def get(self, url: str, *, accept: str = "*/*", authorization: str | None = None) -> Answer:
        """Ask, following redirects.

        Raises:
            RegistryProblem: ``no_network``, ``broken`` or ``unknown``; any status is an answer.
        """
        import httpx2

        try:
            return self._follow(httpx2.URL(url), accept, authorization)
        except httpx2.InvalidURL as error:
            raise RegistryProblem("broken", "the registry named an address that is none") from error

    def _follow(self, url: httpx2.URL, accept: str, authorization: str | None) -> Answer:
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        if authorization:
            headers["Authorization"] = authorization
        for _ in range(MAX_REDIRECTS + 1):
            self._refuse_unsafe(url)
            answer = self._read(url, headers)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or not location:
                return answer
            target = url.join(location)
            if target.origin != url.origin:
                headers.pop("Authorization", None)
            url = target
        raise RegistryProblem("broken", f"{url.host} redirects without end")

    def _read(self, url: httpx2.URL, headers: Mapping[str, str]) -> Answer:
        import httpx2

        timeout = self._deadline.remaining()
        try:
            with self._client.stream("GET", url, headers=headers, timeout=timeout) as response:
                body = b"" if response.status_code in REDIRECTS else self._body(response)
                return Answer(response.status_code, dict(response.headers), body)
        except httpx2.HTTPError as error:
            raise _network_problem(error, url.host, self._deadline.timeout_s) from error
        except ValueError as error:
            # A part above 63 characters: the resolver does not even take it.
            raise RegistryProblem("unknown", f"{url.host} cannot be asked: no address") from error

    def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            self._deadline.remaining()
            if len(body) > MAX_BODY_BYTES:
                raise RegistryProblem("broken", f"{response.url.host} sent more than 4 MiB")
        return bytes(body)

    def _refuse_unsafe(self, url: httpx2.URL) -> None:
        if url.userinfo:
            raise RegistryProblem("broken", f"{url.host} was named with a password in the address")
        if url.scheme == "https":
            return
        if url.scheme == "http" and self._allow_http and is_loopback(url.host):
            return
        raise RegistryProblem(
            "unknown",
            f"the registry sends to {url.host} over {url.scheme or 'no protocol'}: not asked, "
            "as only https is safe outside this machine",
        )


def no_answer(timeout_s: float) -> RegistryProblem:
    """Return the problem of an inspection that ran out of time."""
    return RegistryProblem(
        "no_network",
        f"no answer within {timeout_s:g} s",
        "check the network and the proxy variables, then ask again",
    )


def _open_client() -> httpx2.Client:
    """Open a client that never uses a proxy for this machine itself (nor does Docker)."""
    import httpx2

    loopback = ("localhost", "127.0.0.1", "[::1]")
    try:
        return httpx2.Client(
            mounts={f"all://{host}": None for host in loopback},
            headers={"User-Agent": f"sparkrecipes/{__version__}"},
            follow_redirects=False,
        )
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        raise RegistryProblem(
            "unknown",
            "the HTTP client does not start with this environment",
            "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR",
        ) from error


def _network_problem(error: httpx2.HTTPError, host: str, timeout_s: float) -> RegistryProblem:
    """Tell apart why nothing came back; the library's own text may name more than it should."""
    import httpx2

    causes = tuple(_chain(error))
    if isinstance(error, httpx2.TimeoutException):
        return no_answer(timeout_s)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return RegistryProblem(
            "unknown",
            f"the certificate of {host} is not trusted here, or it does not speak TLS",
            "check the clock and the proxy; a private authority goes into SSL_CERT_FILE",
        )
    if isinstance(error, httpx2.ProxyError):
        why = f"the proxy does not let us reach {host}"
    elif any(isinstance(cause, socket.gaierror) for cause in causes):
        why = f"the name {host} cannot be resolved"
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why = f"{host} refuses the connection"
    else:
        why = f"the connection to {host} broke"
    return RegistryProblem(
        "no_network", why, "check the network and the proxy variables, then ask again"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
