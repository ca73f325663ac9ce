"""A job's diary: its log, and its state as others read it, kept while the work is done."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime

from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.jobs.store import JobFolder
from sparkrecipes.redaction import redact
from sparkrecipes.schema.job import JobError, JobRecord, JobResult, JobState
from sparkrecipes.schema.round import Step
from sparkrecipes.schema.transfer import LINE

BEGINS = re.compile(r"^([a-z_]+) \.\.\.$")
ENDS = re.compile(r"^([a-z_]+): (.+)$", re.DOTALL)
WRITE_EVERY_S = 1.0
"""State is written at once when a step begins or ends, and at most this often between."""
LOG_COUNTS_EVERY_S = 10.0
LONGEST_MESSAGE = 400
LAUNCH = "launch"


class Diary:
    """What the walk says, as a log for people and a state for whoever watches."""

    def __init__(self, folder: JobFolder, load_minutes: float | None = None) -> None:
        """Open the diary of a job.

        Args:
            folder: Where it lies.
            load_minutes: Published load time of its recipe: what is left of a wait is told by it.
        """
        self.folder = folder
        self.load_minutes = load_minutes
        self.now = folder.record().model_copy(update={"pid": os.getpid()})
        self.step_began = time.monotonic()
        self.written = self.counted = 0.0
        self.write()

    def say(self, line: str) -> None:
        """Take one line of the walk's own progress."""
        line = redact(line)
        if found := LINE.match(line):
            self.count(found, line)
        elif found := BEGINS.match(line):
            self.begin(found[1])
        elif (found := ENDS.match(line)) and found[1] == self.now.step:
            self.finish(found[1], found[2])
        else:
            self.log(line)
            self.update(message=line.strip(), eta_s=self.time_left())

    def begin(self, step: str) -> None:
        """Note that a step of the walk begins."""
        self.step_began = time.monotonic()
        self.log(f"{step} ...")
        before = self.now.servers_before
        if step == LAUNCH and before is None:
            before = self.servers()
        self.update(
            at_once=True,
            step=step,
            message=f"{step} ...",
            percent=None,
            rate_mb_s=None,
            servers_before=before,
            eta_s=self.load_minutes * 60 if step == "wait" and self.load_minutes else None,
        )

    def finish(self, step: str, message: str) -> None:
        """Note that a step of the walk has ended."""
        self.log(f"{step}: {message}")
        done = Step(
            step=step,
            state="done",
            message=message[:LONGEST_MESSAGE],
            seconds=round(time.monotonic() - self.step_began, 1),
        )
        steps = (*self.now.steps, done)
        self.update(
            at_once=True, steps=steps, message=message, percent=None, rate_mb_s=None, eta_s=None
        )

    def count(self, found: re.Match[str], line: str) -> None:
        """Note how far a transfer has come, with its rate and the time left at it."""
        at = time.monotonic()
        if at - self.counted > LOG_COUNTS_EVERY_S:
            self.counted = at
            self.log(line)
        done, total = float(found["done"]), float(found["total"] or 0)
        rate = float(found["rate"] or 0)
        left = max(0.0, total - done) * 1000
        self.update(
            step=found["what"],
            message=line,
            percent=round(100 * done / total, 1) if total else None,
            rate_mb_s=rate or None,
            eta_s=round(left / rate, 0) if rate and total else None,
        )

    def time_left(self) -> float | None:
        """Reckon what is left of loading, by the published load time."""
        if self.now.step != "wait" or not self.load_minutes:
            return self.now.eta_s
        spent = time.monotonic() - self.step_began
        return round(max(0.0, self.load_minutes * 60 - spent), 0)

    def servers(self) -> tuple[str, ...]:
        """List our containers as they are, so that one made after this is known as this job's."""
        from sparkrecipes import containers

        try:
            found = containers.list_servers().servers
        except SparkRecipesError:
            return ()
        return tuple(server.container_id for server in found)

    def end(
        self,
        state: JobState,
        *,
        message: str = "",
        result: JobResult | None = None,
        error: JobError | None = None,
    ) -> None:
        """Write the last word."""
        said = message or (error.message if error else result.summary if result else "")
        self.log(f"{state}: {said}")
        self.update(
            at_once=True,
            state=state,
            message=said,
            result=result,
            error=error,
            percent=None,
            rate_mb_s=None,
            eta_s=None,
        )

    def log(self, line: str) -> None:
        """Write one line with its time."""
        with self.folder.log.open("a") as log:
            log.write(f"{datetime.now(UTC):%H:%M:%S} {redact(line)}\n")

    def update(self, *, at_once: bool = False, **changes: object) -> None:
        """Change the state, and write it where it is time."""
        message = changes.get("message")
        if isinstance(message, str):
            changes["message"] = message[:LONGEST_MESSAGE]
        self.now = self.now.model_copy(update=changes)
        if at_once or time.monotonic() - self.written > WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write the state as it is."""
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.now = self.now.model_copy(update={"updated_at": stamp})
        self.folder.write(JobRecord.model_validate(self.now.model_dump()))
        self.written = time.monotonic()
