"""Many answers at once: a table of users and contexts."""

from __future__ import annotations

from collections.abc import Sequence

from sparkrecipes.memory.estimation import verdict_now
from sparkrecipes.memory.need import need_of
from sparkrecipes.memory.request import FitRequest, context_limit
from sparkrecipes.memory.verdict import verdict
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import GridCell

CONTEXTS = (8192, 16384, 32768, 65536, 131072, 262144)
USERS = (1, 2, 4, 8, 16, 32)


def grid(
    request: FitRequest,
    machine: Machine,
    *,
    contexts: Sequence[int] = (),
    users: Sequence[int] = (),
    available_bytes: int | None = None,
) -> tuple[GridCell, ...]:
    """Answer for each context and number of users, row by row of contexts.

    Every cell equals the single answer for its settings.

    Args:
        request: What is asked; its own context and users are among those of the table.
        machine: Where it must fit.
        contexts: Contexts; empty: the usual ones up to the longest that the model serves.
        users: Numbers of users; empty: the usual ones.
        available_bytes: MemAvailable now, where this host is that machine.
    """
    limit = context_limit(request)
    usual = [c for c in CONTEXTS if c <= limit]
    need = need_of(request, machine)
    cells = []
    for context in sorted({*(contexts or usual), request.context_tokens}):
        for count in sorted({*(users or USERS), request.users}):
            total = need.total(count, context)
            cells.append(
                GridCell(
                    context_tokens=context,
                    users=count,
                    verdict=verdict(total, machine.mem_total_bytes),
                    verdict_now=verdict_now(total, request, machine, available_bytes),
                    total_bytes=total[1] if total else None,
                    total_bounds=total,
                )
            )
    return tuple(cells)
