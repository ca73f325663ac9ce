"""From an operation's whole answer to the short one that an agent is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparkrecipes.mcp_server import answers
from sparkrecipes.mcp_server.wording import as_tools, clip, clipped, ours

if TYPE_CHECKING:
    from sparkrecipes.schema.findings import CheckReport, DiagnosisReport
    from sparkrecipes.schema.job import InstallPlan, Job, JobList, JobResult
    from sparkrecipes.schema.listing import RecipeDetail, RecipeSummary
    from sparkrecipes.schema.machine import HostReport
    from sparkrecipes.schema.memory import MemoryEstimate
    from sparkrecipes.schema.recipe import Recipe
    from sparkrecipes.schema.recommendation import Reasoned, Recommendation
    from sparkrecipes.schema.serving import Command, ServerList, Stopped

GIB = 2**30
MOST_ENV = 40
LONGEST_COMMAND = 2400
"""Characters of a plan's command: the longest of the catalog has half of them."""


def gib(value: int) -> float:
    """Return bytes as GiB, to a tenth."""
    return round(value / GIB, 1)


def figures(row: RecipeSummary, need_gib: float | None) -> answers.Figures:
    """Show one row of the list."""
    seen = row.published
    return answers.Figures(
        id=row.id,
        one_user_tok_s=seen.single_user_tok_s if seen else None,
        four_users_tok_s=seen.four_users_total_tok_s if seen else None,
        ttft_ms=seen.ttft_ms if seen else None,
        memory_gb=seen.memory_gb if seen else None,
        need_gib=need_gib,
        can=",".join(row.capabilities),
        status=None if row.status == "measured" else row.status,
        doubtful=list(row.doubtful) or None,
    )


def why(reasoned: Reasoned, most: int) -> answers.Why:
    """Show a recipe and its reasons."""
    return answers.Why(id=reasoned.id, why=clipped(reasoned.why, most, 200) or [])


def whys(reasoned: Sequence[Reasoned], most: int) -> list[answers.Why] | None:
    """Show the first few with one reason each; how many more there are is said."""
    shown = [answers.Why(id=one.id, why=clipped(one.why[:1], 1, 120) or []) for one in reasoned]
    if len(shown) > most:
        shown = [*shown[:most], answers.Why(id="...", why=[f"and {len(shown) - most} more"])]
    return shown or None


def told(advice: Recommendation) -> tuple[str, ...]:
    """List what a recommendation says beside its pick, what decides most first."""
    pair = advice.side_by_side
    parts = pair.parts if pair else ()
    return (
        *(
            f"{part.use_case}: {part.id} on port {part.port} with "
            f"gpu_memory_utilization {part.gpu_memory_utilization:g}"
            for part in parts
        ),
        *(one.says for one in advice.relax),
        *([advice.outgrown] if advice.outgrown else []),
        *advice.warnings,
    )


def notes(lines: Sequence[str]) -> answers.Quoted | None:
    """Show what is to be known of a pick; a recipe's own notes are among it."""
    shown = clipped(lines, 3)
    return answers.Quoted(lines=shown) if shown else None


def recipe(found: RecipeDetail, command: Command | None) -> answers.RecipeAnswer:
    """Show one recipe; the command only where it was asked for, with all that goes with it."""
    made, seen = found.recipe, found.summary
    published = seen.published.model_dump() if seen.published else {}
    notes = clipped([*made.caveats, *(c.text for c in found.caveats), *made.mended], 5)
    full = command is not None
    return answers.RecipeAnswer(
        id=made.id,
        model=made.model,
        quant=made.quant,
        parameters_b=seen.params_total_b,
        active_b=seen.params_active_b,
        can=",".join(made.capabilities),
        engine=f"{made.engine} {made.engine_version or ''}".strip(),
        image=made.image.reference,
        context_tokens=made.serving.context_tokens,
        users=made.serving.users,
        kv_cache_dtype=made.serving.kv_cache_dtype,
        gpu_memory_utilization=made.serving.gpu_memory_utilization,
        speculative=speculation(made),
        served_model_name=made.served_model_name,
        status=seen.status,
        published={k: v for k, v in published.items() if v is not None} or None,
        doubtful=list(seen.doubtful) or None,
        notes=notes,
        flags=clipped(made.flags, 40) if full else None,
        env={k: clip(v) for k, v in list(made.env.items())[:MOST_ENV]} or None if full else None,
        weights=repos(made) if full else None,
        command=shown_command(command.shell, 4 * LONGEST_COMMAND) if command else None,
        sources=clipped(found.sources, 8) if full else None,
        next=f'call check_recipe(recipe_id="{made.id}"), then plan_install(recipe_id="{made.id}")',
    )


def speculation(made: Recipe) -> str | None:
    """Name the way of speculation and its depth."""
    found = made.speculative
    return f"{found.method}, {found.num_speculative_tokens} tokens" if found else None


def repos(made: Recipe) -> list[str] | None:
    """Name the repositories with their commits."""
    found = [s for s in (made.weights, made.drafter) if s]
    return [f"{s.repo}@{s.revision or 'main'}" for s in found] or None


