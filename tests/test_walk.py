"""The walk as a person watches it: each thing is said once, in plain words."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.fast_catalog import RECIPE, environment


def rehearse(folder: Path, *words: str, **env: str) -> tuple[int, list[str]]:
    """Run a rehearsal into one pipe; return its exit code and its lines."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkrecipes", "--offline", "rehearse", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        env=os.environ | environment(folder) | env,
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


def test_what_cannot_be_saved_is_said_before_anything_is_done(tmp_path: Path) -> None:
    """No step begins: a round that nobody could keep is not run."""
    (tmp_path / "file").touch()
    code, lines = rehearse(tmp_path, RECIPE, XDG_DATA_HOME=str(tmp_path / "file"))
    assert (2, "error: rounds cannot be saved in ") == (code, lines[0][:33])
    assert "export XDG_DATA_HOME=" in lines[1]


def test_ctrl_c_in_the_round_ends_the_walk_and_keeps_what_was_measured(tmp_path: Path) -> None:
    """Half a round is no verdict: exit 130, the file is named, and nothing is reported."""
    # A shell's background job ignores Ctrl-C, and so would what it starts.
    takes_it = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    walks = f"{takes_it}; import sys; from sparkrecipes.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", walks, "--offline", "rehearse", RECIPE],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment(tmp_path),
    )
    assert process.stdout
    for line in process.stdout:
        if line == "users at once\n":
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert (130, False) == (process.returncode, "report ..." in rest)
    assert "error: interrupted; what was measured is in " in rest
