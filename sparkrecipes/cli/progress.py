"""What a person sees while something takes long: always on stderr, never on stdout."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sparkrecipes.cli.table import visible
from sparkrecipes.schema.transfer import LINE

if TYPE_CHECKING:
    from sparkrecipes.downloads import DownloadProgress

PLAIN_EVERY_S = 5.0


class Display:
    """A live line on a terminal; plain lines elsewhere, of a transfer at most one in 5 seconds."""

    def __init__(self) -> None:
        self.live: Any = None
        self.last_transfer_at = -PLAIN_EVERY_S
        self.left_out = ""

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
        """Take the live line away; where a transfer ended is not left out."""
        if self.live:
            self.live.stop()
        self.catch_up()

    def line(self, text: str) -> None:
        """Show what is done now; on a terminal only indented details stay above the live line."""
        text = visible(text)
        if self.live is None and self.is_too_soon(text):
            self.left_out = text
        elif self.live is None:
            if LINE.match(text):
                self.left_out = ""
            self.catch_up()
            print(text, file=sys.stderr, flush=True)
        elif text.startswith(" "):
            self.live.console.print(text, markup=False, highlight=False)
        else:
            self.live.update(text)

    def is_too_soon(self, text: str) -> bool:
        """Say whether a line of a transfer may be left out: another came just before."""
        if not LINE.match(text):
            return False
        now = time.monotonic()
        if now - self.last_transfer_at < PLAIN_EVERY_S:
            return True
        self.last_transfer_at = now
        return False

    def catch_up(self) -> None:
        """Show the last line of a transfer that was left out."""
        if self.left_out:
            print(self.left_out, file=sys.stderr, flush=True)
            self.left_out = ""

    def bytes(self, at: DownloadProgress) -> None:
        """Show bytes, files, rate and time left."""
        self.line(at.transfer.line(at.repo))
