"""What a foreign file says, in our words: its reader fills this, and the recipe is made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sparkrecipes.engine_flags import holds_secret
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.importing import ForeignFormat, NotCarried
from sparkrecipes.strict_yaml.document import shown
from sparkrecipes.strict_yaml.scalars import UNSEEN

_NAMED_SECRET = re.compile(
    r"((?:--api-key|--hf-token)[ =]|\w*(?:TOKEN|API_?KEY|SECRET|PASSWORD|PASSWD)\w*\s*[=:]\s*)\S+",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Hide what stands where a secret would, and all of a text that holds one."""
    hidden = _NAMED_SECRET.sub(r"\1***", text[:4000])
    return "*** (it holds a secret)" if holds_secret(hidden) else hidden


@dataclass(frozen=True)
class Word:
    """A value with its place.

    Attributes:
        text: The value.
        line: Where it stands, from 1.
        expands: Whether a shell or a tool would put something else in its place.
    """

    text: str
    line: int
    expands: bool = False


@dataclass
class Found:
    """What was found in a file, and what was left out.

    Attributes:
        file: The file's name.
        format: How it was read.
        title: One line for people.
        image: The container image.
        model: The model, where the file names it beside the command.
        revision: Its revision, likewise.
        engine: What serves, by the name that the file has for it.
        arguments: What the engine is given.
        env: The engine's environment.
        added_env: Variables that this tool set when it wrote the file, by name.
        shm_size: Shared memory.
        startup_timeout_s: How long a start may take.
        not_carried: What the recipe will not say.
    """

    file: str
    format: ForeignFormat
    title: str | None = None
    image: Word | None = None
    model: Word | None = None
    revision: Word | None = None
    engine: str | None = None
    arguments: list[Word] = field(default_factory=list)
    env: dict[str, Word] = field(default_factory=dict)
    added_env: set[str] = field(default_factory=set)
    shm_size: Word | None = None
    startup_timeout_s: int | None = None
    not_carried: list[NotCarried] = field(default_factory=list)

    def drop(self, line: int, what: str, why: str) -> None:
        """Note what the recipe will not say, without any secret that it may hold."""
        told = UNSEEN.sub(" ", shown(without_secrets(what))) or "(empty)"
        self.not_carried.append(NotCarried(line=max(1, line), what=told, why=why))

    def refusal(self, line: int, code: str, message: str, repair: str) -> CatalogError:
        """Return the error that gives up on the file, with the place and what to do."""
        place = f"{self.file}:{max(1, line)}"
        told = f"{place}: {without_secrets(message)}"
        return CatalogError(UNSEEN.sub("?", told), code=code, repair=without_secrets(repair))
