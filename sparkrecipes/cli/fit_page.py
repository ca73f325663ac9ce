"""The page of ``fit``: verdict, parts, what to set, and where asked for a table and every rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from sparkrecipes.cli.printing import bullets, coloured, console, gib

if TYPE_CHECKING:
    from sparkrecipes.schema.memory import (
        EngineKv,
        Explained,
        FirstStart,
        Forecast,
        GridCell,
        MemoryEstimate,
        Settings,
    )

SIGNS = {"fits": "fits", "tight": "tight", "does_not_fit": "no", "unknown": "?"}
COLOURS = {"fits": "green", "tight": "yellow", "does_not_fit": "red", "unknown": "magenta"}


def print_fit(answer: MemoryEstimate) -> None:
    """Print an estimate; its reasons and sources where asked for, or where they are the answer."""
    now = f", now: {coloured(answer.verdict_now)}" if answer.verdict_now else ""
    console.print(
        f"[bold]{escape(answer.subject)}[/] at {answer.context_tokens:,} tokens x "
        f"{answer.users} user{'s' if answer.users > 1 else ''}, "
        f"KV cache {answer.kv_cache_dtype}: {coloured(answer.verdict)}{now}"
    )
    console.print(parts(answer))
    bullets(limits(answer))
    if answer.engine_kv:
        bullets(log_lines(answer.engine_kv))
    if answer.settings:
        bullets(setting_lines(answer.settings))
    if answer.forecast:
        bullets(forecast_lines(answer.forecast))
    if answer.grid:
        console.print(grid_table(answer.grid))
    if answer.explain or answer.verdict == "unknown":
        bullets(answer.assumptions)
    print_rules(answer.explain or ())
    bullets(answer.warnings, "!")
    if not answer.explain:
        console.print("Next: add --explain: what each number rests on, with its source")


def parts(answer: MemoryEstimate) -> Table:
    """Make the table of components with their bounds."""
    table = Table(box=None, pad_edge=False)
    table.add_column("component")
    table.add_column("low", justify="right")
    table.add_column("high", justify="right")
    for name, bounds in answer.bounds.items():
        low, high = bounds or (None, None)
        table.add_row(part_name(name), gib(low), gib(high))
        if name == "overhead_bytes":
            add_parts(table, answer)
    low, high = answer.total_bounds or (None, None)
    table.add_row("[bold]total", f"[bold]{gib(low)}", f"[bold]{gib(high)}")
    table.add_row("usable", "", gib(answer.usable_bytes))
    if answer.available_bytes is not None:
        table.add_row("available now", "", gib(answer.available_bytes))
    return table


def part_name(key: str) -> str:
    """Write the key of a component for people."""
    return key.removesuffix("_bytes").replace("_", " ").replace("cuda", "CUDA")


def add_parts(table: Table, answer: MemoryEstimate) -> None:
    """Add what the overhead is made of, apart from the components that add up."""
    for name, (low, high) in answer.overhead_parts.items():
        if high:
            table.add_row(f"[dim]  {part_name(name)}", f"[dim]{gib(low)}", f"[dim]{gib(high)}")


def limits(answer: MemoryEstimate) -> Iterable[str]:
    """Say what is the most that fits, and what the engine takes."""
    most, longest = answer.max_users_at_context, answer.max_context_at_users
    if most is not None and longest is not None:
        yield f"at most {most:,} users at this context; {longest:,} tokens for this many users"
    if peak := answer.first_start:
        yield (
            f"a first start that compiles kernels peaks at {gib(peak.peak_bounds[1])} at most with "
            f"MAX_JOBS={peak.max_jobs} ({who_sets(peak)}): {peak.verdict.replace('_', ' ')}"
        )
    if answer.reservation_bytes is not None:
        yield f"the engine takes {gib(answer.reservation_bytes)} when it starts"


def who_sets(peak: FirstStart) -> str:
    """Say where ``MAX_JOBS`` comes from."""
    return "the recipe's own" if peak.max_jobs_source == "recipe" else "which the command sets"


def log_lines(log: EngineKv) -> Iterable[str]:
    """Say what the engine's log prints."""
    low, high = log.kv_cache_tokens_bounds
    yield (
        f"the log prints: GPU KV cache size: {log.kv_cache_tokens:,} tokens "
        f"({low:,} to {high:,} by the rounding of the memory); maximum concurrency "
        f"{log.max_concurrency:.2f}x"
    )
    yield (
        f"{log.num_blocks:,} blocks, attention block {log.block_size:,} tokens, "
        f"{log.blocks_per_request:,} blocks a request (rules of {log.engine_version}; "
        f"{log.log_rule}); {log.admitted_sequences:,} full sequences run at once"
    )


