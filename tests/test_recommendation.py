"""Recommendations: understood words, hard needs before speed, and picks that follow the data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import memory
from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.recommendation import recommend, understand
from sparkrecipes.recommendation.questions import words
from sparkrecipes.schema.evidence import Caveat
from sparkrecipes.schema.listing import PublishedRow
from sparkrecipes.schema.memory import Components, MemoryEstimate
from sparkrecipes.schema.recipe import LocalBuild, Recipe
from sparkrecipes.schema.recommendation import Recommendation

SHIPPED = data_root() / "catalog"
FACTS = Path(__file__).parent / "data" / "facts"
PUBLISHED = json.loads((FACTS / "october_round.json").read_text())["picks"]
GIB = 2**30

QWEN_MTP = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
QWEN = "qwen3.6-35b-a3b-nvfp4-vllm"
OMNI = "nemotron-3-nano-omni-30b-a3b-nvfp4-vllm"
OMNI_NIM = "nemotron-3-nano-omni-30b-a3b-nim"
LIGHTNING = "nemotron-3.5-lightning-30b-a3b-nvfp4-vllm"
LIGHTNING_DSPARK = "nemotron-3.5-lightning-30b-a3b-nvfp4-vllm-dspark"
SUPER = "nemotron-3-super-120b-a12b-nvfp4-vllm"
SUPER_MTP = "nemotron-3-super-120b-a12b-nvfp4-vllm-mtp"
OSS_20B = "gpt-oss-20b-mxfp4-vllm"
OSS_120B = "gpt-oss-120b-mxfp4-vllm"
FLASH = "qwen3.8-flash-next-nvfp4-vllm-patched-mtp"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout."""
    return open_catalog(SHIPPED)


def sized(
    recipe: Recipe,
    verdict: str = "fits",
    *,
    gib: tuple[float, float] = (40.0, 60.0),
    context_tokens: int | None = None,
    users: int | None = None,
    available_gib: float | None = None,
    reserved_gib: float | None = None,
) -> MemoryEstimate:
    """Stand in for the memory model: an estimate with a given verdict and size."""
    low, high = (int(g * GIB) for g in gib)
    reserve = 5 * GIB
    now = None
    if available_gib is not None:
        now = "fits" if high - reserve <= available_gib * GIB else "does_not_fit"
    return estimate_of(QWEN_MTP).model_copy(
        update={
            "subject": recipe.id,
            "model": recipe.model,
            "verdict": verdict,
            "verdict_now": now,
            "context_tokens": context_tokens or recipe.serving.context_tokens,
            "users": users or recipe.serving.users,
            "kv_cache_dtype": recipe.serving.kv_cache_dtype,
            "components": Components(
                weights_bytes=high - reserve,
                drafter_bytes=0,
                kv_cache_bytes=0,
                state_bytes=0,
                overhead_bytes=0,
                host_reserve_bytes=reserve,
            ),
            "total_bytes": None if verdict == "unknown" else high,
            "total_bounds": None if verdict == "unknown" else (low, high),
            "usable_bytes": int(121.69 * GIB),
            "available_bytes": None if available_gib is None else int(available_gib * GIB),
            "max_users_at_context": None,
            "min_gpu_memory_utilization": None,
            "reservation_bytes": None if reserved_gib is None else int(reserved_gib * GIB),
            "forecast": None,
        }
    )


@cache
def estimate_of(recipe_id: str) -> MemoryEstimate:
    """Size a shipped recipe for real: what a test does not set is as the memory model says."""
    shipped = open_catalog(SHIPPED)
    recipe = shipped.recipes[recipe_id]
    model, engine = shipped.model(recipe.model), shipped.engine(recipe.engine)
    request = memory.recipe_request(recipe, model, engine, shipped.october_row(recipe))
    return memory.estimate(request, shipped.machine("dgx-spark"))


class Changed:
    """A catalog with some of its facts replaced; everything else is the shipped one's."""

    def __init__(
        self,
        base: Catalog,
        *,
        recipes: Mapping[str, Recipe] | None = None,
        edit_row: Callable[[PublishedRow], PublishedRow] | None = None,
    ) -> None:
        self.use_cases, self.models = base.use_cases, base.models
        self.does_not_run = base.does_not_run
        self.evidence = base.evidence
        self.recipes = recipes if recipes is not None else base.recipes
        self._base, self._edit_row = base, edit_row

    def published(self, recipe: Recipe) -> tuple[PublishedRow, ...]:
        """Return the base's rows, edited."""
        rows = self._base.published(recipe)
        return tuple(self._edit_row(row) for row in rows) if self._edit_row else rows


