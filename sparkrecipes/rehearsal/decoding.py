"""Decoding: how fast each of several streams goes on, and what speculation does to them.

Every stream follows an absolute schedule that is drawn anew whenever one comes or goes, so that
late wake-ups never add up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparkrecipes.rehearsal.timing import Timing

clock = time.perf_counter


class Stopped(Exception):
    """The server is being closed."""


@dataclass(eq=False)
class Stream:
    """One answer on its way: how many tokens were done at a moment, and how fast it goes on."""

    at_s: float
    done: float = 0.0
    tok_s: float = 1.0

    def due_s(self, token: float) -> float:
        """Return when token number ``token`` (from 0) leaves."""
        return self.at_s + (token - self.done) / self.tok_s

    def change(self, now_s: float, tok_s: float) -> None:
        """Go on at another speed from now on."""
        if now_s > self.at_s:
            self.done += (now_s - self.at_s) * self.tok_s
            self.at_s = now_s
        self.tok_s = tok_s


class Decoder:
    """Paces streams: at most ``slots`` at once, each at the speed of so many users."""

    def __init__(self, timing: Timing, slots: int) -> None:
        self.timing = timing
        self._slots = threading.Semaphore(slots)
        self._streams: set[Stream] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self.waiting = 0

    @property
    def running(self) -> int:
        """Streams that are being decoded."""
        return len(self._streams)

    @contextmanager
    def stream(self, arrived_s: float, uncached_tokens: int) -> Iterator[Stream]:
        """Take a slot and decode a stream in it.

        Args:
            arrived_s: When the request came.
            uncached_tokens: Length of the prompt that has to be read.

        Raises:
            Stopped: The server is being closed.
        """
        waited = self._take_slot()
        began_s = clock() if waited else arrived_s
        stream = Stream(began_s + self.timing.first_token_s(uncached_tokens))
        try:
            with self._changed:
                self._streams.add(stream)
                self._pace()
            yield stream
        finally:
            with self._changed:
                self._streams.discard(stream)
                self._pace()
            self._slots.release()

    def wait_for(self, stream: Stream, token: float) -> None:
        """Sleep until a token of a stream leaves, whatever happens to its speed until then.

        Raises:
            Stopped: The server is being closed.
        """
        with self._changed:
            while (left_s := stream.due_s(token) - clock()) > 0:
                if self._stopped:
                    raise Stopped
                self._changed.wait(left_s)

    def stop(self) -> None:
        """Wake every stream and end it."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _take_slot(self) -> bool:
        """Wait for a slot; True where there was none at once."""
        if self._slots.acquire(blocking=False):
            return False
        with self._changed:
            self.waiting += 1
        try:
            while not self._slots.acquire(timeout=0.2):
                if self._stopped:
                    raise Stopped
        finally:
            with self._changed:
                self.waiting -= 1
        return True

    def _pace(self) -> None:
        """Give every stream the speed of the present number of users."""
        now_s, tok_s = clock(), self.timing.tok_s(len(self._streams))
        for stream in self._streams:
            stream.change(now_s, tok_s)
        self._changed.notify_all()


class Drafter:
    """Speculation as it shows on the wire: tokens in steps, and the counters of acceptance.

    Attributes:
        drafts: Steps so far.
        drafted: Draft tokens so far.
        accepted: Draft tokens that the target took.
    """

    def __init__(self, tokens_per_draft: int, acceptance_pct: float) -> None:
        self.per_draft = tokens_per_draft
        self._rate = acceptance_pct / 100
        self._carry = 0.0
        self._lock = threading.Lock()
        self.drafts = self.drafted = self.accepted = 0

    def step(self) -> int:
        """Draft once and return the tokens of the step, the target's own one included.

        What one step cannot take of the acceptance is carried on to the next, so that the rate
        over many steps is exactly the published one.
        """
        with self._lock:
            self._carry += self.per_draft * self._rate
            taken = int(self._carry)
            self._carry -= taken
            self.drafts += 1
            self.drafted += self.per_draft
            self.accepted += taken
            return 1 + taken
