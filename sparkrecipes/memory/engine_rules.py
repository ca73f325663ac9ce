"""How vLLM's releases differ in the arithmetic of their KV cache.

Read in the sources of vLLM 0.20.0, 0.21.0, 0.25.1, 0.26.0, 0.27.1, 0.28.0, 0.29.0, 0.31.0 and
0.32.0 (files ``v1/core/kv_cache_utils.py``, ``v1/kv_cache_interface.py``, ``config/vllm.py``,
``platforms/interface.py``, ``model_executor/models/config.py``, ``engine/arg_utils.py``). A rule
holds from the release named to the next one; where a change fell between two releases that were
read, the later one is named.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

CacheMode = Literal["none", "align", "all"]
"""What the engine keeps of recurrent states: the last one, aligned checkpoints, or all."""


class EngineRules(NamedTuple):
    """The rules of one release."""

    since: tuple[int, int]
    """First release, major and minor."""
    logs_pool_tokens: bool
    """What "GPU KV cache size" means: the tokens that full-length requests get out of the pool
    (concurrency x longest context), or blocks a group x the smallest block."""
    batches_in_flight: int
    """Batches whose tokens may hold blocks at once under asynchronous scheduling."""
    hybrid_prefix_caching: bool
    """Whether prefix caching is on by default for models with recurrent layers."""
    mamba2_keeps_all: Literal["unless_speculative", "yes", "no"]
    """Whether prefix caching keeps every state of Mamba-2 layers; other recurrent layers align."""
    all_adds_speculation: bool
    """Whether the mode that keeps all states adds a block for each draft token."""
    checkpoint_blocks: int
    """Blocks more that Mamba-2 layers hold for a prefill checkpoint in mode align."""
    sliding_block: Literal["attention", "smallest", "kernel"]
    """Where sliding layers start: from the attention block, from the smallest (16), or from the
    largest block that their kernels run whole."""


RELEASES = (
    EngineRules((0, 0), False, 1, False, "unless_speculative", False, 0, "attention"),
    EngineRules((0, 21), True, 1, False, "unless_speculative", False, 0, "attention"),
    EngineRules((0, 25), True, 1, False, "yes", True, 0, "smallest"),
    EngineRules((0, 26), True, 2, False, "yes", True, 0, "smallest"),
    EngineRules((0, 28), True, 2, True, "no", True, 0, "smallest"),
    EngineRules((0, 31), True, 2, True, "no", True, 0, "kernel"),
    EngineRules((0, 32), True, 2, True, "no", True, 1, "kernel"),
)

ASYNC_SPECULATION = ("mtp", "eagle3", "dflash", "dspark")
"""Ways of speculation that asynchronous scheduling works with; others switch it off.

Source: vLLM 0.31.0 config/vllm.py.
"""

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\w+))?")


def release(version: str | None) -> tuple[int, int] | None:
    """Read major and minor of an engine version; null where it names no release.

    A development build calls itself 0.1.dev or 0.0: such a number says nothing of its rules.
    """
    found = _RELEASE.match(version or "")
    if not found:
        return None
    numbers = int(found[1]), int(found[2])
    return numbers if numbers >= (0, 2) else None


def rules_for(version: str | None) -> EngineRules:
    """Pick the rules of a version: the newest where it names no release."""
    wanted = release(version)
    if wanted is None:
        return RELEASES[-1]
    return next(r for r in reversed(RELEASES) if r.since <= wanted)


def cache_mode(
    rules: EngineRules, *, prefix_caching: bool, mamba2: bool, speculative: bool
) -> CacheMode:
    """Say what the engine keeps of recurrent states when no flag names the mode.

    Source: ``MambaModelConfig.verify_and_update_config``; models with Mamba-2 layers are those
    that declare support for keeping all states.
    """
    if not prefix_caching:
        return "none"
    if not mamba2 or rules.mamba2_keeps_all == "no":
        return "align"
    if rules.mamba2_keeps_all == "unless_speculative" and speculative:
        return "align"
    return "all"
