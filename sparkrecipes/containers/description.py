"""Containers of any owner, as ``docker inspect`` describes them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from sparkrecipes.commands import CATALOG_LABEL, DIGEST_LABEL, LABEL, SETTINGS_LABEL
from sparkrecipes.containers.docker import Answer, docker, explain
from sparkrecipes.containers.secrecy import without_secrets
from sparkrecipes.errors import Unknown
from sparkrecipes.schema.serving import Server

RECIPE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
STATES = get_args(Server.model_fields["state"].annotation)
NEVER = "0001-01-01T00:00:00Z"
"""What Docker writes for a time that has not come."""


@dataclass(frozen=True)
class Container:
    """A container of any owner, as ``docker inspect`` describes it.

    Attributes:
        id: Its full id.
        name: Its name, without the slash.
        image: The reference that it was started from.
        recipe_id: What our label says; None on a container that is not ours.
        state: Docker's word for its state.
        exit_code: Of the last end; None while it runs or before its first start.
        oom_killed: Whether the kernel killed it for a limit of its own.
        restarts: How often Docker started it again.
        started_at: Last start, ISO 8601; None before the first.
        base_url: Where its published port is reached from this host.
        labels: All its labels, by name.
        created_at: When it was made, ISO 8601.
        error: Why Docker could not start it, in Docker's words; an empty string where it could.
    """

    id: str
    name: str
    image: str
    recipe_id: str | None
    state: str
    exit_code: int | None
    oom_killed: bool
    restarts: int
    started_at: str | None
    base_url: str | None
    labels: dict[str, str]
    created_at: str
    error: str

    @property
    def ended(self) -> bool:
        """Whether nothing runs in it."""
        return self.state in ("created", "exited", "dead")

    def made_after(self, moment: datetime) -> bool:
        """Tell whether it was made after a moment; no where Docker does not say when."""
        try:
            return datetime.fromisoformat(self.created_at) > moment
        except (ValueError, TypeError):
            return False

    def server(self) -> Server:
        """Return it as others see it; only of a container of ours."""
        return Server.model_validate(
            {
                "name": self.name,
                "container_id": self.id,
                "recipe_id": self.recipe_id,
                "image": self.image,
                "state": self.state if self.state in STATES else "unknown",
                "exit_code": self.exit_code,
                "base_url": self.base_url,
                "started_at": self.started_at,
                "restarts": self.restarts,
                "image_digest": self.labels.get(DIGEST_LABEL) or None,
                "catalog": self.labels.get(CATALOG_LABEL) or None,
                "settings": self.labels.get(SETTINGS_LABEL) or None,
            }
        )


def inspect_one(name: str) -> Container | None:
    """Look at one container by name or id, of any owner."""
    found = inspect(name)
    return found[0] if found else None


def inspect(*names: str) -> tuple[Container, ...]:
    """Look at containers by name or id; one that is gone is left out.

    Raises:
        Unknown: Docker could not be asked.
    """
    answer = docker("container", "inspect", "--", *names)
    if not answer.ok and not is_gone(answer):
        raise unknown(answer)
    try:
        return tuple(read(item) for item in json.loads(answer.stdout or "[]"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unknown(
            "docker inspect answered something that cannot be read",
            code="docker_unreadable",
            repair="see: docker version",
        ) from None


def is_gone(answer: Answer) -> bool:
    """Tell whether a command failed only because there is no such container any more."""
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    gone = re.compile(r"No such (container|object)|is already in progress")
    return bool(lines) and all(gone.search(line) for line in lines)


def unknown(answer: Answer) -> Unknown:
    """Turn a failed question into an error."""
    said = explain(answer)
    return Unknown(said.message, code=said.code, repair=said.repair)


def read(item: dict[str, Any]) -> Container:
    """Read one object of ``docker container inspect``."""
    state, config = item["State"], item["Config"]
    status = str(state["Status"])
    started = state.get("StartedAt")
    labels = config.get("Labels") or {}
    label = labels.get(LABEL)
    return Container(
        id=item["Id"],
        name=item["Name"].removeprefix("/"),
        image=config["Image"],
        recipe_id=label if label and RECIPE_ID.fullmatch(label) else None,
        state=status,
        exit_code=int(state["ExitCode"]) if status in ("exited", "dead", "restarting") else None,
        oom_killed=bool(state.get("OOMKilled")),
        restarts=int(item.get("RestartCount", 0)),
        started_at=None if started == NEVER else started,
        base_url=published_url(item),
        labels=labels,
        created_at=str(item.get("Created") or ""),
        error=without_secrets(str(state.get("Error") or "")),
    )


def published_url(item: dict[str, Any]) -> str | None:
    """Return where the first published port is reached from this host.

    A port that is bound to every address is reached on the loopback one.
    """
    network = (item.get("NetworkSettings") or {}).get("Ports") or {}
    bound = network or (item.get("HostConfig") or {}).get("PortBindings") or {}
    for port in sorted(bound):
        for binding in bound[port] or ():
            host, number = binding.get("HostIp") or "0.0.0.0", binding.get("HostPort")  # noqa: S104
            if number and number != "0":
                return f"http://{reachable(host)}:{number}"
    return None


def reachable(host: str) -> str:
    """Return an address that clients on this host can use for a bound one."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
