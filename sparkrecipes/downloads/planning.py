"""What is to be fetched, found out before a byte is: files, room and access."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import sparkrecipes
from sparkrecipes import weights_cache
from sparkrecipes.downloads.failures import Asking, explained, owner_repair
from sparkrecipes.downloads.parts import RemoteFile, kept_bytes, leftover_bytes
from sparkrecipes.errors import DownloadFailed, Unknown
from sparkrecipes.schema.recipe import Recipe, WeightsSource
from sparkrecipes.weights_cache import holds_weights, repo_folder, wanted_files

ASK_TIMEOUT_S = 20.0
MARGIN = 0.05
"""Room kept free beyond the files: metadata, and what others write meanwhile."""

Role = Literal["weights", "drafter"]


@dataclass(frozen=True)
class RepoPlan:
    """What one repository still needs.

    Attributes:
        role: Target or drafter.
        repo: The repository.
        revision: The commit.
        folder: Its cache folder.
        wanted: The files that an engine reads; empty where the cache alone proved it whole.
        missing: Those that are not on disk.
        damaged: Those whose size on disk is wrong; the library would trust them for ever.
        files: How many files there are.
        total_bytes: Their size.
        fetch_bytes: What has to be transferred; parts that are gone on with do not count.
        branch: Whether ``main`` was asked which commit it is.
        note: What to tell about it, or an empty string.
    """

    role: Role
    repo: str
    revision: str
    folder: Path
    wanted: Mapping[str, RemoteFile]
    missing: tuple[str, ...]
    damaged: tuple[str, ...]
    files: int
    total_bytes: int
    fetch_bytes: int
    branch: bool = False
    note: str = ""

    @property
    def snapshot(self) -> Path:
        """The folder that holds the commit's files."""
        return self.folder / "snapshots" / self.revision


@dataclass(frozen=True)
class DownloadPlan:
    """What a download would do.

    Attributes:
        recipe_id: The recipe.
        root: The cache.
        repos: Target and drafter.
        fetch_bytes: What has to be transferred, in all.
        need_bytes: Free room that this takes, margin included.
        free_bytes: Free room of the cache's file system.
        leftover_bytes: Unfinished parts of earlier runs, which nothing will use.
    """

    recipe_id: str
    root: Path
    repos: tuple[RepoPlan, ...]
    fetch_bytes: int
    need_bytes: int
    free_bytes: int
    leftover_bytes: int


def sources(recipe: Recipe) -> tuple[tuple[Role, WeightsSource], ...]:
    """List the repositories of a recipe, the target first."""
    both: tuple[tuple[Role, WeightsSource | None], ...] = (
        ("weights", recipe.weights),
        ("drafter", recipe.drafter),
    )
    return tuple((role, source) for role, source in both if source is not None)


def make_plan(recipe: Recipe, root: Path) -> DownloadPlan:
    """Find out what a recipe still needs, and that it can be had and stored.

    Every repository is asked before any is fetched, so that a gated drafter is found before the
    target's 60 GB.

    Raises:
        DownloadFailed: Gated, missing, no room, or a cache that cannot be written.
        Unknown: The Hub gave no answer.
    """
    repos = tuple(repo_plan(recipe.id, role, source, root) for role, source in sources(recipe))
    fetch_bytes = sum(repo.fetch_bytes for repo in repos)
    place = existing(root)
    plan = DownloadPlan(
        recipe_id=recipe.id,
        root=root,
        repos=repos,
        fetch_bytes=fetch_bytes,
        need_bytes=round(fetch_bytes * (1 + MARGIN)),
        free_bytes=shutil.disk_usage(place).free,
        leftover_bytes=sum(leftover_bytes(repo.folder, repo.wanted.values()) for repo in repos),
    )
    if any(repo.missing or repo.damaged for repo in repos):
        refuse_unwritable(plan)
        refuse_without_room(plan)
    return plan