def figures(**changes: dict[str, float]) -> Callable[[PublishedRow], PublishedRow]:
    """Return an edit that sets figures of rows, by row id."""

    def edit(published: PublishedRow) -> PublishedRow:
        update = changes.get(published.row.id, {})
        new = published.row.figures.model_copy(update=update)
        row = published.row.model_copy(update={"figures": new})
        return published.model_copy(update={"row": row})

    return edit


def ask(facts: Any, question: str, **settings: Any) -> Recommendation:
    """Recommend where every recipe fits."""
    return recommend(question, facts, estimate=sized, **settings)


def order(answer: Recommendation) -> list[str]:
    """List the pick and the alternatives, best first."""
    assert answer.pick is not None
    return [answer.pick.id, *(other.id for other in answer.alternatives)]


def why(answer: Recommendation, recipe_id: str) -> str:
    """Return all reasons for a recipe as one text."""
    everything = (answer.pick, *answer.alternatives, *answer.ruled_out)
    return " | ".join(next(r.why for r in everything if r and r.id == recipe_id))


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda p: p["use_case"])
def test_rules_reach_the_published_pick(catalog, published):
    """The rules give from the data what the source recommends."""
    answer = ask(catalog, published["use_case"])
    assert published["pick"] == answer.pick.id
    assert published["use_case"] == answer.use_case


def test_picks_do_not_read_the_published_ones(catalog, tmp_path):
    """A catalog without published picks, or with other ones, gives the same answers."""
    shutil.copytree(SHIPPED, tmp_path / "catalog")
    for path in (tmp_path / "catalog" / "use_cases").glob("*.yaml"):
        kept = path.read_text().partition("published_pick:")[0]
        path.write_text(kept)
    bare = open_catalog(tmp_path / "catalog")
    for key in catalog.use_cases:
        assert ask(catalog, key) == ask(bare, key)


@pytest.mark.parametrize(
    ("question", "row", "old", "new", "pick"),
    [
        ("agentes", QWEN, "single_user_tok_s: 78.1", "single_user_tok_s: 110.0", QWEN),
        ("código", LIGHTNING, "single_user_tok_s: 70.3", "single_user_tok_s: 103.0", LIGHTNING),
        ("multimodal", OMNI_NIM, "long_prompt_46k_s: 11.4", "long_prompt_46k_s: 8.5", OMNI_NIM),
        ("ligero", QWEN, "memory_gb: 47.0", "memory_gb: 30.0", QWEN),
        ("reasoning", SUPER, "single_user_tok_s: 16.1", "single_user_tok_s: 23.1", SUPER),
    ],
)
def test_other_figures_give_another_pick(tmp_path, question, row, old, new, pick):
    """In a catalog whose figures differ, the pick follows them."""
    shutil.copytree(SHIPPED, tmp_path / "catalog")
    path = tmp_path / "catalog" / "evidence" / "standard-round-2026-10.yaml"
    before, found, after = path.read_text().partition(f"- id: {row}\n")
    assert found
    path.write_text(before + found + after.replace(old, new, 1))
    assert pick == ask(open_catalog(tmp_path / "catalog"), question).pick.id


def test_larger_model_is_picked_for_reasoning_once_its_image_can_be_had(catalog):
    """Flash-Next, the largest, ranks last only because no registry has its image."""
    flash = catalog.recipes[FLASH]
    pulled = flash.image.model_copy(update={"local_build": None})
    recipes = {**catalog.recipes, FLASH: flash.model_copy(update={"image": pulled})}
    assert FLASH == order(ask(catalog, "reasoning"))[-1]
    assert FLASH == ask(Changed(catalog, recipes=recipes), "reasoning").pick.id
    assert "no registry has its image" in why(ask(catalog, "reasoning"), FLASH)


def test_image_that_no_registry_has_ranks_last(catalog):
    """The best figures do not make up for an image that must be built first."""
    best = catalog.recipes[QWEN_MTP]
    build = LocalBuild(how="docker build .", source="test")
    local = best.model_copy(update={"image": best.image.model_copy(update={"local_build": build})})
    answer = ask(Changed(catalog, recipes={**catalog.recipes, QWEN_MTP: local}), "agents")
    assert LIGHTNING_DSPARK == answer.pick.id
    assert {QWEN_MTP, FLASH} == set(order(answer)[-2:])


