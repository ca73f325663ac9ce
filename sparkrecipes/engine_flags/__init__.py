"""Engine arguments of a recipe: what is wrong with them before any engine sees them."""

from sparkrecipes.engine_flags.environment import env_problems, loads_code, names_secret
from sparkrecipes.engine_flags.given import GivenFlag, given_flags
from sparkrecipes.engine_flags.options import known_versions
from sparkrecipes.engine_flags.problem import FlagProblem
from sparkrecipes.engine_flags.problems import flag_problems
from sparkrecipes.engine_flags.writing_rules import holds_secret

__all__ = [
    "FlagProblem",
    "GivenFlag",
    "env_problems",
    "flag_problems",
    "given_flags",
    "holds_secret",
    "known_versions",
    "loads_code",
    "names_secret",
]
