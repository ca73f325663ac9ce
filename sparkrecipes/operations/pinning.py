"""Pins: what a recipe's image tag and its weights' branch stand for, kept, obeyed and compared."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkrecipes import downloads
from sparkrecipes.catalog import Catalog, lock_path
from sparkrecipes.errors import SparkRecipesError, Unknown
from sparkrecipes.operations.gathering import inspect_image, within
from sparkrecipes.operations.lock_text import lock_text
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.lock import LockedImage, LockedWeights, LockFile, Pin, PinReport
from sparkrecipes.schema.recipe import Recipe, WeightsSource

HUB_TIMEOUT_S = 25.0
WORST = ("unknown", "unpinned", "moved", "gone", "same", "pinned", "none")
"""States of pins; the first that is there decides what is said of all."""


def pin_recipe(
    recipe: str,
    *,
    check: bool = False,
    output: Path | str | None = None,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
) -> PinReport:
    """Resolve a recipe's tag to a digest and its repositories to commits, and keep them in a lock.

    ``download``, ``launch``, ``install``, ``command`` and ``check`` obey the lock: what it pins is
    what they fetch and run. What the recipe pins itself stays as it is.

    Args:
        recipe: A recipe id or file.
        check: True writes nothing: what is pinned is compared with what the names stand for now.
        output: Where to write the lock; None: ``locks/<id>.yaml`` of the user's catalog folder (or
            of the catalog that was named), or ``<name>.lock.yaml`` beside a recipe's own file.
        catalog: Where recipes come from.
        machine: The target, whose platform decides which manifest is meant.
        offline: True asks no network; then nothing can be resolved.

    Raises:
        UnknownId: No recipe has that id.
        Unknown: A registry or the Hub gave no answer: then nothing is written.
        SparkRecipesError: The image or a repository is not there, or the lock cannot be written.
    """
    space = open_workspace(catalog, machine, offline=offline)
    path = lock_path(recipe, space.catalog)
    if check:
        pinned = space.catalog.recipe(recipe)
        return report(pinned, path if path.exists() else None, compared(space, pinned))
    own = space.catalog.unlocked(recipe)
    lock, pins = resolved(space, own)
    target = Path(output) if output else path
    write(target, lock_text(own.id, lock))
    return report(own, target, pins)


def resolved(space: Workspace, recipe: Recipe) -> tuple[LockFile, tuple[Pin, ...]]:
    """Ask what a recipe's names stand for.

    Raises:
        Unknown: Somebody gave no answer.
        SparkRecipesError: Something is not there.
    """
    with ThreadPoolExecutor(max_workers=3) as pool:
        image = pool.submit(locked_image, space, recipe)
        weights = pool.submit(locked_weights, space, recipe.id, recipe.weights)
        drafter = pool.submit(locked_weights, space, recipe.id, recipe.drafter)
        lock = LockFile(
            resolved_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
            image=image.result(),
            weights=weights.result(),
            drafter=drafter.result(),
        )
    pins = [image_pin(recipe, lock.image)]
    for what, source in downloads.sources(recipe):
        found = lock.weights if what == "weights" else lock.drafter
        commit = found.revision if found else None
        pins.append(
            Pin(
                what=what,
                name=source.repo,
                state="pinned" if commit else "none",
                pinned=commit or source.revision,
                now=commit,
                message=f"main is {commit} now" if commit else "the recipe pins it itself",
            )
        )
    return lock, tuple(pins)


def image_pin(recipe: Recipe, found: LockedImage | None) -> Pin:
    """Say what the image was pinned to."""
    message = "the recipe pins it itself"
    if recipe.image.local_build:
        message = "no registry has it: it is built on this host, and has no digest to pin"
    return Pin(
        what="image",
        name=recipe.image.reference,
        state="pinned" if found else "none",
        pinned=found.digest if found else recipe.image.digest,
        now=found.digest if found else None,
        message=f"the manifest for {found.platform}" if found else message,
    )


def locked_image(space: Workspace, recipe: Recipe) -> LockedImage | None:
    """Ask the registry for the digest of an image's name; None where there is nothing to pin.

    Raises:
        Unknown: It gave no answer.
        SparkRecipesError: It has no such image for the platform.
    """
    if recipe.image.local_build or recipe.image.digest:
        return None
    seen = inspect_image(space, recipe.image.reference)
    if seen.digest is None or not seen.platform_ok:
        kind = SparkRecipesError if seen.platform_ok is False or gone(seen) else Unknown
        repair = seen.repair or f"ask again: sparkrecipes image {seen.ref}"
        raise kind(f"{seen.ref}: {seen.reason}", code="image_not_resolved", repair=repair)
    return LockedImage(
        reference=recipe.image.reference,
        digest=seen.digest,
        index_digest=seen.index_digest,
        platform=seen.platform,
    )


def locked_weights(
    space: Workspace, recipe_id: str, source: WeightsSource | None
) -> LockedWeights | None:
    """Ask the Hub for the commit of ``main``; None where there is nothing to pin.

    Raises:
        Unknown: It gave no answer.
        DownloadFailed: It has no such repository.
    """
    if source is None or source.revision:
        return None
    return LockedWeights(repo=source.repo, revision=head(space, recipe_id, source.repo))


def head(space: Workspace, recipe_id: str, repo: str) -> str:
    """Ask the Hub which commit a repository's main branch is.

    Raises:
        Unknown: It may not be asked, or gave no answer.
        DownloadFailed: It has no such repository.
    """
    if space.offline or downloads.hub_is_offline():
        raise Unknown(
            f"which commit {repo} is at was not asked: offline",
            code="offline",
            repair=f"run without --offline: sparkrecipes pin {recipe_id}",
        )
    return within(HUB_TIMEOUT_S, lambda: downloads.commit_of(recipe_id, repo))


def compared(space: Workspace, recipe: Recipe) -> tuple[Pin, ...]:
    """Compare what is pinned with what the names stand for now."""
    with ThreadPoolExecutor(max_workers=3) as pool:
        image = pool.submit(compared_image, space, recipe)
        sources = downloads.sources(recipe)
        repos = [pool.submit(compared_repo, space, recipe.id, what, s) for what, s in sources]
        return (image.result(), *(repo.result() for repo in repos))


def compared_image(space: Workspace, recipe: Recipe) -> Pin:
    """Compare an image's digest with what its tag is now."""
    image = recipe.image
    if image.local_build:
        return image_pin(recipe, None)
    seen = inspect_image(space, image.reference)
    now = seen.digest if seen.platform_ok else None
    again = f"to take what it is now: sparkrecipes pin {recipe.id}"
    state, message, repair = "same", f"{image.reference} is still that digest", ""
    if image.digest is None:
        state, message, repair = "unpinned", "the recipe names only a tag", pin_it(recipe)
    elif gone(seen):
        state = "gone"
        message, repair = f"the tag is not there any more: {seen.reason}", seen.repair
    elif now is None:
        state, message, repair = "unknown", seen.reason, seen.repair
    elif image.digest not in (now, seen.index_digest):
        state, repair = "moved", again
        message = f"the tag moved: {image.digest} is pinned, {now} is what it is now"
    return Pin.model_validate(
        {
            "what": "image",
            "name": image.reference,
            "state": state,
            "pinned": image.digest,
            "now": now,
            "message": message,
            "repair": repair,
        }
    )


