"""Reports: like with like, and no difference where there is none to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli import main
from sparkrecipes.reports import compare, markdown
from sparkrecipes.reports.comparison import judged
from sparkrecipes.reports.figures import FIGURES, TTFT_FLOOR_MS
from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.round import Report, ReportRow, Round
from tests.support.full_round import full_round

CATALOG = open_catalog()
ROWS = [row for row in (CATALOG.october_row(r) for r in CATALOG.recipes.values()) if row]
AGENTS = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
ROW = next(row for row in ROWS if row.id == AGENTS)
DOUBTED = next(row for row in ROWS if row.id == "gpt-oss-20b-mxfp4-vllm")
SPEEDS = ("single_user_tok_s", "four_users_total_tok_s", "long_prompt_46k_s")


def spread(median: float, low: float = 1.0, high: float = 1.0, n: int = 3) -> dict[str, Any]:
    """A figure over its repeats, its range as factors of the median."""
    return {"median": median, "min": median * low, "max": median * high, "n": n}


def a_round(row: EvidenceRow = ROW, speed: float = 1.0, **changes: Any) -> Round:
    """A full, stable round whose figures are a row's at some speed; keys like ``single__n``."""
    figures = row.figures
    measured = {
        "single_user_tok_s": (figures.single_user_tok_s or 1.0) * speed,
        "four_users_total_tok_s": (figures.four_users_total_tok_s or 1.0) * speed,
        "ttft_ms": (figures.ttft_ms or 1.0) / speed,
        "long_prompt_46k_s": (figures.long_prompt_46k_s or 1.0) / speed,
    }
    single, ttft = measured["single_user_tok_s"], measured["ttft_ms"]
    data: dict[str, Any] = {
        "method": "october",
        "started_at": "2026-12-02T10:00:00+00:00",
        "tool_version": "0.1.0",
        "server": {
            "base_url": "http://127.0.0.1:8000/v1",
            "model": "m",
            "engine": "vllm",
            "engine_version": "0.31.0",
            "context_tokens": None,
        },
        "machine": None,
        "recipe_id": AGENTS,
        "simulated": False,
        "smoke": {"words": True, "tool_call": None, "image": None},
        "single": {
            "n": 3,
            "ttft_ms": spread(ttft),
            "ttfo_ms": None,
            "decode_tok_s": spread(single),
            "e2e_tok_s": None,
        },
        "concurrent": {
            "users": 4,
            "rounds": 1,
            "aggregate_tok_s": spread(measured["four_users_total_tok_s"], n=1),
            "per_user_tok_s": None,
            "ttft_ms": None,
            "requests": 4,
        },
        "long_prompt": {
            "state": "measured",
            "prompt_tokens": 46000,
            "cached_tokens": 0,
            "wall_s": measured["long_prompt_46k_s"],
            "ttft_ms": None,
            "prefill_tok_s": None,
        },
        "stability": {"requests": 13, "failed": 0, "errors": (), "restarted": False},
        "stable": True,
        "varied": (),
        "sustained": None,
        "acceptance": None,
        "published_method": measured,
        "warnings": (),
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = data
        for parent in parents:
            place = place[parent]
        place[last] = value
    return Round.model_validate(data)


def report(round_: Round, row: EvidenceRow | None = ROW, recipe_id: str | None = AGENTS) -> Report:
    """Compare."""
    return compare(round_, row, recipe_id=recipe_id)


def line(of: Report, figure: str) -> ReportRow:
    """One figure of a report."""
    return next(row for row in of.rows if row.figure == figure)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_identical_figures_match_and_0_7_is_slower_for_every_row(row: EvidenceRow) -> None:
    """All 23 rows: what is published matches itself, 70 % of it is slower, 140 % is faster."""
    same = report(a_round(row), row)
    assert "matches" == same.verdict
    assert all(r.verdict == "matches" and r.difference_pct == 0 for r in same.rows)
    assert "slower" == report(a_round(row, 0.7), row).verdict
    assert "faster" == report(a_round(row, 1.4), row).verdict


@settings(deadline=None)
@given(st.sampled_from(ROWS), st.floats(0.2, 5.0))
def test_the_verdict_of_the_whole_follows_the_speed(row: EvidenceRow, speed: float) -> None:
    """Scaled by any speed: within 4.7 % it matches, beyond 5.1 % it does not, either way."""
    verdict = report(a_round(row, speed), row).verdict
    if 0.953 < speed < 1.049:
        assert "matches" == verdict
    if not 0.952 < speed < 1.051:
        assert ("faster" if speed > 1 else "slower") == verdict


@settings(deadline=None)
@given(
    st.sampled_from(FIGURES),
    st.floats(0.5, 5000),
    st.floats(0.5, 5000),
    st.none() | st.tuples(st.floats(0.7, 1.0), st.floats(1.0, 1.4)),
)
def test_verdicts_are_symmetric(
    figure: Any, one: float, other: float, factors: tuple[float, float] | None
) -> None:
    """Measured and published swapped, slower becomes faster and a match stays a match."""
    opposite = {"slower": "faster", "faster": "slower"}

    def verdict(measured: float, published: float) -> str:
        between = (measured * factors[0], measured * factors[1]) if factors else None
        return judged(figure, measured, published, between)[0]

    edges = (1.05, max(factors[1], 1 / factors[0]) if factors else 1.05)
    assume(all(abs(max(one / other, other / one) - edge) > 1e-9 for edge in edges))
    there, back = verdict(one, other), verdict(other, one)
    assert opposite.get(there, there) == back


def test_lower_is_better_where_it_is() -> None:
    """A longer prompt time is slower, a higher speed is faster."""
    seen = report(
        a_round(published_method__long_prompt_46k_s=19.0, published_method__single_user_tok_s=200.0)
    )
    assert ("slower", 100.0) == (
        line(seen, "long_prompt_46k_s").verdict,
        line(seen, "long_prompt_46k_s").difference_pct,
    )
    assert "faster" == line(seen, "single_user_tok_s").verdict
    assert "slower" == seen.verdict
    assert "some speeds are slower and some faster" in seen.warnings


def test_memory_and_load_time_are_not_compared() -> None:
    """A round does not measure them, so that a report has the four figures alone."""
    assert {*SPEEDS, "ttft_ms"} == {row.figure for row in report(a_round()).rows}


def test_ttft_has_a_floor_and_does_not_decide() -> None:
    """Up to 20 ms is no difference; more is shown, said, and does not change the verdict."""
    near = a_round(published_method__ttft_ms=106 + TTFT_FLOOR_MS)
    assert "matches" == line(report(near), "ttft_ms").verdict
    far = report(a_round(published_method__ttft_ms=300.0))
    assert ("slower", "matches") == (line(far, "ttft_ms").verdict, far.verdict)
    assert any(text.startswith("first token: slower") for text in far.warnings)


def test_differences_within_the_repeats_are_none() -> None:
    """8 % slower on average, with repeats that reach the published speed: no difference."""
    single = {"n": 6, "ttft_ms": None, "ttfo_ms": None, "e2e_tok_s": None}
    speeds = single | {"decode_tok_s": spread(94.0, 0.9, 1.1, n=6)}
    seen = line(
        report(a_round(single=speeds, published_method__single_user_tok_s=94.0)),
        "single_user_tok_s",
    )
    assert ("matches", "within the spread of its own repeats") == (seen.verdict, seen.note)
    assert (84.6, 103.4) == seen.measured_range


def test_repeats_that_scatter_prove_nothing() -> None:
    """Within a spread of 40 % there is no match to report; far outside it is still slower."""
    single = {"n": 6, "ttft_ms": None, "ttfo_ms": None, "e2e_tok_s": None}
    wild = single | {"decode_tok_s": spread(80.0, 0.7, 1.4, n=6)}
    seen = line(
        report(a_round(single=wild, published_method__single_user_tok_s=80.0)), "single_user_tok_s"
    )
    assert "not_comparable" == seen.verdict
    assert "repeat it" in seen.note
    far = report(a_round(single=wild, published_method__single_user_tok_s=40.0))
    assert "slower" == line(far, "single_user_tok_s").verdict


def test_one_repeat_has_no_range() -> None:
    """A range needs two values; true figures stand beside the compared ones."""
    seen = line(report(a_round()), "four_users_total_tok_s")
    assert None is seen.measured_range
    assert 240.0 == seen.true_value


def test_doubtful_figures_are_compared_and_do_not_decide() -> None:
    """GPT-OSS: half the published speed of one user changes nothing, half the total does."""
    half = report(a_round(DOUBTED, published_method__single_user_tok_s=48.0), DOUBTED)
    seen = line(half, "single_user_tok_s")
    assert ("slower", "matches") == (seen.verdict, half.verdict)
    assert seen.note.startswith("does not decide: ")
    assert "at most 46.6 tok/s" in seen.note
    slow = report(a_round(DOUBTED, published_method__four_users_total_tok_s=75.0), DOUBTED)
    assert "slower" == slow.verdict


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stability__failed": 2, "stability__errors": ("one user: cut",)}, "2 of 13"),
        ({"stability__restarted": True}, "restarted"),
        ({"stable": False}, "stability"),
    ],
)
def test_any_failure_or_restart_is_unstable(changes: dict[str, Any], says: str) -> None:
    """C105, C117: however fast the rest was."""
    seen = report(a_round(speed=1.2, **changes))
    assert "unstable" == seen.verdict
    assert says in seen.summary


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "school"}, "method school"),
        ({"server__context_tokens": 32768}, "32,768 tokens"),
        ({"smoke__words": False, "smoke__message": "it repeats '!'"}, "no words"),
        ({"warnings": ("other_traffic: 9000 tokens, this round 300",)}, "somebody else"),
        ({"warnings": ("host_degraded: the clock fell",)}, "lowered clocks"),
        ({"warnings": ("wrong_model: asked for a",)}, "another model"),
        ({"published_method__single_user_tok_s": None, "single": None}, "not measured"),
    ],
)
def test_what_cannot_be_compared_at_all(changes: dict[str, Any], says: str) -> None:
    """C119 and others: unknown is a third answer, with its reason, and never a match."""
    nothing = {f"published_method__{name}": None for name in (*SPEEDS, "ttft_ms")}
    more = nothing if "published_method__single_user_tok_s" in changes else {}
    seen = report(a_round(**{**more, **changes}))
    assert "not_comparable" == seen.verdict
    assert says in seen.summary
    assert all(row.verdict == "not_comparable" for row in seen.rows)