def test_doubtful_figures_rank_after_sound_ones(catalog):
    """GPT-OSS-20B, 96.2 tok/s on paper, stands after every sound speed, with the reason."""
    answer = ask(catalog, "agents")
    ranked = order(answer)
    measured = [key for key in ranked if catalog.recipes[key].evidence]
    speeds = {key: catalog.published(catalog.recipes[key])[0].row.figures for key in measured}
    slowest = ranked.index("qwen3.8-27b-nvfp4-vllm")
    assert 11.0 == speeds["qwen3.8-27b-nvfp4-vllm"].single_user_tok_s
    assert slowest < ranked.index(OSS_20B) < ranked.index(FLASH)
    assert "ranked after sound figures: TTFT includes the reasoning phase" in why(answer, OSS_20B)


def test_without_the_caveat_the_figure_counts(catalog):
    """Light goes to GPT-OSS-20B only where its speed and memory are beyond doubt."""

    def sound(published: PublishedRow) -> PublishedRow:
        return published.model_copy(
            update={"row": published.row.model_copy(update={"caveats": ()})}
        )

    assert LIGHTNING_DSPARK == ask(catalog, "light").pick.id
    assert OSS_20B == ask(Changed(catalog, edit_row=sound), "light").pick.id


def test_doubt_of_a_figure_that_does_not_rank_changes_nothing(catalog):
    """A caveat of memory leaves a pick by speed alone, and one of speed does not."""

    def doubt(name: str) -> Callable[[PublishedRow], PublishedRow]:
        caveat = Caveat(figures=(name,), text="doubtful", source="test")

        def edit(published: PublishedRow) -> PublishedRow:
            if published.row.id != QWEN_MTP:
                return published
            row = published.row.model_copy(update={"caveats": (caveat,)})
            return published.model_copy(update={"row": row})

        return edit

    assert QWEN_MTP == ask(Changed(catalog, edit_row=doubt("memory_gb")), "agents").pick.id
    assert QWEN_MTP != ask(Changed(catalog, edit_row=doubt("single_user_tok_s")), "agents").pick.id


def test_a_secondary_doubt_decides_only_between_equals(catalog):
    """For reasoning the size comes first: GPT-OSS-120B, 117 billion, stands behind Super."""
    assert [SUPER_MTP, SUPER] == order(ask(catalog, "reasoning"))[:2]
    assert OSS_120B == order(ask(catalog, "reasoning"))[2]


def test_measured_ranks_before_unmeasured(catalog):
    """C124, C127: what nobody measured never stands before what was, and says that it is so."""
    fast = catalog.recipes[QWEN_MTP].model_copy(update={"id": "derived", "evidence": ()})
    recipes = {"derived": fast, SUPER: catalog.recipes[SUPER]}
    answer = ask(Changed(catalog, recipes=recipes), "agents")
    assert [SUPER, "derived"] == order(answer)
    assert "(measured, standard-round-2026-10)" in why(answer, SUPER)
    assert "untested" in why(answer, "derived")
    large = catalog.recipes[SUPER].model_copy(update={"id": "derived", "evidence": ()})
    recipes = {"derived": large, LIGHTNING: catalog.recipes[LIGHTNING]}
    assert [LIGHTNING, "derived"] == order(ask(Changed(catalog, recipes=recipes), "reasoning"))


def test_figures_of_another_method_do_not_rank(catalog):
    """A row of another method is as good as none: two methods are never ranked together."""

    def school(published: PublishedRow) -> PublishedRow:
        other = published.row.id == QWEN_MTP
        return published.model_copy(update={"method": "school"}) if other else published

    answer = ask(Changed(catalog, edit_row=school), "agents")
    assert LIGHTNING_DSPARK == answer.pick.id
    assert "untested" in why(answer, QWEN_MTP)


def test_window_that_is_too_small_is_ruled_out_before_speed(catalog):
    """C125: a fast recipe with 16K of context is no agent's; the slow one with 256K is picked."""
    base = catalog.recipes[QWEN_MTP]
    short = base.serving.model_copy(update={"context_tokens": 16384})
    long = base.serving.model_copy(update={"context_tokens": 262144})
    recipes = {
        QWEN_MTP: base.model_copy(update={"serving": short}),
        QWEN: catalog.recipes[QWEN].model_copy(update={"serving": long}),
    }
    answer = ask(Changed(catalog, recipes=recipes), "agentic coding")
    assert ("coding", QWEN) == (answer.use_case, answer.pick.id)
    assert "it serves 16,384 tokens of context, this use needs 65,536" in why(answer, QWEN_MTP)


