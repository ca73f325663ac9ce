"""Engine settings that a question may name beside a recipe's or a model's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import get_args

from sparkrecipes.errors import Misuse, Unknown, nearest
from sparkrecipes.memory.request import FitRequest, model_request
from sparkrecipes.memory.sequence_cost import SSM_WIDTHS
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Speculative, SpeculativeMethod

NO_SPECULATION = "none"
METHODS = get_args(SpeculativeMethod)
MOST_DRAFT_TOKENS = 64
UNNAMED_DRAFTER = "a drafter that was not named"


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What is told; null leaves the recipe's value, or the engine's default."""

    engine_version: str | None = None
    speculative: str | None = None
    """``mtp:3``, ``dflash:15``, ``dspark:7``, ``eagle3:3``, ``ngram:5`` or ``none``."""
    prefix_caching: bool | None = None
    """Null: on for a bare model, as the recipe says for a recipe."""
    max_num_batched_tokens: int | None = None
    mamba_ssm_cache_dtype: str | None = None
    """Type of recurrent states: float32, bfloat16 or float16."""


UNTOLD = EngineSettings()


def with_settings(
    request: FitRequest, engine: Engine, told: EngineSettings, *, exact: bool = False
) -> FitRequest:
    """Ask the same under other engine settings.

    A published row measured the recipe's own settings: it says nothing of others.

    Args:
        request: What is asked.
        engine: The engine whose arithmetic holds where none was chosen.
        told: The settings.
        exact: The engine's log is asked for: a drafter that no source describes is an error, as
            its layers decide the figures.

    Raises:
        Misuse: A setting that no engine has.
        Unknown: ``exact``, and the drafter is not described.
    """
    spec, drafter = request.speculative, request.drafter_repo
    if told.speculative is not None:
        spec = read_speculative(told.speculative)
        drafter = drafter_for(request.model, spec, exact=exact) if spec else None
    return replace(
        request,
        engine=request.engine or engine,
        engine_version=told.engine_version or request.engine_version,
        speculative=spec,
        drafter_repo=drafter,
        flags=(*request.flags, *flags_of(told, bare=request.engine is None)),
        published=request.published if told == UNTOLD else None,
    )


def flags_of(told: EngineSettings, *, bare: bool) -> tuple[str, ...]:
    """Write settings as engine arguments; they follow a recipe's own, so they hold.

    Raises:
        Misuse: A value that no engine takes.
    """
    flags = []
    prefix_caching = True if bare and told.prefix_caching is None else told.prefix_caching
    if prefix_caching is not None:
        flags.append(f"--{'' if prefix_caching else 'no-'}enable-prefix-caching")
    if told.max_num_batched_tokens is not None:
        if told.max_num_batched_tokens < 1:
            raise Misuse(
                f"{told.max_num_batched_tokens} batched tokens are none",
                code="bad_batched_tokens",
                repair="give --max-num-batched-tokens as 1 or more, e.g. 8192",
            )
        flags.append(f"--max-num-batched-tokens={told.max_num_batched_tokens}")
    if told.mamba_ssm_cache_dtype is not None:
        if told.mamba_ssm_cache_dtype not in SSM_WIDTHS:
            raise Misuse(
                f"{told.mamba_ssm_cache_dtype!r} is not a type of recurrent states",
                code="bad_ssm_dtype",
                repair=f"use one of: {', '.join(SSM_WIDTHS)}",
            )
        flags.append(f"--mamba-ssm-cache-dtype={told.mamba_ssm_cache_dtype}")
    return tuple(flags)


def read_speculative(text: str) -> Speculative | None:
    """Read ``mtp:3``; ``none`` is no speculation.

    Raises:
        Misuse: Another form, an unknown way, or no whole number of draft tokens.
    """
    if text == NO_SPECULATION:
        return None
    found = re.fullmatch(r"([a-z0-9]+):(\d{1,3})", text)
    method, drafts = (found[1], int(found[2])) if found else (text.partition(":")[0], 0)
    if method not in METHODS:
        close = nearest(method, METHODS)
        raise Misuse(
            f"{method!r} is not a way of speculation",
            code="bad_speculative",
            repair=(f"did you mean {close[0]}? " if close else "")
            + f"use one of: {', '.join(METHODS)}, none; e.g. mtp:3",
        )
    if not 1 <= drafts <= MOST_DRAFT_TOKENS:
        raise Misuse(
            f"{text!r} names no number of draft tokens from 1 to {MOST_DRAFT_TOKENS}",
            code="bad_speculative",
            repair=f"write the way and the draft tokens a step, e.g. {method}:3",
        )
    return Speculative.model_validate({"method": method, "num_speculative_tokens": drafts})


def drafter_for(model: Model, speculative: Speculative, *, exact: bool) -> str | None:
    """Find the separate drafter that a way of speculation needs; null where it needs none.

    Raises:
        Unknown: ``exact``, it needs one, and the model file describes none.
    """
    method = speculative.method
    if method == "ngram" or (method == "mtp" and model.mtp_layers):
        return None
    for known in model.drafters:
        if known.method == method and known.layers is not None:
            return known.repo
    if exact:
        raise undescribed(model, method)
    return UNNAMED_DRAFTER


def undescribed(model: Model, method: str) -> Unknown:
    """Say that the log cannot be told, for want of the drafter's layers."""
    return Unknown(
        f"no {method} drafter of {model.id} is described, and its layers decide the cache",
        code="unknown_drafter",
        repair=f"add it to catalog/models/{model.id}.yaml under drafters, or ask without it",
    )


def engine_request(
    model: Model,
    engine: Engine,
    *,
    context_tokens: int,
    kv_cache_dtype: str,
    users: int = 1,
    settings: EngineSettings = UNTOLD,
) -> FitRequest:
    """Ask what an engine's start-up log says of a model, whatever its build.

    Args:
        model: The model: its weights do not matter to the cache.
        engine: The engine whose arithmetic holds.
        context_tokens: Longest sequence.
        kv_cache_dtype: Type of the cache.
        users: Sequences at once.
        settings: Release, speculation and what else decides the figures.

    Raises:
        Misuse: A setting that no engine has.
        Unknown: The model file describes no drafter of that way.
    """
    base = model_request(
        model,
        model.builds,
        context_tokens=context_tokens,
        users=users,
        kv_cache_dtype=kv_cache_dtype,
    )
    return with_settings(base, engine, settings, exact=True)
