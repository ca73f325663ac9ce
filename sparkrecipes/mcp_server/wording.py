"""Words for agents: tool calls in place of commands, texts of others bounded and clean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from sparkrecipes.redaction import redact

LONGEST = 240
"""Characters of one text from a recipe, a registry or a log that are given."""

CALLS = (
    ("jobs wait ID", 'get_job(job_id="ID", wait_s=45)'),
    ("jobs show ID --lines 50", 'get_job(job_id="ID", log_lines=50)'),
    ("jobs show ID", 'get_job(job_id="ID")'),
    ("jobs cancel ID", 'cancel_job(job_id="ID")'),
    ("jobs start ID", 'start_install(plan_id="ID")'),
    ("jobs list", "list_jobs()"),
    ("round --base-url ID", 'start_round(base_url="ID")'),
    ("round ID", 'start_round(recipe_id="ID")'),
    ("diagnose --server ID", 'diagnose(server="ID")'),
    ("logs ID", 'diagnose(server="ID")'),
    ("wait ID", 'diagnose(server="ID")'),
    ("show ID", 'get_recipe(recipe_id="ID")'),
    ("command ID", 'get_recipe(recipe_id="ID", detail="full")'),
    ("fit ID", 'estimate_memory(recipe_or_model="ID")'),
    ("check ID", 'check_recipe(recipe_id="ID")'),
    ("install ID", 'plan_install(recipe_id="ID")'),
    ("launch ID", 'plan_install(recipe_id="ID")'),
    ("download ID", 'plan_install(recipe_id="ID")'),
    ("rehearse ID", 'plan_install(recipe_id="ID", rehearse=true)'),
    ("recommend ID", 'search_recipes(use_case="ID")'),
    ("stop ID", 'stop_server(name="ID")'),
    ("status", "list_servers()"),
    ("probe", "check_recipe()"),
    ("list", "search_recipes()"),
)
"""The call that does what a command does; other commands stay as they are."""

SUBJECT = r"([A-Za-z0-9](?:[A-Za-z0-9._:/@+-]*[A-Za-z0-9/])?)"
RULES = tuple(
    (
        re.compile(rf"(run: )?\bsparkrecipes {re.escape(command).replace('ID', SUBJECT)}\b"),
        written,
    )
    for command, written in CALLS
)
SIZES = r"((?:, (?:context_tokens|users)=\d+)*)"
PLACEHOLDERS = frozenset(("RECIPE", "ID", "REF"))
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def as_tools(text: str) -> str:
    """Put tool calls in place of the commands in a text."""
    for pattern, written in RULES:
        text = pattern.sub(partial(filled, written), text)
    return text


def filled(written: str, found: re.Match[str]) -> str:
    """Write one call; a placeholder like RECIPE stays open."""
    subject = str(found[2]) if found.re.groups > 1 else ""
    call = written.replace("ID", subject)
    if subject in PLACEHOLDERS:
        call = call.replace(f'"{subject}"', "...")
    return f"call {call}" if found[1] else call


def without_tools(value: Any, missing: Collection[str]) -> Any:
    """Put commands in place of the tools that a server does not have, in what is to be done next.

    Args:
        value: The facts of an answer.
        missing: Names of tools that it does not have.
    """
    if isinstance(value, dict):
        return {
            key: as_commands(item, missing)
            if key in ("next", "repair") and isinstance(item, str)
            else without_tools(item, missing)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_tools(item, missing) for item in value]
    return value


def as_commands(text: str, missing: Collection[str]) -> str:
    """Put commands, for the person to run, in place of calls of some tools."""
    for command, written in CALLS:
        if written.partition("(")[0] in missing:
            call = re.escape(written).replace('"ID"', r'(?:"([^"]*)"|\.\.\.)')
            call = call.removesuffix(r"\)") + SIZES + r"\)"
            text = re.sub(f"(call )?{call}", partial(run_instead, command), text)
    return text


def run_instead(command: str, found: re.Match[str]) -> str:
    """Write a command in place of a call that was found."""
    who = "the person may run: " if found[1] else ""
    subject = found[2] if found.re.groups > 2 else ""
    sizes = re.sub(r", (context|users)(?:_tokens)?=", r" --\1 ", found[found.re.groups])
    return f"{who}sparkrecipes {command.replace('ID', subject or 'RECIPE')}{sizes}"


def clip(text: str, longest: int = LONGEST) -> str:
    """Return a text in one line, bounded, without secrets and control characters."""
    line = CONTROL.sub(" ", redact(text)).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def ours(text: str, longest: int = LONGEST) -> str:
    """Return a text of our own, bounded, with tool calls in place of commands."""
    return clip(as_tools(text), longest)


def clipped(texts: Iterable[str], most: int, longest: int = LONGEST) -> list[str] | None:
    """Return the first texts, bounded; None where there are none. What is left out is counted."""
    found = [text for text in texts if text]
    shown = [clip(text, longest) for text in found[:most]]
    if len(found) > most:
        shown.append(f"and {len(found) - most} more")
    return shown or None
