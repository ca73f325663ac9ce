"""How fast each user is and what an engine takes: what was measured bounds only what it can."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import sparkrecipes as sr
from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.recommendation.capacity import Speed, plan_memory, speed_for
from sparkrecipes.recommendation.pairs import share
from sparkrecipes.recommendation.reasons import reasons
from sparkrecipes.recommendation.standing import Candidate, misfits, standing
from sparkrecipes.schema.evidence import Caveat
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import Forecast, MemoryEstimate
from sparkrecipes.schema.recommendation import Constraints

QWEN_MTP = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
OSS_20B = "gpt-oss-20b-mxfp4-vllm"
GIB = 2**30


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout."""
    return open_catalog(data_root() / "catalog")


@cache
def size_of(recipe_id: str) -> MemoryEstimate:
    """Size a shipped recipe, and say how fast it may be."""
    return sr.estimate_memory(recipe_id, catalog=data_root() / "catalog", machine="dgx-spark")


def row_of(catalog: Catalog, recipe_id: str, *doubted: str) -> PublishedRow:
    """Return a recipe's row of October, with these figures doubted and no others."""
    (found,) = catalog.published(catalog.recipes[recipe_id])
    caveats = tuple(Caveat(figures=(name,), text="doubtful", source="test") for name in doubted)
    return found.model_copy(update={"row": found.row.model_copy(update={"caveats": caveats})})


def forecast(total: tuple[float, float]) -> Forecast:
    """Return a forecast of all users together."""
    real = size_of(QWEN_MTP).forecast
    assert real is not None
    return real.model_copy(update={"users_total_tok_s": total})


@pytest.mark.parametrize(
    ("users", "doubted", "expected"),
    [
        (1, (), Speed(102.3, 102.3, measured=True, high_measured=True)),
        (2, (), Speed(60.0, 102.3, measured=True, high_measured=True)),
        (4, (), Speed(60.0, 60.0, measured=True, high_measured=True)),
        (8, (), Speed(25.0, 50.0, measured=False, high_measured=False)),
        (1, ("single_user_tok_s",), Speed(60.0, 400.0, measured=True, high_measured=False)),
        (2, ("single_user_tok_s",), Speed(60.0, 200.0, measured=True, high_measured=False)),
        (4, ("single_user_tok_s",), Speed(60.0, 60.0, measured=True, high_measured=True)),
        (4, ("four_users_total_tok_s",), Speed(50.0, 100.0, measured=False, high_measured=False)),
        (2, ("four_users_total_tok_s",), Speed(100.0, 102.3, measured=False, high_measured=False)),
    ],
)
def test_a_share_is_the_least_of_fewer_users_and_never_their_most(
    catalog, users, doubted, expected
):
    """102.3 for one and 240 for four: the share of four, 60, is no bound for one."""
    row = row_of(catalog, QWEN_MTP, *doubted)
    assert expected == speed_for(row, forecast((200.0, 400.0)), users)


def test_without_a_forecast_a_doubted_speed_is_not_known(catalog):
    """Then nothing says how fast one user is, and nothing is said."""
    assert speed_for(row_of(catalog, QWEN_MTP, "single_user_tok_s"), None, 1) is None
    assert speed_for(None, None, 1) is None


def test_a_doubted_speed_rules_nothing_out_by_the_share_of_four(catalog):
    """GPT-OSS-20B for one user who wants 50 tok/s: 37.6 is the share of four, and no bound."""
    recipe = catalog.recipes[OSS_20B]
    (row,) = catalog.published(recipe)
    found = Candidate(
        recipe=recipe, model=catalog.model(recipe.model), row=row, estimate=size_of(OSS_20B)
    )
    asked = Constraints(users=1, min_tok_s_per_user=50)
    assert () == misfits(found, asked, "en")
    use, sets = catalog.use_cases["chat"], catalog.evidence
    told = " | ".join(reasons(found, use, asked, sets, "en"))
    assert "each of 1 users gets 37.6 to" in told
    assert "(estimated): 50 are not sure" in told
    (out,) = misfits(found, Constraints(users=1, min_tok_s_per_user=5000), "en")
    assert "(estimated), 5000 are asked for" in out.says
    sure = " | ".join(reasons(found, use, Constraints(users=1, min_tok_s_per_user=30), sets, "en"))
    assert "each of 1 users gets 37.6 tok/s or more (measured)" in sure


def changed(**update: Any) -> MemoryEstimate:
    """Return a size with some of it replaced."""
    return size_of(QWEN_MTP).model_copy(update=update)


def test_unknown_memory_fits_into_no_room():
    """Neither alone nor beside another: what nobody can size is not small."""
    unknown = changed(total_bytes=None, total_bounds=None, reservation_bytes=None)
    assert plan_memory(unknown, 100 * GIB) is None
    unsure = changed(verdict="unknown")
    assert share(size_of(QWEN_MTP), size_of(OSS_20B), 110 * GIB) is not None
    assert share(unsure, size_of(OSS_20B), 110 * GIB) is None


