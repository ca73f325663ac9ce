"""Rollback: what an install that fails takes back, and what it leaves.

Only the container that it made is removed, by its id. Its log is kept, for the container's own goes
with it; weights, image and everybody else's containers stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparkrecipes import containers
from sparkrecipes.errors import InstallFailed, SparkRecipesError
from sparkrecipes.operations.journal import Journal
from sparkrecipes.operations.walk import Note, Walk
from sparkrecipes.schema.serving import Server

LOG_LINES = 10_000


@dataclass
class JournaledWalk(Walk):
    """A walk whose steps a later install can read, and which takes back what it made.

    Attributes:
        journal: Where they are written.
    """

    journal: Journal = field(kw_only=True)

    def add(self, name: str, note: Note, started: float) -> None:
        """Record how a step ended, on disk as well."""
        super().add(name, note, started)
        self.journal.note(f"{name}: {note.state}")

    @contextmanager
    def undone_on_failure(self, server: Server) -> Iterator[None]:
        """Remove the container that this install made, if the walk does not end well.

        Raises:
            InstallFailed: As it was raised, with what was kept and a repair that does not name
                the log of a container that is gone.
        """
        self.journal.note_container(server.container_id)
        try:
            yield
        except InstallFailed as err:
            repair = self.undo(server, err)
            cause = err.__cause__
            if not isinstance(cause, SparkRecipesError):
                raise
            raise InstallFailed(err.step, cause, self.kept, repair=repair) from cause
        except BaseException as err:
            self.undo(server, None)
            kept = f", kept: {'; '.join(self.kept)}" if self.kept else ""
            again = f"go on with: sparkrecipes install {server.recipe_id}"
            err.add_note(f"removed {server.name}{kept}; {again}")
            raise

    def undo(self, server: Server, err: InstallFailed | None) -> str:
        """Keep a container's log and remove the container; return what to do next."""
        kept = self.keep_log(server)
        try:
            containers.remove(server.container_id)
        except SparkRecipesError as refused:
            self.kept.append(
                f"container {server.name}, which could not be removed ({refused.message}): "
                f"sparkrecipes stop {server.recipe_id}"
            )
        else:
            self.journal.note_container(None)
            self.say(f"removed {server.name}")
        repair = err.repair if err else ""
        if err and err.code == "still_loading":
            acts = [f"sparkrecipes {act} {server.recipe_id}" for act in ("launch", "wait")]
            return f"wait longer by hand: {' && '.join(acts)} --timeout 7200"
        return repair.replace(f"sparkrecipes logs {server.recipe_id}", kept) if kept else repair

    def keep_log(self, server: Server) -> str:
        """Keep the log of a container that is about to go; return the command that reads it."""
        try:
            lines = containers.logs(server.name, lines=LOG_LINES).lines
        except SparkRecipesError:
            return ""
        path = self.journal.keep_log(lines)
        if path is None:
            return ""
        self.kept.append(f"log {path}")
        return f"sparkrecipes diagnose {path}"
