"""Export: rounds in the shape of llama-benchy's reports, for what reads those.

Field names are those of its JSON report and of its CSV; what a round does not measure is null, and
no figure is renamed into another: ``tg_throughput`` of one user is the decode speed, of several
users all tokens over the wall time (llama-benchy leaves the prefill out there).

Source: https://github.com/eugr/llama-benchy/blob/ae09cab/src/llama_benchy/results.py
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from sparkrecipes.reports.figures import ladder
from sparkrecipes.schema.round import Round, Spread

Json = dict[str, Any]

METRICS = (
    "pp_throughput",
    "pp_req_throughput",
    "tg_throughput",
    "tg_req_throughput",
    "peak_throughput",
    "peak_req_throughput",
    "ttfr",
    "est_ppt",
    "e2e_ttft",
)
COLUMNS = {
    "t_s": ("pp_throughput", "tg_throughput"),
    "t_s_req": ("pp_req_throughput", "tg_req_throughput"),
    "peak_ts": (None, "peak_throughput"),
    "peak_ts_req": (None, "peak_req_throughput"),
    "ttfr": ("ttfr", None),
    "est_ppt": ("est_ppt", None),
    "e2e_ttft": ("e2e_ttft", None),
}
"""Columns of the CSV: the metric of a prefill row, and of a generation row.

A test without a prefill row has its ``e2e_ttft`` in the generation row: it would be lost."""

OURS = ("started_at", "recipe_id", "tool_version", "simulated")
"""Columns after llama-benchy's own, by which rows of several rounds are told apart."""


def as_json(rounds: Sequence[Round]) -> str:
    """Write one report, or a list of them where there are several rounds."""
    made = [report_of(round_) for round_ in rounds]
    return json.dumps(made[0] if len(made) == 1 else made, indent=2) + "\n"


def as_csv(rounds: Sequence[Round]) -> str:
    """Write a line for each test of each round."""
    out = io.StringIO()
    ends = ("mean", "std")
    heads = ["model", "test_name", *(f"{name}_{end}" for name in COLUMNS for end in ends), *OURS]
    table = csv.DictWriter(out, heads, lineterminator="\n")
    table.writeheader()
    for round_ in rounds:
        table.writerows(rows_of(round_))
    return out.getvalue()


def report_of(round_: Round) -> Json:
    """Return one round as llama-benchy's ``BenchmarkReport``, and our own keys after its."""
    runs = list(runs_of(round_))
    return {
        "version": f"sparkrecipes {round_.tool_version}",
        "timestamp": round_.started_at,
        "latency_mode": "none",
        "latency_ms": 0.0,
        "model": round_.server.model,
        "prefix_caching_enabled": False,
        "max_concurrency": max((run["concurrency"] for run in runs), default=1),
        "benchmarks": runs,
        "recipe_id": round_.recipe_id,
        "method": round_.method,
        "simulated": round_.simulated,
        "failed_requests": round_.stability.failed,
    }


def runs_of(round_: Round) -> Iterator[Json]:
    """Yield each test of a round as a ``BenchmarkRun``."""
    single, long = round_.single, round_.long_prompt
    size = middle(single.prompt_tokens) if single else 0
    answer = middle(single.completion_tokens) if single else 0
    if single:
        decode, first = metric(single.decode_tok_s), metric(single.ttft_ms)
        alone = {"tg_throughput": decode, "tg_req_throughput": decode, "e2e_ttft": first}
        yield run(1, size, answer, **alone)
    if long and long.state == "measured":
        speed, first = metric(long.prefill_tok_s_spread), metric(long.ttft_ms_spread)
        reading = {"pp_throughput": speed, "pp_req_throughput": speed, "e2e_ttft": first}
        yield run(1, long.prompt_tokens or 0, 0, **reading)
    for step in ladder(round_).values():
        together = {
            "tg_throughput": metric(step.aggregate_tok_s),
            "tg_req_throughput": metric(step.per_user_tok_s),
            "e2e_ttft": metric(step.ttft_ms),
        }
        yield run(step.users, size, answer, **together)


def run(users: int, prompt: int, answer: int, **figures: Json | None) -> Json:
    """Return one test with every metric that llama-benchy has."""
    return {
        "concurrency": users,
        "context_size": 0,
        "prompt_size": prompt,
        "response_size": answer,
        "is_context_prefill_phase": False,
        **{name: figures.get(name) for name in METRICS},
        "throughput_over_time": None,
        "requests_throughput_over_time": None,
    }


def metric(spread: Spread | None) -> Json | None:
    """Return mean, population deviation and values; null where the values were not kept."""
    if spread is None or not spread.values:
        return None
    values = list(spread.values)
    return {"mean": statistics.fmean(values), "std": statistics.pstdev(values), "values": values}


def middle(spread: Spread | None) -> int:
    """Return a number of tokens as one whole number."""
    return round(spread.median) if spread else 0


def rows_of(round_: Round) -> Iterator[Json]:
    """Yield the lines of a round: prefill and generation of a test are lines of their own."""
    ours = {name: getattr(round_, name) for name in OURS}
    runs = list(runs_of(round_))
    several = any(run["concurrency"] > 1 for run in runs)
    for made in runs:
        suffix = f" (c{made['concurrency']})" if several else ""
        named = (("pp", "prompt_size", "pp_throughput"), ("tg", "response_size", "tg_throughput"))
        for kind, (word, size, decides) in enumerate(named):
            if made[decides] is None:
                continue
            cells: Json = {"model": round_.server.model, "test_name": f"{word}{made[size]}{suffix}"}
            for column, names in COLUMNS.items():
                name = names[kind] or (names[0] if made["pp_throughput"] is None else None)
                found = made[name] if name else None
                cells[f"{column}_mean"] = found["mean"] if found else None
                cells[f"{column}_std"] = found["std"] if found else None
            yield cells | ours
