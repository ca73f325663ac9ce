"""The GPU's clock while something runs: a machine that is slow by itself is found out.

A GB10 may stay in a low-power state: utilisation high, clock and power low, until it is cut off
from power. What is measured then says nothing of the recipe.

Source: https://github.com/Blackwellboy/model-serving-minefield/pull/55
"""

from __future__ import annotations

import io
import statistics
import subprocess
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

FIELDS = {
    "sm_clock_mhz": "clocks.sm",
    "utilization_pct": "utilization.gpu",
    "power_w": "power.draw",
    "temperature_c": "temperature.gpu",
}
"""Our names, and those that nvidia-smi is asked by."""

EVERY_S = 5

LOADED_PCT = 80.0
"""Utilisation from which a GPU counts as busy."""

LOWERED = 0.7
"""Part of its highest clock below which a busy GPU's clock has fallen. Ours: the recorded case fell
to 0.3 to 0.4 of it."""

FEWEST = 3
"""Busy samples that it takes to say so."""

MOST = 1e6
"""No field of these is as large; what is was misread."""

Sample = dict[str, float | None]


class GpuClock:
    """Samples the first GPU of this machine while a block runs, where nvidia-smi is there."""

    def __init__(self, *, here: bool = True) -> None:
        """Prepare; nothing runs yet.

        Args:
            here: False where what is measured runs elsewhere: then nothing is sampled.
        """
        self.samples: list[Sample] = []
        self._here = here
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start to sample."""
        query = f"--query-gpu={','.join(FIELDS.values())}"
        form = ("--format=csv,noheader,nounits", "--id=0", f"--loop={EVERY_S}")
        quiet = subprocess.DEVNULL
        if self._here:
            with suppress(OSError):  # there is no such program, or it cannot be run
                self._process = subprocess.Popen(
                    ["nvidia-smi", query, *form],
                    stdin=quiet,
                    stdout=subprocess.PIPE,
                    stderr=quiet,
                    text=True,
                )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and leave no process behind."""
        if self._process:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        with (self._process and self._process.stdout) or io.StringIO() as lines:
            for line in lines:
                values = [number(cell) for cell in line.split(",")]
                if len(values) == len(FIELDS) and set(values) != {None}:
                    self.samples.append(dict(zip(FIELDS, values, strict=True)))

    @property
    def busy(self) -> list[Sample]:
        """The samples that found the GPU busy."""
        return [s for s in list(self.samples) if (s["utilization_pct"] or 0.0) >= LOADED_PCT]

    def figures(self) -> dict[str, Any] | None:
        """Return each field over the busy samples, over all where none is, None without any."""
        known, busy = list(self.samples), self.busy
        if not known:
            return None
        spreads = {name: spread([s[name] for s in busy or known]) for name in FIELDS}
        return {"samples": len(known), "under_load": len(busy), **spreads}

    def degraded(self) -> str:
        """Say how far the clock fell under load; nothing where it did not, or is not known."""
        clocks = [clock for s in self.busy if (clock := s["sm_clock_mhz"])]
        if len(clocks) < FEWEST or statistics.median(clocks[-FEWEST:]) >= LOWERED * max(clocks):
            return ""
        return (
            f"the GPU's clock fell from {max(clocks):.0f} to {clocks[-1]:.0f} MHz under load: the "
            "machine was slow, not the recipe; cut it off from power, then measure again"
        )


def spread(values: list[float | None]) -> dict[str, float] | None:
    """Return median, range and number of the values that are known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    middle = statistics.median(known)
    return {"median": middle, "min": min(known), "max": max(known), "n": len(known)}


def number(cell: str) -> float | None:
    """Read a cell of nvidia-smi; ``[N/A]`` and the like are unknown."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < MOST else None
