"""Weights, drafter and overhead: each between two bounds, with the reason of each bound."""

from __future__ import annotations

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
    if build.weights:
        bound = in_memory(build.weights)
        return bound._replace(reason=f"{build.repo}: {bound.reason}")
    return by_parameters(request.model, build)


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
    if known and known.weights:
        size = in_memory(known.weights)
        copies = 0 if known.weights.what == "loaded" else 2 * embedding_values(request.model)
        more = " and embeddings of its own at most" if copies else ""
        return Bound(size.low, size.high + copies, f"{known.repo}: {size.reason}{more}")
    return undescribed_drafter(request)


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

    engine: Bound
    """Activations, CUDA graphs, workspaces and the process: inside the engine's fraction."""
    shm: int
    """Shared memory of the container, at most: the same pool, but outside the fraction."""


MIXTURE = ((1 * GIB, 30), (int(5.6 * GIB), 97))
DENSE = ((1 * GIB, 20), (4 * GIB, 40))
"""Overhead of mixtures of experts and of dense models: bytes fixed, and bytes for each batched
token and unit of hidden size; low and high. They enclose every overhead derived from start-up logs
(total x fraction - weights - cache): docs/memory.md."""

ENCODER_BYTES = int(1.8 * GIB)
"""Profiling of a multimodal encoder, at most: the cache that Qwen3.8-27B gained by
``--language-model-only`` on one machine (37 blocks of 51,380,224 bytes)."""

UNKNOWN_HIDDEN = 8192
"""Widest hidden size reckoned with where a model states none."""


def overhead(request: FitRequest, batched: int, block_bytes: int) -> Overhead:
    """Bound what the engine takes beside weights and cache.

    Args:
        request: What is asked.
        batched: Most tokens a step.
        block_bytes: One block of the cache, which the engine holds back.
    """
    model = request.model
    (low_fixed, low_slope), (high_fixed, high_slope) = shape_of_overhead(model)
    hidden = model.hidden_size
    low = low_fixed + low_slope * batched * (hidden or 0)
    high = high_fixed + high_slope * batched * (hidden or UNKNOWN_HIDDEN) + block_bytes
    sees = any(m in model.modalities for m in ("image", "audio", "video"))
    if sees and not flag_on(request.flags, "language-model-only"):
        high += ENCODER_BYTES
    reason = (
        f"activations, CUDA graphs and workspaces by {batched:,} batched tokens x hidden size "
        f"{hidden or UNKNOWN_HIDDEN:,}, within what start-up logs show (docs/memory.md)"
        + (", with a multimodal encoder" if sees else "")
    )
    return Overhead(Bound(low, high, reason), shm_bytes(request.shm_size))


def shape_of_overhead(model: Model) -> tuple[tuple[int, int], tuple[int, int]]:
    """Pick the bounds of the model's kind; where active parameters are unknown, the wider ones."""
    if model.params_active_b is None or model.params_total_b is None:
        return DENSE[0], MIXTURE[1]
    return DENSE if model.params_active_b >= model.params_total_b else MIXTURE
