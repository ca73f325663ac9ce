"""Which recipe it should be: the rules of the pick, and the commands of two at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from sparkrecipes.catalog import Catalog
from sparkrecipes.operations.sizing import fit_recipe
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace, positive
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.recipe import Recipe

if TYPE_CHECKING:
    from sparkrecipes.schema.recommendation import Recommendation, SideBySide


def recommend(
    use_case: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    min_tok_s_per_user: float | None = None,
    modalities: Sequence[str] | None = None,
    languages: Sequence[str] | None = None,
    free_now_gb: float | None = None,
    leave_free_gb: float | None = None,
    licences: Sequence[str] | None = None,
    engines: Sequence[str] | None = None,
    language: Literal["en", "es"] | None = None,
    limit: int | None = None,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
) -> Recommendation:
    """Pick a recipe by rules for a use case or a sentence, in English or Spanish.

    A sentence may say all of it: "agents with image input, 64K, 2 users, leave 40 GB free",
    "30 alumnos, español, respuesta interactiva". What is given here goes before the sentence.

    Args:
        use_case: ``agents``, ``programación``, or a sentence that names a use; two of them "at
            once" for two recipes on one machine.
        context_tokens: Longest sequence wanted; None: as measured.
        users: Sequences at once; None: as measured.
        min_tok_s_per_user: Least speed of each user, tokens a second.
        modalities: What it must read or do: image, audio, video, tools, reasoning.
        languages: ISO 639-1 codes.
        free_now_gb: Memory that can be had now, GB; None: what this host has, if it is the machine.
        leave_free_gb: Memory to leave free, GB.
        licences: Any of these.
        engines: Any of these.
        language: Of the answer; None: that of the question.
        limit: Most alternatives; None: all.
        catalog: Where recipes come from.
        machine: Where they must fit.

    Raises:
        Misuse: The words name no use case, or more than one; a value that is none.
    """
    from sparkrecipes import recommendation as recommendations

    space = open_workspace(catalog, machine)
    positive("--context", context_tokens)
    positive("--users", users)
    positive("--limit", limit)
    request = recommendations.understood(
        use_case,
        space.catalog,
        context_tokens=context_tokens,
        users=users,
        min_tok_s_per_user=min_tok_s_per_user,
        modalities=modalities,
        languages=languages,
        free_now_gb=free_now_gb,
        leave_free_gb=leave_free_gb,
        licences=licences,
        engines=engines,
        language=language,
    )
    found = recommendations.recommend(request, space.catalog, estimate=Sizing(space))
    if found.side_by_side:
        rendered = with_commands(space, found.side_by_side)
        found = found.model_copy(update={"side_by_side": rendered})
    return cut(found, limit)


class Sizing:
    """Sizes recipes on one machine, each setting once.

    Attributes:
        space: The catalog and the machine.
    """

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._known: dict[tuple[str, int | None, int | None], MemoryEstimate] = {}

    def __call__(
        self, recipe: Recipe, *, context_tokens: int | None, users: int | None
    ) -> MemoryEstimate:
        """Return the memory and the forecast of a recipe; None: as it is set."""
        key = (recipe.id, context_tokens, users)
        if key not in self._known:
            self._known[key] = fit_recipe(self.space, recipe, context_tokens, users)
        return self._known[key]


def with_commands(space: Workspace, pair: SideBySide) -> SideBySide:
    """Add the exact command of each of two recipes: its port and its share of the memory."""
    from sparkrecipes.operations.preflight import Launch, command_for

    parts = []
    for part in pair.parts:
        wanted = Launch(
            space.catalog.recipe(part.id),
            part.context_tokens,
            part.users,
            part.port,
            gpu_memory_utilization=part.gpu_memory_utilization,
        )
        command = command_for(space, wanted)
        parts.append(part.model_copy(update={"command": command.shell}))
    return pair.model_copy(update={"parts": tuple(parts)})


def cut(found: Recommendation, limit: int | None) -> Recommendation:
    """Keep so many alternatives, and count the rest."""
    if limit is None or limit >= len(found.alternatives):
        return found
    more = len(found.alternatives) - limit
    return found.model_copy(
        update={"alternatives": found.alternatives[:limit], "more_alternatives": more}
    )
