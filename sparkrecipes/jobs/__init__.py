"""Jobs: long work in a process of its own, so that nobody's end ends it.

A job has a folder: what it is to do, how it stands, its log and its lock. The command line, Python
and MCP servers see the same jobs. A worker holds its lock for as long as it lives, so that a dead
one is seen as lost, whatever killed it.
"""

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
