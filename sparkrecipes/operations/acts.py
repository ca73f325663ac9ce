"""Acts: what changes the host or takes long. Each checks again just before it acts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

import sparkrecipes
from sparkrecipes import containers, downloads, standard_round
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, RoundFailed
from sparkrecipes.machine import GpuClock
from sparkrecipes.operations.round_keeping import RoundKeeper
from sparkrecipes.operations.servers import require_server
from sparkrecipes.operations.workspace import (
    Place,
    Workspace,
    open_catalog_of,
    open_workspace,
    positive,
)
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.round import Round
from sparkrecipes.schema.serving import DownloadReport

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


def run_round(
    recipe: str | None = None,
    *,
    base_url: str | None = None,
    model: str | None = None,
    quick: bool = False,
    method: str = "october",
    only: str | None = None,
    users: int | Sequence[int] | None = None,
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
        users: Users at once, or several numbers for a curve; None: as measured, or 4; for the
            school's method its ladder.
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
    for number in [users] if isinstance(users, int) else users or ():
        positive("--users", number)
    chosen = space.catalog.recipe(recipe) if recipe else None
    usual = None if method == "school" else chosen.serving.users if chosen else 4
    server = None if base_url or recipe is None else require_server(recipe, space.catalog)
    endpoint = endpoint_of(space, base_url or (server.base_url if server else None))
    gpu = GpuClock(here=endpoint.local and not simulated)
    keeper = RoundKeeper.of(chosen.id if chosen else "endpoint", space, gpu, progress)
    try:
        with gpu:
            data = standard_round.run_round(
                endpoint.url,
                model or (chosen.served_model_name if chosen else ""),
                method=method,
                quick=quick,
                only=only,
                users=users or usual,
                capabilities=chosen.capabilities if chosen else (),
                api_key=os.environ.get("VLLM_API_KEY") or None,
                recipe_id=chosen.id if chosen else None,
                simulated=simulated,
                tool_version=sparkrecipes.__version__,
                restart_probe=(lambda: containers.restart_token(server.name)) if server else None,
                progress=progress,
                save=keeper.save,
                sustained_minutes=sustained_minutes,
            )
    except ValueError as err:
        raise Misuse(str(err), repair="run: sparkrecipes round --help") from err
    return read_result(keeper.end(data)).model_copy(update={"saved_to": str(keeper.path)})


def endpoint_of(space: Workspace, url: str | None) -> standard_round.Endpoint:
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
    return found


def read_result(data: dict[str, Any]) -> Round:
    """Turn the client's JSON into a round.

    Raises:
        RoundFailed: No request succeeded, so that there is nothing to show, or the server said
            what cannot be.
    """
    try:
        round_ = Round.model_validate_json(json.dumps(data))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RoundFailed(
            f"the server's figures make no round: {where}: {first['msg']}",
            repair="look at its answers: is it the server that you meant?",
        ) from err
    asked, failed = round_.stability.requests, round_.stability.failed
    if asked and failed == asked:
        raise RoundFailed(
            f"every request to {round_.server.base_url} failed: {round_.stability.errors[0]}",
            repair="is the server up and the model's name right? run: sparkrecipes status",
        )
    return round_
