"""Finding the command that serves among shell commands, and taking the program off its front."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from sparkrecipes.importing.found import Found, Word
from sparkrecipes.importing.shell_text import Line, ShellError, split

PROGRAMS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("vllm", "serve"), "vllm"),
    (("-m", "vllm.entrypoints.openai.api_server"), "vllm"),
    (("-m", "vllm.entrypoints.cli.main", "serve"), "vllm"),
    (("nim-serve",), "nim"),
    (("sglang", "serve"), "sglang"),
    (("-m", "sglang.launch_server"), "sglang"),
    (("llama-server",), "llama.cpp"),
    (("trtllm-serve", "serve"), "trtllm"),
    (("trtllm-serve",), "trtllm"),
    (("atlas", "serve"), "atlas"),
)
"""How engines are called, and which one it is; ``-m`` follows a Python.

Source: the engines' own pages, and how sparkrun tells them (its RECIPES.md, Runtime Resolution).
"""

IMAGES: tuple[tuple[str, str], ...] = (
    ("nvcr.io/nim/", "nim"),
    ("sglang", "sglang"),
    ("llama", "llama.cpp"),
    ("tensorrt-llm", "trtllm"),
    ("atlas", "atlas"),
    ("vllm", "vllm"),
)
"""What the name of an image tells of its engine; the first that is found counts."""

SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(.*/)?python(3(\.\d+)?)?")
MAX_NESTING = 3
"""How often a command may be a text inside a command (``bash -c``)."""


def split_or_refuse(found: Found, text: str, line: int) -> list[Line]:
    """Take a shell text apart.

    Raises:
        CatalogError: It is none that a shell would take, with the line.
    """
    try:
        commands = split(text, line)
    except ShellError as error:
        raise found.refusal(error.line, "bad_command", str(error), "correct the command") from None
    for before, after in itertools.pairwise(commands):
        first = after.words[0]
        if after.after == "\n" and first.text.startswith("-"):
            raise found.refusal(
                first.line,
                "cut_command",
                f"{first.text[:40]} starts a command of its own: line {before.words[-1].line} "
                "does not end in a backslash",
                "end that line with a backslash",
            )
    return commands


def take_commands(found: Found, commands: Sequence[Line], nesting: int = 0) -> None:
    """Take the command that serves, and note the others: none of them is run."""
    taken = False
    for command in commands:
        words = without_assignments(found, command.words)
        if not taken and words and is_serving(words):
            take_serving(found, words, nesting)
            taken = True
        elif words:
            line = words[0].line
            text = " ".join(word.text for word in words)
            found.drop(line, text, "another command of the text; an import runs nothing")


def is_serving(words: Sequence[Word]) -> bool:
    """Tell whether a command starts an engine, itself or through a shell."""
    return program_of(words) is not None or script_of(words) is not None


def take_serving(found: Found, words: Sequence[Word], nesting: int = 0) -> None:
    """Take the arguments of an engine; without a program before them, all are arguments."""
    script = script_of(words)
    if script is not None:
        if nesting >= MAX_NESTING:
            raise found.refusal(
                script.line, "bad_command", "shells inside shells", "write one command"
            )
        take_commands(found, split_or_refuse(found, script.text, script.line), nesting + 1)
        return
    program = program_of(words)
    if program is None:
        found.arguments = list(words)
        return
    length, found.engine = program
    found.arguments = list(words[length:])


def program_of(words: Sequence[Word]) -> tuple[int, str] | None:
    """Return how many words name the engine's program, and the engine; None: no engine's."""
    texts = [word.text for word in words[:5]]
    if texts and texts[0] == "exec":
        inner = program_of(words[1:])
        return (inner[0] + 1, inner[1]) if inner else None
    skip = 1 if texts and _PYTHON.fullmatch(texts[0]) else 0
    for names, engine in PROGRAMS:
        if (names[0] == "-m") != bool(skip):
            continue
        given = texts[skip : skip + len(names)]
        if given and (given[0].rpartition("/")[2], *given[1:]) == names:
            return skip + len(names), engine
    return None


def script_of(words: Sequence[Word]) -> Word | None:
    """Return the text that a shell is given with ``-c``, or None."""
    if len(words) < 3 or words[0].text not in SHELLS:
        return None
    for option, script in itertools.pairwise(words):
        if not option.text.startswith("-"):
            return None
        if option.text.endswith("c") and not option.text.startswith("--"):
            return script
    return None


def without_assignments(found: Found, words: Sequence[Word]) -> list[Word]:
    """Take the variables that stand before a command into the environment."""
    rest = list(words)
    if rest and rest[0].text in ("export", "env"):
        rest = rest[1:]
    while rest and (assigned := _ASSIGNMENT.fullmatch(rest[0].text)):
        word = rest.pop(0)
        found.env[assigned[1]] = Word(assigned[2], word.line, word.expands)
    return rest


def engine_of_image(image: str) -> str | None:
    """Tell the engine by the name of the image, where that is one of the known ones."""
    return next((engine for part, engine in IMAGES if part in image.lower()), None)
