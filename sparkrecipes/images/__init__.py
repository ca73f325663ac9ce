"""Images: what a reference means, and what a registry says of it before anything is pulled."""

from sparkrecipes.images.docker_credentials import engine_auth
from sparkrecipes.images.inspection import cuda_version, inspect
from sparkrecipes.images.reference import ImageReference, moving_tag, parse_reference

__all__ = [
    "ImageReference",
    "cuda_version",
    "engine_auth",
    "inspect",
    "moving_tag",
    "parse_reference",
]
