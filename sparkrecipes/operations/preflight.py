"""Before anything acts: whether a recipe can be started here, and the exact command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from sparkrecipes import commands, weights_cache
from sparkrecipes.catalog import Catalog
from sparkrecipes.checks import check
from sparkrecipes.commands.cluster import DEFAULT_NODES
from sparkrecipes.commands.cluster import FORMATS as CLUSTER_FORMATS
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.gathering import (
    DEFAULT_PORT,
    LOOPBACK,
    cached,
    gather,
    inspect_image,
)
from sparkrecipes.operations.sizing import compile_jobs_for, fit_recipe
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace, positive
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.findings import CheckReport
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.recipe import Recipe, WeightsSource
from sparkrecipes.schema.serving import Command


def check_image(
    ref: str,
    *,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
) -> ImageReport:
    """Ask the registry whether an image runs on the machine's platform.

    Args:
        ref: An image reference, or the id of a recipe: then its image.
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no network.

    Raises:
        Misuse: ``ref`` is not an image reference.
    """
    space = open_workspace(catalog, machine, offline=offline)
    if ref in space.catalog.recipes:
        ref = space.catalog.recipe(ref).image.reference
    return inspect_image(space, ref)


def check_recipe(
    recipe: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
) -> CheckReport:
    """Look at all that could stop a recipe here: image, memory, disk, Docker, port, weights.

    Raises:
        UnknownId: No recipe has that id.
    """
    space = open_workspace(catalog, machine, offline=offline)
    return check(gather(space, space.catalog.recipe(recipe), context_tokens, users, port))


PROXIES = ("HTTPS_PROXY", "HTTP_PROXY")
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Launch:
    """A recipe and how it is to be started.

    Attributes:
        recipe: What to start.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host.
        bind: Address to publish the port on.
        force: Start although a check says no.
        gpu_memory_utilization: Fraction of the memory; None: the recipe's, or what these settings
            need.
    """

    recipe: Recipe
    context_tokens: int | None = None
    users: int | None = None
    port: int = DEFAULT_PORT
    bind: str = LOOPBACK
    force: bool = False
    gpu_memory_utilization: float | None = None

    def __post_init__(self) -> None:
        positive("--context", self.context_tokens)
        positive("--users", self.users)
        fraction = self.gpu_memory_utilization
        if fraction is not None and not 0 < fraction <= 1:
            raise Misuse(
                f"a memory fraction of {fraction} is none",
                code="bad_fraction",
                repair="give --gpu-memory-utilization as 0.01 to 1",
            )

    @property
    def context(self) -> int:
        """Longest sequence, in tokens."""
        return self.context_tokens or self.recipe.serving.context_tokens

    @property
    def sequences(self) -> int:
        """Sequences at once."""
        return self.users or self.recipe.serving.users

    @property
    def is_stretched(self) -> bool:
        """Whether the recipe overrides the model's own longest context."""
        return any(flag.startswith("--hf-overrides") for flag in self.recipe.flags)

    @property
    def as_measured(self) -> bool:
        """Whether these are the recipe's own settings."""
        own = self.recipe.serving
        return (self.context, self.sequences) == (own.context_tokens, own.users)


def render_command(
    recipe: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    bind: str = LOOPBACK,
    format: str = "docker",
    gpu_memory_utilization: float | None = None,
    nodes: int | None = None,
    catalog: Catalog | Place = None,
    machine: Place = None,
) -> Command:
    """Show the exact command that starts a recipe; nothing is run.

    For other settings than measured the memory fraction is the larger of the recipe's and the
    smallest that serves them, and a warning says so; ``gpu_memory_utilization`` goes before both.

    Args:
        recipe: A recipe id or file.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host; for ``kubernetes`` the port of the Service.
        bind: Address to listen on.
        format: ``docker``, ``compose``, ``systemd``, ``sparkrun`` or ``kubernetes``.
        gpu_memory_utilization: Fraction of the memory; None: the recipe's, or what serves it.
        nodes: How many machines, for the last two; None: two for sparkrun, one for kubernetes.
        catalog: Where recipes come from.
        machine: The target.

    Raises:
        UnknownId: No recipe has that id.
        Misuse: A port, address or format that cannot be.
    """
    space = open_workspace(catalog, machine)
    wanted = Launch(
        space.catalog.recipe(recipe),
        context_tokens,
        users,
        port,
        bind,
        gpu_memory_utilization=gpu_memory_utilization,
    )
    command = command_for(space, wanted, format=format, nodes=nodes)
    if format in CLUSTER_FORMATS and (nodes or DEFAULT_NODES[format]) > 1:
        warned = (*incidents(space), *command.warnings)
        return command.model_copy(update={"warnings": warned})
    return command


