"""Weights onto this machine: target and drafter, at one commit each, proved whole.

The transfer is huggingface_hub's own: its cache layout, hashes, tokens and retries. Around it: only
the files that an engine reads, one check of the whole room, access to every repository before the
first byte, errors that say what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from sparkrecipes import weights_cache
from sparkrecipes.downloads.fetching import Fetch
from sparkrecipes.downloads.planning import (
    DownloadPlan,
    RepoPlan,
    Role,
    commit_of,
    make_plan,
    sources,
)
from sparkrecipes.downloads.progress import DownloadProgress, Meter
from sparkrecipes.errors import DownloadFailed, Unknown
from sparkrecipes.schema.recipe import Recipe, WeightsSource
from sparkrecipes.schema.serving import DownloadReport, RepoDownload
from sparkrecipes.weights_cache import wanted_files

__all__ = [
    "DownloadPlan",
    "DownloadProgress",
    "RepoPlan",
    "Role",
    "commit_of",
    "download",
    "hub_is_offline",
    "plan",
    "sources",
    "wanted_files",
]


def plan(recipe: Recipe, *, root: Path | None = None) -> DownloadPlan:
    """Find out what a download would fetch and whether it can; nothing is written.

    Args:
        recipe: Whose weights.
        root: The cache; None: the library's own.

    Raises:
        DownloadFailed: Gated, missing, no room, or a cache that cannot be written.
        Unknown: The Hub gave no answer.
    """
    return make_plan(recipe, cache(root))


def download(
    recipe: Recipe,
    *,
    root: Path | None = None,
    offline: bool = False,
    verify: bool = False,
    progress: Callable[[DownloadProgress], None] | None = None,
) -> DownloadReport:
    """Fetch a recipe's target and drafter, and prove that all files are there.

    Args:
        recipe: Whose weights; the commit is the recipe's, else the one that ``main`` is now.
        root: The cache; None: the library's own.
        offline: True asks no network: what is in the cache must be whole.
        verify: True compares every file's hash with the Hub's, which reads all of it.
        progress: Called, in this thread, whenever something has moved.

    Raises:
        DownloadFailed: With the reason and its repair; finished files are kept.
        Unknown: The Hub gave no answer, or the cache cannot be judged without it.
        KeyboardInterrupt: Passed through; finished files are kept.
    """
    started = time.monotonic()
    if not sources(recipe):
        return empty_report(recipe)
    if offline or hub_is_offline():
        repos = [local(recipe.id, *source, cache(root)) for source in sources(recipe)]
        return report(recipe, repos, started, ())
    made = make_plan(recipe, cache(root))
    meter = Meter(
        present_bytes=sum(repo.total_bytes - repo.fetch_bytes for repo in made.repos),
        total_bytes=sum(repo.total_bytes for repo in made.repos),
        total_files=sum(repo.files for repo in made.repos),
    )
    fetch = Fetch(made, meter, progress, verify)
    repos, done_files = [], 0
    for repo in made.repos:
        repos.append(fetch.repo(repo, done_files))
        done_files += repo.files
    return report(recipe, repos, started, plan_warnings(made))


def cache(root: Path | None) -> Path:
    """Return the cache that is used."""
    return (root or weights_cache.cache_root()).absolute()


def hub_is_offline() -> bool:
    """Say whether the library itself was told to ask no network (``HF_HUB_OFFLINE``)."""
    from huggingface_hub import is_offline_mode

    return is_offline_mode()


def report(
    recipe: Recipe, repos: list[RepoDownload], started_s: float, warnings: tuple[str, ...]
) -> DownloadReport:
    """Put the answer together."""
    return DownloadReport(
        recipe_id=recipe.id,
        repos=tuple(repos),
        seconds=round(time.monotonic() - started_s, 3),
        warnings=warnings,
    )


def empty_report(recipe: Recipe) -> DownloadReport:
    """Answer for an image that fetches its own weights."""
    warning = (
        f"nothing to download: the image of {recipe.engine} fetches its weights on its first "
        "start, into its own volume, and needs NGC_API_KEY for that"
    )
    return report(recipe, [], time.monotonic(), (warning,))


def plan_warnings(made: DownloadPlan) -> tuple[str, ...]:
    """Say what is not pinned, what could not be asked, and what lies around unused."""
    unpinned = (
        f"the recipe pins no revision of {repo.repo}: main is {repo.revision} now"
        for repo in made.repos
        if repo.branch
    )
    notes = (repo.note for repo in made.repos if repo.note)
    left = made.leftover_bytes
    unused = f"{left / 1e9:.2f} GB of unfinished parts are of no use any more: hf cache prune"
    return (*unpinned, *notes, *((unused,) if left else ()))


def local(recipe_id: str, role: Role, source: WeightsSource, root: Path) -> RepoDownload:
    """Answer from the cache alone.

    Raises:
        DownloadFailed: Not there, or not whole: with what is missing.
        Unknown: Nothing is seen to be missing, but nothing proves that all is there.
    """
    found = weights_cache.find(source.repo, source.revision, root=root)
    repair = f"with a network, run: sparkrecipes download {recipe_id}"
    at = f"{source.repo} at {source.revision or 'main'}"
    if found is None:
        raise DownloadFailed(
            f"{at} is not in the cache ({root}), and no network may be asked",
            code="not_cached",
            repair=repair,
        )
    if found.complete is False:
        more = f" and {len(found.problems) - 3} more" if len(found.problems) > 3 else ""
        raise DownloadFailed(
            f"{at} is not complete in the cache: {'; '.join(found.problems[:3])}{more}",
            code="incomplete",
            repair=repair,
        )
    if found.complete is None:
        raise Unknown(
            f"{at} is in the cache, and nothing there proves that it is complete",
            code="unproved",
            repair=repair,
        )
    return RepoDownload(
        role=role,
        repo=found.repo,
        revision=found.revision,
        snapshot=str(found.snapshot),
        files=found.files,
        total_bytes=found.total_bytes,
        fetched_bytes=0,
        complete=True,
    )
