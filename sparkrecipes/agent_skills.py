"""Prompts and skills for agents, all from the files of ``agent_prompts/``.

One file a prompt and language: a few lines of front matter, then the text. An MCP prompt, an Agent
Skill and a text to paste are the same words.

Source of the skills' form: https://agentskills.io/specification (a folder with SKILL.md, whose
front matter has ``name``, the folder's own, and ``description``).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args

from sparkrecipes.catalog_files import data_root
from sparkrecipes.errors import CatalogError, Misuse, UnknownId
from sparkrecipes.schema.agent import AgentPrompt, Language, Skill, SkillList, SkillsWritten

FOLDER = "agent_prompts"
FILE_NAME = re.compile(r"([a-z_]+)\.(en|es)\.md")
KEYS = ("title", "description", "argument")
PREFIX = "sparkrecipes"
LANGUAGES: tuple[Language, ...] = get_args(Language)


@cache
def prompts() -> dict[tuple[str, Language], AgentPrompt]:
    """Load all prompts, by name and language.

    Raises:
        CatalogError: A file is not what a prompt must be.
    """
    found = {}
    for path in sorted((data_root() / FOLDER).glob("*.md")):
        named = FILE_NAME.fullmatch(path.name)
        if named is None:
            raise broken(path, "its name is not NAME.en.md or NAME.es.md")
        language: Language = "en" if named[2] == "en" else "es"
        found[named[1], language] = read_prompt(path, named[1], language)
    return found


def names() -> tuple[str, ...]:
    """List the prompts' names."""
    return tuple(dict.fromkeys(name for name, _ in prompts()))


def prompt(name: str, language: Language = "en") -> AgentPrompt:
    """Return one prompt.

    Raises:
        UnknownId: There is none of that name.
    """
    found = prompts().get((name, language))
    if found is None:
        raise UnknownId("prompt", name, names(), see="sparkrecipes skills list")
    return found


def read_prompt(path: Path, name: str, language: Language) -> AgentPrompt:
    """Read one file.

    Raises:
        CatalogError: It lacks a line of its front matter.
    """
    head, _, text = path.read_text().removeprefix("---\n").partition("\n---\n")
    lines = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if set(lines) != set(KEYS) or not text.strip():
        raise broken(path, f"its front matter must have {', '.join(KEYS)}, and a text follows")
    argument, _, described = lines["argument"].partition(": ")
    return AgentPrompt(
        name=name,
        language=language,
        title=lines["title"],
        description=lines["description"],
        argument=argument,
        argument_description=described,
        text=text.strip() + "\n",
    )


def broken(path: Path, why: str) -> CatalogError:
    """Describe a prompt file that cannot be used."""
    return CatalogError(f"{path} is no prompt: {why}", repair="mend the file, or reinstall")


def filled(name: str, language: Language, given: str | None) -> str:
    """Return a prompt's text with what was given beside it."""
    found = prompt(name, language)
    if not given:
        return found.text
    word = "Given" if language == "en" else "Dado"
    return f"{found.text}\n{word}: {found.argument} = {given}\n"


def skill_name(name: str) -> str:
    """Name the skill of a prompt."""
    return f"{PREFIX}-{name.replace('_', '-')}"


def skill(name: str) -> Skill:
    """Return a skill: the English prompt as SKILL.md, the Spanish one beside it.

    Args:
        name: The prompt's name or the skill's.
    """
    plain = name.removeprefix(f"{PREFIX}-").replace("-", "_")
    english, spanish = prompt(plain, "en"), prompt(plain, "es")
    called = skill_name(plain)
    head = f"---\nname: {called}\ndescription: {quoted(english.description)}\n---\n\n"
    return Skill(
        name=called,
        description=english.description,
        files={
            "SKILL.md": f"{head}{english.text}\nEn español: [es.md](es.md)\n",
            "es.md": spanish.text,
        },
    )


def quoted(text: str) -> str:
    """Write a text as a YAML scalar that nothing in it can end."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def skills() -> SkillList:
    """Return all skills."""
    return SkillList(skills=tuple(skill(name) for name in names()))


def write_skills(folder: Path) -> SkillsWritten:
    """Write the skills below a folder that agents read, e.g. ``.agents/skills``.

    A file that is there with other content is left alone.

    Raises:
        Misuse: The folder cannot be written.
    """
    written, kept = [], []
    try:
        for one in skills().skills:
            for name, content in one.files.items():
                path = folder / one.name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and path.read_text() != content:
                    kept.append(str(path))
                    continue
                path.write_text(content)
                written.append(str(path))
    except OSError as err:
        raise Misuse(
            f"{err.filename or folder} cannot be written: {err.strerror}",
            repair="name a folder that you may write: sparkrecipes skills add --dir .agents/skills",
        ) from err
    return SkillsWritten(
        folder=str(folder),
        written=tuple(written),
        kept=tuple(kept),
        next="start the agent in this folder; it finds the skills by their descriptions",
    )
