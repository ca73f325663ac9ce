"""Reading a ``docker run`` line, or a plain ``vllm serve`` one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparkrecipes.commands import ADDED_LABEL
from sparkrecipes.errors import nearest
from sparkrecipes.importing.docker_options import ALONE, DECIDED, SHORT, WHY, WITH_VALUE
from sparkrecipes.importing.found import Found, Word
from sparkrecipes.importing.serving import (
    is_serving,
    split_or_refuse,
    take_commands,
    take_serving,
)
from sparkrecipes.importing.shell_text import Line

DOCKER = ("docker", "podman", "nerdctl")
LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_text(found: Found, text: str) -> None:
    """Read a shell text that holds the command."""
    take_text(found, split_or_refuse(found, text, 1))


def take_text(found: Found, commands: Sequence[Line]) -> None:
    """Take the first ``docker run`` among commands, else the first that serves."""
    starts = [docker_words(command.words) for command in commands]
    at = next((index for index, words in enumerate(starts) if words is not None), None)
    if at is None:
        take_commands(found, commands)
        return
    for index, command in enumerate(commands):
        if index != at:
            text = " ".join(word.text for word in command.words)
            why = "another command of the text; an import runs nothing"
            found.drop(command.words[0].line, text, why)
    read_words(found, starts[at] or ())


def docker_words(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return what follows ``docker run``; None where that is not what the command is."""
    texts = [word.text for word in words]
    start = 1 if texts[:1] == ["sudo"] else 0
    while start < len(texts) and re.fullmatch(r"[A-Za-z_]\w*=.*", texts[start], re.DOTALL):
        start += 1
    if start >= len(texts) or texts[start].rpartition("/")[2] not in DOCKER:
        return None
    rest = texts[start + 1 : start + 3]
    if rest[:1] in (["run"], ["create"]):
        return words[start + 2 :]
    return words[start + 3 :] if rest == ["container", "run"] else None


def read_words(found: Found, words: Sequence[Word]) -> None:
    """Read the arguments of ``docker run``: options, the image, what the engine is given."""
    at = 0
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        at += _option(found, words, at)
    if at >= len(words):
        line = words[-1].line if words else 1
        raise found.refusal(
            line, "no_image", "no image follows the options", "give the whole command"
        )
    found.image = words[at]
    arguments = words[at + 1 :]
    if is_serving(arguments):
        take_serving(found, arguments)
    else:
        found.arguments = list(arguments)


def _option(found: Found, words: Sequence[Word], at: int) -> int:
    """Take one option; return how many words it was."""
    word = words[at]
    if not word.text.startswith("--"):
        return _short(found, words, at)
    name, equals, value = word.text.partition("=")
    if name in ALONE:
        if value != "false":
            _take(found, name, Word("", word.line))
        return 1
    if equals:
        _take(found, name, Word(value, word.line, word.expands))
        return 1
    if name not in WITH_VALUE:
        near = nearest(name, WITH_VALUE | ALONE)
        repair = f"did you mean {near[0]}? " if near else ""
        raise found.refusal(
            word.line,
            "unknown_option",
            f"docker run has no option {name[:40]} that is known here: whether a value follows, "
            "and so where the image stands, is open",
            f"{repair}write it as {name[:40]}=VALUE, or leave it out",
        )
    _take(found, name, _value(found, words, at))
    return 2


def _short(found: Found, words: Sequence[Word], at: int) -> int:
    word = words[at]
    for index, letter in enumerate(word.text[1:], start=1):
        name = SHORT.get(letter)
        if name is None:
            raise found.refusal(
                word.line,
                "unknown_option",
                f"docker run has no option -{letter}",
                "leave it out, or write its long name",
            )
        if name in ALONE:
            _take(found, name, Word("", word.line))
            continue
        rest = word.text[index + 1 :].removeprefix("=")
        if rest:
            _take(found, name, Word(rest, word.line, word.expands))
            return 1
        _take(found, name, _value(found, words, at))
        return 2
    return 1


def _value(found: Found, words: Sequence[Word], at: int) -> Word:
    if at + 1 >= len(words):
        raise found.refusal(
            words[at].line, "no_image", "a value is missing", "give the whole command"
        )
    return words[at + 1]


def _take(found: Found, name: str, value: Word) -> None:
    """Take one option with its value."""
    if name == "--env":
        take_env(found, value)
    elif name == "--label":
        take_label(found, value.text)
    elif name == "--shm-size":
        found.shm_size = value
    elif (
        (name == "--publish" and value.text.startswith(LOOPBACK))
        or (name == "--gpus" and value.text.strip("\"'") in ("all", "1", "device=0"))
        or (name in ("--ipc", "--network", "--net") and value.text not in ("host", ""))
        or (name == "--restart" and value.text == "no")
        or (name in ("--volume", "--mount") and is_weights_cache(value.text))
    ):
        return
    elif name not in DECIDED or name == "--gpus":
        shown = f"{name} {value.text}".rstrip()
        found.drop(value.line, shown, WHY.get(name, "a recipe has no place for it"))


def take_env(found: Found, value: Word) -> None:
    """Take a variable; one that is passed by name has no value to carry."""
    name, equals, text = value.text.partition("=")
    if not _ENV_NAME.fullmatch(name):
        found.drop(value.line, value.text, "it is no name of a variable")
    elif not equals:
        found.drop(value.line, name, "passed by name: what it holds is not in the file")
    else:
        found.env[name] = Word(text, value.line, value.expands)


def take_label(found: Found, label: str) -> None:
    """Take our own note of what the command set beside the recipe; other labels say nothing."""
    name, _, value = label.partition("=")
    if name == ADDED_LABEL:
        found.added_env |= set(value.split(","))


def is_weights_cache(mount: str) -> bool:
    """Tell whether a mount is a Hugging Face cache, which the tool mounts itself."""
    return "huggingface" in mount or "/models--" in mount or "blobs" in mount
