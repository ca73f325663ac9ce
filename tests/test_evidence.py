"""Every published figure of the three sources stands in the catalog, value for value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import Catalog, data_root, open_catalog, validate
from sparkrecipes.schema.evidence import Evidence
from sparkrecipes.schema.readings import Ladder, span

FACTS = Path(__file__).parent / "data" / "facts"
SCHOOL = json.loads((FACTS / "school_bench.json").read_text())
SURVEY = json.loads((FACTS / "survey.json").read_text())
ROUND = json.loads((FACTS / "standard_round.json").read_text())

Leaves = dict[str, float]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout."""
    return open_catalog(data_root() / "catalog")


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Walk to every value of a JSON tree, with its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from leaves(value, f"{path}[{at}]")
    else:
        yield path, tree


def numbers(tree: Any) -> Leaves:
    """Return every number of a JSON tree by its path; true and false are none."""
    found = leaves(tree)
    return {path: v for path, v in found if isinstance(v, int | float) and v is not True}


def quantity(found: Evidence, key: str) -> Any:
    """Return a published quantity of a set."""
    return next(one.value for one in found.quantities if one.id == key)


def ladder(found: Ladder) -> dict[str, Any]:
    """Write a ladder as the facts have it: one list a figure."""
    names = ("total_tok_s", "per_user_tok_s", "latency_p50_s", "latency_p95_s")
    columns = {name: [getattr(point, name) for point in found.points] for name in names}
    return {"max_tokens": found.max_tokens, **columns}


def school_of(catalog: Catalog) -> dict[str, Any]:
    """Write the school's set in the shape of its facts, numbers only."""
    found = catalog.evidence["school-2026-06"]
    single = [m for m in found.single_stream if not m.id.startswith("gemma")]
    gemma = [m for m in found.single_stream if m.id.startswith("gemma")]
    (positions,) = found.acceptance_by_position
    sizes = [("bf16", "bf16"), ("fp8", "fp8"), ("nvfp4", "nvfp4")]
    shares = [share.pct for share in positions.positions]
    return {
        "host": {
            "memory_usable_gb_published": quantity(found, "memory-usable"),
            "memory_nominal_gb": quantity(found, "memory-nominal"),
        },
        "memory_budget": {
            "gpu_memory_utilization": quantity(found, "utilization"),
            "reserved_gb": quantity(found, "reserved"),
            "weights_gb": quantity(found, "weights"),
            "kv_pool_gb": quantity(found, "kv-pool"),
            "kv_capacity_tokens": quantity(found, "kv-capacity"),
            "full_context_requests_131k": quantity(found, "full-contexts"),
            "max_num_seqs": quantity(found, "max-num-seqs"),
        },
        "single_stream": [{"tok_s": m.tok_s} for m in single],
        "concurrency": {
            "levels": [point.users for point in found.ladders[0].points],
            "scenarios": [ladder(one) for one in found.ladders],
        },
        "gemma4": {
            "rows": [{"tok_s": m.tok_s} for m in gemma],
            "acceptance_by_position_pct": dict(
                zip(("first", "third", "fourth"), shares, strict=True)
            ),
            "sizes": [
                {
                    "bits": quantity(found, f"gemma-31b-{slug}-bits"),
                    "size_gb": quantity(found, f"gemma-31b-{slug}-size"),
                }
                for slug, _ in sizes
            ],
        },
    }


def survey_of(catalog: Catalog) -> dict[str, Any]:
    """Write the survey's set in the shape of its facts, numbers only."""
    found = catalog.evidence["survey-qwen36"]
    names = {"users": "streams", "tpot_ms": "tpot_ms"}
    names |= {name: name for name in ("total_tok_s", "per_user_tok_s")}
    loads = [
        {theirs: getattr(one.points[0], ours) for ours, theirs in names.items()}
        for one in found.ladders
    ]
    return {
        "single_stream": [{"tok_s": list(span(m.tok_s))} for m in found.single_stream],
        "concurrency": loads,
        "reference": {
            "memory_bandwidth_gb_s": quantity(found, "bandwidth"),
            "dense_70b_tok_s": quantity(found, "dense-70b"),
            "active_params_b": quantity(found, "active-params"),
            "total_params_b": quantity(found, "total-params"),
        },
    }


