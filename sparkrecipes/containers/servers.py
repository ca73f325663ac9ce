"""Servers: the containers that carry our label, as Docker sees them now."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from sparkrecipes.commands import LABEL, container_name
from sparkrecipes.containers.description import Container, inspect, inspect_one, is_gone, unknown
from sparkrecipes.containers.docker import UNREACHABLE, Answer, docker, explain
from sparkrecipes.containers.secrecy import without_secrets
from sparkrecipes.errors import Misuse, Refused, ServerError, Unknown
from sparkrecipes.schema.serving import Server, ServerList, ServerLogs, Stopped

STOP_GRACE_S = 30
"""From SIGTERM to SIGKILL: an engine ends its requests in that time."""

MOST_LINES = 10_000
LONGEST_LINE = 2_000
"""Characters of one log line that are shown."""

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def list_servers() -> ServerList:
    """List the containers that carry our label, running or not, the newest first.

    Raises:
        Unknown: Docker could not be asked.
    """
    return ServerList(servers=tuple(container.server() for container in ours()))


def find_server(recipe_or_name: str) -> Server | None:
    """Find our container of a recipe, a running one first.

    Args:
        recipe_or_name: A recipe id, the path of a recipe file, or a container's name.

    Raises:
        Unknown: Docker could not be asked.
    """
    found = matching(recipe_or_name)
    return found[0].server() if found else None


def logs(name: str, *, lines: int = 50) -> ServerLogs:
    """Return the last log lines of a container of ours, secrets and control codes removed.

    Args:
        name: A recipe id or a container's name.
        lines: How many, at most 10,000.

    Raises:
        Misuse: No container of ours has that name.
        Refused: A container has it, but is not ours.
        Unknown: Docker could not be asked.
    """
    container = owned(name)
    return ServerLogs(name=container.name, lines=log_tail(container.id, lines))


def owned(name: str) -> Container:
    """Return our container of a recipe or with a name, a running one first.

    Raises:
        Misuse: No container of ours has that name.
        Refused: A container has it, but is not ours.
        Unknown: Docker could not be asked.
    """
    found = matching(name)
    if not found:
        refuse_foreign(name, "its log is not shown")
        raise Misuse(
            f"no container of ours is called {name!r}",
            code="no_server",
            repair="run: sparkrecipes status",
        )
    return found[0]


def last_words(name: str) -> str:
    """Return the end of a container's log, and how it ended where it did, as text to diagnose.

    The kernel and Docker kill without a word in the log; the state says so in the words of
    ``docker inspect``.

    Raises:
        Misuse: No container of ours has that name.
        Refused: A container has it, but is not ours.
        Unknown: Docker could not be asked.
    """
    container = owned(name)
    lines = log_tail(container.id, MOST_LINES)
    if container.ended:
        state = {"ExitCode": container.exit_code, "OOMKilled": container.oom_killed}
        lines += (f'"State": {json.dumps(state)}', container.error)
    return "\n".join(lines)


def log_tail(container_id: str, lines: int) -> tuple[str, ...]:
    """Return the last log lines of a container, fit to be shown.

    Raises:
        Unknown: Docker could not be asked.
    """
    wanted = max(1, min(lines, MOST_LINES))
    answer = docker("logs", "--tail", str(wanted), container_id, merge_stderr=True)
    if not answer.ok:
        raise unknown(Answer(answer.exit_code, "", answer.stderr or answer.stdout))
    shown = without_secrets(answer.stdout).replace("\r\n", "\n").removesuffix("\n").split("\n")
    return tuple(shown_line(line) for line in shown if line)[-wanted:]


def shown_line(line: str) -> str:
    """Return the last state of a progress bar, without anything that would steer a terminal."""
    last = ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2])
    return CONTROLS.sub("", last)[:LONGEST_LINE]


def remove(container_id: str) -> None:
    """Stop and remove one container of ours, by its id; nothing where it is gone already.

    Raises:
        ServerError: Docker did not do it.
        Unknown: Docker could not be asked.
    """
    container = inspect_one(container_id)
    if container is not None and container.recipe_id is not None:
        end(container)


def stop(recipe_or_name: str) -> Stopped:
    """Stop and remove our container of a recipe; volumes, images and all others stay.

    Raises:
        Refused: A container has that name, but is not ours.
        ServerError: Docker did not stop it.
        Unknown: Docker could not be asked.
    """
    found = matching(recipe_or_name)
    if not found:
        refuse_foreign(recipe_or_name, "it was not stopped")
        return Stopped(
            name=recipe_or_name,
            stopped=False,
            message=f"no container of ours serves {recipe_or_name!r}: nothing to stop",
        )
    for container in found:
        end(container)
    names = ", ".join(container.name for container in found)
    return Stopped(name=names, stopped=True, message=f"stopped and removed {names}")


def end(container: Container) -> None:
    """Stop a container if it runs, and remove it.

    Raises:
        ServerError: Docker did not do it.
    """
    if not container.ended:
        grace = str(STOP_GRACE_S)
        act("stop", "--time", grace, container.id, timeout_s=STOP_GRACE_S + 60.0)
    act("rm", container.id)


def act(*args: str, timeout_s: float = 60.0) -> None:
    """Do something to a container that may already be gone.

    Raises:
        ServerError: Docker did not do it.
        Unknown: Docker could not be asked.
    """
    answer = docker(*args, timeout_s=timeout_s)
    if not answer.ok and not is_gone(answer):
        said = explain(answer)
        if said.code in UNREACHABLE:
            raise unknown(answer)
        raise ServerError(said.message, code=said.code, repair=said.repair)


def restart_token(name: str) -> str | None:
    """Return a word that changes when a container is started again.

    Returns:
        None where there is no such container, or Docker could not be asked.
    """
    try:
        container = inspect_one(name)
    except Unknown:
        return None
    if container is None:
        return None
    return f"{container.id} {container.started_at} {container.restarts}"


def publisher_of(port: int) -> str | None:
    """Name the running container of any owner that publishes a port; None: none, or unknown."""
    answer = docker("ps", "--filter", f"publish={port}", "--format", "{{.Names}}")
    names = answer.stdout.split() if answer.ok else []
    return names[0] if names else None


def foreign_holder(recipe_id: str) -> str | None:
    """Describe the container that has a recipe's name and is not ours; None: none, or unknown."""
    try:
        found = inspect_one(container_name(recipe_id))
    except Unknown:
        return None
    if found is None or found.recipe_id is not None:
        return None
    return f"{found.name} ({found.image}, {found.state})"


