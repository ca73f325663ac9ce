"""The speed forecast: its arithmetic, its calibration on one method, and its honesty."""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import sparkrecipes as sr
from benchmarks.fit_forecast import (
    acceptance_rows,
    error_rows,
    measured_rows,
    summary_rows,
)
from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli.main import main
from sparkrecipes.memory import FitRequest
from sparkrecipes.operations.sizing import with_forecast
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.memory import Forecast
from sparkrecipes.schema.recipe import Speculative
from sparkrecipes.speed import (
    CALIBRATED,
    FACTORS,
    Measured,
    Shape,
    calibrate,
    forecast,
    left_out_errors,
    shape_of,
    widest_factors,
)
from sparkrecipes.speed.rules import (
    Load,
    decode_tok_s,
    read_bytes,
    step_growth,
    tokens_a_step,
)
from tests.support.models import CATALOG, SPARK, model
from tests.test_memory_estimate import asked

BANDWIDTH = 273.0
DENSE_RECIPE = "llama-3.3-70b-instruct-nvfp4-vllm"
DENSE = Shape((40e9, 40e9), 70e9, 70e9, 163_840)
MIXTURE = Shape((2.5e9, 2.8e9), 3e9, 35e9, 10_240)
PAGE = (Path(__file__).parents[1] / "docs" / "speed.md").read_text()


@cache
def october() -> list[Measured]:
    """The rows that the forecast is calibrated on."""
    return measured_rows(open_catalog())


@cache
def errors() -> list[tuple[Measured, str, float]]:
    """The errors on models left out."""
    return left_out_errors(october(), BANDWIDTH)


def told(shape: Shape, *, users: int = 1, context: int = 131072, drafts: int = 0) -> Forecast:
    """Forecast a shape."""
    spec = Speculative(method="mtp", num_speculative_tokens=drafts) if drafts else None
    return forecast(shape, BANDWIDTH, context_tokens=context, users=users, speculative=spec)


def test_the_constants_are_those_of_the_evidence() -> None:
    """The calibration in the code is what the October rows give."""
    found = calibrate(october(), BANDWIDTH)
    for name, value in found._asdict().items():
        assert value == pytest.approx(getattr(CALIBRATED, name), rel=0.005)


def test_the_ranges_hold_every_model_left_out() -> None:
    """Each factor is the largest error, rounded up: no row lies outside of its own range."""
    worst = widest_factors(errors())
    for name, value in worst._asdict().items():
        assert value <= getattr(FACTORS, name) * 1.001
        assert value == pytest.approx(getattr(FACTORS, name), rel=0.005)


def test_only_figures_without_a_caveat_and_builds_that_are_named_are_used() -> None:
    """gpt-oss's doubtful speeds of one user are left out, and NIM rows that name no build."""
    by_name = {row.recipe: row for row in october()}
    assert by_name["gpt-oss-120b-mxfp4-vllm"].single_user_tok_s is None
    assert 124.9 == by_name["gpt-oss-120b-mxfp4-vllm"].four_users_total_tok_s
    assert "llama-3.1-8b-instruct-nim" not in by_name
    assert 21 == len(by_name)


@pytest.mark.parametrize("table", ["summary", "errors", "acceptance"])
def test_the_tables_of_the_docs_are_current(table: str) -> None:
    """docs/speed.md shows what benchmarks/fit_forecast.py prints."""
    rows = {
        "summary": summary_rows(errors()),
        "errors": error_rows(errors()),
        "acceptance": acceptance_rows(open_catalog(), october(), BANDWIDTH),
    }[table]
    assert "\n".join(rows) in PAGE


def test_a_dense_70b_fits_but_is_too_slow_to_use() -> None:
    """2.7 to 4 tok/s were published of dense 70B models: the range holds 4, and it is said."""
    answer = sr.estimate_memory(
        "llama-3.3-70b-instruct-nvfp4", context_tokens=131072, users=2, kv_cache_dtype="fp8"
    )
    found = answer.forecast
    assert found is not None
    assert ("fits", "estimated", False) == (answer.verdict, found.basis, found.usable)
    assert found.single_user_tok_s[0] < 4 < found.single_user_tok_s[1]
    assert found.single_user_tok_s_at_context[0] < 2.7 < found.single_user_tok_s_at_context[1]
    (line,) = (w for w in answer.warnings if "too slow to use" in w)
    assert line.startswith("fits, but")
    too_many = sr.estimate_memory(
        "llama-3.3-70b-instruct-nvfp4", context_tokens=131072, users=4, kv_cache_dtype="fp8"
    )
    assert any(w.startswith("too slow to use") for w in too_many.warnings)


