"""Plans: what an install would do, shown before anything acts and bound to what then runs.

A plan freezes the recipe: its image by the digest that the registry named, its weights by the
commit that the Hub named. The plan's id is the hash of all of it and of its expiry; what a person
was shown is what a worker runs, or nothing.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import ValidationError

from sparkrecipes import downloads
from sparkrecipes.catalog import Catalog
from sparkrecipes.checks import CheckFacts, check
from sparkrecipes.errors import Misuse, Refused, SparkRecipesError
from sparkrecipes.jobs.store import state_root, write_whole
from sparkrecipes.operations.gathering import (
    DEFAULT_PORT,
    facts_of_plan,
    facts_of_trouble,
    gather,
)
from sparkrecipes.operations.preflight import Launch, command_for
from sparkrecipes.operations.walk import STEPS, StepName
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.findings import CheckReport
from sparkrecipes.schema.job import PLAN_ID, InstallPlan, JobSpec, Plan, PlannedStep
from sparkrecipes.schema.recipe import Recipe, WeightsSource
from sparkrecipes.schema.serving import Command

T = TypeVar("T")

VALID_FOR = timedelta(minutes=30)
"""Long enough to ask a person, short enough that the host is still the one that was checked."""

FASTEST_MB_S, SLOWEST_MB_S = 100.0, 20.0
"""Download rates between which the minutes are reckoned: said beside them."""
ROUND_MINUTES = (1.0, 4.0)
"""A quick round of a fast and of a slow recipe."""
LOAD_MINUTES = (2.0, 20.0)
"""Where no load time is published."""
REGISTRY_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Seen:
    """What the world answered while a plan was made.

    Attributes:
        facts: What the checks look at.
        report: What they found.
        weights: What is still to be fetched; None where that is not known.
    """

    facts: CheckFacts
    report: CheckReport
    weights: downloads.DownloadPlan | None


def plan_install(
    recipe_id: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    rehearse: bool = False,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
) -> InstallPlan:
    """Say what an install would do here, and make the token that starts exactly that.

    Args:
        recipe_id: A recipe's id.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host.
        rehearse: True plans the same walk with a simulated server.
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no network.

    Returns:
        The plan; without an id where a blocker stands in the way of a real install.

    Raises:
        Misuse: An unknown recipe, or a value that cannot be.
    """
    space = open_workspace(catalog, machine, offline=offline)
    wanted = Launch(space.catalog.recipe(recipe_id), context_tokens, users, checked_port(port))
    if rehearse and space.catalog.october_row(wanted.recipe) is None:
        raise Misuse(
            f"{recipe_id} has no published timing that a rehearsal could play",
            code="no_published_figures",
            repair="rehearse a measured recipe: sparkrecipes list",
        )
    seen = look(space, wanted, rehearse)
    frozen = frozen_recipe(wanted.recipe, seen)
    command = command_for(space, Launch(frozen, context_tokens, users, port))
    engine = space.catalog.engine(frozen.engine)
    spec = JobSpec(
        kind="rehearse" if rehearse else "install",
        subject=frozen.id,
        recipe=frozen,
        catalog=str(space.catalog.root),
        machine=str(machine) if machine else None,
        offline=offline,
        context_tokens=context_tokens,
        users=users,
        port=port,
        engine_digest=digest_of(engine),
    )
    plan = None
    if rehearse or seen.report.verdict != "blocked":
        plan = new_plan(spec, command, summary(space, wanted, seen, rehearse))
    return shown(space, wanted, seen, command, plan, rehearse)


def checked_port(port: int) -> int:
    """Return a port that can be.

    Raises:
        Misuse: It is none.
    """
    if not 1 <= port <= 65535:
        raise Misuse(f"port {port} is not between 1 and 65535", repair="give port as 1 to 65535")
    return port


def look(space: Workspace, wanted: Launch, rehearse: bool) -> Seen:
    """Check the recipe and ask what is still to be fetched, at the same time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        fetch = pool.submit(attempt, lambda: weights_plan(space, wanted.recipe, rehearse))
        facts = gather(
            space,
            wanted.recipe,
            wanted.context_tokens,
            wanted.users,
            wanted.port,
            registry_timeout_s=REGISTRY_TIMEOUT_S,
            ask_hub=False,
        )
        weights, err = fetch.result()
    facts = replace(facts, **(facts_of_trouble(err) if err else facts_of_plan(weights)))
    return Seen(facts, check(facts), weights)


def attempt(ask: Callable[[], T]) -> tuple[T | None, SparkRecipesError | None]:
    """Ask, and return the answer or our error."""
    try:
        return ask(), None
    except SparkRecipesError as err:
        return None, err


def weights_plan(space: Workspace, recipe: Recipe, rehearse: bool) -> downloads.DownloadPlan | None:
    """Ask the Hub what is still to be fetched; None where nothing may or need be asked."""
    if space.offline or rehearse or recipe.weights is None:
        return None
    return downloads.plan(recipe)


