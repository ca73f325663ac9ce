"""A pick by rules: what a question means, which recipes suit it, and which of them is best.

Pure: facts of a catalog and a function that sizes a recipe go in, a reasoned answer comes out.
Nothing here reads a published pick. The order to read: ``sentences`` and ``questions`` (what the
words say), ``requests`` (what is asked), ``standing`` and ``capacity`` (what rules out, what
ranks), ``reasons`` and ``voice`` (the words of the answer), ``pairs`` and ``nearest`` (two at once,
nothing suits), ``picking`` (all of it).
"""

from sparkrecipes.recommendation.picking import recommend, understood
from sparkrecipes.recommendation.questions import understand

__all__ = ["recommend", "understand", "understood"]
