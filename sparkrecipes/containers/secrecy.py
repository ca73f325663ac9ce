"""Secrecy: what engines and Docker say is shown without secrets, whatever these look like.

A token of a known shape is known by its shape. A key that somebody chose is not, but it stands in
this environment, for it is passed on from there by name: so its value is known.
"""

from __future__ import annotations

import os
import re

from sparkrecipes.redaction import REMOVED, redact

SECRET_NAME = re.compile(r"(TOKEN|API_KEY|SECRET|PASSWORD|PASSWD)$")
SHORTEST_SECRET = 8
"""A shorter value would be found in words that are none."""


def without_secrets(text: str) -> str:
    """Take out what looks like a secret, and the values of this environment's secrets."""
    shown = redact(text)
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= SHORTEST_SECRET:
            shown = shown.replace(value, REMOVED)
    return shown