def test_without_a_published_row() -> None:
    """A recipe that nobody measured has nothing to compare with; its figures are shown."""
    seen = report(a_round(), None)
    assert "not_comparable" == seen.verdict
    assert "no published row" in seen.summary
    assert 102.3 == line(seen, "single_user_tok_s").measured


@pytest.mark.parametrize(
    ("figure", "changes", "says"),
    [
        ("single_user_tok_s", {"single__comparable": False}, "too short"),
        ("single_user_tok_s", {"warnings": ("hidden_reasoning: 880 tokens",)}, "not streamed"),
        ("single_user_tok_s", {"warnings": ("published_blind: x",)}, "reasons where"),
        ("ttft_ms", {"warnings": ("published_blind: x",)}, "reasons where"),
        (
            "four_users_total_tok_s",
            {"concurrent__users": 2, "published_method__four_users_total_tok_s": None},
            "with 2 users",
        ),
        (
            "four_users_total_tok_s",
            {"concurrent__failed": 3, "published_method__four_users_total_tok_s": None},
            "3 of 4 requests failed",
        ),
        (
            "long_prompt_46k_s",
            {"long_prompt__state": "not_supported", "long_prompt__reason": "needs 46512"},
            "needs 46512",
        ),
        ("long_prompt_46k_s", {"warnings": ("cached_long_prompt: x",)}, "a cache"),
    ],
)
def test_one_figure_that_cannot_be_compared(
    figure: str, changes: dict[str, Any], says: str
) -> None:
    """C100, C110, C111, C117: that figure alone is left out, the others decide, and it is said."""
    seen = report(a_round(**changes))
    row = line(seen, figure)
    assert "not_comparable" == row.verdict
    assert says in row.note
    assert "matches" == seen.verdict
    if figure in SPEEDS:
        assert any("rests on less" in text for text in seen.warnings)


