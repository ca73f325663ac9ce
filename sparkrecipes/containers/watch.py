"""A watch on one container while it is waited for: its log, its state and the host's memory."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sparkrecipes import machine as hosts
from sparkrecipes.containers.description import Container, inspect_one
from sparkrecipes.containers.endpoint import Seen
from sparkrecipes.containers.loading import Loading, duration
from sparkrecipes.containers.servers import MOST_LINES, log_tail
from sparkrecipes.errors import Unknown
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.serving import Server

TAIL_LINES = 200
"""Log lines that an error carries: the cause stands above the wall of tracebacks."""

HEARTBEAT_S = 60.0
"""After so long without news whoever watches is told that it still goes on."""

CRASH_LOOP_RESTARTS = 2
"""Restarts while waiting: one may heal (a warm compile cache), a second one repeats itself."""

SIGKILL_EXIT = 137

LOW_LOOKS = 2
"""Looks in a row at which memory must be short: one may be a moment's page cache."""

Progress = Callable[[str], None]


@dataclass
class Watch:
    """A container while it is waited for.

    Attributes:
        server: As it was when the wait began.
        engine: Whose log lines are milestones.
        progress: Called with a line for each milestone, each tenth of the shards, and a heartbeat.
        loading: How far it has come.
        floor_bytes: MemAvailable below which the host is about to freeze; None: not looked at.
        milestones: Those seen so far.
        last_line: The newest log line.
        changed_at: When the log last changed, on the monotonic clock, in s.
        told_at: When whoever watches last heard anything, likewise.
        low: Looks in a row at which memory was short.
    """

    server: Server
    engine: Engine
    progress: Progress | None = None
    loading: Loading = field(default_factory=Loading)
    floor_bytes: int | None = None
    milestones: list[str] = field(default_factory=list)
    last_line: str = ""
    changed_at: float = field(default_factory=time.monotonic)
    told_at: float = field(default_factory=time.monotonic)
    low: int = 0

    def __post_init__(self) -> None:
        self.started_at = time.monotonic() - age_s(self.server)

    @property
    def now_s(self) -> float:
        """Seconds since the container's start."""
        return time.monotonic() - self.started_at

    def look(self) -> Seen | None:
        """Read log, state and memory; None while nothing speaks against waiting.

        An engine that cannot be asked for a moment is no reason to give up: the endpoint may
        answer all the same.
        """
        try:
            self.read_log()
            return self.short_of_memory() or ended(
                inspect_one(self.server.container_id), self.server
            )
        except Unknown:
            return None

    def short_of_memory(self) -> Seen | None:
        """Say that the host is about to freeze, before it does.

        A limit of the container would not catch what the driver takes on unified memory, and the
        kernel's own killer comes too late there.
        Source: MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#193.
        """
        live = hosts.live_memory() if self.floor_bytes else None
        if live is None or self.floor_bytes is None or live[1] >= self.floor_bytes:
            self.low = 0
            return None
        self.low += 1
        if self.low < LOW_LOOKS:
            return None
        return Seen(
            "failed",
            "memory_low",
            f"only {live[1] / 2**30:.1f} GiB of the host's memory are left while it loads, and "
            f"below {self.floor_bytes / 2**30:.1f} GiB the host may freeze",
            f"end it: sparkrecipes stop {self.server.recipe_id}, then ask for less: "
            f"sparkrecipes fit {self.server.recipe_id}",
        )

    def read_log(self) -> None:
        """Note new milestones, in the engine's order, and whether the log moves."""
        lines = self.tail(MOST_LINES if not self.last_line else TAIL_LINES)
        if lines and lines[-1] != self.last_line:
            self.last_line, self.changed_at = lines[-1], time.monotonic()
        for milestone in self.engine.milestones:
            if milestone.says in self.milestones:
                continue
            if any(re.search(milestone.pattern, line) for line in lines):
                self.milestones.append(milestone.says)
                self.tell(milestone.says)
        if step := self.loading.read(lines, self.now_s):
            self.tell(step)
        if time.monotonic() - self.told_at > HEARTBEAT_S:
            self.tell(f"still starting after {duration(self.now_s)}")

    def tell(self, words: str) -> None:
        """Tell whoever watches, with the time that is left where that is known."""
        self.told_at = time.monotonic()
        if self.progress:
            left = self.loading.time_words(self.now_s)
            self.progress(f"{words}, {left}" if left else words)

    def moved_within(self, seconds: float) -> bool:
        """Tell whether the log changed in the last ``seconds``."""
        return time.monotonic() - self.changed_at < seconds

    def tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the last log lines, or none where there are none to have."""
        try:
            return log_tail(self.server.container_id, lines)
        except Unknown:
            return ()


def age_s(server: Server) -> float:
    """Return how long a container has run, in s; 0 where Docker does not say."""
    try:
        started = datetime.fromisoformat(server.started_at or "")
    except ValueError:
        return 0.0
    return max((datetime.now(UTC) - started).total_seconds(), 0.0) if started.tzinfo else 0.0


def ended(container: Container | None, server: Server) -> Seen | None:
    """Say what a container's state means for waiting; None where it may still get ready."""
    see = f"see: sparkrecipes logs {server.recipe_id}"
    if container is None:
        return Seen(
            "failed",
            "gone",
            "the container was removed while it was waited for",
            "who removes containers? see: docker events --since 10m --filter event=destroy",
        )
    if container.restarts - server.restarts >= CRASH_LOOP_RESTARTS:
        return Seen(
            "failed",
            "crash_loop",
            f"Docker started it {container.restarts} times again; its last exit code was "
            f"{container.exit_code}",
            f"stop it: sparkrecipes stop {server.recipe_id}",
        )
    if not container.ended:
        return None
    if container.oom_killed:
        return Seen(
            "failed",
            "oom_killed",
            "the kernel killed it: it went over the container's own memory limit",
            "raise the container's memory limit, or ask for less context",
        )
    if container.exit_code == SIGKILL_EXIT:
        return killed(server)
    return Seen("failed", "exited", f"it ended with exit code {container.exit_code}", see)


def killed(server: Server) -> Seen:
    """Say what exit code 137 means where Docker does not call it an OOM kill.

    A kill for want of memory on the whole host is not the container's own limit, so that
    ``OOMKilled`` stays false; on unified memory the GPU's pages count and may come back late.
    Source: MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#193.
    """
    return Seen(
        "failed",
        "host_oom",
        "it was killed (exit code 137), most likely because the whole host ran out of memory",
        "see: sudo dmesg | grep -i oom-kill; wait until memory is back (sparkrecipes probe), then "
        f"check: sparkrecipes fit {server.recipe_id}",
    )