def estimate(found: MemoryEstimate) -> answers.Estimate:
    """Show an estimate."""
    total = found.total_bounds
    return answers.Estimate(
        verdict=found.verdict,
        verdict_now=found.verdict_now,
        subject=found.subject,
        context_tokens=found.context_tokens,
        users=found.users,
        kv_cache_dtype=found.kv_cache_dtype,
        need_gib=(gib(total[0]), gib(total[1])) if total else None,
        usable_gib=gib(found.usable_bytes),
        available_gib=None if found.available_bytes is None else gib(found.available_bytes),
        components_gib={
            name.removesuffix("_bytes"): (gib(bounds[0]), gib(bounds[1]))
            for name, bounds in found.bounds.items()
            if bounds and bounds[1]
        },
        kv_bytes_per_token=found.kv_bytes_per_token,
        max_users_at_context=found.max_users_at_context,
        max_context_at_users=found.max_context_at_users,
        engine_takes_gib=None if found.reservation_bytes is None else gib(found.reservation_bytes),
        warnings=clipped(found.warnings, 4),
        assumptions=clipped(found.assumptions, 4, 200),
        next=fit_next(found),
    )


def fit_next(found: MemoryEstimate) -> str:
    """Say what to do with an estimate."""
    if found.verdict == "does_not_fit":
        return (
            f"it does not fit: ask for at most {found.max_users_at_context or 0} users, or for "
            f"{found.max_context_at_users or 0} tokens, or another recipe: search_recipes()"
        )
    if found.verdict == "unknown":
        return "nobody can say whether it fits: tell the person so; do not treat it as a yes"
    return "for a recipe: plan_install(recipe_id=...) with the same context_tokens and users"


def checked(report: CheckReport) -> answers.Checked:
    """Show what checks found: problems in full, the rest by name."""
    problems = [
        answers.Problem(
            check=finding.check,
            level=finding.level,
            message=clip(finding.message),
            repair=ours(finding.repair) or None,
        )
        for level in ("blocker", "unknown", "warning")
        for finding in report.findings
        if finding.level == level
    ]
    recipe_id = report.recipe_id or ""
    steps = {
        "ready": f'call plan_install(recipe_id="{recipe_id}")',
        "blocked": "mend each blocker by its repair, or choose another recipe; a rehearsal needs "
        f'none of it: plan_install(recipe_id="{recipe_id}", rehearse=true)',
        "unknown": "find out what is unknown by its repair; unknown is not ready",
    }
    return answers.Checked(
        verdict=report.verdict,
        subject=recipe_id,
        problems=problems,
        ok=sorted({f.check for f in report.findings if f.level == "ok"}),
        next=steps[report.verdict],
    )


def machine(host: HostReport) -> answers.Checked:
    """Show what this machine is, and whether recipes can run on it."""
    docker = host.docker
    gpus = ", ".join(gpu.name for gpu in host.gpus) or "none seen"
    facts = {
        "is_spark": "yes" if host.is_spark else "no",
        "platform": host.platform,
        "memory_gib": "unknown" if host.mem_total_bytes is None else f"{gib(host.mem_total_bytes)}",
        "available_gib": "unknown"
        if host.mem_available_bytes is None
        else f"{gib(host.mem_available_bytes)}",
        "gpu": gpus,
        "docker": docker.state,
        "judged_for": host.machine,
        **{
            f"free_gb_{disk.what}": f"{disk.free_bytes / 1e9:.1f}"
            for disk in host.disks
            if disk.free_bytes is not None
        },
    }
    ready = host.is_spark and docker.state == "ok"
    verdict = "ready" if ready else "unknown" if docker.state == "unknown" else "blocked"
    problems = [
        answers.Problem(check="machine", level="warning", message=ours(text))
        for text in host.warnings
    ]
    if docker.state != "ok":
        level = "unknown" if docker.state == "unknown" else "blocker"
        text = clip(f"Docker: {docker.state} {docker.message}")
        problems.append(answers.Problem(check="docker", level=level, message=text))
    return answers.Checked(
        verdict=verdict,
        subject="this machine",
        problems=problems,
        ok=["docker"] if docker.state == "ok" else [],
        machine=facts,
        next="call search_recipes(use_case=...); where this is no Spark, "
        "plan_install(recipe_id=..., rehearse=true) walks the whole way with a simulated server",
    )


def planned(plan: InstallPlan) -> answers.Planned:
    """Show what an install would do."""
    return answers.Planned(
        plan_id=plan.plan_id,
        expires_at=plan.expires_at,
        recipe_id=plan.recipe_id,
        rehearse=plan.rehearse,
        verdict=plan.verdict,
        context_tokens=plan.context_tokens,
        users=plan.users,
        port=plan.port,
        steps=[clip(f"{step.step}: {step.what}", 160) for step in plan.steps],
        download_gb=plan.download_gb,
        image_gb=plan.image_gb,
        memory_gib=plan.memory_gib,
        minutes=plan.minutes,
        minutes_basis=plan.minutes_basis,
        blockers=clipped(map(as_tools, plan.blockers), 4, 160),
        unknowns=clipped(map(as_tools, plan.unknowns), 3, 160),
        warnings=clipped(map(as_tools, plan.warnings), 5, 160),
        command=shown_command(plan.command, LONGEST_COMMAND),
        next=ours(plan.next, 300),
    )


