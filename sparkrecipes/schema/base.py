"""What all types share: frozen, strict, closed, and the words used for ids."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
"""A catalog id: the name of its file without the ending."""

RepoId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)
]
"""A Hugging Face repository, ``owner/name``."""

CommitSha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
"""A full commit of a repository; a branch is not a pin."""

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""The digest of an image manifest or index."""

Bytes = Annotated[int, Field(ge=0)]
Tokens = Annotated[int, Field(ge=1)]
Users = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]

Capability = Literal["text", "image", "audio", "video", "tools", "reasoning"]
KvCacheDtype = Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"]


class Frozen(BaseModel):
    """A value: immutable, no coercion, no unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        defer_build=True,
    )
