"""Checks of the place that a server would take: its port and its name."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, ok, unknown, warning
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.serving import Server

FIRST_OPEN_PORT = 1024
"""Below this Linux lets only root listen, unless a host says otherwise."""


def check_port(facts: CheckFacts) -> Iterator[Finding]:
    """The port must be free before a load of many minutes, not only after it.

    A container can publish a port on which nobody listens (without Docker's userland proxy): both
    are looked at.
    """
    port = facts.port
    if facts.port_free is None and port < FIRST_OPEN_PORT and facts.host.docker.rootless:
        yield blocker(
            "port",
            f"port {port} is for root alone, and so a rootless Docker may not publish it",
            f"choose one above 1023: --port 8000; or: sudo sysctl "
            f"net.ipv4.ip_unprivileged_port_start={port}; where rootlesskit has "
            "CAP_NET_BIND_SERVICE: --force",
        )
    elif server := _own_holder(facts):
        yield blocker(
            "port",
            f"port {port} is taken by our {server.name} ({server.recipe_id})",
            f"sparkrecipes stop {server.recipe_id}, or choose another: --port {_next(port)}",
        )
    elif facts.port_free is None and facts.port_holder is None:
        yield unknown("port", f"whether port {port} is free could not be seen", _who_holds(port))
    elif facts.port_free and facts.port_holder is None:
        yield ok("port", f"port {port} is free, on the host and in Docker")
    else:
        by = f": {facts.port_holder}" if facts.port_holder else ""
        yield blocker(
            "port",
            f"port {port} is taken by something that is not ours{by}",
            f"choose another: --port {_next(port)}; to see who has it: {_who_holds(port)}",
        )


def check_name(facts: CheckFacts) -> Iterator[Finding]:
    """Only one container can have the recipe's name."""
    recipe_id = facts.recipe.id
    if facts.name_holder:
        yield blocker(
            "name",
            f"the name belongs to a container that is not ours: {facts.name_holder}",
            "look at it, and rename or remove it yourself: docker ps --all",
        )
        return
    if facts.servers is None:
        if facts.host.docker.state == "ok":
            message = "whether a server of this recipe exists could not be seen"
            yield unknown("name", message, "see: sparkrecipes status")
        return
    same = [server for server in facts.servers if server.recipe_id == recipe_id]
    running = next((server for server in same if server in facts.running), None)
    stop = f"sparkrecipes stop {recipe_id}"
    if running:
        where = f" at {running.base_url}" if running.base_url else ""
        yield blocker(
            "name",
            f"{running.name} of this recipe is {running.state} already{where}",
            f"use it, or stop it first: {stop}",
        )
    elif same:
        message = f"a container of ours with this name is left over ({same[0].state})"
        yield warning("name", message, f"remove it: {stop}")
    else:
        yield ok("name", "no other server of this recipe exists")


def _own_holder(facts: CheckFacts) -> Server | None:
    end = f":{facts.port}"
    return next((s for s in facts.running if s.base_url and end == _port_of(s.base_url)), None)


def _port_of(base_url: str) -> str:
    return f":{base_url.rstrip('/').removesuffix('/v1').rpartition(':')[2]}"


def _next(port: int) -> int:
    return port + 1 if port < 65535 else 8000


def _who_holds(port: int) -> str:
    return f"docker ps --filter publish={port}; ss -ltnp 'sport = :{port}'"
