"""A pick by rules: what a question means, which recipes suit it, and which of them is best.

Pure: facts of a catalog and a function that sizes a recipe go in, a reasoned answer comes out.
Nothing here reads a published pick.
"""

from sparkrecipes.recommendation.picking import recommend
from sparkrecipes.recommendation.questions import understand

__all__ = ["recommend", "understand"]