def frozen_recipe(recipe: Recipe, seen: Seen) -> Recipe:
    """Return the recipe with its image by digest and its weights by commit, where known."""
    image = recipe.image
    digest = seen.facts.image.digest if seen.facts.image else None
    if digest and image.local_build is None:
        # The tag stays beside it: what is known not to run is known by tags.
        tagged = image.reference.partition("@")[0]
        image = image.model_copy(update={"reference": f"{tagged}@{digest}", "digest": digest})
    repos = {repo.role: repo.revision for repo in seen.weights.repos} if seen.weights else {}
    return recipe.model_copy(
        update={
            "image": image,
            "weights": pinned(recipe.weights, repos.get("weights")),
            "drafter": pinned(recipe.drafter, repos.get("drafter")),
        }
    )


def pinned(source: WeightsSource | None, revision: str | None) -> WeightsSource | None:
    """Return a source at the commit that the Hub named."""
    if source is None or not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        return source
    return source.model_copy(update={"revision": revision})


def digest_of(engine: Engine) -> str:
    """Hash an engine's file: what arguments are written by."""
    return hashlib.sha256(engine.model_dump_json().encode()).hexdigest()


def summary(space: Workspace, wanted: Launch, seen: Seen, rehearse: bool) -> str:
    """Write what a person is asked, with the GB and the minutes."""
    if rehearse:
        return f"Rehearse {wanted.recipe.id} with a simulated server?"
    low, high, _ = minutes(space, wanted.recipe, seen, rehearse)
    sizes = {"weights": download_gb(seen, rehearse), "image": image_gb(seen, rehearse)}
    fetch = ", ".join(
        f"{what} {'of unknown size' if size is None else f'{size:g} GB'}"
        for what, size in sizes.items()
    )
    return (
        f"Install {wanted.recipe.id} here: download {fetch}; start its container on "
        f"127.0.0.1:{wanted.port}; measure it. About {low:g} to {high:g} minutes."
    )


def new_plan(spec: JobSpec, command: Command, asked: str) -> tuple[str, Plan]:
    """Store a plan under the hash of what it says."""
    now = datetime.now(UTC)
    plan = Plan(
        spec=spec,
        summary=asked,
        command=command.shell,
        expires_at=(now + VALID_FOR).isoformat(timespec="seconds"),
        nonce=secrets.token_hex(16),
    )
    remove_expired(now)
    name = plan_id(plan)
    write_whole(state_root() / "plans" / f"{name}.json", plan)
    return name, plan


def plan_id(plan: Plan) -> str:
    """Hash what will be done and until when."""
    return f"plan-{hashlib.sha256(plan.model_dump_json().encode()).hexdigest()[:40]}"


def load_plan(name: str, *, now: datetime | None = None) -> Plan:
    """Load a plan that is what was shown, and still holds.

    Raises:
        Refused: It is unknown, was altered or has expired.
    """
    again = "run: sparkrecipes install RECIPE again for a new plan"
    if not re.fullmatch(PLAN_ID, name):
        raise Refused(f"{name[:60]!r} is no plan id", code="unknown_plan", repair=again)
    try:
        plan = Plan.model_validate_json((state_root() / "plans" / f"{name}.json").read_bytes())
    except FileNotFoundError:
        raise Refused(f"there is no plan {name}", code="unknown_plan", repair=again) from None
    except (OSError, ValidationError):
        plan = None
    if plan is None or plan_id(plan) != name:
        raise Refused(
            f"{name} is not what was shown: its file was altered", code="altered_plan", repair=again
        )
    if datetime.fromisoformat(plan.expires_at) < (now or datetime.now(UTC)):
        raise Refused(f"{name} expired at {plan.expires_at}", code="expired_plan", repair=again)
    return plan


def remove_expired(now: datetime) -> None:
    """Remove the files of plans that expired a day ago or more."""
    limit = (now - timedelta(days=1)).timestamp()
    for path in (state_root() / "plans").glob("plan-*"):
        if path.stat().st_mtime < limit:
            path.unlink(missing_ok=True)


def shown(
    space: Workspace,
    wanted: Launch,
    seen: Seen,
    command: Command,
    plan: tuple[str, Plan] | None,
    rehearse: bool,
) -> InstallPlan:
    """Put together what a person is to be shown."""
    recipe = wanted.recipe
    findings = seen.report.findings
    by_level = {
        level: [f"{f.check}: {f.message}" for f in findings if f.level == level]
        for level in ("blocker", "unknown", "warning")
    }
    repairs = [f.repair for f in findings if f.level == "blocker" and f.repair]
    low, high, basis = minutes(space, recipe, seen, rehearse)
    reserved = seen.facts.estimate.reservation_bytes or seen.facts.estimate.total_bytes
    return InstallPlan(
        plan_id=plan[0] if plan else None,
        recipe_id=recipe.id,
        rehearse=rehearse,
        verdict=seen.report.verdict,
        context_tokens=wanted.context,
        users=wanted.sequences,
        port=wanted.port,
        steps=steps(recipe, seen, wanted, rehearse),
        download_gb=download_gb(seen, rehearse),
        image_gb=image_gb(seen, rehearse),
        memory_gib=None if reserved is None else round(reserved / 2**30, 1),
        minutes=(low, high),
        minutes_basis=basis,
        command=command.shell,
        blockers=tuple(by_level["blocker"]),
        unknowns=tuple(by_level["unknown"]),
        warnings=tuple(dict.fromkeys([*command.warnings, *by_level["warning"]])),
        expires_at=plan[1].expires_at if plan else None,
        next=what_next(plan[0] if plan else None, repairs, rehearse),
    )


