"""What a person sees while something takes long: always on stderr, never on stdout."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sparkrecipes.downloads import DownloadProgress


class Display:
    """A live line on a terminal; plain lines elsewhere, at most one a second for bytes."""

    def __init__(self, options: Namespace) -> None:
        self.quiet = getattr(options, "json", False) and not sys.stderr.isatty()
        self.live: Any = None
        self.last_bytes_at = 0.0

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
        """Show what is done now; on a terminal only indented details stay above the live line."""
        if self.quiet:
            return
        if self.live is None:
            print(text, file=sys.stderr, flush=True)
        elif text.startswith(" "):
            self.live.console.print(text, markup=False, highlight=False)
        else:
            self.live.update(text)

    def bytes(self, at: DownloadProgress) -> None:
        """Show bytes, files, rate and time left, at most once a second."""
        now = time.monotonic()
        if now - self.last_bytes_at < 1 and at.done_bytes < at.total_bytes:
            return
        self.last_bytes_at = now
        left = "" if at.eta_s is None else f", {at.eta_s:.0f} s left"
        self.line(
            f"{at.repo}: {at.done_bytes / 1e9:.2f} of {at.total_bytes / 1e9:.2f} GB, "
            f"{at.done_files} of {at.total_files} files, {at.bytes_per_s / 1e6:.0f} MB/s{left}"
        )
