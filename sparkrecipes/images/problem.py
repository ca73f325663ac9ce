"""What a registry may answer other than the image, and what to do about each."""

from __future__ import annotations

from typing import Literal

ProblemState = Literal[
    "missing",
    "auth_required",
    "bad_credentials",
    "denied",
    "rate_limited",
    "no_network",
    "broken",
    "unknown",
]

LOGIN = {
    "nvcr.io": "docker login nvcr.io --username '$oauthtoken'  "
    "(that name literally; the password is an NGC API key)",
    "ghcr.io": "docker login ghcr.io  (the password is a token with read:packages)",
    "docker.io": "docker login",
}
"""How to log in where that is not plain.

Source: https://docs.nvidia.com/ngc/gpu-cloud/ngc-user-guide/ (nvcr.io) and
https://docs.github.com/packages/working-with-a-github-packages-registry/working-with-the-container-registry
"""


class RegistryProblem(Exception):
    """The question has no image for an answer.

    Attributes:
        state: Which of the distinct answers it is.
        reason: What happened, in a sentence without secrets.
        repair: What to do.
    """

    def __init__(self, state: ProblemState, reason: str, repair: str = "") -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason
        self.repair = repair


def login_command(registry: str) -> str:
    """Return how to log in to a registry."""
    return LOGIN.get(registry, f"docker login {registry}")


def logout_command(registry: str) -> str:
    """Return how to forget the login of a registry."""
    return "docker logout" if registry == "docker.io" else f"docker logout {registry}"