def shown_command(shell: str, longest: int) -> str:
    """Return a command whole; a part of it would be another command."""
    if len(shell) <= longest:
        return shell
    return f"too long to show here ({len(shell):,} characters): have the person look at it"


def job(found: Job) -> answers.JobAnswer:
    """Show how a job stands."""
    failed = found.error
    log = clipped(found.log, 50, 160)
    running = found.state == "running"
    return answers.JobAnswer(
        job_id=found.id,
        kind=found.kind,
        subject=found.subject,
        state=found.state,
        step=found.step or None if running else None,
        message=clip(found.message) or None,
        percent=found.percent,
        eta_s=found.eta_s,
        seconds=found.seconds,
        done_steps=[f"{step.step} {step.seconds:g} s" for step in found.steps] or None,
        poll_after_s=found.poll_after_s,
        result=result(found.id, found.result) if found.result else None,
        error=answers.Failure(
            code=failed.code,
            message=clip(failed.message, 600),
            repair=ours(failed.repair, 400) or None,
            log=quoted(failed.log_tail, 8),
        )
        if failed
        else None,
        log=answers.Quoted(lines=log) if log else None,
        next=ours(found.next, 400),
    )


def started(found: Job) -> answers.Started:
    """Show a job that was started or ended just now."""
    return answers.Started(
        job_id=found.id,
        kind=found.kind,
        subject=found.subject,
        state=found.state,
        message=clip(found.message) or None,
        poll_after_s=found.poll_after_s,
        next=ours(found.next, 400),
    )


def quoted(lines: Sequence[str], most: int) -> answers.Quoted | None:
    """Show the last lines of a log, marked as data."""
    shown = [clip(line, 200) for line in lines if line.strip()][-most:]
    return answers.Quoted(lines=shown) if shown else None


def result(job_id: str, found: JobResult) -> answers.Result:
    """Show how a job ended."""
    return answers.Result(
        ok=found.ok,
        simulated=found.simulated,
        verdict=found.verdict,
        summary=clip(found.summary, 400),
        figures=[answers.Figure(**figure.model_dump()) for figure in found.figures],
        requests=found.requests,
        failed_requests=found.failed_requests,
        base_url=found.base_url,
        model=found.model,
        warnings=clipped(found.warnings, 5),
        report=f"report://{job_id}",
    )


def job_list(found: JobList) -> answers.Jobs:
    """Show jobs in a line each."""
    rows = [
        answers.JobRow(
            job_id=job.id,
            kind=job.kind,
            subject=clip(job.subject, 120),
            state=job.state,
            step=job.step or None if job.state == "running" else None,
            started_at=job.started_at[:19],
            verdict=job.result.verdict if job.result else None,
        )
        for job in found.jobs
    ]
    known = f'call get_job(job_id="{rows[0].job_id}", wait_s=45)' if rows else ""
    return answers.Jobs(jobs=rows, next=known or "no job yet: call plan_install(recipe_id=...)")


def servers(found: ServerList) -> answers.Servers:
    """Show our containers."""
    rows = [
        answers.ServerRow(
            name=server.name,
            recipe_id=server.recipe_id,
            state=server.state,
            base_url=server.base_url,
            exit_code=server.exit_code,
            restarts=server.restarts,
            started_at=server.started_at[:19] if server.started_at else None,
        )
        for server in found.servers
    ]
    if not rows:
        return answers.Servers(servers=[], next="none of ours: call search_recipes(use_case=...)")
    name = rows[0].recipe_id
    steps = f'start_round(recipe_id="{name}"), stop_server(name="{name}")'
    if rows[0].state != "running":
        steps = f'diagnose(server="{name}"), stop_server(name="{name}")'
    return answers.Servers(servers=rows, next=f"you may call {steps}")


def stopped(found: Stopped) -> answers.Ended:
    """Show what stopping did."""
    return answers.Ended(
        name=clip(found.name, 120),
        stopped=found.stopped,
        message=clip(found.message),
        next="call list_servers() to see what is left",
    )


def diagnosed(found: DiagnosisReport, lines: Sequence[str]) -> answers.Diagnosed:
    """Show known causes; without one the log's last lines."""
    causes = [
        answers.Cause(
            id=one.id,
            cause=clip(one.cause),
            remedy=ours(one.remedy, 400),
            confidence=one.confidence,
            evidence=clip(one.evidence),
        )
        for one in found.diagnoses
    ]
    first = clip(found.first_error) if found.first_error else None
    return answers.Diagnosed(
        verdict="found" if causes else "unknown",
        causes=causes,
        first_error=first,
        log=None if causes else quoted(lines, 8),
        next="apply one remedy that the person allowed, then plan_install(recipe_id=...) again"
        if causes
        else "no known cause: that is no all-clear; show the person first_error and the log",
    )
