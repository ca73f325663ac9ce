"""Docker as it is on this host: whether it can be used, by whom it runs, where its images lie."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import Any

from sparkrecipes.machine.driver import cdi_driver, cdi_files
from sparkrecipes.machine.reading import ROOT, Ran, read_json, run
from sparkrecipes.machine.rootless import (
    can_limit,
    gpu_without_cgroups,
    is_rootless,
    rootless_socket,
)
from sparkrecipes.schema.machine import DockerSeen

CONTAINERD_ROOT = Path("/var/lib/containerd")


def read_docker(root: Path = ROOT) -> tuple[DockerSeen, Path | None]:
    """See whether Docker can be used, and where it keeps images; null: on another host."""
    default_root = Path("/var/lib/docker")
    if shutil.which("docker") is None:
        return DockerSeen(state="missing", message="no docker command on PATH"), default_root
    ran = run(["docker", "info", "--format", "{{json .}}"])
    info = read_json(ran.out)
    if ran.code == 0 and info.get("ServerVersion"):
        seen = DockerSeen(
            state="ok",
            version=str(info["ServerVersion"]),
            gpu_runtime=has_gpu_runtime(info, root),
            cdi_driver=cdi_driver(cdi_folders(info, root)),
            rootless=is_rootless(info),
            limits=can_limit(info),
            gpu_without_cgroups=gpu_without_cgroups(root),
        )
        return seen, image_store(info, default_root)
    errors = info.get("ServerErrors") or [ran.err]
    return docker_trouble(ran, " ".join(map(str, errors)).strip()), default_root


def docker_trouble(ran: Ran, message: str) -> DockerSeen:
    """Say why Docker cannot be used."""
    if ran.code is None:
        return DockerSeen(state="unknown", message=message or "docker did not answer in time")
    lowered = message.lower()
    if "permission denied" in lowered:
        return DockerSeen(state="denied", message=message, other_socket=other_socket())
    if "cannot connect" in lowered or "failed to connect" in lowered:
        return DockerSeen(state="not_running", message=message, other_socket=other_socket())
    return DockerSeen(state="unknown", message=message)


def other_socket() -> str | None:
    """Name a rootless Docker of this user, where it is not the one that was asked."""
    found = rootless_socket()
    return f"unix://{found}" if found else None


def has_gpu_runtime(info: dict[str, Any], root: Path) -> bool:
    """Say whether Docker can give a container the GPU: a runtime, a device, or a CDI file."""
    runtimes = info.get("Runtimes") or {}
    devices = info.get("DiscoveredDevices") or []
    if "nvidia" in runtimes or any("nvidia" in str(d) for d in devices):
        return True
    return any(cdi_files(folder) for folder in cdi_folders(info, root))


def cdi_folders(info: dict[str, Any], root: Path) -> list[Path]:
    """List the folders in which Docker looks for CDI files."""
    named = info.get("CDISpecDirs") or ["/etc/cdi", "/var/run/cdi"]
    return [root / str(folder).lstrip("/") for folder in named]


def image_store(info: dict[str, Any], default_root: Path) -> Path | None:
    """Say where images lie; null where the engine runs on another host (``DOCKER_HOST``).

    An engine with the containerd image store, the default of new installations since release 29,
    keeps them in containerd's root and not in its own.
    Source: https://docs.docker.com/engine/storage/containerd/
    """
    if info.get("Name") and info["Name"] != platform.node():
        return None
    driver = dict(pair for pair in info.get("DriverStatus") or [] if len(pair) == 2)
    if str(driver.get("driver-type", "")).startswith("io.containerd.snapshotter"):
        return CONTAINERD_ROOT
    return Path(str(info.get("DockerRootDir") or default_root))
