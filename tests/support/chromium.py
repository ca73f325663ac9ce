"""A real headless Chromium, driven over its own pipe (the DevTools protocol): no driver is needed.

Source: https://chromedevtools.github.io/devtools-protocol/ and Chromium's --remote-debugging-pipe
(commands on descriptor 3, answers on 4, each ended by a NUL).
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)
Json = dict[str, Any]


class Page:
    """One page of the browser; what it asks of the network is kept."""

    def __init__(self, send: int, receive: int) -> None:
        self.send, self.receive = send, receive
        self.held = b""
        self.ids = itertools.count(1)
        self.events: list[Json] = []
        self.session: str | None = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, timeout_s: float = 60.0, **params: Any) -> Json:
        """Give one command and return its answer; events that come before it are kept."""
        number = next(self.ids)
        command = {"id": number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.send, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + timeout_s
        while (message := self.next_message(end)).get("id") != number:
            self.events.append(message)
        assert "error" not in message, message
        result: Json = message["result"]
        return result

    def next_message(self, end: float) -> Json:
        """Read one message, or fail when it is due."""
        while b"\0" not in self.held:
            ready, _, _ = select.select([self.receive], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            self.held += os.read(self.receive, 1 << 20)
        raw, _, self.held = self.held.partition(b"\0")
        message: Json = json.loads(raw)
        return message

    def open(self, url: str, width: int = 1000, height: int = 1200, **media: str) -> None:
        """Show a page at a size, in a colour scheme or for a medium, and wait until it is drawn."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
        self.ask("Emulation.setEmulatedMedia", media=media.get("medium", ""), features=scheme)
        self.events.clear()
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + 30
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.next_message(end))
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, code: str) -> Any:
        """Evaluate code in the page; its own policy does not hold for the browser's tools."""
        done = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def requested(self) -> list[str]:
        """What was asked for since the page was opened."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def complaints(self) -> list[str]:
        """What the browser logged as an error."""
        logged = [e["params"]["entry"] for e in self.events if e["method"] == "Log.entryAdded"]
        return [entry["text"] for entry in logged if entry["level"] == "error"]

    def screenshot(self, path: Path) -> bytes:
        """Save a picture of the whole page."""
        png = base64.b64decode(
            self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        )
        path.write_bytes(png)
        return png

    def pdf(self) -> bytes:
        """Print the page on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
        return base64.b64decode(self.ask("Page.printToPDF", **paper)["data"])


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start the browser with a profile of its own; it is gone afterwards."""
    ends = [end for pipe in (os.pipe(), os.pipe()) for end in pipe]
    # Numbers above 9, so that none of them is in the way of 3 and 4.
    commands, send, receive, answers = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends)
    for fd in ends:
        os.close(fd)
    shell = ["bash", "-c", 'exec "${@:3}" 3<&"$1" 4>&"$2"', "bash", str(commands), str(answers)]
    process = subprocess.Popen(
        [*shell, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(commands, answers),
    )
    os.close(commands)
    os.close(answers)
    try:
        yield Page(send, receive)
    finally:
        process.terminate()
        process.wait(20)
        os.close(send)
        os.close(receive)
