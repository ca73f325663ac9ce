"""Where the Docker that is asked runs: on this host, or on another one."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from sparkrecipes.containers.docker import docker

HERE = ("127.0.0.1", "::1", "localhost")


def elsewhere() -> str | None:
    """Name the host that Docker runs on where that is another one; None: here, or not known.

    A socket file, loopback and ``DOCKER_HOST`` or a context that lead there are this host.
    """
    address = os.environ.get("DOCKER_HOST") or context_address()
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return None
    return host if host and host not in HERE else None


def context_address() -> str:
    """Ask docker for the address of the context in use; an empty string where it does not say."""
    answer = docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    return answer.stdout.strip() if answer.ok else ""
