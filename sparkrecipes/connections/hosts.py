"""How an MCP host is told to start our server: one function a host, each with its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from sparkrecipes.schema.agent import Host, Snippet

NAME = "sparkrecipes"
HOSTS: tuple[Host, ...] = get_args(Host)
START_LIMIT_NOTE = (
    "install it once (uv tool install sparkrecipes): a first start through uvx resolves packages, "
    "and may pass the host's limit for a start"
)
HTTP_NOTE = "start the server yourself with: sparkrecipes mcp --http; the token stays in {variable}"


def host_snippet(
    host: Host,
    command: Sequence[str] = ("sparkrecipes", "mcp"),
    *,
    url: str | None = None,
    token_variable: str = "SPARKRECIPES_MCP_TOKEN",  # noqa: S107 (the name of a variable)
) -> Snippet:
    """Write what a host's configuration must say.

    Args:
        host: Which host.
        command: What starts the server over standard input and output.
        url: Where it listens instead, over HTTP.
        token_variable: The variable that holds the bearer token; never its value.
    """
    if url is None:
        return STDIO[host](list(command))
    found = HTTP[host](url, token_variable)
    return found.model_copy(update={"notes": (HTTP_NOTE.format(variable=token_variable),)})


def servers(key: str, entry: Mapping[str, Any]) -> str:
    """Write one entry below the key that a host has its servers in."""
    return json.dumps({key: {NAME: entry}}, indent=2)


def claude(command: list[str]) -> Snippet:
    """Claude Code; a project's own file, or the command for one user."""
    return Snippet(
        program="Claude Code",
        file=".mcp.json",
        content=servers("mcpServers", {"command": command[0], "args": command[1:]}),
        command=f"claude mcp add {NAME} -- {' '.join(command)}",
        notes=(START_LIMIT_NOTE,),
        source="https://code.claude.com/docs/en/mcp",
    )


def codex(command: list[str]) -> Snippet:
    """Codex; its limit for one tool call is raised above our longest wait."""
    table = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps(command[1:])}\n"
        "startup_timeout_sec = 30\n"
        "tool_timeout_sec = 120\n"
    )
    return Snippet(
        program="Codex",
        file="~/.codex/config.toml",
        content=table,
        command=f"codex mcp add {NAME} -- {' '.join(command)}",
        notes=(START_LIMIT_NOTE,),
        source="https://developers.openai.com/codex/mcp",
    )


def cursor(command: list[str]) -> Snippet:
    """Cursor; a project's own file."""
    return Snippet(
        program="Cursor",
        file=".cursor/mcp.json",
        content=servers("mcpServers", {"command": command[0], "args": command[1:]}),
        notes=(START_LIMIT_NOTE,),
        source="https://cursor.com/docs/context/mcp",
    )


def vscode(command: list[str]) -> Snippet:
    """VS Code; its servers stand under another key, with their type."""
    entry = {"type": "stdio", "command": command[0], "args": command[1:]}
    one_line = json.dumps({"name": NAME, **entry})
    return Snippet(
        program="VS Code",
        file=".vscode/mcp.json",
        content=servers("servers", entry),
        command=f"code --add-mcp '{one_line}'",
        notes=(START_LIMIT_NOTE,),
        source="https://code.visualstudio.com/docs/copilot/customization/mcp-servers",
    )


def gemini(command: list[str]) -> Snippet:
    """Gemini CLI; its limit for one call is in milliseconds."""
    return Snippet(
        program="Gemini CLI",
        file="~/.gemini/settings.json",
        content=servers(
            "mcpServers", {"command": command[0], "args": command[1:], "timeout": 120_000}
        ),
        command=f"gemini mcp add {NAME} {' '.join(command)}",
        notes=(START_LIMIT_NOTE,),
        source="https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    )


STDIO: dict[Host, Callable[[list[str]], Snippet]] = {
    "claude": claude,
    "codex": codex,
    "cursor": cursor,
    "vscode": vscode,
    "gemini": gemini,
}


def claude_http(url: str, variable: str) -> Snippet:
    """Claude Code over HTTP; it fills ``${NAME}`` from the environment."""
    entry = {"type": "http", "url": url, "headers": bearer(f"${{{variable}}}")}
    found = claude(["sparkrecipes", "mcp"])
    return found.model_copy(update={"content": servers("mcpServers", entry), "command": ""})


def codex_http(url: str, variable: str) -> Snippet:
    """Codex over HTTP; it reads the token from the variable that is named."""
    table = f'[mcp_servers.{NAME}]\nurl = "{url}"\nbearer_token_env_var = "{variable}"\n'
    return codex([""]).model_copy(update={"content": table, "command": ""})


def cursor_http(url: str, variable: str) -> Snippet:
    """Cursor over HTTP; it fills ``${env:NAME}`` from the environment."""
    entry = {"url": url, "headers": bearer(f"${{env:{variable}}}")}
    found = cursor([""])
    return found.model_copy(update={"content": servers("mcpServers", entry)})


def vscode_http(url: str, variable: str) -> Snippet:
    """VS Code over HTTP; it asks for the token once and keeps it itself."""
    asked = {"type": "promptString", "id": variable, "description": variable, "password": True}
    entry = {"type": "http", "url": url, "headers": bearer(f"${{input:{variable}}}")}
    content = json.dumps({"inputs": [asked], "servers": {NAME: entry}}, indent=2)
    return vscode([""]).model_copy(update={"content": content, "command": ""})


def gemini_http(url: str, variable: str) -> Snippet:
    """Gemini CLI over HTTP: ``httpUrl``, for ``url`` is the older transport."""
    entry = {"httpUrl": url, "headers": bearer(f"${variable}"), "timeout": 120_000}
    found = gemini([""])
    return found.model_copy(update={"content": servers("mcpServers", entry), "command": ""})


def bearer(value: str) -> dict[str, str]:
    """Write the header that carries a token."""
    return {"Authorization": f"Bearer {value}"}


HTTP: dict[Host, Callable[[str, str], Snippet]] = {
    "claude": claude_http,
    "codex": codex_http,
    "cursor": cursor_http,
    "vscode": vscode_http,
    "gemini": gemini_http,
}
