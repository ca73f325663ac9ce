"""Reads the machine we are on: memory, GPU, Docker and disks, as they are now.

Nothing here raises, and every command is bounded in time. On a DGX Spark CPU and GPU share one
memory: the driver states none of its own, and what CUDA calls free leaves out the page cache, so
the budget is MemAvailable of /proc/meminfo.
"""

from __future__ import annotations

import csv
import os
import platform
import shutil
from pathlib import Path
from typing import Literal

from sparkrecipes.machine.docker import read_docker
from sparkrecipes.machine.driver import parse_cuda_version
from sparkrecipes.machine.reading import ROOT, read_text, run
from sparkrecipes.schema.machine import DiskSpace, GpuSeen, HostReport

KB = 1024
MIB = 2**20

SPARK_FILES = (
    "sys/class/dmi/id/product_name",
    "etc/dgx-release",
    "etc/fastos-release",
)
"""Where a DGX Spark names itself: ``NVIDIA_DGX_Spark``, ``NVIDIA DGX Spark``, and on boxes of other
makers ``DGX SPARK FASTOS`` (NVIDIA/NemoClaw pull request 10723)."""

SPARK_NAME = "dgxspark"
SPARK_GPU = "GB10"

NO_VALUE = frozenset({"", "n/a", "not supported", "unknown error", "insufficient permissions"})
"""What nvidia-smi writes where it has no figure, in brackets or not."""

ELSEWHERE = "the Docker host"

PLATFORMS = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def read_host(machine_id: str, *, root: Path = ROOT) -> HostReport:
    """Read this host; never raises.

    Args:
        machine_id: The machine file that the tool uses here.
        root: Where the host's files lie; another folder reads a saved host.
    """
    memory = read_meminfo(root)
    gpus = read_gpus()
    docker, docker_root = read_docker(root)
    spark = names_spark(root) or has_spark_gpu(gpus)
    return HostReport(
        is_spark=spark,
        platform=host_platform(),
        kernel=read_text(root / "proc/sys/kernel/osrelease") or platform.release() or "unknown",
        cpu_count=os.cpu_count() or 1,
        mem_total_bytes=memory.get("MemTotal"),
        mem_available_bytes=memory.get("MemAvailable"),
        mem_free_bytes=memory.get("MemFree"),
        swap_total_bytes=memory.get("SwapTotal"),
        swap_free_bytes=memory.get("SwapFree"),
        gpus=gpus,
        cuda_version=parse_cuda_version(run(["nvidia-smi"]).out) if gpus else None,
        docker=docker,
        disks=read_disks(docker_root),
        machine=machine_id,
        warnings=warnings_of(spark=spark, gpus=gpus, memory=memory),
    )


def live_memory(root: Path = ROOT) -> tuple[int, int] | None:
    """Read total memory and what can be had now without swapping, in bytes.

    Returns:
        MemTotal and MemAvailable; null where the host does not state them.
    """
    memory = read_meminfo(root)
    if "MemTotal" not in memory or "MemAvailable" not in memory:
        return None
    return memory["MemTotal"], memory["MemAvailable"]


def host_is_spark(root: Path = ROOT) -> bool:
    """Say whether this host is a DGX Spark, by its own name or by its GPU."""
    return names_spark(root) or has_spark_gpu(read_gpus())


def host_platform() -> str:
    """Name this host's platform as image registries do, e.g. ``linux/arm64``."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}/{PLATFORMS.get(machine, machine or 'unknown')}"


def read_meminfo(root: Path = ROOT) -> dict[str, int]:
    """Read /proc/meminfo into bytes; empty where there is none."""
    memory = {}
    for line in read_text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        value, _, unit = rest.strip().partition(" ")
        if value.isdigit():
            memory[name] = int(value) * (KB if unit == "kB" else 1)
    return memory


def names_spark(root: Path = ROOT) -> bool:
    """Say whether a file of this host calls it a DGX Spark."""
    texts = (read_text(root / name) for name in SPARK_FILES)
    return any(SPARK_NAME in "".join(filter(str.isalnum, text.lower())) for text in texts)


def has_spark_gpu(gpus: tuple[GpuSeen, ...]) -> bool:
    """Say whether a GPU is that of a DGX Spark."""
    return any(SPARK_GPU in gpu.name for gpu in gpus)


def read_gpus() -> tuple[GpuSeen, ...]:
    """Ask the driver for its GPUs; none where it is missing or does not answer."""
    fields = "name,driver_version,compute_cap,memory.total"
    ran = run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv"])
    return parse_gpus(ran.out) if ran.code == 0 else ()


def parse_gpus(text: str) -> tuple[GpuSeen, ...]:
    """Read nvidia-smi's CSV with its header, in whatever columns were asked for.

    A GPU stays whatever its driver leaves open: unified memory answers N/A for its size.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    if not rows:
        return ()
    names = [name.partition(" ")[0] for name in rows[0]]
    seen = (dict(zip(names, row, strict=False)) for row in rows[1:])
    return tuple(
        GpuSeen(
            name=row["name"],
            driver=stated(row.get("driver_version")),
            compute_capability=stated(row.get("compute_cap")),
            memory_total_bytes=mebibytes(row.get("memory.total")),
        )
        for row in seen
        if row.get("name")
    )


def stated(cell: str | None) -> str | None:
    """Give what the driver states; null where it says that it has nothing."""
    text = (cell or "").strip()
    return None if text.strip("[] ").lower() in NO_VALUE else text


def mebibytes(cell: str | None) -> int | None:
    """Read ``81920 MiB`` into bytes; null where it is no number."""
    value = (stated(cell) or "").partition(" ")[0]
    return int(value) * MIB if value.isdigit() else None


def read_disks(docker_root: Path | None) -> tuple[DiskSpace, ...]:
    """Measure the room of the places that we write to."""
    from platformdirs import user_data_path

    return (
        disk_space("weights", weights_folder()),
        disk_space("docker", docker_root)
        if docker_root
        else DiskSpace(what="docker", path=ELSEWHERE, free_bytes=None, total_bytes=None),
        disk_space("data", user_data_path("sparkrecipes")),
    )


def weights_folder() -> Path:
    """Find the folder of the Hugging Face cache, as its own client does."""
    told = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    folder = Path(os.path.expandvars(told or f"{home}/hub"))
    try:
        return folder.expanduser()
    except RuntimeError:
        return folder


def disk_space(what: Literal["weights", "docker", "data"], path: Path) -> DiskSpace:
    """Measure the disk that a folder is or will be on."""
    free = total = None
    for place in (path, *path.parents):
        try:
            usage = shutil.disk_usage(place)
        except OSError:
            continue
        free, total = usage.free, usage.total
        break
    return DiskSpace(what=what, path=str(path), free_bytes=free, total_bytes=total)


def warnings_of(
    *, spark: bool, gpus: tuple[GpuSeen, ...], memory: dict[str, int]
) -> tuple[str, ...]:
    """Say what this host means for recipes."""
    lines = []
    if not spark:
        lines.append(
            "this is not a DGX Spark: recipes are judged by the machine file, not by this host"
        )
    if spark and not gpus:
        lines.append("nvidia-smi names no GPU: check the driver")
    if "MemAvailable" not in memory:
        lines.append("this host does not state its available memory: nothing is judged as of now")
    swapped = memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)
    if spark and swapped > 2**30:
        lines.append(
            f"{swapped / 2**30:.1f} GiB are swapped out: memory is short, or was a while ago"
        )
    return tuple(lines)
