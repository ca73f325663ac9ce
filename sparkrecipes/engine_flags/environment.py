"""Environment variables of a recipe: those that look like the engine's own, but are not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkrecipes.engine_flags.names import NameTable, name_table, names_of
from sparkrecipes.engine_flags.options import checked_version
from sparkrecipes.engine_flags.problem import FlagProblem
from sparkrecipes.engine_flags.renamed import former_variables
from sparkrecipes.errors import nearest
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe

_PREFIX = "VLLM_"
_SECRET_NAME = re.compile(r"(^|_)(TOKEN|API_?KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.I)
_LOADER_NAMES = frozenset(
    ("BASH_ENV", "ENV", "PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE")
)


def names_secret(name: str) -> bool:
    """Tell whether a variable is called as those are that hold a secret."""
    return _SECRET_NAME.search(name) is not None


def loads_code(name: str) -> bool:
    """Tell whether by a variable other programs or code than the image's would run."""
    return name in _LOADER_NAMES or name.startswith("LD_")


def env_problems(recipe: Recipe, engine: Engine) -> Iterator[FlagProblem]:
    """Find variables that the recipe's version of the engine does not know.

    It starts all the same and says ``Unknown vLLM environment variable detected`` in its log; what
    the variable was to do is not done, so each is a hint.

    Source: vLLM 0.31.0, vllm/platforms/interface.py, ``validate_environ``.
    """
    table = name_table(engine.id)
    version = checked_version(recipe)
    names = names_of(engine.id, version)
    for name in recipe.env if table and names else ():
        if table and names and name.startswith(_PREFIX) and name not in names.env:
            yield FlagProblem(
                code="unknown_env",
                level="hint",
                message=f"{engine.id} {version} does not know {name}: it has no effect",
                repair=_repair(table, name, names.env, str(version)),
                path=("env", name),
            )


def _repair(table: NameTable, name: str, known: frozenset[str], version: str) -> str:
    if former := former_variables(table.engine_id).get(name):
        return f"{former[1]}, or remove it: {former[0]} is the last release that has it"
    if (last := table.last_with("env", name)) is not None:
        if table.versions.index(last) < table.versions.index(version):
            return f"remove it: {last} is the last recorded release that has it"
        return f"remove it, or use {table.first_with('env', name)} or newer"
    near = nearest(name, known, cutoff=0.8)
    return f"did you mean {' or '.join(near)}?" if near else "remove it"
