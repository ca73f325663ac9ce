"""Where jobs lie on disk, and how a living one is told from a dead one.

::

    <state folder>/sparkrecipes/
        plans/<plan id>.json     what was shown; its name is its hash
        plans/<plan id>.job      the id of the job that it started
        jobs/<job id>/spec.json  what the worker does
                     state.json  how it stands, replaced as a whole
                     log.txt     what it said
                     result.json the whole answer
                     lock        held by the worker for as long as it lives
                     cancel      there once somebody asked it to end
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from sparkrecipes.errors import Misuse, SparkRecipesError
from sparkrecipes.schema.job import JOB_ID, JobRecord, JobSpec

KEPT_JOBS = 100
"""Ended jobs beyond these are removed, the oldest first, when a new one starts."""
START_LOCK_S = 5.0


@dataclass(frozen=True)
class JobFolder:
    """The folder of one job.

    Attributes:
        path: The folder; its name is the job's id.
    """

    path: Path

    @property
    def id(self) -> str:
        """The job's id."""
        return self.path.name

    @property
    def log(self) -> Path:
        """What the worker and its libraries said."""
        return self.path / "log.txt"

    @property
    def lock(self) -> Path:
        """Held for as long as the worker lives."""
        return self.path / "lock"

    @property
    def cancel(self) -> Path:
        """There once somebody asked the job to end."""
        return self.path / "cancel"

    @property
    def result(self) -> Path:
        """The whole answer of the operation."""
        return self.path / "result.json"

    def spec(self) -> JobSpec:
        """Read what the job does."""
        return JobSpec.model_validate_json((self.path / "spec.json").read_bytes())

    def record(self) -> JobRecord:
        """Read how it stands; what ``running`` is worth is for ``is_alive`` to say."""
        return JobRecord.model_validate_json((self.path / "state.json").read_bytes())

    def write(self, record: JobRecord) -> None:
        """Write down how it stands; a reader sees the old or the new, never half."""
        write_whole(self.path / "state.json", record)

    def is_alive(self) -> bool:
        """Say whether a worker holds the lock."""
        try:
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def state_root() -> Path:
    """Return the folder of plans and jobs, made for this user alone.

    Raises:
        SparkRecipesError: It cannot be made or written.
    """
    from platformdirs import user_state_path

    root = user_state_path("sparkrecipes")
    try:
        for folder in (root, root / "plans", root / "jobs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as err:
        raise SparkRecipesError(
            f"{root} cannot be made: {err.strerror}",
            code="no_state_folder",
            repair="set XDG_STATE_HOME to a folder that you may write",
        ) from err
    return root


def job_folder(job_id: str) -> JobFolder:
    """Find a job by its id.

    Raises:
        Misuse: No job has that id.
    """
    folder = JobFolder(state_root() / "jobs" / job_id) if re.fullmatch(JOB_ID, job_id) else None
    if folder is None or not folder.path.is_dir():
        raise Misuse(
            f"no job has the id {job_id[:60]!r}",
            code="unknown_job",
            repair="run: sparkrecipes jobs list",
        )
    return folder


def job_folders() -> list[JobFolder]:
    """List all jobs, the newest first."""
    found = [p for p in (state_root() / "jobs").iterdir() if re.fullmatch(JOB_ID, p.name)]
    return [JobFolder(path) for path in sorted(found, reverse=True)]


def new_job(spec: JobSpec, servers_before: tuple[str, ...] | None = None) -> tuple[JobFolder, int]:
    """Make a job's folder with its lock held; it appears as a whole, already alive.

    Args:
        spec: What the job does.
        servers_before: Our containers before the launch of the lost job that this one goes on with.

    Returns:
        The folder, and the descriptor that holds its lock: whoever inherits it keeps the job alive.
    """
    now = datetime.now(UTC)
    root = state_root() / "jobs"
    folder = JobFolder(root / f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}")
    hidden = root / f".{folder.id}"
    hidden.mkdir(mode=0o700)
    made = JobFolder(hidden)
    lock = os.open(made.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    stamp = now.isoformat(timespec="milliseconds")
    write_whole(made.path / "spec.json", spec)
    made.write(
        JobRecord(
            state="running",
            started_at=stamp,
            updated_at=stamp,
            step="start",
            servers_before=servers_before,
        )
    )
    made.log.touch(mode=0o600)
    hidden.rename(folder.path)
    return folder, lock


@contextlib.contextmanager
def start_lock() -> Iterator[None]:
    """Let one process at a time decide what is started.

    Raises:
        SparkRecipesError: Another one has been deciding for too long.
    """
    descriptor = os.open(
        state_root() / "jobs" / ".start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    deadline = time.monotonic() + START_LOCK_S
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SparkRecipesError(
                        "another process is starting a job and does not finish",
                        code="busy",
                        repair="try again; see: sparkrecipes jobs list",
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, value: BaseModel | str) -> None:
    """Write a value so that a reader never sees half of it, and a crash leaves the old one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600), "w") as out:
        out.write(value if isinstance(value, str) else value.model_dump_json())
        out.flush()
        os.fsync(out.fileno())
    partial.replace(path)


def readable(folder: JobFolder) -> tuple[JobSpec, JobRecord] | None:
    """Read a job's two files, or None where they are not what they should be."""
    try:
        return folder.spec(), folder.record()
    except (OSError, ValidationError):
        return None


def remove_old_jobs() -> None:
    """Remove ended jobs beyond those that are kept, and what a killed start left half made.

    Called with the start's lock held: nobody else is making a job.
    """
    for path in (state_root() / "jobs").glob(".*T*-*"):
        if not JobFolder(path).is_alive():
            shutil.rmtree(path, ignore_errors=True)
    for folder in job_folders()[KEPT_JOBS:]:
        if not folder.is_alive():
            shutil.rmtree(folder.path, ignore_errors=True)
