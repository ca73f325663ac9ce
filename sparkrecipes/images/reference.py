"""Image references: what ``docker pull`` would be given, taken apart and made whole.

Source: https://github.com/distribution/reference/blob/main/reference.go (the grammar) and
normalize.go (the defaults of Docker Hub).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from sparkrecipes.errors import Misuse

DEFAULT_REGISTRY = "docker.io"
HUB_API_HOST = "registry-1.docker.io"
"""Docker Hub answers the API under another name than its images carry."""
HUB_NAMES = frozenset({DEFAULT_REGISTRY, "index.docker.io", HUB_API_HOST})

MAX_LENGTH = 512
MAX_REPOSITORY_LENGTH = 255
NAME = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
REPOSITORY = re.compile(rf"{NAME}(?:/{NAME})*")
HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
    r"|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
BARE_IMAGE_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ImageReference:
    """One image in one registry.

    Attributes:
        registry: Host, with a port where one was given, e.g. ``docker.io``.
        repository: Path inside the registry, e.g. ``vllm/vllm-openai``.
        tag: The tag, ``latest`` where neither tag nor digest was given; null with a digest alone.
        digest: The digest, which wins over the tag where both were given.
    """

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    def __str__(self) -> str:
        """Return the whole reference, with registry and tag or digest spelt out."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.name}{tag}{digest}"

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What the registry is asked for: the digest where there is one, else the tag."""
        return self.digest or self.tag or "latest"

    @property
    def api_host(self) -> str:
        """Host (and port) that answers the distribution API."""
        return HUB_API_HOST if self.registry == DEFAULT_REGISTRY else self.registry

    @property
    def moving(self) -> bool:
        """Whether the tag is one that its publisher moves or removes: latest and nightlies."""
        return not self.digest and moving_tag(self.tag or "latest")


def moving_tag(tag: str) -> bool:
    """Return whether a tag is one that its publisher moves or removes.

    Source: https://github.com/eugr/spark-vllm-docker/issues/144 (latest) and
    https://github.com/noonghunna/club-3090/issues/167 (nightlies are purged).
    """
    return tag == "latest" or tag.startswith("nightly")


def parse_reference(ref: str) -> ImageReference:
    """Take an image reference apart, with Docker's own defaults.

    Args:
        ref: For example ``vllm/vllm-openai:v0.31.0-aarch64``, ``localhost:5000/x@sha256:...``.

    Returns:
        The reference with registry (``docker.io``), ``library/`` and tag (``latest``) filled in.

    Raises:
        Misuse: ``bad_reference``: it is not one, or it could be taken for an option.
    """
    if not ref or len(ref) > MAX_LENGTH:
        raise _bad(ref, f"it must have 1 to {MAX_LENGTH} characters")
    if "://" in ref:
        raise _bad(
            ref, "it has a scheme", f"leave the scheme out: {_shown(ref.split('://', 1)[1])}"
        )
    rest, at, digest = ref.partition("@")
    if at and not DIGEST.fullmatch(digest):
        raise _bad(ref, "its digest is not sha256: and 64 lower-case hexadecimal digits")
    rest, tag = _split_tag(rest)
    if tag is not None and not TAG.fullmatch(tag):
        raise _bad(ref, "its tag is not letters, digits, '_', '.' and '-' (at most 128)")
    registry, repository = _split_registry(rest)
    _check_name(ref, registry, repository)
    if tag is None and not at:
        tag = "latest"
    return ImageReference(
        registry=registry, repository=repository, tag=tag, digest=digest if at else None
    )


def is_loopback(host: str) -> bool:
    """Return whether a host (with or without a port or brackets) is this machine itself."""
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host
    if name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _split_tag(rest: str) -> tuple[str, str | None]:
    """Split a tag off: the last colon counts only behind the last slash (else it is a port)."""
    path, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    return f"{path}{slash}{name}", tag if colon else None


def _split_registry(name: str) -> tuple[str, str]:
    """Split the registry off: a first part with a dot, a colon, or ``localhost`` is one."""
    first, slash, rest = name.partition("/")
    if slash and (first.lower() == "localhost" or any(mark in first for mark in ".:")):
        registry, repository = first.lower(), rest
    else:
        registry, repository = DEFAULT_REGISTRY, name
    if registry in HUB_NAMES:
        registry = DEFAULT_REGISTRY
        repository = repository if "/" in repository else f"library/{repository}"
    return registry, repository


def _check_name(ref: str, registry: str, repository: str) -> None:
    """Refuse what Docker would refuse in the name, with the reason."""
    port = registry.rpartition(":")[2]
    if not HOST.fullmatch(registry) or (port.isdigit() and not 0 < int(port) < 65536):
        raise _bad(ref, "its registry is not a host name with an optional port")
    if any(letter.isupper() for letter in repository):
        raise _bad(ref, "a repository is lower case", f"try {_shown(ref.lower())}")
    if not REPOSITORY.fullmatch(repository) or len(repository) > MAX_REPOSITORY_LENGTH:
        raise _bad(ref, "its repository has a part that is not letters, digits, '.', '_' and '-'")
    if BARE_IMAGE_ID.fullmatch(repository.rpartition("/")[2]):
        raise _bad(ref, "64 hexadecimal digits are an image id, not a name")


def _bad(ref: str, why: str, repair: str = "") -> Misuse:
    return Misuse(
        f"{_shown(ref)} is not an image reference: {why}",
        repair=repair or "write it as docker pull takes it, e.g. vllm/vllm-openai:v0.31.0-aarch64",
        code="bad_reference",
    )


def _shown(ref: str) -> str:
    """Return a reference so that it can stand in a message: bounded, control signs escaped."""
    return repr(ref if len(ref) <= 100 else f"{ref[:100]}...")
