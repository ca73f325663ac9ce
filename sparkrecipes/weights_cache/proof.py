"""Whether a snapshot on disk is whole: proved, disproved, or neither.

The library keeps the list of a commit's files beside them (``trees/<commit>.json``, since 2.x).
With it every wanted file can be compared by size. A cache that an older library filled has no
such list; then the weights must prove themselves: links, shard names, the safetensors index, and
the length that each safetensors file states in its own header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sparkrecipes.weights_cache.selection import format_of, holds_weights, wanted_files

LISTING_LIMIT_BYTES = 32 * 2**20
HEADER_LIMIT_BYTES = 25_000_000
"""Longest safetensors header that the library itself reads (SAFETENSORS_MAX_HEADER_LENGTH)."""

SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<ending>\.[a-z]+)$")
"""Name of one part of a set, e.g. ``model-00002-of-00015.safetensors``.

Source: https://huggingface.co/docs/huggingface_hub/package_reference/serialization
"""

TOKENIZERS = frozenset(
    ("tekken.json", "tiktoken.model", "tokenizer.json", "tokenizer.model", "vocab.json")
)


@dataclass(frozen=True)
class Snapshot:
    """What lies in a snapshot's folder.

    Attributes:
        path: The folder.
        sizes: Bytes of each file that can be read, by its path inside.
        broken: Paths inside whose link is dangling or leads out of the cache.
        unfinished: Parts that a download left in the repository's blobs.
        listing: Bytes of each file of the commit, or None where nobody kept the list.
    """

    path: Path
    sizes: Mapping[str, int]
    broken: tuple[str, ...]
    unfinished: int
    listing: Mapping[str, int] | None


def prove(snapshot: Snapshot) -> tuple[bool | None, tuple[str, ...]]:
    """Say whether a snapshot is whole, and what is wrong with it.

    Returns:
        True: every file that an engine reads is there. False: with each fault in a few words.
        None: nothing is seen to be wrong, and nothing proves that all is there.
    """
    if snapshot.listing is not None:
        faults = listing_faults(snapshot.listing, snapshot.sizes, snapshot.broken)
        return not faults, faults
    faults = (
        *(f"{name} is a broken link" for name in snapshot.broken),
        *((f"{snapshot.unfinished} unfinished parts in blobs/",) if snapshot.unfinished else ()),
        *missing_shards(snapshot.sizes),
        *index_faults(snapshot),
        *content_faults(snapshot),
    )
    if faults:
        return False, faults
    names = {PurePosixPath(name).name for name in snapshot.sizes}
    proved = (
        any(format_of(n) == ".safetensors" for n in snapshot.sizes)
        and holds_weights(snapshot.sizes)
        and "config.json" in snapshot.sizes
        and names & TOKENIZERS
    )
    return (True if proved else None), ()


def listing_faults(
    listing: Mapping[str, int], sizes: Mapping[str, int], broken: Iterable[str]
) -> tuple[str, ...]:
    """Compare what an engine reads of a commit with what is on disk."""
    dangling = set(broken)
    faults = []
    for name in wanted_files(listing):
        if name in dangling:
            faults.append(f"{name} is a broken link")
        elif name not in sizes:
            faults.append(f"{name} is missing")
        elif sizes[name] != listing[name]:
            faults.append(f"{name} has {sizes[name]:,} of {listing[name]:,} bytes")
    return tuple(faults)


def read_listing(path: Path) -> dict[str, int] | None:
    """Read the library's list of a commit's files; None where there is none to be trusted.

    Source: huggingface_hub 2.4, ``_tree_cache.py`` (format_version 1).
    """
    data = read_json(path, LISTING_LIMIT_BYTES)
    try:
        if data["format_version"] != 1:
            return None
        return {name: int(info["size"]) for name, info in data["files"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def missing_shards(names: Iterable[str]) -> list[str]:
    """Name the parts of a numbered set that are not there."""
    seen: dict[tuple[str, str, str], set[int]] = {}
    for name in names:
        if part := SHARD.match(name):
            key = (part["stem"], part["count"], part["ending"])
            seen.setdefault(key, set()).add(int(part["number"]))
    return [
        f"{stem}-{number:05d}-of-{count}{ending} is missing"
        for (stem, count, ending), numbers in seen.items()
        for number in range(1, int(count) + 1)
        if number not in numbers
    ]


def index_faults(snapshot: Snapshot) -> list[str]:
    """Name the files that a safetensors index promises and that are not there."""
    faults = []
    for name in snapshot.sizes:
        if not name.endswith(".safetensors.index.json"):
            continue
        data = read_json(snapshot.path / name, LISTING_LIMIT_BYTES)
        weight_map = data.get("weight_map") if isinstance(data, dict) else None
        if not isinstance(weight_map, dict):
            faults.append(f"{name} is not a safetensors index")
            continue
        folder = PurePosixPath(name).parent
        promised = sorted({str(folder / str(shard)) for shard in weight_map.values()})
        faults += [f"{shard} is missing" for shard in promised if shard not in snapshot.sizes]
    return list(dict.fromkeys(faults))


def content_faults(snapshot: Snapshot) -> list[str]:
    """Look into the files whose content can be judged without a list: weights and config."""
    faults = []
    for name, size in snapshot.sizes.items():
        if name.endswith(".safetensors") and stated_size(snapshot.path / name) != size:
            faults.append(f"{name} is cut short or is no safetensors file")
    config = "config.json"
    if config in snapshot.sizes and read_json(snapshot.path / config, LISTING_LIMIT_BYTES) is None:
        faults.append(f"{config} is not JSON")
    return faults


def stated_size(path: Path) -> int | None:
    """Compute a safetensors file's length from its header, in bytes; None where it has none.

    Length = 8 + N + end: N is the header's length (the first 8 bytes, little-endian) and end the
    largest offset that it states.
    Source: https://huggingface.co/docs/safetensors/index (format).
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= HEADER_LIMIT_BYTES:
            return None
        header = parse_json(file.read(length))
    if not isinstance(header, dict):
        return None
    try:
        ends = [entry["data_offsets"][1] for k, entry in header.items() if k != "__metadata__"]
        return 8 + length + max(ends, default=0)
    except (KeyError, IndexError, TypeError):
        return None


def read_json(path: Path, limit_bytes: int) -> Any:
    """Read a JSON file; None where it is absent, too large or not JSON."""
    try:
        if path.stat().st_size > limit_bytes:
            return None
        return parse_json(path.read_bytes())
    except OSError:
        return None


def parse_json(text: bytes) -> Any:
    """Parse JSON; None where it is none (deep nesting included)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
