"""What a change touches, asked of git: nothing is fetched, written or run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sparkrecipes.errors import Misuse

TIMEOUT_S = 60
MAX_BYTES = 4 * 2**20
"""Larger files are not read: no file of a catalog is."""


class NoRepository(Misuse):
    """There is no git repository to ask, or it does not know the commit."""

    default_code = "no_repository"


@dataclass(frozen=True)
class ChangedFile:
    """One file that differs.

    Attributes:
        path: Within the repository.
        old: Its text at the base; None: it is new, or no text.
        new: Its text now; None: it is gone, or no text.
        was_there: Whether the base has it.
        is_there: Whether it is there now.
    """

    path: str
    old: str | None
    new: str | None
    was_there: bool
    is_there: bool


@dataclass(frozen=True)
class Repository:
    """A working tree.

    Attributes:
        top: Its folder.
    """

    top: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """Open the repository that a folder lies in.

        Raises:
            NoRepository: It lies in none, or git is not installed.
        """
        try:
            top = run(folder, "rev-parse", "--show-toplevel").strip()
        except FileNotFoundError:
            message = "git is not installed here"
            raise NoRepository(message, repair="install git") from None
        except GitSays as error:
            message = f"{folder} is not in a git repository ({error})"
            raise NoRepository(message, repair="run it in a clone of sparkrecipes") from None
        return cls(Path(top))

    def base(self, name: str) -> str:
        """Return the commit that the working tree and a branch have in common.

        Raises:
            NoRepository: There is no such branch or commit.
        """
        try:
            if name.startswith("-"):
                raise GitSays("a commit does not begin with a dash")
            commit = run(
                self.top,
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                f"{name}^{{commit}}",
            ).strip()
            return run(self.top, "merge-base", commit, "HEAD").strip()
        except GitSays as error:
            why = f" ({error})" if str(error) else ""
            message = f"git knows no commit {name} that this one comes from{why}"
            repair = "name a branch or commit, e.g. main; in a shallow clone fetch it first"
            raise NoRepository(message, repair=repair) from None

    def changed(self, commit: str) -> list[ChangedFile]:
        """Return every file that differs from a commit, those not yet added to git included."""
        fields = run(
            self.top, "diff", "--name-status", "--no-renames", "--no-ext-diff", "-z", commit
        ).split("\0")
        found = dict(zip(fields[1::2], fields[::2], strict=False))
        for path in run(self.top, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
            if path:
                found.setdefault(path, "A")
        return [self._file(commit, path, state) for path, state in sorted(found.items())]

    def _file(self, commit: str, path: str, state: str) -> ChangedFile:
        was_there, is_there = state != "A", os.path.lexists(self.top / path)
        old = None
        if was_there:
            try:
                old = run(self.top, "show", "--no-textconv", f"{commit}:{path}")
            except (GitSays, UnicodeDecodeError):
                old = None
        return ChangedFile(path, old, self._text(path) if is_there else None, was_there, is_there)

    def _text(self, path: str) -> str | None:
        """Return the text of a file; None for what is no text, a link or too large."""
        target = self.top / path
        try:
            if target.is_symlink() or not target.is_file() or target.stat().st_size > MAX_BYTES:
                return None
            return target.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


class GitSays(Exception):
    """What git answered instead of doing it."""


def run(folder: Path, *words: str) -> str:
    """Run one git command that only reads.

    Raises:
        GitSays: It failed; its first line.
        FileNotFoundError: There is no git.
    """
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotepath=off", "-c", "core.fsmonitor=false", *words],
            cwd=folder,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitSays(f"no answer within {TIMEOUT_S} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitSays(said[0][:200] if said else "")
    return done.stdout.decode("utf-8")
