"""A lock: which image and which weights a recipe's names stood for on a day."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import CommitSha, Digest, Frozen, Id, RepoId, Text
from sparkrecipes.schema.recipe import ImageName

PinState = Literal["pinned", "same", "moved", "gone", "unpinned", "unknown", "none"]


class LockedImage(Frozen):
    """An image's name, and what it stood for."""

    reference: ImageName
    """As the recipe names it; a lock of another name is not obeyed."""
    digest: Digest
    """The manifest for the platform."""
    index_digest: Digest | None = None
    """What the tag itself pointed at, where that is an index."""
    platform: Text


class LockedWeights(Frozen):
    """A repository, and the commit that its main branch was."""

    repo: RepoId
    revision: CommitSha


class LockFile(Frozen):
    """One file of ``locks/`` in a catalog, or ``<recipe>.lock.yaml`` beside a recipe's file."""

    resolved_on: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """The day, as year-month-day."""
    image: LockedImage | None = None
    weights: LockedWeights | None = None
    drafter: LockedWeights | None = None


class Lock(LockFile):
    """A lock with the id of its recipe."""

    id: Id


class Pin(Frozen):
    """One name of a recipe, what it is pinned to and what it stands for now."""

    what: Literal["image", "weights", "drafter"]
    name: Text
    state: PinState
    """``pinned``: written just now; ``none``: nothing to pin."""
    pinned: Text | None
    """What the recipe or its lock says."""
    now: Text | None
    """What the registry or the Hub says; null where nobody answered."""
    message: Text
    repair: str = ""


class PinReport(Frozen):
    """What a recipe's names stand for."""

    recipe_id: Id
    lock: Text | None
    """The lock that was read or written; null where there is none."""
    state: Literal["pinned", "same", "moved", "unpinned", "unknown"]
    """The worst of its pins."""
    pins: tuple[Pin, ...]
    next: Text