def what_next(name: str | None, repairs: list[str], rehearse: bool) -> str:
    """Say what to do with a plan."""
    if name is None:
        return f"nothing can be started: {repairs[0]}" if repairs else "mend the blockers first"
    if rehearse:
        return f"run: sparkrecipes jobs start {name}"
    return (
        "show the person the recipe, the GB, the minutes and every warning; with their yes run: "
        f"sparkrecipes jobs start {name}"
    )


def download_gb(seen: Seen, rehearse: bool) -> float | None:
    """Return what is still to be fetched, in GB; None where that is not known."""
    if rehearse or not seen.facts.recipe.weights:
        return 0.0
    return round(seen.weights.fetch_bytes / 1e9, 2) if seen.weights else None


def image_gb(seen: Seen, rehearse: bool) -> float | None:
    """Return what the image takes to pull, in GB, compressed; None where that is not known."""
    if rehearse or seen.facts.image_is_here:
        return 0.0
    size = seen.facts.image.compressed_bytes if seen.facts.image else None
    return round(size / 1e9, 2) if size is not None else None


def minutes(
    space: Workspace, recipe: Recipe, seen: Seen, rehearse: bool
) -> tuple[float, float, str]:
    """Reckon how long it takes, in minutes, and say from what."""
    if rehearse:
        return ROUND_MINUTES[0], ROUND_MINUTES[1], "a quick round at the published speed"
    row = space.catalog.october_row(recipe)
    load = row.figures.load_min if row else None
    loading = (load, load) if load else LOAD_MINUTES
    known = [size for size in (download_gb(seen, False), image_gb(seen, False)) if size is not None]
    low = sum(known) * 1000 / FASTEST_MB_S / 60 + loading[0] + ROUND_MINUTES[0]
    high = sum(known) * 1000 / SLOWEST_MB_S / 60 + loading[1] + ROUND_MINUTES[1]
    said = f"load {load:g} min as published" if load else "load 2 to 20 min, not published"
    unknown = "" if len(known) == 2 else ", what is not known left out"
    basis = (
        f"download at {FASTEST_MB_S:.0f} to {SLOWEST_MB_S:.0f} MB/s{unknown}; {said}; "
        f"quick round {ROUND_MINUTES[0]:.0f} to {ROUND_MINUTES[1]:.0f} min"
    )
    return round(low, 1), round(high, 1), basis


def steps(recipe: Recipe, seen: Seen, wanted: Launch, rehearse: bool) -> tuple[PlannedStep, ...]:
    """List the steps of the walk and what each would do here."""
    what = rehearsed_steps(recipe) if rehearse else real_steps(recipe, seen, wanted)
    return tuple(PlannedStep(step=name, what=what[name]) for name in STEPS)


def rehearsed_steps(recipe: Recipe) -> dict[StepName, str]:
    """Say what a rehearsal does in each step."""
    return {
        "check": "look at this host; what blocks is only shown",
        "image": f"say which image would be pulled: {recipe.image.reference}",
        "download": "say which weights would be fetched",
        "launch": "show the command; it is not run",
        "wait": "start a simulated server on a loopback port",
        "round": "measure it; the figures are marked simulated",
        "report": "compare with the published figures",
    }


def real_steps(recipe: Recipe, seen: Seen, wanted: Launch) -> dict[StepName, str]:
    """Say what an install would do in each step, with what is still to be transferred."""
    repos = " and ".join(s.repo for s in (recipe.weights, recipe.drafter) if s)
    size, image = download_gb(seen, False), image_gb(seen, False)
    fetch = f"{repos}, {'?' if size is None else f'{size:g}'} GB still to come" if repos else ""
    pull = f"pull {recipe.image.reference}, {'?' if image is None else f'{image:g}'} GB compressed"
    return {
        "check": "look again at image, memory, disk, Docker and port",
        "image": f"{recipe.image.reference} is here" if image == 0 else pull,
        "download": fetch or "nothing: the image fetches its own weights",
        "launch": f"start its container on 127.0.0.1:{wanted.port}",
        "wait": "until it answers a real completion",
        "round": "measure it: the quick round",
        "report": "compare with the published figures",
    }
