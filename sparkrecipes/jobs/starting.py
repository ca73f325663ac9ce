"""Starting: one decision at a time, one worker a piece of work, an answer in under a second."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable

from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, Refused
from sparkrecipes.jobs.addresses import checked_model, checked_url
from sparkrecipes.jobs.planning import digest_of, load_plan
from sparkrecipes.jobs.store import (
    JobFolder,
    job_folder,
    job_folders,
    new_job,
    readable,
    remove_old_jobs,
    start_lock,
    state_root,
    write_whole,
)
from sparkrecipes.jobs.watching import get_job
from sparkrecipes.operations.workspace import Place, open_workspace
from sparkrecipes.schema.job import PLAN_ID, Job, JobSpec, Plan

WORKER = "sparkrecipes.jobs.worker"


def start_install(plan_id: str) -> Job:
    """Start exactly what a plan showed, in a process of its own, and answer at once.

    While a job of the same plan runs, that job is the answer. A plan whose job has ended is used
    up, unless the job was lost with its worker: then it is started again.

    Raises:
        Refused: The plan is unknown, altered, expired or used, or its recipe is being installed.
    """
    with start_lock():
        started = job_of(plan_id)
        if started is not None and is_at_work(started):
            return get_job(started.id)
        plan = load_plan(plan_id)
        refuse_used(plan_id, started)
        refuse_changed(plan)
        job = begin(plan.spec, plan_id, started)
    return get_job(job.id)


def start_round(
    recipe_id: str | None = None,
    *,
    base_url: str | None = None,
    model: str | None = None,
    quick: bool = True,
    catalog: Catalog | Place = None,
    machine: Place = None,
) -> Job:
    """Start a standard round of an endpoint, in a process of its own, and answer at once.

    Args:
        recipe_id: A recipe that runs in a container of ours, or whose figures to compare with.
        base_url: The endpoint, with or without ``/v1``; None: the recipe's container.
        model: The name to ask for; None: the recipe's, or the only one that is served.
        quick: Under two minutes; False: the whole round.
        catalog: Where the recipe comes from.
        machine: The target.

    Raises:
        Misuse: Neither a recipe nor an endpoint, or an address that cannot be.
    """
    space = open_workspace(catalog, machine)
    recipe = space.catalog.recipe(recipe_id) if recipe_id else None
    if recipe is None and base_url is None:
        raise Misuse(
            "nothing to measure: give recipe_id, base_url or both",
            code="nothing_to_measure",
            repair="see what runs: sparkrecipes status",
        )
    spec = JobSpec(
        kind="round",
        subject=recipe.id if recipe else checked_url(base_url or ""),
        recipe=recipe,
        catalog=str(space.catalog.root),
        machine=str(machine) if machine else None,
        offline=False,
        base_url=checked_url(base_url) if base_url else None,
        model=checked_model(model),
        quick=quick,
    )
    with start_lock():
        return get_job(begin(spec).id)


def job_of(plan_id: str) -> JobFolder | None:
    """Return the job that a plan started, or None."""
    if not re.fullmatch(PLAN_ID, plan_id):
        return None
    try:
        return job_folder((state_root() / "plans" / f"{plan_id}.job").read_text())
    except (OSError, ValueError, Misuse):
        return None


def is_running(plan_id: str) -> bool:
    """Say whether a job that a plan started is under way."""
    started = job_of(plan_id)
    return started is not None and is_at_work(started)


def is_at_work(folder: JobFolder) -> bool:
    """Say whether a job has not ended; its worker lives for a moment after its last word."""
    return get_job(folder.id).state == "running"


def refuse_used(plan_id: str, started: JobFolder | None) -> None:
    """Refuse a plan whose job came to an end of its own.

    Raises:
        Refused: With the job that it started.
    """
    if started is None or get_job(started.id).state == "lost":
        return
    raise Refused(
        f"{plan_id} was used: it started the job {started.id}, which has ended",
        code="used_plan",
        repair=f"see how it ended: sparkrecipes jobs show {started.id}; plan again to run it again",
    )


def refuse_changed(plan: Plan) -> None:
    """Refuse a plan whose engine is described otherwise by now.

    Raises:
        Refused: The arguments would not be those that were shown.
    """
    spec = plan.spec
    if spec.recipe is None:
        return
    engine = open_workspace(spec.catalog, spec.machine).catalog.engine(spec.recipe.engine)
    if digest_of(engine) != spec.engine_digest:
        raise Refused(
            f"the catalog's {engine.id} has changed since the plan was made",
            code="changed_plan",
            repair=f"plan again: sparkrecipes install {spec.subject}",
        )


def begin(spec: JobSpec, plan_id: str | None = None, lost: JobFolder | None = None) -> JobFolder:
    """Start a worker, or return the job that does the same work already.

    A plan is bound to its job before the job's worker lives: whatever kills this process, no plan
    is done twice.

    Args:
        spec: What is to be done.
        plan_id: The plan that showed it.
        lost: The job that did it before and was killed; its container counts as the new one's.

    Raises:
        Refused: Other work on the same subject is under way.
    """
    running = [(f, s) for f, s in living() if s.subject == spec.subject]
    for folder, other in running:
        if work_of(other) == work_of(spec):
            bind(plan_id, folder)
            return folder
        if spec.kind != "rehearse" and other.kind != "rehearse":
            raise Refused(
                f"the job {folder.id} ({other.kind}) is at work on {spec.subject}",
                code="busy",
                repair=f"wait: sparkrecipes jobs wait {folder.id}, or end it: "
                f"sparkrecipes jobs cancel {folder.id}",
            )
    remove_old_jobs()
    folder, lock = new_job(spec, lost.record().servers_before if lost else None)
    try:
        bind(plan_id, folder)
        spawn(folder, lock)
    finally:
        os.close(lock)
    return folder


def bind(plan_id: str | None, folder: JobFolder) -> None:
    """Write down which job a plan started; a reader sees the whole of it or nothing."""
    if plan_id is not None:
        write_whole(state_root() / "plans" / f"{plan_id}.job", folder.id)


def living() -> Iterable[tuple[JobFolder, JobSpec]]:
    """List the jobs that are under way, and what they do."""
    for folder in job_folders():
        files = readable(folder)
        if files is not None and files[1].state == "running" and folder.is_alive():
            yield folder, files[0]


def work_of(spec: JobSpec) -> str:
    """Hash what is done: two plans of the same work are one piece of work."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()


def spawn(folder: JobFolder, lock: int) -> None:
    """Start the worker in a session of its own, so that it outlives whoever started it.

    It inherits the lock, which says that the job is alive from its first moment on.
    """
    with folder.log.open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", WORKER, folder.id, str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock,),
            start_new_session=True,
            cwd="/",
        )
    # Reaps it while this program lives; a job is never waited for by its child process.
    threading.Thread(target=worker.wait, daemon=True).start()