def test_a_licence_that_no_source_states_ranks_last(catalog):
    """Where a licence is asked for: one that is known and suits goes first, whatever the speed."""
    recipe = catalog.recipes[QWEN_MTP]
    model = catalog.model(recipe.model)
    row = row_of(catalog, QWEN_MTP)
    named, unnamed = (
        Candidate(recipe=recipe, model=one, row=row, estimate=size_of(QWEN_MTP))
        for one in (model, model.model_copy(update={"licence": None}))
    )
    use = catalog.use_cases["agents"]
    asked = Constraints(licences=("apache-2.0",))
    assert standing(named, use, asked) < standing(unnamed, use, asked)
    assert standing(named, use, Constraints()) == standing(unnamed, use, Constraints())


@pytest.mark.parametrize(("users", "first"), [(2, "single_user"), (3, "four_users")])
def test_from_three_users_on_the_load_of_four_goes_first(catalog, users, first):
    """Three are nearer to four than to one."""
    recipe = catalog.recipes[QWEN_MTP]
    found = Candidate(
        recipe=recipe, model=catalog.model(recipe.model), row=row_of(catalog, QWEN_MTP)
    )
    told = reasons(found, catalog.use_cases["agents"], Constraints(users=users), {}, "en")
    expected = {"single_user": "102.3 tok/s for one", "four_users": "240.0 tok/s for four"}[first]
    assert told[0].startswith(expected)


def test_a_load_whose_total_nobody_states_is_not_told_as_nothing(catalog):
    """Of the points with a total the nearest is quoted; a set without one is passed over."""
    school = catalog.evidence["school-2026-06"]
    ladder = school.ladders[0]
    silent = tuple(
        point.model_copy(update={"total_tok_s": None}) if point.users > 8 else point
        for point in ladder.points
    )
    recipe = catalog.recipes[QWEN_MTP]
    row = row_of(catalog, QWEN_MTP)
    found = Candidate(recipe=recipe, model=catalog.model(recipe.model), row=row)

    def told(points: Any) -> list[str]:
        ladders = (ladder.model_copy(update={"points": points}),)
        sets = {school.id: school.model_copy(update={"ladders": ladders})}
        lines = reasons(found, catalog.use_cases["agents"], Constraints(users=20), sets, "en")
        return [line for line in lines if "elsewhere" in line]

    assert told(ladder.points)[0].startswith("with 16 users elsewhere, not ranked: 212.7 tok/s")
    assert told(silent)[0].startswith("with 8 users elsewhere, not ranked: 200 tok/s together")
    assert [] == told(silent[-1:])


def test_speed_on_a_kind_of_prompt_is_quoted_at_temperature_0_alone(catalog):
    """As the round itself is: 125.2 on code; 117.1 at 0.7 is another setting."""
    recipe = catalog.recipes[QWEN_MTP]
    row = row_of(catalog, QWEN_MTP)
    found = Candidate(recipe=recipe, model=catalog.model(recipe.model), row=row)
    use = catalog.use_cases["coding"]
    told = [
        line
        for line in reasons(found, use, Constraints(), catalog.evidence, "en")
        if "tok/s on code" in line
    ]
    assert ["125.2"] == [line.partition(" ")[0] for line in told]


@pytest.mark.parametrize(
    ("tongue", "expected"),
    [
        ("en", "125.2 tok/s on code; 84.2 % of the drafts are taken (measured, mine)"),
        ("es", "125.2 tok/s en código; se acepta el 84.2 % de los borradores (medido, mine)"),
    ],
)
def test_a_round_without_its_counterpart_is_quoted_without_it(catalog, tongue, expected):
    """A contributed round says nothing of the speed without speculation: nor does the sentence."""
    october = catalog.evidence["standard-round-2026-10"]
    kinds = october.by_workload[0]
    rows = (kinds.workloads[0].model_copy(update={"without_speculation_tok_s": None}),)
    mine = october.model_copy(
        update={"by_workload": (kinds.model_copy(update={"workloads": rows}),)}
    )
    recipe = catalog.recipes[QWEN_MTP]
    found = Candidate(
        recipe=recipe, model=catalog.model(recipe.model), row=row_of(catalog, QWEN_MTP)
    )
    told = reasons(found, catalog.use_cases["coding"], Constraints(), {"mine": mine}, tongue)
    assert expected in told


def test_draft_tokens_beyond_the_measured_positions_are_warned_of(catalog):
    """Three positions were measured of Gemma 4 31B with MTP: 4 draft tokens go beyond, 3 do not."""
    recipe = catalog.recipes["gemma-4-31b-fp8-vllm-mtp"]
    model, use = catalog.model(recipe.model), catalog.use_cases["chat"]

    def warned(tokens: int) -> bool:
        spec = recipe.speculative.model_copy(update={"num_speculative_tokens": tokens})
        mine = recipe.model_copy(update={"speculative": spec})
        found = Candidate(recipe=mine, model=model, row=None)
        told = reasons(found, use, Constraints(), catalog.evidence, "en")
        return any(line.startswith("acceptance falls by position") for line in told)

    assert [False, True] == [warned(3), warned(4)]
