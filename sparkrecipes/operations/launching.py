"""Launching: start exactly the command that is shown, after a last look at this host."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes import machine as hosts
from sparkrecipes.catalog import Catalog
from sparkrecipes.commands import container_name
from sparkrecipes.errors import Refused
from sparkrecipes.operations.gathering import DEFAULT_PORT, LOOPBACK
from sparkrecipes.operations.image_step import checked_image
from sparkrecipes.operations.preflight import Launch, command_for
from sparkrecipes.operations.sizing import fit_recipe
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace
from sparkrecipes.schema.machine import MemoryUser
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.serving import Command, Server

MOST_NAMED = 4


def launch(
    recipe: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    bind: str = LOOPBACK,
    force: bool = False,
    gpu_memory_utilization: float | None = None,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
) -> Server:
    """Start a recipe's container with exactly the command that ``command`` shows.

    The image's digest is asked for first and that digest is run. Live memory is read again
    immediately before.

    Args:
        recipe: A recipe id or file.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host.
        bind: Address to publish the port on.
        force: Start although memory, context or the image's platform say no.
        gpu_memory_utilization: Fraction of the memory; None: the recipe's, or what these settings
            need.
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no registry: the tag is run, with a warning.

    Raises:
        Refused: It would take the host down, or cannot run here.
        LaunchFailed: Docker did not start it.
    """
    space = open_workspace(catalog, machine, offline=offline)
    found = space.catalog.recipe(recipe)
    wanted = Launch(found, context_tokens, users, port, bind, force, gpu_memory_utilization)
    return launch_in(space, wanted)


def launch_in(space: Workspace, wanted: Launch, digest: str | None = None) -> Server:
    """Start a recipe in an open workspace, after a last look at image, context and memory.

    Args:
        space: The catalog and the target.
        wanted: What to start.
        digest: The image's, where it was asked for just now; None: it is asked for.

    Raises:
        Refused: It would take the host down, or cannot run here.
        LaunchFailed: Docker did not start it.
    """
    if not wanted.force:
        refuse_elsewhere()
    digest = digest or checked_digest(space, wanted)
    command = command_for(space, wanted, image_digest=digest)
    if not wanted.force:
        refuse_long_context(space, wanted)
        refuse_without_memory(space, wanted, command)
    return containers.launch(command, recipe_id=wanted.recipe.id)


def refuse_elsewhere() -> None:
    """Refuse a Docker on another host: it has neither the weights nor the port of this one.

    Raises:
        Refused: Docker runs on another host.
    """
    host = containers.elsewhere()
    if host is not None:
        raise Refused(
            f"DOCKER_HOST or the docker context leads to {host}: the weights of this host cannot "
            "be mounted there, and its memory cannot be seen",
            code="docker_elsewhere",
            repair=f"run sparkrecipes on {host}, or choose this host's Docker: unset DOCKER_HOST; "
            "docker context use default",
        )


def checked_digest(space: Workspace, wanted: Launch) -> str | None:
    """Ask the registry for the digest to run; None for a local image or offline.

    Raises:
        Refused: The registry says that the image does not run on this machine's platform.
    """
    if wanted.recipe.image.local_build or space.offline:
        return None
    return checked_image(space, wanted).digest


def refuse_long_context(space: Workspace, wanted: Launch) -> None:
    """Refuse a context above the model's, unless the recipe stretches it.

    Raises:
        Refused: With the longest context that the model was made for.
    """
    limit = space.catalog.model(wanted.recipe.model).context_tokens
    if wanted.context > limit and not wanted.is_stretched:
        raise Refused(
            f"{wanted.context:,} tokens are above the model's {limit:,}",
            code="context_above_model",
            repair=f"ask for --context {limit} or less",
        )


def refuse_without_memory(space: Workspace, wanted: Launch, command: Command) -> None:
    """Refuse to start what does not fit this machine, or not what is free on it now.

    The engine checks its fraction of the total against free memory when it starts, so that is
    what must be free; without a fraction, what the estimate says.

    Raises:
        Refused: With both figures and what to do.
    """
    recipe = wanted.recipe
    estimate = fit_recipe(space, recipe, wanted.context_tokens, wanted.users)
    if estimate.verdict == "does_not_fit":
        raise Refused(
            f"{recipe.id} does not fit this machine at {estimate.context_tokens:,} tokens x "
            f"{estimate.users} users",
            code="does_not_fit",
            repair=f"see: sparkrecipes fit {recipe.id}",
        )
    live = hosts.live_memory() if space.here else None
    if live is None:
        return
    need = needed_bytes(space, command, estimate)
    if need > live[1]:
        raise no_memory_now(recipe.id, need, live[1])


def needed_bytes(space: Workspace, command: Command, estimate: MemoryEstimate) -> int:
    """Return what must be free when the engine starts: its fraction of all, else the low bound.

    What the host itself holds is in the estimate, and is not free already.
    """
    if command.gpu_memory_utilization and space.machine.gpu:
        return int(command.gpu_memory_utilization * space.machine.mem_total_bytes)
    low = estimate.total_bounds[0] if estimate.total_bounds else 0
    return max(low - estimate.components.host_reserve_bytes, 0)


def no_memory_now(recipe_id: str, need_bytes: int, free_bytes: int) -> Refused:
    """Say what is missing, and who is in the way: containers and GPU processes with their sizes."""
    live = hosts.live_use()
    users = live.users[:MOST_NAMED] if live else ()
    others = ", ".join(f"{named(user)}" for user in users)
    ours = [user.name for user in users if user.name.startswith(container_name(""))]
    stops = "; ".join(f"sparkrecipes stop {name.removeprefix(container_name(''))}" for name in ours)
    return Refused(
        f"{recipe_id} takes {need_bytes / 2**30:.1f} GiB, and {free_bytes / 2**30:.1f} GiB are "
        f"free; in the way: {others or 'no container and no GPU process that could be seen'}",
        code="no_memory_now",
        repair=f"free memory ({stops or 'see: docker ps, ps aux --sort=-rss'}), or start it anyway "
        "with --force",
    )


def named(user: MemoryUser) -> str:
    """Name who holds memory, with its size."""
    held = max(user.host_bytes or 0, user.gpu_bytes or 0)
    size = f"{held / 2**30:.1f} GiB" if held else "an unknown amount"
    kind = "container" if user.kind == "container" else f"GPU process {user.pid}"
    return f"{kind} {user.name} ({size})"
