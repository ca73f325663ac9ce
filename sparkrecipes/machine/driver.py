"""What the GPU driver serves, and whether the description of it that Docker has is of this driver.

A driver states the newest CUDA that it serves only in the head of ``nvidia-smi``; the query of
single fields has none for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

CUDA_VERSION = re.compile(r"CUDA(?: UMD)? Version\s*:\s*(\d+\.\d+)")
"""How ``nvidia-smi`` states it; drivers from release 595 on name the user-mode driver (UMD)."""

CDI_LIBRARY = re.compile(rb"libcuda\.so\.(\d+(?:\.\d+)+)")
"""A CDI file names the driver's libraries by their full version.

Source: https://github.com/cncf-tags/container-device-interface and ``nvidia-ctk cdi generate``.
"""
LARGEST_CDI_BYTES = 2**20


def parse_cuda_version(text: str) -> str | None:
    """Find the newest CUDA that the driver serves in what ``nvidia-smi`` prints."""
    found = CUDA_VERSION.search(text)
    return found[1] if found else None


def cdi_driver(folders: Iterable[Path]) -> str | None:
    """Find the driver that NVIDIA's CDI file was generated for; null where none can be read."""
    for folder in folders:
        for path in cdi_files(folder):
            try:
                with path.open("rb") as file:
                    found = CDI_LIBRARY.search(file.read(LARGEST_CDI_BYTES))
            except OSError:
                continue
            if found:
                return found[1].decode()
    return None


def cdi_files(folder: Path) -> list[Path]:
    """List the CDI files of NVIDIA's in a folder, by name."""
    try:
        return sorted(entry for entry in folder.iterdir() if "nvidia" in entry.name)
    except OSError:
        return []
