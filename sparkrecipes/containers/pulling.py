"""Pulling: an image onto this host before anything is started from it, and a look at what landed.

A pull proves nothing: Docker pulls an image of one platform onto any machine, and only the start
fails. What landed is therefore inspected.

The engine's own API tells bytes, so it is asked directly where it listens on a socket of this host;
elsewhere (tcp, ssh) ``docker pull`` tells which layers are done.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sparkrecipes.containers.docker import Answer, explain
from sparkrecipes.containers.engine_api import engine_socket, event
from sparkrecipes.containers.local_images import local_image_platform
from sparkrecipes.containers.puller import order
from sparkrecipes.errors import LaunchFailed
from sparkrecipes.images import engine_auth, parse_reference
from sparkrecipes.schema.transfer import Transfer

PULL_LIMIT_S = 4 * 3600.0
"""Longest pull: 20 GB at 1.5 MB/s."""

HELPER_TIMEOUT_S = 5.0
REPORT_EVERY_S = 0.5
LAYER = re.compile(r"^(?P<layer>[0-9a-f]{12}): (?P<state>.+)$")
LAYER_ID = re.compile(r"[0-9a-f]{12}")
HERE = ("Pull complete", "Already exists")
FETCHED = ("Verifying Checksum", "Download complete", "Extracting", *HERE)
LAST_LINES = 20

Progress = Callable[[Transfer], None]


def pull_image(
    reference: str,
    platform: str,
    *,
    recipe_id: str,
    layers: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    timeout_s: float = PULL_LIMIT_S,
) -> bool:
    """Pull an image where this host does not have it for the platform, and prove what landed.

    Args:
        reference: By digest where one is known, else by tag.
        platform: The machine's, e.g. ``linux/arm64``.
        recipe_id: For the repair.
        layers: Compressed bytes of each layer by its digest, where the registry told them.
        progress: Called with how far it is, at most twice a second.
        timeout_s: After this the pull is ended.

    Returns:
        Whether anything was pulled.

    Raises:
        LaunchFailed: The registry or Docker refused, or what landed is for another platform.
        KeyboardInterrupt: Passed through, after the pull was ended.
    """
    if local_image_platform(reference) == platform:
        return False
    seen = Layers(layers or {}, progress)
    socket = engine_socket()
    if socket:
        answer = pull_by_engine(socket, reference, platform, seen, timeout_s)
    else:
        argv = ("docker", "pull", "--platform", platform, reference)
        answer = follow(argv, seen.read_line, timeout_s)
    if not answer.ok:
        raise pull_failure(answer, reference, recipe_id)
    landed = local_image_platform(reference)
    if landed != platform:
        raise LaunchFailed(
            f"what was pulled as {reference} is for {landed or 'no platform that Docker names'}, "
            f"not for {platform}",
            code="wrong_architecture",
            repair=f"see its platforms: sparkrecipes image {reference}",
        )
    return True


def pull_failure(answer: Answer, reference: str, recipe_id: str) -> LaunchFailed:
    """Say why a pull failed, and that what is here stays."""
    said = explain(answer, {"image": reference, "recipe": recipe_id})
    again = f"run again: sparkrecipes install {recipe_id}"
    broken = said.code in ("docker_timeout", "no_network")
    return LaunchFailed(said.message, code=said.code, repair=again if broken else said.repair)


def pull_by_engine(
    socket: str, reference: str, platform: str, seen: Layers, timeout_s: float
) -> Answer:
    """Pull through the engine's API, in a process of its own, and answer as a command would."""
    registry = parse_reference(reference).registry
    auth = engine_auth(registry, timeout_s=HELPER_TIMEOUT_S)
    errors: list[str] = []

    def read(line: str) -> None:
        said = event(line)
        if "error" in said:
            errors.append(str(said["error"]))
        else:
            seen.read_event(said)

    argv = (sys.executable, "-P", "-m", "sparkrecipes.containers.puller")
    told = order(socket, reference, platform, auth, timeout_s)
    answer = follow(argv, read, timeout_s, told=told)
    return Answer(1, "", errors[-1]) if errors else answer


