"""What is asked before anything acts: host, Docker, registry, Hub and cache, all at the same time.

Every question is bounded in time, and one that nobody answers is a fact too: unknown.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from sparkrecipes import containers, downloads, images, weights_cache
from sparkrecipes import machine as hosts
from sparkrecipes.checks import CheckFacts, HubProblem
from sparkrecipes.commands import image_of
from sparkrecipes.errors import SparkRecipesError, Unknown
from sparkrecipes.operations.sizing import fit_recipe
from sparkrecipes.operations.workspace import Workspace
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.recipe import Recipe, WeightsSource
from sparkrecipes.schema.serving import Server

T = TypeVar("T")

DEFAULT_PORT = 8000
LOOPBACK = "127.0.0.1"
REGISTRY_TIMEOUT_S = 20.0
HUB_TIMEOUT_S = 25.0
"""For all that is asked of the Hub together; one request of it has 20 s."""


def inspect_image(space: Workspace, ref: str, timeout_s: float = REGISTRY_TIMEOUT_S) -> ImageReport:
    """Ask the registry, or answer unknown where the network may not be asked."""
    images.parse_reference(ref)
    if space.offline:
        return ImageReport(
            ref=ref,
            state="unknown",
            platform=space.machine.platform,
            platform_ok=None,
            arm64=None,
            platforms=(),
            digest=None,
            compressed_bytes=None,
            reason="the registry was not asked: offline",
            repair=f"run without --offline: sparkrecipes image {ref}",
        )
    return images.inspect(ref, platform=space.machine.platform, timeout_s=timeout_s)


def inspect_recipe_image(
    space: Workspace, recipe: Recipe, timeout_s: float = REGISTRY_TIMEOUT_S
) -> ImageReport:
    """Ask for a recipe's image by the digest that it pins, else by its tag."""
    return inspect_image(space, image_of(recipe, recipe.image.digest), timeout_s)


def gather(
    space: Workspace,
    recipe: Recipe,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    *,
    bind: str = LOOPBACK,
    registry_timeout_s: float = REGISTRY_TIMEOUT_S,
    ask_hub: bool = True,
) -> CheckFacts:
    """Collect, at the same time, what the checks of a recipe look at.

    Args:
        space: The catalog and the target.
        recipe: What is to be started.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host.
        bind: Address that the port is published on.
        registry_timeout_s: For all that is asked of the image's registry.
        ask_hub: Whether the Hub is asked what is still to be fetched.
    """
    with ThreadPoolExecutor(max_workers=8) as pool:
        host = pool.submit(hosts.read_host, space.machine.id)
        live = pool.submit(hosts.live_use) if space.here else None
        image = (
            None
            if recipe.image.local_build
            else pool.submit(inspect_recipe_image, space, recipe, registry_timeout_s)
        )
        tag = None
        if image and recipe.image.digest:
            named = recipe.image.reference
            tag = pool.submit(inspect_image, space, named, registry_timeout_s)
        heads = pool.submit(branch_heads, space, recipe) if ask_hub else None
        hub = pool.submit(hub_facts, space, recipe) if ask_hub else None
        docker = docker_facts(pool, recipe, port, image)
        return CheckFacts(
            recipe=recipe,
            engine=space.catalog.engine(recipe.engine),
            machine=space.machine,
            host=host.result(),
            estimate=fit_recipe(space, recipe, context_tokens, users),
            live=live.result() if live else None,
            image=image.result() if image else None,
            image_tag=tag.result() if tag else None,
            heads=heads.result() if heads else {},
            weights=cached(recipe.weights),
            drafter=cached(recipe.drafter),
            port=port,
            port_free=port_is_free(port, bind),
            does_not_run=space.catalog.does_not_run,
            env_set=frozenset(os.environ),
            hub_token=weights_cache.token_is_set(),
            offline=space.offline,
            gated=is_gated(space, recipe),
            **docker,
            **(hub.result() if hub else {}),
        )


