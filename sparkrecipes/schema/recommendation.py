"""A recommendation: what was asked, what is picked, what else would do, and what was ruled out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Capability, Frozen, Id, Text, Tokens, Users

Language = Literal["en", "es"]
Positive = Annotated[float, Field(gt=0)]


class Constraints(Frozen):
    """What must hold, beside the needs of the use; null and empty: no wish."""

    context_tokens: Tokens | None = None
    users: Users | None = None
    min_tok_s_per_user: Positive | None = None
    """Least speed of each user, tokens a second."""
    modalities: tuple[Capability, ...] = ()
    """What it must read or do, beside what the use needs."""
    languages: tuple[Text, ...] = ()
    """ISO 639-1 codes."""
    free_now_gb: Positive | None = None
    """Memory that can be had now, GB (10^9)."""
    leave_free_gb: Positive | None = None
    """Memory that must stay free beside the engine, GB (10^9)."""
    licences: tuple[Text, ...] = ()
    """Any of these, as a model file begins to name it."""
    engines: tuple[Id, ...] = ()
    """Any of these."""


class Request(Frozen):
    """A question as it was understood: the same from a sentence, from options and from Python."""

    use_cases: Annotated[tuple[Id, ...], Field(min_length=1, max_length=2)]
    """Two: one recipe for each, at once on one machine."""
    constraints: Constraints = Constraints()
    language: Language = "en"
    """Language of the answer: that of the question."""
    senses: tuple[Capability, ...] = ()
    """What the words named of a use that needs more: pictures, where sound and film are needed."""
    assumed: tuple[Text, ...] = ()
    """What the question did not say and was assumed."""


class Reasoned(Frozen):
    """A recipe and why it stands where it does."""

    id: Id
    why: tuple[Text, ...]
    wishes: tuple[Text, ...] = ()
    """Of a recipe that is ruled out: the constraints that it fails, ``use_case`` for the use's own
    needs, ``memory`` where it does not fit."""


class Part(Frozen):
    """One of two recipes that run at once."""

    use_case: Id
    id: Id
    port: int
    context_tokens: Tokens
    users: Users
    gpu_memory_utilization: float
    """Fraction of the memory that this engine is given: both together leave the host its part."""
    reservation_bytes: int
    why: tuple[Text, ...]
    command: Text = "not rendered"
    """The exact command, to paste."""


class SideBySide(Frozen):
    """Two recipes at once, whose sum fits."""

    parts: Annotated[tuple[Part, ...], Field(min_length=2, max_length=2)]
    total_bytes: int
    """What both engines take."""
    usable_bytes: int
    left_bytes: int
    """What stays free beside the host's reserve."""
    notes: tuple[Text, ...]


class Relaxation(Frozen):
    """What would be picked if one wish were given up or lowered."""

    wish: Text
    """The name of the constraint, or ``use_case`` for what the use itself needs."""
    says: Text
    pick: Id


class Recommendation(Frozen):
    """A pick by rules, what else would do, and what was ruled out."""

    use_case: Id
    """The use case that the words were understood as; of two the first."""
    use_cases: tuple[Id, ...] = ()
    constraints: Constraints
    language: Language = "en"
    pick: Reasoned | None
    """Null when nothing suits: the reasons are in ``ruled_out``."""
    alternatives: tuple[Reasoned, ...]
    more_alternatives: int = 0
    """Further ones that the limit cut off."""
    ruled_out: tuple[Reasoned, ...]
    side_by_side: SideBySide | None = None
    """Two recipes at once, where two uses were asked for and their sum fits."""
    nearest: tuple[Reasoned, ...] = ()
    """Where nothing suits: what comes nearest, and what each lacks."""
    relax: tuple[Relaxation, ...] = ()
    """Where nothing suits: what would be picked with one wish less."""
    outgrown: Text | None = None
    """Where one machine is not enough: the way out."""
    warnings: tuple[Text, ...] = ()
    next: Text = ""
    """The command to run next."""