def test_nothing_suits_is_said(catalog):
    """C130: a text model is never the answer to a question of vision; each says why."""
    recipes = {key: catalog.recipes[key] for key in (SUPER, OSS_20B)}
    answer = ask(Changed(catalog, recipes=recipes), "vision")
    assert (None, ()) == (answer.pick, answer.alternatives)
    assert "it does not see images or hear audio or watch video" in why(answer, SUPER)
    assert {SUPER, OSS_20B} == {out.id for out in answer.ruled_out}


def test_every_recipe_is_accounted_for_once(catalog):
    """Each recipe is the pick, an alternative, or ruled out with a reason."""
    for key in catalog.use_cases:
        answer = ask(catalog, key)
        out = [gone.id for gone in answer.ruled_out]
        assert sorted(catalog.recipes) == sorted([*order(answer), *out])
        assert all(reasoned.why for reasoned in (answer.pick, *answer.alternatives))
        assert all(reasoned.why for reasoned in answer.ruled_out)


def test_why_quotes_figures_with_source_and_evidence(catalog):
    """The pick's reasons hold its figures, where they come from, and whom it is ahead of."""
    reasons = why(ask(catalog, "agents"), QWEN_MTP)
    assert "102.3 tok/s for one user: an agent waits for each of its own steps" in reasons
    assert "240.0 tok/s for four users together" in reasons
    assert "(measured, standard-round-2026-10)" in reasons
    assert f"ahead of {LIGHTNING_DSPARK}: 94.4 tok/s for one user" in reasons
    assert "fits: it needs at most 60.0 of 121.7 GiB" in reasons
    assert "sparkrecipes check " + QWEN_MTP == ask(catalog, "agents").next


def test_equal_first_figures_are_decided_by_the_next(catalog):
    """Super with MTP is ahead of Super by its speed, not by its size."""
    reasons = why(ask(catalog, "reasoning"), SUPER_MTP)
    assert f"ahead of {SUPER}: 16.1 tok/s for one user" in reasons
    assert "120 billion parameters" in reasons
    assert "(the model's own count)" in reasons


def test_what_does_not_fit_is_ruled_out(catalog):
    """A recipe that does not fit at the settings asked for is out, with its need."""

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        large = recipe.id == QWEN_MTP
        return (
            sized(recipe, "does_not_fit", gib=(130.0, 140.0), users=64) if large else sized(recipe)
        )

    answer = recommend("agents", catalog, estimate=estimate, users=64)
    assert LIGHTNING_DSPARK == answer.pick.id
    expected = "131,072 tokens x 64 users need at least 130.0 GiB of 121.7 usable"
    assert expected in why(answer, QWEN_MTP)


def test_tight_stays_and_is_said(catalog):
    """A tight recipe keeps its place: its bounds straddle what there is."""

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        return sized(recipe, "tight", gib=(100.0, 125.3))

    answer = recommend("agents", catalog, estimate=estimate)
    assert QWEN_MTP == answer.pick.id
    assert "tight: it needs 100.0 to 125.3 of 121.7 GiB" in why(answer, QWEN_MTP)


def test_unknown_memory_is_never_good(catalog):
    """C122: what nobody can size ranks after what fits, and is not taken for small."""

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        return sized(recipe, "unknown" if recipe.id == QWEN_MTP else "fits")

    answer = recommend("agents", catalog, estimate=estimate)
    assert LIGHTNING_DSPARK == answer.pick.id
    assert "what memory it needs is not known" in why(answer, QWEN_MTP)


def test_busy_machine_changes_no_pick_silently(catalog):
    """C128: the best stays the pick, with what must be freed first and what fits at once."""
    sizes = {QWEN_MTP: 96.0, LIGHTNING_DSPARK: 26.2, QWEN: 14.0}
    recipes = {key: catalog.recipes[key] for key in sizes}

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        size = sizes[recipe.id]
        return sized(recipe, gib=(size, size), available_gib=14.5)

    answer = recommend("agents", Changed(catalog, recipes=recipes), estimate=estimate)
    assert [QWEN_MTP, LIGHTNING_DSPARK, QWEN] == order(answer)
    expected = f"{QWEN_MTP} fits after freeing 76.5 GiB; {QWEN} fits in what is free now"
    assert expected == answer.warnings[0]
    mid = {key: catalog.recipes[key] for key in (LIGHTNING_DSPARK, QWEN)}
    answer = recommend("agents", Changed(catalog, recipes=mid), estimate=estimate)
    assert answer.warnings[0].startswith(f"{LIGHTNING_DSPARK} fits after freeing 6.7 GiB")


