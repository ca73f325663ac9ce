"""Two rounds compared: an upgrade, another setting, or recipe against recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.cli import main
from sparkrecipes.operations import compare_rounds
from sparkrecipes.reports import compare_pair, html_of_pair, markdown_of_pair
from sparkrecipes.schema.report import PairRow, RoundComparison
from tests.support.full_round import full_round, spread
from tests.test_reports_page import HOSTILE, Seen

A = full_round()


def against(**changes: Any) -> RoundComparison:
    """A changed round against the usual one."""
    return compare_pair(A, full_round(**changes))


def row_named(seen: RoundComparison, name: str) -> PairRow:
    """One figure."""
    return next(row for row in seen.rows if row.figure == name)


def test_a_round_is_as_fast_as_itself() -> None:
    """Every figure matches, and no condition differs."""
    seen = compare_pair(A, A)
    assert "matches" == seen.verdict
    assert {"matches"} == {row.verdict for row in seen.rows}
    assert () == seen.conditions


@pytest.mark.parametrize(
    ("median", "share", "verdict"),
    [
        (105.0, 0.001, "matches"),  # 2.6 %: under 3 %, however narrow
        (108.0, 0.06, "matches"),  # 5.6 %, and the ranges meet
        (108.0, 0.005, "faster"),
        (97.0, 0.005, "slower"),
    ],
)
def test_a_difference_within_the_spread_or_under_3_percent_is_none(
    median: float, share: float, verdict: str
) -> None:
    """Ranges apart and medians more than 3 % apart, both."""
    row = row_named(against(single__decode_tok_s=spread(median, share)), "decode_tok_s")
    assert verdict == row.verdict


def test_the_same_both_ways_but_for_its_sign() -> None:
    """Swapped, slower is faster; for times more is slower."""
    b = full_round(long_prompt__wall_s_spread=spread(12.0, n=3))
    assert ("slower", "faster") == (compare_pair(A, b).verdict, compare_pair(b, A).verdict)


def test_one_repeat_has_no_spread() -> None:
    """Up to 15 % it is not known; beyond that it is told all the same."""
    once = {"median": 10.4, "min": 10.4, "max": 10.4, "n": 1, "values": (10.4,)}
    near = row_named(against(long_prompt__wall_s_spread=once), "long_wall_s")
    assert ("not_comparable", True) == (near.verdict, "measured once" in near.note)
    far = once | {"median": 14.0, "min": 14.0, "max": 14.0}
    assert "slower" == row_named(against(long_prompt__wall_s_spread=far), "long_wall_s").verdict


def test_what_differs_in_the_conditions_is_said() -> None:
    """Engine version, context, users, model, machine; only what differs."""
    seen = against(
        server__engine_version="0.32.0",
        server__context_tokens=32768,
        server__model="other",
        concurrent__users=2,
        machine={"id": "dgx-spark"},
    )
    assert {
        "engine version": ("0.31.0", "0.32.0"),
        "context, tokens": (None, "32,768"),
        "model": ("qwen3.6-35b-a3b", "other"),
        "users": ("4", "2"),
        "machine": (None, "dgx-spark"),
    } == {one.condition: (one.before, one.after) for one in seen.conditions}
    assert any("two tokenizers" in warning for warning in seen.warnings)
    assert "only one of the rounds has it" == row_named(seen, "users_4_aggregate_tok_s").note


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "school"}, "method october, the other by school"),
        ({"simulated": True}, "rehearsal"),
        ({"warnings": ("host_degraded: the clock fell",)}, "lowered clocks"),
        ({"warnings": ("wrong_model: x",)}, "second round says nothing: another model"),
    ],
)
def test_what_cannot_be_compared(changes: dict[str, Any], says: str) -> None:
    """Two methods, a rehearsal with a machine, a void round: unknown, with its reason."""
    seen = against(**changes)
    assert "not_comparable" == seen.verdict
    assert says in seen.summary
    assert {"not_comparable"} == {row.verdict for row in seen.rows}


def test_a_failed_request_in_either_is_unstable() -> None:
    """However fast the rest was; it is said in which."""
    seen = against(stability__failed=2, stability__errors=("4 users: cut",))
    assert "unstable" == seen.verdict
    assert "the second round: 2 of 140 requests failed, the first: 4 users: cut" in seen.summary


def test_doubtful_figures_do_not_decide() -> None:
    """Answers too short to compare, and a long prompt from a cache, are left out."""
    seen = against(single__comparable=False, warnings=("cached_long_prompt: x",))
    assert "not_comparable" == row_named(seen, "decode_tok_s").verdict
    assert "not_comparable" == row_named(seen, "long_wall_s").verdict
    assert "matches" == seen.verdict
    assert any("rests on less" in warning for warning in seen.warnings)


def test_small_differences_ask_for_a_restart() -> None:
    """Under 10 % one pair does not tell an upgrade from a restart."""
    seen = against(single__decode_tok_s=spread(109.0, 0.01))
    assert ("faster", True) == (seen.verdict, any("restart" in text for text in seen.warnings))
    assert not any("restart" in text for text in against().warnings)


def test_both_simulated_is_said() -> None:
    """Two rehearsals may be compared, and never pass for machines."""
    one, two = full_round(simulated=True), full_round(simulated=True)
    seen = compare_pair(one, two)
    assert (True, "matches") == (seen.simulated, seen.verdict)
    assert seen.summary.startswith("Simulated: the second round")


def test_written_as_markdown_and_as_a_page() -> None:
    """Both names, every figure, the conditions; hostile texts stay texts."""
    b = full_round(recipe_id=None, server__model=HOSTILE, server__engine_version="9|9")
    seen = compare_pair(A, b)
    text = markdown_of_pair(seen, A, b)
    assert "| one user (tok/s) | 102.3 (100.3-104.3) | 102.3 (100.3-104.3) | +0.0 % |" in text
    assert "- engine version: 0.31.0 -> 9\\|9" in text
    tags = Seen(html_of_pair(seen, A, b)).tags
    assert not {"script", "img", "link"} & set(tags)
    assert 2 + len([r for r in seen.rows if r.before and r.after]) == tags.count("svg")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two saved rounds, the second slower."""
    slower = full_round(single__decode_tok_s=spread(70.0))
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, round_ in zip(paths, (A, slower), strict=True):
        path.write_text(round_.model_dump_json())
    return [str(path) for path in paths]


def test_the_command_and_its_exit_codes(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two files: 1 for slower, 0 for faster; JSON, Markdown and a page; three files are misuse."""
    assert 1 == main(["report", *files, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert ("slower", files[1]) == (answer["verdict"], answer["after"]["file"])
    assert RoundComparison.model_validate_json(json.dumps(answer)) == compare_rounds(*files)
    assert 0 == main(["report", *reversed(files)])
    assert "faster: The second round is faster: one user" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert 1 == main(["report", *files, "--html", str(page)])
    assert page.read_text().startswith("<!doctype html>")
    assert 1 == main(["report", *files, "--markdown"])
    assert 2 == main(["report", *files, files[0]])
    assert 2 == main(["report", *files, "--recipe", "x"])


def test_incomparable_methods_exit_3(files: list[str]) -> None:
    """Unknown is a third answer."""
    Path(files[1]).write_text(full_round(method="school").model_dump_json())
    assert 3 == main(["report", *files])
