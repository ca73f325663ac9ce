"""The walk itself: steps that are recorded as they are walked, and the two last ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

from sparkrecipes.errors import InstallFailed, SparkRecipesError
from sparkrecipes.operations.acts import Progress, run_round
from sparkrecipes.operations.reporting import compare
from sparkrecipes.operations.workspace import Workspace
from sparkrecipes.schema.round import Report, Round, Step
from sparkrecipes.schema.transfer import Transfer

State = Literal["done", "warned", "skipped", "failed", "simulated"]

StepName = Literal["check", "image", "download", "launch", "wait", "round", "report"]
STEPS: tuple[StepName, ...] = get_args(StepName)
"""The steps of every walk, in order: what a plan shows is what an install and a rehearsal walk."""


@dataclass
class Note:
    """What a step says when it ends.

    Attributes:
        message: One line that is kept with the step.
        state: How it ended.
        shown: What whoever watches is told, a line each; empty: the message.
    """

    message: str = ""
    state: State = "done"
    shown: tuple[str, ...] = ()


@dataclass
class Walk:
    """Records the steps as they are walked and tells whoever watches.

    Attributes:
        space: The catalog and the target.
        progress: Called with a line for people.
        steps: What was walked so far.
        kept: What a failure leaves in place.
    """

    space: Workspace
    progress: Progress | None = None
    steps: list[Step] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Tell whoever watches."""
        if self.progress:
            self.progress(line)

    def count(self, step: StepName, at: Transfer) -> None:
        """Tell whoever watches how far a transfer is."""
        self.say(at.line(step))

    @contextmanager
    def step(self, name: StepName | Literal["recommend"]) -> Iterator[Note]:
        """Walk one step; an error ends the walk and names the step and what is kept.

        Only a rehearsal of a use case recommends first.
        """
        note = Note()
        started = time.monotonic()
        self.say(f"{name} ...")
        try:
            yield note
        except SparkRecipesError as err:
            # The error itself is told by whoever catches it.
            self.add(name, Note(err.message, "failed", shown=("failed",)), started)
            raise InstallFailed(name, err, self.kept) from err
        self.add(name, note, started)

    def add(self, name: str, note: Note, started: float) -> None:
        """Record how a step ended."""
        seconds = round(time.monotonic() - started, 2)
        message = note.message or note.state
        self.steps.append(Step(step=name, state=note.state, message=message, seconds=seconds))
        first, *more = note.shown or (message,)
        self.say(f"{name}: {first}")
        for line in more:
            self.say(f"  {line}")

    def measure(
        self, recipe: str, base_url: str, *, users: int | None, full: bool, simulated: bool
    ) -> Round:
        """Run the round against an endpoint that serves a recipe.

        Raises:
            KeyboardInterrupt: The round was interrupted, with notes of what is kept.
        """
        with self.step("round") as note:
            measured = run_round(
                recipe,
                base_url=base_url,
                quick=not full,
                users=users,
                catalog=self.space.catalog,
                machine=self.space.machine,
                progress=self.progress,
                simulated=simulated,
            )
            if measured.interrupted:
                stop = KeyboardInterrupt()
                stop.add_note(f"what was measured is in {measured.saved_to}")
                if not simulated:
                    stop.add_note(f"the server runs on; end it with: sparkrecipes stop {recipe}")
                raise stop
            note.message = f"{measured.stability.requests} requests, saved in {measured.saved_to}"
            if simulated:
                note.state = "simulated"
        return measured

    def compare(self, recipe: str, measured: Round) -> Report:
        """Compare a round with the published figures of its recipe."""
        with self.step("report") as note:
            report = compare(measured, recipe=recipe, catalog=self.space.catalog)
            note.message = report.summary
            note.shown = (report.verdict,)
            if report.verdict in ("slower", "unstable"):
                note.state = "warned"
        return report
