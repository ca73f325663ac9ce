"""For tests that measure time on a machine that does other work too."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any


def measured(test: Callable[..., None]) -> Callable[..., None]:
    """Measure again, twice at most: a busy machine is late once, a wrong schedule every time."""

    @functools.wraps(test)
    def again(*args: Any, **kwargs: Any) -> None:
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return again