def repo_plan(recipe_id: str, role: Role, source: WeightsSource, root: Path) -> RepoPlan:
    """Find out what one repository still needs.

    A pinned commit that the cache proves whole needs no network. Where ``main`` cannot be asked,
    the commit that it was will do, if that is whole.

    Raises:
        DownloadFailed: Gated, missing, or without weights that an engine loads.
        Unknown: The Hub gave no answer, and the cache has no whole copy.
    """
    cached = weights_cache.find(source.repo, source.revision, root=root)
    if source.revision and cached and cached.complete:
        return whole(role, cached)
    try:
        return ask(recipe_id, role, source, root)
    except Unknown as err:
        if cached and cached.complete:
            return whole(
                role, cached, note=f"{err.message}: {cached.revision} of the cache is used"
            )
        raise


def whole(role: Role, cached: weights_cache.CachedRepo, note: str = "") -> RepoPlan:
    """Describe a repository that the cache alone proves whole."""
    return RepoPlan(
        role=role,
        repo=cached.repo,
        revision=cached.revision,
        folder=cached.folder,
        wanted={},
        missing=(),
        damaged=(),
        files=cached.files,
        total_bytes=cached.total_bytes,
        fetch_bytes=0,
        note=note,
    )


def ask(recipe_id: str, role: Role, source: WeightsSource, root: Path) -> RepoPlan:
    """Ask the Hub for a repository's commit and files, and compare them with the disk.

    Raises:
        DownloadFailed: Gated, missing, or without weights that an engine loads.
        Unknown: The Hub gave no answer.
    """
    asking = Asking(recipe_id, source.repo, source.revision or "main")
    folder = repo_folder(source.repo, root)
    with explained(asking):
        commit, remote = listing(source.repo, source.revision)
    names = wanted_files(remote)
    refuse_strange(asking, remote, names)
    if folder is None:
        raise DownloadFailed(f"{source.repo!r} is no repository", code="bad_repository")
    wanted = {name: remote[name] for name in names}
    missing, damaged = compare(folder, commit, wanted)
    absent = [n for n in missing if not (folder / "blobs" / wanted[n].blob).is_file()]
    if missing or damaged:
        with explained(asking):
            touch(source.repo, commit, (*missing, *damaged)[0])
    return RepoPlan(
        role=role,
        repo=source.repo,
        revision=commit,
        folder=folder,
        wanted=wanted,
        missing=missing,
        damaged=damaged,
        files=len(wanted),
        total_bytes=sum(file.size for file in wanted.values()),
        fetch_bytes=sum(wanted[name].size for name in (*absent, *damaged))
        - sum(kept_bytes(folder, wanted[name]) for name in absent),
        branch=source.revision is None,
    )


def listing(repo: str, revision: str | None) -> tuple[str, dict[str, RemoteFile]]:
    """Ask the Hub for a revision's commit and files; None is ``main``.

    Raises:
        Unknown: It names no commit, which what is fetched would be kept and pinned by.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="sparkrecipes", library_version=sparkrecipes.__version__)
    info = api.model_info(
        repo, revision=revision or "main", files_metadata=True, timeout=ASK_TIMEOUT_S
    )
    files = {
        file.rfilename: RemoteFile(
            size=-1 if file.size is None else file.size,
            blob=(file.lfs.sha256 if file.lfs else file.blob_id) or "",
        )
        for file in info.siblings or ()
    }
    commit = info.sha or ""
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise Unknown(
            f"the Hub names no commit of {repo}",
            code="no_commit",
            repair="check HF_ENDPOINT: this is no answer of the Hub",
        )
    return commit, files


def commit_of(recipe_id: str, repo: str, revision: str | None = None) -> str:
    """Ask the Hub which commit a branch is now; None is ``main``.

    Raises:
        DownloadFailed: Missing, closed, or no such branch.
        Unknown: The Hub gave no answer.
    """
    with explained(Asking(recipe_id, repo, revision or "main")):
        return listing(repo, revision)[0]


def touch(repo: str, commit: str, name: str) -> None:
    """Ask for one file's headers: a gated repository describes itself to all, but gives none."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    get_hf_file_metadata(hf_hub_url(repo, name, revision=commit), timeout=ASK_TIMEOUT_S)


