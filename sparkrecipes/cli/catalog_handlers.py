"""Handlers of commands that bring something into the catalog."""

from __future__ import annotations

import sys
from argparse import Namespace

from pydantic import BaseModel

from sparkrecipes import operations as ops
from sparkrecipes.errors import CatalogError

MAX_STDIN_BYTES = 2**20


def import_(options: Namespace) -> BaseModel:
    """Import a recipe of another tool."""
    named = {"catalog": options.catalog} if hasattr(options, "catalog") else {}
    return ops.import_recipe(
        "stdin" if options.file == "-" else options.file,
        text=read_stdin() if options.file == "-" else None,
        format=options.format,
        select=options.select,
        image=options.image,
        context_tokens=options.context,
        users=options.users,
        output=options.output,
        **named,
    )


def pin(options: Namespace) -> BaseModel:
    """Pin a recipe, or compare its pins."""
    places = ("catalog", "machine", "offline")
    named = {name: getattr(options, name) for name in places if hasattr(options, name)}
    return ops.pin_recipe(options.recipe, check=options.check, output=options.output, **named)


def read_stdin() -> str:
    """Read UTF-8 text from stdin; more than is read anyway is cut off and refused later.

    Raises:
        CatalogError: It is no UTF-8.
    """
    try:
        return sys.stdin.buffer.read(MAX_STDIN_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"stdin: byte {error.start + 1} is not UTF-8"
        raise CatalogError(message, code="not_utf8", repair="give text") from None


def contribute(options: Namespace) -> BaseModel:
    """Make evidence of a round."""
    named = {"catalog": options.catalog} if hasattr(options, "catalog") else {}
    by = {"publisher": options.publisher} if options.publisher else {}
    return ops.contribute_round(
        options.file, recipe=options.recipe, dry_run=options.dry_run, **by, **named
    )


def review(options: Namespace) -> BaseModel:
    """Lay a change out for review."""
    named = {"catalog": options.catalog} if hasattr(options, "catalog") else {}
    return ops.review_changes(options.base, **named)
