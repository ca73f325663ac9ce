"""What every test of a fault stands on: planted secrets, bystanders, and the table of faults.

The engine is the tiny server of two megabytes, which plays each fault in a second or two.
"""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.real.conftest import TINY_IMAGE, CommandLine, docker, free_port
from tests.support.fault_table import faults

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
TOKEN = "hf_PlantedSecretPlantedSecret0123456"
KEY = "correct-horse-battery-staple"
"""Has no shape that it could be known by."""
PROXY_PASSWORD = "planted-proxy-password"
SECRETS = (TOKEN, KEY, PROXY_PASSWORD)

NOTING_DOCKER = """#!/bin/sh
printf '%s\\n' "$*" >>{noted}
exec {docker} "$@"
"""


class FaultBench(CommandLine):
    """The command line with planted secrets, whose words and children are all looked through."""

    def __init__(self, home: Path, catalog: Path) -> None:
        """Plant the secrets, and put a docker on PATH that notes how it was called."""
        super().__init__(home, catalog)
        self.home = home
        self.catalog = catalog
        self.fields: dict[str, Any] = yaml.safe_load(self.recipe_file(RECIPE).read_text())
        self.fields["image"]["reference"] = TINY_IMAGE
        self.fields |= {"weights": None, "flags": [], "speculative": None, "startup_timeout_s": 10}
        self.env |= {
            "HF_TOKEN": TOKEN,
            "VLLM_API_KEY": KEY,
            "HTTP_PROXY": f"http://user:{PROXY_PASSWORD}@127.0.0.1:9",
            "HTTPS_PROXY": f"http://user:{PROXY_PASSWORD}@127.0.0.1:9",
            "XDG_STATE_HOME": str(home / "state"),
        }
        folder = home / "bin"
        folder.mkdir()
        (folder / "docker").write_text(
            NOTING_DOCKER.format(noted=home / "calls", docker=shutil.which("docker"))
        )
        (folder / "docker").chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env['PATH']}"

    def recipe_file(self, recipe_id: str) -> Path:
        """The file of a recipe of this catalog."""
        return self.catalog / "recipes" / f"{recipe_id}.yaml"

    def write(self, recipe_id: str = RECIPE, *, mode: str = "", **fields: Any) -> None:
        """Write a recipe that the tiny server serves, in one of its modes."""
        env = {"MODEL": self.fields["served_model_name"], "MODE": mode} | fields.pop("env", {})
        text = yaml.safe_dump({**self.fields, **fields, "env": env})
        self.recipe_file(recipe_id).write_text(text)

    def __call__(
        self, *args: str, code: int | None = 0, timeout_s: float = 600.0
    ) -> dict[str, Any]:
        """Run a command while the arguments of its children are watched; no secret is anywhere."""
        with watched_children(self):
            answer = super().__call__(*args, code=code, timeout_s=timeout_s)
        self.holds_no_secret(self.said)
        return answer

    def fails(self, fault: str, *args: str) -> dict[str, Any]:
        """Install with a fault: exit code, code and words are those of the table."""
        port = () if "--port" in args else ("--port", str(free_port()))
        row = faults()[fault]
        error: dict[str, Any] = self("install", RECIPE, *port, *args, code=row.exits[0])["error"]
        self.is_as_promised(fault, error)
        return error

    def is_as_promised(self, fault: str, error: dict[str, Any]) -> None:
        """The error has the code, the words and a repair of the table's row."""
        row = faults()[fault]
        told = error["message"] + error["repair"]
        assert error["code"] in row.codes, error
        assert [] == [words for words in row.words if words not in told], error
        assert error["repair"]

    def holds_no_secret(self, text: str) -> None:
        """None of the planted secrets stands in a text."""
        assert [] == [secret for secret in SECRETS if secret in text]

    def left_no_secret(self) -> None:
        """None stands in what was written, in how docker was called, or in our containers."""
        for name in ("state", "data", "cache"):
            for file in (self.home / name).rglob("*"):
                if file.is_file():
                    self.holds_no_secret(file.read_text(errors="replace"))
        calls = self.home / "calls"
        self.holds_no_secret(calls.read_text() if calls.exists() else "")
        ours = docker("ps", "--all", "--quiet", "--filter", "label=org.sparkrecipes.recipe")
        for item in inspected(*ours.split()):
            # The engine's own key is in its environment, for there the engine reads it.
            env = [value for value in item["Config"]["Env"] if value != f"VLLM_API_KEY={KEY}"]
            item["Config"]["Env"] = env
            self.holds_no_secret(json.dumps(item))

    @contextmanager
    def installing(self, *args: str) -> Iterator["Installing"]:
        """Install in the background, from when its container is there; it is ended at the end."""
        process = subprocess.Popen(
            [*self.program, "install", RECIPE, "--port", str(free_port()), "--json", *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
        )
        begun = Installing(self, process)
        try:
            begun.wait_for_container()
            yield begun
        finally:
            process.kill()
            process.communicate(timeout=10)


class Installing:
    """An install that runs in the background."""

    def __init__(self, bench: FaultBench, process: subprocess.Popen[str]) -> None:
        """Remember both."""
        self.bench = bench
        self.process = process

    def wait_for_container(self) -> None:
        """Return when it has written down that its container runs."""
        journal = self.bench.home / "state" / "sparkrecipes" / "installs" / f"{RECIPE}.json"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            if journal.exists() and json.loads(journal.read_text())["made"]:
                return
            time.sleep(0.1)
        raise AssertionError("its container did not come")

    def fails(self, fault: str) -> dict[str, Any]:
        """It ends as the table says."""
        out, err = self.process.communicate(timeout=60)
        self.bench.holds_no_secret(out + err)
        assert "Traceback" not in err
        assert faults()[fault].exits[0] == self.process.returncode, out + err
        error: dict[str, Any] = json.loads(out)["error"]
        self.bench.is_as_promised(fault, error)
        return error


def inspected(*names: str) -> list[dict[str, Any]]:
    """What docker says of containers."""
    found: list[dict[str, Any]] = []
    if names:
        found = json.loads(docker("container", "inspect", *names))
    return found


def everything() -> dict[str, Any]:
    """What the engine holds beside our one: containers with their state, volumes, and images."""
    seen = inspected(*docker("ps", "--all", "--quiet").split())
    states = {c["Id"]: (c["Name"], c["State"]["Status"], c["RestartCount"]) for c in seen}
    return {
        "containers": {key: state for key, state in states.items() if state[0] != f"/{NAME}"},
        "volumes": sorted(docker("volume", "ls", "--quiet").split()),
        "images": sorted(docker("image", "ls", "--quiet", "--no-trunc").split()),
    }


@contextmanager
def watched_children(bench: FaultBench) -> Iterator[None]:
    """Look at the arguments of every process of this host, twenty times a second."""
    stop = threading.Event()
    seen: set[str] = set()

    def look() -> None:
        while not stop.wait(0.05):
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    seen.add((folder / "cmdline").read_bytes().decode(errors="replace"))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    assert any("sparkrecipes" in line and sys.executable in line for line in seen)
    bench.holds_no_secret("\n".join(seen))
