"""The process that pulls an image: ``python -m sparkrecipes.containers.puller``, order on stdin.

The engine ends a pull when nobody listens any more, and its classic image store then forgets the
layers that were finished. So whoever listens is a process in a session of its own: a walk that is
killed, or a terminal that is closed, does not end it, and the next walk joins the same pull. Who
wants it ended (Ctrl-C, a time limit) ends this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from sparkrecipes.containers.engine_api import pull_events
from sparkrecipes.images import parse_reference


def order(socket: str, reference: str, platform: str, auth: str | None, limit_s: float) -> str:
    """Write what a puller is to do, for its stdin: a login is in no argument of a process."""
    return json.dumps(
        {
            "socket": socket,
            "reference": reference,
            "platform": platform,
            "auth": auth,
            "limit_s": limit_s,
        }
    )


def main() -> None:
    """Pull as ordered, and write each event as a line; go on when nobody reads them any more."""
    given = json.load(sys.stdin)
    # Ends even where whoever started it, and kept the time, was killed.
    signal.alarm(max(1, round(given["limit_s"])))
    wanted = parse_reference(given["reference"])
    for event in pull_events(given["socket"], wanted, given["platform"], given["auth"]):
        tell(event)


def tell(event: Mapping[str, Any]) -> None:
    """Write an event; a reader that has gone is not waited for."""
    try:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
