"""Images that this host has, as Docker describes them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sparkrecipes.containers.docker import docker
from sparkrecipes.images import cuda_version


@dataclass(frozen=True)
class LocalImage:
    """An image that this host has.

    Attributes:
        platform: E.g. ``linux/arm64``.
        cuda_version: CUDA that it was built with, where it says so.
    """

    platform: str
    cuda_version: str | None


def local_image(reference: str) -> LocalImage | None:
    """Look at an image that this host has; None where it is not here or nobody could say."""
    answer = docker("image", "inspect", "--format", "{{json .}}", reference)
    if not answer.ok:
        return None
    try:
        seen = json.loads(answer.stdout)
        env = dict(item.split("=", 1) for item in (seen["Config"] or {}).get("Env") or ())
        return LocalImage(f"{seen['Os']}/{seen['Architecture']}", cuda_version(env))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def keep_name(reference: str, tag: str) -> None:
    """Give an image that came by digest its tag, where no image of this host has that.

    Without it the image has no name in ``docker images``, and is not found again offline.
    """
    if "@" not in tag and local_image_platform(tag) is None:
        docker("tag", reference, tag)


def local_image_platform(reference: str) -> str | None:
    """Return the platform of an image that this host has, e.g. ``linux/arm64``.

    Returns:
        None where it is not here, or Docker could not be asked.
    """
    answer = docker("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", reference)
    return answer.stdout.strip() or None if answer.ok else None
