"""The one tree of errors that users meet.

::

    SparkRecipesError              code, message, repair, exit_code
    ├── Misuse                     2: unknown id, bad option or value, bad reference
    │   └── UnknownId              2: with the nearest ids that exist
    ├── CatalogError               1: a catalog or recipe file is not valid
    ├── Unknown                    3: no network, no answer: neither yes nor no
    ├── DownloadFailed             1
    ├── ServerError                1: carries the last log lines and what they mean
    │   ├── LaunchFailed
    │   └── NotReady
    ├── Refused                    1: an act that would harm the host or touch what is not ours
    │   └── CheckFailed            1: carries the findings
    ├── RoundFailed                1
    └── InstallFailed              as its cause: carries the steps done and what was kept

Questions return findings; only acts raise. Exit codes are those of the command line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class SparkRecipesError(Exception):
    """Base of every error that reaches a user: what happened, and the next step.

    Attributes:
        code: A stable word for programs, e.g. ``unknown_id``.
        message: What happened and where, in one or two sentences.
        repair: The next command or change, or an empty string where none is known.
        exit_code: What the command line returns for it.
    """

    exit_code = 1
    default_code = "error"

    def __init__(self, message: str, *, repair: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.repair = repair
        self.code = code or self.default_code


class Misuse(SparkRecipesError):
    """The question itself is wrong: an unknown id, a bad value or a bad reference."""

    exit_code = 2
    default_code = "misuse"


class UnknownId(Misuse):
    """Nothing of that kind has that id; the nearest ids are named in the repair.

    ``see`` is the command that lists them; None where there are so few that all are named.
    """

    default_code = "unknown_id"

    def __init__(self, kind: str, wanted: str, known: Iterable[str], *, see: str | None) -> None:
        known = tuple(known)
        near = list(dict.fromkeys(begun_by(wanted, known) + nearest(wanted, known)))[:3]
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        way = f"run: {see}" if see else f"one of: {', '.join(known) or 'none'}, or a file"
        super().__init__(f"no {kind} has the id {wanted!r}", repair=f"{hint}{way}")


class CatalogError(SparkRecipesError):
    """A catalog or recipe file cannot be used as it is."""

    default_code = "invalid_file"


class Unknown(SparkRecipesError):
    """The answer could not be had (no network, no reply in time): neither yes nor no."""

    exit_code = 3
    default_code = "unknown"


class Refused(SparkRecipesError):
    """An act that would harm the host, or touch something that is not ours."""

    default_code = "refused"


class CheckFailed(Refused):
    """A check found what stops the recipe here.

    Attributes:
        findings: One line a blocker.
    """

    default_code = "blocked"

    def __init__(self, message: str, *, repair: str, findings: Sequence[str]) -> None:
        super().__init__(message, repair=repair)
        self.findings = tuple(findings)


class DownloadFailed(SparkRecipesError):
    """Weights could not be fetched or are not complete."""

    default_code = "download_failed"


class ServerError(SparkRecipesError):
    """A container did not do what was asked.

    Attributes:
        log_tail: Its last log lines, oldest first, with secrets removed.
        diagnoses: Ids of the known causes found in them.
    """

    default_code = "server_error"

    def __init__(
        self,
        message: str,
        *,
        repair: str = "",
        code: str | None = None,
        log_tail: Sequence[str] = (),
        diagnoses: Sequence[str] = (),
    ) -> None:
        super().__init__(message, repair=repair, code=code)
        self.log_tail = tuple(log_tail)
        self.diagnoses = tuple(diagnoses)


class LaunchFailed(ServerError):
    """The container could not be started."""

    default_code = "launch_failed"


class NotReady(ServerError):
    """The container started, but no completion came before the deadline."""

    default_code = "not_ready"


class RoundFailed(SparkRecipesError):
    """The standard round could not be run at all (a failed request is a figure, not this)."""

    default_code = "round_failed"


class InstallFailed(SparkRecipesError):
    """A step of the walk failed; its code, repair and exit code are those of the cause.

    Attributes:
        step: The step that failed.
        kept: What it left in place.
    """

    default_code = "install_failed"

    def __init__(
        self,
        step: str,
        cause: SparkRecipesError,
        kept: Sequence[str],
        *,
        repair: str | None = None,
    ) -> None:
        left = f" (kept: {'; '.join(kept)})" if kept else ""
        told = cause.repair if repair is None else repair
        super().__init__(f"{step}: {cause.message}{left}", repair=told, code=cause.code)
        self.exit_code = cause.exit_code
        self.step = step
        self.kept = tuple(kept)


def nearest(wanted: str, known: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return up to ``limit`` known words that look like ``wanted``, best first.

    Args:
        wanted: What was written.
        known: What there is.
        limit: How many words at most.
        cutoff: How alike they must be, 0 to 1.
    """
    return difflib.get_close_matches(wanted, sorted(known), n=limit, cutoff=cutoff)


def begun_by(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the known words that go on from ``wanted``, shortest first.

    ``qwen`` is the start of an id, not a misspelling, so its letters alone resemble none.
    """
    start = wanted.lower()
    going_on = (word for word in known if start and word.startswith(start))
    return sorted(going_on, key=lambda word: (len(word), word))
