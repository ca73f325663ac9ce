"""What a registry says of an image."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Bytes, Frozen, Text


class ImageReport(Frozen):
    """Whether an image has a build for the wanted platform, and which one that is."""

    ref: Text
    """The reference asked about, in full."""
    state: Literal[
        "found",
        "missing",
        "auth_required",
        "bad_credentials",
        "denied",
        "rate_limited",
        "no_network",
        "broken",
        "unknown",
    ]
    """What the registry answered; each is a different thing to do."""
    platform: Text
    """The platform asked for."""
    platform_ok: bool | None
    """Whether the image has it; null where nobody could say."""
    arm64: bool | None
    """Whether it has linux/arm64; null where nobody could say."""
    platforms: tuple[Text, ...]
    digest: Text | None
    """Manifest for the platform asked for: what should be pulled."""
    index_digest: Text | None = None
    """What the tag itself points at, where that is an index."""
    compressed_bytes: Bytes | None
    """Size of its layers as they are transferred."""
    layers: Annotated[dict[str, int], Field(exclude=True)] = {}
    """Compressed bytes of each layer by its digest; for the display of a pull, not for others."""
    reason: Text
    """In a sentence, and what it does not prove."""
    repair: str = ""
    entrypoint: tuple[str, ...] | None = None
    """What a container of it starts, from its config; null where that was not read or is open."""
    cuda_version: Text | None = None
    """CUDA that it was built with (CUDA_VERSION), where it says so."""
    cuda_arch_list: Text | None = None
    """GPU architectures it was built for (TORCH_CUDA_ARCH_LIST), where it says so."""
