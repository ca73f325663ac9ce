"""Loading: how far a start has come by the engine's own log, and how long it may still take.

Pure: the clock and the lines are given. Two things speak of the time that is left: the load time
that was published for the recipe, and the rate of the shards that were loaded so far. The longer
of the two is said, for an engine goes on to compile and to capture graphs after its weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SHARDS = re.compile(r"checkpoint shards: +\d+% Completed \| (?P<done>\d+)/(?P<total>\d+)")
"""vLLM's own bar, one line a shard.

Source: vllm/model_executor/model_loader/weight_utils.py, ``_BAR_FORMAT``.
"""

STEPS = 10
"""Counts that are told of one bar at most: whoever watches needs no line for each of 60 shards."""


@dataclass
class Loading:
    """A start, as far as its log tells.

    Attributes:
        published_s: From start to ready, as published; None where nobody published it.
        first: Time and count when the present bar was first seen.
        last: Time, count and total of the bar, as it is now.
        told: Tenth of the bar that was told last.
    """

    published_s: float | None = None
    first: tuple[float, int] | None = None
    last: tuple[float, int, int] | None = None
    told: int = field(default=-1)

    def read(self, lines: Iterable[str], now_s: float) -> str | None:
        """Read the last log lines; return words where the bar has come a step further.

        Args:
            lines: Oldest first.
            now_s: Seconds since the container's start.
        """
        found = [match for line in lines if (match := SHARDS.search(line))]
        if not found:
            return None
        done, total = int(found[-1]["done"]), int(found[-1]["total"])
        if self.last is None or (done, total) < (self.last[1], self.last[2]):
            self.first, self.told = (now_s, done), -1
        self.last = (now_s, done, total) if self.moved(done, total) else self.last
        step = STEPS * done // total if total else 0
        if total < 2 or step <= self.told:
            return None
        self.told = step
        return f"loading weights: {done} of {total} shards"

    def moved(self, done: int, total: int) -> bool:
        """Tell whether the bar is not where it was."""
        return self.last is None or (done, total) != self.last[1:]

    def left_s(self, now_s: float) -> float | None:
        """Reckon how long it may still take, in s; None where nothing speaks of it any more.

        Args:
            now_s: Seconds since the container's start.
        """
        known = [self.published_s - now_s] if self.published_s is not None else []
        if self.first and self.last and self.last[1] > self.first[1]:
            (began, had), (at, done, total) = self.first, self.last
            whole = (total - done) * (at - began) / (done - had)
            known.append(whole - (now_s - at) if done < total else 0.0)
        left = max(known, default=0.0)
        return left if left > 0 else None

    def time_words(self, now_s: float) -> str:
        """Say the time that is left, or that it takes longer than published; else nothing."""
        left = self.left_s(now_s)
        if left is not None:
            return f"about {duration(left)} left"
        if self.published_s is not None and now_s > self.published_s:
            return f"longer than the published {duration(self.published_s)}"
        return ""


def duration(seconds: float) -> str:
    """Write a time as people say it."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
