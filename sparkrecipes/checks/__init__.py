"""Checks: whether a recipe can be started here, as findings, each with its repair.

Everything was gathered before (``CheckFacts``); a check is a pure function of it. A new check is
one function, its place in ``CHECKS``, and a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from sparkrecipes.checks import host, image, memory, place, settings, weights
from sparkrecipes.checks.facts import CheckFacts, HubProblem
from sparkrecipes.schema.findings import CheckReport, Finding

__all__ = [
    "CHECKS",
    "ESSENTIAL",
    "CheckFacts",
    "HubProblem",
    "check",
    "summary_of",
    "verdict_of",
]

CHECKS: tuple[Callable[[CheckFacts], Iterator[Finding]], ...] = (
    settings.check_does_not_run,
    host.check_platform,
    host.check_gpu,
    host.check_cuda,
    host.check_docker,
    host.check_docker_limits,
    host.check_gpu_toolkit,
    host.check_secrets,
    image.check_image,
    image.check_image_pinned,
    image.check_entrypoint,
    settings.check_engine_flags,
    settings.check_foreign_code,
    memory.check_memory,
    memory.check_memory_now,
    memory.check_start_memory,
    memory.check_estimate_warnings,
    weights.check_weights,
    weights.check_weights_pinned,
    weights.check_hub,
    weights.check_gated,
    weights.check_disk,
    place.check_port,
    place.check_name,
)
"""Every check, in the order in which its findings are shown."""

ESSENTIAL = frozenset(
    {"platform", "docker", "image", "memory", "memory_now", "start_memory", "port"}
)
"""Checks without whose answer nobody can say that a start will work."""


def check(facts: CheckFacts) -> CheckReport:
    """Judge whether a recipe can be started here.

    Args:
        facts: What was gathered.

    Returns:
        All findings, and ``blocked`` with any blocker, else ``unknown`` with an unknown essential
        one, else ``ready``.
    """
    findings = tuple(finding for look in CHECKS for finding in look(facts))
    return CheckReport(
        verdict=verdict_of(findings),
        summary=summary_of(findings),
        recipe_id=facts.recipe.id,
        findings=findings,
    )


def verdict_of(findings: Iterable[Finding]) -> Literal["ready", "blocked", "unknown"]:
    """Return the verdict that findings add up to."""
    found = tuple(findings)
    if any(finding.level == "blocker" for finding in found):
        return "blocked"
    if any(finding.level == "unknown" and finding.check in ESSENTIAL for finding in found):
        return "unknown"
    return "ready"


def summary_of(findings: Iterable[Finding]) -> str:
    """Say the verdict in a sentence, and name what blocks and what nobody could see."""
    found = tuple(findings)
    blockers, unknowns = (named(found, level) for level in ("blocker", "unknown"))
    warnings = sum(finding.level == "warning" for finding in found)
    also = f", and not known: {unknowns}" if unknowns else ""
    match verdict_of(found):
        case "blocked":
            return f"blocked by {blockers}{also}"
        case "unknown":
            return f"not known whether it would start: {unknowns} could not be seen"
    careful = f"with {warnings} warning{'s' * (warnings > 1)}" if warnings else "nothing is wrong"
    if unknowns:
        return f"ready as far as could be seen, {careful}; not known: {unknowns}"
    return f"ready, {careful}"


def named(findings: Iterable[Finding], level: str) -> str:
    """List the checks that found something of a level, each once."""
    return ", ".join(dict.fromkeys(f.check for f in findings if f.level == level))