def test_engine_wants_its_whole_fraction_free(catalog):
    """Where the engine is told a fraction, all of that must be freed, not the need alone."""

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        return sized(recipe, gib=(40.0, 40.0), available_gib=20.0, reserved_gib=60.8)

    warning = recommend("agents", catalog, estimate=estimate).warnings[0]
    assert f"{QWEN_MTP} fits after freeing 40.8 GiB; nothing fits as it is" == warning


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda p: p["use_case"])
def test_picks_hold_with_real_sizes(catalog, published):
    """Sized by the memory model for a DGX Spark, the published picks fit and stay the picks."""
    spark = catalog.machine("dgx-spark")

    def estimate(recipe: Recipe, **_: Any) -> MemoryEstimate:
        model, engine = catalog.model(recipe.model), catalog.engine(recipe.engine)
        row = catalog.october_row(recipe)
        return memory.estimate(memory.recipe_request(recipe, model, engine, row), spark)

    answer = recommend(published["use_case"], catalog, estimate=estimate)
    assert published["pick"] == answer.pick.id
    assert not any("fit:" in reason for out in answer.ruled_out for reason in out.why)


def test_other_settings_than_measured_are_said(catalog):
    """A pick for other users or another context says where its figures come from."""
    answer = ask(catalog, "agents", context_tokens=262144, users=2)
    assert "measured at 131,072 tokens x 4 users, not at 262,144 x 2" in why(answer, QWEN_MTP)
    assert "measured at" not in why(ask(catalog, "agents"), QWEN_MTP)
    assert (262144, 2) == (answer.constraints.context_tokens, answer.constraints.users)


def test_context_beyond_the_model_is_ruled_out(catalog):
    """A longer context than the model's is out; a rope override carries as far as it is set."""
    answer = ask(catalog, "light", context_tokens=200_000)
    assert "its longest context is 131,072 tokens" in why(answer, OSS_20B)
    assert "its longest context is 131,072 tokens" in why(answer, "qwen3-8b-fp8-vllm")
    assert "qwen3-8b-fp8-vllm" in order(ask(catalog, "light", context_tokens=131_072))


def test_less_context_than_the_use_needs_is_warned_of(catalog):
    """Who asks for less context than the use needs gets an answer and a warning."""
    answer = ask(catalog, "agents", context_tokens=16384)
    assert QWEN_MTP == answer.pick.id
    assert "agents usually needs 65,536 tokens of context or more" in answer.warnings


def test_what_is_known_not_to_run_is_ruled_out(catalog):
    """An entry of what does not run rules out a recipe that it concerns."""
    flash, stock = catalog.recipes[FLASH], catalog.recipes[QWEN].image
    recipes = {FLASH: flash.model_copy(update={"image": stock}), SUPER: catalog.recipes[SUPER]}
    answer = ask(Changed(catalog, recipes=recipes), "reasoning")
    assert SUPER == answer.pick.id
    assert "known not to run: It needs a patched vLLM" in why(answer, FLASH)


def test_what_is_known_not_to_run_is_not_the_nearest(catalog):
    """Where nothing suits: no wish that is given up makes that one run."""
    flash, stock = catalog.recipes[FLASH], catalog.recipes[QWEN].image
    recipes = {FLASH: flash.model_copy(update={"image": stock}), SUPER: catalog.recipes[SUPER]}
    for image, expected in ((stock, [SUPER]), (flash.image, [SUPER, FLASH])):
        recipes = {**recipes, FLASH: flash.model_copy(update={"image": image})}
        answer = ask(Changed(catalog, recipes=recipes), "reasoning", modalities=("audio",))
        assert answer.pick is None
        assert expected == [one.id for one in answer.nearest]


def test_a_pick_is_ahead_only_by_a_sound_figure(catalog):
    """A doubtful figure of the next one is no figure to be ahead of."""
    sound = {QWEN_MTP: catalog.recipes[QWEN_MTP], LIGHTNING: catalog.recipes[LIGHTNING]}
    told = " | ".join(ask(Changed(catalog, recipes=sound), "agents").pick.why)
    assert f"ahead of {LIGHTNING}: 70.3 tok/s" in told
    doubtful = {QWEN_MTP: catalog.recipes[QWEN_MTP], OSS_20B: catalog.recipes[OSS_20B]}
    answer = ask(Changed(catalog, recipes=doubtful), "agents")
    assert [QWEN_MTP, OSS_20B] == order(answer)
    assert "ahead of" not in " | ".join(answer.pick.why)


