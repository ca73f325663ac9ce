"""Large files by plain HTTP, so that a killed process loses at most ten megabytes of each.

The library's own ``http_get`` transfers, with its headers, retries and checks of ranges, under its
own lock of the file. Only where it writes is ours: into a part that has the same name next time.
The finished part becomes the blob (where two processes wrote it, once its hash is the file's), and
the library then links it as its own.

Files that the Hub stores in Xet come this way as well: a Xet transfer keeps nothing when its
process dies (xet-core issues 358 and 715), holds gigabytes of the one memory in buffers, and can
hang (issue 898). Whoever sets ``HF_XET_HIGH_PERFORMANCE`` gets Xet all the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import sparkrecipes
from sparkrecipes.downloads.parts import Part, RemoteFile, part_path
from sparkrecipes.downloads.planning import RepoPlan
from sparkrecipes.downloads.progress import Meter, silent_bar
from sparkrecipes.errors import DownloadFailed

WORKERS = 8
"""Files at once, as many as the library itself takes: a kill loses little of each."""

ABOUT_US: dict[str, Any] = {
    "library_name": "sparkrecipes",
    "library_version": sparkrecipes.__version__,
}


def fetch_large(repo: RepoPlan, root: Path, meter: Meter) -> None:
    """Fetch a repository's large missing files, several at once, going on with their parts.

    Raises:
        DownloadFailed: A file's hash is wrong even when it was fetched anew.
        Exception: What the library raises; the parts stay.
    """
    large = {file.blob: name for name, file in repo.wanted.items() if file.resumable}
    names = [name for name in large.values() if name in repo.missing]
    with ThreadPoolExecutor(WORKERS) as pool:
        tasks = [pool.submit(fetch, Task.of(repo, name, root), meter) for name in names]
        try:
            for task in as_completed(tasks):
                task.result()
        except BaseException:
            meter.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class Task:
    """One large file: where it comes from and where it goes.

    Attributes:
        repo: The repository.
        name: The file's path inside.
        file: Its size and blob.
        url: Where the Hub serves it.
        root: The cache.
        folder: The repository's folder in it.
        lock: What whoever writes this blob holds, the library as well.
    """

    repo: str
    name: str
    file: RemoteFile
    url: str
    root: Path
    folder: Path
    lock: Path

    @classmethod
    def of(cls, repo: RepoPlan, name: str, root: Path) -> Task:
        """Describe a file of a plan."""
        from huggingface_hub import hf_hub_url

        file = repo.wanted[name]
        url = hf_hub_url(repo.repo, name, revision=repo.revision)
        lock = root / ".locks" / repo.folder.name / f"{file.blob}.lock"
        return cls(repo.repo, name, file, url, root, repo.folder, lock)

    @property
    def blob(self) -> Path:
        """Where it will be."""
        return self.folder / "blobs" / self.file.blob


def fetch(task: Task, meter: Meter) -> None:
    """Fetch one file, unless the library should: see ``is_ours``."""
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    if not is_ours(task):
        return
    task.blob.parent.mkdir(parents=True, exist_ok=True)
    task.lock.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(task.lock):
        if not task.blob.is_file():
            complete(task, meter)
    meter.finish_early()


def is_ours(task: Task) -> bool:
    """Ask for a file's headers; say whether it is fetched here, and not by the library.

    The library has what is not as it was listed, what Xet was asked for, and what its shared store
    holds already.
    """
    from huggingface_hub import constants, get_hf_file_metadata
    from huggingface_hub.file_download import is_xet_available  # type: ignore[attr-defined]
    from huggingface_hub.utils._shared_blobs import has_shared_blob

    seen = get_hf_file_metadata(task.url, **ABOUT_US, retry_on_errors=True)
    if seen.xet_file_data is not None and is_xet_available():
        if constants.HF_XET_HIGH_PERFORMANCE:
            return False
        stored, size = seen.xet_file_data.file_hash, task.file.size
        if has_shared_blob(xet_hash=stored, cache_dir=task.root, expected_size=size):
            return False
    return (seen.etag, seen.size) == (task.file.blob, task.file.size)


def complete(task: Task, meter: Meter) -> None:
    """Bring a file's part to its end and make it the blob; one with a wrong hash begins anew.

    What comes in one piece is proved by its size, as the library does (``verify`` hashes all).

    Raises:
        DownloadFailed: The hash is wrong although no byte of an earlier process was used.
    """
    path = part_path(task.folder, task.file)
    prove = path.is_file()
    for _ in range(2):
        if receive(task, path, meter, prove=prove) in (None, task.file.blob):
            path.replace(task.blob)
            return
        path.unlink()
    raise DownloadFailed(
        f"the hash of {task.name} of {task.repo} differs from the Hub's",
        code="corrupt",
        repair="check the disk (smartctl) and the proxy, then run it again",
    )


def receive(task: Task, path: Path, meter: Meter, *, prove: bool) -> str | None:
    """Transfer what a part lacks; return the hash of all, or None where it was not asked for."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    headers = {**build_hf_headers(**ABOUT_US), "Accept-Encoding": "identity"}
    with Part(path, task.file.size, prove=prove) as part:
        http_get(
            task.url,
            cast(Any, part),
            resume_size=part.length,
            headers=headers,
            expected_size=task.file.size,
            displayed_filename=task.name,
            tqdm_class=silent_bar(meter),
        )
        return part.hash.hexdigest() if part.hash else None
