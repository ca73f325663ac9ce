"""The image step of the walk: the image onto this host by its digest, before the weights."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes.commands import image_of
from sparkrecipes.errors import LaunchFailed, Refused
from sparkrecipes.operations.gathering import inspect_recipe_image
from sparkrecipes.operations.preflight import Launch
from sparkrecipes.operations.walk import Walk
from sparkrecipes.operations.workspace import Workspace
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.recipe import Recipe


def pull(walk: Walk, wanted: Launch) -> tuple[str | None, str]:
    """Bring the image to this host and say by what name; also return its digest.

    Offline nothing is pulled: Docker must have the image. A local build is in no registry.

    Raises:
        LaunchFailed: It is not here and cannot be had, or is for another platform.
        Refused: The registry says that it does not run on this machine's platform.
    """
    recipe, platform = wanted.recipe, walk.space.machine.platform
    if recipe.image.local_build or walk.space.offline:
        return recipe.image.digest, use_what_is_here(recipe)
    seen = checked_image(walk.space, wanted)
    digest = recipe.image.digest or seen.digest
    reference = image_of(recipe, digest)
    here = containers.local_image_platform(reference) == platform
    if here and digest is None:
        return None, f"{reference} is here; its registry gave no digest to compare"
    if not here:
        refuse_while_limited(seen, recipe)
    size = f", {seen.compressed_bytes / 1e9:.2f} GB compressed" if seen.compressed_bytes else ""
    walk.say(f"  {reference}{size}")
    pulled = containers.pull_image(
        reference,
        platform,
        recipe_id=recipe.id,
        layers=seen.layers,
        progress=lambda at: walk.count("image", at),
    )
    containers.keep_name(reference, recipe.image.reference)
    walk.kept.append(f"image {reference}")
    moving = "" if digest else " (a tag, which may mean another image tomorrow)"
    return digest, f"{reference}{moving} {'pulled' if pulled else 'was here'}, {platform}"


def checked_image(space: Workspace, wanted: Launch) -> ImageReport:
    """Ask the registry for the image: the digest that the recipe pins, else what its tag is now.

    Raises:
        Refused: The registry says that the image does not run on this machine's platform, or no
            longer has the pinned one.
    """
    seen = inspect_recipe_image(space, wanted.recipe)
    pinned = wanted.recipe.image.digest
    if pinned and seen.state == "missing" and not wanted.force:
        raise Refused(
            f"the image is pinned to {pinned}, and its registry does not have that any more",
            code="pin_gone",
            repair=f"take what the tag is now: sparkrecipes pin {wanted.recipe.id}",
        )
    if seen.platform_ok is False and not wanted.force:
        raise Refused(seen.reason, code="wrong_platform", repair=seen.repair)
    return seen


def use_what_is_here(recipe: Recipe) -> str:
    """Say that the image of this host is used, which no registry is asked for.

    Raises:
        LaunchFailed: It is not here; with how to build or get it.
    """
    reference = image_of(recipe, recipe.image.digest)
    build = recipe.image.local_build
    if containers.local_image_platform(reference) is None:
        online = f"run without --offline: sparkrecipes install {recipe.id}"
        raise LaunchFailed(
            f"this host does not have the image {reference}",
            code="image_not_here",
            repair=build.how if build else online,
        )
    return f"{reference}, built on this host" if build else f"{reference} is here; offline"


def refuse_while_limited(seen: ImageReport, recipe: Recipe) -> None:
    """Say when to come back, where the registry has just answered that it was asked too often.

    Raises:
        LaunchFailed: With the time that the registry names.
    """
    if seen.state == "rate_limited":
        raise LaunchFailed(
            seen.reason,
            code="rate_limited",
            repair=f"{seen.repair}; then run again: sparkrecipes install {recipe.id}",
        )
