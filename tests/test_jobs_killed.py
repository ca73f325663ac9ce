"""Whatever is killed at whatever moment: started again, it comes to the same good end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import fast_catalog, killing
from tests.support.fast_catalog import RECIPE

MOST_STEPS = 400


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A start of the same plan that was killed at each of its steps on disk."""
    folder = tmp_path_factory.mktemp("killed")
    env = fast_catalog.environment(folder)
    done = subprocess.run(
        [sys.executable, killing.__file__, RECIPE, str(MOST_STEPS)],
        env={**os.environ, **env, "PYTHONPATH": str(Path(killing.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "" == done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_start_is_killed_at_every_one_of_its_steps(moments: list[dict[str, Any]]) -> None:
    """From its first look at a lock to the thread that waits for the worker; the last is whole."""
    events = [moment["event"] for moment in moments]
    assert events[-1] is None
    assert None not in events[:-1]
    assert len(events) > 15
    assert {"fcntl.flock", "os.mkdir", "os.rename", "subprocess.Popen"} <= set(events)


def test_the_same_plan_is_one_job_whatever_was_killed(moments: list[dict[str, Any]]) -> None:
    """At most one worker lives after the kill; started again that one is it, or a new one."""
    for number, moment in enumerate(moments):
        assert len(moment["left"]) <= 1, (number, moment)
        assert [moment["again"]] == moment["after"], (number, moment)
        assert moment["left"] in ([], [moment["again"]]), (number, moment)
        assert (moment["again"], "running") == (moment["twice"], moment["state"]), (number, moment)


def test_nothing_half_made_stays(moments: list[dict[str, Any]]) -> None:
    """The next start removes the folder that a killed one had begun."""
    assert [[]] * len(moments) == [moment["half_made"] for moment in moments]


def test_a_plan_is_used_up_whatever_was_killed(moments: list[dict[str, Any]]) -> None:
    """Its job was cancelled: the plan never does its work a second time."""
    ends = [(moment["ended"], moment["third"]) for moment in moments]
    assert [("cancelled", "used_plan")] * len(moments) == ends
