"""A small Hugging Face Hub on this host, for the real client.

It answers as huggingface.co was recorded to answer huggingface_hub 2.4: the endpoints, headers and
error codes that the client reads, redirects of large files to a second address, byte ranges. It is
no Hub: one commit a repository, no Xet storage.

Run alone: ``python -m tests.support.hub`` serves one tiny repository until it is interrupted.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

LFS_ENDINGS = (".safetensors", ".bin", ".gguf")


@dataclass
class HubRepo:
    """One repository at one commit.

    Attributes:
        files: Content by path.
        commit: Its only commit, which ``main`` is.
        gated: Whether its licence must be accepted.
        private: Whether only known tokens see it.
        disabled: Whether the Hub has closed it.
        claimed_sizes: Sizes that the listing states instead of the true ones.
    """

    files: dict[str, bytes]
    commit: str = "a" * 40
    gated: bool = False
    private: bool = False
    disabled: bool = False
    claimed_sizes: dict[str, int] = field(default_factory=dict)

    def size(self, name: str) -> int:
        """Return the size that the listing states, in bytes."""
        return self.claimed_sizes.get(name, len(self.files[name]))


@dataclass
class Fault:
    """What goes wrong with requests whose path holds ``part``.

    Attributes:
        part: Text that the method and path must hold, e.g. ``GET /cdn/``.
        status: Status to answer with; 0: the fault lies in the body.
        headers: Headers of that answer.
        cut_after: Bytes of the body after which the connection is closed.
        hold: The body waits after ``cut_after`` bytes until this is set.
        times: How often; None: always.
    """

    part: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int = 0
    hold: threading.Event | None = None
    times: int | None = None


class Hub:
    """The server, as a context manager; repositories and faults may be changed while it runs.

    Attributes:
        url: What ``HF_ENDPOINT`` is set to.
        cdn: Where large files are; another host name, so that the client does not take it for the
            Hub and sends it no token.
        repos: Repositories by ``owner/name``.
        faults: What goes wrong; the first that applies is used.
        tokens: Tokens that are known, and whether their owner may read gated repositories.
        ranges: Whether parts of files can be asked for; without it the whole comes every time.
        xet: Whether large files are said to lie in Xet as well. There is no Xet server behind it: a
            client that takes that way asks for a token at ``/api/xet-token`` and gets none.
        leaked: Requests for stored files that carried a token, which only the Hub may see.
        served: Content that is sent for a hash instead of the right one.
        requests: Method and path of every request so far.
        sent: Bytes of file content sent so far.
    """

    def __init__(self, repos: dict[str, HubRepo] | None = None) -> None:
        self.repos = repos or {}
        self.faults: list[Fault] = []
        self.tokens = {"hf_accepted": True, "hf_notaccepted": False}
        self.ranges = True
        self.xet = False
        self.leaked: list[str] = []
        self.served: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.sent = 0
        self.server = HubServer(("127.0.0.1", 0), Handler)
        self.server.hub = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.cdn = f"http://localhost:{self.server.server_port}"

    def __enter__(self) -> Self:
        """Start to answer."""
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to answer."""
        self.server.shutdown()
        self.server.server_close()

    def reset(self, repos: dict[str, HubRepo]) -> None:
        """Hold these repositories, nothing wrong, nothing asked yet."""
        self.repos, self.faults, self.requests, self.sent = repos, [], [], 0
        self.ranges, self.xet, self.leaked, self.served = True, False, [], {}

    def gets(self, part: str) -> list[str]:
        """List the GET requests whose path holds ``part``."""
        return [line for line in self.requests if line.startswith("GET ") and part in line]

    def fault(self, request: str) -> Fault | None:
        """Take the first fault that applies to a request."""
        for fault in self.faults:
            if fault.part in request and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None


@cache
def sha256(content: bytes) -> str:
    """Return the hash that an LFS file is known by."""
    return hashlib.sha256(content).hexdigest()


