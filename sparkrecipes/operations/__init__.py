"""The operations, in the order of the walk: what Python, the command line and agents call.

Each is loaded when it is first used, so that a question costs only the rooms that answer it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkrecipes.operations.acts import (
        download,
        run_round,
    )
    from sparkrecipes.operations.connection import connect
    from sparkrecipes.operations.contributing import contribute_round, review_changes
    from sparkrecipes.operations.history import export_rounds, list_rounds
    from sparkrecipes.operations.importation import import_recipe
    from sparkrecipes.operations.installation import install
    from sparkrecipes.operations.launching import launch
    from sparkrecipes.operations.pinning import pin_recipe
    from sparkrecipes.operations.preflight import check_image, check_recipe, render_command
    from sparkrecipes.operations.readiness import wait_until_ready
    from sparkrecipes.operations.recipes import (
        get_evidence,
        get_recipe,
        list_recipes,
        validate_recipe,
    )
    from sparkrecipes.operations.recommending import recommend
    from sparkrecipes.operations.reporting import (
        audit_published,
        compare,
        compare_rounds,
        write_report,
    )
    from sparkrecipes.operations.servers import (
        diagnose,
        diagnose_server,
        list_servers,
        probe_machine,
        server_logs,
        stop,
    )
    from sparkrecipes.operations.simulation import rehearse
    from sparkrecipes.operations.sizing import estimate_memory

__all__ = [
    "audit_published",
    "check_image",
    "check_recipe",
    "compare",
    "compare_rounds",
    "connect",
    "contribute_round",
    "diagnose",
    "diagnose_server",
    "download",
    "estimate_memory",
    "export_rounds",
    "get_evidence",
    "get_recipe",
    "import_recipe",
    "install",
    "launch",
    "list_recipes",
    "list_rounds",
    "list_servers",
    "pin_recipe",
    "probe_machine",
    "recommend",
    "rehearse",
    "render_command",
    "review_changes",
    "run_round",
    "server_logs",
    "stop",
    "validate_recipe",
    "wait_until_ready",
    "write_report",
]

MODULES = {
    "connection": ("connect",),
    "recipes": ("list_recipes", "get_recipe", "get_evidence", "validate_recipe"),
    "importation": ("import_recipe",),
    "pinning": ("pin_recipe",),
    "recommending": ("recommend",),
    "sizing": ("estimate_memory",),
    "servers": (
        "probe_machine",
        "list_servers",
        "server_logs",
        "stop",
        "diagnose",
        "diagnose_server",
    ),
    "preflight": ("check_image", "check_recipe", "render_command"),
    "acts": ("download", "run_round"),
    "launching": ("launch",),
    "readiness": ("wait_until_ready",),
    "reporting": ("compare", "compare_rounds", "write_report", "audit_published"),
    "history": ("list_rounds", "export_rounds"),
    "contributing": ("contribute_round", "review_changes"),
    "installation": ("install",),
    "simulation": ("rehearse",),
}
"""Where each operation lives, in the order of the walk."""


def __getattr__(name: str) -> Any:
    """Load the module of an operation when it is first used."""
    for module, names in MODULES.items():
        if name in names:
            from sparkrecipes.operations.arguments import checked

            return checked(getattr(import_module(f"{__name__}.{module}"), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
