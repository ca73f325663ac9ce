"""Jobs: long work in a process of its own, so that nobody's end ends it.

A job has a folder: what it is to do, how it stands, its log and its lock. The command line, Python
and MCP servers see the same jobs. A worker holds its lock for as long as it lives, so that a dead
one is seen as lost, whatever killed it.

Each function is loaded when it is first used: looking at a job costs nothing of planning one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkrecipes.jobs.ending import cancel_job
    from sparkrecipes.jobs.planning import plan_install
    from sparkrecipes.jobs.starting import start_install, start_round
    from sparkrecipes.jobs.watching import get_job, list_jobs, load_report, wait_job

__all__ = [
    "cancel_job",
    "get_job",
    "list_jobs",
    "load_report",
    "plan_install",
    "start_install",
    "start_round",
    "wait_job",
]

MODULES = {
    "planning": ("plan_install",),
    "starting": ("start_install", "start_round"),
    "watching": ("get_job", "list_jobs", "load_report", "wait_job"),
    "ending": ("cancel_job",),
}
"""Where each function lives."""


def __getattr__(name: str) -> Any:
    """Load the module of a function when it is first used."""
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
