"""Readiness: wait for a real completion, and say at once when none will come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkrecipes.containers.endpoint import Endpoint, Seen, new_client
from sparkrecipes.containers.loading import Loading, duration
from sparkrecipes.containers.watch import Watch
from sparkrecipes.errors import NotReady
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Readiness, Server

POLL_S = 1.0
SHORTEST_LOOK_S = 0.5
SHORTEST_PAUSE_S = 0.01

QUIET_S = 120.0
"""A log that said something within this time belongs to an engine that is still loading.

Source: NVIDIA/NemoClaw#3886, where a shard took 28 s and a fixed limit gave up half-way.
"""

LONGER = 2.0
"""How many times the recipe's deadline is waited for where the log still moves."""

WEDGED_S = 600.0
"""Healthy for so long without one completion: five requests of two minutes each were lost."""

Progress = Callable[[str], None]


def wait_until_ready(
    server: Server,
    recipe: Recipe,
    engine: Engine,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
    poll_s: float = POLL_S,
    published_s: float | None = None,
    floor_bytes: int | None = None,
) -> Readiness:
    """Wait until a container answers a real completion.

    Args:
        server: The container.
        recipe: What it should serve.
        engine: Its paths and milestones.
        timeout_s: Longest wait; None: the recipe's ``startup_timeout_s``, and up to twice that
            while the log still moves.
        progress: Called with a line for people.
        poll_s: Pause between two looks.
        published_s: From start to ready as published, for the time that is left; None: unknown.
        floor_bytes: MemAvailable of this host below which the wait ends, before the host freezes.

    Returns:
        Where it answers, how long that took and which milestones were seen.

    Raises:
        NotReady: It ended, restarts again and again, serves something else, or no completion came
            in time. Its ``code`` says which; ``log_tail`` has the last lines.
    """
    watch = Watch(server, engine, progress, Loading(published_s), floor_bytes)
    if server.base_url is None:
        failed = Seen("failed", "no_port", f"{server.name} publishes no port", "start it again")
        raise not_ready(failed, watch)
    endpoint = Endpoint(server.base_url, recipe, engine)
    return wait(endpoint, Deadline.of(recipe, timeout_s), poll_s, progress, watch)


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
    return wait(endpoint, Deadline.of(recipe, timeout_s), poll_s, progress, None)


@dataclass
class Deadline:
    """How long is waited.

    Attributes:
        limit_s: The longest wait, in s.
        longest_s: To here it is put off where the log still moves.
        began: When the wait began, on the monotonic clock, in s.
        up_since: Since when it has been healthy without a completion, likewise; None: it is not.
    """

    limit_s: float
    longest_s: float
    began: float = field(default_factory=time.monotonic)
    up_since: float | None = None

    @classmethod
    def of(cls, recipe: Recipe, timeout_s: float | None) -> Deadline:
        """Take what was asked for as it is, else the recipe's, which a moving log puts off."""
        if timeout_s is not None:
            return cls(timeout_s, timeout_s)
        return cls(recipe.startup_timeout_s, LONGER * recipe.startup_timeout_s)

    @property
    def spent_s(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self.began

    def left_s(self) -> float:
        """Seconds to the deadline; 0 or less when it is over."""
        return self.limit_s - self.spent_s

    def put_off(self, seen: Seen, watch: Watch | None) -> bool:
        """Put the deadline off, once, where the engine still loads; tell whether it was."""
        if self.limit_s >= self.longest_s or seen.stage != "down" or watch is None:
            return False
        if not (watch.last_line and watch.moved_within(min(QUIET_S, self.limit_s / 2))):
            return False
        watch.tell(
            f"the recipe's {duration(self.limit_s)} are over and its log still moves: waiting on, "
            f"{duration(self.longest_s)} in all"
        )
        self.limit_s = self.longest_s
        return True

    def is_wedged(self, seen: Seen) -> bool:
        """Tell whether it has been healthy for too long without a completion."""
        if seen.stage != "up":
            self.up_since = None
            return False
        self.up_since = self.up_since or time.monotonic()
        return time.monotonic() - self.up_since > WEDGED_S


def wait(
    endpoint: Endpoint,
    deadline: Deadline,
    poll_s: float,
    progress: Progress | None,
    watch: Watch | None,
) -> Readiness:
    """Look at container and endpoint in turn until one of them settles it.

    Raises:
        NotReady: With what settled it.
    """
    said = ""
    with new_client() as client:
        while True:
            left_s = max(deadline.left_s(), SHORTEST_LOOK_S)
            seen = (watch.look() if watch else None) or endpoint.look(client, left_s)
            if seen.stage == "ready":
                return ready(endpoint, deadline.spent_s, watch)
            if seen.stage == "failed":
                raise not_ready(seen, watch)
            if progress and seen.stage == "up" and seen.code != said:
                progress(seen.message)
            said = seen.code
            over = deadline.left_s() <= 0 and not deadline.put_off(seen, watch)
            if over or deadline.is_wedged(seen):
                late = too_late(seen, endpoint.recipe, deadline.spent_s, watch)
                raise not_ready(late, watch)
            time.sleep(max(min(poll_s, deadline.left_s()), SHORTEST_PAUSE_S))


def ready(endpoint: Endpoint, spent_s: float, watch: Watch | None) -> Readiness:
    """Write a readiness out."""
    if watch:
        watch.read_log()
    return Readiness(
        base_url=endpoint.base_url,
        model=endpoint.recipe.served_model_name,
        seconds=round(spent_s, 3),
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


def too_late(seen: Seen, recipe: Recipe, spent_s: float, watch: Watch | None) -> Seen:
    """Say how far a server came that was not ready in time."""
    if seen.stage == "up":
        return Seen(
            "failed",
            "wedged",
            f"it is healthy, but no completion came in {spent_s:.0f} s: {seen.message}",
            f"run: sparkrecipes stop {recipe.id}, then: sparkrecipes install {recipe.id}",
        )
    if watch and watch.last_line and watch.moved_within(min(QUIET_S, spent_s / 2)):
        return Seen(
            "failed",
            "still_loading",
            f"it is still loading after {spent_s:.0f} s; its log last said: {watch.last_line}",
            f"wait on: sparkrecipes wait {recipe.id} --timeout {round(2 * spent_s)}",
        )
    return Seen(
        "failed",
        "not_ready",
        f"it did not answer within {spent_s:.0f} s: {seen.message}",
        f"see: sparkrecipes logs {recipe.id}" if watch else "is it running there?",
    )
