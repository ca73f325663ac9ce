"""A registry: manifests and blobs of one repository, logged in as far as it asks for.

Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md and, for tokens,
https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.parse import urlencode

from sparkrecipes.errors import nearest
from sparkrecipes.images.docker_credentials import Credentials
from sparkrecipes.images.manifest import ACCEPT
from sparkrecipes.images.problem import RegistryProblem, login_command, logout_command
from sparkrecipes.images.reference import TAG, ImageReference, is_loopback
from sparkrecipes.images.transport import Answer, Deadline, Transport

RETRY_TOKEN_REFUSED = frozenset({"nvcr.io"})
"""Registries that now and then refuse a token that they grant a moment later.

Source: https://github.com/triton-inference-server/server/issues/3805
"""
RETRY_AFTER_S = 1.0
MAX_TAGS = 1000
"""How many tags are asked for, to name the nearest to one that is missing."""

CHALLENGE = re.compile(r"(?:^|,)\s*(bearer|basic)\b", re.IGNORECASE)
PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')
TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Challenge:
    """What a registry wants: the scheme (lower case) and its parameters."""

    scheme: str
    parameters: Mapping[str, str]


class Registry:
    """One repository of a registry, asked with or without credentials."""

    def __init__(
        self, reference: ImageReference, credentials: Credentials | None, deadline: Deadline
    ) -> None:
        loopback = is_loopback(reference.registry)
        self._reference = reference
        self._credentials = credentials
        self._deadline = deadline
        self._transport = Transport(deadline, allow_http=loopback)
        self._base = f"{'http' if loopback else 'https'}://{reference.api_host}/v2"
        self._authorization: str | None = None
        self._challenged = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def manifest(self, wanted: str) -> tuple[bytes, str]:
        """Fetch a manifest or index by tag or digest.

        Returns:
            Its bytes and its digest, which agrees with everything that named it.

        Raises:
            RegistryProblem: Any other answer, ``missing`` among them.
        """
        answer = self._get(f"manifests/{wanted}", ACCEPT)
        digest = _sha256(answer.body)
        named = (wanted, answer.headers.get("docker-content-digest", ""))
        if any(name.startswith("sha256:") and name != digest for name in named):
            raise RegistryProblem("broken", f"the manifest is not what its digest says ({digest})")
        return answer.body, digest

    def blob(self, digest: str) -> bytes:
        """Fetch a small blob (an image config) and verify it.

        Raises:
            RegistryProblem: Any other answer.
        """
        try:
            answer = self._get(f"blobs/{digest}", "*/*")
        except RegistryProblem as problem:
            if problem.state != "missing":
                raise
            raise RegistryProblem("broken", f"its config {digest} is gone") from problem
        if _sha256(answer.body) != digest:
            raise RegistryProblem("broken", f"the blob {digest} is not what its digest says")
        return answer.body

    def _get(self, path: str, accept: str) -> Answer:
        url = f"{self._base}/{self._reference.repository}/{path}"
        answer = self._transport.get(url, accept=accept, authorization=self._authorization)
        if answer.status == 401:
            self._log_in(answer)
            answer = self._transport.get(url, accept=accept, authorization=self._authorization)
        if answer.status != 200:
            raise self._problem(answer)
        return answer

    def _log_in(self, refused: Answer) -> None:
        """Answer a challenge: a Bearer token where one can be had, else Basic."""
        self._challenged = True
        challenges = parse_challenges(refused.headers.get("www-authenticate", ""))
        bearer = next((c for c in challenges if c.scheme == "bearer"), None)
        if bearer is not None and bearer.parameters.get("realm"):
            self._authorization = f"Bearer {self._token(bearer.parameters)}"
        elif self._credentials is not None:
            self._authorization = self._credentials.basic()
        else:
            raise self._problem(refused)

    def _token(self, parameters: Mapping[str, str]) -> str:
        """Fetch a token from the realm, which alone is shown the credentials."""
        scope = parameters.get("scope") or f"repository:{self._reference.repository}:pull"
        query = {"scope": scope}
        if parameters.get("service"):
            query["service"] = parameters["service"]
        realm = parameters["realm"]
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        basic = self._credentials.basic() if self._credentials else None
        answer = self._transport.get(url, authorization=basic)
        if answer.status == 401 and self._reference.registry in RETRY_TOKEN_REFUSED:
            time.sleep(min(RETRY_AFTER_S, self._deadline.remaining()))
            answer = self._transport.get(url, authorization=basic)
        if answer.status != 200:
            raise self._problem(answer)
        tree = _json_object(answer.body)
        token = tree.get("token") or tree.get("access_token")
        if not isinstance(token, str) or not TOKEN.fullmatch(token):
            raise RegistryProblem("broken", f"{self._reference.registry} granted no usable token")
        return token

    def _problem(self, answer: Answer) -> RegistryProblem:
        registry = self._reference.registry
        match answer.status:
            case 401 | 403:
                return self._refusal(answer.status)
            case 404:
                return self._missing(answer)
            case 429:
                return RegistryProblem("rate_limited", *rate_limit(registry, answer.headers))
            case _:
                return RegistryProblem(
                    "unknown",
                    f"{registry} answered HTTP {answer.status}",
                    "ask again later" if answer.status >= 500 else "",
                )

    def _refusal(self, status: int) -> RegistryProblem:
        """Word a 401 or 403 by who asked: nobody, a login, or a login that got a token."""
        registry = self._reference.registry
        login = login_command(registry)
        if self._credentials is None or not self._challenged:
            return RegistryProblem(
                "auth_required",
                f"{registry} does not show {self._reference.repository} to everybody: it is "
                "private or misspelt (both look the same); this says nothing of its platforms",
                f"check the spelling; if it is private: {login}",
            )
        token_granted = (self._authorization or "").startswith("Bearer ")
        if token_granted or (self._authorization and status == 403):
            return RegistryProblem(
                "denied",
                f"the login at {registry} is good, but may not read {self._reference.repository}, "
                "or that does not exist",
                f"check the spelling, or log in with an account that may read it: {login}",
            )
        return RegistryProblem(
            "bad_credentials",
            f"{registry} refuses the login that Docker has for it",
            f"{logout_command(registry)}  (or log in anew: {login})",
        )

    def _missing(self, answer: Answer) -> RegistryProblem:
        """Tell a missing repository from a missing tag: the error alone often does not."""
        reference = self._reference
        if _error_code(answer) is None and "docker-distribution-api-version" not in answer.headers:
            return RegistryProblem(
                "unknown", f"{reference.registry} does not answer like a registry (HTTP 404)"
            )
        tags = self._tags() if _error_code(answer) != "NAME_UNKNOWN" else ()
        if tags == ():
            return RegistryProblem(
                "missing",
                f"{reference.registry} has no repository {reference.repository}",
                "check the spelling of the repository",
            )
        return RegistryProblem("missing", *missing_tag(reference, tags))

    def _tags(self) -> tuple[str, ...] | None:
        """List tags: none where there is no such repository; None where that is not answered."""
        url = f"{self._base}/{self._reference.repository}/tags/list?n={MAX_TAGS}"
        try:
            answer = self._transport.get(url, authorization=self._authorization)
        except RegistryProblem:
            return None
        if answer.status == 404 and _error_code(answer) == "NAME_UNKNOWN":
            return ()
        tags = _json_object(answer.body).get("tags") if answer.status == 200 else None
        if not isinstance(tags, list) or not tags:
            return None
        return tuple(tag for tag in tags if isinstance(tag, str) and TAG.fullmatch(tag)) or None


def parse_challenges(header: str) -> tuple[Challenge, ...]:
    """Read a WWW-Authenticate header; values may lack their quotes (nvcr.io)."""
    starts = list(CHALLENGE.finditer(header))
    ends = [start.start() for start in starts[1:]] + [len(header)] if starts else []
    return tuple(
        Challenge(
            start[1].lower(),
            {
                name.lower(): quoted or bare
                for name, quoted, bare in PARAMETER.findall(header[start.end() : end])
            },
        )
        for start, end in zip(starts, ends, strict=True)
    )


def rate_limit(registry: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """Word a 429: the reason, and when to ask again."""
    seconds = retry_after_s(headers.get("retry-after", ""))
    reason = f"{registry} limits how often this address may ask (HTTP 429)"
    when = f"ask again in {seconds} s" if seconds is not None else "ask again later"
    return reason, f"{when}; a login has a higher limit: {login_command(registry)}"


def retry_after_s(value: str) -> int | None:
    """Return the seconds of a Retry-After header: a number, or an HTTP date.

    Source: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    if value.isascii() and value.isdigit():
        return int(value[:9])
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0, round((date - datetime.now(UTC)).total_seconds()))


def missing_tag(reference: ImageReference, tags: tuple[str, ...] | None) -> tuple[str, str]:
    """Word a manifest that is not there: the reason, and what to take instead.

    Source: https://github.com/vllm-project/recipes/pull/241 (nightlies are purged)
    """
    if reference.digest:
        return f"{reference.name} has no manifest {reference.digest}", "take a tag that exists"
    reason = f"{reference.name} has no tag {reference.tag}"
    if (reference.tag or "").startswith("nightly"):
        reason += ": nightly builds are removed after a while (vLLM keeps the last 14)"
        return reason, "take a release tag, and pin it by digest"
    if tags is None:
        return reason, "check the spelling of repository and tag"
    near = nearest(reference.tag or "", tags)
    return reason, f"did you mean {' or '.join(near)}?" if near else "take a tag that exists"


def _error_code(answer: Answer) -> str | None:
    """Return the code of the first error in a registry's answer."""
    errors = _json_object(answer.body).get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    code = first.get("code") if isinstance(first, dict) else None
    return code if isinstance(code, str) else None


def _sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
