"""Rehearsal: a server that plays a recipe's published timing, so that the walk needs no Spark.

Everything that is measured against it is measured for real, over a socket, by the client that
measures a real engine. What it plays is published timing and nothing else: what was not published
(acceptance of speculation, memory) is left out, and whoever shows its figures says ``simulated``.
"""

from sparkrecipes.rehearsal.double import EngineDouble
from sparkrecipes.rehearsal.timing import Timing

__all__ = ["EngineDouble", "Timing"]
