"""The walk as a person watches it: each thing is said once, in plain words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkrecipes.operations.walk import summary_of
from sparkrecipes.schema.findings import CheckReport, Finding
from tests.support.fast_catalog import RECIPE, environment


def rehearse(folder: Path, *words: str) -> tuple[int, list[str]]:
    """Run a rehearsal into one pipe; return its exit code and its lines."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkrecipes", "--offline", "rehearse", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        env=os.environ | environment(folder),
    )
    return done.returncode, done.stdout.splitlines()


def test_an_unknown_use_case_is_said_once(tmp_path: Path) -> None:
    """The error says it; the step says only that it failed."""
    code, lines = rehearse(tmp_path, "nope")
    assert (2, 1) == (code, sum("names no use case" in line for line in lines))
    assert "recommend: failed" in lines


def test_steps_are_said_once_where_both_streams_are_one(tmp_path: Path) -> None:
    """Whoever reads progress and answer in one pipe has the steps already."""
    code, lines = rehearse(tmp_path, RECIPE)
    assert (0, 1) == (code, sum("the command below is not run" in line for line in lines))


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (("blocker", "ok", "warning"), "ready (1 blocker, 1 warning, 1 ok)"),
        (("ok", "ok", "unknown", "unknown", "blocker", "blocker"), "2 blockers, 2 unknown, 2 ok"),
    ],
)
def test_findings_are_counted_in_words(levels: tuple[str, ...], expected: str) -> None:
    """One blocker, two blockers; the worst first, and what is not there is not counted."""
    findings = tuple(
        Finding(check="disk", level=level, message="m", repair="r") for level in levels
    )
    report = CheckReport(recipe_id="r", verdict="ready", findings=findings)
    assert expected in summary_of(report)
