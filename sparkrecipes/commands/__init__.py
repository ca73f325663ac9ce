"""The exact command that starts a recipe: pure, from validated fields, safe by default."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

from sparkrecipes.commands.addresses import base_url, is_exposed, published_address
from sparkrecipes.commands.arguments import Settings, engine_arguments
from sparkrecipes.commands.cluster import FORMATS as CLUSTER_FORMATS
from sparkrecipes.commands.cluster import ClusterRequest, chosen_nodes, render_cluster
from sparkrecipes.commands.compose import compose_text
from sparkrecipes.commands.container import (
    ADDED_LABEL,
    CATALOG_LABEL,
    DIGEST_LABEL,
    LABEL,
    SETTINGS_LABEL,
    Container,
    Known,
    added_env,
    build,
    container_name,
    image_of,
)
from sparkrecipes.commands.docker import docker_argv, shell_text
from sparkrecipes.commands.systemd import systemd_text
from sparkrecipes.commands.warnings import render_warnings
from sparkrecipes.commands.weights import MountedWeights, placed
from sparkrecipes.errors import Misuse
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Command

__all__ = [
    "ADDED_LABEL",
    "CATALOG_LABEL",
    "DIGEST_LABEL",
    "LABEL",
    "SETTINGS_LABEL",
    "MountedWeights",
    "container_name",
    "image_of",
    "render",
]

Format = Literal["docker", "compose", "systemd"]

WRITERS: dict[Format, Callable[[Container], str]] = {
    "docker": shell_text,
    "compose": compose_text,
    "systemd": systemd_text,
}


def render(
    recipe: Recipe,
    engine: Engine,
    machine: Machine,
    *,
    format: str = "docker",
    port: int = 8000,
    bind: str = "127.0.0.1",
    image_digest: str | None = None,
    weights: MountedWeights | None,
    drafter: MountedWeights | None,
    cache_root: Path,
    context_tokens: int,
    users: int,
    gpu_memory_utilization: float | None,
    set_env: Collection[str] = (),
    catalog_version: str,
    nodes: int | None = None,
    weights_bytes: int | None = None,
    compile_jobs: int | None = None,
) -> Command:
    """Write the command that starts a recipe on a machine; nothing is read and nothing is run.

    Args:
        recipe: What to serve.
        engine: How its settings reach the engine.
        machine: Where it runs.
        format: ``docker``, ``compose`` or ``systemd``, whose ``argv`` is docker's; or ``sparkrun``
            or ``kubernetes``, whose ``argv`` starts what the text describes.
        port: On the host.
        bind: Address of the host that the port is published on.
        image_digest: Digest to run instead of the tag.
        weights: The cached target, or None: not in the cache.
        drafter: The cached drafter, or None.
        cache_root: Where the cache is or will be.
        context_tokens: Longest sequence.
        users: Sequences at once.
        gpu_memory_utilization: Fraction of the memory; None leaves it to the engine.
        set_env: Names of the variables that are set where the command will run.
        catalog_version: Which catalog the recipe is of; a label says so.
        nodes: How many machines; None: one, and two for sparkrun.
        weights_bytes: Room that the weights take at most, for the volume of ``kubernetes``.
        compile_jobs: Kernels that may compile at once, where the recipe does not say; None: open.

    Raises:
        Misuse: A format, port or address that cannot be.
        CatalogError: A value of the recipe that could smuggle in an option or a secret.
    """
    settings = Settings(context_tokens, users, gpu_memory_utilization)
    if format in CLUSTER_FORMATS:
        request = ClusterRequest(
            recipe=recipe,
            engine=engine,
            machine=machine,
            settings=settings,
            image=image_of(recipe, image_digest),
            nodes=chosen_nodes(format, nodes),
            port=port,
            bind=bind,
            weights_bytes=weights_bytes,
            added_env=added_env(recipe, engine, compile_jobs),
        )
        return render_cluster(request, format)
    chosen = chosen_format(format)
    chosen_nodes(chosen, nodes)
    target = placed(recipe.weights, weights, engine, cache_root)
    draft = placed(recipe.drafter, drafter, engine, cache_root)
    places = tuple(place for place in (target, draft) if place)
    arguments = engine_arguments(recipe, engine, target, draft, settings)
    address = f"{published_address(bind, port)}:{engine.container_port}"
    known = Known(image_digest, frozenset(set_env), catalog_version, compile_jobs)
    container = build(recipe, engine, machine, places, arguments, address, known)
    exposed = bind if is_exposed(bind) else None
    warnings = render_warnings(recipe, engine, container, places, exposed, chosen, set_env)
    return command_of(container, chosen, base_url(bind, port), gpu_memory_utilization, warnings)


def command_of(
    container: Container,
    format: Format,
    url: str,
    gpu_memory_utilization: float | None,
    warnings: tuple[str, ...],
) -> Command:
    """Write a container in a format of one machine."""
    return Command(
        argv=docker_argv(container),
        shell=WRITERS[format](container),
        format=format,
        container_name=container.name,
        base_url=url,
        gpu_memory_utilization=gpu_memory_utilization,
        added_env=container.added_env,
        warnings=warnings,
    )


def chosen_format(name: str) -> Format:
    """Return the format of that name.

    Raises:
        Misuse: There is none.
    """
    for known in WRITERS:
        if known == name:
            return known
    formats = (*WRITERS, *CLUSTER_FORMATS)
    raise Misuse(f"there is no format {name!r}", repair=f"use one of: {', '.join(formats)}")
