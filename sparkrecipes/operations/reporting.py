"""Reporting: what saved rounds say, beside published figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparkrecipes import reports
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.results import latest_round, load_round
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.report import PublishedAudit, RoundComparison, WrittenReport
from sparkrecipes.schema.round import Report, Round


@dataclass(frozen=True)
class Opened:
    """A round that a report is made of.

    Attributes:
        round: The round.
        path: Its file, where it was read from one.
        notes: What a reader must know of how it was found.
    """

    round: Round
    path: Path | None = None
    notes: tuple[str, ...] = ()


def compare(
    round_file: Path | str | Round | None = None,
    *,
    recipe: str | None = None,
    catalog: Catalog | Place = None,
) -> Report:
    """Compare a measured round with the published figures of its recipe.

    Args:
        round_file: A saved round, a round, or None for the newest usable one (of ``recipe``).
        recipe: Compare with this recipe's figures instead of the round's own.
        catalog: Where the figures come from.

    Raises:
        Misuse: There is no such round.
    """
    return judged(opened_round(round_file, recipe), recipe, catalog)


def judged(found: Opened, recipe: str | None, catalog: Catalog | Place) -> Report:
    """Compare an opened round with the published figures of its recipe."""
    opened, measured = open_catalog_of(catalog), found.round
    chosen = recipe or measured.recipe_id
    known = opened.recipe(chosen) if chosen else None
    row = opened.october_row(known) if known else None
    other = other_model(opened, measured, known)
    report = reports.compare(
        measured, None if other else row, recipe_id=known.id if known else None
    )
    warnings = (*found.notes, *((other,) if other else ()), *report.warnings)
    file = str(found.path) if found.path else None
    return report.model_copy(update={"round_file": file, "warnings": warnings})


def compare_rounds(before: Path | str | Round, after: Path | str | Round) -> RoundComparison:
    """Compare a second round with a first one: an upgrade, or recipe against recipe.

    Args:
        before: The round that is judged against, or its file.
        after: The round that is judged, or its file.

    Returns:
        A difference within the spread of the repeats or under 3 % is no difference; what differs
        in the conditions is listed, and rounds of two methods are not comparable.

    Raises:
        Misuse: There is no such round.
    """
    return pair_of(opened_round(before, None), opened_round(after, None))


def pair_of(before: Opened, after: Opened) -> RoundComparison:
    """Compare two opened rounds."""
    files = tuple(str(one.path) if one.path else None for one in (before, after))
    return reports.compare_pair(before.round, after.round, (files[0], files[1]))


def audit_published(*, catalog: Catalog | Place = None) -> PublishedAudit:
    """Recompute from every published row what its method implies; flag what cannot be right.

    It is an inference from figures, not a measurement. Each flagged row comes with its arithmetic.

    Args:
        catalog: Where the published rows come from.
    """
    return reports.audit(open_catalog_of(catalog).evidence.values())


def other_model(catalog: Catalog, measured: Round, known: Recipe | None) -> str | None:
    """Say where a round measured another model than the one it is to be compared with."""
    own = catalog.recipes.get(measured.recipe_id or "")
    if own is None or known is None or own.model == known.model:
        return None
    return f"the round measured {own.model}, the figures are of {known.model}"


def opened_round(round_file: Path | str | Round | None, recipe: str | None) -> Opened:
    """Return a round as it is, or read its file or the newest usable one.

    Raises:
        Misuse: There is no such round.
    """
    if isinstance(round_file, Round):
        return Opened(round_file)
    if round_file:
        return Opened(load_round(Path(round_file)), Path(round_file))
    round_, path, notes = latest_round(recipe)
    return Opened(round_, path, tuple(notes))


def write_report(
    round_file: Path | str | Round | None = None,
    *,
    against: Path | str | Round | None = None,
    format: Literal["markdown", "html"] = "markdown",
    path: Path | str | None = None,
    recipe: str | None = None,
    catalog: Catalog | Place = None,
) -> WrittenReport:
    """Write a comparison as Markdown, or as one HTML page that opens offline.

    Args:
        round_file: A saved round, a round, or None for the newest usable one (of ``recipe``).
        against: A second round, to be judged by the first one instead of by published figures.
        format: Markdown to paste, or a page with plots.
        path: The file to write; None: the text comes with the answer.
        recipe: Compare with this recipe's figures instead of the round's own.
        catalog: Where the figures come from.

    Raises:
        Misuse: There is no such round, or the file cannot be written.
    """
    first = opened_round(round_file, recipe)
    report: Report | RoundComparison
    if against is None:
        report = judged(first, recipe, catalog)
        write = reports.html if format == "html" else reports.markdown
        text = write(report, first.round)
    else:
        second = opened_round(against, None)
        report = pair_of(first, second)
        write_pair = reports.html_of_pair if format == "html" else reports.markdown_of_pair
        text = write_pair(report, first.round, second.round)
    if path is not None:
        write_text(Path(path), text)
    return WrittenReport(
        format=format,
        verdict=report.verdict,
        report=report,
        text="" if path is not None else text,
        path=None if path is None else str(path),
    )


def write_text(path: Path, text: str) -> None:
    """Write a whole file, or leave what was there.

    Raises:
        Misuse: The folder is missing or may not be written.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as err:
        partial.unlink(missing_ok=True)
        raise Misuse(
            f"{path} cannot be written: {err.strerror}", repair="name a file in a folder of yours"
        ) from err
