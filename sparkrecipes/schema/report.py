"""What is made of rounds: written reports, two rounds compared, their history, and the audit."""

from __future__ import annotations

from typing import Literal

from sparkrecipes.schema.base import Frozen, Id, Text
from sparkrecipes.schema.evidence import FigureName
from sparkrecipes.schema.round import Change, Count, Figure, Report, Round, Spread

Verdict = Literal["matches", "slower", "faster", "not_comparable", "unstable"]
FigureVerdict = Literal["matches", "slower", "faster", "not_comparable"]


class RoundSide(Frozen):
    """One of two rounds that are compared: what a reader tells it by."""

    name: Text
    """What sets it apart from the other in a few words."""
    started_at: Text
    file: str | None


class Condition(Frozen):
    """Something that was not the same in both rounds."""

    condition: Text
    before: str | None
    """In the first round; null where it is not known."""
    after: str | None


class PairRow(Frozen):
    """One figure of two rounds, by the true definitions."""

    figure: Text
    says: Text
    """Its name for people."""
    unit: Text
    better: Literal["higher", "lower"]
    decides: bool
    before: Spread | None
    after: Spread | None
    difference_pct: Change | None
    """The second round's median against the first one's."""
    verdict: FigureVerdict
    """Of the second round against the first."""
    note: str = ""


class RoundComparison(Frozen):
    """A second round against a first one: an upgrade, or another recipe."""

    verdict: Verdict
    summary: Text
    """The verdict in a sentence."""
    before: RoundSide
    after: RoundSide
    simulated: bool
    rows: tuple[PairRow, ...]
    conditions: tuple[Condition, ...]
    """What differs between the two; only what is the same twice explains nothing."""
    warnings: tuple[Text, ...]


class WrittenReport(Frozen):
    """A report as a text to paste, or as a file."""

    format: Literal["markdown", "html"]
    verdict: Verdict
    report: Report | RoundComparison
    text: str
    """The whole text; empty where a file holds it."""
    path: Text | None = None
    """The file that was written."""


RoundState = Literal["ended", "interrupted", "unfinished"]
"""``unfinished``: it is running still, or its process was killed."""


class JournalLine(Frozen):
    """One line of the journal of rounds: a round that began, or as it ended."""

    schema_version: Literal[1] = 1
    event: Literal["began", "ended"]
    file: Text
    """Where the round itself is saved after every request."""
    round: Round | None
    """As it ended; null as it begins."""


class HistoryRow(Frozen):
    """One round that was run on this machine."""

    started_at: Text
    recipe_id: Id | None
    model: Text
    method: Text
    simulated: bool
    state: RoundState
    single_user_tok_s: Figure | None
    """Median decode speed of one user, by the true definition."""
    aggregate_tok_s: Figure | None
    """All users together, over the wall time."""
    users: Count | None
    requests: Count
    failed: Count
    verdict: Verdict
    """Against what is published of its recipe."""
    file: Text


class History(Frozen):
    """The rounds that were run on this machine, the newest first."""

    rows: tuple[HistoryRow, ...]
    journal: Text
    """The file that they were read from."""
    warnings: tuple[Text, ...]
    """Lines that could not be read, and why."""


class ExportedRounds(Frozen):
    """Rounds in the shape of llama-benchy's reports."""

    format: Literal["csv", "json"]
    rounds: Count
    text: str
    warnings: tuple[Text, ...] = ()


class AuditRow(Frozen):
    """What one published row implies, by arithmetic."""

    recipe_id: Id
    evidence: Id
    """The set that the row is in."""
    single_user_tok_s: Figure
    ttft_ms: Figure
    four_users_total_tok_s: Figure
    whole_request_s: Figure
    """What 300 tokens, the most the method asks for, take at these two figures."""
    whole_request_tok_s: Figure
    """300 tokens over that time: the most that one user got of a whole request."""
    overstated: Figure
    """Published speed over that of the whole request."""
    scaling: Figure
    """Total of four users over the whole request's speed of one: between 1 and 4."""
    flagged: bool
    caveats: tuple[FigureName, ...]
    """Figures that the catalog marks as doubtful."""
    reasons: tuple[Text, ...]
    """Why the figures cannot both be right, with the arithmetic."""
    notes: tuple[Text, ...] = ()
    """Odd, and within the noise."""


class PublishedAudit(Frozen):
    """The published rows, recomputed: an inference from figures, not a measurement."""

    basis: Text
    """The rules, and what they rest on."""
    rows: tuple[AuditRow, ...]
    flagged: tuple[Id, ...]
    unmarked: tuple[Id, ...]
    """Flagged rows whose figures the catalog does not mark as doubtful."""
    left_out: tuple[Text, ...] = ()
    """Rows that lack a figure, and which."""
