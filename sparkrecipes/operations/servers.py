"""What runs on this host: the host itself, our containers, and what their logs mean."""

from __future__ import annotations

from sparkrecipes import containers
from sparkrecipes import diagnosis as diagnoses
from sparkrecipes import machine as hosts
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.workspace import Place, open_catalog_of, open_workspace
from sparkrecipes.schema.findings import DiagnosisReport
from sparkrecipes.schema.machine import HostReport, Machine
from sparkrecipes.schema.serving import Server, ServerList, ServerLogs


def probe_machine(
    *, catalog: Catalog | Place = None, machine: Machine | Place = None
) -> HostReport:
    """Say what this machine is and what is free on it now; never fails."""
    return hosts.read_host(open_workspace(catalog, machine).machine.id)


def list_servers() -> ServerList:
    """List the containers that carry our label, running or not."""
    return containers.list_servers()


def server_logs(recipe: str, *, lines: int = 50) -> ServerLogs:
    """Return the last log lines of a recipe's container, with secrets removed.

    Raises:
        Misuse: No container of ours serves that recipe.
    """
    return containers.logs(require_server(recipe).name, lines=lines)


def require_server(recipe: str) -> Server:
    """Find our container of a recipe.

    Raises:
        Misuse: There is none.
    """
    server = containers.find_server(recipe)
    if server is None:
        raise Misuse(
            f"no container of ours serves {recipe!r}",
            code="no_server",
            repair="run: sparkrecipes status",
        )
    return server


def diagnose(log: str, *, catalog: Catalog | Place = None) -> DiagnosisReport:
    """Find known causes in a log, the most likely first; none found is no all-clear."""
    rules = open_catalog_of(catalog).diagnoses.values()
    return diagnoses.diagnose(log, rules)
