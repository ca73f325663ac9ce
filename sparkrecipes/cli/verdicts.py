"""Which answers are a yes, a no, or an unknown: the table of exit codes."""

from __future__ import annotations

from sparkrecipes.schema.findings import CheckReport, DiagnosisReport, ValidationReport
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.round import InstallReport, Report, Round
from sparkrecipes.schema.use_case import Recommendation

YES, NO, UNKNOWN = 0, 1, 3

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


def exit_code(command: str, answer: object) -> int:
    """Return the exit code of an answer; what has no verdict is done."""
    match answer:
        case MemoryEstimate() | CheckReport() | Report():
            return VERDICTS[answer.verdict]
        case Recommendation():
            return YES if answer.pick else NO
        case ValidationReport():
            return YES if answer.valid else NO
        case DiagnosisReport():
            return YES if answer.diagnoses else UNKNOWN
        case ImageReport():
            return image_code(answer)
        case Round():
            return NO if answer.stability.failed or answer.stable is False else YES
        case InstallReport():
            return install_code(command, answer)
        case _:
            return YES


def image_code(answer: ImageReport) -> int:
    """A missing image is a no; one that nobody could look at is unknown."""
    if answer.platform_ok is None:
        return NO if answer.state in ("missing", "broken") else UNKNOWN
    return YES if answer.platform_ok else NO


def install_code(command: str, answer: InstallReport) -> int:
    """A rehearsal is done when it was walked; an install is done when it is as published."""
    if command == "rehearse" or answer.report is None:
        return YES
    return VERDICTS[answer.report.verdict]
