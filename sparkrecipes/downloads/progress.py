"""How far a download is, and whether it still moves.

The library counts in progress bars. Ours draw nothing and count into a meter; the caller's own
thread reads it, so that a callback never runs inside a transfer.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from sparkrecipes.errors import DownloadFailed
from sparkrecipes.schema.transfer import Transfer

T = TypeVar("T")

TICK_S = 0.25
GIVE_UP_S = 20.0
"""How long a cancelled transfer may take to end."""

STALL_S = 300.0
"""No byte and no file for so long means that it hangs.

Source: https://github.com/huggingface/xet-core/issues/898 (freezes for ever, without an error).
"""


@dataclass(frozen=True)
class DownloadProgress:
    """How far a download is, over all its repositories.

    Attributes:
        repo: The repository that is being fetched.
        done_bytes: On disk, what was there before included.
        total_bytes: Of all files.
        done_files: Finished.
        total_files: All.
        bytes_per_s: Mean rate of this run; what was there before does not count.
    """

    repo: str
    done_bytes: int
    total_bytes: int
    done_files: int
    total_files: int
    bytes_per_s: float

    @property
    def transfer(self) -> Transfer:
        """The same, as every transfer is shown."""
        return Transfer(
            done_bytes=self.done_bytes,
            total_bytes=self.total_bytes,
            done_parts=self.done_files,
            total_parts=self.total_files,
            parts="files",
            bytes_per_s=self.bytes_per_s,
        )


class Cancelled(Exception):
    """Raised inside a transfer to end it."""


class Meter:
    """Counts what the library's bars report; used by several threads."""

    def __init__(self, *, present_bytes: int, total_bytes: int, total_files: int) -> None:
        self.lock = threading.Lock()
        self.present_bytes = present_bytes
        self.total_bytes = total_bytes
        self.total_files = total_files
        self.fetched_bytes = 0
        self.done_files = 0
        self.early_files = 0
        self.repo = ""
        self.cancelled = False
        self.started_s = self.moved_s = time.monotonic()

    def start(self, repo: str, done_files: int) -> None:
        """Begin with a repository, after so many files of the ones before."""
        with self.lock:
            self.repo, self.done_files, self.early_files = repo, done_files, 0
            self.moved_s = time.monotonic()

    def add(self, *, fetched_bytes: int = 0, files: int = 0) -> None:
        """Count; negative bytes are those of a part that is fetched again.

        Raises:
            Cancelled: The download is to end.
        """
        with self.lock:
            if self.cancelled:
                raise Cancelled
            self.fetched_bytes += fetched_bytes
            again = min(files, self.early_files)
            self.early_files -= again
            self.done_files += files - again
            self.moved_s = time.monotonic()

    def finish_early(self) -> None:
        """Count a file that the library will count again when it links it."""
        self.add(files=1)
        with self.lock:
            self.early_files += 1

    def settle(self, planned_bytes: int, counted_bytes: int) -> None:
        """Count a finished repository as planned; equal files are transferred once."""
        with self.lock:
            self.present_bytes += planned_bytes - counted_bytes

    def cancel(self) -> None:
        """End every transfer at its next chunk."""
        with self.lock:
            self.cancelled = True
        if "hf_xet" in sys.modules:
            from huggingface_hub.utils._xet import abort_xet_session

            abort_xet_session()  # type: ignore[no-untyped-call]

    def idle_s(self) -> float:
        """Return the seconds since something last moved."""
        return time.monotonic() - self.moved_s

    def now(self) -> DownloadProgress:
        """Return how far it is."""
        with self.lock:
            elapsed = max(time.monotonic() - self.started_s, 0.001)
            return DownloadProgress(
                repo=self.repo,
                done_bytes=min(self.present_bytes + self.fetched_bytes, self.total_bytes),
                total_bytes=self.total_bytes,
                done_files=min(self.done_files, self.total_files),
                total_files=self.total_files,
                bytes_per_s=max(self.fetched_bytes, 0) / elapsed,
            )


def silent_bar(meter: Meter) -> type[Any]:
    """Make a progress bar class for the library that draws nothing and feeds the meter.

    The library makes three kinds: bytes written, bytes received (named ``….transfer``, which Xet
    may make fewer) and files. Bytes written are what is on disk.
    """
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class SilentBar(tqdm):
        monitor_interval = 0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            of_bytes = kwargs.get("unit") == "B"
            transfer = str(kwargs.get("name") or "").endswith(".transfer")
            self.counts = "nothing" if transfer else "bytes" if of_bytes else "files"
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            if self.counts == "bytes":
                meter.add(fetched_bytes=int(n or 0))
            elif self.counts == "files":
                meter.add(files=int(n or 0))

    return SilentBar


def watch(
    task: Callable[[], T],
    meter: Meter,
    progress: Callable[[DownloadProgress], None] | None,
    *,
    stall_s: float,
    again: str,
) -> T:
    """Run a transfer in a thread of its own; report it, and end it where it hangs.

    Args:
        task: The transfer.
        meter: What it counts into.
        progress: Called in the caller's thread whenever something has moved.
        stall_s: Seconds without a byte after which it hangs.
        again: The command that tries again.

    Returns:
        What ``task`` returned; what it raised is raised.

    Raises:
        DownloadFailed: It hangs.
        KeyboardInterrupt: Passed through, after the transfer was told to end.
    """
    future: Future[T] = Future()
    worker = threading.Thread(target=fulfil, args=(future, task), daemon=True)
    worker.start()
    last: DownloadProgress | None = None
    done = False
    try:
        while not done:
            done = bool(wait((future,), TICK_S).done)
            last = report(meter, progress, last)
            if meter.idle_s() > stall_s and not done:
                raise stalled(meter, stall_s, again)
    except BaseException:
        meter.cancel()
        worker.join(GIVE_UP_S)
        raise
    return future.result()


def fulfil(future: Future[T], task: Callable[[], T]) -> None:
    """Run a task and keep what it returned or raised."""
    try:
        future.set_result(task())
    except BaseException as err:
        future.set_exception(err)


def report(
    meter: Meter,
    progress: Callable[[DownloadProgress], None] | None,
    last: DownloadProgress | None,
) -> DownloadProgress:
    """Tell the caller how far it is, where that has changed."""
    now = meter.now()
    seen = last and (last.repo, last.done_bytes, last.done_files)
    if progress is not None and seen != (now.repo, now.done_bytes, now.done_files):
        progress(now)
    return now


def stalled(meter: Meter, stall_s: float, again: str) -> DownloadFailed:
    """Build the error for a transfer that hangs."""
    return DownloadFailed(
        f"no byte of {meter.repo} has come for {stall_s:.0f} s (or another download holds its "
        "files); finished files are kept",
        code="stalled",
        repair=f"run again in a new process without Xet: HF_HUB_DISABLE_XET=1 {again}",
    )