def branch_heads(space: Workspace, recipe: Recipe) -> dict[str, str]:
    """Ask the Hub what commit ``main`` is now, of each repository that is pinned.

    Returns:
        Commits by repository; one that nobody answered for is left out.
    """
    if space.offline or downloads.hub_is_offline():
        return {}
    found = {}
    for _, source in downloads.sources(recipe):
        if source.revision:
            with suppress(SparkRecipesError):
                ask = partial(downloads.commit_of, recipe.id, source.repo)
                found[source.repo] = within(HUB_TIMEOUT_S, ask)
    return found


def docker_facts(
    pool: ThreadPoolExecutor, recipe: Recipe, port: int, seen: Future[ImageReport] | None
) -> dict[str, Any]:
    """Ask Docker for our servers, the image, and who has the port and the name."""
    servers = pool.submit(servers_or_none)
    holder = pool.submit(port_holder, port)
    name = pool.submit(containers.foreign_holder, recipe.id)
    image = image_here(recipe, seen.result() if seen else None)
    asked = servers.result() is not None
    return {
        "servers": servers.result(),
        "local_image": image is not None if asked else None,
        "local_image_platform": image.platform if image else None,
        "local_image_cuda": image.cuda_version if image else None,
        "port_holder": holder.result(),
        "name_holder": name.result(),
    }


def image_here(recipe: Recipe, seen: ImageReport | None) -> containers.LocalImage | None:
    """Find a recipe's image in Docker: by digest where one is known, for a tag may be older."""
    known = (recipe.image.digest, seen and seen.digest, seen and seen.index_digest)
    names = [image_of(recipe, digest) for digest in known if digest]
    looks = (containers.local_image(name) for name in names or [recipe.image.reference])
    return next((image for image in looks if image), None)


def hub_facts(space: Workspace, recipe: Recipe) -> dict[str, Any]:
    """Ask the Hub what is still to be fetched, and whether it may be; the facts of that."""
    if space.offline or recipe.weights is None:
        return {}
    try:
        plan = within(HUB_TIMEOUT_S, lambda: downloads.plan(recipe))
    except SparkRecipesError as err:
        return facts_of_trouble(err)
    return facts_of_plan(plan)


def facts_of_plan(plan: downloads.DownloadPlan | None) -> dict[str, Any]:
    """Return the facts that a plan of the download tells; none without a plan."""
    return {"download_bytes": plan.fetch_bytes} if plan else {}


def facts_of_trouble(err: SparkRecipesError) -> dict[str, Any]:
    """Return the facts of a Hub that refused (exit code 1) or gave no answer (3)."""
    known = err.exit_code != Unknown.exit_code
    return {"hub_problem": HubProblem(err.code, err.message, err.repair, known)}


def within(seconds: float, ask: Callable[[], T]) -> T:
    """Ask in a thread that may be left behind: resolving a name has no time limit of its own.

    Raises:
        Unknown: No answer came in time.
        SparkRecipesError: As the question raises it.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="hub-question", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except TooLate:
        raise Unknown(
            f"the Hub gave no answer within {seconds:g} s",
            code="no_network",
            repair="check the network and HTTPS_PROXY, then ask again",
        ) from None


def is_gated(space: Workspace, recipe: Recipe) -> bool | None:
    """Say whether the Hub wants an accepted licence for a recipe's weights; None: unknown."""
    builds = space.catalog.model(recipe.model).builds
    return next((build.gated for build in builds if build.quant == recipe.quant), None)


def servers_or_none() -> tuple[Server, ...] | None:
    """List our containers, or None where Docker cannot be asked."""
    try:
        return containers.list_servers().servers
    except SparkRecipesError:
        return None


def cached(source: WeightsSource | None) -> weights_cache.CachedRepo | None:
    """Find a repository in the local cache, at the recipe's revision where it names one."""
    return weights_cache.find(source.repo, source.revision) if source else None


def port_holder(port: int) -> str | None:
    """Name who has a port: a container that publishes it, else a process; None: nobody seen."""
    container = containers.publisher_of(port)
    return f"the container {container}" if container else hosts.listener_of(port)


def port_is_free(port: int, host: str = LOOPBACK) -> bool | None:
    """Say whether nothing listens on ``port`` of an address of this host.

    Returns:
        None where nobody could say: a port that only root may open, an address of another host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as err:
            return False if err.errno == errno.EADDRINUSE else None
    return True
