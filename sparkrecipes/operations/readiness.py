"""Waiting for a server: until it answers a real completion, or until it is clear that none will."""

from __future__ import annotations

from collections.abc import Callable

from sparkrecipes import containers
from sparkrecipes import machine as hosts
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, NotReady, SparkRecipesError
from sparkrecipes.operations.servers import about, diagnose, require_server
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Readiness, Server

Progress = Callable[[str], None]

LONGEST_WAIT_S = 86_400.0
"""A day: the largest models load in minutes."""

CERTAIN = ("wrong_model", "api_key", "memory_low", "no_port", "gone")
"""What an endpoint or the host showed by itself: an error line in the log is not its cause."""

SHARE_OF_FLOOR = 32
MOST_FLOOR_BYTES = 4 * 2**30
"""Below this the host is about to freeze.

Source: MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#193.
"""


def wait_until_ready(
    recipe: str,
    *,
    timeout_s: float | None = None,
    catalog: Catalog | Place = None,
    progress: Progress | None = None,
) -> Readiness:
    """Wait until a recipe's container answers a real completion.

    Raises:
        NotReady: With the last log lines and the known causes found in them.
        Misuse: No container of ours serves that recipe, or a deadline that cannot be.
    """
    if timeout_s is not None and not 0 < timeout_s < LONGEST_WAIT_S:
        raise Misuse(
            f"a deadline of {timeout_s:g} s cannot be",
            code="bad_timeout",
            repair=f"give --timeout in seconds, above 0 and below {LONGEST_WAIT_S:.0f}",
        )
    opened = open_catalog_of(catalog)
    server = require_server(recipe, opened)
    return wait_for(opened, server, opened.recipe(server.recipe_id), timeout_s, progress)


def wait_for(
    catalog: Catalog,
    server: Server,
    recipe: Recipe,
    timeout_s: float | None,
    progress: Progress | None,
) -> Readiness:
    """Wait for one server, and add to a failure what its log and its end say of the cause."""
    try:
        return containers.wait_until_ready(
            server,
            recipe,
            catalog.engine(recipe.engine),
            timeout_s=timeout_s,
            progress=progress,
            published_s=published_load_s(catalog, recipe),
            floor_bytes=memory_floor(),
        )
    except NotReady as err:
        report = about(diagnose(words_of(server, err), catalog=catalog), recipe.id)
        found = report.diagnoses
        cause = found[0].cause if found else report.first_error
        if cause is None or (err.code in CERTAIN and not found):
            raise
        raise NotReady(
            f"{err.message}: {cause}",
            repair=found[0].remedy if found else err.repair,
            code=err.code,
            log_tail=err.log_tail,
            diagnoses=[d.id for d in found],
        ) from err


def memory_floor() -> int | None:
    """Return the MemAvailable below which a load is ended; null where the host does not say it.

    4 GiB on a Spark; a smaller host gets a smaller floor, for it is no sign of trouble there.
    """
    live = hosts.live_memory()
    return min(MOST_FLOOR_BYTES, live[0] // SHARE_OF_FLOOR) if live else None


def published_load_s(catalog: Catalog, recipe: Recipe) -> float | None:
    """Return the published time from start to ready, in s; null where nobody published one."""
    row = catalog.october_row(recipe)
    return row.figures.load_min * 60 if row and row.figures.load_min else None


def words_of(server: Server, err: NotReady) -> str:
    """Return all that a container says of its failure; where it is gone, what was kept of it."""
    try:
        return containers.last_words(server.name)
    except SparkRecipesError:
        return "\n".join(err.log_tail)
