"""Fits, tight or does not fit: bounds against what can be used."""

from __future__ import annotations

from sparkrecipes.schema.memory import FitVerdict


def verdict(total: tuple[int, int] | None, usable_bytes: int) -> FitVerdict:
    """Judge bounds against what can be used."""
    if total is None:
        return "unknown"
    if total[1] <= usable_bytes:
        return "fits"
    return "does_not_fit" if total[0] > usable_bytes else "tight"
