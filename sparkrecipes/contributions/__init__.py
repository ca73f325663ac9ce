"""Contributions: a round of one's own as evidence, and a change of the catalog under review."""

from sparkrecipes.contributions.evidence import (
    NotContributable,
    evidence_of,
    evidence_text,
    pointing_at,
)
from sparkrecipes.contributions.repository import ChangedFile, NoRepository, Repository
from sparkrecipes.contributions.review import items_of

__all__ = [
    "ChangedFile",
    "NoRepository",
    "NotContributable",
    "Repository",
    "evidence_of",
    "evidence_text",
    "items_of",
    "pointing_at",
]
