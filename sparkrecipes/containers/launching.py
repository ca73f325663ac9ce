"""Launching: run exactly one rendered command, and leave nothing half made behind."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sparkrecipes.containers.description import Container, inspect_one
from sparkrecipes.containers.docker import (
    UNREACHABLE,
    Answer,
    Explained,
    docker,
    explain,
    run,
)
from sparkrecipes.containers.servers import act, end
from sparkrecipes.errors import LaunchFailed, Misuse, Unknown
from sparkrecipes.schema.serving import Command, Server

LAUNCH_TIMEOUT_S = 3600.0
"""``docker run`` pulls an image that is not here first: 20 GB at 6 MB/s."""

LATE_LOOKS, LATE_PAUSE_S = 5, 0.2
"""How often, and with what pause, an interrupted start is looked for: a second in all."""

CONTAINER_ID = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)


def launch(command: Command, *, recipe_id: str) -> Server:
    """Start a container with exactly ``command.argv``.

    An ended container of ours that serves the same recipe gives its name up: it is removed and
    the command is run again. Where Docker made a container that it could not start, that one is
    removed.

    Args:
        command: What ``render`` made, in the format ``docker``.
        recipe_id: The recipe that it serves.

    Returns:
        The container as it is right after its start; readiness is another question.

    Raises:
        LaunchFailed: With a code, what Docker said, and the repair.
        Unknown: Docker could not be asked at all, so that nothing was tried.
        Misuse: The command is a compose or systemd file.
    """
    if command.format != "docker":
        raise Misuse(
            f"only a docker command can be started, not {command.format}",
            repair=f"run: sparkrecipes command {recipe_id}",
        )
    answer = run_or_undo(command, recipe_id)
    holder = name_holder(answer, command)
    if holder is not None and holder.recipe_id == recipe_id and holder.ended:
        act("rm", holder.id)
        answer, holder = run_or_undo(command, recipe_id), None
    if not answer.ok:
        remove_unstarted(answer, recipe_id)
        raise launch_failed(answer, command, recipe_id, holder)
    return started(answer, command)


def run_or_undo(command: Command, recipe_id: str) -> Answer:
    """Run the command; where that is interrupted, remove the container that came of it.

    Docker goes on with a container whose ``docker run`` was interrupted.
    """
    began = datetime.now(UTC)
    try:
        return run(command.argv, timeout_s=LAUNCH_TIMEOUT_S)
    except BaseException:
        for _ in range(LATE_LOOKS):
            container = inspect_one(command.container_name)
            if container is not None:
                if container.recipe_id == recipe_id and container.made_after(began):
                    end(container)
                break
            time.sleep(LATE_PAUSE_S)
        raise


def started(answer: Answer, command: Command) -> Server:
    """Look at the container that was just made.

    Raises:
        LaunchFailed: It is gone already.
    """
    made = CONTAINER_ID.search(answer.stdout)
    container = inspect_one(made[0]) if made else None
    if container is None or container.recipe_id is None:
        raise LaunchFailed(
            f"{command.container_name} was started and is not there any more",
            code="gone",
            repair="is something else removing containers? see: docker events --since 5m",
        )
    return container.server()


def remove_unstarted(answer: Answer, recipe_id: str) -> None:
    """Remove the container that a failed ``docker run`` made, known by the id that it printed.

    Docker prints the id of a container that it made and could not start (a taken port, no GPU
    runtime), and leaves it behind with its name. What Docker refuses here adds nothing to the
    failure that is being reported.
    """
    made = CONTAINER_ID.search(answer.stdout)
    if made is None:
        return
    container = inspect_one(made[0])
    if container is not None and container.recipe_id == recipe_id and container.state == "created":
        docker("rm", container.id)


def name_holder(answer: Answer, command: Command) -> Container | None:
    """Return the container that has the name, where that is why the command failed."""
    if answer.ok or explain(answer).code != "name_in_use":
        return None
    return inspect_one(command.container_name)


def launch_failed(
    answer: Answer, command: Command, recipe_id: str, holder: Container | None
) -> LaunchFailed | Unknown:
    """Say why a launch failed and what to do."""
    port = urlsplit(command.base_url).port or 0
    said = explain(
        answer,
        {
            "port": str(port),
            "next_port": str(port + 1),
            "name": command.container_name,
            "recipe": recipe_id,
        },
    )
    if said.code in UNREACHABLE:
        return Unknown(said.message, code=said.code, repair=said.repair)
    if holder is not None:
        said = name_taken(holder)
    elif said.code == "port_in_use" and (others := publishers(port)):
        said = Explained(
            said.code, f"port {port} is published by the container {others}", said.repair
        )
    return LaunchFailed(said.message, code=said.code, repair=said.repair)


def name_taken(holder: Container) -> Explained:
    """Say whose container has the name."""
    if holder.recipe_id is None:
        return Explained(
            "name_in_use",
            f"the name {holder.name} belongs to a container that is not ours ({holder.image}, "
            f"{holder.state}); it was left alone",
            f"give it another name: docker rename {holder.name} {holder.name}-other",
        )
    return Explained(
        "name_in_use",
        f"the name {holder.name} belongs to a container of ours that serves {holder.recipe_id} "
        f"and is {holder.state}",
        f"use it: sparkrecipes wait {holder.recipe_id}, or stop it: "
        f"sparkrecipes stop {holder.recipe_id}",
    )


def publishers(port: int) -> str:
    """Name the containers that publish a port; an empty string where Docker does not say."""
    answer = docker("ps", "--filter", f"publish={port}", "--format", "{{.Names}}")
    return ", ".join(answer.stdout.split()) if answer.ok else ""
