"""The process that does a job: ``python -m sparkrecipes.jobs.worker JOB_ID LOCK_DESCRIPTOR``.

It inherits the job's lock and holds it until it ends. What it is to do stands in the job's folder;
nobody is asked anything. SIGINT and SIGTERM end it in order.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.jobs.cleanup import remove_made
from sparkrecipes.jobs.diary import Diary
from sparkrecipes.jobs.store import JobFolder, job_folder, write_whole
from sparkrecipes.jobs.work import do, result_of
from sparkrecipes.redaction import redact
from sparkrecipes.schema.job import JobError


def main(job_id: str, lock: int) -> int:
    """Do a job, and write down how it went.

    Args:
        job_id: Which one.
        lock: The descriptor that holds its lock.

    Returns:
        0 where it was done, 1 where not; nobody waits for it.
    """
    os.set_inheritable(lock, False)
    os.umask(0o077)
    asked = take_signals()
    folder = job_folder(job_id)
    diary = Diary(folder)
    try:
        if folder.cancel.exists():
            raise KeyboardInterrupt
        answer = do(folder.spec(), diary)
        # A round that is interrupted keeps what it measured and ends as any other.
        if asked:
            raise KeyboardInterrupt
        write_whole(folder.result, answer)
        diary.end("done", result=result_of(answer))
        return 0
    except KeyboardInterrupt:
        ended(folder, diary)
    except SparkRecipesError as err:
        diary.end("failed", error=described(err))
    except Exception as err:
        diary.log(redact(traceback.format_exc()))
        diary.end("failed", error=internal(err, folder))
    return 1


def ended(folder: JobFolder, diary: Diary) -> None:
    """Clean up after an end that somebody asked for."""
    diary.say("cancel: removing what this job made")
    for name in remove_made(folder):
        diary.say(f"removed {name}")
    asked = "it was asked to end" if folder.cancel.exists() else "a signal ended it"
    diary.end("cancelled", message=f"{asked}; what was fetched is kept")


def described(err: SparkRecipesError) -> JobError:
    """Write down an error of ours, without secrets."""
    return JobError(
        code=err.code,
        message=redact(err.message),
        repair=redact(err.repair),
        exit_code=err.exit_code,
        log_tail=tuple(redact(line) for line in getattr(cause_of(err), "log_tail", ())[-30:]),
    )


def cause_of(err: SparkRecipesError) -> BaseException:
    """Return what a failed walk came from: it carries the log."""
    found: BaseException = err
    while not getattr(found, "log_tail", ()) and found.__cause__ is not None:
        found = found.__cause__
    return found


def internal(err: Exception, folder: JobFolder) -> JobError:
    """Describe a fault of ours; its traceback is in the log."""
    return JobError(
        code="internal",
        message=f"a fault inside sparkrecipes: {type(err).__name__}: {redact(str(err))}",
        repair=f"report it with {folder.log}",
    )


def take_signals() -> list[int]:
    """Take SIGINT and SIGTERM as a request to end in order; a lost terminal ends nothing.

    Set explicitly: a shell may have left SIGINT ignored. A second signal does not break the
    cleaning up after the first.

    Returns:
        The signals that came, as they come.
    """
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        came.append(number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return came


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
