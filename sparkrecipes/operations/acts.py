"""Acts: what changes the host or takes long. Each checks again just before it acts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sparkrecipes
from sparkrecipes import containers, downloads, standard_round
from sparkrecipes import machine as hosts
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, Refused, RoundFailed
from sparkrecipes.operations.gathering import DEFAULT_PORT, LOOPBACK, inspect_image
from sparkrecipes.operations.preflight import Launch, command_for
from sparkrecipes.operations.results import require_folder, round_path, save_round
from sparkrecipes.operations.round_journal import note_round
from sparkrecipes.operations.servers import require_server
from sparkrecipes.operations.sizing import fit_recipe
from sparkrecipes.operations.workspace import (
    Place,
    Workspace,
    open_catalog_of,
    open_workspace,
    positive,
)
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.round import Round
from sparkrecipes.schema.serving import Command, DownloadReport, Server

Progress = Callable[[str], None]


def download(
    recipe: str,
    *,
    catalog: Catalog | Place = None,
    offline: bool = False,
    verify: bool = False,
    progress: Callable[[downloads.DownloadProgress], None] | None = None,
) -> DownloadReport:
    """Fetch a recipe's weights, target and drafter, and prove that they are complete.

    Args:
        recipe: A recipe id or file.
        catalog: Where recipes come from.
        offline: True asks no network: what is in the cache must be whole.
        verify: True compares the hash of every file as well, which reads all of it.
        progress: Called with how far it is.

    Raises:
        DownloadFailed: With what is missing and the repair.
        Unknown: The Hub could not be asked.
    """
    wanted = open_catalog_of(catalog).recipe(recipe)
    return downloads.download(wanted, offline=offline, verify=verify, progress=progress)


def launch(
    recipe: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    bind: str = LOOPBACK,
    force: bool = False,
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
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no registry: the tag is run, with a warning.

    Raises:
        Refused: It would take the host down, or cannot run here.
        LaunchFailed: Docker did not start it.
    """
    space = open_workspace(catalog, machine, offline=offline)
    wanted = Launch(space.catalog.recipe(recipe), context_tokens, users, port, bind, force)
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
    digest = digest or checked_digest(space, wanted)
    command = command_for(space, wanted, image_digest=digest)
    if not wanted.force:
        refuse_long_context(space, wanted)
        refuse_without_memory(space, wanted, command)
    return containers.launch(command, recipe_id=wanted.recipe.id)


def checked_digest(space: Workspace, wanted: Launch) -> str | None:
    """Ask the registry for the digest to run; None for a local image or offline.

    Raises:
        Refused: The registry says that the image does not run on this machine's platform.
    """
    image = wanted.recipe.image
    if image.local_build or space.offline:
        return None
    seen = inspect_image(space, image.reference)
    if seen.platform_ok is False and not wanted.force:
        raise Refused(seen.reason, code="wrong_platform", repair=seen.repair)
    return seen.digest


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
    need = estimate.total_bounds[0] if estimate.total_bounds else 0
    if command.gpu_memory_utilization and space.machine.gpu:
        need = int(command.gpu_memory_utilization * space.machine.mem_total_bytes)
    if need > live[1]:
        raise Refused(
            f"{recipe.id} takes {need / 2**30:.1f} GiB, and {live[1] / 2**30:.1f} GiB are free",
            code="no_memory_now",
            repair="free memory (see: sparkrecipes status), or start it anyway with --force",
        )


