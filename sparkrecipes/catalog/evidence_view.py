"""Everything published of one model, by every method, with what contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkrecipes.catalog.contradictions import contradictions
from sparkrecipes.catalog.differences import setting, timing
from sparkrecipes.catalog.readings import readings
from sparkrecipes.schema.contradiction import (
    EvidenceOverview,
    EvidenceView,
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
    found = readings(recipes, sets)
    own = tuple(reading for reading in found if reading.model == model)
    named = tuple(dict.fromkeys(reading.evidence for reading in own))
    notes = tuple(
        SetNote(evidence=key, text=text, source=sets[key].sources[0])
        for key in named
        for text in sets[key].contradictions
    )
    return EvidenceView(
        model=model,
        sets=tuple(summary(sets[key]) for key in named),
        readings=own,
        contradictions=contradictions(model, found, sets, machines),
        notes=notes,
    )


def overview(
    models: Sequence[str],
    recipes: Mapping[str, Recipe],
    sets: Mapping[str, Evidence],
    machines: Sequence[str],
) -> EvidenceOverview:
    """Put the published figures of several models side by side.

    Facts of a machine concern every model: they are told once.
    """
    views = [evidence_view(model, recipes, sets, machines) for model in models]
    of_machines = [c for view in views for c in view.contradictions if c.kind == "quantity"]
    own = (
        view.model_copy(
            update={"contradictions": tuple(c for c in view.contradictions if c not in of_machines)}
        )
        for view in views
    )
    return EvidenceOverview(
        machines=tuple(dict.fromkeys(of_machines)),
        views=tuple(view for view in own if view.contradictions or len(models) == 1),
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
