"""Readiness: wait for a real completion, and say at once when none will come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkrecipes.containers.endpoint import Endpoint, Seen, new_client
from sparkrecipes.containers.servers import Container, inspect_one, log_tail
from sparkrecipes.errors import NotReady, Unknown
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Readiness, Server

POLL_S = 1.0
SHORTEST_LOOK_S = 0.5

TAIL_LINES = 200
"""Log lines that an error carries: the cause stands above the wall of tracebacks."""

QUIET_S = 120.0
"""A log that said something within this time belongs to an engine that is still loading.

Source: NVIDIA/NemoClaw#3886, where a shard took 28 s and a fixed limit gave up half-way.
"""

CRASH_LOOP_RESTARTS = 2
"""Restarts while waiting: one may heal (a warm compile cache), a second one repeats itself."""

SIGKILL_EXIT = 137

Progress = Callable[[str], None]


@dataclass
class Watch:
    """A container while it is waited for.

    Attributes:
        server: As it was when the wait began.
        engine: Whose log lines are milestones.
        progress: Called with each milestone once.
        milestones: Those seen so far.
        last_line: The newest log line.
        changed_at: When the log last changed, on the monotonic clock, in s.
    """

    server: Server
    engine: Engine
    progress: Progress | None = None
    milestones: list[str] = field(default_factory=list)
    last_line: str = ""
    changed_at: float = field(default_factory=time.monotonic)

    def look(self) -> Seen | None:
        """Read log and state; None while nothing speaks against waiting.

        An engine that cannot be asked for a moment is no reason to give up: the endpoint may
        answer all the same.
        """
        try:
            self.read_log()
            return ended(inspect_one(self.server.container_id), self.server)
        except Unknown:
            return None

    def read_log(self) -> None:
        """Note new milestones, in the engine's order, and whether the log moves."""
        lines = self.tail()
        if lines and lines[-1] != self.last_line:
            self.last_line, self.changed_at = lines[-1], time.monotonic()
        for milestone in self.engine.milestones:
            if milestone.says in self.milestones:
                continue
            if any(re.search(milestone.pattern, line) for line in lines):
                self.milestones.append(milestone.says)
                if self.progress:
                    self.progress(milestone.says)

    def moved_within(self, seconds: float) -> bool:
        """Tell whether the log changed in the last ``seconds``."""
        return time.monotonic() - self.changed_at < seconds

    def tail(self) -> tuple[str, ...]:
        """Return the last log lines, or none where there are none to have."""
        try:
            return log_tail(self.server.container_id, TAIL_LINES)
        except Unknown:
            return ()


def wait_until_ready(
    server: Server,
    recipe: Recipe,
    engine: Engine,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
    poll_s: float = POLL_S,
) -> Readiness:
    """Wait until a container answers a real completion.

    Args:
        server: The container.
        recipe: What it should serve.
        engine: Its paths and milestones.
        timeout_s: Longest wait; None: the recipe's ``startup_timeout_s``.
        progress: Called with a line for people.
        poll_s: Pause between two looks.

    Returns:
        Where it answers, how long that took and which milestones were seen.

    Raises:
        NotReady: It ended, restarts again and again, serves something else, or no completion came
            in time. Its ``code`` says which; ``log_tail`` has the last lines.
    """
    watch = Watch(server, engine, progress)
    if server.base_url is None:
        failed = Seen("failed", "no_port", f"{server.name} publishes no port", "start it again")
        raise not_ready(failed, watch)
    endpoint = Endpoint(server.base_url, recipe, engine)
    return wait(endpoint, limit_of(recipe, timeout_s), poll_s, progress, watch)


def wait_for_endpoint(
    base_url: str,
    recipe: Recipe,
    engine: Engine,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
    poll_s: float = POLL_S,
) -> Readiness:
    """Wait until a server of any kind answers a real completion; no container is looked at.

    Raises:
        NotReady: As ``wait_until_ready``, without log lines.
    """
    endpoint = Endpoint(base_url, recipe, engine)
    return wait(endpoint, limit_of(recipe, timeout_s), poll_s, progress, None)


def limit_of(recipe: Recipe, timeout_s: float | None) -> float:
    """Return the longest wait, in s: what was asked for, else the recipe's."""
    return recipe.startup_timeout_s if timeout_s is None else timeout_s


def wait(
    endpoint: Endpoint,
    limit_s: float,
    poll_s: float,
    progress: Progress | None,
    watch: Watch | None,
) -> Readiness:
    """Look at container and endpoint in turn until one of them settles it.

    Raises:
        NotReady: With what settled it.
    """
    began = time.monotonic()
    said = ""
    with new_client() as client:
        while True:
            left = max(began + limit_s - time.monotonic(), SHORTEST_LOOK_S)
            seen = (watch.look() if watch else None) or endpoint.look(client, left)
            if seen.stage == "ready":
                return ready(endpoint, began, watch)
            if seen.stage == "failed":
                raise not_ready(seen, watch)
            if progress and seen.stage == "up" and seen.code != said:
                progress(seen.message)
            said = seen.code
            left = began + limit_s - time.monotonic()
            if left <= 0:
                raise not_ready(too_late(seen, endpoint.recipe, limit_s, watch), watch)
            time.sleep(min(poll_s, left))


def ready(endpoint: Endpoint, began: float, watch: Watch | None) -> Readiness:
    """Write a readiness out."""
    if watch:
        watch.read_log()
    return Readiness(
        base_url=endpoint.base_url,
        model=endpoint.recipe.served_model_name,
        seconds=round(time.monotonic() - began, 3),
        milestones=tuple(watch.milestones) if watch else (),
    )


def not_ready(seen: Seen, watch: Watch | None) -> NotReady:
    """Turn what was seen into an error with the last log lines."""
    name = watch.server.name if watch else ""
    return NotReady(
        f"{name}: {seen.message}" if name else seen.message,
        code=seen.code,
        repair=seen.repair,
        log_tail=watch.tail() if watch else (),
    )


def ended(container: Container | None, server: Server) -> Seen | None:
    """Say what a container's state means for waiting; None where it may still get ready."""
    see = f"see: sparkrecipes logs {server.recipe_id}"
    if container is None:
        return Seen("failed", "gone", "the container was removed while it was waited for")
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


def too_late(seen: Seen, recipe: Recipe, limit_s: float, watch: Watch | None) -> Seen:
    """Say how far a server came that was not ready in time."""
    if seen.stage == "up":
        return Seen(
            "failed",
            "wedged",
            f"it is healthy, but no completion came in {limit_s:.0f} s: {seen.message}",
            f"run: sparkrecipes stop {recipe.id}, then: sparkrecipes install {recipe.id}",
        )
    if watch and watch.last_line and watch.moved_within(min(QUIET_S, limit_s / 2)):
        return Seen(
            "failed",
            "still_loading",
            f"it is still loading after {limit_s:.0f} s; its log last said: {watch.last_line}",
            f"wait on: sparkrecipes wait {recipe.id} --timeout {round(2 * limit_s)}",
        )
    return Seen(
        "failed",
        "not_ready",
        f"it did not answer within {limit_s:.0f} s: {seen.message}",
        f"see: sparkrecipes logs {recipe.id}" if watch else "is it running there?",
    )
