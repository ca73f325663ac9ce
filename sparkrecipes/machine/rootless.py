"""A rootless Docker: where its socket is, and what it cannot do that the system's Docker can."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkrecipes.machine.reading import read_text

CONNECT_S = 2.0
TOOLKIT_CONFIG = "etc/nvidia-container-runtime/config.toml"


def rootless_socket() -> Path | None:
    """Find the socket of this user's rootless Docker, where one listens on it.

    ``docker`` itself does not look there without ``DOCKER_HOST`` or a context.
    Source: https://docs.docker.com/engine/security/rootless/tips/
    """
    return next((path for path in socket_paths() if listens(path)), None)


def socket_paths() -> Iterator[Path]:
    """Name the places of a rootless Docker's socket; cron and ``su`` leave the variable unset."""
    told = os.environ.get("XDG_RUNTIME_DIR")
    for folder in dict.fromkeys((told, f"/run/user/{os.getuid()}")):
        if folder:
            yield Path(folder) / "docker.sock"


def listens(path: Path) -> bool:
    """Say whether somebody listens on a socket; a file that was left over answers nobody."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def is_rootless(info: dict[str, Any]) -> bool | None:
    """Read from ``docker info`` whether the daemon runs without root; null where it is silent."""
    options = info.get("SecurityOptions")
    return None if options is None else any("rootless" in str(option) for option in options)


def can_limit(info: dict[str, Any]) -> bool | None:
    """Read from ``docker info`` whether a container's memory is counted and can be limited.

    Rootless, that takes cgroup version 2 and systemd.
    Source: https://docs.docker.com/engine/security/rootless/tips/ ("Limiting resources")
    """
    if info.get("CgroupDriver") == "none":
        return False
    limit = info.get("MemoryLimit")
    return limit if isinstance(limit, bool) else None


def gpu_without_cgroups(root: Path) -> bool:
    """Say whether the NVIDIA runtime is told to leave cgroups alone, as rootless Docker needs.

    Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    ("Rootless mode").
    """
    for line in read_text(root / TOOLKIT_CONFIG).splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "no-cgroups":
            return value.partition("#")[0].strip() == "true"
    return False
