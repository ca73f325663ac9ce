"""The prompts of ``agent_prompts/`` as MCP prompts, with language and one thing given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import PromptArgument

from sparkrecipes import agent_skills
from sparkrecipes.mcp_server.wording import clip

LONGEST_GIVEN = 400


def add_prompts(server: MCPServer[Any]) -> None:
    """Register every prompt once; the language is an argument."""
    for name in agent_skills.names():
        english = agent_skills.prompt(name)
        server.add_prompt(
            Prompt(
                name=name,
                title=english.title,
                description=english.description,
                arguments=[
                    PromptArgument(name=english.argument, description=english.argument_description),
                    PromptArgument(name="language", description="en or es"),
                ],
                fn=writer(name, english.argument),
            )
        )


def writer(name: str, argument: str) -> Callable[..., str]:
    """Make the function that writes a prompt."""

    def write(language: Literal["en", "es"] = "en", **given: str) -> str:
        return agent_skills.filled(name, language, clip(given.get(argument) or "", LONGEST_GIVEN))

    return write