def test_hidden_reasoning_on_both_sides_is_like_with_like() -> None:
    """The blind spot of the published method does not void rows that were published with it."""
    seen = report(a_round(DOUBTED, warnings=("published_blind: x",)), DOUBTED)
    assert "matches" == line(seen, "single_user_tok_s").verdict


def test_a_figure_that_was_not_published() -> None:
    """It is shown as measured and decides nothing."""
    row = ROW.model_copy(
        update={"figures": ROW.figures.model_copy(update={"long_prompt_46k_s": None})}
    )
    seen = line(report(a_round(), row), "long_prompt_46k_s")
    assert ("not_comparable", "not published", 9.5, None) == (
        seen.verdict,
        seen.note,
        seen.measured,
        seen.difference_pct,
    )


def test_the_summary_says_it_in_plain_words() -> None:
    """What is slower, by how much, against what; and that it was simulated."""
    seen = report(a_round(speed=0.7, simulated=True))
    assert seen.simulated
    assert (
        "Simulated: slower than published: one user 71.61 tok/s (published 102.3, -30.0 %); "
        "four users together 168 tok/s (published 240, -30.0 %); "
        "46K prompt 13.57 s (published 9.5, +42.9 %)."
    ) == seen.summary
    assert report(a_round()).summary.startswith("As fast as published: one user 102.3 tok/s")


