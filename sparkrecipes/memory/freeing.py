"""What to free where a model fits the machine, but not beside what runs on it now."""

from __future__ import annotations

from sparkrecipes.memory.components import gib
from sparkrecipes.schema.machine import LiveMemory, MemoryUser
from sparkrecipes.schema.memory import MemoryEstimate

MOST_NAMED = 4
SWAPPED_BYTES = 2**30


def to_free(answer: MemoryEstimate, live: LiveMemory) -> tuple[str, ...]:
    """Say how much to free and who holds it; nothing where it fits now or never.

    Args:
        answer: What was said of the machine and of now.
        live: Who uses its memory.
    """
    if answer.verdict not in ("fits", "tight") or answer.verdict_now not in (
        "tight",
        "does_not_fit",
    ):
        return ()
    missing = missing_bytes(answer, live)
    lines = [
        f"fits this machine, not now: {gib(live.mem_available_bytes)} are available, "
        f"free at least {gib(missing)} more"
        if answer.verdict_now == "does_not_fit"
        else f"tight now: {gib(live.mem_available_bytes)} are available, {gib(missing)} more "
        "would be enough by every bound"
    ]
    return (*lines, *holders(live))


def holders(live: LiveMemory) -> tuple[str, ...]:
    """Say who holds memory now: containers and GPU processes, page cache, swap."""
    lines = [f"holds memory: {named(user)}" for user in live.users[:MOST_NAMED]]
    if not live.users:
        lines.append("no container and no GPU process was seen to hold memory: ps aux --sort=-rss")
    if live.page_cache_bytes:
        lines.append(
            f"the page cache ({gib(live.page_cache_bytes)}) counts as available already: "
            "dropping it frees no more"
        )
    if (live.swap_used_bytes or 0) >= SWAPPED_BYTES:
        lines.append(f"{gib(live.swap_used_bytes or 0)} are swapped out: memory is short already")
    return (*lines, *live.notes)


def missing_bytes(answer: MemoryEstimate, live: LiveMemory) -> int:
    """Give what must be freed: for the low bound where that is missing, else for the high one.

    The engine's own check at the start wants its fraction free, whatever the model needs.
    """
    reserve = answer.components.host_reserve_bytes
    low, high = answer.total_bounds or (0, 0)
    wanted = (low if answer.verdict_now == "does_not_fit" else high) - reserve
    check = answer.settings.start_check if answer.settings else None
    if check and check.starts is False:
        wanted = max(wanted, check.needs_bytes)
    return max(wanted - live.mem_available_bytes, 0)


def named(user: MemoryUser) -> str:
    """Name who holds memory, and how to end it where that is a container."""
    sizes = [
        f"{gib(size)} {where}"
        for size, where in ((user.host_bytes, "in the kernel's count"), (user.gpu_bytes, "on GPU"))
        if size
    ]
    held = ", ".join(sizes) or "an unknown amount"
    if user.kind == "container":
        return f"container {user.name} ({held}): docker stop {user.name}"
    return f"GPU process {user.pid} {user.name} ({held})"
