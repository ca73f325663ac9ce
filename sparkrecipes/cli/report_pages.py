"""Written reports as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkrecipes.cli.printing import coloured, console, page, plain

if TYPE_CHECKING:
    from sparkrecipes.schema.report import WrittenReport


@page("WrittenReport")
def _(answer: WrittenReport) -> None:
    if answer.path is None:
        plain(answer.text.rstrip("\n"))
        return
    console.print(f"{coloured(answer.verdict)}: written to", end=" ")
    plain(answer.path)
