"""Counters and statistics: what `/metrics` says of speculation, and what figures allow."""

from __future__ import annotations

import pytest

from sparkrecipes.standard_round import (
    Answer,
    Exchange,
    Reading,
    acceptance,
    acceptance_of,
    burst_speeds,
    degenerate,
    kendall_p,
    parse_counters,
    percentiles,
    spread,
    sustained_figures,
)

BEFORE = """\
# HELP vllm:spec_decode_num_drafts_total Number of drafts.
vllm:spec_decode_num_drafts_total{engine="0"} 100
vllm:spec_decode_num_drafts_created{engine="0"} 1.756736798e+09
vllm:spec_decode_num_draft_tokens_total{engine="0"} 300
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 150
"""
AFTER = """\
vllm:spec_decode_num_drafts_total{engine="0"} 220
vllm:spec_decode_num_drafts_created{engine="0"} 1.756736798e+09
vllm:spec_decode_num_draft_tokens_total{engine="0"} 660
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 414
"""


def counted(before: str, after: str, model: str = "m") -> dict[str, object] | None:
    """Acceptance between two pages."""
    return acceptance(parse_counters(before, model), parse_counters(after, model))


def test_acceptance_is_a_difference_and_created_times_are_no_counters() -> None:
    """C114: 264 of 360 drafted, 1 + 264/120 tokens a step."""
    seen = counted(BEFORE, AFTER)

    assert seen is not None
    assert (73.33, 3.2, 120) == (seen["rate_pct"], seen["mean_length"], seen["drafts"])
    assert "vllm:spec_decode_num_drafts_created" not in parse_counters(BEFORE, "m")


def test_labels_are_summed_and_other_models_left_out() -> None:
    """C114: engines of one model add up; a second model on the page does not count."""
    page = "\n".join(
        f'vllm:spec_decode_num_drafts_total{{engine="{e}",model_name="{m}"}} {v}'
        for e, m, v in (("0", "m", 3), ("1", "m", 4), ("0", "other", 100))
    )

    assert {"vllm:spec_decode_num_drafts_total": 7.0} == parse_counters(page, "m")


def test_acceptance_by_position() -> None:
    """Accepted at a position over drafts, positions in their order."""
    per = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{}"}} {}\n'
    before = BEFORE + "".join(per.format(n, 10) for n in range(11))
    after = AFTER + "".join(per.format(n, 130 - 12 * n) for n in range(11))
    seen = counted(before, after)

    assert seen is not None
    assert [100.0, 90.0, 80.0] == seen["per_position_pct"][:3]  # type: ignore[index]
    assert 11 == len(seen["per_position_pct"])  # type: ignore[arg-type]


def test_nothing_drafted_is_not_measured() -> None:
    """C116: 0/0 is not 0 %."""
    seen = counted(AFTER, AFTER)

    assert seen is not None
    assert (None, None, 0) == (seen["rate_pct"], seen["mean_length"], seen["drafts"])


def test_a_counter_that_fell_is_discarded() -> None:
    """C114: the server restarted in between."""
    assert counted(AFTER, BEFORE) is None


def test_a_page_without_speculation_says_nothing() -> None:
    """No counters, no object."""
    assert counted("", "up 1\n") is None


def test_sglang_counts_verify_steps_only() -> None:
    """A length, no rate: 800 tokens less one a request over 200 steps."""
    page = "sglang:generation_tokens_total {}\nsglang:num_requests_total {}\n"
    page += "sglang:spec_verify_calls_total {}\nsglang:spec_accept_rate 0.7\n"
    seen = counted(page.format(100, 1, 50), page.format(900, 5, 250))

    assert seen is not None
    assert (None, 3.98, 200) == (seen["rate_pct"], seen["mean_length"], seen["drafts"])


def test_llamacpp_counts_under_vllms_names() -> None:
    """As its server has it since it counts speculation."""
    page = AFTER.replace("vllm:", "llamacpp:").replace('{engine="0"}', "")
    seen = counted(BEFORE.replace("vllm:", "llamacpp:").replace('{engine="0"}', ""), page)

    assert seen is not None
    assert (73.33, 3.2) == (seen["rate_pct"], seen["mean_length"])
    assert "llamacpp:spec_decode_num_drafts_total" == seen["source"]


def test_llamacpp_sends_its_figures_with_each_answer() -> None:
    """Two answers, added up: 30 of 40 drafted; 90 tokens in 60 steps."""
    timings = {"draft_n": 20, "draft_n_accepted": 15, "predicted_n": 45}
    seen = acceptance_of([Reading(timings=timings), Reading(timings=timings), Reading()])

    assert seen is not None
    assert (75.0, 1.5) == (seen["rate_pct"], seen["mean_length"])
    assert acceptance_of([Reading()]) is None