def test_warnings_beside_the_verdict() -> None:
    """Another recipe's round, a part that was not run, and the round's own warnings."""
    round_ = a_round(recipe_id="another", stable=None, warnings=("field_dropped: seed",))
    seen = report(round_)
    assert "the round measured another, not " + AGENTS in seen.warnings
    assert any("stability was not tested" in text for text in seen.warnings)
    assert "field_dropped: seed" == seen.warnings[-1]


def test_markdown() -> None:
    """A table of four figures, the verdict, what it rests on, and nothing that breaks a table."""
    round_ = a_round(simulated=True, server__model="m|x\ny", warnings=("w: a|b",))
    text = markdown(report(round_), round_)
    assert f"## {AGENTS}: matches" in text
    assert "**Simulated**" in text
    table = [row for row in text.splitlines() if row.startswith("|")]
    assert 6 == len(table)
    assert {8} == {row.count("|") for row in table}
    assert "m\\|x y on vllm 0.31.0" in text
    assert "| single_user_tok_s (tok/s) | 102.3 | 102.3 | 102.3 to 102.3 |" in text
    assert "- w: a\\|b" in text


def test_markdown_without_figures() -> None:
    """Nothing measured and nothing published: dashes, no error."""
    nothing = {f"published_method__{name}": None for name in (*SPEEDS, "ttft_ms")}
    round_ = a_round(single=None, concurrent=None, long_prompt=None, **nothing)
    text = markdown(report(round_, None, None), round_)
    assert "## m: not_comparable" in text
    assert "| ttft_ms (ms) | - | - |  | - |  | not comparable |" in text


@pytest.mark.parametrize("absurd", ["-1e308", "NaN", "Infinity", "-0.1", "1e300"])
@pytest.mark.parametrize(
    "figure", ["single.decode_tok_s.median", "long_prompt.wall_s", "published_method.ttft_ms"]
)
def test_a_file_with_an_absurd_figure_is_no_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: str, absurd: str
) -> None:
    """Figures are finite and not negative: the file is refused, and the place is named."""
    data = json.loads(full_round().model_dump_json())
    *parents, last = figure.split(".")
    place = data
    for parent in parents:
        place = place[parent]
    place[last] = "ABSURD"
    path = tmp_path / "round.json"
    path.write_text(json.dumps(data).replace('"ABSURD"', absurd))
    assert 1 == main(["report", str(path), "--json"])
    assert figure in json.loads(capsys.readouterr().out)["error"]["message"]