def test_what_is_quick_is_not_warned_of() -> None:
    """A mixture of 3 active billions: usable, no warning, and the evidence goes first."""
    answer = sr.estimate_memory("qwen3.6-35b-a3b-nvfp4-vllm-mtp")
    assert answer.forecast is not None
    assert answer.forecast.usable is True
    assert not any("slow" in line for line in answer.warnings)
    assert any("published figures go before" in note for note in answer.forecast.notes)
    low, high = answer.forecast.single_user_tok_s
    assert low < 102.3 < high


def test_a_range_on_both_sides_of_useful_is_unknown() -> None:
    """27 dense billions: 11 tok/s were measured; neither slow nor quick for sure."""
    answer = sr.estimate_memory("qwen3.8-27b-nvfp4", users=1)
    assert answer.forecast is not None
    assert answer.forecast.usable is None


def test_what_is_not_known_is_not_forecast() -> None:
    """No active parameters, no weights or no bandwidth: null, never a guess."""
    found = model("llama-3.3-70b-instruct")
    assert shape_of(found.model_copy(update={"params_active_b": None}), (1, 2), 8) is None
    assert shape_of(found, None, 8) is None
    request: FitRequest = asked("qwen3-8b-fp8-vllm")
    no_bandwidth: Machine = SPARK.model_copy(update={"memory_bandwidth_gb_s": None})
    answer = sr.estimate_memory("qwen3-8b-fp8-vllm").model_copy(update={"forecast": None})
    assert with_forecast(answer, request, no_bandwidth).forecast is None
    assert with_forecast(answer, replace(request, published=None), SPARK).forecast is not None


def test_the_bytes_of_a_token() -> None:
    """Llama 3.3 70B by hand: 68.95 billions at 0.55 bytes, and a head of 2.1 GB at 16 bits."""
    table = 128256 * 8192
    read = read_bytes(41.5e9, 70e9, 70e9, table)
    each = (41.5e9 - 4 * table) / (70e9 - 2 * table)
    assert read == pytest.approx(each * (70e9 - table) + 2 * table)
    assert 38e9 < read < 41.5e9


def test_no_forecast_beats_the_bandwidth() -> None:
    """One user of a dense model: at most bandwidth over the weights."""
    assert told(DENSE).single_user_tok_s[1] <= 273 / 40 + 0.01
    assert told(MIXTURE).single_user_tok_s[1] <= 273 / 2.5 + 0.5


def test_tokens_of_a_step_are_a_geometric_sum() -> None:
    """Three drafts at 0.5: 1 + 0.5 + 0.25 + 0.125; none: one."""
    assert (1.0, 1.875) == (tokens_a_step(0, 0.5), tokens_a_step(3, 0.5))


def test_a_dense_step_does_not_grow_and_a_mixtures_does() -> None:
    """Several tokens read the same dense weights, but other experts."""
    assert 1.0 == step_growth(DENSE, 16, 0.2)
    assert 1.0 == step_growth(MIXTURE, 1, 0.2)
    assert 1.0 < step_growth(MIXTURE, 4, 0.2) < 4


def test_a_full_context_reads_its_cache() -> None:
    """Llama 3.3 70B at 131,072 tokens of fp8: 21.5 GB more a step beside 40."""
    short = decode_tok_s(DENSE, 40e9, Load(1, 0, 0), CALIBRATED, BANDWIDTH)
    full = decode_tok_s(DENSE, 40e9, Load(1, 0, 131072), CALIBRATED, BANDWIDTH)
    assert short / full == pytest.approx((40e9 + 131072 * 163_840) / 40e9)


def test_more_users_than_measured_widen_the_low_side() -> None:
    """Beyond four each token may read experts of its own, and that is said."""
    four, five = told(MIXTURE, users=4), told(MIXTURE, users=5)
    spread = [f.users_total_tok_s[1] / f.users_total_tok_s[0] for f in (four, five)]
    assert spread[0] < spread[1]
    assert any("more than 4 users" in note for note in five.notes)


