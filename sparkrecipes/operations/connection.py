"""How a client reaches a recipe's server: where it listens, and under which name."""

from __future__ import annotations

from typing import get_args

from sparkrecipes import connections, containers
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, SparkRecipesError, nearest
from sparkrecipes.operations.gathering import DEFAULT_PORT
from sparkrecipes.operations.workspace import Place, open_workspace
from sparkrecipes.schema.agent import Client, Connection


def connect(
    recipe: str,
    *,
    client: str = "openai",
    base_url: str | None = None,
    catalog: Catalog | Place = None,
) -> Connection:
    """Say what a client's configuration must say to use a recipe's server; nothing is written.

    Args:
        recipe: A recipe id or file.
        client: ``openai``, ``opencode``, ``hermes``, ``openclaw``, ``litellm`` or ``open-webui``.
        base_url: Where the server is reached; None: where ours listens, else where it would.
        catalog: Where recipes come from.

    Raises:
        Misuse: An unknown recipe or client.
    """
    chosen = client_of(client)
    made = open_workspace(catalog).catalog.recipe(recipe)
    running, found = None, None
    try:
        server = containers.find_server(made.id)
        running = server is not None and server.state == "running"
        found = server.base_url if server else None
    except SparkRecipesError:
        pass
    url = with_version(base_url or found or f"http://127.0.0.1:{DEFAULT_PORT}")
    return Connection(
        recipe_id=made.id,
        client=chosen,
        base_url=url,
        model=made.served_model_name,
        running=running,
        snippet=connections.client_snippet(chosen, made, url),
    )


def client_of(name: str) -> Client:
    """Return the client of that name.

    Raises:
        Misuse: There is none.
    """
    for known in connections.CLIENTS:
        if known == name:
            return known
    near = nearest(name, get_args(Client))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise Misuse(
        f"no client is called {name!r}",
        repair=f"{hint}use one of: {', '.join(connections.CLIENTS)}",
    )


def with_version(url: str) -> str:
    """Return an endpoint with ``/v1``."""
    bare = url.rstrip("/")
    return bare if bare.endswith("/v1") else f"{bare}/v1"
