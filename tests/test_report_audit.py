"""The audit of published rows: arithmetic on figures, whatever a row is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli import main
from sparkrecipes.operations import audit_published
from sparkrecipes.reports import audit
from sparkrecipes.schema.evidence import Evidence
from sparkrecipes.schema.report import AuditRow, PublishedAudit

ROOT = Path(__file__).parent.parent
FACTS = json.loads((ROOT / "tests/data/facts/october_round.json").read_text())
SET = open_catalog().evidence["standard-round-2026-10"]


def rows_of(**figures: float) -> PublishedAudit:
    """The audit of one row of the catalog with other figures, under a name that says nothing."""
    row = next(row for row in SET.rows if not row.caveats)
    changed = row.figures.model_copy(update=figures)
    made = row.model_copy(update={"id": "planted", "figures": changed})
    return audit([SET.model_copy(update={"rows": (made,)})])


def test_exactly_the_rows_of_that_shape_are_flagged() -> None:
    """All 23 rows, recomputed here from the facts file: flagged is what hides its first tokens."""
    expected = set()
    for row in FACTS["rows"]:
        figures = row["measured"]
        speed, wait_s = figures["single_user_tok_s"], figures["ttft_ms"] / 1000
        whole = 300 / (300 / speed + wait_s)
        scaling = figures["four_users_total_tok_s"] / whole
        if speed > 1.1 * whole or not 0.95 <= scaling <= 4.2:
            expected.add(row["id"])
    seen = audit_published()
    assert 23 == len(seen.rows)
    assert expected == set(seen.flagged)
    assert 5 == len(seen.flagged)
    assert all(row_id.startswith("gpt-oss") for row_id in seen.flagged)
    assert () == seen.unmarked


def row_named(seen: PublishedAudit, name: str) -> AuditRow:
    """One row of an audit."""
    return next(row for row in seen.rows if row.recipe_id == name)


def test_the_arithmetic_is_shown() -> None:
    """300 / 96.2 + 3.319 s = 6.44 s, 46.6 tok/s; four users 3.23 times that."""
    row = row_named(audit_published(), "gpt-oss-20b-mxfp4-vllm")
    assert (6.44, 46.6, 2.06, 3.23) == (
        row.whole_request_s,
        row.whole_request_tok_s,
        row.overstated,
        row.scaling,
    )
    assert "300 / 96.2 + 3.319 s = 6.44 s" in row.reasons[0]
    assert "at most 46.6 tok/s" in row.reasons[0]
    assert "150.6 / 4 = 37.6" in row.reasons[1]
    assert "0.02 s, not 3.319 s" in row.reasons[2]


def test_four_users_a_little_above_four_times_one_are_noted() -> None:
    """Qwen3-8B: 4.12 of the published speed, 4.15 of the whole request: noise, not a flag."""
    row = row_named(audit_published(), "qwen3-8b-fp8-vllm")
    assert (False, 4.15) == (row.flagged, row.scaling)
    assert "4.15 times" in row.notes[0]


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ({"single_user_tok_s": 80.0, "ttft_ms": 900.0, "four_users_total_tok_s": 160.0}, "1.24"),
        (
            {"single_user_tok_s": 20.0, "ttft_ms": 50.0, "four_users_total_tok_s": 90.0},
            "cannot get more than 4 times",
        ),
        (
            {"single_user_tok_s": 50.0, "ttft_ms": 50.0, "four_users_total_tok_s": 40.0},
            "cannot get less than one",
        ),
    ],
)
def test_a_planted_row_is_flagged_by_its_figures(figures: dict[str, float], says: str) -> None:
    """No row is known by name: a row of another name and such figures is found too."""
    seen = rows_of(**figures)
    assert ("planted",) == seen.flagged == seen.unmarked
    assert says in " ".join(seen.rows[0].reasons)


def test_a_healthy_row_is_not_flagged() -> None:
    """A short wait, and four users between one and four times one."""
    seen = rows_of(single_user_tok_s=50.0, ttft_ms=120.0, four_users_total_tok_s=150.0)
    assert () == seen.flagged
    assert () == seen.rows[0].reasons == seen.rows[0].notes


def test_rows_without_the_figures_are_left_out_and_said() -> None:
    """Nothing is reckoned from nothing; and other methods are not of this arithmetic."""
    seen = rows_of(ttft_ms=None)  # type: ignore[arg-type]
    assert ((), ("planted: no ttft_ms",)) == (seen.rows, seen.left_out)
    other: Evidence = SET.model_copy(update={"method": "school"})
    assert () == audit([other]).rows


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    """Run a report as JSON."""
    code = main(["report", *argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_says_what_it_is_and_fails_where_a_caveat_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 0: each flagged row bears its caveat. A planted row in a catalog of one's own: 1."""
    code, answer = run(capsys, "--audit-published")
    assert 0 == code
    assert "not a measurement" in answer["basis"]
    catalog = shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    file = catalog / "evidence/standard-round-2026-10.yaml"
    text = file.read_text()
    row = text[text.index("  - id: qwen3.8-27b-nvfp4-vllm\n") :].replace(
        "ttft_ms: 202", "ttft_ms: 9202", 1
    )
    file.write_text(text[: text.index("  - id: qwen3.8-27b-nvfp4-vllm\n")] + row)
    code, answer = run(capsys, "--audit-published", "--catalog", str(catalog))
    assert (1, ["qwen3.8-27b-nvfp4-vllm"]) == (code, answer["unmarked"])
    assert 0 == main(["report", "--audit-published"])
    assert "5 of 23 rows are flagged" in capsys.readouterr().out
