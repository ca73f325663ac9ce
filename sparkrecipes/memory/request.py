"""What is asked of the memory model, put together from a recipe or from a bare model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.model import Build, ByteRange, DrafterModel, LayerGroup, Model
from sparkrecipes.schema.recipe import Recipe, Speculative

if TYPE_CHECKING:
    from sparkrecipes.schema.evidence import EvidenceRow

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""What vLLM's number flags may end in (``engine/arg_utils.py``, human_readable_int)."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmgKMG]?)")


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
    hub_sizes: Mapping[str, ByteRange] = field(default_factory=dict)
    """Files on the Hub today, by repository, where it was asked."""


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


class Flags(NamedTuple):
    """Engine arguments by name; of a flag given twice the last counts, as engines read them."""

    values: Mapping[str, str]
    """Values of ``--name=value`` and ``--name value``."""
    switches: Mapping[str, bool]
    """True of ``--name`` and false of ``--no-name``, without the dashes."""


@lru_cache(maxsize=256)
def read_flags(flags: tuple[str, ...]) -> Flags:
    """Read engine arguments once."""
    values: dict[str, str] = {}
    switches: dict[str, bool] = {}
    for flag, after in zip_longest(flags, flags[1:], fillvalue="--"):
        name, equals, value = flag.partition("=")
        if equals:
            values[name] = value
        elif not after.startswith("-"):
            values[name] = after
        switches[name.removeprefix("--no-").removeprefix("--")] = not name.startswith("--no-")
    return Flags(values, switches)


def flag_value(flags: tuple[str, ...], name: str) -> str | None:
    """Read the value of ``--name=value`` or ``--name value``; null where the flag is not given."""
    return read_flags(flags).values.get(name)


def flag_number(flags: tuple[str, ...], name: str) -> int | None:
    """Read a flag that is a number, ``8192`` or ``8k``; null where it is not one."""
    told = flag_value(flags, name)
    found = NUMBER.fullmatch(told) if told else None
    return int(float(found[1]) * UNITS.get(found[2], 1)) if found else None


def flag_on(flags: tuple[str, ...], name: str) -> bool | None:
    """Read a switch that has a ``--no-`` form; null where neither is given."""
    return read_flags(flags).switches.get(name)


@lru_cache(maxsize=256)
def stretched_tokens(flags: tuple[str, ...]) -> int | None:
    """Read the longest context that a rope override stretches a model to; null without one.

    ``max_position_embeddings`` of ``--hf-overrides`` is the limit where it is given; else the
    factor times the positions that it stretches, as vLLM derives it.

    Source: vLLM 0.32.0 ``config/model.py``, _get_and_verify_max_len.
    """
    overrides = json_flag(flags, "--hf-overrides")
    text = {**overrides, **(overrides.get("text_config") or {})}
    if isinstance(told := text.get("max_position_embeddings"), int):
        return told
    rope = text.get("rope_parameters") or text.get("rope_scaling")
    rope = rope or json_flag(flags, "--rope-scaling")
    if not isinstance(rope, dict):
        return None
    factor, original = rope.get("factor"), rope.get("original_max_position_embeddings")
    return int(factor * original) if factor and original else None


def json_flag(flags: tuple[str, ...], name: str) -> dict[str, Any]:
    """Read a flag that holds a JSON object; empty where it is not given or none."""
    try:
        found = json.loads(flag_value(flags, name) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def context_limit(request: FitRequest) -> int:
    """Give the longest context that can be served: the model's, or what an override makes it."""
    return max(stretched_tokens(request.flags) or 0, request.model.context_tokens)


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
