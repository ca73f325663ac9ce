"""How cached repositories are mounted, and where the engine finds them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import WeightsSource

REVISION = "REVISION"
"""Stands for a commit that is not known yet."""

SHARED_STORE = "blobs"
"""Folder of a cache that holds files of all its repositories, since hub 2.4."""


@dataclass(frozen=True)
class MountedWeights:
    """A repository in the cache, as it is mounted.

    Attributes:
        folder: The repository's whole cache folder: snapshots link into its blobs.
        revision: The commit that is served.
        shared_blobs: Whether some of its files lie in the cache's shared store, which is then
            mounted beside it.
    """

    folder: Path
    revision: str
    shared_blobs: bool = False


@dataclass(frozen=True)
class BindMount:
    """A folder of this host, readable inside and never writable.

    Attributes:
        source: Folder on the host.
        target: Folder inside.
    """

    source: str
    target: str


@dataclass(frozen=True)
class Placed:
    """A repository of weights, as the container sees it.

    Attributes:
        repo: The repository, ``owner/name``.
        path: Its snapshot's folder inside.
        revision: The commit, or a word in its place.
        pinned: Whether the recipe names the commit.
        cached: Whether it is in the cache.
        mounts: What makes it reachable.
    """

    repo: str
    path: str
    revision: str
    pinned: bool
    cached: bool
    mounts: tuple[BindMount, ...]


def placed(
    source: WeightsSource | None,
    cached: MountedWeights | None,
    engine: Engine,
    cache_root: Path,
) -> Placed | None:
    """Say where a repository is mounted and where its snapshot lies inside.

    The whole repository is mounted, because a snapshot holds only links into its ``blobs``. Links
    of hub 2.4 lead on into the cache's shared store; mounted beside the repository, their
    relative targets hold inside as they do outside.
    """
    if source is None:
        return None
    folder = cached.folder if cached else cache_root / f"models--{source.repo.replace('/', '--')}"
    revision = source.revision or (cached.revision if cached else REVISION)
    base = engine.weights_mount.rstrip("/")
    inside = f"{base}/{folder.name}"
    mounts = [BindMount(str(folder), inside)]
    if cached and cached.shared_blobs:
        mounts.append(BindMount(str(folder.parent / SHARED_STORE), f"{base}/{SHARED_STORE}"))
    return Placed(
        repo=source.repo,
        path=f"{inside}/snapshots/{revision}",
        revision=revision,
        pinned=source.revision is not None,
        cached=cached is not None,
        mounts=tuple(mounts),
    )
