"""Does it fit: the memory model on the machine of an open workspace, and how fast it would be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparkrecipes import machine as hosts
from sparkrecipes import memory, speed
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.subjects import recipe_request, subject_request
from sparkrecipes.operations.workspace import Place, Workspace, open_workspace, positive
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.model import ByteRange
from sparkrecipes.schema.recipe import Recipe

if TYPE_CHECKING:
    from sparkrecipes.schema.listing import RecipeSummary

MOST_GIB = 1e6
LISTED_MACHINE = "dgx-spark"


def estimate_memory(
    recipe_or_model: str,
    *,
    context_tokens: int | None = None,
    users: int | None = None,
    kv_cache_dtype: str | None = None,
    available_kv_gib: float | None = None,
    engine_version: str | None = None,
    speculative: str | None = None,
    prefix_caching: bool | None = None,
    max_num_batched_tokens: int | None = None,
    mamba_ssm_cache_dtype: str | None = None,
    explain: bool = False,
    grid: bool = False,
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
    offline: bool = False,
) -> MemoryEstimate:
    """Say whether a recipe or model fits, for a context and a number of users.

    Args:
        recipe_or_model: A recipe id or file, a model id, ``<model>-<quant>``, or a Hugging Face
            repository (which needs the network unless the catalog knows it).
        context_tokens: Longest sequence; None: as measured, or the model's.
        users: Sequences at once; None: as measured, or 1.
        kv_cache_dtype: None: the recipe's, or auto.
        available_kv_gib: "Available KV cache memory" of an engine's log, to get the figures that
            it prints (``engine_kv``).
        engine_version: A release of vLLM; None: the recipe's, else the newest known.
        speculative: ``mtp:3``, ``dflash:15``, ``dspark:7``, ``eagle3:3``, ``none``.
        prefix_caching: None: on for a model, as set for a recipe.
        max_num_batched_tokens: Most tokens a step; None: as set, or the engine's default.
        mamba_ssm_cache_dtype: Type of recurrent states; None: the model's.
        explain: True explains every number: ``explain``.
        grid: True answers for a table of users and contexts too: ``grid``.
        catalog: Where facts come from.
        machine: Where it must fit.
        offline: True asks no network.

    Raises:
        Misuse: A value that no engine takes.
        UnknownId: Nothing has that id.
        Unknown: The repository's facts could not be had, or the log's figures need a drafter that
            no source describes.
    """
    space = open_workspace(catalog, machine, offline=offline)
    positive("--context", context_tokens)
    positive("--users", users)
    told = memory.EngineSettings(
        engine_version=engine_version,
        speculative=speculative,
        prefix_caching=prefix_caching,
        max_num_batched_tokens=max_num_batched_tokens,
        mamba_ssm_cache_dtype=mamba_ssm_cache_dtype,
    )
    kv_bytes = gib_bytes("--available-kv-gib", available_kv_gib)
    request = subject_request(space, recipe_or_model, context_tokens, users, kv_cache_dtype)
    if told != memory.UNTOLD or kv_bytes is not None:
        exact = kv_bytes is not None
        request = memory.with_settings(request, space.catalog.engine("vllm"), told, exact=exact)
    request = with_hub_sizes(space, request)
    return answer_of(space, request, kv_bytes, explain=explain, grid=grid)


def with_hub_sizes(space: Workspace, request: memory.FitRequest) -> memory.FitRequest:
    """Add the sizes of the files on the Hub today, where it may be asked and answers.

    A repository that the catalog does not know was just asked about: it has its size already.
    """
    if request.model.id not in space.catalog.models:
        own = {b.repo: b.weights for b in request.builds if b.weights}
        return replace(request, hub_sizes=own)
    if space.offline:
        return request
    from sparkrecipes import hub_models

    drafter = (request.drafter_repo,) if request.drafter_repo else ()
    found = hub_models.file_sizes((*(b.repo for b in request.builds), *drafter))
    sizes = {
        repo: ByteRange(
            low_bytes=size.size_bytes,
            high_bytes=size.size_bytes,
            what="on_disk",
            source=size.source,
        )
        for repo, size in found.items()
    }
    return replace(request, hub_sizes=sizes) if sizes else request


def gib_bytes(name: str, gib: float | None) -> int | None:
    """Read GiB as bytes; a log prints less than nothing where the engine had none left.

    Raises:
        Misuse: No finite number, or more than any machine has.
    """
    if gib is None:
        return None
    if not math.isfinite(gib) or abs(gib) > MOST_GIB:
        raise Misuse(
            f"{name} of {gib} is no amount of memory",
            code="bad_available_kv_gib",
            repair=f"copy the GiB after 'Available KV cache memory' from the log: {name} 72.79",
        )
    return round(gib * 2**30)


def answer_of(
    space: Workspace,
    request: memory.FitRequest,
    available_kv_bytes: int | None,
    *,
    explain: bool,
    grid: bool,
) -> MemoryEstimate:
    """Size a request, with what uses the machine now and what else was asked for."""
    live = hosts.live_use() if space.here else None
    free = live.mem_available_bytes if live else None
    answer = memory.estimate(
        request, space.machine, available_bytes=free, available_kv_bytes=available_kv_bytes
    )
    answer = with_forecast(answer, request, space.machine)
    more: dict[str, Any] = {}
    if live:
        more["live"] = live
        more["warnings"] = (*answer.warnings, *memory.to_free(answer, live))
    if explain:
        more["explain"] = memory.explain(request, space.machine, answer)
    if grid:
        more["grid"] = memory.grid(request, space.machine, available_bytes=free)
    return answer.model_copy(update=more)


def fit_recipe(
    space: Workspace, recipe: Recipe, context_tokens: int | None, users: int | None
) -> MemoryEstimate:
    """Size a recipe on the machine of an open workspace."""
    request = recipe_request(space, recipe, context_tokens, users)
    answer = memory.estimate(request, space.machine, available_bytes=available_bytes(space))
    return with_forecast(answer, request, space.machine)


def compile_jobs_for(space: Workspace, recipe: Recipe) -> int | None:
    """Give how many kernels may compile at once: the number by which ``fit`` bounds the start."""
    return memory.added_compile_jobs(recipe_request(space, recipe, None, None), space.machine)


def with_forecast(
    answer: MemoryEstimate, request: memory.FitRequest, machine: Machine
) -> MemoryEstimate:
    """Add how fast it would be, where what decides that is known, and warn of what is too slow."""
    weights, bandwidth = answer.bounds["weights_bytes"], machine.memory_bandwidth_gb_s
    shape = speed.shape_of(request.model, weights, answer.kv_bytes_per_token)
    if shape is None or bandwidth is None:
        return answer
    found = speed.forecast(
        shape,
        bandwidth,
        context_tokens=request.context_tokens,
        users=request.users,
        speculative=request.speculative,
    )
    if request.published:
        note = "this recipe was measured: the published figures go before a forecast"
        found = found.model_copy(update={"notes": (note, *found.notes)})
    slow = speed.slow_warning(found, fits=answer.verdict in ("fits", "tight"))
    return answer.model_copy(update={"forecast": found, "warnings": (*answer.warnings, *slow)})


def completed(catalog: Catalog, recipe: Recipe, row: RecipeSummary) -> RecipeSummary:
    """Add the speed that a recipe may reach, where nobody measured it and it may run.

    The list is that of the machine that was measured, whatever this host is.
    """
    measured = row.published is not None and row.published.single_user_tok_s is not None
    machine = catalog.machines.get(LISTED_MACHINE)
    if measured or machine is None or row.status == "does_not_run":
        return row
    request = recipe_request(Workspace(catalog, machine, True, False), recipe, None, None)
    found = with_forecast(memory.estimate(request, machine), request, machine).forecast
    told = speed.brief(found, request.users) if found else None
    return row.model_copy(update={"estimated": told})


def available_bytes(space: Workspace) -> int | None:
    """Return MemAvailable where this host is the target, else None."""
    live = hosts.live_memory() if space.here else None
    return live[1] if live else None
