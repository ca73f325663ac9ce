"""How fast a model would be where nobody measured it: a range, from memory bandwidth and evidence.

Decoding one token reads all weights that are active for it, so bandwidth bounds it. ``rules`` holds
the arithmetic, ``calibration`` what the October round says of it and how wrong it is on models that
were left out, ``forecasting`` the answer. Pure functions of facts. Explained in docs/speed.md.
"""

from sparkrecipes.speed.calibration import (
    CALIBRATED,
    FACTORS,
    Measured,
    calibrate,
    left_out_errors,
    widest_factors,
)
from sparkrecipes.speed.forecasting import (
    SLOW_TOK_S,
    brief,
    estimated_line,
    forecast,
    slow_warning,
)
from sparkrecipes.speed.rules import Shape, shape_of

__all__ = [
    "CALIBRATED",
    "FACTORS",
    "SLOW_TOK_S",
    "Measured",
    "Shape",
    "brief",
    "calibrate",
    "estimated_line",
    "forecast",
    "left_out_errors",
    "shape_of",
    "slow_warning",
    "widest_factors",
]
