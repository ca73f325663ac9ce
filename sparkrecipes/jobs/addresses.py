"""Addresses that a round may be run against."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from sparkrecipes.errors import Misuse

LONGEST_URL = 2000
MODEL_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w.:/@+-]{0,199}")
"""Names that engines serve models by: ids, repositories, adapters and paths."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def checked_url(url: str) -> str:
    """Return an address that a round can be run against.

    Raises:
        Misuse: It is no http address, or it carries a password.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1)
    except ValueError:
        known, parts = False, urlsplit("")
    if not known or len(url) > LONGEST_URL or any(c.isspace() or c < " " for c in url):
        raise Misuse(
            f"base_url {url[:60]!r} is no http address",
            code="bad_url",
            repair="give base_url like http://127.0.0.1:8000",
        )
    if parts.username or parts.password:
        raise Misuse(
            "base_url carries a password, and passwords are not stored",
            code="secret_in_url",
            repair="set VLLM_API_KEY where this program runs, and leave it out of base_url",
        )
    return url


def is_this_host(url: str) -> bool:
    """Say whether an address is on this host: only there is this host's API key sent."""
    return (urlsplit(url).hostname or "") in LOOPBACK


def checked_model(name: str | None) -> str | None:
    """Return a model's name that a server may be asked for; None asks which it serves.

    Raises:
        Misuse: No engine serves a model by such a name.
    """
    if name is None or MODEL_NAME.fullmatch(name):
        return name
    raise Misuse(
        f"model {name[:60]!r} is no name of a model",
        code="bad_model",
        repair="leave model out where only one is served, or give it as /v1/models names it",
    )