def gone(seen: ImageReport) -> bool:
    """Tell whether a registry says that there is no such image."""
    return seen.state in ("missing", "broken")


def compared_repo(
    space: Workspace, recipe_id: str, what: downloads.Role, source: WeightsSource
) -> Pin:
    """Compare a repository's commit with what its main branch is now."""
    now, state, repair = None, "same", ""
    message = "main is still that commit"
    try:
        now = head(space, recipe_id, source.repo)
    except Unknown as error:
        state, message, repair = "unknown", error.message, error.repair
    except SparkRecipesError as error:
        state, message, repair = "gone", error.message, error.repair
    if source.revision is None:
        state, message = "unpinned", "no commit is pinned"
        repair = f"pin it: sparkrecipes pin {recipe_id}"
    elif now is not None and now != source.revision:
        state = "moved"
        message = f"main moved: {source.revision} is pinned, {now} is what it is now"
        repair = f"to take what it is now: sparkrecipes pin {recipe_id}"
    return Pin.model_validate(
        {
            "what": what,
            "name": source.repo,
            "state": state,
            "pinned": source.revision,
            "now": now,
            "message": message,
            "repair": repair,
        }
    )


def pin_it(recipe: Recipe) -> str:
    """Say how to pin a recipe."""
    return f"pin it: sparkrecipes pin {recipe.id}"


def report(recipe: Recipe, lock: Path | None, pins: tuple[Pin, ...]) -> PinReport:
    """Put the answer together; the worst of the pins decides."""
    worst = next((state for state in WORST if any(p.state == state for p in pins)), "none")
    shown = {"gone": "moved", "none": "same"}.get(worst, worst)
    following = {
        "pinned": f"sparkrecipes check {recipe.id}",
        "same": f"sparkrecipes install {recipe.id}",
        "moved": f"keep it as it is, or take what it is now: sparkrecipes pin {recipe.id}",
        "unpinned": f"sparkrecipes pin {recipe.id}",
        "unknown": f"with a network: sparkrecipes pin {recipe.id} --check",
    }
    return PinReport.model_validate(
        {
            "recipe_id": recipe.id,
            "lock": str(lock) if lock else None,
            "state": shown,
            "pins": pins,
            "next": following[shown],
        }
    )


def write(path: Path, text: str) -> None:
    """Write a lock whole, over an older one.

    Raises:
        SparkRecipesError: It cannot be written.
    """
    partial = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise SparkRecipesError(
            f"{path} cannot be written: {error.strerror}",
            code="not_written",
            repair="name another file with -o",
        ) from None
