"""Sizes what a recipe or a model needs in memory, for a context and a number of users.

Everything here is a pure function of facts; nothing reads a machine or a network. The order to
read: ``request`` (what is asked), ``estimation`` (the answer), ``need`` (users x context),
``components`` (weights, drafter, overhead), ``sequence_cost`` (one sequence of the cache), and
under it vLLM's own arithmetic: ``engine_rules`` (by release), ``cache_specs`` (a layer),
``cache_groups`` (the pool), ``engine_log`` (what its log prints). Explained in docs/memory.md.
"""

from sparkrecipes.memory.engine_settings import (
    UNTOLD,
    EngineSettings,
    engine_request,
    with_settings,
)
from sparkrecipes.memory.estimation import estimate, verdict_of
from sparkrecipes.memory.explanation import explain
from sparkrecipes.memory.first_start import added_compile_jobs
from sparkrecipes.memory.freeing import holders, to_free
from sparkrecipes.memory.grid import grid
from sparkrecipes.memory.request import FitRequest, model_request, recipe_request

__all__ = [
    "UNTOLD",
    "EngineSettings",
    "FitRequest",
    "added_compile_jobs",
    "engine_request",
    "estimate",
    "explain",
    "grid",
    "holders",
    "model_request",
    "recipe_request",
    "to_free",
    "verdict_of",
    "with_settings",
]
