"""Cleaning up after a job that was ended: what it made goes, everything else stays."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.jobs.store import JobFolder
from sparkrecipes.schema.serving import Server


def remove_made(folder: JobFolder) -> list[str]:
    """Stop and remove the container that a job started.

    Before its launch a worker writes down which containers of ours there are; one of its recipe
    that came after that is its own. Weights, images and everybody else's containers stay.

    Returns:
        The names of what was removed.
    """
    record, spec = folder.record(), folder.spec()
    if record.servers_before is None or spec.kind != "install":
        return []
    removed = []
    for server in servers_of(spec.subject):
        if server.container_id not in record.servers_before:
            containers.stop(server.name)
            removed.append(server.name)
    return removed


def servers_of(recipe_id: str) -> list[Server]:
    """List our containers of a recipe; none where Docker cannot be asked."""
    try:
        found = containers.list_servers().servers
    except SparkRecipesError:
        return []
    return [server for server in found if server.recipe_id == recipe_id]
