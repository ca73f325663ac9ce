"""How large a repository's weights are on the Hub today, remembered for a while.

A question costs a second and a network; the answer rarely changes. So sizes are kept in the user's
cache folder, and so is for some minutes that the Hub could not be reached. ``HF_HUB_OFFLINE`` is
heeded as the Hub's own client does.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from sparkrecipes.hub_models.repository import REPO, is_weights

Entry = dict[str, Any]
Entries = dict[str, Entry]
"""By repository: when it was asked, its size or null, and where that stands."""

KEPT_S = 7 * 24 * 3600
"""How long a size is believed."""

MISSING_S = 3600
"""How long it is believed that the Hub shows no size: somebody may log in, or accept a licence."""

UNREACHED_S = 600
"""How long a Hub that was not reached is not asked again."""

TIMEOUT_S = 3.0
PATIENCE_S = 5.0
"""For connecting and answering, and for all of it."""

UNREACHED = "unreached"
DEFAULT_ENDPOINT = "https://huggingface.co"
TRUE_WORDS = ("1", "ON", "YES", "TRUE")


class FileSize(NamedTuple):
    """The files of a repository that an engine loads."""

    size_bytes: int
    source: str
    """Repository and commit."""


def file_sizes(repos: Iterable[str]) -> dict[str, FileSize]:
    """Ask the Hub for the size of the weights of some repositories; never raises.

    Returns:
        What is known, by repository: one that is missing, hidden, without safetensors or out of
        reach has no entry.
    """
    asked = sorted({repo for repo in repos if REPO.match(repo)})
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in TRUE_WORDS:
        return {}
    path, now = store(), time.time()
    kept = read(path)
    due = [repo for repo in asked if now - asked_at(kept, repo) > lifetime(kept.get(repo, {}))]
    if due and now - asked_at(kept, UNREACHED) > UNREACHED_S:
        kept = {**kept, **fetch_sizes(due, now)}
        write(path, kept)
    found = {repo: kept[repo] for repo in asked if kept.get(repo, {}).get("size_bytes")}
    return {r: FileSize(int(e["size_bytes"]), str(e["source"])) for r, e in found.items()}


def fetch_sizes(repos: list[str], now: float) -> Entries:
    """Ask the Hub's own client, all at once; one failed connection marks the Hub as unreached.

    Nobody waits longer than ``PATIENCE_S``, even where the name of the Hub is not resolved, which
    no timeout of a client bounds.
    """
    import huggingface_hub  # noqa: F401 (once, not in each thread)

    answers: dict[str, Entry | None] = {}

    def ask(repo: str) -> None:
        answers[repo] = fetch_size(repo)

    threads = [Thread(target=ask, args=(repo,), daemon=True) for repo in repos]
    deadline = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    seen = dict(answers)
    found = {repo: {"at": now, **answer} for repo, answer in seen.items() if answer}
    if any(seen.get(repo) is None for repo in repos):
        found[UNREACHED] = {"at": now}
    return found


def fetch_size(repo: str) -> Entry | None:
    """Ask for one repository; empty where it has no size to tell; null where nobody answered."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        info = HfApi().model_info(repo, files_metadata=True, timeout=TIMEOUT_S)
    except HFValidationError:
        return {"size_bytes": None}
    except HfHubHTTPError as err:
        status = err.response.status_code if err.response is not None else 500
        return {"size_bytes": None} if status < 500 else None
    except (HTTPError, OSError, ValueError):
        return None
    sizes = [f.size for f in info.siblings or [] if f.size and is_weights(f.rfilename)]
    source = f"https://huggingface.co/{repo}/tree/{info.sha}"
    return {"size_bytes": sum(sizes) or None, "source": source}


def store() -> Path:
    """Name the file that remembers sizes: one for each Hub."""
    from platformdirs import user_cache_path

    endpoint = os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
    name = "".join(c if c.isalnum() else "-" for c in endpoint.partition("//")[2])
    return user_cache_path("sparkrecipes") / f"sizes-{name}.json"


def read(path: Path) -> Entries:
    """Read what is remembered; nothing where the file is missing or broken."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {name: entry for name, entry in kept.items() if isinstance(entry, dict)}


def lifetime(entry: Entry) -> float:
    """Say how long an answer is believed, in seconds."""
    return KEPT_S if entry.get("size_bytes") else MISSING_S


def asked_at(kept: Entries, name: str) -> float:
    """Give when an entry was made, in seconds since 1970; 0 where there is none."""
    at = kept.get(name, {}).get("at")
    return float(at) if isinstance(at, int | float) else 0.0


def write(path: Path, kept: Entries) -> None:
    """Remember; a folder that cannot be written to is no reason to fail."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(kept))
        fresh.replace(path)
