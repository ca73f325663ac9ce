"""Contradictions between publications follow from their figures, with what may explain them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.catalog.contradictions import contradictions, quantities, whole_request_tok_s
from sparkrecipes.cli.main import main
from sparkrecipes.operations import get_evidence, get_recipe
from sparkrecipes.schema.contradiction import Contradiction, EvidenceView, Reading
from sparkrecipes.schema.readings import Quantity

SHIPPED = data_root() / "catalog"
QWEN = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout."""
    return open_catalog(SHIPPED)


@pytest.fixture(scope="module")
def view(catalog: Catalog) -> EvidenceView:
    """Everything published of Qwen3.6-35B."""
    return catalog.evidence_view(catalog.recipe(QWEN))


def found(view: EvidenceView, kind: str, words: str) -> Contradiction:
    """Return the one contradiction of a kind whose subject has some words."""
    (one,) = [c for c in view.contradictions if c.kind == kind and words in c.subject]
    return one


def test_nvfp4_is_faster_in_one_source_and_slower_in_another(view):
    """F and G against C, 11 to 12 % slower; 97 against 28 to 64 in the survey."""
    one = found(view, "direction", "nvfp4 against fp8")
    assert "school-2026-06: nvfp4 is 11 to 12 % slower" in one.says
    assert "survey-qwen36: nvfp4 is 1.52 to 3.46 times as fast" in one.says
    assert {"f", "g", "c", "nvfp4", "fp8", "fp8-mtp3"} <= {r.row for r in one.readings}
    why = " | ".join(one.why)
    assert "engine: school-2026-06: vllm 0.20.2rc1; survey-qwen36: not stated" in why
    assert "survey-qwen36 has an interest: Tessera sells hosted Qwen 3.6" in why
    assert "way of counting: school-2026-06: completion tokens over the wall time" in why
    assert "what the engine was set for: school-2026-06: 131,072 tokens x 4 users" in why


def test_dflash_is_best_in_one_source_and_slower_in_others(view):
    """63.0 against 57.9 in the school, 67.8 against 102.3 in October, 50 in the survey."""
    one = found(view, "direction", "dflash against the best other")
    assert "school-2026-06: dflash is 1.09 times as fast" in one.says
    assert "standard-round-2026-10: dflash is 34 % slower" in one.says
    assert "survey-qwen36: dflash is" in one.says
    assert "speculation: standard-round-2026-10: dflash k=11" in " | ".join(one.why)
    assert "weights: standard-round-2026-10: nvfp4; school-2026-06: int4" in " | ".join(one.why)


def test_levels_that_are_far_apart_are_put_side_by_side(view):
    """FP8 52.9 and 28 to 30; NVFP4 with MTP 92 to 129 and 51; each figure with its row."""
    fp8 = found(view, "level", "fp8, without speculation, one user")
    assert "school-2026-06: 52.9 tok/s; survey-qwen36: 28 to 30 tok/s" == fp8.says
    nvfp4 = found(view, "level", "nvfp4, mtp, one user")
    assert "school-2026-06: 50.9 to 51.7 tok/s" in nvfp4.says
    assert [52.9, 28.0] == [r.low for r in fp8.readings]


def test_usable_memory_is_119_or_121(view, catalog):
    """A fact of the machine: shown for every model, with what each page printed."""
    one = found(view, "quantity", "memory that can be used")
    assert "standard-round-2026-10: 121 GB; school-2026-06: 119 GB" == one.says
    assert "119.63 to 121.69 GiB" in " ".join(one.why)
    other = catalog.evidence_view(catalog.recipe("qwen3-8b-fp8-vllm"))
    assert ["quantity"] == [c.kind for c in other.contradictions]


def test_gpt_oss_is_counted_in_two_ways(catalog):
    """Five rows: as published, and by their whole request; the reason is the caveat's."""
    for model, rows in (("gpt-oss-20b", 3), ("gpt-oss-120b", 2)):
        recipe = catalog.recipe(f"{model}-mxfp4-vllm")
        counted = [c for c in catalog.evidence_view(recipe).contradictions if c.kind == "counting"]
        assert rows == len(counted)
        assert all("reasoning phase" in c.why[0] for c in counted)
    view = catalog.evidence_view(catalog.recipe("gpt-oss-20b-mxfp4-vllm"))
    first = found(view, "counting", "gpt-oss-20b-mxfp4-vllm, one user")
    assert "published 96.2 tok/s; by its whole request at most 46.6" == first.says


