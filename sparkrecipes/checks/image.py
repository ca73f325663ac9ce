"""Checks of the image: can it be had, for this platform, and is it the one that was measured."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, gb, ok, unknown, warning
from sparkrecipes.images import parse_reference
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.image import ImageReport

SERVE_WORDS = frozenset({"vllm", "serve", "python", "python3", "-m"})
"""Words that start an engine; a recipe's flags must not repeat them."""


def check_image(facts: CheckFacts) -> Iterator[Finding]:
    """The image must be here, or be pullable for the machine's platform."""
    if facts.image_is_here:
        yield ok("image", f"Docker has {facts.recipe.image.reference} for {facts.machine.platform}")
    elif facts.local_image and facts.local_image_platform:
        yield blocker(
            "image",
            f"Docker has {facts.recipe.image.reference} for {facts.local_image_platform}, and "
            f"{facts.machine_name} needs {facts.machine.platform}",
            f"docker image rm {facts.recipe.image.reference}  (then it is pulled anew)",
        )
    elif facts.recipe.image.local_build:
        yield _local_build(facts)
    elif facts.image is None or (facts.offline and facts.image.state == "unknown"):
        why = "offline" if facts.offline else "its registry was not asked"
        yield unknown(
            "image",
            f"whether {facts.recipe.image.reference} has {facts.machine.platform} is not known: "
            f"{why}",
            f"ask: sparkrecipes image {facts.recipe.image.reference}",
        )
    else:
        yield _from_registry(facts, facts.image)


def check_image_pinned(facts: CheckFacts) -> Iterator[Finding]:
    """A tag can come to mean another image: a digest cannot."""
    image = facts.recipe.image
    if image.local_build:
        return
    tag = facts.image_tag if image.digest else facts.image
    seen = tag.digest if tag else None
    if image.digest and seen and tag and image.digest not in (seen, tag.index_digest):
        yield warning(
            "image_pinned",
            f"the tag moved: {image.reference} is {seen} by now, and {image.digest} is pinned "
            "(that is what runs)",
            f"keep the pin, or take what it is now: sparkrecipes pin {facts.recipe.id}",
        )
    elif image.digest:
        still = "is pinned and is still what the tag is" if seen else "is pinned"
        yield ok("image_pinned", f"{image.digest} {still}")
    elif parse_reference(image.reference).moving:
        yield warning(
            "image_pinned",
            f"the tag of {image.reference} is moved or removed by its publisher",
            f"take a release tag, or pin it: digest: {seen or 'sha256:...'}",
        )
    elif seen:
        message = f"the recipe names only a tag; a start runs the digest that was checked ({seen})"
        yield ok("image_pinned", message)
    else:
        yield warning(
            "image_pinned",
            "the recipe names only a tag, and its digest is not known",
            f"look it up and keep it: sparkrecipes pin {facts.recipe.id}",
        )


def check_entrypoint(facts: CheckFacts) -> Iterator[Finding]:
    """An image that starts ``vllm serve`` must not be told so again.

    Source: https://github.com/vllm-project/vllm/issues/37133
    """
    flags, entrypoint = facts.recipe.flags, facts.image.entrypoint if facts.image else None
    words = [flag for flag in flags[:3] if flag.rpartition("/")[2] in SERVE_WORDS]
    if words:
        yield blocker(
            "entrypoint",
            f"the flags repeat {' '.join(words)}, which the image starts by itself "
            f"({' '.join(entrypoint) if entrypoint else 'its entrypoint'})",
            f"remove {' '.join(words)} from the recipe's flags",
        )
    elif entrypoint and starts_itself(facts.engine) and entrypoint[-1] != "serve":
        yield warning(
            "entrypoint",
            f"the image starts {' '.join(entrypoint)}; the arguments of {facts.engine.title} are "
            "written for: vllm serve",
            "take an image whose entrypoint is vllm serve, or another engine in the recipe",
        )
    elif entrypoint:
        yield ok("entrypoint", f"the image starts {' '.join(entrypoint)}")


def starts_itself(engine: Engine) -> bool:
    """Say whether the arguments are written for an image that starts the server by itself."""
    return engine.model_argument and not engine.command


def _local_build(facts: CheckFacts) -> Finding:
    image = facts.recipe.image
    how = f"{image.local_build.how} ({image.local_build.source})" if image.local_build else ""
    if facts.local_image is None:
        message = f"{image.reference} is built locally; whether it is here could not be seen"
        return unknown(
            "image", message, f"docker image inspect {image.reference}; to have it: {how}"
        )
    return blocker("image", f"no registry has {image.reference}, and it is not here", how)


def _from_registry(facts: CheckFacts, image: ImageReport) -> Finding:
    repair = image.repair or f"ask again: sparkrecipes image {facts.recipe.image.reference}"
    if image.state == "found" and image.platform_ok:
        size = f", {gb(image.compressed_bytes)} to transfer" if image.compressed_bytes else ""
        digest = f", {image.digest}" if image.digest else ""
        return ok("image", f"{image.ref} has {image.platform}{digest}{size}")
    if image.state in ("rate_limited", "no_network", "unknown"):
        return unknown("image", f"{image.ref}: {image.reason}", repair)
    if image.state in ("found", "broken") and image.platform_ok is None:
        return unknown("image", f"{image.ref}: {image.reason}", repair)
    return blocker("image", f"{image.ref}: {image.reason}", repair)
