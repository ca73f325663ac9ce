"""Watching: how jobs stand, read from their folders; nobody needs to have started them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.jobs.store import JobFolder, job_folder, job_folders, readable
from sparkrecipes.schema.job import Job, JobAnswer, JobList, JobRecord, JobSpec
from sparkrecipes.schema.round import Report, Round

POLL_S = 0.25
MOST_LOG_LINES = 200
LOG_BYTES = 64 * 1024
"""Read from the end of a job's log."""


def get_job(job_id: str, *, log_lines: int = 0) -> Job:
    """Say how a job stands.

    Args:
        job_id: Its id.
        log_lines: How many of its last log lines to give.

    Raises:
        Misuse: No job has that id.
    """
    folder = job_folder(job_id)
    files = readable(folder)
    if files is None:
        raise CatalogError(
            f"the files of the job {job_id} cannot be read",
            code="broken_job",
            repair=f"look into {folder.path}",
        )
    spec, record = files
    return describe(folder, spec, settled(folder, record), log_lines)


def list_jobs(limit: int = 20) -> JobList:
    """List jobs, the newest first; those whose files are broken are left out."""
    found: list[Job] = []
    for folder in job_folders():
        files = readable(folder)
        if files is not None and len(found) < limit:
            found.append(describe(folder, files[0], settled(folder, files[1]), 0))
    return JobList(jobs=tuple(found))


def wait_job(
    job_id: str,
    *,
    timeout_s: float | None = None,
    progress: Callable[[Job], None] | None = None,
) -> Job:
    """Wait until a job ends, or until the time is up.

    Args:
        job_id: Its id.
        timeout_s: None waits for as long as it takes.
        progress: Called whenever the job says something new.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    said = ""
    while True:
        job = get_job(job_id)
        if progress and job.message != said:
            said = job.message
            progress(job)
        if job.state != "running" or (deadline and time.monotonic() >= deadline):
            return job
        time.sleep(POLL_S)


def load_report(job_id: str) -> tuple[Report, Round]:
    """Return the report and the round of a job that has ended.

    Raises:
        Misuse: It has none: it has not ended, or it failed.
    """
    folder = job_folder(job_id)
    try:
        data = folder.result.read_bytes()
    except OSError:
        raise Misuse(
            f"the job {job_id} has no report",
            code="no_report",
            repair=f"see how it stands: sparkrecipes jobs show {job_id}",
        ) from None
    answer = JobAnswer.model_validate_json(data)
    return answer.report, answer.round


def settled(folder: JobFolder, record: JobRecord) -> JobRecord:
    """Return a record that is true: a job that says it runs, and whose worker is dead, is lost."""
    if record.state != "running" or folder.is_alive():
        return record
    # Its worker may have written its last word and ended between the two looks.
    last = folder.record()
    return last if last.state != "running" else last.model_copy(update={"state": "lost"})


def describe(folder: JobFolder, spec: JobSpec, record: JobRecord, log_lines: int) -> Job:
    """Put together how a job stands."""
    running = record.state == "running"
    until = datetime.now(UTC) if running else datetime.fromisoformat(record.updated_at)
    seconds = (until - datetime.fromisoformat(record.started_at)).total_seconds()
    return Job(
        id=folder.id,
        kind=spec.kind,
        subject=spec.subject,
        state=record.state,
        step=record.step,
        message=record.message,
        percent=record.percent if running else None,
        rate_mb_s=record.rate_mb_s if running else None,
        eta_s=record.eta_s if running else None,
        seconds=round(max(0.0, seconds), 1),
        started_at=record.started_at,
        steps=record.steps,
        result=record.result,
        error=record.error,
        log=log_tail(folder, log_lines),
        log_file=str(folder.log),
        poll_after_s=poll_after(record) if running else None,
        next=what_next(folder.id, spec, record),
    )


def poll_after(record: JobRecord) -> int:
    """Say after how many seconds it is worth asking again."""
    if record.eta_s is None:
        return 15
    return int(min(60.0, max(5.0, record.eta_s / 3)))


def what_next(job_id: str, spec: JobSpec, record: JobRecord) -> str:
    """Say what to do next, exactly."""
    if record.state == "running":
        return f"run: sparkrecipes jobs wait {job_id} (it is under way: do not start it again)"
    if record.state == "lost":
        return (
            "its worker was killed; what it fetched is kept. Start it again with its plan, or plan "
            f"anew: {walk_of(spec)}; see first whether a server runs: sparkrecipes status"
        )
    if record.state == "cancelled":
        return f"nothing: it was ended. To do it after all: {walk_of(spec)}"
    if record.state == "failed" and record.error is not None:
        return record.error.repair or f"read its log: sparkrecipes jobs show {job_id} --lines 50"
    if record.result and record.result.base_url and not record.result.simulated:
        return (
            f"tell the person the verdict, the figures and every warning; clients use "
            f"{record.result.base_url}/v1; stop it with: sparkrecipes stop {spec.subject}"
        )
    return "tell the person the verdict, the figures and every warning; say that it is simulated"


def walk_of(spec: JobSpec) -> str:
    """Return the command that does a job's work."""
    if spec.kind == "round" and spec.base_url:
        return f"sparkrecipes round --base-url {spec.base_url}"
    return f"sparkrecipes {spec.kind} {spec.subject}"


def log_tail(folder: JobFolder, lines: int) -> tuple[str, ...]:
    """Return the last lines of a job's log."""
    if lines <= 0:
        return ()
    try:
        with folder.log.open("rb") as log:
            log.seek(max(0, folder.log.stat().st_size - LOG_BYTES))
            text = log.read(LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line)[-min(lines, MOST_LOG_LINES) :]