def round_row(catalog: Catalog, key: str) -> dict[str, Any]:
    """Write a row of the October round in the shape of its facts, numbers only."""
    recipe = catalog.recipe(key)
    model, row = catalog.model(recipe.model), catalog.october_row(recipe)
    assert row is not None
    measured = {
        **row.figures.model_dump(),
        "context_tokens": row.context_tokens,
        "users": row.users,
    }
    spec = recipe.speculative
    told = {"num_speculative_tokens": spec.num_speculative_tokens} if spec else {}
    for name in ("prompt_lookup_max", "prompt_lookup_min"):
        if spec and getattr(spec, name):
            told[name] = getattr(spec, name)
    return {
        "params_total_b": model.params_total_b,
        "params_active_b": model.params_active_b,
        "measured": measured,
        "speculative": told,
        "gpu_memory_utilization": recipe.serving.gpu_memory_utilization,
        "startup_timeout_s": recipe.startup_timeout_s,
    }


def round_of(catalog: Catalog) -> dict[str, Any]:
    """Write the October set and its recipes in the shape of the facts, numbers only."""
    found = catalog.evidence["standard-round-2026-10"]
    with_mtp, without = found.by_workload
    at = {(w.workload, w.temperature): w for w in with_mtp.workloads}
    kinds = dict.fromkeys(w.workload for w in with_mtp.workloads)
    llama = next(e for e in catalog.does_not_run if e.kind == "memory")
    return {
        "hardware": {
            "memory_nominal_gb": quantity(found, "memory-nominal"),
            "memory_usable_gb_published": quantity(found, "memory-usable"),
            "memory_bandwidth_gb_s": quantity(found, "bandwidth"),
        },
        "rows": [round_row(catalog, row["id"]) for row in ROUND["rows"]],
        "acceptance_qwen36_mtp": {
            "rows": [
                {
                    "without_mtp": at[kind, 0].without_speculation_tok_s,
                    "mtp_temp0": at[kind, 0].tok_s,
                    "mtp_temp07": at[kind, 0.7].tok_s,
                    "acceptance_temp0": at[kind, 0].acceptance_pct,
                    "acceptance_temp07": at[kind, 0.7].acceptance_pct,
                }
                for kind in kinds
            ],
            "sustained": {
                "minutes": with_mtp.sustained.minutes,
                "users": with_mtp.sustained.users,
                "without_mtp_tok_s": without.sustained.tok_s,
                "mtp_tok_s": with_mtp.sustained.tok_s,
                "acceptance": with_mtp.sustained.acceptance_pct,
                "failed_requests": {"mtp": with_mtp.sustained.failed_requests},
            },
        },
        "does_not_run": [{"context_tokens": llama.context_tokens, "users": llama.users}],
    }


@pytest.mark.parametrize(
    ("facts", "written"),
    [(SCHOOL, school_of), (SURVEY, survey_of), (ROUND, round_of)],
    ids=["school", "survey", "october"],
)
def test_every_published_figure_is_in_the_catalog(catalog, facts, written):
    """Each number of the facts is in the catalog at its place, and no other is put there."""
    expected, actual = numbers(facts), numbers(written(catalog))
    assert {} == {path: v for path, v in expected.items() if path not in actual}
    assert expected == {path: actual[path] for path in expected}
    assert len(expected) > 10


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NOT_FIGURES = re.compile(r"seed 00\d")
"""What the facts say of themselves."""


@pytest.mark.parametrize(
    ("facts", "key"),
    [(SCHOOL, "school-2026-06"), (SURVEY, "survey-qwen36")],
    ids=["school", "survey"],
)
def test_figures_inside_sentences_are_in_the_catalog_too(catalog, facts, key):
    """Numbers that the facts hold inside text are in the set, as numbers or in its text."""
    held = catalog.evidence[key].model_dump(mode="json")
    seen = {f"{value:.10g}" for value in numbers(held).values()} | set(figures_of(held))
    wanted = set(figures_of({k: v for k, v in facts.items() if k != "source"}))
    assert set() == wanted - seen
    assert len(wanted) >= 20


def figures_of(tree: Any) -> Iterator[str]:
    """Find the numbers inside every text of a JSON tree."""
    for _, value in leaves(tree):
        if isinstance(value, str):
            for number in NUMBER.findall(NOT_FIGURES.sub("", value)):
                yield number.replace(",", "")