def test_unstable_is_ruled_out(catalog):
    """What its source calls unstable is not recommended, however fast."""
    answer = ask(Changed(catalog, edit_row=figures(**{QWEN_MTP: {"stable": False}})), "agents")
    assert LIGHTNING_DSPARK == answer.pick.id
    assert "its source calls it unstable" in why(answer, QWEN_MTP)


def test_missing_figure_ranks_after_sound_and_doubtful_ones(catalog):
    """A row without the ranking figure stands behind those that have it."""
    facts = Changed(catalog, edit_row=figures(**{QWEN_MTP: {"single_user_tok_s": None}}))
    ranked = order(ask(facts, "agents"))
    assert ranked.index(OSS_20B) < ranked.index(QWEN_MTP) < ranked.index(FLASH)


def test_zero_memory_gives_no_speed_for_a_gb(catalog):
    """A memory figure of 0 is no figure to divide by."""
    facts = Changed(catalog, edit_row=figures(**{QWEN_MTP: {"memory_gb": 0.0}}))
    assert LIGHTNING_DSPARK == ask(facts, "light").pick.id


def test_caveats_of_the_pick_are_warnings(catalog):
    """What to know before choosing the pick is said with it."""
    warnings = ask(catalog, "multimodal").warnings
    assert any("Audio may need packages" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("question", "use_case"),
    [
        ("agents", "agents"),
        ("AGENTES", "agents"),
        ("¿Qué modelo me recomiendas para agentes con herramientas?", "agents"),
        ("install the model you recommend for tool-calling agents, and prove its speed", "agents"),
        ("llamadas a herramientas con Hermes", "agents"),
        ("programacion", "coding"),
        ("PROGRAMACIÓN", "coding"),
        ("un asistente de código, por favor", "coding"),
        ("Which one is best for coding?", "coding"),
        ("a coding agent", "coding"),
        ("agentes de programación", "coding"),
        ("multimodal", "multimodal"),
        ("algo que entienda imagen, audio y vídeo", "multimodal"),
        ("vision", "multimodal"),
        ("modelo ligero", "light"),
        ("algo rápido y liviano", "light"),
        ("lightweight model with low memory", "light"),
        ("razonamiento profundo sobre documentos largos", "reasoning"),
        ("deep reasoning", "reasoning"),
        ("reasoning", "reasoning"),
    ],
)
def test_questions_are_understood(catalog, question, use_case):
    """A word or a sentence in English or Spanish, in any case, with accents or without."""
    assert use_case == understand(question, catalog.use_cases).id


@pytest.mark.parametrize(
    "question",
    ["", "   ", "?!", "investigación", "content writing", "agentless", "scoded", "日本語"],
)
def test_unknown_words_name_the_use_cases(catalog, question):
    """What names no use case is misuse, and the repair names them all."""
    with pytest.raises(Misuse) as caught:
        understand(question, catalog.use_cases)
    assert ("unknown_use_case", 2) == (caught.value.code, caught.value.exit_code)
    assert [] == [key for key in catalog.use_cases if key not in caught.value.repair]


def test_near_words_are_suggested(catalog):
    """A typing error is answered with the word that was meant."""
    with pytest.raises(Misuse) as caught:
        understand("agnets", catalog.use_cases)
    assert "did you mean agents" in caught.value.repair


def test_two_uses_are_asked_back(catalog):
    """Words that name two uses are misuse, and both are named."""
    with pytest.raises(Misuse) as caught:
        understand("agentes, código, contenido o investigación", catalog.use_cases)
    assert "ambiguous_use_case" == caught.value.code
    assert "nombra más de un uso: agents y coding" in caught.value.message


def test_a_huge_question_is_answered_shortly(catalog):
    """A question of a megabyte is read in time, and not repeated whole in the error."""
    with pytest.raises(Misuse) as caught:
        understand("nada " * 200_000, catalog.use_cases)
    assert len(caught.value.message) < 120


def test_words_are_flat():
    """Accents, case and signs do not matter; letters and digits do."""
    assert ("codigo", "y", "video", "2") == words("¡CÓDIGO, y Vídeo-2!")
