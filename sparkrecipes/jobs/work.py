"""The work itself: one operation, on the recipe as it was shown, and its answer in short."""

from __future__ import annotations

import os
from pathlib import Path

from sparkrecipes import operations
from sparkrecipes.catalog import Catalog, open_catalog
from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.jobs.addresses import is_this_host
from sparkrecipes.jobs.diary import Diary
from sparkrecipes.schema.job import JobAnswer, JobFigure, JobResult, JobSpec
from sparkrecipes.schema.recipe import Recipe

KEYS = ("VLLM_API_KEY",)
"""Variables that a round sends to the endpoint."""


class FrozenCatalog(Catalog):
    """A catalog in which one recipe is what it was when it was shown."""

    def __init__(self, root: Path, recipe: Recipe) -> None:
        super().__init__(root)
        self.frozen = recipe

    def recipe(self, ref: str | Path) -> Recipe:
        """Return the frozen recipe for its id, and others as ever."""
        return self.frozen if ref == self.frozen.id else super().recipe(ref)


def do(spec: JobSpec, diary: Diary) -> JobAnswer:
    """Do what a job is to do, and return its whole answer.

    Raises:
        SparkRecipesError: It failed, with the reason and the repair.
    """
    catalog = catalog_of(spec)
    if spec.kind == "round":
        return measure(spec, catalog, diary)
    if spec.kind == "rehearse":
        walked = operations.rehearse(
            spec.subject,
            context_tokens=spec.context_tokens,
            users=spec.users,
            catalog=catalog,
            machine=spec.machine,
            offline=spec.offline,
            progress=diary.say,
        )
    else:
        row = catalog.october_row(spec.recipe) if spec.recipe else None
        diary.load_minutes = row.figures.load_min if row else None
        walked = operations.install(
            spec.subject,
            context_tokens=spec.context_tokens,
            users=spec.users,
            port=spec.port,
            catalog=catalog,
            machine=spec.machine,
            offline=spec.offline,
            progress=diary.say,
        )
    if walked.report is None or walked.round is None:
        raise SparkRecipesError(f"{spec.kind} of {spec.subject} measured nothing")
    return JobAnswer(report=walked.report, round=walked.round, base_url=walked.base_url)


def measure(spec: JobSpec, catalog: Catalog, diary: Diary) -> JobAnswer:
    """Measure an endpoint, and compare it where its recipe is known."""
    recipe = spec.recipe.id if spec.recipe else None
    if spec.base_url and not is_this_host(spec.base_url):
        for name in KEYS:
            os.environ.pop(name, None)
    diary.begin("round")
    measured = operations.run_round(
        recipe,
        base_url=spec.base_url,
        model=spec.model,
        quick=spec.quick,
        catalog=catalog,
        machine=spec.machine,
        progress=diary.say,
    )
    diary.finish("round", f"{measured.stability.requests} requests, saved in {measured.saved_to}")
    diary.begin("report")
    report = operations.compare(measured, recipe=recipe, catalog=catalog)
    diary.finish("report", report.summary)
    return JobAnswer(report=report, round=measured, base_url=measured.server.base_url)


def catalog_of(spec: JobSpec) -> Catalog:
    """Open a job's catalog, with the recipe as it was shown."""
    opened = open_catalog(spec.catalog)
    return FrozenCatalog(opened.root, spec.recipe) if spec.recipe else opened


def result_of(answer: JobAnswer) -> JobResult:
    """Say in short how a job ended."""
    report, measured = answer.report, answer.round
    return JobResult(
        ok=report.verdict in ("matches", "faster", "not_comparable")
        and measured.stable is not False
        and not measured.stability.failed,
        simulated=report.simulated,
        verdict=report.verdict,
        summary=report.summary,
        figures=tuple(
            JobFigure(
                figure=row.figure,
                unit=row.unit,
                measured=row.measured,
                published=row.published,
                difference_pct=row.difference_pct,
                verdict=row.verdict,
            )
            for row in report.rows
        ),
        base_url=answer.base_url,
        model=measured.server.model,
        requests=measured.stability.requests,
        failed_requests=measured.stability.failed,
        warnings=report.warnings,
        round_file=measured.saved_to,
    )
