"""Recipes, evidence and reports as resources, with completions for their ids."""

from __future__ import annotations

import json
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from sparkrecipes import agent_skills, jobs
from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.mcp_server.house import House
from sparkrecipes.mcp_server.reading import known_id

MOST_VALUES = 100


def add_resources(server: MCPServer[Any], house: House) -> None:
    """Register the resources of a server."""

    @server.resource(
        "recipe://{recipe_id}",
        title="A recipe",
        description="A recipe as its file has it: YAML, every fact with its source",
        mime_type="application/yaml",
    )
    def recipe(recipe_id: str) -> str:
        return file_of(house, "recipes", recipe_id)

    @server.resource(
        "evidence://{evidence_id}",
        title="Published measurements",
        description="One set of published figures with method, date, source and caveats: YAML",
        mime_type="application/yaml",
    )
    def evidence(evidence_id: str) -> str:
        return file_of(house, "evidence", evidence_id)

    @server.resource(
        "report://{job_id}",
        title="A report",
        description="What a job measured, beside the published figures: Markdown",
        mime_type="text/markdown",
    )
    def report(job_id: str) -> str:
        return report_of(job_id)

    @server.resource(
        "catalog://recipes",
        title="All recipes",
        description="Every recipe with its published figures: JSON",
        mime_type="application/json",
    )
    def recipes() -> str:
        rows = [row.model_dump(mode="json", exclude_none=True) for row in house.summaries()]
        return json.dumps({"recipes": rows}, ensure_ascii=False)

    add_completions(server, house)


def add_completions(server: MCPServer[Any], house: House) -> None:
    """Let clients complete the ids of resources."""

    async def complete(
        _ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        _context: CompletionContext | None,
    ) -> Completion:
        values = [value for value in known(house, argument.name) if argument.value in value]
        return Completion(
            values=values[:MOST_VALUES], total=len(values), has_more=len(values) > MOST_VALUES
        )

    # The SDK's decorator has no types.
    untyped: Any = server
    untyped.completion()(complete)


def file_of(house: House, folder: str, name: str) -> str:
    """Return a catalog file by its id; nothing outside the catalog can be named.

    Raises:
        ResourceNotFoundError: There is no such file.
    """
    catalog = house.catalog()
    kind = catalog.recipes if folder == "recipes" else catalog.evidence
    try:
        known_id(name)
    except SparkRecipesError as err:
        raise ResourceNotFoundError(err.message) from None
    if name not in kind:
        raise ResourceNotFoundError(f"nothing in {folder} has the id {name!r}")
    return (catalog.root / folder / f"{name}.yaml").read_text()


def report_of(job_id: str) -> str:
    """Return a job's report as Markdown.

    Raises:
        ResourceNotFoundError: There is no such job, or it has no report.
    """
    from sparkrecipes import reports

    try:
        report, measured = jobs.load_report(job_id)
    except SparkRecipesError as err:
        raise ResourceNotFoundError(err.message) from None
    return reports.markdown(report, measured)


def known(house: House, argument: str) -> list[str]:
    """List what an argument may be."""
    if argument in ("recipe_id", "recipe_or_model"):
        return list(house.catalog().recipes)
    if argument == "evidence_id":
        return list(house.catalog().evidence)
    if argument == "job_id":
        return [job.id for job in jobs.list_jobs(MOST_VALUES).jobs]
    if argument == "use_case":
        return list(house.catalog().use_cases)
    return list(agent_skills.LANGUAGES) if argument == "language" else []
