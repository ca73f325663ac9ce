"""What a person or an agent should know before the command runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sparkrecipes.commands.container import Container
from sparkrecipes.commands.systemd import SECRETS_FILE
from sparkrecipes.commands.weights import Placed
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe

API_KEY = "VLLM_API_KEY"


def render_warnings(
    recipe: Recipe,
    engine: Engine,
    container: Container,
    places: Sequence[Placed],
    exposed: str | None,
    format: str,
    set_env: Collection[str],
) -> tuple[str, ...]:
    """List what is not pinned, not there, trusted or open.

    Args:
        recipe: What is served.
        engine: How.
        container: What is run.
        places: Target and drafter.
        exposed: The address, where others can reach it; else None.
        format: Where the command is written to.
        set_env: Names of the variables that are set.
    """
    return (
        *weights_warnings(recipe.id, places),
        *image_warnings(recipe, by_digest="@" in container.image),
        *trust_warnings(recipe),
        *exposure_warnings(engine, exposed, set_env),
        *secret_warnings(engine, container, format, set_env),
    )


def weights_warnings(recipe_id: str, places: Sequence[Placed]) -> Iterator[str]:
    """Say which repositories are not in the cache, and which are not pinned."""
    for place in places:
        if not place.cached:
            yield f"{place.repo} is not in the cache: run sparkrecipes download {recipe_id}"
        elif not place.pinned:
            yield (
                f"the recipe pins no revision of {place.repo}: {place.revision} is the one in "
                "the cache"
            )


def image_warnings(recipe: Recipe, *, by_digest: bool) -> Iterator[str]:
    """Say that a tag may move, or that no registry has the image."""
    image = recipe.image
    if image.local_build:
        yield f"no registry has {image.reference}, it is built here: {image.local_build.how}"
    elif not by_digest:
        yield (
            f"{image.reference} is named by its tag, which may move; launch and install ask for "
            f"its digest and run that (see: sparkrecipes image {image.reference})"
        )


def trust_warnings(recipe: Recipe) -> Iterator[str]:
    """Say whose code would run."""
    if any(flag.partition("=")[0] == "--trust-remote-code" for flag in recipe.flags):
        source = recipe.weights.repo if recipe.weights else "the repository"
        yield f"--trust-remote-code runs Python code of {source} inside the container"


def exposure_warnings(
    engine: Engine, exposed: str | None, set_env: Collection[str]
) -> Iterator[str]:
    """Say who could reach the server, and what guards it."""
    if exposed is None:
        return
    who = f"the port is published on {exposed}: others can reach it, past ufw too, without TLS"
    if API_KEY not in engine.optional_secrets:
        yield f"{who}; {engine.title} asks for no key: put a proxy that does before it"
    elif API_KEY in set_env:
        yield f"{who}; clients must send the key in {API_KEY}"
    else:
        yield f"{who} and without a key: set {API_KEY} first"


def secret_warnings(
    engine: Engine, container: Container, format: str, set_env: Collection[str]
) -> Iterator[str]:
    """Say where variables that are passed by name must be set."""
    if format == "systemd":
        if container.secrets:
            names = " and ".join(container.secrets)
            yield f"put {names} as NAME=value into {SECRETS_FILE} (mode 0600) for the unit"
        return
    for name in engine.secrets:
        if name not in set_env:
            yield f"{name} is not set: the container needs it, export it first"
