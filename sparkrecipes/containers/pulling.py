"""Pulling: an image onto this host before anything is started from it, and a look at what landed.

A pull proves nothing: Docker pulls an image of one platform onto any machine, and only the start
fails. What landed is therefore inspected.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence

from sparkrecipes.containers.docker import Answer, explain
from sparkrecipes.containers.servers import local_image_platform
from sparkrecipes.errors import LaunchFailed

PULL_LIMIT_S = 4 * 3600.0
"""Longest pull: 20 GB at 1.5 MB/s. Whole layers are kept by Docker, so that a second one is short.
"""

LAYER = re.compile(r"^(?P<layer>[0-9a-f]{12}): (?P<state>.+)$")
ENDED = ("Pull complete", "Already exists")
LAST_LINES = 20

Progress = Callable[[str], None]


def pull_image(
    reference: str,
    platform: str,
    *,
    recipe_id: str,
    progress: Progress | None = None,
    timeout_s: float = PULL_LIMIT_S,
) -> bool:
    """Pull an image where this host does not have it for the platform, and prove what landed.

    Args:
        reference: By digest where one is known, else by tag.
        platform: The machine's, e.g. ``linux/arm64``.
        recipe_id: For the repair.
        progress: Called with a line whenever a layer is done.
        timeout_s: After this the pull is ended.

    Returns:
        Whether anything was pulled.

    Raises:
        LaunchFailed: The registry or Docker refused, or what landed is for another platform.
        KeyboardInterrupt: Passed through, after the pull was ended.
    """
    if local_image_platform(reference) == platform:
        return False
    argv = ("docker", "pull", "--platform", platform, reference)
    answer = follow(argv, Layers(progress).read, timeout_s)
    if not answer.ok:
        said = explain(answer, {"image": reference, "recipe": recipe_id})
        again = f"sparkrecipes install {recipe_id}"
        repair = f"run again, whole layers are kept: {again}"
        raise LaunchFailed(
            said.message,
            code=said.code,
            repair=repair if said.code == "docker_timeout" else said.repair,
        )
    landed = local_image_platform(reference)
    if landed != platform:
        raise LaunchFailed(
            f"what was pulled as {reference} is for {landed or 'no platform that Docker names'}, "
            f"not for {platform}",
            code="wrong_architecture",
            repair=f"see its platforms: sparkrecipes image {reference}",
        )
    return True


class Layers:
    """Counts the layers of a pull as Docker names them."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done: dict[str, bool] = {}

    def read(self, line: str) -> None:
        """Read a line of ``docker pull``; tell whoever watches when a layer is done."""
        found = LAYER.match(line)
        if found is None:
            return
        before = sum(self.done.values())
        self.done[found["layer"]] = found["state"] in ENDED or self.done.get(found["layer"], False)
        after = sum(self.done.values())
        if self.progress and after > before:
            self.progress(f"image: {after} of {len(self.done)} layers are here")


def follow(argv: Sequence[str], read: Callable[[str], None], timeout_s: float) -> Answer:
    """Run a command and read its lines as they come; it is ended after a time.

    Returns:
        Its exit code and last lines; a program that is not there or does not end is an answer too.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except (FileNotFoundError, PermissionError):
        return Answer(127, "", f"{argv[0]}: command not found")
    late = threading.Event()
    timer = threading.Timer(timeout_s, end_late, args=(process, late))
    timer.start()
    last: deque[str] = deque(maxlen=LAST_LINES)
    try:
        with process:
            for line in process.stdout or ():
                last.append(line.rstrip("\n"))
                read(last[-1])
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        return Answer(124, "", f"{' '.join(argv[:2])}: timed out after {timeout_s:g} s")
    return Answer(process.returncode, "", "\n".join(last))


def end_late(process: subprocess.Popen[str], late: threading.Event) -> None:
    """End a command that took too long, and note that this was why."""
    late.set()
    process.kill()