def test_a_hostile_page_of_counters_is_read() -> None:
    """Braces in labels, no number, NaN, nothing at all."""
    page = 'a{x="}{"} 1\na{x="2"} 2\nb{} x\n{} 3\nc 1 1700000000\nd{position="x"} 5\n\0\n'

    assert {"a": 3.0, "c": 1.0, "d": 5.0} == parse_counters(page, "m")


def test_spread_gives_median_range_and_number() -> None:
    """Unknown values are left out, the others kept in their order; no value is no figure."""
    seen = spread([4.0, None, 1.0, 2.0])
    kept = {"values": [4.0, 1.0, 2.0]}
    assert {"median": 2.0, "min": 1.0, "max": 4.0, "n": 3} | kept == seen
    assert spread([None]) is None


@pytest.mark.parametrize(
    ("n", "p95", "p99"), [(1, None, None), (19, None, None), (20, 19, None), (200, 190, 198)]
)
def test_a_percentile_that_would_be_the_maximum_is_not_given(
    n: int, p95: float | None, p99: float | None
) -> None:
    """p95 takes 20 values, p99 a hundred."""
    seen = percentiles(range(1, n + 1))

    assert (n, p95, p99, n) == (seen["n"], seen["p95"], seen["p99"], seen["max"])


def run(t0: float, first: float, last: float, tokens: int) -> Answer:
    """A good request that streamed one token an event, evenly."""
    step = (last - first) / (tokens - 1)
    arrivals = [first + step * n for n in range(tokens)]
    return Answer(Exchange(t0=t0), Reading(arrivals=arrivals, usage_tokens=tokens))


def test_aggregate_over_the_wall_time_and_while_all_decode() -> None:
    """Two users, 100 tok/s each, one starting a second later: 200/3 in all, 200 together."""
    aggregate, steady = burst_speeds([run(0, 1, 2.99, 200), run(1, 1, 2.99, 200)])

    assert 400 / 3.99 == pytest.approx(aggregate)
    assert 200.0 == pytest.approx(steady, rel=0.02)


@pytest.mark.parametrize(
    ("slope", "verdict", "drift"), [(0.0, "none", 0.0), (-0.3, "slower", -20), (0.3, "faster", 20)]
)
def test_drift_is_a_trend_and_not_the_mix(slope: float, verdict: str, drift: float) -> None:
    """Two kinds of prompt, one twice as fast and ever more of them, over 15 minutes."""
    done = []
    for n in range(180):
        at = 5.0 * n
        fast = n % 3 == 0 or (n > 90 and n % 3 == 1)
        speed = (1 + fast) * 50 * (1 + slope * at / 900)
        done.append((str(fast), run(at, 0.1, 0.1 + 99 / speed, 100)))
    seen = sustained_figures(done, 0.0, 900.0)

    assert verdict == seen["drift"]
    assert drift == pytest.approx(seen["drift_pct"], abs=5)
    assert 15 == len(seen["per_minute_tok_s"])
    assert 20.0 == pytest.approx(seen["tok_s"], rel=0.02)


def test_tokens_count_in_the_minute_in_which_they_come() -> None:
    """A request over the edge of a minute is split; what comes after the end does not count."""
    seen = sustained_figures([("a", run(50, 0, 20, 2001)), ("a", run(170, 0, 20, 2001))], 0, 180)

    assert [16.7, 16.7, 16.7] == pytest.approx(seen["per_minute_tok_s"], abs=0.1)
    assert "too_short" == seen["drift"]


def test_a_trend_of_few_values_is_chance() -> None:
    """Kendall's p: certain for a steady fall, nothing for noise."""
    assert kendall_p([float(-n) for n in range(14)]) < 0.001
    assert kendall_p([1.0, 3.0, 2.0, 4.0, 1.0, 3.0]) > 0.3


@pytest.mark.parametrize(
    "text",
    [
        "!" * 32,
        "lockhandlehandlehandlehandlehandlehandlehandle",
        "'s's's's's's's't",
        "tok " * 40,
        "\ufffd\ufffda\ufffdbcd\ufffdef",
        "1 2 3 4 5 6 7",
        "",
        "<|im_end|>" * 9,
    ],
)
def test_garbage_is_not_words(text: str) -> None:
    """C89 and its like: exclamation marks, glued repeats, no letters, broken text."""
    assert degenerate(text)


@pytest.mark.parametrize(
    "text",
    [
        "El mar golpea la costa.",
        "The sea, the sea!",
        "海は青くて広い",
        "Okay, the user wants a sentence about the sea. Let me",
        "def f(x):\n    return x + 1  # adds one\n\n\nprint(f(2))",
        "el faro alumbra la costa y la costa espera al faro mientras la noche cae sobre el faro",
    ],
)
def test_words_are_words(text: str) -> None:
    """Short, long, foreign, thinking aloud, code."""
    assert "" == degenerate(text)
