"""Everything published of one model, by every method, with what contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkrecipes.catalog.contradictions import contradictions, quantities
from sparkrecipes.catalog.differences import setting, timing
from sparkrecipes.catalog.readings import readings
from sparkrecipes.schema.contradiction import (
    EvidenceOverview,
    EvidenceView,
    Reading,
    SetNote,
    SetSummary,
)
from sparkrecipes.schema.evidence import Evidence
from sparkrecipes.schema.recipe import Recipe


def evidence_view(
    model: str,
    recipes: Mapping[str, Recipe],
    sets: Mapping[str, Evidence],
    machines: Sequence[str],
) -> EvidenceView:
    """Put the published figures of a model side by side.

    Args:
        model: The model.
        recipes: All recipes.
        sets: All evidence sets.
        machines: Ids of machines, whose facts concern every model.
    """
    view = _view(model, readings(recipes, sets), sets)
    of_machines = quantities(machines, sets)
    return view.model_copy(update={"contradictions": (*view.contradictions, *of_machines)})


def overview(
    models: Sequence[str],
    recipes: Mapping[str, Recipe],
    sets: Mapping[str, Evidence],
    machines: Sequence[str],
) -> EvidenceOverview:
    """Put the published figures of several models side by side.

    Facts of a machine concern every model: they are told once.
    """
    found = readings(recipes, sets)
    views = (_view(model, found, sets) for model in models)
    return EvidenceOverview(
        machines=tuple(quantities(machines, sets)),
        views=tuple(view for view in views if view.contradictions or len(models) == 1),
    )


def _view(model: str, found: Sequence[Reading], sets: Mapping[str, Evidence]) -> EvidenceView:
    """Put what is published of a model side by side, without facts of machines."""
    own = tuple(reading for reading in found if reading.model == model)
    named = tuple(dict.fromkeys(reading.evidence for reading in own))
    return EvidenceView(
        model=model,
        sets=tuple(summary(sets[key]) for key in named),
        readings=own,
        contradictions=contradictions(model, own, sets),
        notes=tuple(
            SetNote(evidence=key, text=text, source=sets[key].sources[0])
            for key in named
            for text in sets[key].contradictions
        ),
    )


def summary(found: Evidence) -> SetSummary:
    """Say how a set was measured."""
    return SetSummary(
        evidence=found.id,
        publisher=found.publisher,
        trust_rank=found.trust_rank,
        date=found.date,
        counting=timing(found),
        setting=setting(found),
        interest=found.interest,
        source=found.sources[0],
    )