def refuse_strange(
    asking: Asking, remote: Mapping[str, RemoteFile], names: tuple[str, ...]
) -> None:
    """Refuse a listing that has no weights, no sizes, or paths that lead out of the cache.

    Raises:
        DownloadFailed: With what is strange about it.
    """
    odd = [n for n in remote if n.startswith("/") or ".." in PurePosixPath(n).parts]
    if odd:
        raise DownloadFailed(
            f"{asking.repo} lists {odd[0]!r}, which leads out of the cache",
            code="bad_listing",
            repair="check HF_ENDPOINT: this is no answer of the Hub",
        )
    if any(remote[name].size < 0 or not remote[name].blob for name in names):
        raise DownloadFailed(
            f"{asking.repo} was listed without sizes, so that its room cannot be checked",
            code="bad_listing",
            repair="check HF_ENDPOINT: the mirror leaves sizes out",
        )
    if not holds_weights(names):
        raise DownloadFailed(
            f"{asking.repo} holds no weights that an engine loads",
            code="no_weights",
            repair="name a repository with safetensors in the recipe",
        )


def compare(
    folder: Path, commit: str, wanted: Mapping[str, RemoteFile]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the files that are not on disk, and those whose size there is wrong."""
    missing, damaged = [], []
    for name, file in wanted.items():
        link, blob = folder / "snapshots" / commit / name, folder / "blobs" / file.blob
        here = next((path for path in (link, blob) if path.is_file()), None)
        if here is not None and here.stat().st_size != file.size:
            damaged.append(name)
        elif here is not link:
            missing.append(name)
    return tuple(missing), tuple(damaged)


def existing(path: Path) -> Path:
    """Return a path, or its nearest parent that exists."""
    return next((p for p in (path, *path.parents) if p.exists()), Path("/"))


def refuse_unwritable(plan: DownloadPlan) -> None:
    """Refuse a cache that another user owns, before the library half ignores it.

    Raises:
        DownloadFailed: With the folder, its owner and the command that mends it.
    """
    for path in written_to(plan.root, [repo.folder for repo in plan.repos]):
        if not os.access(path, os.W_OK | os.X_OK):
            raise DownloadFailed(
                f"{path} belongs to user {path.stat().st_uid} and cannot be written by user "
                f"{os.getuid()}",
                code="permission",
                repair=owner_repair(str(path)),
            )


def written_to(root: Path, folders: Iterable[Path]) -> list[Path]:
    """List the folders that a download writes into, as far as they exist."""
    inner = [folder / name for folder in folders for name in ("blobs", "snapshots", "refs")]
    places = [existing(root), root / ".locks", *(p.parent for p in inner), *inner]
    return [place for place in dict.fromkeys(places) if place.exists()]


def refuse_without_room(plan: DownloadPlan) -> None:
    """Refuse what does not fit on the disk; the library warns for single files and goes on.

    Raises:
        DownloadFailed: With both figures.
    """
    if plan.need_bytes <= plan.free_bytes:
        return
    spare = f" ({plan.leftover_bytes / 1e9:.1f} GB of unfinished parts: hf cache prune)"
    raise DownloadFailed(
        f"{plan.fetch_bytes / 1e9:.1f} GB are to be fetched and need {plan.need_bytes / 1e9:.1f} "
        f"GB with a margin; {plan.free_bytes / 1e9:.1f} GB are free at {existing(plan.root)}",
        code="no_disk_space",
        repair=f"free some room: hf cache ls{spare if plan.leftover_bytes else ''}, or set "
        "HF_HUB_CACHE to a larger disk",
    )