def incidents(space: Workspace) -> tuple[str, ...]:
    """Tell what is known to have gone wrong on several machines."""
    found = (entry for entry in space.catalog.does_not_run if entry.kind == "cluster")
    return tuple(
        f"known not to run: {entry.title}: {entry.why}"
        + (f" Instead: {entry.remedy}" if entry.remedy else "")
        for entry in found
    )


def weights_room(space: Workspace, wanted: Launch) -> int | None:
    """Return the room that target and drafter take at most; None where nobody knows."""
    estimate = fit_recipe(space, wanted.recipe, wanted.context_tokens, wanted.users)
    bounds = [estimate.bounds.get(name) for name in ("weights_bytes", "drafter_bytes")]
    return sum(bound[1] for bound in bounds if bound) if bounds[0] else None


def command_for(
    space: Workspace,
    wanted: Launch,
    *,
    format: str = "docker",
    image_digest: str | None = None,
    nodes: int | None = None,
) -> Command:
    """Render a recipe's command with what is known here: cached weights and a checked digest."""
    recipe = wanted.recipe
    fraction, why = fraction_for(space, wanted)
    command = commands.render(
        recipe,
        space.catalog.engine(recipe.engine),
        space.machine,
        format=format,
        port=wanted.port,
        bind=wanted.bind,
        image_digest=image_digest or recipe.image.digest,
        weights=mounted(recipe.weights),
        drafter=mounted(recipe.drafter),
        cache_root=weights_cache.cache_root(),
        context_tokens=wanted.context,
        users=wanted.sequences,
        gpu_memory_utilization=fraction,
        set_env=frozenset(os.environ),
        catalog_version=space.catalog.version,
        nodes=nodes,
        weights_bytes=weights_room(space, wanted) if format == "kubernetes" else None,
        compile_jobs=compile_jobs_for(space, recipe),
    )
    limit = space.catalog.model(recipe.model).context_tokens
    if wanted.context > limit and not wanted.is_stretched:
        why = (
            *why,
            f"{wanted.context:,} tokens are above the model's {limit:,}: launch refuses it",
        )
    why = (*why, *unreachable_proxies(space.catalog.engine(recipe.engine)))
    return command.model_copy(update={"warnings": (*why, *command.warnings)})


def unreachable_proxies(engine: Engine) -> Iterator[str]:
    """Warn of proxies that the container is given and cannot reach: loopback is its own inside."""
    for name in engine.optional_secrets:
        value = os.environ.get(name, "") if name in PROXIES else ""
        host = urlsplit(value if "//" in value else f"//{value}").hostname
        if host in LOOPBACK_NAMES:
            yield (
                f"{name} leads to {host}, which inside a container is the container: "
                f"{engine.title} could not fetch its weights through it"
            )


def fraction_for(space: Workspace, wanted: Launch) -> tuple[float | None, tuple[str, ...]]:
    """Choose the memory fraction for the settings asked for, and say why it is not the recipe's."""
    own = wanted.recipe.serving.gpu_memory_utilization
    if wanted.gpu_memory_utilization is not None:
        return told_fraction(space, wanted, wanted.gpu_memory_utilization)
    if own is None or wanted.as_measured:
        return own, ()
    estimate = fit_recipe(space, wanted.recipe, wanted.context_tokens, wanted.users)
    needed = estimate.min_gpu_memory_utilization
    settings = f"{wanted.context:,} tokens x {wanted.sequences} users"
    if needed is None:
        return own, (f"no memory fraction is known to serve {settings}: see sparkrecipes fit",)
    if needed <= own:
        return own, ()
    return needed, (
        f"gpu_memory_utilization is {needed} instead of the measured {own}: {settings} need it",
    )


def told_fraction(space: Workspace, wanted: Launch, told: float) -> tuple[float, tuple[str, ...]]:
    """Take the memory fraction that was asked for, and warn where it is less than is needed."""
    estimate = fit_recipe(space, wanted.recipe, wanted.context_tokens, wanted.users)
    needed = estimate.min_gpu_memory_utilization
    if needed is None or needed <= told:
        return told, ()
    settings = f"{wanted.context:,} tokens x {wanted.sequences} users"
    return told, (f"gpu_memory_utilization {told} is less than {settings} need ({needed})",)


def mounted(source: WeightsSource | None) -> commands.MountedWeights | None:
    """Describe a cached repository as the command mounts it."""
    found = cached(source)
    if found is None:
        return None
    return commands.MountedWeights(found.folder, found.revision, found.shared_blobs)