def run_round(
    recipe: str | None = None,
    *,
    base_url: str | None = None,
    model: str | None = None,
    quick: bool = False,
    method: str = "october",
    only: str | None = None,
    users: int | None = None,
    sustained_minutes: float = 15.0,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
    offline: bool = False,
    progress: Progress | None = None,
    simulated: bool = False,
) -> Round:
    """Measure an endpoint with the standard round, and save what was measured as it comes.

    Args:
        recipe: A recipe that runs in a container of ours, or whose figures to compare with.
        base_url: The endpoint, with or without ``/v1``; None: the recipe's container.
        model: The name to ask for; None: the recipe's, or the only one that is served.
        quick: Under two minutes, with fewer repeats.
        method: ``october`` or ``school``.
        only: One part alone: single, concurrent, long or stability.
        users: Users at once; None: as measured, or 4.
        sustained_minutes: Length of the last part of a full round.
        catalog: Where the recipe comes from.
        machine: The target.
        offline: True asks no network: the endpoint must be on this host.
        progress: Called with a line for people.
        simulated: Marks the round as a rehearsal.

    Returns:
        The round; ``saved_to`` names the file that holds it.

    Raises:
        Misuse: Neither a running recipe nor an endpoint was named, or it is not on this host
            although no network may be asked.
        RoundFailed: The endpoint did not answer at all.
    """
    space = open_workspace(catalog, machine, offline=offline)
    positive("--users", users)
    chosen = space.catalog.recipe(recipe) if recipe else None
    server = None if base_url or recipe is None else require_server(recipe, space.catalog)
    url = endpoint_of(space, base_url or (server.base_url if server else None))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    path = round_path(started, chosen.id if chosen else "endpoint")
    require_folder(path)
    trouble = note_round(path)
    if trouble and progress:
        progress(f"warning: {trouble}")
    try:
        data = standard_round.run_round(
            url,
            model or (chosen.served_model_name if chosen else ""),
            method=method,
            quick=quick,
            only=only,
            users=users or (chosen.serving.users if chosen else 4),
            capabilities=chosen.capabilities if chosen else (),
            api_key=os.environ.get("VLLM_API_KEY") or None,
            recipe_id=chosen.id if chosen else None,
            simulated=simulated,
            tool_version=sparkrecipes.__version__,
            restart_probe=(lambda: containers.restart_token(server.name)) if server else None,
            progress=progress,
            save=lambda partial: save_round(path, with_machine(partial, space)),
            sustained_minutes=sustained_minutes,
        )
    except ValueError as err:
        raise Misuse(str(err), repair="run: sparkrecipes round --help") from err
    data = with_machine(data, space)
    note_round(path, data)
    return read_result(data).model_copy(update={"saved_to": str(path)})


def endpoint_of(space: Workspace, url: str | None) -> str:
    """Return the endpoint to measure.

    Raises:
        Misuse: There is none, it cannot be used, or no network may be asked and it is elsewhere.
    """
    if url is None:
        raise Misuse(
            "nothing to measure: no running recipe and no endpoint was named",
            repair="run: sparkrecipes round RECIPE, or: sparkrecipes round --base-url URL",
        )
    try:
        found = standard_round.Endpoint.parse(url)
    except ValueError as err:
        raise Misuse(str(err), repair="run: sparkrecipes round --help") from err
    if space.offline and not found.local:
        raise Misuse(
            f"{found.url} is not on this host, and --offline asks no network",
            code="offline",
            repair="leave --offline out, or measure on the host itself: 127.0.0.1",
        )
    return url


def with_machine(data: dict[str, Any], space: Workspace) -> dict[str, Any]:
    """Add the machine that was measured on, where this host is it."""
    if not space.here:
        return data
    seen = {"id": space.machine.id, "mem_total_bytes": space.machine.mem_total_bytes}
    return {**data, "machine": seen}


def read_result(data: dict[str, Any]) -> Round:
    """Turn the client's JSON into a round.

    Raises:
        RoundFailed: No request succeeded, so that there is nothing to show.
    """
    round_ = Round.model_validate_json(json.dumps(data))
    asked, failed = round_.stability.requests, round_.stability.failed
    if asked and failed == asked:
        raise RoundFailed(
            f"every request to {round_.server.base_url} failed: {round_.stability.errors[0]}",
            repair="is the server up and the model's name right? run: sparkrecipes status",
        )
    return round_
