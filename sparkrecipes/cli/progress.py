"""What a person sees while something takes long: always on stderr, never on stdout."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from types import TracebackType
from typing import Any, Protocol, Self


class BytesDone(Protocol):
    """How far a download is."""

    done_bytes: int
    total_bytes: int


class Display:
    """A live line on a terminal; plain lines elsewhere, at most one a second for bytes."""

    def __init__(self, options: Namespace) -> None:
        self.quiet = getattr(options, "json", False) and not sys.stderr.isatty()
        self.live: Any = None
        self.last_bytes_at = 0.0
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        """Start the live line where there is a terminal."""
        if sys.stderr.isatty():
            from rich.console import Console

            self.live = Console(stderr=True).status("starting")
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the live line away."""
        if self.live:
            self.live.stop()

    def line(self, text: str) -> None:
        """Show what is done now; on a terminal finished steps stay above the live line."""
        if self.quiet:
            return
        if self.live is None:
            print(text, file=sys.stderr, flush=True)
        elif text.endswith("..."):
            self.live.update(text)
        else:
            self.live.console.print(text, markup=False, highlight=False)

    def bytes(self, at: BytesDone) -> None:
        """Show bytes done, rate and time left, at most once a second."""
        now = time.monotonic()
        if now - self.last_bytes_at < 1 and at.done_bytes < at.total_bytes:
            return
        self.last_bytes_at = now
        rate = at.done_bytes / max(now - self.started, 0.1)
        left = (at.total_bytes - at.done_bytes) / rate if rate else 0
        self.line(
            f"{at.done_bytes / 1e9:.2f} of {at.total_bytes / 1e9:.2f} GB, "
            f"{rate / 1e6:.0f} MB/s, {left:.0f} s left ..."
        )
