"""Weights, drafter and overhead: each between two bounds, with the reason of each bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkrecipes.memory.request import (
    FitRequest,
    drafter_of,
    flag_on,
    shm_bytes,
)
from sparkrecipes.memory.sequence_cost import DRAFTER_LAYERS, GIB
from sparkrecipes.schema.model import Build, ByteRange, Model

LOADED_TO_DISK = (0.95, 1.12)
"""Loaded weights against the files on disk, over the builds of which both are known: 0.976 and
0.978 (Qwen3.8-27B NVFP4 of two makers), 0.994 (its FP8), 1.033 and 1.068 (Gemma 4 26B NVFP4 of
two makers), 1.09 (gpt-oss-120b, kernels that expand MXFP4); rounded outwards."""

ROUNDED_PARAMETERS = 0.03
"""Published counts of parameters are rounded: 35B names 34.7 to 35.9."""

QUANT_BITS = {
    "bf16": (16.0, 16.0),
    "fp16": (16.0, 16.0),
    "fp8": (8.0, 8.25),
    "nvfp4": (4.5, 6.1),
    "mxfp4": (4.25, 5.0),
    "int4": (4.0, 5.5),
}
"""Bits a parameter: the format with its scales (NVFP4: 4 + 8/16, MXFP4: 4 + 8/32), and the most
measured on builds that leave layers in wider types (NVFP4 6.06, MXFP4 4.84, INT4 4.5), embeddings
apart."""


class Bound(NamedTuple):
    """A size between two bounds, in bytes, and why."""

    low: int
    high: int
    reason: str


def gib(value: float) -> str:
    """Write bytes as GiB for people."""
    return f"{value / GIB:.2f} GiB"


def weights(request: FitRequest) -> Bound | None:
    """Bound the weights in memory over all builds asked about; null where one has no bound."""
    bounds = [build_weights(request, build) for build in request.builds]
    if not bounds or any(b is None for b in bounds):
        return None
    known = [b for b in bounds if b]
    return Bound(
        min(b.low for b in known),
        max(b.high for b in known),
        "; ".join(dict.fromkeys(b.reason for b in known)),
    )


def build_weights(request: FitRequest, build: Build) -> Bound | None:
    """Bound one build: by what stays resident, its known size, or parameters x bits."""
    for resident in build.residency:
        if resident.env.items() <= request.env.items():
            names = ", ".join(f"{k}={v}" for k, v in sorted(resident.env.items()))
            bound = in_memory(resident.weights)
            return bound._replace(reason=f"with {names} {bound.reason}")
    size = of_files(request.hub_sizes.get(build.repo), build.weights)
    if size:
        return size._replace(reason=f"{build.repo}: {size.reason}")
    return by_parameters(request.model, build)


def of_files(hub: ByteRange | None, catalog: ByteRange | None) -> Bound | None:
    """Bound weights by the files on the Hub today and by what the catalog knows.

    Where both are known they hold both; where they contradict each other, the files have changed
    since, and today's count. What was measured as loaded tells more than files on disk.
    """
    known = in_memory(catalog) if catalog else None
    if hub is None or catalog is None or known is None:
        return in_memory(hub) if hub else known
    today = in_memory(hub)
    if catalog.what == "on_disk":
        return today
    low, high = max(today.low, known.low), min(today.high, known.high)
    if low > high:
        reason = f"{today.reason}; another size than the catalog's, {known.reason}"
        return today._replace(reason=reason)
    return Bound(low, high, f"{today.reason}, and {known.reason}")


def weights_source(request: FitRequest) -> str:
    """Say where the size of the weights comes from: hub, catalog or parameters, of all builds."""
    found = dict.fromkeys(build_source(request, build) for build in request.builds)
    return ", ".join(found)


def build_source(request: FitRequest, build: Build) -> str:
    """Say where the size of one build comes from."""
    if any(r.env.items() <= request.env.items() for r in build.residency):
        return "catalog"
    if build.repo in request.hub_sizes:
        return "hub and catalog" if build.weights and build.weights.what == "loaded" else "hub"
    return "catalog" if build.weights else "parameters"


def in_memory(size: ByteRange) -> Bound:
    """Bound the memory that weights of a known size take."""
    if size.what == "loaded":
        text = f"{gib(size.low_bytes)} to {gib(size.high_bytes)} as loaded ({size.source})"
        return Bound(size.low_bytes, size.high_bytes, text)
    low, high = LOADED_TO_DISK
    text = (
        f"{gib(size.low_bytes)} to {gib(size.high_bytes)} on disk, loaded at {low} to {high} "
        f"times that by the engine's kernels ({size.source})"
    )
    return Bound(int(size.low_bytes * low), int(size.high_bytes * high), text)


def by_parameters(model: Model, build: Build) -> Bound | None:
    """Bound a build of unknown size by parameters and bits; null for an unknown format.

    Builds below 16 bits leave the embeddings wider: at most two tables of vocabulary x hidden
    size at 16 bits.
    """
    bits = build.bits_per_param or QUANT_BITS.get(build.quant.lower())
    if bits is None or model.params_total_b is None:
        return None
    params = model.params_total_b * 1e9
    low = params * (1 - ROUNDED_PARAMETERS) * bits[0] / 8
    high = params * (1 + ROUNDED_PARAMETERS) * bits[1] / 8
    if build.bits_per_param is None:
        high += embedding_values(model) * (16 - bits[1]) / 8
    source = build.bits_source or f"the format {build.quant} and builds of it that were measured"
    reason = (
        f"{build.repo}: {model.params_total_b:g} x 10^9 parameters (rounded: +-3 %) at {bits[0]:g} "
        f"to {bits[1]:g} bits ({source})"
    )
    return Bound(int(low), int(high), reason)


def embedding_values(model: Model) -> int:
    """Count the values of input and output embeddings; 0 where their shape is not known."""
    return 2 * (model.vocab_size or 0) * (model.hidden_size or 0)


def drafter(request: FitRequest) -> Bound | None:
    """Bound a separate drafter's weights; null where nothing bounds them."""
    if request.drafter_repo is None:
        own = request.speculative and request.speculative.method == "mtp"
        return Bound(0, 0, "none of its own: MTP layers are in the checkpoint" if own else "none")
    known = drafter_of(request)
    stated = known.weights if known else None
    size = of_files(request.hub_sizes.get(request.drafter_repo), stated)
    if size is None:
        return undescribed_drafter(request)
    loaded = stated is not None and stated.what == "loaded"
    copies = 0 if loaded else 2 * embedding_values(request.model)
    more = " and embeddings of its own at most" if copies else ""
    return Bound(size.low, size.high + copies, f"{request.drafter_repo}: {size.reason}{more}")


