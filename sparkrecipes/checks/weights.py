"""Checks of the weights: are they here, whole, at a known revision, and is there room."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, gb, ok, unknown, warning
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.machine import DiskSpace
from sparkrecipes.schema.recipe import WeightsSource
from sparkrecipes.weights_cache import CachedRepo

PULL_FACTOR = 3.4
"""Room that a pull may take, as a multiple of what is transferred: the layers, then unpacked.

About 12 GB of vllm/vllm-openai unpack to 28.6 GB: a factor of 2.4, beside the layers themselves.
Source: https://github.com/vllm-project/vllm/issues/27154 and
https://github.com/vllm-project/vllm/pull/22377
"""

Need = tuple[int, int | None]
"""Bytes that a place must have free: low and high bound; the latter is None where not known."""

NOTHING: Need = (0, 0)
UNBOUNDED: Need = (0, None)


def check_weights(facts: CheckFacts) -> Iterator[Finding]:
    """Weights and drafter should be in the cache before a start; missing ones can be fetched."""
    recipe = facts.recipe
    if recipe.weights is None:
        yield ok("weights", f"{facts.engine.title} fetches its own weights at the first start")
    else:
        yield from _present("weights", recipe.weights, facts.weights, recipe.id)
    if recipe.drafter is not None:
        yield from _present("drafter", recipe.drafter, facts.drafter, recipe.id)


def check_weights_pinned(facts: CheckFacts) -> Iterator[Finding]:
    """A pinned commit is what is fetched and run; whether its branch moved since is told."""
    for source in (facts.recipe.weights, facts.recipe.drafter):
        if source is None or source.revision is None:
            continue
        now = facts.heads.get(source.repo)
        if now == source.revision:
            yield ok("weights_pinned", f"{source.repo}: {now} is pinned and is still main")
        elif now:
            yield warning(
                "weights_pinned",
                f"the branch moved: main of {source.repo} is {now} by now, and {source.revision} "
                "is pinned (that is what runs)",
                f"keep the pin, or take what it is now: sparkrecipes pin {facts.recipe.id}",
            )
        else:
            why = "offline" if facts.offline else "the Hub gave no answer"
            yield unknown(
                "weights_pinned",
                f"{source.repo}: {source.revision} is pinned; whether main moved is not known: "
                f"{why}",
                f"ask: sparkrecipes pin {facts.recipe.id} --check",
            )


def check_hub(facts: CheckFacts) -> Iterator[Finding]:
    """What the Hub itself says of target and drafter, where it was asked: the download's plan."""
    problem = facts.hub_problem
    if problem is None:
        if facts.download_bytes is not None:
            amount = f"{gb(facts.download_bytes)} to fetch" if facts.download_bytes else "all here"
            yield ok("hub", f"target and drafter can be had: {amount}")
    elif problem.known:
        yield blocker("hub", problem.message, problem.repair)
    else:
        message = f"what is still to be fetched is not known: {problem.message}"
        yield unknown("hub", message, problem.repair)


def check_gated(facts: CheckFacts) -> Iterator[Finding]:
    """A gated repository is only fetched with a token of an account that accepted its licence.

    Where the Hub itself has answered, ``hub`` says whether it gives the files.
    """
    source = facts.recipe.weights
    here = facts.weights is not None and facts.weights.complete is not False
    if source is None or here or facts.gated is False or facts.hub_token:
        return
    if facts.download_bytes is not None or (facts.hub_problem and facts.hub_problem.known):
        return
    repair = (
        f"accept the licence at https://huggingface.co/{source.repo}, then: hf auth login "
        "(or export HF_TOKEN=...)"
    )
    if facts.gated:
        message = f"{source.repo} is gated, and there is no token (HF_TOKEN or hf auth login)"
        yield blocker("gated", message, repair)
    else:
        message = f"whether {source.repo} is gated is not known, and there is no token"
        yield unknown("gated", message, f"if the download is refused: {repair}")


def check_disk(facts: CheckFacts) -> Iterator[Finding]:
    """There must be room for what is still to be fetched: weights, and the image in Docker."""
    disks = {disk.what: disk for disk in facts.host.disks}
    weights, docker = disks.get("weights"), disks.get("docker")
    own_need, pull_need = _weights_need(facts), _image_need(facts)
    if facts.recipe.weights is None:
        own_need, pull_need = NOTHING, _sum(own_need, pull_need)
    if weights and docker and _same_disk(weights, docker):
        yield _room(weights, "weights and image", _sum(own_need, pull_need), _ask_sizes(facts))
        return
    if weights:
        yield _room(weights, "weights", own_need, _ask_sizes(facts))
    if docker:
        yield _room(docker, "image", pull_need, _ask_sizes(facts))


