"""The Docker Engine's own API, for the one thing that its command line tells only terminals: bytes.

Source: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Image/operation/ImageCreate
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from typing import Any

from sparkrecipes.containers.docker import docker
from sparkrecipes.images import ImageReference

CONNECT_S = 10.0
SILENCE_S = 900.0
"""The engine says nothing while it checks and unpacks a large layer; longer than this it hangs."""

UNIX = "unix://"


def engine_socket() -> str | None:
    """Find the socket of the engine that the command line talks to.

    ``DOCKER_HOST``, ``DOCKER_CONTEXT`` and ``docker context use`` are honoured, because the command
    line itself is asked.

    Returns:
        The path; None where the engine is reached otherwise (tcp, ssh), or nobody could say.
    """
    answer = docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    host = answer.stdout.strip()
    return host.removeprefix(UNIX) if answer.ok and host.startswith(UNIX) else None


def pull_events(
    path: str, reference: ImageReference, platform: str, auth: str | None
) -> Generator[dict[str, Any], None, None]:
    """Pull an image and yield what the engine says of each layer; a failure is its ``error``.

    The engine stops when nobody listens any more: closing this iterator ends the pull.

    Args:
        path: The engine's socket.
        reference: By digest where there is one.
        platform: E.g. ``linux/arm64``.
        auth: For the registry, as the API takes it; None: nobody's.
    """
    import httpx2

    if trouble := unreachable(path):
        yield {"error": trouble}
        return
    headers = {"X-Registry-Auth": auth} if auth else {}
    wanted = {"fromImage": reference.name, "tag": reference.wanted, "platform": platform}
    transport = httpx2.HTTPTransport(uds=path)
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    try:
        with (
            httpx2.Client(transport=transport, base_url="http://docker", timeout=timeout) as client,
            client.stream("POST", "/images/create", params=wanted, headers=headers) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                yield {"error": refusal(answer.text)}
                return
            for line in answer.iter_lines():
                yield event(line)
    except httpx2.TimeoutException:
        yield {"error": f"docker pull: timed out after {SILENCE_S:g} s"}
    except httpx2.HTTPError as err:
        yield {"error": f"error during connect: {type(err).__name__} at {UNIX}{path}"}


def event(line: str) -> dict[str, Any]:
    """Read one line of the engine's stream; what is no object says nothing."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def refusal(text: str) -> str:
    """Return the engine's own words for a refusal."""
    return str(event(text).get("message") or text.strip() or "no reason was given")


def unreachable(path: str) -> str | None:
    """Say why the engine's socket cannot be used, in the words of its command line; None: it can.

    Tried by hand first: the HTTP client leaves a socket open that it could not connect.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(path)
        except PermissionError:
            return f"permission denied while trying to connect to the docker API at {UNIX}{path}"
        except OSError:
            return f"Cannot connect to the Docker daemon at {UNIX}{path}"
    return None
