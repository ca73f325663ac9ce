"""A ``docker`` program for quick tests: it answers what a real one was recorded to answer.

It is a real program on PATH, so that the code under test starts it as it starts Docker. Each
answer belongs to the arguments that a call begins with; several for the same arguments are given
one after the other, and the last one stays. Every call is noted.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.support.programs import write_python

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "docker" / "inspect.json").read_text())
LABEL = "org.sparkrecipes.recipe"
ID = RECORDED["container"]["Id"]
NAME = "sparkrecipes-demo"

PROGRAM = """
import json, os, sys
folder = {folder!r}
args = sys.argv[1:]
with open(folder + "/calls.jsonl", "a") as calls:
    calls.write(json.dumps(args) + "\\n")
with open(folder + "/answers.json") as file:
    answers = json.load(file)
mine = [a for a in answers if args[: len(a["args"])] == a["args"]]
if not mine:
    sys.exit("fake docker: no answer for " + " ".join(args))
answer = next((a for a in mine if not a["given"]), mine[-1])
answer["given"] = True
with open(folder + "/answers.json", "w") as file:
    json.dump(answers, file)
sys.stdout.write(answer["stdout"])
sys.stderr.write(answer["stderr"])
sys.exit(answer["exit_code"])
"""


def described(state: str = "running", *, recipe_id: str | None = "demo", **changes: Any) -> str:
    """Return what ``docker container inspect`` was recorded to say of one container."""
    item = deepcopy(RECORDED["container"])
    item["Name"] = f"/{NAME}"
    item["State"] = RECORDED["states"][state] | changes.pop("State", {})
    item["Config"]["Labels"] = {LABEL: recipe_id} if recipe_id else {}
    return json.dumps([item | changes])


class FakeDocker:
    """Answers for ``docker`` and notes what it was asked."""

    def __init__(self, folder: Path) -> None:
        """Write the program into a folder that a test puts on PATH."""
        self.folder = folder
        self.answers: list[dict[str, object]] = []
        write_python(folder / "docker", PROGRAM.format(folder=str(folder)), "-IS")
        self.save()

    def answer(self, *args: str, stdout: str = "", stderr: str = "", exit_code: int = 0) -> None:
        """Answer calls that begin with ``args``."""
        self.answers.append(
            {
                "args": args,
                "stdout": stdout,
                "stderr": stderr,
                "exit_code": exit_code,
                "given": False,
            }
        )
        self.save()

    def save(self) -> None:
        """Let the program know the answers."""
        (self.folder / "answers.json").write_text(json.dumps(self.answers))

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call so far."""
        noted = self.folder / "calls.jsonl"
        return [json.loads(line) for line in noted.read_text().splitlines()]
