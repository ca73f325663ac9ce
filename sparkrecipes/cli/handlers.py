"""One function a command: call one operation with the parsed options."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sparkrecipes import operations as ops
from sparkrecipes.cli.agent_handlers import AGENT_HANDLERS
from sparkrecipes.cli.catalog_handlers import contribute, import_, pin, review
from sparkrecipes.cli.progress import Display
from sparkrecipes.cli.report_handlers import report
from sparkrecipes.errors import Misuse

MAX_LOG_BYTES = 64 * 2**20

PAGE_ALTERNATIVES = 4
WISHES = (
    "min_tok_s_per_user",
    "modalities",
    "languages",
    "free_now_gb",
    "leave_free_gb",
    "licences",
    "engines",
    "language",
)
FIT_OPTIONS = (
    "kv_cache_dtype",
    "available_kv_gib",
    "engine_version",
    "speculative",
    "prefix_caching",
    "max_num_batched_tokens",
    "mamba_ssm_cache_dtype",
    "explain",
    "grid",
)


def places(options: Namespace, *names: str) -> dict[str, Any]:
    """Take the common options that an operation knows."""
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def sizes(options: Namespace) -> dict[str, Any]:
    """Take context and users."""
    return {"context_tokens": options.context, "users": options.users}


def list_(options: Namespace) -> BaseModel:
    """List recipes."""
    return ops.list_recipes(everything=options.everything, **places(options, "catalog", "machine"))


def show(options: Namespace) -> BaseModel:
    """Show a recipe; with --evidence also a model, or everything that contradicts."""
    where = places(options, "catalog", "machine")
    if options.evidence and is_of_models(options):
        return ops.get_evidence(options.recipe, **where)
    if options.recipe is None:
        raise Misuse("name a recipe", repair="run: sparkrecipes list, or show --evidence")
    return ops.get_recipe(
        options.recipe, evidence=options.evidence, **places(options, "catalog", "machine")
    )


def is_of_models(options: Namespace) -> bool:
    """Say whether a model is asked about, or all of them."""
    from sparkrecipes.operations.workspace import open_catalog_of

    catalog = open_catalog_of(getattr(options, "catalog", None))
    return options.recipe is None or options.recipe in catalog.models


def recommend(options: Namespace) -> BaseModel:
    """Recommend a recipe; the page shows a few alternatives, JSON all, unless said otherwise."""
    limit = options.limit
    if limit is None and not options.everything and not getattr(options, "json", False):
        limit = PAGE_ALTERNATIVES
    return ops.recommend(
        " ".join(options.words),
        **sizes(options),
        **{name: getattr(options, name) for name in WISHES},
        limit=limit,
        **places(options, "catalog", "machine"),
    )


def validate(options: Namespace) -> BaseModel:
    """Validate files."""
    return ops.validate_recipe(
        options.paths, fix=options.fix, dry_run=options.dry_run, **places(options, "catalog")
    )


def probe(options: Namespace) -> BaseModel:
    """Probe this machine."""
    return ops.probe_machine(**places(options, "catalog", "machine"))


def fit(options: Namespace) -> BaseModel:
    """Estimate memory."""
    return ops.estimate_memory(
        options.subject,
        **sizes(options),
        **{name: getattr(options, name) for name in FIT_OPTIONS},
        **places(options, "catalog", "machine", "offline"),
    )


def image(options: Namespace) -> BaseModel:
    """Check an image."""
    return ops.check_image(options.ref, **places(options, "catalog", "machine", "offline"))


def check(options: Namespace) -> BaseModel:
    """Check a recipe."""
    return ops.check_recipe(
        options.recipe,
        **sizes(options),
        port=options.port,
        **places(options, "catalog", "machine", "offline"),
    )


def command(options: Namespace) -> BaseModel:
    """Render the command."""
    return ops.render_command(
        options.recipe,
        **sizes(options),
        port=options.port,
        bind=options.bind,
        format=options.format,
        gpu_memory_utilization=options.gpu_memory_utilization,
        nodes=options.nodes,
        **places(options, "catalog", "machine"),
    )


def diagnose(options: Namespace) -> BaseModel:
    """Diagnose a log."""
    if (options.file is None) == (options.server is None):
        raise Misuse(
            "name one log: a file, - for stdin, or --server RECIPE",
            repair="run: sparkrecipes diagnose server.log",
        )
    if options.server:
        return ops.diagnose_server(options.server, **places(options, "catalog"))
    return ops.diagnose(read_log(options.file), **places(options, "catalog"))


def read_log(file: str) -> str:
    """Read the end of a log file or of stdin.

    Raises:
        Misuse: The file cannot be read.
    """
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_LOG_BYTES)
        else:
            with Path(file).open("rb") as log:
                log.seek(max(0, Path(file).stat().st_size - MAX_LOG_BYTES))
                data = log.read(MAX_LOG_BYTES)
    except OSError as err:
        raise Misuse(
            f"{file} cannot be read: {err.strerror}", repair="name a log file, or - for stdin"
        ) from err
    return data.decode("utf-8", "replace")


def status(_options: Namespace) -> BaseModel:
    """List our containers."""
    return ops.list_servers()


def logs(options: Namespace) -> BaseModel:
    """Show a container's log."""
    return ops.server_logs(options.recipe, lines=options.lines, **places(options, "catalog"))


