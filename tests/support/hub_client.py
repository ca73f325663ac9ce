"""Runs our downloads in a process of its own, because the Hub's client reads its environment once.

Requests come as JSON lines on stdin, answers go as JSON lines to stdout. The client's waiting
between its own retries is cut short, so that a test of a broken connection takes no minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sparkrecipes.schema.recipe import Recipe

SHORT_S = 0.01


class HubClient:
    """A process whose Hub is ``url``; one question at a time."""

    def __init__(self, url: str, home: Path, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hub_client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(url, home, **env),
        )

    def ask(self, call: str, recipe: Recipe, root: Path, **options: Any) -> dict[str, Any]:
        """Call ``download`` or ``plan``; the answer has ``result`` or ``error``, and ``progress``.

        ``token`` sets HF_TOKEN for this call; other options are the function's own.
        """
        token = options.pop("token", None)
        question = {
            "call": call,
            "recipe": recipe.model_dump(mode="json"),
            "root": str(root),
            "token": token,
            "options": options,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait(10)


def environment(url: str, home: Path, **env: str) -> dict[str, str]:
    """Return an environment with one Hub, an empty home and no token."""
    dropped = ("HF_", "HUGGING", "TRANSFORMERS_", "XDG_CACHE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    return {**kept, "HF_ENDPOINT": url, "HF_HOME": str(home), **env}


def main() -> None:
    """Answer one question a line until there are no more."""
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, SHORT_S))
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Call what was asked for."""
    from sparkrecipes import downloads
    from sparkrecipes.errors import SparkRecipesError

    os.environ.pop("HF_TOKEN", None)
    if question["token"]:
        os.environ["HF_TOKEN"] = question["token"]
    recipe = Recipe.model_validate_json(json.dumps(question["recipe"]))
    root, options = Path(question["root"]), question["options"]
    progress: list[list[float]] = []

    def note(at: downloads.DownloadProgress) -> None:
        progress.append([at.done_bytes, at.total_bytes, at.done_files, at.total_files])

    try:
        if question["call"] == "plan":
            made = downloads.plan(recipe, root=root)
            result: dict[str, Any] = {
                "fetch_bytes": made.fetch_bytes,
                "free_bytes": made.free_bytes,
                "revisions": [repo.revision for repo in made.repos],
            }
        else:
            report = downloads.download(recipe, root=root, progress=note, **options)
            result = report.model_dump(mode="json")
    except SparkRecipesError as err:
        error = {"code": err.code, "message": err.message, "repair": err.repair}
        return {"error": {**error, "exit_code": err.exit_code}, "progress": progress}
    return {"result": result, "progress": progress}


if __name__ == "__main__":
    main()
