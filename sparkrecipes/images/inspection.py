"""Has an image a build for a platform, and which one is that: the whole question, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Literal

from sparkrecipes.images.docker_credentials import find_credentials
from sparkrecipes.images.manifest import (
    Entry,
    ImageConfig,
    Index,
    Malformed,
    Manifest,
    parse_config,
    parse_manifest,
)
from sparkrecipes.images.problem import RegistryProblem, logout_command
from sparkrecipes.images.reference import ImageReference, parse_reference
from sparkrecipes.images.registry import Registry
from sparkrecipes.images.transport import Deadline, no_answer
from sparkrecipes.schema.image import ImageReport

MAX_UNNAMED_ENTRIES = 4
"""How many entries without a platform are opened to learn it."""
HELPER_TIMEOUT_S = 5.0
GB = 10**9


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a registry told of an image; the fields are those of ``ImageReport``."""

    state: Literal["found", "broken", "bad_credentials"] = "found"
    ok: bool | None
    platforms: tuple[str, ...]
    reason: str
    repair: str = ""
    digest: str | None = None
    index_digest: str | None = None
    compressed_bytes: int | None = None
    layers: Mapping[str, int] = field(default_factory=dict)
    config: ImageConfig | None = None


def inspect(ref: str, *, platform: str = "linux/arm64", timeout_s: float = 20.0) -> ImageReport:
    """Ask a registry whether an image has a build for a platform, without pulling it.

    Credentials are those that ``docker login`` left; where they are refused, the image is asked
    for anonymously too. It never raises for what a registry can answer: see ``state``.

    Args:
        ref: The image, as ``docker pull`` takes it.
        platform: ``os/architecture``.
        timeout_s: Bound of everything together, in seconds.

    Returns:
        The platforms, the digest to pull, its transferred size, or why that is not known.

    Raises:
        Misuse: ``bad_reference``.
    """
    reference = parse_reference(ref)

    def ask() -> ImageReport:
        try:
            return _report(reference, platform, _ask(reference, platform, Deadline(timeout_s)))
        except RegistryProblem as problem:
            return _problem_report(reference, platform, problem)

    answer = _within(timeout_s + 0.5, ask)
    return answer or _problem_report(reference, platform, no_answer(timeout_s))


