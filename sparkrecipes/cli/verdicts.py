"""Which answers are a yes, a no, or an unknown: the table of exit codes.

Nothing here needs the types, so that a quick command stays quick.
"""

from __future__ import annotations

from typing import Any

YES, NO, UNKNOWN, INTERRUPTED = 0, 1, 3, 130

VERDICTS = {
    "fits": YES,
    "tight": YES,
    "ready": YES,
    "matches": YES,
    "faster": YES,
    "does_not_fit": NO,
    "blocked": NO,
    "slower": NO,
    "unstable": NO,
    "unknown": UNKNOWN,
    "not_comparable": UNKNOWN,
}


PINS = {"pinned": YES, "same": YES, "moved": NO, "unpinned": NO, "unknown": UNKNOWN}
"""States of pins: a name that moved is a no."""


def exit_code(command: str, answer: Any) -> int:
    """Return the exit code of a command's answer; what has no verdict is done."""
    match command:
        case "fit" | "check":
            return VERDICTS[answer.verdict]
        case "report":
            return report_code(answer)
        case "recommend":
            return YES if answer.pick else NO
        case "validate" | "import" | "review":
            return YES if answer.valid else NO
        case "pin":
            return PINS[answer.state]
        case "diagnose":
            return YES if answer.diagnoses else UNKNOWN
        case "image":
            return image_code(answer)
        case "round":
            return round_code(answer)
        case "jobs":
            return job_code(answer)
        case "install":
            return VERDICTS[answer.report.verdict] if answer.report else YES
        case _:
            return YES


def report_code(answer: Any) -> int:
    """A verdict is its own; an audit is a no where a doubtful row bears no caveat."""
    if getattr(answer, "unmarked", ()):
        return NO
    return VERDICTS[answer.verdict] if hasattr(answer, "verdict") else YES


def round_code(answer: Any) -> int:
    """A round that Ctrl-C ended keeps what was measured, and says so."""
    if answer.interrupted:
        return INTERRUPTED
    return NO if answer.stability.failed or answer.stable is False else YES


def image_code(answer: Any) -> int:
    """A missing image is a no; one that nobody could look at is unknown."""
    if answer.platform_ok is None:
        return NO if answer.state in ("missing", "broken") else UNKNOWN
    return YES if answer.platform_ok else NO


def job_code(answer: Any) -> int:
    """A job that runs or went well is a yes; one that failed, was ended or was lost is a no."""
    state = getattr(answer, "state", "done")
    if state == "running":
        return YES
    result = getattr(answer, "result", None)
    return YES if state == "done" and (result is None or result.ok) else NO
