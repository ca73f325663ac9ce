"""The commands for agents, their hosts and their clients: call one function, return its answer."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sparkrecipes.errors import Misuse

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sparkrecipes.schema.job import Job
    from sparkrecipes.schema.serving import Stopped


def mcp(options: Namespace) -> BaseModel:
    """Print what a host's configuration must say."""
    from sparkrecipes import connections

    command = ["sparkrecipes", "mcp"] if shutil.which("sparkrecipes") else own_command()
    command += ["--read-only"] if options.read_only else []
    for name in ("catalog", "machine"):
        if hasattr(options, name):
            command += [f"--{name}", str(Path(getattr(options, name)).absolute())]
    url = f"http://{options.host}:{options.port}/mcp" if options.http else None
    return connections.host_snippet(options.print_config, command, url=url)


def own_command() -> list[str]:
    """Return what starts this installation, which is not on PATH."""
    return [sys.executable, "-m", "sparkrecipes", "mcp"]


def serve(options: Namespace) -> int:
    """Serve agents until the client goes or somebody interrupts."""
    from sparkrecipes.mcp_server import Settings, serve_http, serve_stdio

    settings = Settings(
        catalog=getattr(options, "catalog", None),
        machine=getattr(options, "machine", None),
        offline=getattr(options, "offline", False),
        read_only=options.read_only,
        consent=options.consent,
    )
    if options.http:
        serve_http(settings, host=options.host, port=options.port)
    else:
        serve_stdio(settings)
    return 0


def jobs(options: Namespace) -> BaseModel:
    """List, show, wait for, cancel or start a job."""
    from sparkrecipes import jobs as work

    if options.action == "list":
        return work.list_jobs()
    if options.id is None:
        raise Misuse(
            f"jobs {options.action} wants an id", repair="see them with: sparkrecipes jobs list"
        )
    match options.action:
        case "show":
            return work.get_job(options.id, log_lines=options.lines)
        case "cancel":
            return cancel(options.id)
        case "start":
            return work.start_install(options.id)
        case _:
            return wait(options)


def cancel(job_id: str) -> Stopped:
    """End a job, and say how it stands then."""
    from sparkrecipes import jobs as work
    from sparkrecipes.schema.serving import Stopped

    job = work.cancel_job(job_id)
    message = f"{job.state}: {job.message or job.next}"
    return Stopped(name=job.id, stopped=job.state == "cancelled", message=message)


def wait(options: Namespace) -> Job:
    """Wait for a job, and show what it says meanwhile."""
    from sparkrecipes import jobs as work
    from sparkrecipes.cli.progress import Display

    with Display() as display:
        return work.wait_job(
            options.id,
            timeout_s=options.timeout,
            progress=lambda job: display.line(f"{job.step}: {job.message}"),
        )


def connect(options: Namespace) -> BaseModel:
    """Print what a client's configuration must say."""
    from sparkrecipes.operations.connection import connect as connect_client

    return connect_client(
        options.recipe,
        client=options.client,
        base_url=options.base_url,
        catalog=getattr(options, "catalog", None),
    )


def skills(options: Namespace) -> BaseModel:
    """List the skills, show a prompt, or write skills into a folder."""
    from sparkrecipes import agent_skills

    if options.action == "add":
        return agent_skills.write_skills(Path(options.dir))
    if options.action == "show":
        if options.name is None:
            raise Misuse("skills show wants a name", repair="see: sparkrecipes skills list")
        plain = options.name.removeprefix("sparkrecipes-").replace("-", "_")
        return agent_skills.prompt(plain, options.lang)
    return agent_skills.skills()


AGENT_HANDLERS: dict[str, Callable[[Namespace], BaseModel]] = {
    "mcp": mcp,
    "jobs": jobs,
    "connect": connect,
    "skills": skills,
}
