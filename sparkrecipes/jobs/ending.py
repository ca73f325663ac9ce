"""Ending: a request first, force only after it, and then what the job made is removed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.jobs.cleanup import remove_made
from sparkrecipes.jobs.starting import WORKER
from sparkrecipes.jobs.store import JobFolder, job_folder
from sparkrecipes.jobs.watching import get_job
from sparkrecipes.schema.job import Job

GRACE_S = 20.0
"""From the request to force: a download ends within it, an engine's stop may not."""
FORCE_S = 5.0
POLL_S = 0.1


def cancel_job(job_id: str, *, grace_s: float = GRACE_S) -> Job:
    """End a job: ask its worker, then force it, then remove the container that it made.

    What it fetched is kept. A job that has ended already stays as it is; one whose worker died
    is cleaned up after.

    Args:
        job_id: Which one.
        grace_s: How long the worker may take to end in order, in seconds.

    Raises:
        Misuse: No job has that id.
        SparkRecipesError: Its worker cannot be ended.
    """
    folder = job_folder(job_id)
    before = get_job(job_id)
    if before.state not in ("running", "lost"):
        return before
    folder.cancel.touch(mode=0o600)
    if folder.is_alive():
        ask(folder, signal.SIGINT)
        if not ends_within(folder, grace_s):
            ask(folder, signal.SIGKILL)
            if not ends_within(folder, FORCE_S):
                raise SparkRecipesError(
                    f"the worker of the job {job_id} does not end",
                    code="not_ended",
                    repair=f"look at it: ps {folder.record().pid}",
                )
    if folder.record().state == "running":
        bury(folder)
    return get_job(job_id)


def bury(folder: JobFolder) -> None:
    """Clean up after a worker that could not, and write its last word."""
    removed = remove_made(folder)
    what = f"removed {', '.join(removed)}; " if removed else ""
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    folder.write(
        folder.record().model_copy(
            update={
                "state": "cancelled",
                "updated_at": stamp,
                "message": f"it was ended by force; {what}what was fetched is kept",
            }
        )
    )


def ends_within(folder: JobFolder, seconds: float) -> bool:
    """Wait until a worker is dead; say whether it is."""
    deadline = time.monotonic() + seconds
    while folder.is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def ask(folder: JobFolder, number: signal.Signals) -> None:
    """Send a signal to a job's worker; with SIGKILL to all that it started in its session.

    Nothing is sent to a process that is not that worker: process ids are used again.
    """
    pid = folder.record().pid
    if pid is None or not is_worker(pid, folder.id):
        return
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def is_worker(pid: int, job_id: str) -> bool:
    """Say whether a process is the worker of a job."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return WORKER.encode() in words and job_id.encode() in words
