"""A machine: the target that recipes are checked against, and the host as it is now."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Bytes, Frozen, Id, Text

Platform = Annotated[str, Field(pattern=r"^linux/(amd64|arm64)$")]


class Gpu(Frozen):
    """The GPU of a machine file."""

    name: Text
    compute_capability: Text
    docker_gpus: Text
    """What ``docker run --gpus`` is given."""


class MachineFile(Frozen):
    """One machine file: ``catalog/machines/`` or the one that ``--machine`` names."""

    title: Text
    platform: Platform
    gpu: Gpu | None
    """Null on a machine without one: then no ``--gpus`` is given."""
    mem_total_bytes: Annotated[int, Field(gt=0)]
    """MemTotal of /proc/meminfo."""
    host_reserve_bytes: Bytes
    """What the host itself keeps: never given to an engine."""
    unified_memory: bool
    """Whether CPU and GPU share the memory."""
    memory_bandwidth_gb_s: Annotated[float, Field(gt=0)] | None
    """Peak memory bandwidth, GB/s."""
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]
    notes: tuple[Text, ...] = ()


class Machine(MachineFile):
    """A machine with its id."""

    id: Id


class DiskSpace(Frozen):
    """Free room of one place that we write to."""

    what: Literal["weights", "docker", "data"]
    path: Text
    free_bytes: Bytes | None
    total_bytes: Bytes | None


class GpuSeen(Frozen):
    """A GPU as the driver reports it."""

    name: Text
    driver: Text | None
    compute_capability: Text | None
    memory_total_bytes: Bytes | None
    """Null where the driver has no such figure (unified memory answers N/A)."""


class DockerSeen(Frozen):
    """Whether Docker can be used, and what runs."""

    state: Literal["ok", "missing", "not_running", "denied", "unknown"]
    version: Text | None = None
    gpu_runtime: bool | None = None
    """Whether the NVIDIA runtime or CDI is set up; null where it could not be seen."""
    cdi_driver: str | None = None
    """Driver version that the CDI file was made for; null where there is none to be read."""
    rootless: bool | None = None
    """Whether its daemon runs without root, as this user; null where it does not say."""
    limits: bool | None = None
    """Whether it counts and can limit a container's memory; null where it does not say."""
    gpu_without_cgroups: bool | None = None
    """Whether the NVIDIA runtime leaves cgroups alone, as a rootless Docker needs."""
    other_socket: str | None = None
    """A rootless Docker of this user that does answer, where the one that was asked does not."""
    message: str = ""


class MemoryUser(Frozen):
    """A container or a GPU process, and the memory it holds."""

    kind: Literal["container", "gpu_process"]
    name: Text
    pid: int | None = None
    """Of a GPU process outside of containers."""
    host_bytes: Bytes | None
    """As the kernel counts it, without the page cache; null where it does not say."""
    gpu_bytes: Bytes | None
    """As the driver counts it: the same memory on a DGX Spark; null where it does not say."""


class LiveMemory(Frozen):
    """What is free now, and who holds the rest."""

    mem_total_bytes: Bytes
    mem_available_bytes: Bytes
    """Can be had without swapping: the live budget."""
    page_cache_bytes: Bytes | None
    """Files kept in memory; most of it counts as available already."""
    swap_total_bytes: Bytes | None
    swap_used_bytes: Bytes | None
    users: tuple[MemoryUser, ...]
    """Largest first; empty where none was seen."""
    notes: tuple[Text, ...] = ()
    """What could not be asked."""


class HostReport(Frozen):
    """The machine we are on, as it is now."""

    is_spark: bool
    platform: Text
    """``linux/arm64`` or whatever this is."""
    kernel: Text
    cpu_count: Annotated[int, Field(ge=1)]
    mem_total_bytes: Bytes | None
    mem_available_bytes: Bytes | None
    """MemAvailable: what can be had now without swapping; the live budget."""
    mem_free_bytes: Bytes | None
    """MemFree: without the page cache."""
    swap_total_bytes: Bytes | None
    swap_free_bytes: Bytes | None
    gpus: tuple[GpuSeen, ...]
    cuda_version: str | None = None
    """Newest CUDA that the driver serves, e.g. ``13.0``; null where it does not say."""
    docker: DockerSeen
    disks: tuple[DiskSpace, ...]
    machine: Id
    """The machine file that the tool uses here."""
    live: LiveMemory | None = None
    """Who holds the memory now: containers, GPU processes, page cache, swap; null: not told."""
    warnings: tuple[Text, ...]
    """What this means for recipes, e.g. that this is not a Spark."""
