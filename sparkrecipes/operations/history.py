"""What was measured on this machine before: the history of rounds, and their export."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from sparkrecipes import reports
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse, SparkRecipesError
from sparkrecipes.operations.reporting import compare, opened_round
from sparkrecipes.operations.results import load_round, rounds_folder
from sparkrecipes.operations.round_journal import journal_path, read_journal
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.report import (
    ExportedRounds,
    History,
    HistoryRow,
    JournalLine,
    RoundState,
    Verdict,
)
from sparkrecipes.schema.round import Round


def list_rounds(*, recipe: str | None = None, catalog: Catalog | Place = None) -> History:
    """List the rounds that were run on this machine, the newest first.

    Args:
        recipe: Only rounds of this recipe id.
        catalog: Where the published figures come from that each is judged by.

    Raises:
        Misuse: The journal is there and cannot be read.
    """
    kept, trouble = kept_rounds(recipe)
    opened = open_catalog_of(catalog)
    rows = [history_row(line, round_, opened) for line, round_ in kept]
    return History(rows=tuple(rows), journal=str(journal_path()), warnings=tuple(trouble))


def kept_rounds(recipe: str | None) -> tuple[list[tuple[JournalLine, Round]], list[str]]:
    """Return each round once, as it last was, the newest first.

    One that has no end in the journal was killed, or runs still: it is read from its own file. A
    file that the journal does not name counts too: the journal may have been lost.

    Raises:
        Misuse: The journal is there and cannot be read.
    """
    path = journal_path()
    try:
        lines, trouble = read_journal(path)
    except OSError as err:
        raise Misuse(
            f"{path} cannot be read: {err.strerror}", repair="look at its owner and permissions"
        ) from err
    kept = list[tuple[JournalLine, Round]]()
    last = {line.file: line for line in lines}
    for line in [*last.values(), *unnamed(last)]:
        try:
            round_ = line.round or load_round(Path(line.file))
        except SparkRecipesError as err:
            trouble.append(f"a round that began has left nothing: {err.message}")
            continue
        if recipe in (None, round_.recipe_id):
            kept.append((line, round_))
    return sorted(kept, key=lambda pair: pair[1].started_at, reverse=True), trouble


def unnamed(known: Collection[str]) -> Iterator[JournalLine]:
    """Yield the saved rounds that the journal does not name; what is no round is passed over."""
    for path in sorted(rounds_folder().glob("*.json")):
        if str(path) not in known:
            with suppress(SparkRecipesError):
                yield JournalLine(event="ended", file=str(path), round=load_round(path))


def history_row(line: JournalLine, round_: Round, catalog: Catalog) -> HistoryRow:
    """Return one round as a line of the history."""
    single, together = round_.single, round_.concurrent
    return HistoryRow(
        started_at=round_.started_at,
        recipe_id=round_.recipe_id,
        model=round_.server.model,
        method=round_.method,
        simulated=round_.simulated,
        state=state_of(line, round_),
        single_user_tok_s=single.decode_tok_s.median if single and single.decode_tok_s else None,
        aggregate_tok_s=together.aggregate_tok_s.median
        if together and together.aggregate_tok_s
        else None,
        users=together.users if together else None,
        requests=round_.stability.requests,
        failed=round_.stability.failed,
        verdict=verdict_of(round_, catalog),
        file=line.file,
    )


def state_of(line: JournalLine, round_: Round) -> RoundState:
    """Say how a round ended, if it did."""
    if line.event == "began":
        return "unfinished"
    return "interrupted" if round_.interrupted else "ended"


def verdict_of(round_: Round, catalog: Catalog) -> Verdict:
    """Judge a round by its recipe's published row; one that the catalog lost has none."""
    try:
        return compare(round_, catalog=catalog).verdict
    except SparkRecipesError:
        return "not_comparable"


def export_rounds(
    files: Sequence[Path | str | Round] = (),
    *,
    format: Literal["csv", "json"] = "json",
    history: bool = False,
    recipe: str | None = None,
) -> ExportedRounds:
    """Write rounds in the shape of llama-benchy's reports, for what reads those.

    Args:
        files: Rounds or their files; none: the newest usable one.
        format: A table, or one object (a list of them for several rounds).
        history: All rounds of the history instead.
        recipe: Only rounds of this recipe id, where no files are named.

    Raises:
        Misuse: There is no such round.
    """
    trouble: list[str] = []
    if history:
        kept, trouble = kept_rounds(recipe)
        rounds = [round_ for _, round_ in reversed(kept)]
    else:
        opened = [opened_round(file, recipe) for file in files or (None,)]
        rounds = [one.round for one in opened]
        trouble = [note for one in opened for note in one.notes]
    if not rounds:
        raise Misuse(
            f"no round of {recipe or 'any recipe'} is in the history",
            code="no_round",
            repair=f"run: sparkrecipes round {recipe or 'RECIPE'}",
        )
    write = reports.as_csv if format == "csv" else reports.as_json
    return ExportedRounds(
        format=format, rounds=len(rounds), text=write(rounds), warnings=tuple(trouble)
    )