def test_speculation_is_told_by_acceptance() -> None:
    """Faster with more drafts taken; none of it without speculation."""
    rates = told(MIXTURE, drafts=2).by_acceptance
    assert ["30", "50", "70", "90"] == list(rates)
    assert sorted(rates.values()) == list(rates.values())
    assert {} == told(MIXTURE).by_acceptance


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e8, 4e11),
    st.floats(0.01, 1.0),
    st.integers(0, 200_000),
    st.integers(1, 64),
    st.integers(1, 262_144),
    st.integers(0, 15),
)
def test_ranges_are_ordered_and_context_never_helps(
    weights: float, share: float, kv: int, users: int, context: int, drafts: int
) -> None:
    """0 < low <= high everywhere, and a full context is never faster."""
    shape = Shape((weights * share, weights * share * 1.2), 1e9 * share, 1e9, kv)
    found = told(shape, users=users, context=context, drafts=drafts)
    ranges = [
        found.single_user_tok_s,
        found.single_user_tok_s_at_context,
        found.users_total_tok_s,
        found.users_total_tok_s_at_context,
        found.prefill_tok_s,
        found.prefill_s_at_context,
        *found.by_acceptance.values(),
    ]
    assert all(0 < low <= high for low, high in ranges)
    assert found.single_user_tok_s_at_context[0] <= found.single_user_tok_s[0]
    assert found.users_total_tok_s_at_context[1] <= found.users_total_tok_s[1]


@pytest.fixture(scope="module")
def dense_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped catalog with a recipe of Llama 3.3 70B, as a user would add it."""
    folder: Path = tmp_path_factory.mktemp("catalog")
    shutil.copytree(CATALOG, folder, dirs_exist_ok=True)
    recipe = yaml.safe_load((CATALOG / "recipes" / "qwen3-8b-fp8-vllm.yaml").read_text())
    recipe["serving"]["users"] = 2
    recipe |= {
        "title": "Llama 3.3 70B",
        "model": "llama-3.3-70b-instruct",
        "quant": "nvfp4",
        "weights": {"repo": "nvidia/Llama-3.3-70B-Instruct-NVFP4", "revision": None},
        "flags": [],
        "evidence": [],
    }
    (folder / "recipes" / f"{DENSE_RECIPE}.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def test_a_list_shows_an_estimate_where_nobody_measured(
    dense_catalog: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Marked, never beside a published figure; the answer from the cache is the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = sr.list_recipes(everything=True, catalog=dense_catalog)
    assert first == sr.list_recipes(everything=True, catalog=dense_catalog)
    rows = {row.id: row for row in first.recipes}
    for row in rows.values():
        assert (row.published is None) == (row.estimated is not None)
    dense = rows[DENSE_RECIPE].estimated
    assert dense is not None
    assert ("estimated", False) == (dense.basis, dense.usable)
    alone = sr.estimate_memory(DENSE_RECIPE, catalog=dense_catalog).forecast
    assert alone is not None
    assert (alone.single_user_tok_s, alone.users_total_tok_s) == (
        dense.single_user_tok_s,
        dense.users_total_tok_s,
    )


def test_pages_mark_what_is_estimated_and_what_is_too_slow(
    dense_catalog: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    """A dense 70B: said in list, show, check and fit alike."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = ["--catalog", str(dense_catalog)]

    def page(*words: str) -> str:
        main([*words, *place])
        return " ".join(capsys.readouterr().out.split())

    for _ in ("made", "from the cache"):
        listed = page("list")
        assert f"{DENSE_RECIPE} (untested, too slow to use) ~3.4-7.1" in listed
        assert "~ estimated, not measured" in listed
    assert "estimated, not measured: 3.35 to 7.1 tok/s for one user; too slow to use" in page(
        "show", DENSE_RECIPE
    )
    assert "fits, but too slow to use" in page("check", DENSE_RECIPE, "--offline")
    assert "fits, but too slow to use" in page("fit", DENSE_RECIPE, "--offline")
    assert "estimated" not in page("show", "qwen3-8b-fp8-vllm")
