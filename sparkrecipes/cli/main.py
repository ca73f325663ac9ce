"""From arguments to an exit code: 0 yes, 1 no, 2 misuse, 3 unknown, 130 interrupted."""

from __future__ import annotations

import gc
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sparkrecipes.cli.parser import build_parser
from sparkrecipes.cli.table import visible
from sparkrecipes.errors import SparkRecipesError

INTERRUPTED = 130

GARBAGE_EVERY = 50_000
"""New objects after which cycles are looked for: a command makes many types and little garbage, and
looking ever again would cost a twentieth of its time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: The command line without the program; None: the process's own.
    """
    argv = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in argv
    gc.set_threshold(GARBAGE_EVERY)
    escape_what_lacks()
    try:
        options = build_parser().parse_args(argv)
        as_json = getattr(options, "json", False)
        return run(options, as_json)
    except SparkRecipesError as err:
        print_error(err, as_json)
        return err.exit_code
    except KeyboardInterrupt as err:
        # What was interrupted says in its notes what it kept and how to go on.
        kept = "; ".join(("interrupted", *getattr(err, "__notes__", ())))
        print_error(SparkRecipesError(kept, code="interrupted"), as_json)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; writing again at exit would only raise once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as err:
        if os.environ.get("SPARKRECIPES_DEBUG"):
            raise
        return print_last(internal(err), as_json)


def run(options: Any, as_json: bool) -> int:
    """Call the operation of a parsed command and print its answer."""
    if options.command == "list" and print_cached_list(options, as_json):
        return 0
    if options.command == "mcp" and options.print_config is None:
        from sparkrecipes.cli.agent_handlers import serve

        return serve(options)
    from sparkrecipes.cli.handlers import HANDLERS
    from sparkrecipes.cli.verdicts import exit_code

    answer = HANDLERS[options.command](options)
    if as_json:
        print_json(answer.model_dump(mode="json"))
    else:
        from sparkrecipes.cli.printing import print_answer

        print_answer(answer)
    return exit_code(options.command, answer)


def print_cached_list(options: Any, as_json: bool) -> bool:
    """Print the list from the catalog's cache, without loading the types; False: not cached."""
    from sparkrecipes.catalog_files import cached_list_json

    catalog = getattr(options, "catalog", None)
    if getattr(options, "machine", None):
        return False
    everything = options.everything
    cached = cached_list_json(Path(catalog) if catalog else None, everything=everything)
    if cached is None:
        return False
    if as_json:
        sys.stdout.buffer.write(cached + b"\n")
    else:
        from sparkrecipes.cli.table import print_table

        print_table(json.loads(cached, object_hook=lambda fields: SimpleNamespace(**fields)))
    return True


def print_json(data: Any) -> None:
    """Write one JSON object to stdout, in escapes where its encoding lacks a character."""
    text = json.dumps(data, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    sys.stdout.write(text + "\n")


def escape_what_lacks() -> None:
    """Let text be printed whatever the locale: what its encoding lacks becomes an escape.

    A latin-1 terminal lacks most of Unicode, UTF-8 the bytes of a file name that is not UTF-8.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_error(err: SparkRecipesError, as_json: bool) -> None:
    """Say what happened and what to do next: JSON on stdout, or lines on stderr."""
    if as_json:
        error = {"code": err.code, "message": err.message, "repair": err.repair}
        print_json({"error": error})
        return
    for line in getattr(err, "log_tail", ()):
        print(f"  | {visible(line)}", file=sys.stderr)
    print(f"error: {visible(err.message)}", file=sys.stderr)
    if err.repair:
        print(f"Next: {visible(err.repair)}", file=sys.stderr)


def print_last(err: SparkRecipesError, as_json: bool) -> int:
    """Say what went wrong where stdout may be what went wrong."""
    try:
        print_error(err, as_json)
        sys.stdout.flush()
    except OSError as broken:
        print(f"error: the output cannot be written: {broken.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def internal(err: Exception) -> SparkRecipesError:
    """Describe a fault of ours without a traceback."""
    return SparkRecipesError(
        f"a fault inside sparkrecipes: {type(err).__name__}: {err}",
        code="internal",
        repair="report it with the output of the same command under SPARKRECIPES_DEBUG=1",
    )