def _ask_sizes(facts: CheckFacts) -> str:
    """Say how a size that nobody knows is found out: of the image, of the weights, or of both."""
    again = "with a network and without --offline, " if facts.offline else ""
    asks = []
    if _image_need(facts)[1] is None:
        asks.append(f"sparkrecipes image {facts.recipe.image.reference}")
    if _weights_need(facts)[1] is None:
        asks.append(f"sparkrecipes check {facts.recipe.id}")
    return f"{again}ask for the size: {'; '.join(asks)}"


def _present(
    check: str, source: WeightsSource, cached: CachedRepo | None, recipe_id: str
) -> Iterator[Finding]:
    fetch = f"sparkrecipes download {recipe_id}"
    if cached is None:
        yield warning(check, f"{source.repo} is not here yet", fetch)
    elif cached.complete is False:
        what = f": {'; '.join(cached.problems[:3])}" if cached.problems else ""
        yield warning(check, f"{source.repo} is here, but not complete{what}", fetch)
    elif cached.complete is None:
        message = f"{source.repo} is here; nothing here proves that it is complete"
        yield warning(check, message, f"verify it: {fetch}")
    else:
        yield ok(check, f"{source.repo} is here, complete ({gb(cached.total_bytes)})")
    yield _revision(check, source, cached, fetch)


def _revision(check: str, source: WeightsSource, cached: CachedRepo | None, fetch: str) -> Finding:
    name = f"{check}_revision"
    if source.revision is None:
        commit = cached.revision if cached else "(the commit that the download prints)"
        return warning(
            name,
            f"the recipe pins no revision of {source.repo}: another day it may be other weights",
            f"put it into the recipe: revision: {commit}",
        )
    if cached is not None and cached.revision != source.revision:
        message = f"{source.repo} is here at {cached.revision}, not at {source.revision}"
        return warning(name, message, fetch)
    return ok(name, f"{source.repo} is pinned to {source.revision}")


def _weights_need(facts: CheckFacts) -> Need:
    """Bound what is still to be fetched, by the Hub's count or else by the estimate."""
    if facts.download_bytes is not None:
        return facts.download_bytes, facts.download_bytes
    need = _missing(facts.estimate.bounds.get("weights_bytes"), facts.weights)
    if facts.recipe.drafter is not None:
        drafter = _missing(facts.estimate.bounds.get("drafter_bytes"), facts.drafter)
        need = _sum(need, drafter)
    return need


def _missing(bounds: tuple[int, int] | None, cached: CachedRepo | None) -> Need:
    if cached is not None and cached.complete is not False:
        return NOTHING
    if bounds is None:
        return UNBOUNDED
    have = cached.total_bytes if cached else 0
    return max(0, bounds[0] - have), max(0, bounds[1] - have)


def _image_need(facts: CheckFacts) -> Need:
    if facts.image_is_here:
        return NOTHING
    size = facts.image.compressed_bytes if facts.image else None
    return UNBOUNDED if size is None else (size, round(size * PULL_FACTOR))


def _sum(one: Need, other: Need) -> Need:
    high = None if one[1] is None or other[1] is None else one[1] + other[1]
    return one[0] + other[0], high


def _same_disk(one: DiskSpace, other: DiskSpace) -> bool:
    """Guess by size and free room, to the byte, that two places are one file system."""
    sizes = (one.total_bytes, one.free_bytes)
    return None not in sizes and sizes == (other.total_bytes, other.free_bytes)


def _room(disk: DiskSpace, what: str, need: Need, how_to_size: str) -> Finding:
    other = "use another disk: export HF_HOME=..." if disk.what == "weights" else "docker system df"
    repair = f"make room at {disk.path} ({other})"
    if disk.free_bytes is None:
        return unknown("disk", f"the room at {disk.path} could not be seen", f"df -h {disk.path}")
    free = f"{gb(disk.free_bytes)} free at {disk.path}"
    low, high = need
    if high is None:
        amount = f"at least {gb(low)}" if low else "an unknown amount"
    else:
        amount = gb(high) if low == high else f"{gb(low).removesuffix(' GB')} to {gb(high)}"
    if high == 0:
        return ok("disk", f"{free}; nothing is left to fetch for {what}")
    message = f"{free}; still to come for {what}: {amount}"
    if low > disk.free_bytes:
        return blocker("disk", message, repair)
    if high is None:
        return unknown("disk", message, how_to_size)
    if high > disk.free_bytes:
        return warning("disk", f"{message}, which may be too much", repair)
    return ok("disk", message)
