"""What is wrong with a recipe's flags: every rule, asked in turn."""

from __future__ import annotations

from sparkrecipes.engine_flags.conflict_rules import CONFLICT_RULES
from sparkrecipes.engine_flags.given import given_flags
from sparkrecipes.engine_flags.names import names_of
from sparkrecipes.engine_flags.options import checked_version, option_table
from sparkrecipes.engine_flags.problem import Asked, FlagProblem
from sparkrecipes.engine_flags.renamed import renamed_options
from sparkrecipes.engine_flags.version_rules import VERSION_RULES
from sparkrecipes.engine_flags.writing_rules import WRITING_RULES
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe


def flag_problems(recipe: Recipe, engine: Engine) -> tuple[FlagProblem, ...]:
    """Return what is wrong with a recipe's flags, without asking an engine.

    Args:
        recipe: Its ``flags`` and the fields that become flags too.
        engine: The engine of the recipe; where its options are recorded for the recipe's
            version, unknown flags are found.

    Returns:
        Errors and hints, by their place in the list.
    """
    given, stray = given_flags(recipe.flags)
    table, version = option_table(engine.id), checked_version(recipe)
    asked = Asked(
        recipe=recipe,
        engine=engine,
        given=given,
        stray=stray,
        table=table,
        options=table.of(version) if table else None,
        names=names_of(engine.id, version),
        renamed=renamed_options(engine.id),
        ever=table.ever() if table else {},
    )
    rules = (*WRITING_RULES, *VERSION_RULES, *(CONFLICT_RULES if table else ()))
    found = [problem for rule in rules for problem in rule(asked)]
    return tuple(sorted(found, key=_place))


def _place(problem: FlagProblem) -> int:
    """Return the item of the list; what is not about one comes first."""
    return int(problem.path[1]) if problem.path[0] == "flags" else -1
