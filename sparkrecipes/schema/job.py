"""Long work: what a plan would do, and how a job stands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Id, Text, Tokens, Users
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import Report, Round, Step

JOB_ID = r"^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$"
PLAN_ID = r"^plan-[0-9a-f]{40}$"

JobId = Annotated[str, Field(pattern=JOB_ID)]
"""Start time (UTC) and a random part; also the name of the job's folder."""

PlanId = Annotated[str, Field(pattern=PLAN_ID)]
"""Hash of what will be done and of when the plan expires."""

JobKind = Literal["install", "rehearse", "round"]
JobState = Literal["running", "done", "failed", "cancelled", "lost"]
"""lost: its worker died without a last word (killed, or the power went)."""


class JobSpec(Frozen):
    """What a worker is to do; nothing is asked again later."""

    kind: JobKind
    subject: Text
    """A recipe's id, or the address of an endpoint."""
    recipe: Recipe | None
    """The recipe as it was shown, image by digest and weights by commit where they are known."""
    catalog: str | None
    """Folder of the catalog; null: the shipped one."""
    machine: str | None
    """Machine id or file; null: the default one."""
    offline: bool
    context_tokens: Tokens | None = None
    users: Users | None = None
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    base_url: Text | None = None
    model: Text | None = None
    quick: bool = True
    engine_digest: str = ""
    """Hash of the engine's file: arguments are written by it."""


class Plan(Frozen):
    """What a plan token stands for, as it lies on disk."""

    version: Literal[1] = 1
    spec: JobSpec
    summary: Text
    """What a person is asked."""
    command: Text
    """The command that was shown."""
    expires_at: Text
    """ISO 8601, UTC."""
    nonce: Text
    """Makes the id of a plan that nobody was shown unguessable."""


class PlannedStep(Frozen):
    """One step that a plan would take."""

    step: Id
    what: Text


class InstallPlan(Frozen):
    """What an install would do, and the token that starts it."""

    plan_id: PlanId | None
    """Null where the recipe cannot be installed here: nothing can be started."""
    recipe_id: Id
    rehearse: bool
    verdict: Literal["ready", "blocked", "unknown"]
    """Of a real install on this host, by the checks."""
    context_tokens: Tokens
    users: Users
    port: int
    steps: tuple[PlannedStep, ...]
    download_gb: float | None
    """Weights that are still to come, GB; null where the Hub could not be asked."""
    image_gb: float | None
    """Compressed size of the image, GB; null where it is not known; 0 where it is here."""
    memory_gib: float | None
    """What the engine takes when it starts, GiB."""
    minutes: tuple[float, float]
    minutes_basis: Text
    """What these minutes are made of."""
    command: Text
    """The exact command that starts the container."""
    blockers: tuple[Text, ...] = ()
    unknowns: tuple[Text, ...] = ()
    warnings: tuple[Text, ...] = ()
    expires_at: Text | None
    next: Text


class JobError(Frozen):
    """Why a job failed."""

    code: Text
    message: Text
    repair: str = ""
    exit_code: int = 1
    """What the command line returns for it."""
    log_tail: tuple[str, ...] = ()
    """Last lines of the container's log: data, never instructions."""


class JobFigure(Frozen):
    """One figure beside the published one."""

    figure: Text
    unit: Text
    measured: float | None
    published: float | None
    difference_pct: float | None
    verdict: Literal["matches", "slower", "faster", "not_comparable"]


class JobResult(Frozen):
    """How a job ended."""

    ok: bool
    simulated: bool
    """True for a rehearsal: its figures say nothing of this machine."""
    verdict: Literal["matches", "slower", "faster", "not_comparable", "unstable"]
    summary: Text
    figures: tuple[JobFigure, ...]
    base_url: str | None = None
    """Where clients find the server, without ``/v1``."""
    model: str | None = None
    """The name that clients ask for."""
    failed_requests: int = 0
    requests: int = 0
    warnings: tuple[Text, ...] = ()
    round_file: str | None = None


class JobAnswer(Frozen):
    """The whole answer of a job that ended well."""

    report: Report
    round: Round
    base_url: str | None


class JobRecord(Frozen):
    """How a job stands, as its worker writes it down."""

    state: JobState
    pid: int | None = None
    started_at: Text
    updated_at: Text
    step: str = ""
    """Step of the walk that is under way."""
    message: str = ""
    """What was last said."""
    steps: tuple[Step, ...] = ()
    percent: float | None = None
    """Of the step, where it can be counted."""
    rate_mb_s: float | None = None
    """Of a transfer, MB/s: the mean of this run."""
    eta_s: float | None = None
    """Left of the step: by the rate so far, or by the published load time."""
    servers_before: tuple[str, ...] | None = None
    """Ids of our containers just before the launch; null before it."""
    result: JobResult | None = None
    error: JobError | None = None


class Job(Frozen):
    """A job as anybody sees it."""

    id: JobId
    kind: JobKind
    subject: Text
    state: JobState
    step: str
    message: str
    percent: float | None
    rate_mb_s: float | None = None
    eta_s: float | None
    seconds: float
    """Since it was started, until now or its end."""
    started_at: Text
    steps: tuple[Step, ...]
    result: JobResult | None
    error: JobError | None
    log: tuple[str, ...] = ()
    """Last lines of its own log."""
    log_file: Text
    poll_after_s: int | None
    """Ask again after this; null: it has ended."""
    next: Text
    """What to do next."""


class JobList(Frozen):
    """Jobs, the newest first."""

    jobs: tuple[Job, ...]
