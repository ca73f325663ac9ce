"""Credentials that ``docker login`` left, read the way Docker reads them, and never shown.

Source: https://docs.docker.com/reference/cli/docker/login/ (config file, credential stores) and
https://github.com/docker/docker-credential-helpers (the ``get`` protocol).
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkrecipes.images.reference import DEFAULT_REGISTRY, HUB_NAMES

HUB_KEY = "https://index.docker.io/v1/"
"""The name under which Docker keeps the login of Docker Hub."""

MAX_CONFIG_BYTES = 1 << 20
TOKEN_USER = "<token>"  # noqa: S105 - the literal user name of an identity token


@dataclass(frozen=True)
class Credentials:
    """A user name and a password or token; the latter is not part of its repr."""

    username: str
    secret: str = field(repr=False)

    def basic(self) -> str:
        """Return the value of an Authorization header."""
        pair = f"{self.username}:{self.secret}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def find_credentials(registry: str, *, timeout_s: float) -> Credentials | None:
    """Return what Docker would log in to a registry with, or None.

    A config that cannot be read, a helper that fails and an identity token (an OAuth refresh
    token) all count as no credentials: the registry is then asked anonymously.

    Args:
        registry: The registry of a reference, e.g. ``docker.io`` or ``localhost:5000``.
        timeout_s: How long a credential helper may take.
    """
    found = _stored(registry, timeout_s)
    return found if found and found.username != TOKEN_USER else None


def engine_auth(registry: str, *, timeout_s: float) -> str | None:
    """Return the login for a registry as the Docker Engine takes it in X-Registry-Auth, or None.

    Source: https://docs.docker.com/reference/api/engine/version/v1.41/#section/Authentication

    Args:
        registry: The registry of a reference.
        timeout_s: How long a credential helper may take.
    """
    found = _stored(registry, timeout_s)
    if found is None:
        return None
    if found.username == TOKEN_USER:
        login = {"identitytoken": found.secret}
    else:
        login = {"username": found.username, "password": found.secret}
    login["serveraddress"] = HUB_KEY if registry == DEFAULT_REGISTRY else registry
    return base64.urlsafe_b64encode(json.dumps(login).encode()).decode()


def _stored(registry: str, timeout_s: float) -> Credentials | None:
    """Return what Docker has stored for a registry, an identity token under its literal user."""
    config = _docker_config()
    key = HUB_KEY if registry == DEFAULT_REGISTRY else registry
    helpers = _object(config.get("credHelpers"))
    helper = helpers.get(registry) or helpers.get(key) or config.get("credsStore")
    if isinstance(helper, str) and helper:
        return _ask_helper(helper, key, timeout_s)
    for name, entry in _object(config.get("auths")).items():
        if _same_registry(name, registry):
            return _from_entry(_object(entry))
    return None


def _docker_config() -> dict[str, Any]:
    folder = os.environ.get("DOCKER_CONFIG")
    try:
        path = Path(folder) if folder else Path.home() / ".docker"
        with (path / "config.json").open("rb") as file:
            return _object(json.loads(file.read(MAX_CONFIG_BYTES)))
    except (OSError, ValueError, RuntimeError, RecursionError):
        return {}


def _same_registry(name: str, registry: str) -> bool:
    """Return whether a key of ``auths`` (a host, perhaps with scheme and path) is the registry."""
    host = name.partition("://")[2] or name
    host = host.partition("/")[0].lower()
    return host == registry or (registry == DEFAULT_REGISTRY and host in HUB_NAMES)


def _from_entry(entry: dict[str, Any]) -> Credentials | None:
    if isinstance(entry.get("identitytoken"), str) and entry["identitytoken"]:
        return Credentials(TOKEN_USER, entry["identitytoken"])
    auth = entry.get("auth")
    if isinstance(auth, str) and auth:
        try:
            pair = base64.b64decode(auth, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        username, colon, secret = pair.partition(":")
        return _usable(username, secret.rstrip("\0")) if colon else None
    return _usable(entry.get("username"), entry.get("password"))


def _ask_helper(helper: str, key: str, timeout_s: float) -> Credentials | None:
    """Ask ``docker-credential-<helper> get``; it reads the registry on its standard input."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", helper):
        return None
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "get"],
            input=key.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=True,
        )
        answer = _object(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, RecursionError):
        return None
    return _usable(answer.get("Username"), answer.get("Secret"))


def _usable(username: Any, secret: Any) -> Credentials | None:
    if not isinstance(username, str) or not isinstance(secret, str):
        return None
    return Credentials(username, secret) if username and secret else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
