"""Secrets kept out of every text that is shown, logged, kept or sent."""

from __future__ import annotations

import re

REMOVED = "[removed]"
"""Stands where a secret stood."""

SECRETS = (
    re.compile(
        r"(?P<keep>(?i:\bauthorization[\"']?\s*[:=]\s*[\"']?)(?i:(?:bearer|basic)\s+)?)[^\s\"',}]+"
    ),
    re.compile(r"(?P<keep>(?i:\bbearer)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?P<keep>)\b(?:hf_[A-Za-z0-9]{16,}|nvapi-[\w-]{8,}|sk-[\w-]{16,}|gh[pousr]_\w{16,})"
    ),
    re.compile(
        r"(?P<keep>\b[A-Z0-9_]*(?:TOKEN|API_KEY|SECRET|PASSWORD)[\"']?\s*[=:]\s*[\"']?)"
        r"(?!None\b)[^\s\"',}]+"
    ),
    re.compile(
        r"(?P<keep>(?i:\bapi[-_]key)(?:[\"']?\s*[=:]\s*|\s+(?=\S*\d))\[?[\"']?)(?!None\b)[^\s\"',\]}]+"
    ),
    re.compile(r"(?P<keep>://[^\s/:@]+:)[^\s/@]+(?=@)"),
)
"""What looks like a secret; ``keep`` is what stays of it."""


def redact(text: str) -> str:
    """Take secrets out of a text: tokens, API keys, Authorization values, passwords in URLs."""
    for pattern in SECRETS:
        text = pattern.sub(lambda found: found["keep"] + REMOVED, text)
    return text