def undescribed_drafter(request: FitRequest) -> Bound | None:
    """Bound a drafter of which only the method is known, by the shape of its target.

    A decoder layer has at most 4 h^2 (attention) + 12 h^2 (feed-forward) weights, the input
    projection 3 h^2, and embeddings and head are at most the target's, all at 16 bits.
    """
    model, spec = request.model, request.speculative
    if spec is None or not model.hidden_size or not model.vocab_size:
        return None
    layers = DRAFTER_LAYERS.get(spec.method)
    if layers is None:
        return None
    values = (16 * layers + 3) * model.hidden_size**2 + embedding_values(model)
    reason = (
        f"{request.drafter_repo}: no source gives its size; at most {layers} decoder layers of "
        "its target's width with embeddings of its own, at 16 bits"
    )
    return Bound(0, 2 * values, reason)


class Overhead(NamedTuple):
    """What the engine takes beside weights and cache."""

    parts: Mapping[str, Bound]
    """Activations, CUDA graphs, the process, a multimodal encoder and the block held back: inside
    the engine's fraction."""
    low: int
    """Sum of the parts' low bounds."""
    high: int
    shm: int
    """Shared memory of the container, at most: the same pool, but outside the fraction."""


class OverheadRule(NamedTuple):
    """Bounds for one kind of model: low and high."""

    activation_bytes: tuple[int, int]
    """For each batched token and unit of hidden size."""
    process_bytes: tuple[int, int]


MIXTURE = OverheadRule((30, 97), (int(0.8 * GIB), int(2.6 * GIB)))
DENSE = OverheadRule((20, 45), (int(0.8 * GIB), 1 * GIB))
"""With the graphs below they enclose every overhead derived from start-up logs (total x fraction -
weights - cache), and less the graphs that a log states every rest of it: docs/memory.md."""