def test_every_set_says_how_and_how_far_it_is_trusted(catalog):
    """Method, hardware, conditions, source and rank of trust; own measurement goes first."""
    ranks = {}
    for key, found in catalog.evidence.items():
        assert found.sources
        assert found.method_text
        assert found.hardware
        assert found.conditions is not None
        if key.startswith("contributed-"):
            assert found.trust_rank > 1
        else:
            ranks[key] = found.trust_rank
    assert ["standard-round-2026-10", "school-2026-06", "survey-qwen36"] == sorted(
        ranks, key=lambda key: ranks[key]
    )
    assert "sells" in catalog.evidence["survey-qwen36"].interest


def test_no_method_is_shared_by_two_sets(catalog):
    """Three publications, three ways of counting; what users contribute has its own."""
    published = {k: v for k, v in catalog.evidence.items() if not k.startswith("contributed-")}
    assert {"contributed"} >= {v.method for k, v in catalog.evidence.items() if k not in published}
    methods = [found.method for found in published.values()]
    assert sorted(methods) == sorted(set(methods))


def test_a_configuration_that_did_not_start_has_no_figure(catalog):
    """Aurora's EAGLE3 has neither a speed nor a guess of one."""
    failed = [
        m
        for found in catalog.evidence.values()
        for m in found.single_stream
        if m.outcome == "did_not_start"
    ]
    assert [("e", None)] == [(m.id, m.tok_s) for m in failed]


def test_every_measured_configuration_can_be_started_or_says_why_not(catalog):
    """Each configuration of the school and the survey is nearly one of the catalog's recipes."""
    near = {one.row for recipe in catalog.recipes.values() for one in recipe.resembles}
    for key in ("school-2026-06", "survey-qwen36"):
        found = catalog.evidence[key]
        configured = (*found.single_stream, *found.ladders, *found.acceptance_by_position)
        started = {f"{key}#{one.id}" for one in configured if one.id != "e"}
        assert started == {row for row in near if row.startswith(key)}


def test_what_nobody_ran_exactly_is_untested_and_says_what_differs(catalog):
    """A recipe beside the round has no published row, is untested, and names its sources."""
    beside = [r for r in catalog.recipes.values() if not r.evidence]
    assert len(beside) > 10
    for recipe in beside:
        assert "untested" == catalog.status(recipe)
        assert recipe.resembles
        assert all(near.differs for near in recipe.resembles)
        assert any("ntested" in caveat for caveat in recipe.caveats)
        assert any(source.startswith("https://") for source in recipe.sources)


def test_a_resembling_row_agrees_in_model_and_weights(catalog):
    """A recipe resembles rows of its own model; another quant or engine is said to differ."""
    for recipe in catalog.recipes.values():
        for near in recipe.resembles:
            key, _, row_id = near.row.partition("#")
            found = catalog.evidence[key]
            rows = (*found.single_stream, *found.ladders, *found.acceptance_by_position)
            row = next(row for row in rows if row.id == row_id)
            assert recipe.model == row.model
            differs = row.quant not in (None, recipe.quant)
            assert not differs or "weights" in near.differs, (recipe.id, row_id)


BROKEN = [
    ("duplicate_id", "  - id: b\n", "  - id: a\n"),
    ("duplicate_id", "  - id: rag\n", "  - id: a\n"),
    ("duplicate_id", "  - id: gemma-mtp-positions\n", "  - id: rag\n"),
    ("unknown_model", "model: qwen3.6-35b-a3b\n", "model: qwen3.6-35b\n"),
    ("wrong_value", "      - 25\n      - 40\n", "      - 40\n      - 25\n"),
]


@pytest.mark.parametrize(("code", "old", "new"), BROKEN)
def test_faults_of_an_evidence_file_are_found(tmp_path, catalog, code, old, new):
    """An id that is there twice in any lists, a model that is not there, a range upside down."""
    folder = tmp_path / "evidence"
    folder.mkdir()
    text = (catalog.root / "evidence" / "school-2026-06.yaml").read_text()
    assert old in text
    (folder / "school.yaml").write_text(text.replace(old, new, 1))
    report = validate([folder / "school.yaml"], catalog)
    assert [code] == [p.code for p in report.problems if p.level == "error"]
    assert report.problems[0].line > 1
