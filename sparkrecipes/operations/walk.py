"""The walk itself: steps that are recorded as they are walked, and the two last ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from sparkrecipes.errors import InstallFailed, SparkRecipesError
from sparkrecipes.operations.acts import Progress, run_round
from sparkrecipes.operations.reporting import compare
from sparkrecipes.operations.workspace import Workspace
from sparkrecipes.schema.findings import CheckReport
from sparkrecipes.schema.round import Report, Round, Step

LEVELS = {"blocker": "blockers", "unknown": "unknown", "warning": "warnings", "ok": "ok"}
"""The levels of a finding, the worst first, with the word for several."""

State = Literal["done", "warned", "skipped", "failed", "simulated"]


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

    @contextmanager
    def step(self, name: str) -> Iterator[Note]:
        """Walk one step; an error ends the walk and names the step and what is kept."""
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
        """Run the round against an endpoint that serves a recipe."""
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


def summary_of(report: CheckReport) -> str:
    """Count a check's findings in a few words, the worst first."""
    counts: Counter[str] = Counter(f.level for f in report.findings)
    found = ", ".join(
        f"{counts[level]} {level if counts[level] == 1 else several}"
        for level, several in LEVELS.items()
        if counts[level]
    )
    return f"{report.verdict} ({found})"
