"""Consent: what acts asks the person first, where the client can, and waits for nobody for ever.

Newer clients (2026-07-28) answer by calling again, so that nothing waits here; older ones are asked
in the middle of the call, with a limit. A person's no wins over everything. Without an answer
nothing is done: whoever starts the server can leave the question to the client's own approval.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import AcceptedElicitation, Elicit
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field

from sparkrecipes.errors import Refused
from sparkrecipes.mcp_server.house import house_of
from sparkrecipes.mcp_server.reading import known_id
from sparkrecipes.mcp_server.wording import clip

WAIT_S = 50.0
"""Below the lowest limit of a tool call that is known of a client (60 s)."""
ASKS_BY_RESULT = "2026-07-28"
"""From this revision on a question is a result, and its answer another call."""

Ctx = Context[Any, Any]


class Consent(BaseModel):
    """A person's answer."""

    ok: bool = Field(description="Yes, do it")


async def install_consent(plan_id: str, ctx: Ctx) -> Elicit[Consent] | Consent:
    """Ask whether what a plan showed may be done; what runs already or is simulated needs none.

    Raises:
        Refused: The plan is no plan, or nobody answered.
    """
    from sparkrecipes.jobs.planning import load_plan
    from sparkrecipes.jobs.starting import is_running

    if await anyio.to_thread.run_sync(is_running, plan_id):
        return Consent(ok=True)
    plan = await anyio.to_thread.run_sync(load_plan, plan_id)
    if plan.spec.kind == "rehearse":
        return Consent(ok=True)
    return await question(ctx, plan.summary)


async def stop_consent(name: str, ctx: Ctx) -> Elicit[Consent] | Consent:
    """Ask whether a server may be stopped.

    Raises:
        BadArguments: It can be no server's name.
        Refused: Nobody answered.
    """
    known_id(name, "name")
    return await question(ctx, f"Stop and remove the model server {name!r}? Its weights stay.")


async def round_consent(base_url: str | None, quick: bool, ctx: Ctx) -> Elicit[Consent] | Consent:
    """Ask whether a machine other than this one may be loaded; a server on this host may.

    Raises:
        Misuse: It is no address.
        Refused: Nobody answered.
    """
    from sparkrecipes.jobs.addresses import checked_url, is_this_host

    if base_url is None or is_this_host(checked_url(base_url)):
        return Consent(ok=True)
    minutes = "2 minutes" if quick else "30 minutes"
    return await question(
        ctx, f"Load the server at {clip(base_url, 200)} with a standard round, about {minutes}?"
    )


async def question(ctx: Ctx, text: str) -> Elicit[Consent] | Consent:
    """Ask the person, or leave it to the client's own approval where it cannot ask.

    Raises:
        Refused: Nobody answered in time.
    """
    if house_of(ctx).settings.consent == "host" or not can_ask(ctx):
        return Consent(ok=True)
    version = ctx.protocol_version
    if version is not None and is_version_at_least(version, ASKS_BY_RESULT):
        return Elicit(text, Consent)
    answer = None
    with anyio.move_on_after(WAIT_S):
        answer = await ctx.elicit(text, Consent)
    if answer is None:
        raise Refused(
            f"nobody answered the question within {WAIT_S:.0f} s, so nothing was done",
            code="no_answer",
            repair="ask the person to look for the question. Where the client never shows it, they "
            "may start this server with --consent host: then the client's own approval counts",
        )
    return answer.data if isinstance(answer, AcceptedElicitation) else Consent(ok=False)


def can_ask(ctx: Ctx) -> bool:
    """Say whether the client can put a form before a person."""
    able = ctx.client_capabilities
    found = able.elicitation if able else None
    return found is not None and (found.form is not None or found.url is None)


def require(consent: object) -> None:
    """Go on only with a yes.

    Raises:
        Refused: The person said no, or sent the question away.
    """
    if isinstance(consent, AcceptedElicitation) and consent.data.ok:
        return
    raise Refused(
        "the person said no, so nothing was done",
        code="declined",
        repair="do not ask again unless they change their mind. Some clients decline without "
        "showing the question: then they may start this server with --consent host",
    )
