"""How far a transfer is: one line for weights and images, on a terminal, in a log and in a job."""

from __future__ import annotations

import re
from dataclasses import dataclass

MINUTE_S, HOUR_S = 60.0, 3600.0

LINE = re.compile(
    r"^(?P<what>\S+): (?P<done>[\d.]+)(?: of (?P<total>[\d.]+))? GB, \d+ of \d+ (?:files|layers)"
    r"(?:, (?P<rate>[\d.]+) MB/s)?"
)
"""A line that ``Transfer.line`` wrote: told from others, and read again by whoever keeps a job."""


@dataclass(frozen=True)
class Transfer:
    """How far a transfer of many parts in parallel is.

    Attributes:
        done_bytes: Here, what was here before included.
        total_bytes: Of all parts; None where that is not known.
        done_parts: Finished parts.
        total_parts: All that are known.
        parts: What they are called: ``files`` or ``layers``.
        bytes_per_s: Mean rate of this run; what was here before does not count.
    """

    done_bytes: int
    total_bytes: int | None
    done_parts: int
    total_parts: int
    parts: str
    bytes_per_s: float

    @property
    def eta_s(self) -> float | None:
        """Seconds left at the mean rate; None while nothing has come, or the size is unknown."""
        if self.total_bytes is None or self.bytes_per_s <= 0:
            return None
        return (self.total_bytes - self.done_bytes) / self.bytes_per_s

    def line(self, what: str) -> str:
        """Write it for people: ``image: 1.20 of 9.80 GB, 3 of 25 layers, 85 MB/s, 2 min left``."""
        total = "" if self.total_bytes is None else f" of {self.total_bytes / 1e9:.2f}"
        words = [
            f"{what}: {self.done_bytes / 1e9:.2f}{total} GB",
            f"{self.done_parts} of {self.total_parts} {self.parts}",
        ]
        if self.bytes_per_s > 0:
            rate = self.bytes_per_s / 1e6
            words.append(f"{rate:.0f} MB/s" if rate >= 10 else f"{rate:.1f} MB/s")
        if self.total_bytes is not None and self.done_bytes >= self.total_bytes:
            if self.done_parts < self.total_parts and self.parts == "layers":
                words.append("unpacking")
        elif self.eta_s is not None:
            words.append(f"{duration(self.eta_s)} left")
        return ", ".join(words)


def duration(seconds: float) -> str:
    """Write a time as people say it: seconds, minutes, hours."""
    if seconds < 1.5 * MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 1.5 * HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    return f"{seconds / HOUR_S:.1f} h"
