"""The walk without a Spark: real checks, and a server that plays the published timing."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes.catalog import Catalog
from sparkrecipes.checks import check
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.acts import Progress
from sparkrecipes.operations.gathering import gather
from sparkrecipes.operations.preflight import Launch, command_for
from sparkrecipes.operations.recommending import recommend
from sparkrecipes.operations.results import require_folder, round_path
from sparkrecipes.operations.walk import Walk
from sparkrecipes.operations.workspace import Place, open_workspace
from sparkrecipes.rehearsal import EngineDouble
from sparkrecipes.schema.evidence import EvidenceRow, WorkloadSet
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import InstallReport, Round

SPEEDS = (0.05, 20.0)
"""Below, a rehearsal takes hours; above, the client's own cost shows in the figures."""

REGISTRY_TIMEOUT_S = 6.0
"""A rehearsal only shows what the registry says: it does not wait long for it."""


def rehearse(
    recipe_or_use_case: str,
    *,
    speed: float = 1.0,
    full: bool = False,
    context_tokens: int | None = None,
    users: int | None = None,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
    progress: Progress | None = None,
) -> InstallReport:
    """Walk as ``install`` does, with a server that plays published timing for a container.

    The figures are really measured over a socket and marked simulated. What would block a real
    install on this host is shown and does not end the walk.

    Args:
        recipe_or_use_case: A recipe, or words that name a use.
        speed: 1.0 plays the published timing, 0.8 plays it slower.
        full: True runs the whole round instead of the quick one.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no network.
        progress: Called with a line for people.

    Raises:
        Misuse: The recipe has no published timing, ``speed`` cannot be played, or what would be
            measured cannot be saved.
        InstallFailed: Names the step and the cause.
    """
    space = open_workspace(catalog, machine, offline=offline)
    if not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise Misuse(
            f"--speed {speed} is not between {SPEEDS[0]} and {SPEEDS[1]}", repair="try --speed 0.8"
        )
    walk = Walk(space, progress)
    ref = choose(walk, recipe_or_use_case, context_tokens, users)
    wanted = Launch(space.catalog.recipe(ref), context_tokens, users)
    row = require_timing(space.catalog, wanted.recipe)
    require_folder(round_path("", wanted.recipe.id))
    show_checks(walk, wanted)
    command = command_for(space, wanted)
    with walk.step("image") as note:
        note.state, note.message = "simulated", f"would pull {wanted.recipe.image.reference}"
    with walk.step("download") as note:
        note.state, note.message = "simulated", would_fetch(wanted.recipe)
    with walk.step("launch") as note:
        note.state, note.message = "simulated", "the command below is not run"
    measured = play(walk, ref, wanted, row, speed, full)
    return InstallReport(
        recipe_id=wanted.recipe.id,
        simulated=True,
        ok=True,
        steps=tuple(walk.steps),
        command=command.shell,
        base_url=None,
        round=measured,
        report=walk.compare(ref, measured),
        next=f"on the Spark: sparkrecipes install {wanted.recipe.id}",
    )


def choose(walk: Walk, words: str, context_tokens: int | None, users: int | None) -> str:
    """Take a recipe as it is named, or the pick for a use case.

    Raises:
        Misuse: Nothing suits.
    """
    catalog = walk.space.catalog
    if words in catalog.recipes or words.endswith((".yaml", ".yml")):
        return words
    with walk.step("recommend") as note:
        answer = recommend(
            words,
            context_tokens=context_tokens,
            users=users,
            catalog=catalog,
            machine=walk.space.machine,
        )
        if answer.pick is None:
            raise Misuse(
                f"nothing suits {words!r}",
                code="no_pick",
                repair=f"see why: sparkrecipes recommend {words}",
            )
        note.message = f"{answer.pick.id}: {'; '.join(answer.pick.why)}"
        note.shown = (answer.pick.id, *answer.pick.why)
    return answer.pick.id


def require_timing(catalog: Catalog, recipe: Recipe) -> EvidenceRow:
    """Return the published row of a recipe.

    Raises:
        Misuse: There is none to play.
    """
    row = catalog.october_row(recipe)
    if row is None:
        raise Misuse(
            f"{recipe.id} has no published timing to play",
            code="no_published_figures",
            repair="rehearse a measured recipe: sparkrecipes list",
        )
    return row


def show_checks(walk: Walk, wanted: Launch) -> None:
    """Run the real checks and show what would stop a real install here."""
    with walk.step("check") as note:
        facts = gather(
            walk.space,
            wanted.recipe,
            wanted.context_tokens,
            wanted.users,
            wanted.port,
            registry_timeout_s=REGISTRY_TIMEOUT_S,
            ask_hub=False,
        )
        report = check(facts)
        note.message = f"a real install here: {report.summary}"
        note.state = "done" if report.verdict == "ready" else "warned"
    for finding in report.findings:
        if finding.level in ("blocker", "unknown"):
            walk.say(f"  {finding.level}: {finding.message}")


def play(walk: Walk, ref: str, wanted: Launch, row: EvidenceRow, speed: float, full: bool) -> Round:
    """Start the double, wait for it as for a real server, and measure it."""
    recipe = wanted.recipe
    engine = walk.space.catalog.engine(recipe.engine)
    workloads = workloads_of(walk.space.catalog, recipe)
    with EngineDouble(recipe, engine, row, speed=speed, workloads=workloads) as double:
        with walk.step("wait") as note:
            ready = containers.wait_for_endpoint(
                double.base_url, recipe, engine, progress=walk.progress
            )
            note.state = "simulated"
            note.message = f"answers at {ready.base_url} after {ready.seconds:.1f} s"
        return walk.measure(ref, double.base_url, users=wanted.users, full=full, simulated=True)


def workloads_of(catalog: Catalog, recipe: Recipe) -> WorkloadSet | None:
    """Return what was published of a recipe's speed and acceptance by kind of prompt."""
    sets = (found for one in catalog.evidence.values() for found in one.by_workload)
    return next((found for found in sets if found.recipe == recipe.id), None)


def would_fetch(recipe: Recipe) -> str:
    """Name the repositories that a real install downloads."""
    repos = [source.repo for source in (recipe.weights, recipe.drafter) if source]
    if not repos:
        return f"{recipe.engine} would fetch its own weights on first start"
    return f"would fetch {' and '.join(repos)}"
