"""The operations, in the order of the walk: what Python, the command line and agents call."""

from sparkrecipes.operations.acts import (
    compare,
    download,
    launch,
    run_round,
    stop,
    wait_until_ready,
)
from sparkrecipes.operations.answers import (
    diagnose,
    estimate_memory,
    get_recipe,
    list_recipes,
    list_servers,
    probe_machine,
    recommend,
    server_logs,
    validate_recipe,
)
from sparkrecipes.operations.installation import install
from sparkrecipes.operations.preflight import check_image, check_recipe, render_command
from sparkrecipes.operations.simulation import rehearse

__all__ = [
    "check_image",
    "check_recipe",
    "compare",
    "diagnose",
    "download",
    "estimate_memory",
    "get_recipe",
    "install",
    "launch",
    "list_recipes",
    "list_servers",
    "probe_machine",
    "recommend",
    "rehearse",
    "render_command",
    "run_round",
    "server_logs",
    "stop",
    "validate_recipe",
    "wait_until_ready",
]
