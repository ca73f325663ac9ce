"""The arguments of the commands for agents, their hosts and their clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkrecipes.cli.parser import Parser

HOSTS = ("claude", "codex", "cursor", "vscode", "gemini")
CLIENTS = ("openai", "opencode", "hermes", "openclaw", "litellm", "open-webui")
"""As in ``schema.agent``; a test holds both to it: a help page does not load the types."""


def add_agent_commands(add: Callable[..., Any]) -> None:
    """Add the commands that serve agents."""
    add("mcp", "serve AI agents over MCP: a pipe, or --http on this host", mcp)
    add("jobs", "long work in the background: what agents started, too", jobs)
    add("connect", "what a client's configuration must say to use a recipe's server", connect)
    add("skills", "prompts for agents: as skills for a folder, or as text", skills)


def mcp(parser: Parser) -> None:
    """How the server is run, or how a host is told of it."""
    parser.add_argument("--http", action="store_true", help="HTTP on loopback, with a token")
    parser.add_argument("--host", default="127.0.0.1", help="loopback address for --http")
    parser.add_argument("--port", type=int, default=8765, help="port for --http")
    parser.add_argument("--read-only", action="store_true", help="leave out the tools that act")
    parser.add_argument(
        "--consent",
        choices=["ask", "host"],
        default="ask",
        help="host: leave the question to the client's own approval",
    )
    parser.add_argument("--print-config", choices=HOSTS, metavar="HOST", help="|".join(HOSTS))


def jobs(parser: Parser) -> None:
    """What to do with which job."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=["list", "show", "wait", "cancel", "start"],
        help="start takes a plan's id",
    )
    parser.add_argument("id", metavar="ID", nargs="?", help="a job's id, or a plan's")
    parser.add_argument("--lines", type=int, default=0, metavar="N", help="last lines of its log")
    parser.add_argument("--timeout", type=float, metavar="S", help="wait no longer than this")


def connect(parser: Parser) -> None:
    """Which client reaches which recipe's server."""
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe's id or file")
    parser.add_argument("--client", choices=CLIENTS, default="openai", help="|".join(CLIENTS))
    parser.add_argument("--base-url", metavar="URL", help="where clients reach the server")


def skills(parser: Parser) -> None:
    """What to do with the skills."""
    parser.add_argument("action", nargs="?", default="list", choices=["list", "show", "add"])
    parser.add_argument("name", metavar="NAME", nargs="?", help="a prompt's or skill's name")
    parser.add_argument("--lang", choices=["en", "es"], default="en", help="for show")
    parser.add_argument(
        "--dir",
        metavar="DIR",
        default=".agents/skills",
        help="for add; Claude Code: .claude/skills",
    )
