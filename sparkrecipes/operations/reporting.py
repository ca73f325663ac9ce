"""Reporting: what saved rounds say, beside published figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from sparkrecipes import reports
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.results import latest_round, load_round
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.report import WrittenReport
from sparkrecipes.schema.round import Report, Round


def compare(
    round_file: Path | str | Round | None = None,
    *,
    recipe: str | None = None,
    catalog: Catalog | Place = None,
) -> Report:
    """Compare a measured round with the published figures of its recipe.

    Args:
        round_file: A saved round, a round, or None for the newest one (of ``recipe``).
        recipe: Compare with this recipe's figures instead of the round's own.
        catalog: Where the figures come from.

    Raises:
        Misuse: There is no such round.
    """
    measured, path = opened_round(round_file, recipe)
    opened = open_catalog_of(catalog)
    chosen = recipe or measured.recipe_id
    known = opened.recipe(chosen) if chosen else None
    row = opened.october_row(known) if known else None
    other = other_model(opened, measured, known)
    report = reports.compare(
        measured, None if other else row, recipe_id=known.id if known else None
    )
    warnings = (other, *report.warnings) if other else report.warnings
    return report.model_copy(
        update={"round_file": str(path) if path else None, "warnings": warnings}
    )


def other_model(catalog: Catalog, measured: Round, known: Recipe | None) -> str | None:
    """Say where a round measured another model than the one it is to be compared with."""
    own = catalog.recipes.get(measured.recipe_id or "")
    if own is None or known is None or own.model == known.model:
        return None
    return f"the round measured {own.model}, the figures are of {known.model}"


def opened_round(
    round_file: Path | str | Round | None, recipe: str | None
) -> tuple[Round, Path | None]:
    """Return a round as it is, or read its file or the newest one.

    Raises:
        Misuse: There is no such round.
    """
    if isinstance(round_file, Round):
        return round_file, None
    path = Path(round_file) if round_file else latest_round(recipe)
    return load_round(path), path


def write_report(
    round_file: Path | str | Round | None = None,
    *,
    format: Literal["markdown", "html"] = "markdown",
    path: Path | str | None = None,
    recipe: str | None = None,
    catalog: Catalog | Place = None,
) -> WrittenReport:
    """Write a round's comparison as Markdown, or as one HTML page that opens offline.

    Args:
        round_file: A saved round, a round, or None for the newest one (of ``recipe``).
        format: Markdown to paste, or a page with plots.
        path: The file to write; None: the text comes with the answer.
        recipe: Compare with this recipe's figures instead of the round's own.
        catalog: Where the figures come from.

    Raises:
        Misuse: There is no such round, or the file cannot be written.
    """
    measured, source = opened_round(round_file, recipe)
    report = compare(measured, recipe=recipe, catalog=catalog).model_copy(
        update={"round_file": str(source) if source else None}
    )
    write = reports.html if format == "html" else reports.markdown
    text = write(report, measured)
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
