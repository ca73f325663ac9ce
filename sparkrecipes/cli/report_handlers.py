"""``report``: one operation for each way of asking."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pydantic import BaseModel

from sparkrecipes import operations as ops
from sparkrecipes.errors import Misuse


def report(options: Namespace) -> BaseModel:
    """Report on rounds."""
    given: dict[str, Any] = {"catalog": options.catalog} if hasattr(options, "catalog") else {}
    if options.audit_published:
        refuse(options, "--audit-published", "files", "recipe", "history")
        return ops.audit_published(**given)
    if options.export:
        if options.history:
            refuse(options, "--history", "files")
        return ops.export_rounds(
            options.files, format=options.export, history=options.history, recipe=options.recipe
        )
    if options.history:
        refuse(options, "--history", "files", "markdown", "html")
        return ops.list_rounds(recipe=options.recipe, **given)
    return of_rounds(options, given)


def of_rounds(options: Namespace, given: dict[str, Any]) -> BaseModel:
    """Report on one round, or on two."""
    first, second = two_files(options.files)
    if second:
        refuse(options, "a comparison of two rounds", "recipe")
    written: dict[str, Any] = {"against": second, "recipe": options.recipe, **given}
    if options.markdown:
        return ops.write_report(first, format="markdown", **written)
    if options.html:
        return ops.write_report(first, format="html", path=options.html, **written)
    if first and second:
        return ops.compare_rounds(first, second)
    return ops.compare(first, recipe=options.recipe, **given)


def refuse(options: Namespace, what: str, *names: str) -> None:
    """Refuse options that say nothing here, instead of passing over them.

    Raises:
        Misuse: One of them was given.
    """
    for name in names:
        if getattr(options, name):
            option = "ROUND.json" if name == "files" else f"--{name}"
            raise Misuse(f"{what} takes no {option}", repair="run: sparkrecipes report --help")


def two_files(files: list[str]) -> tuple[str | None, str | None]:
    """Return the files named, None for each that is not.

    Raises:
        Misuse: More than two are named.
    """
    if len(files) > 2:
        raise Misuse(
            f"{len(files)} files are named: one is set beside published figures, two are compared",
            repair="run: sparkrecipes report OLD.json NEW.json",
        )
    first, second, *_ = [*files, None, None]
    return first, second
