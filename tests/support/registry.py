"""Registries for tests: recorded hosts for quick tests, and the real docker-registry.

``RecordedHosts`` answers for ghcr.io, nvcr.io, Docker Hub and others, which tests cannot reach:
it is an HTTPS proxy on loopback that ends the TLS of every host itself, with an authority that
the test trusts. So the code under test runs with its real client, real TLS, real host names and
the proxy variables. What the hosts answer copies what was recorded of them (see each test).
"""

import datetime
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.oci import DOCKER_INDEX, INDEX, Content

HOSTS = (
    "registry-1.docker.io",
    "auth.docker.io",
    "ghcr.io",
    "nvcr.io",
    "registry.example",
    "auth.example",
    "blobs.example",
)
API = {"Docker-Distribution-Api-Version": "registry/2.0"}


@dataclass(frozen=True)
class Request:
    """A request as a host saw it; header names are lower case."""

    scheme: str
    host: str
    path: str
    headers: dict[str, str]

    @property
    def url(self) -> str:
        """Scheme, host and path without the query."""
        return f"{self.scheme}://{self.host}{self.path.partition('?')[0]}"


@dataclass(frozen=True)
class Reply:
    """What a host answers."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip_s: float = 0.0
    """Pause before each byte of the body."""


Site = Callable[[Request], Reply]


def error(status: int, code: str | None = None, **headers: str) -> Reply:
    """Answer as registries do when they refuse."""
    body = {"errors": [{"code": code, "message": "refused", "detail": None}]} if code else {}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), API | names)


def token(value: str = "a-token") -> Reply:
    """Answer as a token server does when it grants."""
    return Reply(200, json.dumps({"token": value, "expires_in": 300}).encode())


def stored(repository: str, content: Content) -> Site:
    """Serve content as docker-registry does.

    A manifest of a repository that does not exist is MANIFEST_UNKNOWN, like a missing tag; so is
    an index that Accept does not name.
    """

    def site(request: Request) -> Reply:
        parts = request.path.partition("?")[0].removeprefix(f"/v2/{repository}/").split("/")
        if not request.path.startswith(f"/v2/{repository}/"):
            return error(
                404, "MANIFEST_UNKNOWN" if "/manifests/" in request.path else "NAME_UNKNOWN"
            )
        if parts[0] == "tags":
            return Reply(200, json.dumps({"tags": sorted(content.tags)}).encode(), API)
        digest = content.tags.get(parts[1], parts[1])
        body, media_type = content.blobs.get(digest), content.media_types.get(digest, "")
        unasked = (
            media_type in (INDEX, DOCKER_INDEX) and media_type not in request.headers["accept"]
        )
        if body is None or unasked:
            return error(404, "MANIFEST_UNKNOWN" if parts[0] == "manifests" else "BLOB_UNKNOWN")
        return Reply(200, body, API | {"Content-Type": media_type, "Docker-Content-Digest": digest})

    return site


def guarded(site: Site, challenge: str, authorization: str) -> Site:
    """Serve only who shows this Authorization; challenge everybody else."""

    def guard(request: Request) -> Reply:
        if request.headers.get("authorization") == authorization:
            return site(request)
        return error(401, "UNAUTHORIZED", WWW_Authenticate=challenge)

    return guard


class RecordedHosts:
    """A proxy that answers for its ``sites``, and keeps what it was asked."""

    def __init__(self) -> None:
        self.sites: dict[str, Site] = {}
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))

    @property
    def address(self) -> str:
        """Host and port at which it is a plain http registry too; ``sites`` may name it."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def environment(self) -> dict[str, str]:
        """Variables that lead every client here."""
        proxy = f"http://{self.address}"
        return {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "SSL_CERT_FILE": str(_authority()[0])}

    def urls(self) -> list[str]:
        """Return what was asked, in order."""
        return [request.url for request in self.requests]

    def __enter__(self) -> "RecordedHosts":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(hosts: RecordedHosts) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        tunnel: str | None = None

        def do_CONNECT(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.tunnel = self.path.rpartition(":")[0]
            self.rfile.close()
            self.connection = _tls_context().wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
            self.close_connection = False

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            host = self.tunnel or parts.netloc or self.headers["Host"]
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request("https" if self.tunnel else "http", host, path, headers)
            hosts.requests.append(request)
            site = hosts.sites.get(host)
            self._answer(site(request) if site else Reply(502, b"no such host"))

        def _answer(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            for piece in [bytes([byte]) for byte in reply.body] if reply.drip_s else [reply.body]:
                time.sleep(reply.drip_s)
                self.wfile.write(piece)
                self.wfile.flush()

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, ssl.SSLError):
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                self.close_connection = True
            self.connection.close()

        def log_message(self, *_: object) -> None:
            """Say nothing: the test reads ``requests``."""

    return Handler


@cache
def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_authority()[1])
    return context


@cache
def _authority() -> tuple[Path, Path]:
    """Make a certificate authority and a certificate for ``HOSTS``; return both files.

    They carry the key identifiers and the usage that Python 3.13 asks for (VERIFY_X509_STRICT).
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder = Path(tempfile.mkdtemp(prefix="recorded-hosts-"))
    now = datetime.datetime.now(datetime.UTC)

    def issue(name: str, key, issuer, issuer_key, *extensions):
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )
        known_by = (
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
        )
        for extension in (*known_by, *extensions):
            critical = isinstance(extension, (x509.BasicConstraints, x509.KeyUsage))
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(issuer_key, hashes.SHA256())

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    signs = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    root = issue("tests", root_key, "tests", root_key, x509.BasicConstraints(True, None), signs)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    leaf = issue("recorded hosts", key, "tests", root_key, names)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "authority.pem").write_bytes(root.public_bytes(pem))
    (folder / "server.pem").write_bytes(leaf.public_bytes(pem) + private)
    return folder / "authority.pem", folder / "server.pem"


@contextmanager
def docker_registry(folder: Path, auth: str = "") -> Iterator[str]:
    """Run the real docker-registry on loopback; ``auth`` is the YAML of its auth section.

    Yields:
        Its host and port.
    """
    program = shutil.which("docker-registry")
    assert program, "docker-registry is not installed: run .ci/parts/registry.sh"
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n"
        f"storage: {{filesystem: {{rootdirectory: '{folder}/data'}}, delete: {{enabled: true}}}}\n"
        f"{auth}"
    )
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
        try:
            _wait_for_port(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def push(content: Content, tag: str, address: str, repository: str, *options: str) -> None:
    """Push a tag with skopeo, all of its platforms."""
    with tempfile.TemporaryDirectory() as folder:
        content.write_layout(Path(folder) / "layout", tag)
        source = f"oci:{folder}/layout:{tag}"
        target = f"docker://{address}/{repository}:{tag}"
        # A policy that accepts anything, so that the host need not have one.
        policy = Path(folder) / "policy.json"
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        subprocess.run(
            [
                "skopeo",
                "--policy",
                str(policy),
                "copy",
                "--quiet",
                "--all",
                "--dest-tls-verify=false",
                *options,
                source,
                target,
            ],
            check=True,
            timeout=60,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_port(port: int, process: subprocess.Popen, timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        assert process.poll() is None, "docker-registry ended at once: see registry.log"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("docker-registry did not listen in time")
