"""What goes wrong, as an answer: a code, what happened, the repair, and the parameter at fault."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Collection, Mapping
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from sparkrecipes.errors import Misuse, SparkRecipesError
from sparkrecipes.mcp_server.wording import as_tools, clip
from sparkrecipes.redaction import redact

log = logging.getLogger("sparkrecipes.mcp")


class BadArguments(Misuse):
    """Arguments that a tool does not take.

    Attributes:
        parameter: The one at fault.
    """

    default_code = "bad_arguments"

    def __init__(
        self, message: str, *, parameter: str, repair: str, code: str | None = None
    ) -> None:
        super().__init__(message, repair=repair, code=code)
        self.parameter = parameter


def described(
    err: SparkRecipesError, given: Mapping[str, Any], known: Collection[str]
) -> dict[str, Any]:
    """Return an error as the facts of an answer.

    The same object as the command line's ``--json``; misuse also names the parameter.

    Args:
        err: What went wrong.
        given: The arguments of the call.
        known: The parameters of the tool.
    """
    facts = {
        "code": err.code,
        "message": as_tools(clip(err.message, 600)),
        "repair": as_tools(clip(err.repair, 400)),
    }
    parameter = parameter_of(err, given, known)
    return {"error": {**facts, "parameter": parameter} if parameter else facts}


def parameter_of(
    err: SparkRecipesError, given: Mapping[str, Any], known: Collection[str]
) -> str | None:
    """Find which parameter was misused: it is said, or its name or value is in the message."""
    if isinstance(err, BadArguments):
        return err.parameter
    if not isinstance(err, Misuse):
        return None
    texts = {name: value for name, value in given.items() if isinstance(value, str) and value}
    # One that was not given may be what is missing; plain words may stand there by chance.
    asked = (*given, *(name for name in known if "_" in name))
    named = [name for name in asked if re.search(rf"\b{re.escape(name)}\b", err.message)]
    quoted = [name for name, value in texts.items() if repr(value)[1:41] in err.message]
    return next(iter((*named, *quoted, *(given if len(given) == 1 else ()))), None)


def explained(err: ToolError) -> SparkRecipesError:
    """Find our own words for what went wrong in a tool; a fault of ours is logged, not shown."""
    cause = err.__cause__
    if isinstance(cause, SparkRecipesError):
        return cause
    if isinstance(cause, ValidationError):
        return bad_arguments(cause)
    if cause is None:
        return SparkRecipesError(str(err), code="tool_error")
    log.error("%s", redact("".join(traceback.format_exception(cause))))
    return SparkRecipesError(
        f"a fault inside sparkrecipes: {type(cause).__name__}",
        code="internal",
        repair="try once more; then tell the person to look at the server's stderr",
    )


def bad_arguments(err: ValidationError) -> BadArguments:
    """Name the parameters at fault; what was given is not repeated."""
    wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in err.errors()[:5]]
    names = list(dict.fromkeys(str(one["loc"][0]) for one in err.errors() if one["loc"]))
    return BadArguments(
        "; ".join(wrong),
        parameter=names[0] if names else "arguments",
        repair=f"mend {', '.join(names)} and call again",
    )
