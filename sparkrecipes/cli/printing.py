"""Answers as people read them: tables and short lines, one function a type."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sparkrecipes.cli.table import figure, print_table, visible

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sparkrecipes.schema.contradiction import EvidenceOverview
    from sparkrecipes.schema.findings import CheckReport, DiagnosisReport
    from sparkrecipes.schema.image import ImageReport
    from sparkrecipes.schema.listing import RecipeDetail, RecipeList
    from sparkrecipes.schema.machine import HostReport
    from sparkrecipes.schema.memory import MemoryEstimate
    from sparkrecipes.schema.recommendation import Recommendation
    from sparkrecipes.schema.round import InstallReport
    from sparkrecipes.schema.serving import (
        Command,
        DownloadReport,
        Readiness,
        Server,
        ServerList,
        ServerLogs,
        Stopped,
    )

NARROWEST = 40
"""A terminal that says it is narrower is not believed: text would be lost."""

WIDE = 1000
"""Into a pipe or file lines are whole, so that they can be searched and copied."""


class QuietConsole(Console):
    """A console that tells of a closed pipe, and obeys nothing that stands in a text."""

    def on_broken_pipe(self) -> None:
        """Let the command end as any other whose reader has gone."""
        raise BrokenPipeError

    def render_str(self, text: str, **how: Any) -> Text:
        """Take a text in; nothing in it reaches the terminal as a command."""
        return super().render_str(visible(text), **how)


def new_console() -> QuietConsole:
    """Open the console: as wide as the terminal, or whole lines where there is none."""
    if not sys.stdout.isatty():
        return QuietConsole(highlight=False, width=WIDE)
    found = QuietConsole(highlight=False)
    return found if found.width >= NARROWEST else QuietConsole(highlight=False, width=80)


console = new_console()

COLOURS = {
    "ok": "green",
    "fits": "green",
    "ready": "green",
    "matches": "green",
    "faster": "green",
    "done": "green",
    "tight": "yellow",
    "warning": "yellow",
    "warned": "yellow",
    "hint": "yellow",
    "unknown": "magenta",
    "not_comparable": "magenta",
    "simulated": "cyan",
}


Page = Callable[[Any], None]
PAGES: dict[str, Page] = {}
"""How each type of answer is printed, by the type's name: no type is loaded to be printed."""


def print_answer(answer: BaseModel) -> None:
    """Print an answer as people read it."""
    name = type(answer).__name__
    if name not in PAGES:
        from sparkrecipes.cli import agent_pages, catalog_pages, report_pages  # noqa: F401 (they register pages)
    PAGES[name](answer)


def page(name: str) -> Callable[[Page], Page]:
    """Register the page of a type."""

    def register(function: Page) -> Page:
        PAGES[name] = function
        return function

    return register


def coloured(word: str) -> str:
    """Mark a verdict with its colour; what has none is bad news."""
    return f"[bold {COLOURS.get(word, 'red')}]{word}[/]"


def plain(text: str) -> None:
    """Print text that must not be wrapped or read as markup."""
    console.print(text, markup=False, soft_wrap=True)


