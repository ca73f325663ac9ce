"""Command, download, server: what acts on a host, and what it left there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Bytes, Frozen, Id, RepoId, Text


class Command(Frozen):
    """The exact command that starts a recipe."""

    argv: tuple[Text, ...]
    """One item an argument, never a shell string; for sparkrun and kubernetes what starts the
    file's text."""
    shell: Text
    """The same, quoted for people to paste; for every other format the file's text."""
    format: Literal["docker", "compose", "systemd", "sparkrun", "kubernetes"]
    container_name: Text
    base_url: Text
    """Where clients will find it."""
    gpu_memory_utilization: float | None
    """The fraction it sets."""
    added_env: dict[Text, Text] = {}
    """Variables that this tool sets beside the recipe's own; a label names them."""
    warnings: tuple[Text, ...]


class RepoDownload(Frozen):
    """One repository of a download."""

    role: Literal["weights", "drafter"]
    repo: RepoId
    revision: Text
    """The commit that was fetched."""
    snapshot: Text
    """Folder that holds its files."""
    files: Annotated[int, Field(ge=0)]
    total_bytes: Bytes
    fetched_bytes: Bytes
    """What this run transferred; the rest was there."""
    complete: bool


class DownloadReport(Frozen):
    """What is on disk now."""

    recipe_id: Id
    repos: tuple[RepoDownload, ...]
    seconds: float
    warnings: tuple[Text, ...] = ()


class Server(Frozen):
    """A container that carries our label."""

    name: Text
    container_id: Text
    recipe_id: Id
    image: Text
    state: Literal["created", "running", "restarting", "paused", "exited", "dead", "unknown"]
    exit_code: int | None
    base_url: Text | None
    started_at: Text | None
    restarts: Annotated[int, Field(ge=0)]
    image_digest: Text | None = None
    """The digest it was started by; null where it was started by a tag."""
    catalog: Text | None = None
    """The catalog's version that its recipe was of; null on one of an older release."""
    settings: Text | None = None
    """A hash of all that the engine was given; null on one of an older release."""


class ServerList(Frozen):
    """Containers that carry our label, running or not."""

    servers: tuple[Server, ...]


class ServerLogs(Frozen):
    """The last lines of a container, secrets removed."""

    name: Text
    lines: tuple[str, ...]


class Readiness(Frozen):
    """A server that answered a real completion."""

    base_url: Text
    model: Text
    seconds: float
    """From the call to the first completion."""
    milestones: tuple[Text, ...]


class Stopped(Frozen):
    """What stop did."""

    name: Text
    stopped: bool
    """False where there was nothing of ours to stop."""
    message: Text
