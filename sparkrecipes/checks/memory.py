"""Checks of memory: on the machine, right now, and at the engine's own start-up check."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import GIB, CheckFacts, blocker, gib, ok, unknown, warning
from sparkrecipes.memory.startup import START_MARGIN_BYTES, StartCheck, start_check
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.machine import MemoryUser

MOST_NAMED = 3
TOLD_BY_START = "the engine would refuse to start now"
"""How the estimate begins to warn of what ``check_start_memory`` judges."""


def check_memory(facts: CheckFacts) -> Iterator[Finding]:
    """Context and users asked for must fit the machine."""
    estimate = facts.estimate
    asked = f"{estimate.context_tokens:,} tokens x {estimate.users} users"
    need = _range(estimate.total_bounds)
    room = f"{gib(estimate.usable_bytes)} on {facts.machine_name}"
    match estimate.verdict:
        case "fits":
            yield ok("memory", f"{asked} need {need} of {room}")
        case "tight":
            yield warning(
                "memory", f"{asked} need {need} of {room}: that may be tight", _smaller(facts)
            )
        case "does_not_fit":
            yield blocker("memory", f"{asked} need {need}, more than the {room}", _smaller(facts))
        case _:
            yield unknown(
                "memory",
                f"what {asked} need cannot be bounded",
                f"see which part is not known: sparkrecipes fit {facts.recipe.id}",
            )


def check_memory_now(facts: CheckFacts) -> Iterator[Finding]:
    """What fits the machine must also fit beside what runs on it now."""
    estimate = facts.estimate
    available = estimate.available_bytes
    if available is None or estimate.verdict_now is None:
        yield unknown(
            "memory_now",
            f"how much of the memory of {facts.machine_name} is free now cannot be seen from here",
            f"run this on the machine itself: sparkrecipes check {facts.recipe.id}",
        )
        return
    start = _start(facts)
    if start is not None and not start.starts:
        return  # check_start_memory says why; the verdict is no for that reason alone
    free = f"{gib(available)} are free now (MemAvailable)"
    need = f"{_range(_without_reserve(facts))} are needed beside what the host uses already"
    if estimate.verdict_now == "fits":
        yield ok("memory_now", f"{free}; {need}")
    elif estimate.verdict_now == "tight":
        tight = f"{free}; {need}: that may be tight{_in_the_way(facts)}"
        yield warning("memory_now", tight, _free(facts))
    elif estimate.verdict_now == "does_not_fit":
        yield blocker("memory_now", f"{free}, too little: {need}{_in_the_way(facts)}", _free(facts))
    else:
        yield unknown("memory_now", f"{free}; what is needed cannot be bounded", _free(facts))


def check_start_memory(facts: CheckFacts) -> Iterator[Finding]:
    """At start an engine demands its fraction of the *total* free, whatever the model needs.

    Source: https://github.com/vllm-project/vllm/issues/48140
    """
    start, available = _start(facts), facts.estimate.available_bytes
    if start is None or available is None:
        return
    total = facts.machine.mem_total_bytes
    wants = (
        f"at start the engine wants {_fraction(facts):.2f} x {gib(total)} = "
        f"{gib(start.needs_bytes)} free"
    )
    if not start.starts:
        message = f"{wants}; only {gib(available)} are{_in_the_way(facts)}"
        yield blocker("start_memory", message, _lower(facts, start))
    elif start.needs_bytes + START_MARGIN_BYTES > available:
        message = f"{wants}; {gib(available)} are, which is barely enough"
        yield warning("start_memory", message, _lower(facts, start))
    else:
        yield ok("start_memory", f"{wants}; {gib(available)} are")


def check_estimate_warnings(facts: CheckFacts) -> Iterator[Finding]:
    """What the estimate itself warns of is not left behind."""
    for text in facts.estimate.warnings:
        if not text.startswith(TOLD_BY_START):
            yield warning("estimate", text, f"see: sparkrecipes fit {facts.recipe.id}")


def _fraction(facts: CheckFacts) -> float | None:
    """Return the fraction that will be set: for other settings than measured, what serves them."""
    serving, estimate = facts.recipe.serving, facts.estimate
    own = estimate.pool.gpu_memory_utilization
    measured = (serving.context_tokens, serving.users) == (estimate.context_tokens, estimate.users)
    if own is None or measured or estimate.min_gpu_memory_utilization is None:
        return own
    return max(own, estimate.min_gpu_memory_utilization)


def _start(facts: CheckFacts) -> StartCheck | None:
    """Check the fraction as the engine will; None where there is none, or nothing is known."""
    fraction, available = _fraction(facts), facts.estimate.available_bytes
    if facts.machine.gpu is None or fraction is None or available is None:
        return None
    return start_check(fraction, facts.machine.mem_total_bytes, available)


def _without_reserve(facts: CheckFacts) -> tuple[int, int] | None:
    bounds, reserve = facts.estimate.total_bounds, facts.machine.host_reserve_bytes
    return (bounds[0] - reserve, bounds[1] - reserve) if bounds else None


def _range(bounds: tuple[int, int] | None) -> str:
    if bounds is None:
        return "an unknown amount"
    low, high = bounds
    return gib(high) if gib(low) == gib(high) else f"{low / GIB:.1f} to {gib(high)}"


def _smaller(facts: CheckFacts) -> str:
    """Name settings that fit, where there are any."""
    recipe_id, estimate = facts.recipe.id, facts.estimate
    ask = f"sparkrecipes check {recipe_id} --context"
    if estimate.max_users_at_context:
        users = min(estimate.max_users_at_context, estimate.users)
        return f"ask for fewer users: {ask} {estimate.context_tokens} --users {users}"
    if estimate.max_context_at_users:
        context = estimate.max_context_at_users
        return f"ask for a shorter context: {ask} {context} --users {estimate.users}"
    return "choose a smaller build: sparkrecipes list"


def _in_the_way(facts: CheckFacts) -> str:
    """Name who holds memory now, the largest first, whoever started it."""
    users = facts.live.users[:MOST_NAMED] if facts.live else ()
    names = [f"{user.name} ({gib(held)})" if (held := _held(user)) else user.name for user in users]
    return f"; in the way: {', '.join(names)}" if names else ""


def _held(user: MemoryUser) -> int:
    return max(user.host_bytes or 0, user.gpu_bytes or 0)


def _free(facts: CheckFacts) -> str:
    """Name what of ours could be stopped; others' processes are only pointed at."""
    if facts.running:
        stops = "; ".join(f"sparkrecipes stop {server.recipe_id}" for server in facts.running)
        return f"stop what runs: {stops}"
    return "see what uses memory, and end it: docker ps; ps aux --sort=-rss | head"


def _lower(facts: CheckFacts, start: StartCheck) -> str:
    best, needed = start.largest_fraction, facts.estimate.min_gpu_memory_utilization
    if needed is not None and best < needed:
        return f"{_free(facts)} (a lower fraction does not help: {needed:.2f} is needed)"
    size = gib(best * facts.machine.mem_total_bytes)
    return (
        f"{_free(facts)}; or set serving.gpu_memory_utilization to at most {best:.2f} ({size}) "
        "in the recipe"
    )
