"""The formats for more than one Spark: what they share, and what is said before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkrecipes.commands.addresses import base_url, is_exposed, published_address
from sparkrecipes.commands.arguments import Settings
from sparkrecipes.commands.container import CONTROL, IMAGE, KNOWN_SECRETS, keys_in, unsafe
from sparkrecipes.commands.kubernetes import NOTES, kubernetes_text, resource_name
from sparkrecipes.commands.pods import is_needed
from sparkrecipes.commands.sparkrun import sparkrun_text
from sparkrecipes.commands.warnings import trust_warnings
from sparkrecipes.errors import Misuse
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Command

FORMATS = ("sparkrun", "kubernetes")
DEFAULT_NODES = {"sparkrun": 2, "kubernetes": 1}
"""sparkrun's format is what a recipe outgrows one Spark with."""

MAX_NODES = 64
"""Far beyond any cluster of Sparks: a typing error is told instead of written."""


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    """What is to run on a cluster.

    Attributes:
        recipe: What to serve.
        engine: How.
        machine: What each node is.
        settings: Context, users and memory fraction.
        image: By its digest where that is known, else by its tag.
        nodes: How many.
        port: Where clients find it.
        bind: Address to listen on.
        weights_bytes: Room that the weights take at most; None where that is not known.
        added_env: Variables beside the recipe's own.
    """

    recipe: Recipe
    engine: Engine
    machine: Machine
    settings: Settings
    image: str
    nodes: int
    port: int
    bind: str
    weights_bytes: int | None
    added_env: dict[str, str]


def chosen_nodes(format: str, nodes: int | None) -> int:
    """Return how many nodes a format is written for.

    Raises:
        Misuse: It is written for one, or the number cannot be.
    """
    if format not in FORMATS:
        if nodes in (None, 1):
            return 1
        raise Misuse(
            f"--format {format} is for one machine",
            code="one_machine",
            repair=f"for {nodes} use --format {' or '.join(FORMATS)}",
        )
    wanted = DEFAULT_NODES[format] if nodes is None else nodes
    if not 1 <= wanted <= MAX_NODES:
        raise Misuse(f"{wanted} nodes cannot be", repair=f"give --nodes from 1 to {MAX_NODES}")
    return wanted


def render_cluster(request: ClusterRequest, format: str) -> Command:
    """Write a recipe for a cluster.

    Raises:
        Misuse: The engine, an address or a port that the format cannot have.
        CatalogError: A value of the recipe that could smuggle in a secret.
    """
    published_address(request.bind, request.port)
    refuse_unsafe(request)
    if format == "sparkrun":
        text = sparkrun_text(request)
        argv: tuple[str, ...] = ("sparkrun", "run", f"./{request.recipe.id}.sparkrun.yaml")
        name, notes = request.recipe.id, sparkrun_notes(request)
    else:
        text = kubernetes_text(request)
        argv = ("kubectl", "apply", "-f", f"{request.recipe.id}.k8s.yaml")
        name, notes = resource_name(request.recipe.id), kubernetes_notes(request)
    return Command.model_validate(
        {
            "argv": argv,
            "shell": text,
            "format": format,
            "container_name": name,
            "base_url": base_url(request.bind, request.port),
            "gpu_memory_utilization": request.settings.gpu_memory_utilization,
            "added_env": request.added_env,
            "warnings": (
                *cluster_notes(request),
                *notes,
                *image_notes(request),
                *trust_warnings(request.recipe),
            ),
        }
    )


def refuse_unsafe(request: ClusterRequest) -> None:
    """Refuse what no command is made from.

    Raises:
        CatalogError: A control character, an image that is none, or a secret in the recipe.
    """
    recipe = request.recipe
    texts = (recipe.title, *recipe.flags, *recipe.env.values())
    if any(CONTROL.search(text) for text in texts):
        raise unsafe(recipe.id, "a value holds a control character or a line break")
    if not IMAGE.fullmatch(request.image):
        raise unsafe(recipe.id, f"{request.image!r} is no image reference")
    written = [*(set(recipe.env) & {*request.engine.secrets, *KNOWN_SECRETS}), *keys_in(recipe)]
    if written:
        raise unsafe(recipe.id, f"{written[0]} is written into the recipe, where all can read it")


def cluster_notes(request: ClusterRequest) -> Iterator[str]:
    """Say what several nodes mean for a recipe of one Spark."""
    if request.nodes > 1:
        yield (
            f"the recipe was made and measured on one Spark; on {request.nodes} nobody measured "
            "it: its figures and its memory estimate do not carry over"
        )
    for role, source in (("weights", request.recipe.weights), ("drafter", request.recipe.drafter)):
        if source and source.revision is None:
            yield (
                f"no revision of the {role} {source.repo} is pinned: each node fetches what main "
                f"is then (sparkrecipes pin {request.recipe.id})"
            )


def image_notes(request: ClusterRequest) -> Iterator[str]:
    """Say that a tag may move, or that each node must have the image."""
    image = request.recipe.image
    if image.local_build:
        yield (
            f"no registry has {image.reference}: each node must have it already "
            f"({image.local_build.how})"
        )
    elif "@" not in request.image:
        yield (
            f"{image.reference} is named by its tag, which may move between two nodes: "
            f"sparkrecipes pin {request.recipe.id}"
        )


def sparkrun_notes(request: ClusterRequest) -> Iterator[str]:
    """Say what sparkrun does with it."""
    yield (
        f"save it as {request.recipe.id}.sparkrun.yaml; check it: sparkrun recipe validate; run "
        "it: sparkrun run FILE --hosts A,B"
    )
    yield "sparkrun gives the container the host's network, which nodes need to find each other"
    if request.nodes > 1:
        yield (
            "without privileges NCCL may not reach RDMA devices and then uses TCP: privileged: "
            "true is yours to decide"
        )
    if is_exposed(request.bind):
        yield (
            f"the server listens on {request.bind}: others can reach it, without TLS and without a "
            "key"
        )


def kubernetes_notes(request: ClusterRequest) -> Iterator[str]:
    """Say what has to be there, and who could reach the server."""
    recipe, name = request.recipe, resource_name(request.recipe.id)
    names = (*request.engine.secrets, *request.engine.optional_secrets)
    needed = [key for key in names if is_needed(request.engine, key)]
    others = ", ".join(("HF_TOKEN", *(key for key in names if key not in needed)))
    if needed:
        yield (
            f"it reads {' and '.join(needed)} (and {others}, if there) from the Secret {name}: "
            f"make it from a file that only you can read: kubectl create secret generic {name} "
            "--from-env-file=FILE"
        )
    yield (
        "the Service is reachable inside the cluster only; from this host: kubectl port-forward "
        f"service/{name} {request.port}:{request.port}"
    )
    if request.nodes > 1:
        yield NOTES["lws"]
    if request.weights_bytes is None and recipe.weights:
        yield "the weights' size is not known: see the storage request of the volume claim"
    if request.image.startswith("nvcr.io/"):
        yield NOTES["nvcr"]