def _within(seconds: float, ask: Callable[[], ImageReport]) -> ImageReport | None:
    """Run in a thread that may be left behind: resolving a name has no time limit of its own."""
    answers: SimpleQueue[ImageReport | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(ask())
        except BaseException as error:
            answers.put(error)

    Thread(target=run, name="image-inspection", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        return None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _ask(reference: ImageReference, platform: str, deadline: Deadline) -> Seen:
    """Ask as Docker would; where its login is refused, anonymously too."""
    helper_timeout_s = min(HELPER_TIMEOUT_S, deadline.remaining())
    credentials = find_credentials(reference.registry, timeout_s=helper_timeout_s)
    try:
        with Registry(reference, credentials, deadline) as registry:
            return _look(registry, reference, platform)
    except RegistryProblem as problem:
        if credentials is None or problem.state not in ("bad_credentials", "denied"):
            raise
        refused = problem
    try:
        with Registry(reference, None, deadline) as registry:
            seen = _look(registry, reference, platform)
    except RegistryProblem as anonymous:
        raise (anonymous if anonymous.state == "missing" else refused) from anonymous
    return replace(
        seen,
        state="bad_credentials",
        reason=f"{seen.reason} Anybody may read it, but {refused.reason}: docker pull would fail.",
        repair=logout_command(reference.registry),
    )


def _look(registry: Registry, reference: ImageReference, platform: str) -> Seen:
    try:
        body, digest = registry.manifest(reference.wanted)
        manifest = parse_manifest(body)
        if isinstance(manifest, Manifest):
            return _single(registry, manifest, digest, platform)
        return _from_index(registry, manifest, digest, platform)
    except Malformed as error:
        raise RegistryProblem(
            "broken", f"{reference} is broken: {error}", "take another tag"
        ) from error


def _single(registry: Registry, manifest: Manifest, digest: str, platform: str) -> Seen:
    """Judge an image of one platform, which only its config names."""
    config = parse_config(registry.blob(manifest.config_digest))
    if config.platform is None:
        raise Malformed("not a container image: its config names no architecture")
    if config.platform != platform:
        reason = (
            f"it is built for {config.platform} only. Docker would pull it all the same, and only "
            "the start would fail (exec format error)."
        )
        return Seen(
            ok=False, platforms=(config.platform,), reason=reason, repair=_other_build(platform)
        )
    return Seen(
        ok=True,
        platforms=(platform,),
        digest=digest,
        compressed_bytes=manifest.compressed_bytes,
        layers=manifest.layers,
        config=config,
        reason=_found_reason(platform, manifest.compressed_bytes, config),
    )


def _from_index(registry: Registry, index: Index, index_digest: str, platform: str) -> Seen:
    """Choose the platform's image from an index, and make sure that it is there and is that."""
    entries = tuple(_with_platforms(registry, index.entries))
    platforms = tuple(dict.fromkeys(entry.platform for entry in entries if entry.platform))
    chosen = next((entry for entry in entries if entry.platform == platform), None)
    seen = Seen(ok=None, platforms=platforms, index_digest=index_digest, reason="-")
    if chosen is None and any(entry.platform is None for entry in entries):
        reason = "its index has entries that name no platform, so that nobody can say."
        return replace(seen, reason=reason, repair=f"docker pull --platform {platform} and look")
    if chosen is None:
        built = ", ".join(platforms) or "no platform at all"
        reason = f"it is built for {built}, not for {platform}."
        return replace(seen, ok=False, reason=reason, repair=_other_build(platform))
    return _confirm(registry, seen, chosen.digest, platform)


def _confirm(registry: Registry, seen: Seen, digest: str, platform: str) -> Seen:
    """Open what an index promises: it may be gone, or be built for something else.

    Source: https://github.com/xLongLink/longlink/pull/945 (gone) and
    https://github.com/kubernetes-sigs/descheduler/issues/1886 (built for something else).
    """
    try:
        body, _ = registry.manifest(digest)
    except RegistryProblem as problem:
        if problem.state != "missing":
            raise
        reason = f"its index lists {platform}, but the registry no longer has that image."
        repair = "take another tag: this one cannot be pulled"
        return replace(seen, state="broken", ok=False, reason=reason, repair=repair)
    manifest = parse_manifest(body)
    if isinstance(manifest, Index):
        raise Malformed("an index inside an index, which Docker does not pull")
    config = parse_config(registry.blob(manifest.config_digest))
    if config.platform != platform:
        return replace(
            seen,
            digest=digest,
            reason=f"its index says {platform}, its config {config.platform or 'nothing'}: one of "
            "them is wrong, and either has been the wrong one before.",
            repair="settle it on the machine: docker run --rm --entrypoint uname IMAGE -m  "
            "(exec format error: it is built for something else)",
        )
    return replace(
        seen,
        ok=True,
        digest=digest,
        compressed_bytes=manifest.compressed_bytes,
        layers=manifest.layers,
        config=config,
        reason=_found_reason(platform, manifest.compressed_bytes, config),
    )


def _with_platforms(registry: Registry, entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """Fill in platforms that an index leaves out, from the images themselves."""
    unnamed = 0
    for entry in entries:
        if entry.platform is not None or entry.is_index or unnamed == MAX_UNNAMED_ENTRIES:
            yield entry
            continue
        unnamed += 1
        body, _ = registry.manifest(entry.digest)
        manifest = parse_manifest(body)
        if isinstance(manifest, Index):
            yield entry
            continue
        config = parse_config(registry.blob(manifest.config_digest))
        yield replace(entry, platform=config.platform)


def _found_reason(platform: str, compressed_bytes: int, config: ImageConfig) -> str:
    """Say what was found, and what an architecture does not prove: GPU kernels.

    Source: https://github.com/vllm-project/vllm/pull/38484
    """
    found = f"{platform} is there, {_size(compressed_bytes)} to transfer."
    if platform != "linux/arm64":
        return found
    listed = _cuda_arch_list(config)
    if listed is None:
        return f"{found} That says nothing of its GPU kernels: only a measured run proves sm_121."
    named = any(arch.startswith("12.1") for arch in re.split(r"[ ;,]+", listed))
    kernels = "names 12.1 (GB10)" if named else "does not name 12.1 (sm_121 of GB10)"
    return (
        f"{found} That says nothing of its GPU kernels: TORCH_CUDA_ARCH_LIST={listed!r} {kernels}; "
        "only a measured run proves sm_121."
    )


def _size(count: int) -> str:
    return f"{count / GB:.2f} GB" if count >= GB // 10 else f"{count / 10**6:.2f} MB"


def cuda_version(env: Mapping[str, str]) -> str | None:
    """Return the CUDA that an image was built with, as NVIDIA's base images state it.

    Source: https://gitlab.com/nvidia/container-images/cuda (ENV CUDA_VERSION of every image)
    """
    stated = env.get("CUDA_VERSION", "").strip()
    return stated if re.fullmatch(r"\d{1,3}(\.\d{1,4}){1,3}", stated) else None


def _cuda_arch_list(config: ImageConfig) -> str | None:
    """Return what the image's kernels were built for, if it says so in a readable way."""
    listed = config.env.get("TORCH_CUDA_ARCH_LIST", "").strip()
    return listed if re.fullmatch(r"[A-Za-z0-9.+;, ]{1,200}", listed) else None


def _other_build(platform: str) -> str:
    return f"choose a tag that has {platform}, or build the image for it"


def _report(reference: ImageReference, platform: str, seen: Seen) -> ImageReport:
    return ImageReport(
        ref=str(reference),
        state=seen.state,
        platform=platform,
        platform_ok=seen.ok,
        arm64=seen.ok if platform == "linux/arm64" else "linux/arm64" in seen.platforms,
        platforms=seen.platforms,
        digest=seen.digest,
        index_digest=seen.index_digest,
        compressed_bytes=seen.compressed_bytes,
        layers=dict(seen.layers),
        reason=seen.reason,
        repair=seen.repair,
        entrypoint=seen.config.entrypoint if seen.config else None,
        cuda_version=cuda_version(seen.config.env) if seen.config else None,
        cuda_arch_list=_cuda_arch_list(seen.config) if seen.config else None,
    )


def _problem_report(
    reference: ImageReference, platform: str, problem: RegistryProblem
) -> ImageReport:
    return ImageReport(
        ref=str(reference),
        state=problem.state,
        platform=platform,
        platform_ok=None,
        arm64=None,
        platforms=(),
        digest=None,
        compressed_bytes=None,
        reason=f"{problem.reason}.",
        repair=problem.repair,
    )
