"""The Skills extension: the same prompts as Agent Skills over MCP.

Source: SEP-2640 (``skills/list``, ``skills/get``, files as ``skill://NAME/...`` resources, a digest
and a size for each).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams

from sparkrecipes import agent_skills
from sparkrecipes.schema.agent import Skill

FRESH_MS = 3_600_000
"""How long a client may keep what it was told: the files change with the release alone."""


class ListParams(RequestParams):
    """Parameters of ``skills/list``."""

    cursor: str | None = None


class GetParams(RequestParams):
    """Parameters of ``skills/get``."""

    uri: str


class Skills(Extension):
    """Serves the prompts as skills."""

    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> Sequence[MethodBinding]:
        """Return the two methods."""
        return (
            MethodBinding("skills/list", ListParams, list_skills),
            MethodBinding("skills/get", GetParams, get_skill),
        )

    def resources(self) -> Sequence[ResourceBinding]:
        """Return every file of every skill."""
        return [
            ResourceBinding(
                TextResource(
                    uri=f"skill://{skill.name}/{name}",
                    name=f"{skill.name}/{name}",
                    description=skill.description,
                    mime_type="text/markdown",
                    text=content,
                )
            )
            for skill in agent_skills.skills().skills
            for name, content in skill.files.items()
        ]


async def list_skills(_ctx: ServerRequestContext[Any, Any], _params: ListParams) -> dict[str, Any]:
    """Answer ``skills/list``: all of them, there is no second page."""
    return fresh({"skills": [entry(skill) for skill in agent_skills.skills().skills]})


async def get_skill(_ctx: ServerRequestContext[Any, Any], params: GetParams) -> dict[str, Any]:
    """Answer ``skills/get``.

    Raises:
        MCPError: No skill has that address.
    """
    for skill in agent_skills.skills().skills:
        if params.uri == f"skill://{skill.name}/SKILL.md":
            return fresh({"skill": entry(skill)})
    raise MCPError(code=INVALID_PARAMS, message=f"no skill has the address {params.uri[:100]!r}")


def fresh(result: dict[str, Any]) -> dict[str, Any]:
    """Say how long a result holds."""
    return {**result, "ttlMs": FRESH_MS, "cacheScope": "public"}


def entry(skill: Skill) -> dict[str, Any]:
    """Describe a skill with the digest and the size of each of its files."""
    return {
        "uri": f"skill://{skill.name}/SKILL.md",
        "frontmatter": {"name": skill.name, "description": skill.description},
        "resources": [
            {
                "uri": f"skill://{skill.name}/{name}",
                "digest": f"sha256:{hashlib.sha256(content.encode()).hexdigest()}",
                "size": len(content.encode()),
            }
            for name, content in skill.files.items()
        ],
    }
