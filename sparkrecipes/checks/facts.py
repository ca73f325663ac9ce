"""What the checks look at, and how a check says what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.evidence import DoesNotRunEntry
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.machine import HostReport, LiveMemory, Machine
from sparkrecipes.schema.memory import MemoryEstimate
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Server
from sparkrecipes.weights_cache import CachedRepo

GIB = 2**30
GB = 10**9


@dataclass(frozen=True)
class HubProblem:
    """Why the Hub did not say what is still to be fetched.

    Attributes:
        code: A stable word, e.g. ``gated_no_token``.
        message: In a sentence.
        repair: The next step.
        known: Whether that is a no (gated, missing, no room); else nothing is known.
    """

    code: str
    message: str
    repair: str
    known: bool


@dataclass(frozen=True, kw_only=True)
class CheckFacts:
    """Everything that was gathered about a recipe and this host, before anything is judged.

    Attributes:
        recipe: What is to be started.
        engine: Its engine.
        machine: The machine that it is meant for.
        host: The machine that we are on.
        estimate: Its memory, for the context and users asked for.
        live: Who holds memory now; None where this host is not the target, or does not say.
        image: What the registry says; None where it was not asked.
        image_tag: What the registry says of the tag, where the image is pinned by digest; None:
            ``image`` is that of the tag.
        heads: Commits that ``main`` of the pinned repositories is now, by repository; one that
            nobody answered for is left out.
        weights: The weights in the local cache; None where they are not there.
        drafter: The drafter in the local cache.
        port: Port of this host that it would be published on.
        port_free: Whether that is free; None where nobody could say.
        port_holder: Who has it, in words: a container of any owner, else a process.
        servers: Our containers; None where Docker could not be asked.
        name_holder: A container that has the recipe's name and is not ours, in words.
        does_not_run: What is known not to run.
        local_image: Whether Docker has the image here; None where it could not be asked.
        env_set: Names of the environment variables that are set; never their values.
        offline: Whether no network may be asked.
        local_image_platform: Platform of the image that Docker has, e.g. ``linux/arm64``.
        local_image_cuda: CUDA that it was built with, where it says so.
        hub_token: Whether the Hub's client would send a token.
        download_bytes: What is still to be fetched as the Hub counts it; None: by the estimate.
        hub_problem: Why the Hub did not say that; None where it did, or was not asked.
        gated: Whether the Hub wants an accepted licence for the weights; None where unknown.
    """

    recipe: Recipe
    engine: Engine
    machine: Machine
    host: HostReport
    estimate: MemoryEstimate
    image: ImageReport | None
    weights: CachedRepo | None
    drafter: CachedRepo | None
    port: int
    port_free: bool | None
    servers: tuple[Server, ...] | None
    does_not_run: tuple[DoesNotRunEntry, ...]
    local_image: bool | None
    env_set: frozenset[str]
    offline: bool
    image_tag: ImageReport | None = None
    heads: Mapping[str, str] = field(default_factory=dict)
    live: LiveMemory | None = None
    port_holder: str | None = None
    name_holder: str | None = None
    local_image_platform: str | None = None
    local_image_cuda: str | None = None
    hub_token: bool = False
    download_bytes: int | None = None
    hub_problem: HubProblem | None = None
    gated: bool | None = None

    @property
    def machine_name(self) -> str:
        """The machine's title without what stands in brackets behind it."""
        return self.machine.title.partition(" (")[0]

    @property
    def image_is_here(self) -> bool:
        """Whether Docker has the image, for the machine's platform as far as that is known."""
        platform = self.local_image_platform or self.machine.platform
        return self.local_image is True and platform == self.machine.platform

    @property
    def running(self) -> tuple[Server, ...]:
        """Our containers that hold memory now."""
        states = ("running", "restarting", "paused")
        return tuple(server for server in self.servers or () if server.state in states)


def ok(check: str, message: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check=check, level="ok", message=message)


def warning(check: str, message: str, repair: str) -> Finding:
    """Return a finding that may be lived with."""
    return Finding(check=check, level="warning", message=message, repair=repair)


def blocker(check: str, message: str, repair: str) -> Finding:
    """Return a finding that must be mended before a start."""
    return Finding(check=check, level="blocker", message=message, repair=repair)


def unknown(check: str, message: str, repair: str) -> Finding:
    """Return a finding that nobody could make."""
    return Finding(check=check, level="unknown", message=message, repair=repair)


def gib(count: float) -> str:
    """Write bytes as GiB, as memory is counted."""
    return f"{count / GIB:.1f} GiB"


def gb(count: float) -> str:
    """Write bytes as GB, as disks and downloads are counted."""
    return f"{count / GB:.1f} GB"