def setting_lines(settings: Settings) -> Iterable[str]:
    """Say what to set, and whether the engine would start."""
    yield from (f"set {note}" for note in settings.notes)
    check = settings.start_check
    if check and check.starts is not None:
        word = "would start" if check.starts else "would refuse to start"
        yield (
            f"with {check.gpu_memory_utilization:g} the engine {word} now: it wants "
            f"{gib(check.needs_bytes)} free, {gib(check.available_bytes)} are"
        )


def forecast_lines(found: Forecast) -> Iterable[str]:
    """Say how fast it would be, always as a range."""

    def between(pair: tuple[float, float]) -> str:
        return f"{pair[0]:g} to {pair[1]:g}"

    yield (
        f"estimated speed: one user {between(found.single_user_tok_s)} tok/s, "
        f"{between(found.single_user_tok_s_at_context)} with a full context; all users together "
        f"{between(found.users_total_tok_s)}, {between(found.users_total_tok_s_at_context)} full"
    )
    yield (
        f"estimated prefill: {between(found.prefill_tok_s)} tok/s; a full context takes "
        f"{between(found.prefill_s_at_context)} s"
    )


def grid_table(cells: Iterable[GridCell]) -> Table:
    """Make the table of users and contexts: verdict and the high bound in GB."""
    rows: dict[int, dict[int, GridCell]] = {}
    for cell in cells:
        rows.setdefault(cell.context_tokens, {})[cell.users] = cell
    table = Table(title="GB (10^9 bytes) by the high bounds", title_justify="left", box=None)
    table.add_column("tokens", justify="right")
    for users in next(iter(rows.values())):
        table.add_column(f"{users} user{'s' if users > 1 else ''}", justify="right")
    for context, row in rows.items():
        table.add_row(f"{context:,}", *(one_cell(cell) for cell in row.values()))
    return table


def one_cell(cell: GridCell) -> str:
    """Write one answer: a word, not only a colour."""
    size = "" if cell.total_bytes is None else f"{cell.total_bytes / 1e9:.0f} "
    return f"{size}[{COLOURS[cell.verdict]}]{SIGNS[cell.verdict]}[/]"


def print_rules(lines: Iterable[Explained]) -> None:
    """Print each number with its rule, inputs and source."""
    for line in lines:
        console.print(f"[bold]{escape(line.number)}[/] = {value(line)}")
        inputs = ", ".join(f"{k} {written(v)}" for k, v in line.inputs.items() if v is not None)
        bullets([line.rule, *([f"from: {inputs}"] if inputs else []), f"source: {line.source}"])


def value(line: Explained) -> str:
    """Write a number or a range with its unit; bytes as GiB too."""
    if line.low is None or line.high is None:
        return "not known"
    text = written(line.low)
    if line.low != line.high:
        text += f" to {written(line.high)}"
    if line.unit == "bytes" and line.high >= 2**20:
        low, high = f"{line.low / 2**30:.2f}", f"{line.high / 2**30:.2f}"
        span = high if low == high else f"{low} to {high}"
        return f"{text} bytes ({span} GiB)"
    return f"{text} {escape(line.unit)}"


def written(number: float | str | None) -> str:
    """Write an input: thousands apart, fractions short."""
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:g}" if isinstance(number, float) else escape(str(number))