GRAPH_BYTES = (int(0.2 * GIB), 3 * GIB)
"""CUDA graphs of one GPU. Logs state 0.22 to 2.44 GiB; vLLM itself says "1 to 3 GiB".

Source: start-up logs of docs/memory.md; gpustack/runner pull request 251 (0.36), vllm pull request
30515 (0.26, on a DGX Spark); the message of vLLM's ``worker/model_runner.py`` at the capture.
"""

ENCODER_BYTES = int(1.8 * GIB)
"""Profiling of a multimodal encoder, at most: the cache that Qwen3.8-27B gained by
``--language-model-only`` on one machine (37 blocks of 51,380,224 bytes)."""

ENCODER_CACHE_WIDTH = 2
"""Bytes a value of the encoder's cache: the model's own type, 16 bits."""

UNKNOWN_HIDDEN = 8192
"""Widest hidden size reckoned with where a model states none."""


def overhead(request: FitRequest, batched: int, block_bytes: int) -> Overhead:
    """Bound what the engine takes beside weights and cache.

    Args:
        request: What is asked.
        batched: Most tokens a step.
        block_bytes: One block of the cache, which the engine holds back.
    """
    low_rule, high_rule = rules_of(request.model)
    low, high = low_rule.process_bytes[0], high_rule.process_bytes[1]
    parts = {
        "activations_bytes": activations(request.model, batched, low_rule, high_rule),
        "cuda_graphs_bytes": cuda_graphs(request),
        "process_bytes": Bound(low, high, "the process, its libraries and workspaces"),
        "held_block_bytes": Bound(0, block_bytes, "one block of the cache is held back"),
    }
    sees = any(m in request.model.modalities for m in ("image", "audio", "video"))
    if sees and not flag_on(request.flags, "language-model-only"):
        parts["encoder_bytes"] = encoder(request.model, batched)
    return Overhead(
        parts,
        low=sum(part.low for part in parts.values()),
        high=sum(part.high for part in parts.values()),
        shm=shm_bytes(request.shm_size),
    )


def activations(model: Model, batched: int, low: OverheadRule, high: OverheadRule) -> Bound:
    """Bound the peak of a step's activations by its tokens and the model's width."""
    hidden = model.hidden_size
    reason = (
        f"{batched:,} batched tokens x hidden size {hidden or UNKNOWN_HIDDEN:,} x "
        f"{low.activation_bytes[0]} to {high.activation_bytes[1]} bytes, as start-up logs show"
    )
    return Bound(
        low.activation_bytes[0] * batched * (hidden or 0),
        high.activation_bytes[1] * batched * (hidden or UNKNOWN_HIDDEN),
        reason,
    )


def encoder(model: Model, batched: int) -> Bound:
    """Bound a multimodal encoder: its profile, and its cache of as many tokens as a step has.

    Source: start-up logs ("Encoder cache will be initialized with a budget of 65536 tokens" with as
    many batched tokens); vLLM 0.32.0 ``v1/core/encoder_cache_manager.py``.
    """
    cached = batched * (model.hidden_size or UNKNOWN_HIDDEN) * ENCODER_CACHE_WIDTH
    reason = f"profiling of the multimodal encoder, and its cache of {batched:,} tokens"
    return Bound(0, ENCODER_BYTES + cached, reason)


def cuda_graphs(request: FitRequest) -> Bound:
    """Bound the captured graphs: none where the engine is told to run eagerly."""
    if flag_on(request.flags, "enforce-eager"):
        return Bound(0, 0, "none with --enforce-eager")
    low, high = GRAPH_BYTES
    return Bound(low, high, f"{gib(low)} to {gib(high)} on one GPU, as logs and vLLM state")


def rules_of(model: Model) -> tuple[OverheadRule, OverheadRule]:
    """Pick the bounds of the model's kind; where active parameters are unknown, the wider ones."""
    if model.params_active_b is None or model.params_total_b is None:
        return DENSE, MIXTURE
    kind = DENSE if model.params_active_b >= model.params_total_b else MIXTURE
    return kind, kind
