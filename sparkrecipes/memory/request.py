"""What is asked of the memory model, put together from a recipe or from a bare model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.model import Build, DrafterModel, LayerGroup, Model
from sparkrecipes.schema.recipe import Recipe, Speculative

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""What vLLM's number flags may end in (``engine/arg_utils.py``, human_readable_int)."""


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """Everything that decides how much memory serving takes."""

    subject: str
    """The recipe, model or repository asked about."""
    model: Model
    builds: tuple[Build, ...]
    """Builds it may run; several are sized as a range."""
    engine: Engine | None
    """Null for a bare model."""
    engine_version: str | None
    context_tokens: int
    users: int
    kv_cache_dtype: str
    gpu_memory_utilization: float | None
    speculative: Speculative | None
    drafter_repo: str | None
    flags: tuple[str, ...]
    env: Mapping[str, str]
    shm_size: str | None
    published: EvidenceRow | None
    """The October row that measured this configuration."""


def recipe_request(
    recipe: Recipe,
    model: Model,
    engine: Engine,
    row: EvidenceRow | None,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    kv_cache_dtype: str | None = None,
) -> FitRequest:
    """Ask about a recipe, at its own settings or others."""
    serving = recipe.serving
    return FitRequest(
        subject=recipe.id,
        model=model,
        builds=builds_of(recipe, model),
        engine=engine,
        engine_version=recipe.engine_version,
        context_tokens=context_tokens or serving.context_tokens,
        users=users or serving.users,
        kv_cache_dtype=kv_cache_dtype or serving.kv_cache_dtype,
        gpu_memory_utilization=serving.gpu_memory_utilization,
        speculative=recipe.speculative,
        drafter_repo=recipe.drafter.repo if recipe.drafter else None,
        flags=recipe.flags,
        env=recipe.env,
        shm_size=recipe.shm_size,
        published=row,
    )


def builds_of(recipe: Recipe, model: Model) -> tuple[Build, ...]:
    """Find the builds that a recipe may run: its repository, else its quantisation, else all."""
    if recipe.weights:
        exact = tuple(b for b in model.builds if b.repo == recipe.weights.repo)
        if exact:
            return exact
    same = tuple(b for b in model.builds if b.quant == recipe.quant)
    return same or model.builds


def model_request(
    model: Model,
    builds: tuple[Build, ...],
    *,
    context_tokens: int,
    users: int,
    kv_cache_dtype: str,
) -> FitRequest:
    """Ask about a model in one or several builds, on an engine that nobody has chosen yet."""
    one = f"{model.id}-{builds[0].quant}" if len(builds) == 1 else model.id
    return FitRequest(
        subject=one,
        model=model,
        builds=builds,
        engine=None,
        engine_version=None,
        context_tokens=context_tokens,
        users=users,
        kv_cache_dtype=kv_cache_dtype,
        gpu_memory_utilization=None,
        speculative=None,
        drafter_repo=None,
        flags=(),
        env={},
        shm_size=None,
        published=None,
    )


def flag_value(flags: tuple[str, ...], name: str) -> str | None:
    """Read the value of ``--name=value`` or ``--name value``; null where the flag is not given."""
    for index, flag in enumerate(flags):
        if flag.startswith(f"{name}="):
            return flag[len(name) + 1 :]
        if flag == name and index + 1 < len(flags) and not flags[index + 1].startswith("-"):
            return flags[index + 1]
    return None


def flag_number(flags: tuple[str, ...], name: str) -> int | None:
    """Read a flag that is a number, ``8192`` or ``8k``; null where it is not one."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", flag_value(flags, name) or "")
    return int(float(found[1]) * UNITS.get(found[2], 1)) if found else None


def flag_on(flags: tuple[str, ...], name: str) -> bool | None:
    """Read a switch that has a ``--no-`` form; null where neither is given."""
    for flag in reversed(flags):
        if flag == f"--{name}":
            return True
        if flag == f"--no-{name}":
            return False
    return None


def shm_bytes(size: str | None) -> int:
    """Read Docker's ``--shm-size``: ``16g`` is 16 GiB."""
    if not size:
        return 0
    return int(size[:-1]) * {"m": 2**20, "g": 2**30}[size[-1]]


def target_layers(request: FitRequest) -> tuple[LayerGroup, ...]:
    """List the target's layers; MTP layers from the checkpoint count as its full attention.

    Where speculation is MTP and no source counts the layers, one is reckoned with.
    """
    layers = request.model.layers
    spec = request.speculative
    if spec is None or spec.method != "mtp" or request.drafter_repo:
        return layers
    return with_mtp(layers, request.model.mtp_layers or 1)


@lru_cache(maxsize=256)
def with_mtp(layers: tuple[LayerGroup, ...], count: int) -> tuple[LayerGroup, ...]:
    """Add MTP layers: each is one more layer of the target's full attention, with its indexer."""
    full = next((g for g in layers if g.kind in ("full_attention", "mla_attention")), None)
    return tuple(
        g.model_copy(update={"count": g.count + count}) if g is full or g.kind == "indexer" else g
        for g in layers
    )


def drafter_of(request: FitRequest) -> DrafterModel | None:
    """Find what the catalog knows of the separate drafter; null without one, or where unknown."""
    return next((d for d in request.model.drafters if d.repo == request.drafter_repo), None)
