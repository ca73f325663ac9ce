"""Who uses the memory now: containers, GPU processes, the page cache and swap.

The kernel's own files say what a container holds, so nobody waits for ``docker stats``; the driver
says what GPU processes hold, which on unified memory is the same memory.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from sparkrecipes.machine.host import mebibytes, read_meminfo
from sparkrecipes.machine.reading import ROOT, read_text, run
from sparkrecipes.schema.machine import LiveMemory, MemoryUser

CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
CGROUPS = (
    "sys/fs/cgroup/system.slice/docker-{}.scope",
    "sys/fs/cgroup/docker/{}",
    "sys/fs/cgroup/memory/docker/{}",
    "sys/fs/cgroup/memory/system.slice/docker-{}.scope",
    "sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/user.slice/docker-{}.scope",
)
"""Where Docker's cgroups lie: version 2 with systemd and without, version 1, and rootless."""

SMALLEST_SHOWN_BYTES = 256 * 2**20
"""Containers below this do not decide whether a model fits."""


def live_use(root: Path = ROOT) -> LiveMemory | None:
    """Read what is free and who holds the rest; null where the host does not say; never raises.

    Args:
        root: Where the host's files lie; another folder reads a saved host.
    """
    memory = read_meminfo(root)
    if "MemTotal" not in memory or "MemAvailable" not in memory:
        return None
    processes, notes = gpu_processes()
    names, docker_notes = container_names()
    swap = memory.get("SwapTotal")
    return LiveMemory(
        mem_total_bytes=memory["MemTotal"],
        mem_available_bytes=memory["MemAvailable"],
        page_cache_bytes=page_cache(memory),
        swap_total_bytes=swap,
        swap_used_bytes=None if swap is None else max(swap - memory.get("SwapFree", swap), 0),
        users=tuple(memory_users(root, processes, names)),
        notes=(*notes, *docker_notes, *unseen(root, names)),
    )


def page_cache(memory: dict[str, int]) -> int | None:
    """Give the files kept in memory; shared memory is no file that can be dropped."""
    if "Cached" not in memory:
        return None
    held = memory["Cached"] + memory.get("Buffers", 0) - memory.get("Shmem", 0)
    return max(held, 0)


def gpu_processes() -> tuple[list[tuple[int, str, int | None]], tuple[str, ...]]:
    """Ask the driver for its processes: pid, name and bytes; and what could not be asked."""
    if shutil.which("nvidia-smi") is None:
        return [], ()
    fields = "pid,process_name,used_memory"
    ran = run(["nvidia-smi", f"--query-compute-apps={fields}", "--format=csv,noheader"])
    if ran.code != 0:
        return [], ("nvidia-smi did not name the processes on the GPU",)
    return parse_processes(ran.out), ()


def parse_processes(text: str) -> list[tuple[int, str, int | None]]:
    """Read the driver's list; a process stays where its memory is not stated."""
    rows = ([cell.strip() for cell in row] for row in csv.reader(text.splitlines()))
    return [
        (int(row[0]), row[1], mebibytes(row[2]))
        for row in rows
        if len(row) >= 3 and row[0].isdigit()
    ]


def container_names() -> tuple[dict[str, str], tuple[str, ...]]:
    """Ask Docker for the names of what runs, by full id; and what could not be asked."""
    if shutil.which("docker") is None:
        return {}, ()
    ran = run(["docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"])
    if ran.code != 0:
        return {}, ("Docker did not name what runs: containers are not shown",)
    pairs = (line.partition(" ") for line in ran.out.splitlines())
    return {found: name or found[:12] for found, _, name in pairs if found}, ()


def memory_users(
    root: Path, processes: Iterable[tuple[int, str, int | None]], names: dict[str, str]
) -> list[MemoryUser]:
    """Put together containers, with the GPU processes in them, and the GPU processes outside."""
    gpu: dict[str, int] = {}
    users = []
    for pid, name, size in processes:
        found = container_of(root, pid)
        if found is None:
            process = MemoryUser(
                kind="gpu_process", name=name, pid=pid, host_bytes=None, gpu_bytes=size
            )
            users.append(process)
        elif size is not None:
            gpu[found] = gpu.get(found, 0) + size
    for found in {**names, **dict.fromkeys(gpu, "")}:
        held, on_gpu = container_bytes(root, found), gpu.get(found)
        if max(held or 0, on_gpu or 0) >= SMALLEST_SHOWN_BYTES:
            name = names.get(found) or found[:12]
            users.append(MemoryUser(kind="container", name=name, host_bytes=held, gpu_bytes=on_gpu))
    return sorted(users, key=lambda u: -max(u.host_bytes or 0, u.gpu_bytes or 0))


def unseen(root: Path, names: dict[str, str]) -> tuple[str, ...]:
    """Name the containers whose memory nobody counts: rootless Docker without cgroups."""
    missing = [name for found, name in names.items() if container_bytes(root, found) is None]
    if not missing:
        return ()
    return (f"what these containers hold is not counted here: {', '.join(sorted(missing))}",)


def container_of(root: Path, pid: int) -> str | None:
    """Find the container that a process runs in; null outside of containers."""
    found = CONTAINER_ID.search(read_text(root / f"proc/{pid}/cgroup"))
    return found[0] if found else None


def container_bytes(root: Path, container: str) -> int | None:
    """Read what a container holds, without the files that could be dropped; null where unseen."""
    for pattern in CGROUPS:
        folder = root / pattern.format(container, uid=os.getuid())
        held = read_text(folder / "memory.current") or read_text(folder / "memory.usage_in_bytes")
        if held.isdigit():
            lines = (line.split() for line in read_text(folder / "memory.stat").splitlines())
            stats = {line[0]: line[1] for line in lines if len(line) == 2}
            files = stats.get("inactive_file") or stats.get("total_inactive_file") or "0"
            return max(int(held) - int(files), 0)
    return None
