"""Diagnosis: known causes in a log, the most likely first, and secrets kept out of what is shown.

A huge log is searched for the plain text that each pattern starts with, and the pattern is tried
only there: one quick pass a pattern, whatever the log's size. No log is ever executed, stored or
sent anywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkrecipes.redaction import redact
from sparkrecipes.schema.findings import Diagnosis, DiagnosisReport, DiagnosisRule, lead_of

LONGEST_LINE = 2000
"""Characters after its start in which a pattern must end; more of a line is never read."""

LONGEST_EVIDENCE = 400
"""Characters of a line that are shown."""

MOST_TRIES = 20_000
"""Look-alikes of one pattern that are tried before it is given up."""

SENTENCES = re.compile(r"(?<=\.) (?=[A-Z{])")
NAMES = re.compile(r"\{(\w+)\}")

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

STATED = (
    "Error: ",
    "Exception: ",
    "Error response from daemon",
    "exec format error",
    " fatal ",
    "FAILED: ",
)
"""Text of lines that state an error with its reason."""

LEVELS = ("ERROR", "CRITICAL", "FATAL", "error: ", "Killed", "Out of memory", "Cannot ")
"""Text of lines that only say that something is wrong."""

NOT_FIRST = re.compile(
    r"root cause above|EngineCore failed to start|Traceback \(most recent|Retrying|retrying"
)
"""Lines that follow from the error, and errors that were tried again."""


def diagnose(log: str, rules: Iterable[DiagnosisRule]) -> DiagnosisReport:
    """Find the known causes in a log.

    A rule whose ``unless`` is found, or whose ``requires`` is not, is left out. Consequences are
    left out where a cause is found.

    Args:
        log: Any text: a container's log, a kernel log, an answer of the server.
        rules: The diagnoses of the catalog.

    Returns:
        Known causes by priority and then by first appearance, and the first line that states an
        error. None found is no all-clear.
    """
    found = [hit for rule in rules if (hit := hit_of(log, rule)) is not None]
    causes = [hit for hit in found if not hit.rule.consequence] or found
    causes.sort(key=lambda hit: (-hit.rule.priority, hit.at, hit.rule.id))
    return DiagnosisReport(
        diagnoses=tuple(hit.diagnosis() for hit in causes),
        first_error=first_error(log),
    )


@dataclass(frozen=True)
class Hit:
    """Where a rule was found."""

    rule: DiagnosisRule
    at: int
    line: str
    values: dict[str, str]

    def diagnosis(self) -> Diagnosis:
        """Write it out, with the values that the line gave."""
        values = with_derived(self.values)
        return Diagnosis(
            id=self.rule.id,
            cause=filled(self.rule.cause, values),
            evidence=self.line,
            remedy=filled(self.rule.remedy, values),
            confidence=self.rule.confidence,
            values=values,
        )


def hit_of(log: str, rule: DiagnosisRule) -> Hit | None:
    """Find where one of a rule's patterns holds, if the rule applies at all.

    A cause is shown where it first appears, a consequence where it last does: that is how far
    things have come.
    """
    places = [
        place
        for pattern in rule.patterns
        if (place := find(log, pattern, last=rule.consequence)) is not None
    ]
    if not places:
        return None
    if not all(find(log, pattern) for pattern in rule.requires):
        return None
    if any(find(log, pattern) for pattern in rule.unless):
        return None
    pick = max if rule.consequence else min
    at, found = pick(places, key=lambda place: place[0])
    values = {name: redact(text) for name, text in found.groupdict().items() if text}
    return Hit(rule, at, shown_line(log, at, found.end()), values)


def find(log: str, pattern: str, *, last: bool = False) -> tuple[int, re.Match[str]] | None:
    """Return the first (or last) place where a pattern holds, as (offset in the log, match)."""
    compiled = re.compile(pattern)
    for at in places_of(log, lead_of(pattern), last=last):
        for window in windows(log, at):
            if found := compiled.match(window):
                return at, found
    return None


def places_of(log: str, text: str, *, last: bool = False) -> Iterator[int]:
    """Yield the offsets of a text in a log, from one end, as many as are worth trying."""
    at = log.rfind(text) if last else log.find(text)
    for _ in range(MOST_TRIES):
        if at < 0:
            return
        yield at
        at = log.rfind(text, 0, at) if last else log.find(text, at + 1)


def windows(log: str, at: int) -> Iterator[str]:
    """Yield the rest of the line at an offset, then that joined with the next one.

    Terminals break long lines in the middle of a word, so that both joins are tried.
    """
    end = line_end(log, at)
    line = log[at : min(end, at + LONGEST_LINE)]
    yield line
    if end < len(log):
        start = end + (2 if log.startswith("\r\n", end) else 1)
        after = log[start : min(line_end(log, start), start + LONGEST_LINE)]
        yield line + after
        yield f"{line} {after.lstrip()}"


def line_end(log: str, at: int) -> int:
    """Return the offset where the line that holds ``at`` ends; a progress bar's CR ends one too."""
    ends = [end for mark in "\n\r" if (end := log.find(mark, at, at + LONGEST_LINE)) >= 0]
    return min(ends, default=min(len(log), at + LONGEST_LINE))


def shown_line(log: str, at: int, length: int = 1) -> str:
    """Return the line at an offset as it may be shown: no secrets, no colours, not too long."""
    start = max(log.rfind(mark, max(0, at - LONGEST_LINE), at) for mark in "\n\r") + 1
    end = max(line_end(log, at), min(at + length, len(log)))
    line = clean(log[start or max(0, at - LONGEST_LINE) : end])
    if len(line) > LONGEST_EVIDENCE:
        found = line.find(clean(log[at : at + 16]))
        line = line[max(0, found - 100) :] if found > LONGEST_EVIDENCE // 2 else line
    return line if len(line) <= LONGEST_EVIDENCE else f"{line[: LONGEST_EVIDENCE - 1]}…"


def clean(text: str) -> str:
    """Take secrets, colours and control characters out of a text, and make it one line."""
    one_line = re.sub(r"\r?\n|\r", " ", COLOUR.sub("", text))
    return redact(CONTROL.sub("", one_line)).strip()


def first_error(log: str) -> str | None:
    """Return the first line that states an error: what stands above the wall of tracebacks."""
    for texts in (STATED, LEVELS):
        places = [at for text in texts if (at := first_place(log, text)) is not None]
        if places:
            return shown_line(log, min(places))
    return None


def first_place(log: str, text: str) -> int | None:
    """Find a text in the first line that is not merely a consequence."""
    for at in places_of(log, text):
        start = log.rfind("\n", max(0, at - LONGEST_LINE), at) + 1
        if not NOT_FIRST.search(log, start or max(0, at - LONGEST_LINE), line_end(log, at)):
            return at
    return None


def with_derived(values: dict[str, str]) -> dict[str, str]:
    """Add what follows from the values: the largest fraction of the memory that is free.

    Source: vLLM refuses to start where free < fraction x total, so fraction <= free / total.
    """
    if not {"free_gib", "total_gib"} <= values.keys():
        return values
    fraction = math.floor(100 * float(values["free_gib"]) / float(values["total_gib"])) / 100
    return {**values, "max_fraction": f"{fraction:.2f}"}


def filled(text: str, values: dict[str, str]) -> str:
    """Put values where a text names them in braces, and leave out sentences with unknown ones."""
    kept = [part for part in SENTENCES.split(text) if set(NAMES.findall(part)) <= values.keys()]
    return NAMES.sub(lambda name: values.get(name[1], name[1]), " ".join(kept) or text)
