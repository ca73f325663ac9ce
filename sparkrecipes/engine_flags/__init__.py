"""Engine arguments of a recipe: what is wrong with them before any engine sees them."""

from sparkrecipes.engine_flags.given import GivenFlag, given_flags
from sparkrecipes.engine_flags.options import known_versions
from sparkrecipes.engine_flags.problems import FlagProblem, flag_problems, holds_secret

__all__ = [
    "FlagProblem",
    "GivenFlag",
    "flag_problems",
    "given_flags",
    "holds_secret",
    "known_versions",
]
