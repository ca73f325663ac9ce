"""What the Hub's client raised, in words that say what to do.

The client wraps some errors in others (a file that was not found locally because the Hub did not
answer); the cause is what counts.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sparkrecipes.errors import DownloadFailed, SparkRecipesError, Unknown
from sparkrecipes.redaction import redact

HUB = "https://huggingface.co"
LOGIN = "hf auth login (or set HF_TOKEN)"

UNANSWERED = frozenset(("hub_down", "no_network", "offline", "proxy", "rate_limited"))
"""Codes that say nothing about the weights: before anything is fetched they are Unknown."""


@dataclass(frozen=True)
class Asking:
    """What was being asked for when something went wrong.

    Attributes:
        recipe_id: The recipe.
        repo: The repository.
        revision: The commit or branch.
        started: Whether files were being fetched, which are kept.
    """

    recipe_id: str
    repo: str
    revision: str
    started: bool = False

    @property
    def again(self) -> str:
        """The command that tries again."""
        return f"sparkrecipes download {self.recipe_id}"


@dataclass(frozen=True)
class Reason:
    """Why it failed: a stable code, a sentence and the next step."""

    code: str
    message: str
    repair: str


@contextmanager
def explained(asking: Asking) -> Iterator[None]:
    """Turn what the client raises into our errors.

    Raises:
        DownloadFailed: With the reason and its repair.
        Unknown: The Hub gave no answer, and nothing had been started.
    """
    import httpx2
    from huggingface_hub.errors import EntryNotFoundError, XetDownloadError

    try:
        yield
    except SparkRecipesError:
        raise
    except (
        OSError,
        RuntimeError,
        ValueError,
        httpx2.HTTPError,
        EntryNotFoundError,
        XetDownloadError,
    ) as err:
        raise explain(err, asking) from err


def explain(err: Exception, asking: Asking) -> SparkRecipesError:
    """Name the reason of a failure."""
    cause = root(err)
    reason = (
        hub_reason(cause, asking)
        or connection_reason(cause, asking)
        or disk_reason(cause, asking)
        or other_reason(cause, asking)
    )
    kept = "; finished files are kept" if asking.started else ""
    kind = Unknown if reason.code in UNANSWERED and not asking.started else DownloadFailed
    return kind(f"{reason.message}{kept}", repair=reason.repair, code=reason.code)


def root(err: BaseException) -> BaseException:
    """Find the error inside those that only say that nothing was found locally."""
    from huggingface_hub.errors import DryRunError, LocalEntryNotFoundError

    while isinstance(err, DryRunError | LocalEntryNotFoundError) and err.__cause__ is not None:
        err = err.__cause__
    return err


def hub_reason(err: BaseException, asking: Asking) -> Reason | None:
    """Explain an answer of the Hub. A gated repository is a kind of missing one: it comes first."""
    from huggingface_hub import errors

    repo, page = asking.repo, f"{HUB}/{asking.repo}"
    if isinstance(err, errors.GatedRepoError):
        return gated_reason(err.response.status_code, repo)
    if isinstance(err, errors.DisabledRepoError):
        return Reason("repo_disabled", f"the Hub has closed {repo}", f"read why: {page}")
    if isinstance(err, errors.RevisionNotFoundError):
        return Reason(
            "revision_not_found",
            f"{repo} has no revision {asking.revision}",
            f"see its commits: {page}/commits/main, then mend the recipe",
        )
    if isinstance(err, errors.RepositoryNotFoundError):
        return Reason(
            "not_found_or_private",
            f"the Hub shows no {repo}: it does not exist or is private (the answer is the same)",
            f"check the spelling: {page}; for a private one run: {LOGIN}",
        )
    if isinstance(err, errors.RemoteEntryNotFoundError):
        return Reason(
            "file_not_found",
            f"a file that {repo} lists is not there at {asking.revision}",
            f"run again: {asking.again}",
        )
    if isinstance(err, errors.HfHubHTTPError):
        return status_reason(err, asking)
    return None


def gated_reason(status: int, repo: str) -> Reason:
    """Explain a gated repository: no token at all, or one whose owner has no access."""
    page = f"{HUB}/{repo}"
    if status == 401:
        return Reason(
            "gated_no_token",
            f"{repo} is gated, and no token was sent",
            f"accept its licence at {page}, then run: {LOGIN}",
        )
    return Reason(
        "gated_not_accepted",
        f"{repo} is gated, and the owner of the token has no access yet",
        f"accept its licence at {page} (some are granted by hand), then run again",
    )


def status_reason(err: BaseException, asking: Asking) -> Reason:
    """Explain an HTTP status that carries no error code of the Hub."""
    response = getattr(err, "response", None)
    status = response.status_code if response is not None else 0
    if status == 401:
        return Reason(
            "bad_token", "the Hub refused the token: wrong, revoked or expired", f"run: {LOGIN}"
        )
    if status == 403:
        return Reason(
            "denied",
            f"the token may not read {asking.repo}",
            f"give it read access to {asking.repo}: {HUB}/settings/tokens",
        )
    if status == 429:
        wait = wait_s(response.headers) if response is not None else None
        when = f"wait {wait} s" if wait else "wait some minutes"
        return Reason(
            "rate_limited",
            "the Hub answers that there were too many requests",
            f"{when}, then run again: {asking.again} (with a token the limit is higher: {LOGIN})",
        )
    if status >= 500:
        return Reason(
            "hub_down",
            f"the Hub answers {status}",
            f"see https://status.huggingface.co, then run again: {asking.again}",
        )
    return Reason("hub_error", f"the Hub answers {status} for {asking.repo}", asking.again)


def wait_s(headers: Mapping[str, str]) -> int | None:
    """Read how many seconds a 429 asks to wait."""
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    info = parse_ratelimit_headers(headers)
    if info is not None:
        return info.reset_in_seconds
    text = headers.get("Retry-After", "")
    return int(text) if text.isdigit() else None


def connection_reason(err: BaseException, asking: Asking) -> Reason | None:
    """Explain that the Hub was not reached, or that the connection broke."""
    import httpx2
    from huggingface_hub.errors import FileMetadataError, OfflineModeIsEnabled

    if isinstance(err, OfflineModeIsEnabled):
        return Reason("offline", "HF_HUB_OFFLINE is set", f"unset it, then: {asking.again}")
    if isinstance(err, FileMetadataError):
        return Reason(
            "not_a_hub",
            "what answered is no Hugging Face Hub",
            "check HF_ENDPOINT, the proxy and the firewall",
        )
    if isinstance(err, httpx2.ProxyError):
        return Reason("proxy", "the proxy refused the connection", "check HTTPS_PROXY and NO_PROXY")
    cut_short = isinstance(err, OSError) and "Consistency check failed" in str(err)
    if cut_short or isinstance(err, httpx2.TransportError):
        what = "the connection broke" if asking.started else "the Hub was not reached"
        return Reason(
            "no_network", f"{what} ({type(err).__name__})", f"check the network: {asking.again}"
        )
    return None


def disk_reason(err: BaseException, asking: Asking) -> Reason | None:
    """Explain that a file could not be written."""
    code = err.errno if isinstance(err, OSError) else None
    path = (err.filename if isinstance(err, OSError) else None) or "the weights cache"
    if code in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(err):
        return Reason(
            "disk_full",
            "the disk is full",
            f"free some room (hf cache ls, hf cache prune), then: {asking.again}",
        )
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Reason("permission", f"this user may not use {path}", owner_repair(str(path)))
    return None


def owner_repair(path: str) -> str:
    """Say how a folder that another user owns becomes writable; nothing is run."""
    mend = f"sudo chown -R {os.getuid()} {shlex.quote(path)}"
    return f"{mend} (often made by a root container), or set HF_HOME"


def other_reason(err: BaseException, asking: Asking) -> Reason:
    """Explain what no rule knows, in the client's own words without secrets."""
    from huggingface_hub.errors import XetDownloadError

    text = redact(str(err).strip().partition("\n")[0])
    if isinstance(err, XetDownloadError) or type(err).__module__.startswith("hf_xet"):
        return Reason(
            "xet_failed",
            f"the Xet transfer failed: {text}",
            f"run again without it: HF_HUB_DISABLE_XET=1 {asking.again}",
        )
    return Reason("download_failed", f"{type(err).__name__}: {text}", f"run again: {asking.again}")
