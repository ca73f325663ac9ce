"""Jobs, connections and skills as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from sparkrecipes.cli.printing import bullets, coloured, console, page, plain
from sparkrecipes.cli.table import figure

if TYPE_CHECKING:
    from sparkrecipes.schema.agent import (
        AgentPrompt,
        Connection,
        SkillList,
        SkillsWritten,
        Snippet,
    )
    from sparkrecipes.schema.job import Job, JobList, JobResult


@page("JobList")
def _(answer: JobList) -> None:
    for job in answer.jobs:
        verdict = f", {job.result.verdict}" if job.result else ""
        step = f" at {job.step}" if job.state == "running" else ""
        console.print(
            f"{job.id}  {coloured(job.state)}{step}  {job.kind} {escape(job.subject)}{verdict}"
        )
    if not answer.jobs:
        console.print("no jobs")


@page("Job")
def _(answer: Job) -> None:
    console.print(
        f"[bold]{answer.id}[/]: {answer.kind} {escape(answer.subject)}, {coloured(answer.state)} "
        f"after {answer.seconds:.0f} s"
    )
    bullets(f"{step.step}: {step.message} ({step.seconds:g} s)" for step in answer.steps)
    if answer.state == "running":
        left = "" if answer.eta_s is None else f", about {answer.eta_s:.0f} s left"
        bullets([f"{answer.message}{left}"], "…")
    if answer.result:
        show_result(answer.result)
    if answer.error:
        for line in answer.error.log_tail:
            plain(f"  | {line}")
        bullets([f"{answer.error.code}: {answer.error.message}"], "!")
    for line in answer.log:
        plain(f"  | {line}")
    console.print(f"log: {escape(answer.log_file)}")
    console.print(f"Next: {escape(answer.next)}")


def show_result(result: JobResult) -> None:
    """Print how a job ended."""
    mark = " [bold cyan](simulated)[/]" if result.simulated else ""
    console.print(f"{coloured(result.verdict)}{mark}: {escape(result.summary)}")
    bullets(
        f"{row.figure}: {figure(row.measured)} {row.unit}, published {figure(row.published)}"
        for row in result.figures
    )
    bullets(result.warnings, "!")


@page("Snippet")
def _(answer: Snippet) -> None:
    show_snippet(answer)


@page("Connection")
def _(answer: Connection) -> None:
    state = {True: "is up", False: "is not up", None: "may be up or not"}[answer.running]
    console.print(f"{escape(answer.base_url)}, model [bold]{escape(answer.model)}[/]; it {state}")
    console.print()
    show_snippet(answer.snippet)


def show_snippet(snippet: Snippet) -> None:
    """Print what to paste, and where."""
    console.print(f"[bold]{escape(snippet.program)}[/]: {escape(snippet.file)}")
    plain(snippet.content)
    if snippet.command:
        plain(f"or: {snippet.command}")
    bullets(snippet.notes)
    console.print(f"source: {escape(snippet.source)}", style="dim")


@page("AgentPrompt")
def _(answer: AgentPrompt) -> None:
    plain(answer.text)


@page("SkillList")
def _(answer: SkillList) -> None:
    for skill in answer.skills:
        console.print(f"[bold]{skill.name}[/]: {escape(skill.description)}")
    console.print("Next: sparkrecipes skills add, or: sparkrecipes skills show NAME")


@page("SkillsWritten")
def _(answer: SkillsWritten) -> None:
    bullets(answer.written)
    bullets((f"left alone, it differs: {path}" for path in answer.kept), "!")
    console.print(f"Next: {escape(answer.next)}")
