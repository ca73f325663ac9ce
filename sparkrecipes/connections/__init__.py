"""How programs are connected: MCP hosts to our server, clients to a recipe's endpoint."""

from sparkrecipes.connections.clients import CLIENTS, client_snippet
from sparkrecipes.connections.hosts import HOSTS, host_snippet

__all__ = ["CLIENTS", "HOSTS", "client_snippet", "host_snippet"]
