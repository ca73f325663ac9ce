"""Checks of the recipe itself: its flags, foreign code, and what is known not to run."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, ok, unknown, warning
from sparkrecipes.engine_flags import flag_problems
from sparkrecipes.schema.findings import Finding


def check_does_not_run(facts: CheckFacts) -> Iterator[Finding]:
    """A configuration that others found not to run is not tried again."""
    estimate = facts.estimate
    for entry in facts.does_not_run:
        asked = {"context_tokens": estimate.context_tokens, "users": estimate.users}
        if entry.concerns(facts.recipe, **asked):
            yield blocker(
                "does_not_run",
                f"known not to run: {entry.title}: {entry.why} ({entry.source})",
                entry.remedy or "choose another recipe: sparkrecipes list",
            )


def check_engine_flags(facts: CheckFacts) -> Iterator[Finding]:
    """Flags must be ones that the engine's release knows: it refuses others after minutes."""
    problems = [p for p in flag_problems(facts.recipe, facts.engine) if p.code != "foreign_code"]
    for problem in problems:
        make = blocker if problem.level == "error" else warning
        make = unknown if problem.code == "flags_not_checked" else make
        told = f"the engine tells at its start: sparkrecipes logs {facts.recipe.id}"
        yield make("engine_flags", problem.message, problem.repair or told)
    if not problems:
        release = f"{facts.engine.title} {facts.recipe.engine_version or ''}".rstrip()
        yield ok("engine_flags", f"{release} knows all of the recipe's flags")


def check_foreign_code(facts: CheckFacts) -> Iterator[Finding]:
    """Flags that let code from outside the image run are shown before anything runs."""
    source = facts.recipe.weights
    for problem in flag_problems(facts.recipe, facts.engine):
        if problem.code != "foreign_code":
            continue
        pinned = source is not None and source.revision is not None
        which = " at an unpinned revision" if source and not pinned else ""
        where = f" ({source.repo}{which})" if source else ""
        yield warning("foreign_code", f"{problem.message}{where}", problem.repair)