class Layers:
    """Counts what comes of each layer, by the short id that Docker shows.

    Attributes:
        sizes: Compressed bytes, as the registry or the engine told them.
        got: Bytes that are here, as far as they are told.
        here: Layers that are done.
    """

    def __init__(self, sizes: Mapping[str, int], progress: Progress | None) -> None:
        self.complete = bool(sizes)
        self.sizes = {digest.partition(":")[2][:12]: size for digest, size in sizes.items()}
        self.got: dict[str, int] = {}
        self.here: set[str] = set()
        self.earlier: set[str] = set()
        self.names: set[str] = set(self.sizes)
        self.progress = progress
        self.began = time.monotonic()
        self.told = 0.0

    def read_line(self, line: str) -> None:
        """Read a line of ``docker pull``, which names states and no bytes."""
        found = LAYER.match(line)
        if found:
            self.count(found["layer"], found["state"], {})

    def read_event(self, event: Mapping[str, Any]) -> None:
        """Read an event of the engine."""
        layer, detail = str(event.get("id", "")), event.get("progressDetail")
        if LAYER_ID.fullmatch(layer):
            state = str(event.get("status", ""))
            self.count(layer, state, detail if isinstance(detail, dict) else {})

    def count(self, layer: str, state: str, detail: Mapping[str, Any]) -> None:
        """Count one layer's state, and tell whoever watches."""
        before = len(self.here)
        self.names.add(layer)
        if state == "Downloading" and isinstance(detail.get("current"), int):
            self.got[layer] = detail["current"]
            if isinstance(detail.get("total"), int) and detail["total"] > 0:
                self.sizes.setdefault(layer, detail["total"])
        elif state in FETCHED:
            self.got[layer] = self.sizes.get(layer, self.got.get(layer, 0))
        if state in HERE:
            self.here.add(layer)
            if state == "Already exists":
                self.earlier.add(layer)
        now = time.monotonic()
        if self.progress and (len(self.here) > before or now - self.told > REPORT_EVERY_S):
            self.told = now
            self.progress(self.now())

    def now(self) -> Transfer:
        """Return how far it is; the whole is only known where the registry told every size."""
        total = sum(self.sizes.values()) if self.complete else None
        done = sum(min(size, self.sizes.get(layer, size)) for layer, size in self.got.items())
        fetched = done - sum(self.got.get(layer, 0) for layer in self.earlier)
        return Transfer(
            done_bytes=done,
            total_bytes=total,
            done_parts=len(self.here),
            total_parts=len(self.names),
            parts="layers",
            bytes_per_s=fetched / max(time.monotonic() - self.began, 0.001),
        )


def follow(
    argv: Sequence[str], read: Callable[[str], None], timeout_s: float, *, told: str = ""
) -> Answer:
    """Run a command and read its lines as they come; it is ended after a time.

    It has a session of its own: what ends this process (kill -9, a closed terminal) ends it not.

    Args:
        argv: The program and its arguments.
        read: Called with each line.
        timeout_s: After this it is ended.
        told: What it reads from its stdin.

    Returns:
        Its exit code and last lines; a program that is not there or does not end is an answer too.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError):
        return Answer(127, "", f"{argv[0]}: command not found")
    late = threading.Event()
    timer = threading.Timer(timeout_s, end_late, args=(process, late))
    timer.start()
    last: deque[str] = deque(maxlen=LAST_LINES)
    try:
        with process:
            tell(process, told)
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


def tell(process: subprocess.Popen[str], told: str) -> None:
    """Give a command its input; one that has ended already says itself why."""
    with suppress(BrokenPipeError):
        if process.stdin:
            process.stdin.write(told)
            process.stdin.close()


def end_late(process: subprocess.Popen[str], late: threading.Event) -> None:
    """End a command that took too long, and note that this was why."""
    late.set()
    process.kill()
