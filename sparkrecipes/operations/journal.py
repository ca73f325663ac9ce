"""What an install has done, on disk: a later one goes on with it, and two never run at once.

One file of this user's state folder holds the steps of the last install that did not come to its
end, and which container it made. Docker and the weights cache hold the rest. No secret is in it:
steps say only what every user may see, and pass through the same redaction as logs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkrecipes.errors import Refused
from sparkrecipes.redaction import redact

LIMIT_BYTES = 2**20


def state_folder() -> Path:
    """Return the folder of installs: ``sparkrecipes/installs`` in the user's state folder."""
    from platformdirs import user_state_path

    return user_state_path("sparkrecipes") / "installs"


@dataclass
class Journal:
    """The steps of one install.

    Attributes:
        recipe_id: What is installed.
        path: The file; None where the state folder cannot be written.
        before: Steps of an earlier install of the same recipe that did not come to its end.
        made: The container that an install of this recipe made, by id; None: none yet.
        steps: What was done, a line each.
    """

    recipe_id: str
    path: Path | None
    before: tuple[str, ...] = ()
    made: str | None = None
    steps: list[str] = field(default_factory=list)

    def note(self, step: str) -> None:
        """Write a step down."""
        self.steps.append(redact(step))
        self.save()

    def note_container(self, container_id: str | None) -> None:
        """Write down which container this install made, or that it is gone."""
        self.made = container_id
        self.save()

    def save(self) -> None:
        """Write the file, so that a reader never sees half of it; a full disk ends no install."""
        if self.path is None:
            return
        text = json.dumps({"recipe": self.recipe_id, "made": self.made, "steps": self.steps})
        draft = self.path.with_suffix(".partial")
        with suppress(OSError):
            draft.write_text(text)
            draft.replace(self.path)

    def keep_log(self, lines: Sequence[str]) -> Path | None:
        """Keep the log of a container that is about to be removed; None where it cannot be."""
        if self.path is None:
            return None
        log = self.path.with_suffix(".log")
        try:
            log.touch(mode=0o600)
            log.write_text(redact("\n".join(lines)) + "\n")
        except OSError:
            return None
        return log

    def close(self) -> None:
        """The install came to its end: nothing is left to go on with."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path.with_suffix(".log").unlink(missing_ok=True)


@contextmanager
def open_journal(recipe_id: str, folder: Path | None = None) -> Iterator[Journal]:
    """Open the journal of an install, and keep every other install of this user out meanwhile.

    Memory is one for all models, so that it is one install at a time, whatever the recipe. Where
    the state folder cannot be written there is no journal and no lock: Docker still refuses a
    second container of the same name.

    Raises:
        Refused: Another install runs; it is named.
    """
    place = folder or state_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = (place / "lock").open("a+")
    except OSError:
        yield Journal(recipe_id, None)
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise busy(lock.read(200)) from None
        with suppress(OSError):  # a full disk: who runs is not named, but others are kept out
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), f"{recipe_id}, process {os.getpid()}".encode())
        path = place / f"{recipe_id}.json"
        earlier = read(path)
        yield Journal(recipe_id, path, earlier.get("steps", ()), earlier.get("made"))


def busy(who: str) -> Refused:
    """Say that another install runs, and which."""
    return Refused(
        f"another install is running ({who or 'not named'}): both would load into the same memory",
        code="install_running",
        repair="wait for it, or look: sparkrecipes status",
    )


def read(path: Path) -> dict[str, Any]:
    """Read what an interrupted install left; nothing where that is no journal."""
    try:
        if path.stat().st_size > LIMIT_BYTES:
            return {}
        data = json.loads(path.read_text())
        made, steps = data.get("made"), tuple(str(step) for step in data.get("steps", ()))
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
    return {"made": made if isinstance(made, str) else None, "steps": steps}