def refuse_foreign(name: str, consequence: str) -> None:
    """Refuse a name that somebody else's container has.

    Raises:
        Refused: With the container's own name and image.
    """
    for wanted in dict.fromkeys((name, container_name(recipe_of(name)))):
        container = inspect_one(wanted)
        if container is not None and container.recipe_id is None:
            raise Refused(
                f"the container {container.name} ({container.image}, {container.state}) does not "
                f"carry our label, so {consequence}",
                code="not_ours",
                repair=f"look at it yourself: docker inspect {container.name}",
            )


def matching(recipe_or_name: str) -> tuple[Container, ...]:
    """Find our containers of a recipe or with a name, running ones first."""
    wanted = recipe_of(recipe_or_name)
    found = [c for c in ours() if wanted in (c.recipe_id, c.name)]
    return tuple(sorted(found, key=lambda c: c.ended))


def recipe_of(reference: str) -> str:
    """Return the id that a recipe file has by its name; another word stays as it is."""
    return PurePath(reference).stem if reference.endswith((".yaml", ".yml")) else reference


def ours() -> tuple[Container, ...]:
    """Return all containers that carry our label, the newest first.

    Raises:
        Unknown: Docker could not be asked.
    """
    answer = docker(
        "ps", "--all", "--no-trunc", "--filter", f"label={LABEL}", "--format", "{{.ID}}"
    )
    if not answer.ok:
        raise unknown(answer)
    ids = answer.stdout.split()
    found = inspect(*ids) if ids else ()
    return tuple(container for container in found if container.recipe_id is not None)
