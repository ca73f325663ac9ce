"""What registries store: indexes, manifests and image configs, read without trusting them.

Source: https://github.com/opencontainers/image-spec/blob/main/manifest.md, image-index.md and
config.md; attestation entries: https://docs.docker.com/build/metadata/attestations/attestation-storage/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = frozenset({OCI_INDEX, DOCKER_INDEX})
ACCEPT = ", ".join((OCI_INDEX, DOCKER_INDEX, OCI_MANIFEST, DOCKER_MANIFEST))
"""All of them in one header: a registry that finds no match answers as if the tag were missing."""

ARCHITECTURE_NAMES = {"aarch64": "arm64", "x86_64": "amd64", "x86-64": "amd64"}
"""Other spellings. Source: https://github.com/containerd/platforms/blob/main/database.go"""

PLAIN_VARIANTS = {"arm64": ("", "v8"), "amd64": ("", "v1")}
"""Variants that the plain platform stands for. Source: the same file."""


class Malformed(ValueError):
    """What the registry sent is not what it should be."""


@dataclass(frozen=True)
class Entry:
    """One image of an index: its digest, and its platform where the index names one."""

    digest: str
    platform: str | None
    is_index: bool


@dataclass(frozen=True)
class Index:
    """Images of one tag, without attestations."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Manifest:
    """One image: its config, and what is transferred for it."""

    config_digest: str
    compressed_bytes: int
    layers: Mapping[str, int]
    """Compressed bytes by digest."""


@dataclass(frozen=True)
class ImageConfig:
    """What an image says of itself.

    Attributes:
        platform: For example ``linux/arm64``; null where it names no architecture.
        entrypoint: The program that a container starts; null where the image leaves that open.
        env: Its environment.
    """

    platform: str | None
    entrypoint: tuple[str, ...] | None
    env: Mapping[str, str]


def parse_manifest(body: bytes) -> Index | Manifest:
    """Read an index or a manifest.

    Raises:
        Malformed: It is neither, or its parts have the wrong form.
    """
    tree = _json_object(body)
    if tree.get("schemaVersion") == 1 or "fsLayers" in tree:
        raise Malformed("a manifest of schema 1, which Docker no longer pulls")
    if isinstance(tree.get("manifests"), list):
        return Index(tuple(_entries(tree["manifests"])))
    if isinstance(tree.get("config"), dict) and isinstance(tree.get("layers"), list):
        blobs = [tree["config"], *tree["layers"]]
        compressed_bytes = sum(_size(blob) for blob in blobs)
        layers = {_digest(layer): layer["size"] for layer in tree["layers"]}
        return Manifest(_digest(tree["config"]), compressed_bytes, layers)
    raise Malformed("neither an image index nor an image manifest")


def parse_config(body: bytes) -> ImageConfig:
    """Read the config of an image.

    Raises:
        Malformed: It is not a JSON object.
    """
    tree = _json_object(body)
    inner = tree.get("config")
    inner = inner if isinstance(inner, dict) else {}
    return ImageConfig(
        platform=_platform(tree),
        entrypoint=_entrypoint(inner.get("Entrypoint")),
        env=dict(_env(inner.get("Env"))),
    )


def _entries(manifests: list[Any]) -> Iterator[Entry]:
    for entry in manifests:
        if not isinstance(entry, dict):
            raise Malformed("an index with an entry that is not an object")
        platform = entry.get("platform")
        declared = _platform(platform) if isinstance(platform, dict) else None
        if not _is_attestation(entry, declared):
            yield Entry(_digest(entry), declared, entry.get("mediaType") in INDEXES)


def _is_attestation(entry: Mapping[str, Any], platform: str | None) -> bool:
    """Return whether an entry is a build's provenance record and not an image."""
    annotations = entry.get("annotations")
    noted = isinstance(annotations, dict) and "vnd.docker.reference.type" in annotations
    return noted or platform == "unknown/unknown"


def _platform(tree: Mapping[str, Any]) -> str | None:
    """Return os/architecture[/variant] in Docker's normal form; linux where no os is named."""
    architecture = tree.get("architecture")
    system = tree.get("os") or "linux"
    variant = tree.get("variant") or ""
    if not isinstance(architecture, str) or not architecture:
        return None
    if not isinstance(system, str) or not isinstance(variant, str):
        return None
    architecture = ARCHITECTURE_NAMES.get(architecture, architecture)
    if variant in PLAIN_VARIANTS.get(architecture, ("",)):
        return _printable(f"{system}/{architecture}")
    return _printable(f"{system}/{architecture}/{variant}")


def _printable(platform: str) -> str | None:
    """Return a platform if it is one: it is shown to people, and others wrote it."""
    return platform if re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", platform) else None


def _entrypoint(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    return tuple(value) or None


def _env(value: Any) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str) and "=" in item:
            name, _, text = item.partition("=")
            yield name, text


def _digest(blob: Mapping[str, Any]) -> str:
    digest = blob.get("digest")
    if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise Malformed("a part without a sha256 digest")
    return digest


def _size(blob: Any) -> int:
    size = blob.get("size") if isinstance(blob, dict) else None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Malformed("a layer without a size")
    return size


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("not JSON") from error
    if not isinstance(tree, dict):
        raise Malformed("JSON, but not an object")
    return tree