def test_whole_request_needs_the_length_of_the_answer(catalog):
    """Without it nothing is reckoned."""
    row = catalog.evidence["standard-round-2026-10"].rows[1]
    assert whole_request_tok_s(catalog.evidence["school-2026-06"], row) is None


def test_close_figures_do_not_contradict(view):
    """FP8 with MTP, 57.9 and 64, and the bandwidth, 270 and 273, are near enough."""
    subjects = " | ".join(c.subject for c in view.contradictions)
    assert "fp8, mtp" not in subjects
    assert "bandwidth" not in subjects


def test_contradictions_follow_the_figures(catalog, tmp_path):
    """With other figures in the file the contradiction is gone, or another one is there."""
    shutil.copytree(SHIPPED, tmp_path / "catalog")
    path = tmp_path / "catalog" / "evidence" / "survey-qwen36.yaml"
    path.write_text(path.read_text().replace("tok_s: 97\n", "tok_s: 25\n"))
    changed = open_catalog(tmp_path / "catalog")
    view = changed.evidence_view(changed.recipe(QWEN))
    assert [] == [c for c in view.contradictions if "nvfp4 against fp8" in c.subject]
    assert "survey-qwen36: 25 to 120" in found(view, "level", "nvfp4, speculation").says


def test_show_puts_it_on_the_page_and_into_the_json(capsys):
    """--evidence shows every set, the contradictions, and what may explain them, once."""
    assert 0 == main(["show", QWEN, "--evidence"])
    page = capsys.readouterr().out
    for words in (
        "school-2026-06",
        "survey-qwen36",
        "direction",
        "why they may differ",
        "ranks beside",
    ):
        assert words in page
    assert 1 == page.count("completion tokens over the wall time of the request, time to first")
    assert get_recipe(QWEN).evidence is None
    shown = get_recipe(QWEN, evidence=True).evidence
    assert shown is not None
    assert {"standard-round-2026-10", "school-2026-06", "survey-qwen36"} == {
        reading.evidence
        for reading in shown.readings
        if not reading.evidence.startswith("contributed-")
    }


def test_rows_that_look_alike_are_told_apart(view, capsys):
    """Two temperatures of one prompt, and F and G, which a note of the source sets apart."""
    own = [r for r in view.readings if r.evidence == "standard-round-2026-10"]
    code = [r for r in own if r.row == QWEN and r.workload == "code"]
    assert [(0, 125.2), (0.7, 117.1)] == [(r.temperature, r.low) for r in code]
    assert 0 == main(["show", QWEN, "--evidence"])
    page = " ".join(capsys.readouterr().out.split())
    for words in (
        "code, temperature 0 ",
        "temperature 0.7",
        "(f)",
        "(g) The same with another MoE",
    ):
        assert words in page


def test_show_takes_a_model_or_nothing_for_the_evidence(capsys):
    """Every contradiction of the catalog, facts of the machine once; a model by its id."""
    assert 0 == main(["show", "--evidence", "--json"])
    whole = json.loads(capsys.readouterr().out)
    models = [view["model"] for view in whole["views"]]
    assert {"qwen3.6-35b-a3b", "gpt-oss-20b", "gpt-oss-120b"} <= set(models)
    assert "qwen3-8b-fp8" not in models
    assert ["quantity"] == [found["kind"] for found in whole["machines"]]
    assert whole == get_evidence().model_dump(mode="json")
    assert 0 == main(["show", "--evidence"])
    assert 1 == capsys.readouterr().out.count("memory that can be used")
    assert 0 == main(["show", "gemma-4-31b", "--evidence"])
    assert "n-gram k=5" in capsys.readouterr().out
    assert 2 == main(["show"])
    assert 2 == main(["show", "gemma-4-31"])


def test_a_recipe_that_nobody_measured_names_what_is_near(capsys):
    """The school's rows that it resembles, and what differs."""
    main(["show", "qwen3.6-35b-a3b-int4-vllm-dflash"])
    page = capsys.readouterr().out
    assert "untested" in page
    assert "school-2026-06#h2" in page
    assert "nightly 0.20.2rc1" in page
    assert "--evidence" in page