def download(options: Namespace) -> BaseModel:
    """Download weights."""
    with Display() as display:
        return ops.download(
            options.recipe,
            verify=options.verify,
            progress=display.bytes,
            **places(options, "catalog", "offline"),
        )


def launch(options: Namespace) -> BaseModel:
    """Launch a container."""
    return ops.launch(
        options.recipe,
        **sizes(options),
        port=options.port,
        bind=options.bind,
        force=options.force,
        gpu_memory_utilization=options.gpu_memory_utilization,
        **places(options, "catalog", "machine", "offline"),
    )


def wait(options: Namespace) -> BaseModel:
    """Wait until ready."""
    with Display() as display:
        return ops.wait_until_ready(
            options.recipe,
            timeout_s=options.timeout,
            progress=display.line,
            **places(options, "catalog"),
        )


def round_(options: Namespace) -> BaseModel:
    """Measure an endpoint."""
    with Display() as display:
        return ops.run_round(
            options.recipe,
            base_url=options.base_url,
            model=options.model,
            quick=options.quick,
            method=options.method,
            only=options.only,
            users=options.users,
            sustained_minutes=options.sustained_minutes,
            progress=display.line,
            **places(options, "catalog", "machine", "offline"),
        )


def stop(options: Namespace) -> BaseModel:
    """Stop a container."""
    return ops.stop(options.recipe, **places(options, "catalog"))


def install(options: Namespace) -> BaseModel:
    """Walk from nothing to a proven endpoint."""
    with Display() as display:
        return ops.install(
            options.recipe,
            **sizes(options),
            port=options.port,
            bind=options.bind,
            force=options.force,
            full=options.full,
            progress=display.line,
            **places(options, "catalog", "machine", "offline"),
        )


def rehearse(options: Namespace) -> BaseModel:
    """Walk without a Spark."""
    with Display() as display:
        return ops.rehearse(
            " ".join(options.recipe),
            speed=options.speed,
            full=options.full,
            **sizes(options),
            progress=display.line,
            **places(options, "catalog", "machine", "offline"),
        )


HANDLERS: dict[str, Callable[[Namespace], BaseModel]] = {
    "list": list_,
    "show": show,
    "recommend": recommend,
    "validate": validate,
    "import": import_,
    "contribute": contribute,
    "review": review,
    "pin": pin,
    "probe": probe,
    "fit": fit,
    "image": image,
    "check": check,
    "command": command,
    "report": report,
    "diagnose": diagnose,
    "status": status,
    "logs": logs,
    "download": download,
    "launch": launch,
    "wait": wait,
    "round": round_,
    "stop": stop,
    "install": install,
    "rehearse": rehearse,
    **AGENT_HANDLERS,
}
