"""``report``: one operation for each way of asking."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pydantic import BaseModel

from sparkrecipes import operations as ops
from sparkrecipes.errors import Misuse


def report(options: Namespace) -> BaseModel:
    """Report on rounds."""
    given: dict[str, Any] = {"recipe": options.recipe}
    if hasattr(options, "catalog"):
        given["catalog"] = options.catalog
    file = one_file(options.files)
    if options.markdown:
        return ops.write_report(file, format="markdown", **given)
    if options.html:
        return ops.write_report(file, format="html", path=options.html, **given)
    return ops.compare(file, **given)


def one_file(files: list[str]) -> str | None:
    """Return the only file named, or None for the newest round.

    Raises:
        Misuse: More than one is named.
    """
    if len(files) > 1:
        raise Misuse(
            f"{len(files)} files are named, and this report is of one round",
            repair="run: sparkrecipes report ROUND.json",
        )
    return files[0] if files else None
