"""Kills a process at its n-th step on disk, for every n: "at any moment" without luck.

Python reports each file that it opens to write, each folder that it makes, each rename, lock and
program that it starts to an audit hook before it does it. A child that is killed by its own hook at
the n-th report has died exactly there, as by ``kill -9``.

Run alone (``python killing.py RECIPE MOST``) it sweeps ``jobs.start_install`` and prints a line of
JSON a moment; tests start it as a program, because a test process with threads should not fork.
"""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

EVENTS = frozenset(
    (
        "os.mkdir",
        "os.rename",
        "os.remove",
        "subprocess.Popen",
        "_thread.start_new_thread",
        "_thread.start_joinable_thread",
    )
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def is_step(event: str, args: tuple[Any, ...]) -> bool:
    """Say whether a report is of something that others can see; between two of them all is one."""
    if event == "open":
        return bool(args[2] & WRITES) if isinstance(args[2], int) else False
    if event == "os.mkdir":
        return not Path(args[0]).exists()
    if event == "fcntl.flock":
        return bool(args[1] & fcntl.LOCK_EX)
    return event in EVENTS


def killed_at(step: int, work: Callable[[], object]) -> str | None:
    """Do some work in a child that is killed at a step; return what it was about to do, if so."""
    said, heard = os.pipe()
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            if is_step(event, args):
                left -= 1
                if left == 0:
                    os.write(heard, event.encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            work()
        finally:
            os._exit(0)
    os.close(heard)
    _, status = os.waitpid(child, 0)
    with os.fdopen(said, "rb") as pipe:
        event = pipe.read().decode()
    return event if os.WIFSIGNALED(status) else None


def sweep(recipe: str, longest: int) -> None:
    """Kill a start at each of its steps, start it again, and print what there is then."""
    from sparkrecipes import jobs
    from sparkrecipes.errors import Refused
    from sparkrecipes.jobs import ending, planning, starting

    ending.POLL_S = 0.005
    starting.WORKER = "idle_worker"
    shown = jobs.plan_install(recipe, rehearse=True, offline=True)
    spec = planning.load_plan(shown.plan_id or "").spec
    command = cast(Any, SimpleNamespace(shell=shown.command))

    def running() -> list[str]:
        return [folder.id for folder, _ in starting.living()]

    for step in range(1, longest + 1):
        plan, _ = planning.new_plan(spec, command, "Rehearse it?")
        event = killed_at(step, lambda plan=plan: jobs.start_install(plan))
        left = running()
        again, twice = jobs.start_install(plan), jobs.start_install(plan)
        after = running()
        ended = jobs.cancel_job(again.id)
        try:
            third = jobs.start_install(plan).id
        except Refused as err:
            third = err.code
        found = {
            "event": event,
            "left": left,
            "again": again.id,
            "twice": twice.id,
            "state": again.state,
            "after": after,
            "ended": ended.state,
            "third": third,
            "half_made": [path.name for path in jobs_folder().glob(".2*")],
        }
        print(json.dumps(found), flush=True)
        if event is None:
            return


def jobs_folder() -> Path:
    """Return the folder that jobs lie in."""
    from sparkrecipes.jobs.store import state_root

    return state_root() / "jobs"


if __name__ == "__main__":
    sweep(sys.argv[1], int(sys.argv[2]))
