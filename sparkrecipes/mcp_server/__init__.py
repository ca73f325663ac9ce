"""The door for AI agents: the operations as few MCP tools, with prompts, skills and resources."""

from sparkrecipes.mcp_server.house import Settings
from sparkrecipes.mcp_server.server import build_server
from sparkrecipes.mcp_server.transport import serve_http, serve_stdio

__all__ = ["Settings", "build_server", "serve_http", "serve_stdio"]
