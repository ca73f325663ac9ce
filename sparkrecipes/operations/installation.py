"""The walk on a real machine: from nothing to a proven endpoint."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes.catalog import Catalog
from sparkrecipes.checks import check
from sparkrecipes.commands import SETTINGS_LABEL
from sparkrecipes.errors import CheckFailed, Refused, Unknown
from sparkrecipes.operations.acts import Progress, download
from sparkrecipes.operations.gathering import DEFAULT_PORT, LOOPBACK, gather
from sparkrecipes.operations.image_step import pull
from sparkrecipes.operations.journal import open_journal
from sparkrecipes.operations.launching import launch_in, refuse_elsewhere
from sparkrecipes.operations.preflight import Launch, command_for
from sparkrecipes.operations.readiness import wait_for
from sparkrecipes.operations.results import require_folder, round_path
from sparkrecipes.operations.rollback import JournaledWalk
from sparkrecipes.operations.walk import Walk
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import InstallReport
from sparkrecipes.schema.serving import Server


def install(
    recipe: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    port: int = DEFAULT_PORT,
    bind: str = LOOPBACK,
    force: bool = False,
    full: bool = False,
    catalog: Catalog | Place = None,
    machine: Place = None,
    offline: bool = False,
    progress: Progress | None = None,
) -> InstallReport:
    """Walk from nothing to a proven endpoint: check, image, download, launch, wait, round, report.

    A recipe that already runs in a container of ours is measured, not started again. A walk that
    fails removes only the container that it made; weights and image stay. One that was killed is
    gone on with: finished files, layers and a container that is still loading are used.

    Args:
        recipe: A recipe id or file.
        context_tokens: Longest sequence; None: as measured.
        users: Sequences at once; None: as measured.
        port: On this host.
        bind: Address to publish the port on.
        force: Go on although a check says no.
        full: True runs the whole round instead of the quick one.
        catalog: Where recipes come from.
        machine: The target.
        offline: True asks no network.
        progress: Called with a line for people.

    Raises:
        InstallFailed: Names the step, the cause with its repair, and what was kept.
        Refused: Another install of this user runs.
        Misuse: What is measured could not be kept: the data folder cannot be written.
    """
    space = open_workspace(catalog, machine, offline=offline)
    wanted = Launch(space.catalog.recipe(recipe), context_tokens, users, port, bind, force)
    require_folder(round_path("", wanted.recipe.id))
    with open_journal(wanted.recipe.id) as journal:
        walk = JournaledWalk(space, progress, journal=journal)
        report = walk_all(walk, recipe, wanted, full)
        journal.close()
        return report


def walk_all(walk: JournaledWalk, ref: str, wanted: Launch, full: bool) -> InstallReport:
    """Walk every step; what runs already is measured, and what was interrupted is gone on with."""
    journal, space = walk.journal, walk.space
    if journal.before:
        walk.say(f"going on after an install that did not succeed ({', '.join(journal.before)})")
    running = find_running(wanted.recipe.id)
    if running is not None and running.state == "running":
        with walk.step("launch") as note:
            note.state, note.message = "skipped", as_it_runs(space, wanted, running)
        if running.container_id != journal.made:
            return prove(walk, ref, wanted, running, full)
        with walk.undone_on_failure(running):
            return prove(walk, ref, wanted, running, full)
    with walk.step("check") as note:
        note.message = require_ready(space, wanted)
    with walk.step("image") as note:
        digest, note.message = pull(walk, wanted)
    with walk.step("download") as note:
        note.message = fetch(walk, ref, wanted.recipe)
    with walk.step("launch") as note:
        server = launch_in(space, wanted, digest)
        note.message = f"{server.name} started"
    with walk.undone_on_failure(server):
        return prove(walk, ref, wanted, server, full)


def as_it_runs(space: Workspace, wanted: Launch, running: Server) -> str:
    """Say that a recipe runs already, and whether as it would be started now.

    Raises:
        Refused: Context or users were asked for, and it runs with other settings.
    """
    asked = command_for(space, wanted)
    same = f"{SETTINGS_LABEL}={running.settings}" in asked.argv
    if same:
        return f"{running.name} already runs, with the same settings"
    if running.settings and (wanted.context_tokens or wanted.users):
        raise Refused(
            f"{running.name} already runs at {running.base_url}, with other settings than these",
            code="runs_otherwise",
            repair=f"end it first: sparkrecipes stop {wanted.recipe.id}",
        )
    return (
        f"{running.name} already runs at {running.base_url}, with other settings than these: it is "
        f"measured as it is (to change them: sparkrecipes stop {wanted.recipe.id})"
    )


def find_running(recipe_id: str) -> Server | None:
    """Find our container of a recipe; where Docker does not answer, the check says why."""
    try:
        return containers.find_server(recipe_id)
    except Unknown:
        return None


def require_ready(space: Workspace, wanted: Launch) -> str:
    """Check a recipe and refuse what is blocked, unless forced.

    Raises:
        CheckFailed: With every blocker.
        Refused: Docker runs on another host.
    """
    if not wanted.force:
        refuse_elsewhere()
    facts = gather(
        space,
        wanted.recipe,
        wanted.context_tokens,
        wanted.users,
        wanted.port,
        bind=wanted.bind,
    )
    report = check(facts)
    blockers = [f for f in report.findings if f.level == "blocker"]
    if blockers and not wanted.force:
        raise CheckFailed(
            "; ".join(f.message for f in blockers),
            repair=blockers[0].repair,
            findings=[f"{f.check}: {f.message}" for f in blockers],
        )
    return report.summary


def fetch(walk: Walk, ref: str, recipe: Recipe) -> str:
    """Download the weights and say what is on disk."""
    report = download(
        ref,
        catalog=walk.space.catalog,
        offline=walk.space.offline,
        progress=lambda at: walk.count("download", at.transfer),
    )
    if not report.repos:
        return f"{recipe.engine} fetches its own weights on first start"
    walk.kept.extend(f"weights {repo.repo}" for repo in report.repos)
    fetched = sum(repo.fetched_bytes for repo in report.repos)
    total = sum(repo.total_bytes for repo in report.repos)
    return f"{total / 1e9:.2f} GB complete, {fetched / 1e9:.2f} GB fetched now"


def prove(walk: Walk, ref: str, wanted: Launch, server: Server, full: bool) -> InstallReport:
    """Wait for a server, measure it and compare it with the published figures."""
    recipe = wanted.recipe
    with walk.step("wait") as note:
        ready = wait_for(walk.space.catalog, server, recipe, None, walk.progress)
        note.message = f"answers at {ready.base_url} after {ready.seconds:.0f} s"
    measured = walk.measure(ref, ready.base_url, users=wanted.users, full=full, simulated=False)
    report = walk.compare(ref, measured)
    return InstallReport(
        recipe_id=recipe.id,
        simulated=False,
        ok=report.verdict not in ("slower", "unstable"),
        steps=tuple(walk.steps),
        command=command_for(walk.space, wanted, image_digest=server.image_digest).shell,
        base_url=ready.base_url,
        round=measured,
        report=report,
        next=f"sparkrecipes status; stop it with: sparkrecipes stop {recipe.id}",
    )