def bullets(lines: Iterable[str], sign: str = "-") -> None:
    """Print one line a fact, under its sign."""
    print_rows((f"  {sign}", escape(line)) for line in lines)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print a word and a text a row, both as markup; a long text goes on under its own start.

    Into a pipe or a file each row is one line that ends with its text.
    """
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for word, text in rows:
        grid.add_row(word, text)
    if not grid.row_count:
        return
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as written:
        console.print(grid)
    for line in written.get().splitlines():
        plain(line.rstrip())


def gib(value: int | None) -> str:
    """Write bytes as GiB."""
    return "unknown" if value is None else f"{value / 2**30:.1f} GiB"


@page("RecipeList")
def _(answer: RecipeList) -> None:
    print_table(answer)


@page("RecipeDetail")
def _(answer: RecipeDetail) -> None:
    recipe, summary = answer.recipe, answer.summary
    console.print(f"[bold]{escape(recipe.title)}[/]  ({recipe.id}, {summary.status})")
    serving = recipe.serving
    bullets(
        [
            f"model {recipe.model} {recipe.quant or '(build not named)'}, "
            f"{figure(summary.params_total_b, 0)}B parameters",
            f"reads and does: {', '.join(recipe.capabilities)}",
            f"engine {recipe.engine} {recipe.engine_version or '(version not named)'}, "
            f"image {recipe.image.reference}",
            f"set for {serving.context_tokens:,} tokens x {serving.users} users, "
            f"KV cache {serving.kv_cache_dtype}, memory fraction {serving.gpu_memory_utilization}",
        ]
    )
    for published in answer.published:
        f = published.row.figures
        console.print(f"published ({escape(published.publisher)}, {published.row.date}):")
        bullets(
            [
                f"one user {figure(f.single_user_tok_s)} tok/s, TTFT {figure(f.ttft_ms, 0)} ms",
                f"four users {figure(f.four_users_total_tok_s)} tok/s together",
                f"46K prompt {figure(f.long_prompt_46k_s)} s, load {figure(f.load_min)} min, "
                f"memory {figure(f.memory_gb)} GB as published",
            ]
        )
    if summary.estimated:
        from sparkrecipes.speed.forecasting import estimated_line

        console.print(f"{estimated_line(summary.estimated)}: sparkrecipes fit {recipe.id} says how")
    for title, found in (
        ("caveats", [*recipe.caveats, *(c.text for c in answer.caveats)]),
        ("mended", recipe.mended),
        ("sources", answer.sources),
    ):
        if found:
            console.print(f"{title}:")
            bullets(found)
    print_resemblance(answer)
    if answer.file:
        hides = ", which hides the shipped one" if summary.shadows else ""
        console.print(f"your own file{hides}:")
        plain(answer.file)
    if answer.lock:
        console.print("pinned by:")
        plain(answer.lock)
    console.print(f"Next: sparkrecipes check {recipe.id}")


def print_resemblance(answer: RecipeDetail) -> None:
    """Print figures of nearly this configuration, and everything where that was asked for."""
    if answer.evidence:
        from sparkrecipes.cli.evidence_page import print_evidence

        print_evidence(answer.evidence)
    elif answer.recipe.resembles:
        console.print("nearly this was measured:")
        bullets(f"{near.row}: {near.differs}" for near in answer.recipe.resembles)
        console.print(f"side by side: sparkrecipes show {answer.recipe.id} --evidence")


@page("EvidenceOverview")
def _(answer: EvidenceOverview) -> None:
    from sparkrecipes.cli.evidence_page import print_overview

    print_overview(answer)


@page("Recommendation")
def _(answer: Recommendation) -> None:
    from sparkrecipes.cli.recommendation_page import print_recommendation

    print_recommendation(answer)


@page("HostReport")
def _(answer: HostReport) -> None:
    from sparkrecipes.memory.freeing import holders

    kind = "a DGX Spark" if answer.is_spark else "not a DGX Spark"
    console.print(f"[bold]{kind}[/]: {answer.platform}, {escape(answer.kernel)}")
    bullets(
        [
            f"memory {gib(answer.mem_total_bytes)}, available now "
            f"{gib(answer.mem_available_bytes)}",
            f"GPU: {', '.join(g.name for g in answer.gpus) or 'none seen'}",
            f"Docker: {answer.docker.state} {answer.docker.message}".rstrip(),
            *(f"disk for {d.what} ({d.path}): {gib(d.free_bytes)} free" for d in answer.disks),
            f"recipes are judged for: {answer.machine}",
            *(holders(answer.live) if answer.live else ()),
        ]
    )
    bullets(answer.warnings, "!")


@page("MemoryEstimate")
def _(answer: MemoryEstimate) -> None:
    from sparkrecipes.cli.fit_page import print_fit

    print_fit(answer)


@page("ImageReport")
def _(answer: ImageReport) -> None:
    word = {True: "[bold green]runs", False: "[bold red]does not run", None: "[bold magenta]?"}
    console.print(f"{escape(answer.ref)}: {word[answer.platform_ok]}[/] on {answer.platform}")
    size = answer.compressed_bytes
    bullets(
        [
            answer.reason,
            f"platforms: {', '.join(answer.platforms) or 'unknown'}",
            f"digest: {answer.digest or 'unknown'}",
            f"compressed: {'unknown' if size is None else f'{size / 1e9:.2f} GB'}",
        ]
    )
    if answer.repair:
        console.print(f"Next: {escape(answer.repair)}")


@page("CheckReport")
def _(answer: CheckReport) -> None:
    rows = []
    for f in answer.findings:
        repair = f"\n[dim]-> {escape(f.repair)}[/]" if f.repair and f.level != "ok" else ""
        rows.append((coloured(f.level), f"{f.check}: {escape(f.message)}{repair}"))
    print_rows(rows)
    console.print(f"{answer.recipe_id}: {coloured(answer.verdict)}: {escape(answer.summary)}")


@page("Command")
def _(answer: Command) -> None:
    plain(answer.shell)
    err = QuietConsole(stderr=True, highlight=False)
    for name, value in answer.added_env.items():
        err.print(
            f"{name}={value} is this tool's own, not the recipe's: so many kernels may compile at "
            "once at a first start, and fit reckons with that"
        )
    for warning in answer.warnings:
        err.print(f"! {escape(warning)}")


@page("DiagnosisReport")
def _(answer: DiagnosisReport) -> None:
    for d in answer.diagnoses:
        console.print(f"[bold]{escape(d.cause)}[/] ({d.id}, confidence {d.confidence})")
        bullets([d.evidence])
        console.print(f"Next: {escape(d.remedy)}")
    if not answer.diagnoses:
        console.print("no known cause found: that is no all-clear")
        if answer.first_error:
            bullets([f"first error: {answer.first_error}"])


@page("DownloadReport")
def _(answer: DownloadReport) -> None:
    for repo in answer.repos:
        console.print(
            f"{repo.role} {repo.repo}@{repo.revision[:12]}: {repo.files} files, "
            f"{repo.total_bytes / 1e9:.2f} GB, {repo.fetched_bytes / 1e9:.2f} GB fetched now"
        )
        bullets([repo.snapshot])
    bullets(answer.warnings, "!")
    console.print(f"Next: sparkrecipes launch {answer.recipe_id}")


@page("ServerList")
def _(answer: ServerList) -> None:
    for server in answer.servers:
        describe(server)
    if not answer.servers:
        console.print("no container of ours")


@page("Server")
def _(answer: Server) -> None:
    describe(answer)
    console.print(f"Next: sparkrecipes wait {answer.recipe_id}")


def describe(answer: Server) -> None:
    """Write what a container is and does."""
    exit_note = f" (exit code {answer.exit_code})" if answer.state == "exited" else ""
    console.print(f"{answer.name}: {answer.state}{exit_note}, {answer.base_url or 'no port'}")
    bullets([f"recipe {answer.recipe_id}, image {answer.image}, since {answer.started_at}"])


@page("ServerLogs")
def _(answer: ServerLogs) -> None:
    for line in answer.lines:
        plain(line)


@page("Readiness")
def _(answer: Readiness) -> None:
    console.print(f"ready after {answer.seconds:.0f} s: {answer.base_url} model {answer.model}")


@page("Stopped")
def _(answer: Stopped) -> None:
    console.print(escape(answer.message))


def shown_as_they_went() -> bool:
    """Tell whether the reader has the steps already: stderr and stdout are one file or pipe.

    On a terminal the live line of each step has gone when the page is printed.
    """
    return not sys.stderr.isatty() and os.path.sameopenfile(1, 2)


@page("InstallReport")
def _(answer: InstallReport) -> None:
    if not shown_as_they_went():
        print_rows(
            (coloured(step.state), f"{step.step}: {escape(step.message)}") for step in answer.steps
        )
    if answer.report:
        console.print()
        print_answer(answer.report)
    if answer.simulated:
        console.print("\nThe command on a real Spark:")
        plain(answer.command)
    elif answer.base_url:
        console.print(f"\nready at {answer.base_url}")
    console.print(f"Next: {escape(answer.next)}")
