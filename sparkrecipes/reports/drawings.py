"""Drawings: which figures of a round each plot shows; what was not measured is said instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkrecipes.reports.figures import ladder
from sparkrecipes.reports.html_text import Markup, element, joined
from sparkrecipes.reports.plots import Bar, Point, bar_plot, line_plot
from sparkrecipes.schema.report import RoundComparison
from sparkrecipes.schema.round import Acceptance, Concurrent, Percentiles, Round, Spread

SHARES = (("p50", 0), ("p95", 1), ("p99", 2), ("max", 3))


def said(text: str) -> Markup:
    """Say why there is nothing to draw, or what a drawing leaves out."""
    return element("p", text, class_="none")


def rungs(round_: Round) -> list[Concurrent]:
    """Return each number of users that was measured, scenario by scenario, the fewest first."""
    return sorted(ladder(round_).values(), key=lambda step: (step.scenario or "", step.users))


def throughput_plot(rounds: Mapping[str, Round]) -> Markup:
    """Draw the tokens a second of all users together against their number, a line a round."""
    series: dict[str, list[Point]] = {}
    for name, round_ in rounds.items():
        alone = round_.single.e2e_tok_s if round_.single else None
        steps = rungs(round_)
        if alone and not any(step.users == 1 for step in steps):
            series[name] = [point(1, alone)]
        for step in steps:
            if step.aggregate_tok_s:
                kind = step.scenario or ""
                told = f"{name}, {kind}" if kind and len(rounds) > 1 else kind or name
                series.setdefault(told, []).append(point(step.users, step.aggregate_tok_s))
    if not series:
        return said("Not measured.")
    return joined(
        (
            line_plot(
                "Tokens a second of all users together, against users",
                series,
                x_title="users at once",
                y_title="tok/s, all users",
            ),
            said("Bars through the points: the range of the repeats. One user: whole request."),
        )
    )


def point(x: float, spread: Spread) -> Point:
    """Return a point with its range, where there is one."""
    if spread.min == spread.max:
        return Point(x, spread.median)
    return Point(x, spread.median, spread.min, spread.max)


def latency_plots(round_: Round) -> Markup:
    """Draw the percentiles of whole requests and of the gaps between tokens."""
    parts: list[str] = []
    requests = [
        bar
        for step in rungs(round_)
        if step.e2e_s
        for bar in percentile_bars(step_name(step), step.e2e_s, "s")
    ]
    if requests:
        parts += [
            element("h3", "Whole request, at once with the other users"),
            bar_plot("Percentiles of the time of a whole request, s", requests),
        ]
    if round_.single and round_.single.icl_ms:
        gaps = list(percentile_bars("one user", round_.single.icl_ms, "ms"))
        if gaps:
            parts += [
                element("h3", "Gap between two arrivals of tokens, one user"),
                bar_plot("Percentiles of the gap between arrivals of tokens, ms", gaps),
            ]
    if not parts:
        return said("Not measured.")
    parts.append(said("A percentile that is missing has too few values behind it."))
    return joined(tuple(parts))


def step_name(step: Concurrent) -> str:
    """Name a number of users, and what they asked for where a ladder has several."""
    users = "1 user" if step.users == 1 else f"{step.users} users"
    return f"{step.scenario} {users}" if step.scenario else users


def percentile_bars(name: str, of: Percentiles, unit: str) -> Iterator[Bar]:
    """Yield the bars of one distribution."""
    for share, colour in SHARES:
        value = getattr(of, share)
        if value is not None:
            yield Bar(f"{name} {share}", value, f"{value:.4g} {unit}", colour)


def sustained_plot(round_: Round) -> Markup:
    """Draw the tokens a second of each minute."""
    sustained = round_.sustained
    if sustained is None or not sustained.per_minute_tok_s:
        return said("Not measured: the full round does that.")
    minutes = [Point(n, rate) for n, rate in enumerate(sustained.per_minute_tok_s, 1)]
    told = f"{sustained.failed} of {sustained.requests} requests failed"
    if sustained.drift_pct is not None:
        told += (
            f"; last third against the first {sustained.drift_pct:+.1f} %, "
            f"drift: {sustained.drift.replace('_', ' ')}"
        )
    return joined(
        (
            line_plot(
                f"Tokens a second of {sustained.users} users, minute by minute",
                {"all users": minutes},
                x_title="minute",
                y_title=f"tok/s, {sustained.users} users",
            ),
            said(f"{told}."),
        )
    )


def sustained_pair_plot(rounds: Mapping[str, Round]) -> Markup:
    """Draw the minutes of each round that has them."""
    series = {
        name: [Point(n, rate) for n, rate in enumerate(round_.sustained.per_minute_tok_s, 1)]
        for name, round_ in rounds.items()
        if round_.sustained and round_.sustained.per_minute_tok_s
    }
    if not series:
        return said("Not measured: the full round does that.")
    title = "Tokens a second of all users, minute by minute"
    return line_plot(title, series, x_title="minute", y_title="tok/s, all users")


def pair_plots(comparison: RoundComparison) -> Markup:
    """Draw each figure that both rounds have as two bars."""
    parts: list[str] = []
    for row in comparison.rows:
        if row.before and row.after:
            bars = [
                Bar(word, spread.median, f"{spread.median:,.4g} {row.unit}", colour)
                for colour, (word, spread) in enumerate(
                    (("first", row.before), ("second", row.after))
                )
            ]
            parts += [
                element("h3", f"{row.says}, {row.unit} ({row.better} is faster)"),
                bar_plot(f"{row.says}, {row.unit}", bars),
            ]
    return joined(tuple(parts)) if parts else said("No figure was measured in both.")


def acceptance_plot(round_: Round) -> Markup:
    """Draw the acceptance of each kind of prompt and of each position."""
    kinds = [
        Bar(f"{row.workload} at {row.temperature:g}", rate, says(row.acceptance))
        for row in round_.varied
        if row.acceptance and (rate := row.acceptance.rate_pct) is not None
    ]
    whole = round_.acceptance
    if whole and whole.rate_pct is not None:
        kinds.insert(0, Bar("the whole round", whole.rate_pct, says(whole), 1))
    parts: list[str] = []
    if kinds:
        parts += [
            element("h3", "Accepted of drafted tokens, by kind of prompt and temperature"),
            bar_plot("Acceptance rate, per cent", kinds, longest=100.0),
            said("In brackets: tokens a step, the target's own included."),
        ]
    if whole and whole.per_position_pct:
        bars = [
            Bar(f"position {n}", rate, f"{rate:.1f} %", 2)
            for n, rate in enumerate(whole.per_position_pct, 1)
        ]
        parts += [
            element("h3", "By position in the draft"),
            bar_plot("Acceptance by position, per cent", bars, longest=100.0),
        ]
    return joined(tuple(parts)) if parts else said("Not measured: no drafter, or no counters.")


def says(acceptance: Acceptance) -> str:
    """Write a rate with its length: a rate alone is not comparable between draft lengths."""
    length = acceptance.mean_length
    return f"{acceptance.rate_pct:.1f} %" + ("" if length is None else f" ({length:.2f})")
