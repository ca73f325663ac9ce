"""The transfer itself, with the real client, and the proof that it is whole."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkrecipes.downloads.failures import Asking, explained
from sparkrecipes.downloads.planning import DownloadPlan, RepoPlan, compare
from sparkrecipes.downloads.progress import (
    STALL_S,
    DownloadProgress,
    Meter,
    report,
    silent_bar,
    watch,
)
from sparkrecipes.downloads.resuming import ABOUT_US, fetch_large
from sparkrecipes.errors import DownloadFailed
from sparkrecipes.schema.serving import RepoDownload

WORKERS = 4
"""Files at once where the library transfers: small ones, and those in Xet, which is parallel inside
a file. More would lose more where a process dies: the library drops unfinished files."""


@dataclass(frozen=True)
class Fetch:
    """How a plan's repositories are fetched.

    Attributes:
        plan: What is fetched.
        meter: Counts over all of them.
        progress: Called with how far it is.
        verify: Whether every file's hash is compared, too.
        stall_s: Seconds without a byte after which a transfer hangs.
    """

    plan: DownloadPlan
    meter: Meter
    progress: Callable[[DownloadProgress], None] | None
    verify: bool
    stall_s: float = STALL_S

    def repo(self, repo: RepoPlan, done_files: int) -> RepoDownload:
        """Fetch what a repository needs, and prove it whole.

        Raises:
            DownloadFailed: With the reason; finished files are kept.
            KeyboardInterrupt: Passed through, with a note that finished files are kept.
        """
        asking = Asking(self.plan.recipe_id, repo.repo, repo.revision, started=True)
        before = self.meter.fetched_bytes
        self.meter.start(repo.repo, done_files)
        if repo.wanted:
            self.run(asking, lambda: transfer(repo, self.plan.root, repo.damaged, self.meter))
            prove_sizes(asking, repo)
        if self.verify:
            self.verify_hashes(asking, repo)
        if repo.branch:
            with explained(asking):
                record_main(repo.folder, repo.revision)
        fetched = self.meter.fetched_bytes - before
        self.meter.settle(repo.fetch_bytes, fetched)
        report(self.meter, self.progress, None)
        return RepoDownload(
            role=repo.role,
            repo=repo.repo,
            revision=repo.revision,
            snapshot=str(repo.snapshot),
            files=repo.files,
            total_bytes=repo.total_bytes,
            fetched_bytes=max(fetched, 0),
            complete=True,
        )

    def run(self, asking: Asking, task: Callable[[], None]) -> None:
        """Run a transfer under watch, its errors explained.

        Raises:
            DownloadFailed: With the reason.
            KeyboardInterrupt: Passed through, with a note.
        """
        try:
            with explained(asking):
                watch(task, self.meter, self.progress, stall_s=self.stall_s, again=asking.again)
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"finished files of {asking.repo} and parts of large ones are kept; go on with: "
                f"{asking.again}"
            )
            raise

    def verify_hashes(self, asking: Asking, repo: RepoPlan) -> None:
        """Compare every file's hash with the Hub's; fetch once more what differs.

        Raises:
            DownloadFailed: A hash differs even then.
        """
        with explained(asking):
            differing = mismatches(repo, self.plan.root)
        if not differing:
            return
        self.run(asking, lambda: transfer(repo, self.plan.root, differing, self.meter))
        with explained(asking):
            if left := mismatches(repo, self.plan.root):
                raise DownloadFailed(
                    f"the hash of {left[0]} of {repo.repo} differs from the Hub's after a second "
                    "download",
                    code="corrupt",
                    repair="check the disk (smartctl) and the proxy, then run it again",
                )


def transfer(repo: RepoPlan, root: Path, damaged: tuple[str, ...], meter: Meter) -> None:
    """Fetch a repository's missing files, and its damaged ones over again."""
    from huggingface_hub import hf_hub_download, snapshot_download

    common: dict[str, Any] = {
        "revision": repo.revision,
        "cache_dir": root,
        **ABOUT_US,
        "tqdm_class": silent_bar(meter),
    }
    for name in damaged:
        hf_hub_download(repo.repo, name, force_download=True, **common)
    fetch_large(repo, root, meter)
    patterns = [glob.escape(name) for name in repo.wanted]
    if patterns:
        snapshot_download(repo.repo, allow_patterns=patterns, max_workers=WORKERS, **common)


def prove_sizes(asking: Asking, repo: RepoPlan) -> None:
    """Compare the size of every wanted file on disk with the Hub's.

    Raises:
        DownloadFailed: A file is missing or short although the library reported success.
    """
    missing, damaged = compare(repo.folder, repo.revision, repo.wanted)
    if missing or damaged:
        raise DownloadFailed(
            f"{repo.repo} is not complete: {', '.join((*missing, *damaged)[:3])} of "
            f"{len(missing) + len(damaged)} files",
            code="incomplete",
            repair=f"run again: {asking.again}",
        )


def mismatches(repo: RepoPlan, root: Path) -> tuple[str, ...]:
    """Name the files whose hash differs from the Hub's, by the library's own verification."""
    from huggingface_hub import HfApi

    seen = HfApi().verify_repo_checksums(repo.repo, revision=repo.revision, cache_dir=root)
    return tuple(entry["path"] for entry in seen.mismatches)


def record_main(folder: Path, commit: str) -> None:
    """Write which commit ``main`` was, as the library does, but only once that is whole.

    The library writes it first: an interrupted download then leaves ``main`` at a commit that is
    not there, and an engine that worked offline no longer does.
    """
    ref = folder / "refs" / "main"
    if ref.is_file() and ref.read_text() == commit:
        return
    ref.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=ref.parent, prefix="main.", suffix=".tmp")
    with os.fdopen(descriptor, "w") as file:
        file.write(commit)
    Path(draft).chmod(0o644)
    Path(draft).replace(ref)
