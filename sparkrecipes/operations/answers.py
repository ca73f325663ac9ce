"""Questions that need no network: what the catalog, the memory model, the host and logs say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparkrecipes import catalog as catalogs
from sparkrecipes import containers, memory
from sparkrecipes import diagnosis as diagnoses
from sparkrecipes import machine as hosts
from sparkrecipes import recommendation as recommendations
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.subjects import recipe_request, subject_request
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace, positive
from sparkrecipes.schema.findings import DiagnosisReport, ValidationReport
from sparkrecipes.schema.listing import RecipeDetail, RecipeList
from sparkrecipes.schema.machine import HostReport, Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Server, ServerList, ServerLogs
from sparkrecipes.schema.use_case import Recommendation


def list_recipes(*, catalog: Catalog | Place = None) -> RecipeList:
    """List all recipes with the figures that people choose by."""
    return RecipeList(recipes=open_workspace(catalog).catalog.summaries())


def get_recipe(recipe: str, *, catalog: Catalog | Place = None) -> RecipeDetail:
    """Show one recipe in full, with what is published of it.

    Raises:
        UnknownId: No recipe has that id.
    """
    opened = open_workspace(catalog).catalog
    return opened.detail(opened.recipe(recipe))


def recommend(
    use_case: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
) -> Recommendation:
    """Pick a recipe by rules for a use case or a sentence, in English or Spanish.

    Args:
        use_case: ``agents``, ``programación``, or a sentence that names a use.
        context_tokens: Longest sequence wanted; None: as measured.
        users: Sequences at once; None: as measured.
        catalog: Where recipes come from.
        machine: Where they must fit.

    Raises:
        Misuse: The words name no use case, or more than one.
    """
    space = open_workspace(catalog, machine)
    positive("--context", context_tokens)
    positive("--users", users)
    return recommendations.recommend(
        use_case,
        space.catalog,
        context_tokens=context_tokens,
        users=users,
        estimate=lambda recipe: fit_recipe(space, recipe, context_tokens, users),
    )


def validate_recipe(
    paths: Sequence[Path | str], *, catalog: Catalog | Place = None
) -> ValidationReport:
    """Check recipe or other catalog files: what is wrong, where, and the repair."""
    return catalogs.validate([Path(p) for p in paths], open_workspace(catalog).catalog)


def probe_machine(
    *, catalog: Catalog | Place = None, machine: Machine | Place = None
) -> HostReport:
    """Say what this machine is and what is free on it now; never fails."""
    return hosts.read_host(open_workspace(catalog, machine).machine.id)


def estimate_memory(
    recipe_or_model: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    kv_cache_dtype: str | None = None,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
    offline: bool = False,
) -> MemoryEstimate:
    """Say whether a recipe or model fits, for a context and a number of users.

    Args:
        recipe_or_model: A recipe id or file, a model id, ``<model>-<quant>``, or a Hugging Face
            repository (which needs the network unless the catalog knows it).
        context_tokens: Longest sequence; None: as measured, or the model's.
        users: Sequences at once; None: as measured, or 1.
        kv_cache_dtype: None: the recipe's, or auto.
        catalog: Where facts come from.
        machine: Where it must fit.
        offline: True asks no network.

    Raises:
        UnknownId: Nothing has that id.
        Unknown: The repository's facts could not be had.
    """
    space = open_workspace(catalog, machine, offline=offline)
    positive("--context", context_tokens)
    positive("--users", users)
    request = subject_request(space, recipe_or_model, context_tokens, users, kv_cache_dtype)
    return memory.estimate(request, space.machine, available_bytes=available_bytes(space))


def fit_recipe(
    space: Workspace, recipe: Recipe, context_tokens: int | None, users: int | None
) -> MemoryEstimate:
    """Size a recipe on the machine of an open workspace."""
    request = recipe_request(space, recipe, context_tokens, users)
    return memory.estimate(request, space.machine, available_bytes=available_bytes(space))


def available_bytes(space: Workspace) -> int | None:
    """Return MemAvailable where this host is the target, else None."""
    live = hosts.live_memory() if space.here else None
    return live[1] if live else None


def diagnose(log: str, *, catalog: Catalog | Place = None) -> DiagnosisReport:
    """Find known causes in a log, the most likely first; none found is no all-clear."""
    rules = open_workspace(catalog).catalog.diagnoses.values()
    return diagnoses.diagnose(log, rules)


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