def test_a_catalog_without_other_sets_has_nothing_to_contradict(tmp_path):
    """The small catalog has one set: its readings are shown, and nothing is claimed."""
    small = open_catalog(Path(__file__).parent / "data" / "catalog")
    view = small.evidence_view(small.recipe("tiny-8b-fp8-vllm"))
    assert len(view.readings) == 4
    assert [] == [c for c in view.contradictions if c.kind != "counting"]


def measured(evidence: str, tok_s: float, **stated: Any) -> Reading:
    """Return a speed of one user of which nothing is stated but what a test says."""
    blank = dict.fromkeys(("quant", "method", "draft_tokens", "engine", "engine_version"))
    known = {"row": "a", "config": "a", "model": "m", "workload": "code", "users": 1}
    return Reading(evidence=evidence, low=tok_s, high=tok_s, **{**blank, **known, **stated})


def kinds(catalog: Catalog, *own: Reading) -> list[str]:
    """List what contradicts among some readings."""
    return [one.kind for one in contradictions("m", own, catalog.evidence)]


def test_weights_are_compared_on_the_same_prompt_alone(catalog):
    """A set that has one kind of weights on code and another on a story says nothing of weights."""
    apart = (
        measured("survey-qwen36", 100, quant="nvfp4", method="mtp"),
        measured("survey-qwen36", 95, quant="fp8", method="mtp"),
        measured("school-2026-06", 96, quant="nvfp4", method="mtp", workload="story"),
    )
    on_code = measured("school-2026-06", 101, quant="fp8", method="mtp")
    on_story = on_code.model_copy(update={"workload": "story"})
    assert [] == kinds(catalog, *apart, on_code)
    assert ["direction"] == kinds(catalog, *apart, on_story)


def test_figures_of_which_nothing_is_stated_are_not_put_side_by_side(catalog):
    """Neither weights nor speculation known: that they differ is no contradiction."""
    near, far = measured("survey-qwen36", 10), measured("school-2026-06", 90)
    assert [] == kinds(catalog, near, far)
    stated = (one.model_copy(update={"quant": "fp8"}) for one in (near, far))
    assert ["level"] == kinds(catalog, *stated)


def weight_of(catalog: Catalog, key: str, what: str, value: float, unit: str = "GB") -> Any:
    """Return a set that also says what a model weighs."""
    said = {"subject": "m", "quantity": "weights", "what": what, "value": value, "unit": unit}
    return catalog.evidence[key].model_copy(update={"quantities": (Quantity(id="w", **said),)})


def test_a_quantity_is_compared_by_its_word_and_in_its_unit(catalog):
    """Whatever two pages call it; 20 GB and 18.6 GiB, which are the same, are left alone."""
    first = weight_of(catalog, "school-2026-06", "Weights in memory", 20)
    for what, value, unit, told in (
        ("What the weights take", 30, "GB", ["m, weights in memory"]),
        ("What the weights take", 20.1, "GB", []),
        ("Weights in memory", 18.6, "GiB", []),
    ):
        second = weight_of(catalog, "survey-qwen36", what, value, unit)
        found = quantities({"m"}, {one.id: one for one in (first, second)})
        assert told == [one.subject for one in found]


def test_a_models_own_quantity_is_told_with_the_model(catalog, tmp_path):
    """Facts of a machine are told once for all; the size of a model is not one of them."""
    shutil.copytree(SHIPPED, tmp_path / "catalog")
    path = tmp_path / "catalog" / "evidence" / "survey-qwen36.yaml"
    more = """
  - id: gemma-size
    subject: gemma-4-31b
    quantity: size_fp8
    what: Size
    value: 40
    unit: GB
"""
    path.write_text(path.read_text().replace("\nfindings:", f"{more}findings:", 1))
    whole = get_evidence(catalog=tmp_path / "catalog")
    assert ["dgx-spark, memory that can be used"] == [one.subject for one in whole.machines]
    gemma = next(view for view in whole.views if view.model == "gemma-4-31b")
    assert ["gemma-4-31b, size as FP8 compressed-tensors"] == [
        one.subject for one in gemma.contradictions
    ]
