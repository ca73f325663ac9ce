"""A container as the arguments of ``docker run``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sparkrecipes.commands.container import LOG_OPTIONS, Container


def docker_argv(container: Container, *, detached: bool = True) -> tuple[str, ...]:
    """List the arguments of ``docker run``, each its own item.

    ``--restart no``: a restart policy would load 100 GB again and again where the first error
    tells why it cannot work, and would hide it. ``--platform``: an image of another architecture
    fails at once instead of under emulation. ``--mount``: unlike ``-v`` it fails where the folder
    is not there, instead of making an empty one that belongs to root.

    Args:
        container: What to run.
        detached: False stays in the foreground and removes the container when it ends.
    """
    return (
        *("docker", "run", "--detach" if detached else "--rm"),
        *("--name", container.name),
        *each("--label", (f"{name}={value}" for name, value in sorted(container.labels.items()))),
        *(("--gpus", container.gpus) if container.gpus else ()),
        *("--platform", container.platform),
        *(("--pull", "never") if container.local_image else ()),
        *(("--shm-size", container.shm_size) if container.shm_size else ()),
        *("-p", container.published),
        *each("-e", (f"{name}={value}" for name, value in sorted(container.env.items()))),
        *each("-e", container.secrets),
        *each("--mount", mounts(container)),
        *("--restart", "no", "--log-driver", "json-file"),
        *each("--log-opt", (f"{name}={value}" for name, value in LOG_OPTIONS.items())),
        container.image,
        *container.arguments,
    )


def shell_text(container: Container) -> str:
    """Quote the command for people to paste into a shell."""
    return shlex.join(docker_argv(container))


def each(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """Put an option before each of the values."""
    return tuple(item for value in values for item in (option, value))


def mounts(container: Container) -> list[str]:
    """Write the mounts as ``--mount`` takes them."""
    binds = [
        mount_text("type=bind", f"source={bind.source}", f"target={bind.target}", "readonly")
        for bind in container.mounts
    ]
    volumes = [
        mount_text("type=volume", f"source={volume.name}", f"target={volume.target}")
        for volume in container.volumes
    ]
    return [*binds, *volumes]


def mount_text(*fields: str) -> str:
    """Join the fields of a mount as CSV, which is how docker reads them."""
    return ",".join(
        '"' + field.replace('"', '""') + '"' if set(field) & {",", '"'} else field
        for field in fields
    )
