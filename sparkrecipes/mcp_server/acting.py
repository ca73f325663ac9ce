"""The tools that act, or that lead to an act: plan, start, watch, cancel, stop.

Annotations are read when the tools are registered, so nothing here is postponed.
"""

import time
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import ElicitationResult, Resolve
from pydantic import Field

from sparkrecipes import jobs, operations
from sparkrecipes.mcp_server import answers, showing
from sparkrecipes.mcp_server.consent import (
    Consent,
    install_consent,
    require,
    round_consent,
    stop_consent,
)
from sparkrecipes.mcp_server.house import house_of
from sparkrecipes.mcp_server.reading import RecipeId, Tokens, Users, known_id

if TYPE_CHECKING:
    from sparkrecipes.schema.job import Job

Ctx = Context[Any, Any]
JobName = Annotated[str, Field(max_length=40)]

POLL_S = 0.25
TELL_EVERY_S = 5.0
LEAST_PROGRESS = 0.001


def plan_install(
    ctx: Ctx,
    recipe_id: RecipeId,
    context_tokens: Tokens = None,
    users: Users = None,
    port: Annotated[int, Field(ge=1, le=65535)] = 8000,
    rehearse: bool = False,
) -> answers.Planned:
    """Plan an install; nothing is started. Call before start_install.

    Gives plan_id (30 minutes, once), steps, GB, minutes, warnings, the exact command. Show these
    to the person and ask. rehearse=true plans the walk with a simulated
    server: needs no Spark, downloads nothing.
    """
    house = house_of(ctx)
    plan = jobs.plan_install(
        known_id(recipe_id),
        context_tokens=context_tokens,
        users=users,
        port=port,
        rehearse=rehearse,
        offline=house.settings.offline,
        **house.target(),
    )
    return showing.planned(plan)


def start_install(
    plan_id: Annotated[str, Field(max_length=60)],
    consent: Annotated[ElicitationResult[Consent], Resolve(install_consent)],
) -> answers.Started:
    """Do what a plan showed: download, launch, wait, measure, compare. Answers at once.

    Needs the person's yes. Gives job_id: then call get_job until it ends. Calling it again while
    it runs gives the same job.
    """
    require(consent)
    return showing.started(jobs.start_install(plan_id))


def start_round(
    ctx: Ctx,
    consent: Annotated[ElicitationResult[Consent], Resolve(round_consent)],
    recipe_id: RecipeId | None = None,
    base_url: Annotated[str | None, Field(max_length=300)] = None,
    model: Annotated[str | None, Field(max_length=200)] = None,
    quick: bool = True,
) -> answers.Started:
    """Measure a running endpoint with the standard round, and compare it with published figures.

    Give recipe_id of a server of ours, or base_url (and recipe_id to compare with). Loads the
    server: about 2 minutes quick, 30 in full. Gives job_id: then call get_job.
    """
    if recipe_id is not None:
        known_id(recipe_id)
    require(consent)
    house = house_of(ctx)
    started = jobs.start_round(
        recipe_id, base_url=base_url, model=model, quick=quick, **house.target()
    )
    return showing.started(started)


async def get_job(
    ctx: Ctx,
    job_id: JobName,
    wait_s: Annotated[float, Field(ge=0, le=45)] = 0,
    log_lines: Annotated[int, Field(ge=0, le=50)] = 0,
) -> answers.JobAnswer:
    """See how a job stands; wait_s=45 waits until it ends or its step changes.

    While state is "running" call it again. When "done", report result as it is: verdict, figures,
    warnings.
    """
    deadline = time.monotonic() + wait_s
    first = job = await read(job_id, log_lines)
    told = Told(ctx)
    while job.state == "running" and job.step == first.step and time.monotonic() < deadline:
        await told.tell(job)
        await anyio.sleep(POLL_S)
        job = await read(job_id, log_lines)
    return showing.job(job)


class Told:
    """What a client was told of a job's progress while it waits, where it asked for that."""

    def __init__(self, ctx: Ctx) -> None:
        self.ctx = ctx
        self.said = ""
        self.at = -1.0
        self.when = 0.0

    async def tell(self, job: "Job") -> None:
        """Tell what is new, and every few seconds that it goes on; the count always grows.

        Source: the specification wants each ``progress`` above the last. Some clients wait longer
        for a call that reports progress.
        """
        if job.message == self.said and time.monotonic() - self.when < TELL_EVERY_S:
            return
        from sparkrecipes.operations.walk import STEPS

        done = len(job.steps) + (job.percent or 0.0) / 100
        self.said, self.when = job.message, time.monotonic()
        self.at = max(done, self.at + LEAST_PROGRESS)
        total = None if job.kind == "round" else float(len(STEPS))
        await self.ctx.report_progress(self.at, total, f"{job.step}: {job.message}"[:200])


async def read(job_id: str, log_lines: int) -> "Job":
    """Read a job without holding up other requests."""
    return await anyio.to_thread.run_sync(lambda: jobs.get_job(job_id, log_lines=log_lines))


def list_jobs() -> answers.Jobs:
    """List jobs, the newest first: also those that another session or the command line started."""
    return showing.job_list(jobs.list_jobs(12))


def cancel_job(job_id: JobName) -> answers.Started:
    """End a job: asks it, forces it after 20 s, removes only the container that it made.

    What was downloaded stays.
    """
    return showing.started(jobs.cancel_job(job_id))


def stop_server(
    name: Annotated[str, Field(max_length=120, description="recipe id or container name")],
    consent: Annotated[ElicitationResult[Consent], Resolve(stop_consent)],
) -> answers.Ended:
    """Stop and remove a model server that sparkrecipes started; never another container.

    Needs the person's yes. Weights and images stay.
    """
    known_id(name, "name")
    require(consent)
    return showing.stopped(operations.stop(name))
