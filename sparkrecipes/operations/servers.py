"""What runs on this host: the host itself, our containers, and what their logs mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from sparkrecipes import containers
from sparkrecipes import diagnosis as diagnoses
from sparkrecipes import machine as hosts
from sparkrecipes.catalog import Catalog
from sparkrecipes.commands import container_name
from sparkrecipes.errors import Misuse, Unknown, UnknownId
from sparkrecipes.operations.workspace import Place, open_catalog_of, open_workspace
from sparkrecipes.schema.findings import DiagnosisReport
from sparkrecipes.schema.machine import HostReport, Machine
from sparkrecipes.schema.serving import Server, ServerList, ServerLogs, Stopped

RECIPE_WORD = re.compile(r"\bRECIPE\b")


def probe_machine(
    *, catalog: Catalog | Place = None, machine: Machine | Place = None
) -> HostReport:
    """Say what this machine is, what is free on it now and who holds the rest; never fails."""
    found = hosts.read_host(open_workspace(catalog, machine).machine.id)
    return found.model_copy(update={"live": hosts.live_use()})


def list_servers() -> ServerList:
    """List the containers that carry our label, running or not."""
    return containers.list_servers()


def server_logs(recipe: str, *, lines: int = 50, catalog: Catalog | Place = None) -> ServerLogs:
    """Return the last log lines of a recipe's container, with secrets removed.

    Args:
        recipe: A recipe id or file, or the container's name.
        lines: How many, at most 10,000.
        catalog: Whose recipes are known.

    Raises:
        UnknownId: No recipe has that id, and no container of ours serves it.
        Misuse: No container of ours serves that recipe.
        Refused: A container has that name, but is not ours.
        Unknown: Docker could not be asked.
    """
    with known_first(recipe, catalog):
        return containers.logs(recipe, lines=lines)


def require_server(recipe: str, catalog: Catalog | Place = None) -> Server:
    """Find our container of a recipe.

    Raises:
        UnknownId: No recipe has that id, and no container of ours serves it.
        Misuse: No container of ours serves that recipe.
        Unknown: Docker could not be asked.
    """
    with known_first(recipe, catalog):
        server = containers.find_server(recipe)
        if server is None:
            raise Misuse(
                f"no container of ours serves {recipe!r}",
                code="no_server",
                repair=f"start it: sparkrecipes launch {recipe}, or see: sparkrecipes status",
            )
        return server


def stop(recipe: str, *, catalog: Catalog | Place = None) -> Stopped:
    """Stop and remove the container of ours that serves a recipe; nothing else is touched.

    Args:
        recipe: A recipe id or file, or the container's name.
        catalog: Whose recipes are known.

    Raises:
        UnknownId: No recipe has that id, and no container of ours serves it.
        Refused: A container of that name is not ours.
        ServerError: Docker did not stop it.
        Unknown: Docker could not be asked.
    """
    with known_first(recipe, catalog):
        stopped = containers.stop(recipe)
        if not stopped.stopped:
            require_known(recipe, catalog)
        return stopped


@contextmanager
def known_first(recipe: str, catalog: Catalog | Place) -> Iterator[None]:
    """Say that an id is unknown, before saying what Docker does not know or cannot tell.

    Docker is asked for an unknown id too: a recipe of another catalog may run under it.
    """
    try:
        yield
    except (Unknown, Misuse):
        require_known(recipe, catalog)
        raise


def require_known(recipe: str, catalog: Catalog | Place) -> None:
    """Refuse what is neither a recipe's id or file nor the name of a container of one.

    Raises:
        UnknownId: With the nearest ids.
    """
    known = tuple(open_catalog_of(catalog).recipes)
    wanted = PurePath(recipe).stem if recipe.endswith((".yaml", ".yml")) else recipe
    if wanted not in known and wanted not in map(container_name, known):
        raise UnknownId("recipe", recipe, known, see="sparkrecipes status")


def diagnose_server(server: str, *, catalog: Catalog | Place = None) -> DiagnosisReport:
    """Find known causes in the log and the state of a container of ours.

    Args:
        server: A recipe id or file, or the container's name.
        catalog: Whose diagnoses are known.

    Raises:
        UnknownId: No recipe has that id, and no container of ours serves it.
        Misuse: No container of ours serves that recipe.
        Refused: A container has that name, but is not ours.
        Unknown: Docker could not be asked.
    """
    with known_first(server, catalog):
        words = containers.last_words(server)
        found = containers.find_server(server)
    return about(diagnose(words, catalog=catalog), found.recipe_id if found else None)


def about(report: DiagnosisReport, recipe_id: str | None) -> DiagnosisReport:
    """Put a recipe's id where the remedies say RECIPE, so that they can be run as they are."""
    if recipe_id is None:
        return report
    named = [
        found.model_copy(update={"remedy": RECIPE_WORD.sub(recipe_id, found.remedy)})
        for found in report.diagnoses
    ]
    return report.model_copy(update={"diagnoses": tuple(named)})


def diagnose(log: str, *, catalog: Catalog | Place = None) -> DiagnosisReport:
    """Find known causes in a log, the most likely first; none found is no all-clear."""
    rules = open_catalog_of(catalog).diagnoses.values()
    return diagnoses.diagnose(log, rules)
