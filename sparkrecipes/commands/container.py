"""What is to be run, as plain values: every format is written from this and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sparkrecipes.commands.weights import BindMount, Placed
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe

LABEL = "org.sparkrecipes.recipe"
"""Label of every container that is ours; its value is the recipe's id."""

CATALOG_LABEL = "org.sparkrecipes.catalog"
"""Which catalog the recipe was of: the package's version and a hash of its recipes and engines."""

DIGEST_LABEL = "org.sparkrecipes.image-digest"
"""The image's digest where it was known; the image that is run is named by it as well."""

SETTINGS_LABEL = "org.sparkrecipes.settings"
"""A hash of all that the engine is given, so that what runs can be told from what is asked for."""

ADDED_LABEL = "org.sparkrecipes.added-env"
"""Variables that this tool set beside the recipe's own, by name: an import leaves them out."""

LOG_OPTIONS = {"max-size": "50m", "max-file": "3"}
"""At most 150 MB of log: an engine under load writes without end."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*(@sha256:[0-9a-f]{64})?")
"""Enough to make sure that an image is no option of docker; the registry's rules are stricter."""

KNOWN_SECRETS = frozenset(("HF_TOKEN", "NGC_API_KEY", "VLLM_API_KEY"))


@dataclass(frozen=True)
class Volume:
    """A named volume that the image fills itself.

    Attributes:
        name: Docker's name for it.
        target: Folder inside.
    """

    name: str
    target: str


@dataclass(frozen=True, kw_only=True)
class Container:
    """One container, as every format describes it.

    Attributes:
        title: One line for people.
        name: Its name.
        labels: What marks it as ours, by name.
        gpus: What ``docker run --gpus`` is given, or None without a GPU.
        platform: The one platform that it may run on.
        shm_size: Shared memory, e.g. ``16g`` (GiB), or None for Docker's 64 MB.
        published: ``address:port:container port``.
        env: Plain variables, by name.
        added_env: Those of them that are not the recipe's own.
        secrets: Variables whose value comes from the caller's environment, by name only.
        mounts: Folders mounted read-only.
        volumes: Named volumes.
        image: By digest or by tag.
        local_image: Whether it must be on this host already, and is never pulled.
        arguments: What the engine is given.
    """

    title: str
    name: str
    labels: dict[str, str]
    gpus: str | None
    platform: str
    shm_size: str | None
    published: str
    env: dict[str, str]
    added_env: dict[str, str]
    secrets: tuple[str, ...]
    mounts: tuple[BindMount, ...]
    volumes: tuple[Volume, ...]
    image: str
    local_image: bool
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """What is known where the command is written.

    Attributes:
        image_digest: Digest to run instead of the tag.
        set_env: Names of the variables that are set.
        catalog_version: Which catalog the recipe is of.
        compile_jobs: Kernels that may compile at once; None leaves it to the engine.
    """

    image_digest: str | None
    set_env: frozenset[str]
    catalog_version: str
    compile_jobs: int | None


def container_name(recipe_id: str) -> str:
    """Name the container of a recipe."""
    return f"sparkrecipes-{recipe_id}"


def build(
    recipe: Recipe,
    engine: Engine,
    machine: Machine,
    places: Sequence[Placed],
    arguments: tuple[str, ...],
    published: str,
    known: Known,
) -> Container:
    """Gather what is run.

    Raises:
        CatalogError: A value could smuggle in an option or a secret.
    """
    env = dict(recipe.env)
    if engine.arguments_env:
        env[engine.arguments_env], arguments = shlex.join(arguments), ()
    added = added_env(recipe, engine, known.compile_jobs)
    cache = engine.cache_volume
    image = image_of(recipe, known.image_digest)
    container = Container(
        title=recipe.title,
        name=container_name(recipe.id),
        labels={
            LABEL: recipe.id,
            CATALOG_LABEL: known.catalog_version,
            SETTINGS_LABEL: settings_hash(arguments, env, published),
            **({DIGEST_LABEL: image.partition("@")[2]} if "@" in image else {}),
            **({ADDED_LABEL: ",".join(added)} if added else {}),
        },
        gpus=machine.gpu.docker_gpus if machine.gpu else None,
        platform=machine.platform,
        shm_size=recipe.shm_size,
        published=published,
        env=env | added,
        added_env=added,
        secrets=(*engine.secrets, *(n for n in engine.optional_secrets if n in known.set_env)),
        mounts=tuple(dict.fromkeys(mount for place in places for mount in place.mounts)),
        volumes=(Volume(f"sparkrecipes-{engine.id}-cache", cache),) if cache else (),
        image=image,
        local_image=recipe.image.local_build is not None,
        arguments=arguments,
    )
    refuse_hostile(recipe, container)
    return container


def added_env(recipe: Recipe, engine: Engine, compile_jobs: int | None) -> dict[str, str]:
    """List what is set beside the recipe's own variables: how many kernels may compile at once.

    Without it ninja starts a compiler of up to 8 GiB for each core, beside the loaded weights.
    """
    name = engine.compile_jobs_env
    if name is None or compile_jobs is None or name in recipe.env:
        return {}
    return {name: str(compile_jobs)}


def settings_hash(arguments: Sequence[str], env: dict[str, str], published: str) -> str:
    """Hash what the engine is given: its arguments, the recipe's variables and its address.

    What this tool adds is left out: it decides nothing of what is served, and a container that was
    started without it runs with the same settings.
    """
    text = json.dumps([list(arguments), sorted(env.items()), published])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def image_of(recipe: Recipe, digest: str | None) -> str:
    """Name the image by its digest where one is known; a local build has none."""
    reference = recipe.image.reference
    if digest is None or recipe.image.local_build:
        return reference
    head, slash, last = reference.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"


def refuse_hostile(recipe: Recipe, container: Container) -> None:
    """Refuse values that could mean something else than they say.

    Raises:
        CatalogError: A control character or line break (it would end a line of a unit file, or an
            argument), an image that reads as an option, or a secret written into the recipe.
    """
    texts = {
        "title": container.title,
        **{f"env {name}": value for name, value in container.env.items()},
        **{f"mount {mount.source!r}": mount.source for mount in container.mounts},
        **{f"argument {argument!r}": argument for argument in container.arguments},
    }
    for where, text in texts.items():
        if CONTROL.search(text):
            raise unsafe(recipe.id, f"{where} holds a control character or a line break")
    if not IMAGE.fullmatch(container.image):
        raise unsafe(recipe.id, f"{container.image!r} is no image reference")
    written = [*(set(container.env) & {*container.secrets, *KNOWN_SECRETS}), *keys_in(recipe)]
    if written:
        raise unsafe(recipe.id, f"{written[0]} is written into the recipe, where all can read it")


def keys_in(recipe: Recipe) -> list[str]:
    """Name the flags that carry an API key."""
    return [f for flag in recipe.flags if (f := flag.partition("=")[0]) == "--api-key"]


def unsafe(recipe_id: str, what: str) -> CatalogError:
    """Build the error for a value that no command is made from."""
    return CatalogError(
        f"recipe {recipe_id}: {what}",
        code="unsafe_value",
        repair=f"mend the recipe, then run: sparkrecipes validate {recipe_id}",
    )
