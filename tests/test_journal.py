"""The journal of an install: what a killed one leaves, and that two never run at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkrecipes.errors import Refused
from sparkrecipes.operations.journal import open_journal

KILLED = """
import os, sys
from pathlib import Path
from sparkrecipes.operations.journal import open_journal
with open_journal("demo", Path(sys.argv[1])) as journal:
    journal.note("check: done")
    journal.note_container("abc")
    os.kill(os.getpid(), 9)
"""


def test_a_killed_install_is_gone_on_with(tmp_path: Path) -> None:
    """Its steps and its container are known to the next one; its lock is not in the way."""
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=20)
    with open_journal("demo", tmp_path) as journal:
        assert (("check: done",), "abc") == (journal.before, journal.made)
    with open_journal("other", tmp_path) as journal:
        assert ((), None) == (journal.before, journal.made)


def test_an_install_that_ended_leaves_nothing(tmp_path: Path) -> None:
    """The next one begins anew."""
    with open_journal("demo", tmp_path) as journal:
        journal.note("check: done")
        journal.close()
    assert ["lock"] == [path.name for path in tmp_path.iterdir()]


def test_two_installs_never_run_at_once(tmp_path: Path) -> None:
    """Whatever the recipe: the memory is one. The one that runs is named, and goes on."""
    with open_journal("demo", tmp_path):
        with pytest.raises(Refused) as err, open_journal("other", tmp_path):
            raise AssertionError("two installs at once")
        assert "install_running" == err.value.code
        assert f"demo, process {os.getpid()}" in err.value.message
    with open_journal("other", tmp_path):
        pass


def test_no_secret_is_in_the_journal(tmp_path: Path) -> None:
    """Steps pass through the same redaction as logs."""
    with open_journal("demo", tmp_path) as journal:
        journal.note("download: HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345")
    assert "hf_abcdef" not in (tmp_path / "demo.json").read_text()


@pytest.mark.parametrize("text", ["", "[]", '{"steps": 3}', '{"made": 3, "steps": []}'])
def test_a_journal_that_is_none_is_nothing_to_go_on_with(tmp_path: Path, text: str) -> None:
    """A file that something else wrote does not end an install."""
    (tmp_path / "demo.json").write_text(text)
    with open_journal("demo", tmp_path) as journal:
        assert ((), None) == (journal.before, journal.made)


def test_the_log_of_a_removed_container_is_kept_until_an_install_ends_well(tmp_path: Path) -> None:
    """Nobody else can read it, it holds no secret, and a good end takes it away."""
    secret = "hf_" + "a" * 30
    with open_journal("demo", tmp_path) as journal:
        log = journal.keep_log(("starting", f"HF_TOKEN={secret}", "ValueError: no kernel"))
        assert log is not None
        assert "starting\nHF_TOKEN=[removed]\nValueError: no kernel\n" == log.read_text()
        assert 0o600 == log.stat().st_mode & 0o777
        journal.close()
    assert [] == [path for path in tmp_path.iterdir() if path.suffix == ".log"]


def test_a_state_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    """A read-only home: no journal and no lock, and the install goes on."""
    (tmp_path / "file").write_text("")
    with open_journal("demo", tmp_path / "file" / "installs") as journal:
        journal.note("check: done")
        assert journal.path is None
        journal.close()


FULL = """
import resource, sys
from pathlib import Path
from sparkrecipes.operations.journal import open_journal
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
with open_journal("demo", Path(sys.argv[1])) as journal:
    journal.note("check: done")
    print("went on", flush=True)
    sys.stdin.read()
"""


def test_a_full_disk_ends_no_install(tmp_path: Path) -> None:
    """No byte can be written, to the lock either: the install goes on, and keeps others out."""
    argv = [sys.executable, "-c", FULL, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as full:
        assert full.stdin is not None
        assert full.stdout is not None
        assert "went on\n" == full.stdout.readline()
        with pytest.raises(Refused) as err, open_journal("other", tmp_path):
            raise AssertionError("two installs at once")
        assert "install_running" == err.value.code
        full.stdin.close()
        assert 0 == full.wait(20)
