"""Unfinished files on disk: what a later process goes on with, and the hash that proves it.

huggingface_hub 2.x gives every try a temporary file of its own and drops it when the try ends. A
part here has a name that the next process finds. What two processes wrote becomes a blob only when
its SHA-256 is the one that the Hub names the file by.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

PART_BYTES = 10 * 2**20
"""What the library writes at a time, and so the most that a kill loses of one file.

Source: huggingface_hub 2.4, ``constants.DOWNLOAD_CHUNK_SIZE``.
"""

SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a commit: its size in bytes and the name of its blob in the cache."""

    size: int
    blob: str

    @property
    def resumable(self) -> bool:
        """Whether it is large enough to be worth it, and its blob's name is its SHA-256 (LFS)."""
        return self.size > PART_BYTES and SHA256.fullmatch(self.blob) is not None


def part_path(folder: Path, file: RemoteFile) -> Path:
    """Return where a repository's folder keeps the beginning of a file.

    The ending is the library's own for what is unfinished: its tools list and remove such files.
    """
    return folder / "blobs" / f"{file.blob}.part.incomplete"


def kept_bytes(folder: Path, file: RemoteFile) -> int:
    """Return how many bytes of a file an earlier run left to go on with."""
    path = part_path(folder, file)
    size = path.stat().st_size if file.resumable and path.is_file() else 0
    return size if size <= file.size else 0


def leftover_bytes(folder: Path, wanted: Iterable[RemoteFile]) -> int:
    """Add up the unfinished parts that nothing will go on with, in bytes."""
    used = {part_path(folder, file) for file in wanted if file.resumable}
    parts = (folder / "blobs").glob("*.incomplete")
    return sum(part.stat().st_size for part in parts if part not in used)


class Part:
    """The beginning of a file, to be written on. What the library writes into.

    Attributes:
        length: Bytes that are there.
        hash: SHA-256 of these, or None where nobody asked for it.
    """

    def __init__(self, path: Path, limit_bytes: int, *, prove: bool) -> None:
        """Open a part, and read what is there; one that is too long to be it begins anew.

        Args:
            path: Where it is, or will be.
            limit_bytes: Size of the whole file.
            prove: Whether it is hashed, as it grows too.
        """
        self.file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        self.hash = hashlib.sha256() if prove else None
        self.length = 0
        while chunk := self.file.read(PART_BYTES):
            self.count(chunk)
        if self.length > limit_bytes:
            self.seek(0)
            self.truncate()

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; what is there stays."""
        self.file.close()

    def count(self, data: bytes | memoryview) -> None:
        """Count what is there, and hash it where that is asked for."""
        self.length += len(data)
        if self.hash is not None:
            self.hash.update(data)

    def write(self, data: bytes) -> int:
        """Append; what did not fit on the disk any more is not counted as there.

        Raises:
            OSError: The disk is full.
        """
        rest = memoryview(data)
        while rest:
            written = self.file.write(rest) or 0
            self.count(rest[:written])
            rest = rest[written:]
        return len(data)

    def tell(self) -> int:
        """Return the position, as a file does."""
        return self.length

    def seek(self, position: int) -> int:
        """Go back to the beginning: a server that ignores ranges sends the whole file again."""
        if position:
            raise ValueError(f"a part is only begun anew, not at {position}")
        self.hash, self.length = hashlib.sha256() if self.hash else None, 0
        return self.file.seek(0)

    def truncate(self) -> int:
        """Forget what lies behind the position."""
        return self.file.truncate(self.length)
