"""What agents and clients are given: prompts, skills, and how they are connected."""

from __future__ import annotations

from typing import Literal

from sparkrecipes.schema.base import Frozen, Id, Text

Language = Literal["en", "es"]
Host = Literal["claude", "codex", "cursor", "vscode", "gemini"]
Client = Literal["openai", "opencode", "hermes", "openclaw", "litellm", "open-webui"]


class AgentPrompt(Frozen):
    """One prompt in one language, as its file has it."""

    name: Id
    """Name of the file without language and ending."""
    language: Language
    title: Text
    description: Text
    argument: Id
    """What may be given beside the language."""
    argument_description: Text
    text: Text
    """What the agent reads."""


class Skill(Frozen):
    """A folder that agents know as a skill."""

    name: Text
    description: Text
    files: dict[Text, Text]
    """Content by name; ``SKILL.md`` is the first."""


class SkillList(Frozen):
    """The skills that there are."""

    skills: tuple[Skill, ...]


class SkillsWritten(Frozen):
    """Where skills were written."""

    folder: Text
    written: tuple[Text, ...]
    kept: tuple[Text, ...]
    """Files that were there with other content and were left alone."""
    next: Text


class Snippet(Frozen):
    """What a program's configuration must say."""

    program: Text
    file: Text
    """Where it belongs; an empty place means the shell."""
    content: Text
    """Ready to paste."""
    command: str = ""
    """The one-liner that does the same, where the program has one."""
    notes: tuple[Text, ...] = ()
    source: Text
    """Where this is described."""


class Connection(Frozen):
    """How a client reaches a recipe's server."""

    recipe_id: Id
    client: Client
    base_url: Text
    """With ``/v1``."""
    model: Text
    running: bool | None
    """Whether the server is up now; null where Docker could not be asked."""
    snippet: Snippet