@cache
def git_oid(content: bytes) -> str:
    """Return the git object id of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_lfs(name: str) -> bool:
    """Say whether a file is stored as LFS."""
    return name.endswith(LFS_ENDINGS)


def sibling(repo: HubRepo, name: str) -> dict[str, Any]:
    """Describe a file as ``/api/models/R?blobs=true`` does."""
    content, size = repo.files[name], repo.size(name)
    entry: dict[str, Any] = {"rfilename": name, "size": size, "blobId": git_oid(content)}
    if is_lfs(name):
        entry["lfs"] = {"sha256": sha256(content), "size": size, "pointerSize": 134}
    return entry


def tree_entry(repo: HubRepo, name: str) -> dict[str, Any]:
    """Describe a file as ``/api/models/R/tree/SHA`` does."""
    content, size = repo.files[name], repo.size(name)
    entry = {"type": "file", "oid": git_oid(content), "size": size, "path": name}
    if is_lfs(name):
        entry["lfs"] = {"oid": sha256(content), "size": size, "pointerSize": 134}
    return entry


API = re.compile(
    r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/(?P<what>revision|tree)/(?P<revision>[^/]+))?"
)
RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")


class HubServer(ThreadingHTTPServer):
    """The listening socket of one hub."""

    daemon_threads = True
    hub: Hub


class Answer(Exception):
    """An error of the Hub: status, error code and message, as its headers carry them."""

    def __init__(self, status: int, code: str = "", message: str = "", **headers: str) -> None:
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if code:
            self.headers["X-Error-Code"] = code
        if message:
            self.headers["X-Error-Message"] = message


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a body."""
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with headers alone."""
        self.answer(with_body=False)

    def answer(self, *, with_body: bool) -> None:
        """Answer one request, or do what a fault says."""
        request = f"{self.command} {self.path}"
        self.server.hub.requests.append(request)
        fault = self.server.hub.fault(request)
        try:
            if fault is not None and fault.status:
                return self.reply(fault.status, fault.headers, b"")
            self.route(fault, with_body=with_body)
        except Answer as answer:
            body = json.dumps({"error": answer.headers.get("X-Error-Message", "")}).encode()
            self.reply(answer.status, answer.headers, body if with_body else b"")

    def route(self, fault: Fault | None, *, with_body: bool) -> None:
        """Find what a path means."""
        url = urlsplit(self.path)
        path = unquote(url.path)
        if path == "/api/agent-harnesses":
            return self.json({"standardEnvVars": [], "harnesses": {}})
        if path.startswith("/cdn/"):
            if self.token():
                self.server.hub.leaked.append(path)
            return self.content(
                stored(self.server.hub, path.removeprefix("/cdn/")), fault, with_body
            )
        if found := API.fullmatch(path):
            return self.api(found, blobs="blobs" in parse_qs(url.query))
        if found := RESOLVE.fullmatch(path):
            return self.resolve(found, fault, with_body)
        raise Answer(404)

    def api(self, found: re.Match[str], *, blobs: bool) -> None:
        """Describe a repository or list its files."""
        repo = visible(self.server.hub, found["repo"], self.token())
        at(repo, found["revision"])
        if found["what"] == "tree":
            return self.json([tree_entry(repo, name) for name in repo.files])
        names = [sibling(repo, n) if blobs else {"rfilename": n} for n in repo.files]
        about = {"id": found["repo"], "sha": repo.commit, "siblings": names, "tags": []}
        return self.json({**about, "private": repo.private, "gated": repo.gated})

    def resolve(self, found: re.Match[str], fault: Fault | None, with_body: bool) -> None:
        """Answer with a small file, or send on to where a large one is stored."""
        repo = visible(self.server.hub, found["repo"], self.token())
        at(repo, found["revision"])
        readable(self.server.hub, found["repo"], repo, self.token())
        name, commit = found["name"], {"X-Repo-Commit": repo.commit}
        if name not in repo.files:
            raise Answer(404, "EntryNotFound", "Entry not found", X_Repo_Commit=repo.commit)
        content = repo.files[name]
        if not is_lfs(name):
            etag = {"ETag": f'"{git_oid(content)}"', **commit}
            return self.content(content, fault, with_body, etag)
        linked = {
            "Location": f"{self.server.hub.cdn}/cdn/{sha256(content)}",
            "X-Linked-Size": str(len(content)),
            "X-Linked-ETag": f'"{sha256(content)}"',
        }
        if self.server.hub.xet:
            linked["X-Xet-Hash"] = sha256(content[::-1])
            linked["Link"] = f'<{self.server.hub.url}/api/xet-token>; rel="xet-auth"'
        return self.reply(302, {**linked, **commit}, b"")

    def content(
        self,
        content: bytes,
        fault: Fault | None,
        with_body: bool,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send a file or the range of it that was asked for."""
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0").partition("-")[0]) or 0)
        start = start if self.server.hub.ranges else 0
        body = content[start:]
        status = 206 if start else 200
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.stream(body, fault)

    def stream(self, body: bytes, fault: Fault | None) -> None:
        """Send a body, held or cut where a fault says so."""
        if fault is None:
            self.wfile.write(body)
            self.server.hub.sent += len(body)
            return
        self.wfile.write(body[: fault.cut_after])
        self.server.hub.sent += len(body[: fault.cut_after])
        if fault.hold is not None:
            fault.hold.wait(30)
            self.wfile.write(body[fault.cut_after :])
            self.server.hub.sent += len(body[fault.cut_after :])
            return
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def token(self) -> str | None:
        """Return the token that was sent."""
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def json(self, data: Any) -> None:
        """Answer with JSON."""
        self.reply(200, {"Content-Type": "application/json"}, json.dumps(data).encode())

    def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Answer at once."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        """Serve a connection; a client that leaves is no error here."""
        quiet(super().handle)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


def quiet(serve: Callable[[], None]) -> None:
    """Serve, and let a broken connection end it."""
    try:
        serve()
    except (ConnectionError, OSError):
        return


def stored(hub: Hub, digest: str) -> bytes:
    """Find a stored file by its hash."""
    if digest in hub.served:
        return hub.served[digest]
    for repo in hub.repos.values():
        for content in repo.files.values():
            if sha256(content) == digest:
                return content
    raise Answer(404)


def visible(hub: Hub, name: str, token: str | None) -> HubRepo:
    """Find a repository that a token may see.

    A wrong token is refused before anything else. Without one, a repository that is not there and
    one that is private get the same answer.
    """
    if token is not None and token not in hub.tokens:
        raise Answer(401, message="Invalid credentials in Authorization header")
    repo = hub.repos.get(name)
    if repo is None or (repo.private and token is None):
        if token is None:
            raise Answer(401, "RepoNotFound", "Invalid username or password.")
        raise Answer(404, "RepoNotFound", "Repository not found")
    if repo.disabled:
        raise Answer(403, message="Access to this resource is disabled.")
    return repo


def readable(hub: Hub, name: str, repo: HubRepo, token: str | None) -> None:
    """Refuse the files of a gated repository; its description is open to all."""
    if not repo.gated or (token and hub.tokens[token]):
        return
    restricted = f"Access to model {name} is restricted"
    if token is None:
        raise Answer(401, "GatedRepo", f"{restricted}. You must be authenticated to access it.")
    raise Answer(403, "GatedRepo", f"{restricted} and you are not in the authorized list.")


def at(repo: HubRepo, revision: str | None) -> None:
    """Refuse a revision that the repository does not have."""
    if revision not in (None, "main", repo.commit):
        raise Answer(404, "RevisionNotFound", f"Invalid rev id: {revision}")


def main() -> None:
    """Serve one tiny repository until interrupted."""
    with Hub({"acme/tiny": HubRepo({"config.json": b"{}", "model.safetensors": b"x" * 64})}) as hub:
        print(hub.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
