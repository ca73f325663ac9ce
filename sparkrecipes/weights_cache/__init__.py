"""Weights that are already on this machine: the Hugging Face cache, read without its library.

::

    <root>/models--<owner>--<name>/refs/main              the commit that main was
                                   snapshots/<commit>/…   links into blobs
                                   blobs/<etag>           the files, or links into the shared store
                                   trees/<commit>.json    the commit's files and their sizes
    <root>/blobs/<xx>/<xet hash>                          one store for all repositories (hub 2.4)

Source: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkrecipes.weights_cache.proof import Snapshot, prove, read_listing
from sparkrecipes.weights_cache.selection import holds_weights, wanted_files

__all__ = [
    "CachedRepo",
    "cache_root",
    "find",
    "holds_weights",
    "repo_folder",
    "token_is_set",
    "wanted_files",
]

REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")
REF_LIMIT_BYTES = 1024
SHARED_STORE = "blobs"
TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@dataclass(frozen=True)
class CachedRepo:
    """A repository in the cache, at one commit.

    Attributes:
        repo: The repository, ``owner/name``.
        folder: The repository's whole cache folder; snapshots link into its blobs.
        revision: The commit.
        snapshot: The folder of that commit's files.
        complete: Whether all that an engine reads is there; None where nothing proves it.
        total_bytes: Size of the snapshot's files.
        problems: What is missing or broken, a few words each.
        files: How many files the snapshot has.
        shared_blobs: Whether files lie in the store that all repositories share, outside
            ``folder``: then that must be reachable too.
    """

    repo: str
    folder: Path
    revision: str
    snapshot: Path
    complete: bool | None
    total_bytes: int
    problems: tuple[str, ...] = ()
    files: int = 0
    shared_blobs: bool = False


def cache_root() -> Path:
    """Say where the library keeps repositories, by its own rules for the environment.

    ``HF_HUB_CACHE``, else ``HUGGINGFACE_HUB_CACHE`` (its old name), else ``HF_HOME/hub``, else
    ``XDG_CACHE_HOME/huggingface/hub``, else ``~/.cache/huggingface/hub``. Always absolute.
    Source: huggingface_hub 2.4, ``constants.py``.
    """
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return expanded(named or f"{library_home()}/hub")


def library_home() -> str:
    """Name the folder that the library keeps everything in, not yet expanded."""
    env = os.environ
    return env.get("HF_HOME") or f"{env.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"


def expanded(path: str) -> Path:
    """Expand variables and ``~`` as the library does; always absolute."""
    return Path(os.path.expandvars(path)).expanduser().absolute()


def token_is_set() -> bool:
    """Say whether the library would send a token; the token itself is never kept or shown.

    ``HF_TOKEN``, else ``HUGGING_FACE_HUB_TOKEN``, else the file that ``hf auth login`` writes.
    Source: huggingface_hub 2.4, ``utils/_auth.py`` and ``constants.py`` (HF_TOKEN_PATH).
    """
    if any(os.environ.get(name, "").strip() for name in TOKEN_VARIABLES):
        return True
    try:
        path = expanded(os.environ.get("HF_TOKEN_PATH") or f"{library_home()}/token")
        return path.stat().st_size > 0
    except (OSError, RuntimeError):
        return False


def repo_folder(repo: str, root: Path) -> Path | None:
    """Name a repository's folder in a cache; None where ``repo`` is no repository name."""
    return root / f"models--{repo.replace('/', '--')}" if REPO.fullmatch(repo) else None


def find(repo: str, revision: str | None = None, *, root: Path | None = None) -> CachedRepo | None:
    """Find a repository in the cache; no network is asked and nothing is written.

    Args:
        repo: The repository, ``owner/name``.
        revision: A commit, branch or tag; None: what ``main`` was, else the only commit there is.
        root: The cache; None: :func:`cache_root`.

    Returns:
        What is there at that revision, or None: not there, not readable, or not inside the cache.
    """
    base = cache_root() if root is None else root
    folder = repo_folder(repo, base)
    try:
        if folder is None or not inside(folder, base):
            return None
        commit = commit_of(folder, revision)
        snapshot = folder / "snapshots" / commit if commit else None
        if commit is None or snapshot is None or not inside(snapshot, folder):
            return None
        return describe(repo, folder, commit, snapshot, base) if snapshot.is_dir() else None
    except OSError:
        return None


def inside(path: Path, folder: Path) -> bool:
    """Say whether a path, links followed, lies in a folder."""
    return real(path).is_relative_to(real(folder))


def real(path: Path) -> Path:
    """Follow all links; a link that leads in a circle is left as it is."""
    return Path(os.path.realpath(path))


def commit_of(folder: Path, revision: str | None) -> str | None:
    """Find the commit that a revision means in a repository's folder."""
    if revision is not None and COMMIT.fullmatch(revision):
        return revision
    ref = folder / "refs" / (revision or "main")
    if inside(ref, folder / "refs") and ref.is_file():
        with ref.open("rb") as file:
            text = file.read(REF_LIMIT_BYTES).decode("ascii", "replace").strip()
        return text if COMMIT.fullmatch(text) else None
    snapshots = folder / "snapshots"
    if revision is not None or not snapshots.is_dir():
        return None
    commits = [entry.name for entry in snapshots.iterdir() if COMMIT.fullmatch(entry.name)]
    return commits[0] if len(commits) == 1 else None


def describe(repo: str, folder: Path, commit: str, snapshot: Path, root: Path) -> CachedRepo:
    """Look at every file of a snapshot and judge the whole."""
    own, store = real(folder), real(root) / SHARED_STORE
    sizes: dict[str, int] = {}
    broken: list[str] = []
    shared = False
    for name, path in entries(snapshot):
        target = real(path)
        in_store = target.is_relative_to(store)
        if not target.is_file() or not (in_store or target.is_relative_to(own)):
            broken.append(name)
            continue
        sizes[name] = target.stat().st_size
        shared = shared or in_store
    complete, problems = prove(
        Snapshot(
            path=snapshot,
            sizes=sizes,
            broken=tuple(broken),
            unfinished=sum(1 for _ in (folder / "blobs").glob("*.incomplete")),
            listing=read_listing(folder / "trees" / f"{commit}.json"),
        )
    )
    total = sum(sizes.values())
    return CachedRepo(repo, folder, commit, snapshot, complete, total, problems, len(sizes), shared)


def entries(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """Walk a snapshot's files and links; a link to a folder counts as one entry."""
    for place, folders, files in os.walk(snapshot):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in sorted((*files, *links)):
            path = Path(place) / name
            yield path.relative_to(snapshot).as_posix(), path
