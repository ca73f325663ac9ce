"""Questions as people ask them, in English and Spanish: the pick or the refusal, and why."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import sparkrecipes as sr
from sparkrecipes.catalog import Catalog, data_root, open_catalog
from sparkrecipes.cli.main import main
from sparkrecipes.errors import Misuse
from sparkrecipes.recommendation import understood
from sparkrecipes.recommendation.voice import SENTENCES
from sparkrecipes.schema.recommendation import Recommendation

QUESTIONS = json.loads((Path(__file__).parent / "data" / "recommend_questions.json").read_text())
CASES = [(tongue, case) for tongue in ("en", "es") for case in QUESTIONS[tongue]]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog of the checkout."""
    return open_catalog(data_root() / "catalog")


def ask(catalog: Catalog, question: str, **wishes: Any) -> Recommendation:
    """Recommend for a DGX Spark, sized by the memory model."""
    return sr.recommend(question, catalog=catalog, machine="dgx-spark", **wishes)


def wishes_of(answer: Recommendation) -> dict[str, Any]:
    """Return what was understood beside the use."""
    data = answer.constraints.model_dump(mode="json")
    return {key: value for key, value in data.items() if value not in (None, [])}


def test_there_are_twenty_questions_in_each_language():
    """At least; each language has picks, refusals, two recipes at once, and misuse."""
    for tongue in ("en", "es"):
        cases = QUESTIONS[tongue]
        assert len(cases) >= 20
        assert len({case["question"] for case in cases}) == len(cases)
        for kind in ("refused", "side_by_side", "relax", "outgrown", "misuse"):
            assert any(case.get(kind) for case in cases), kind


@pytest.mark.parametrize(
    ("tongue", "case"), CASES, ids=lambda x: str(x.get("question", x)) if isinstance(x, dict) else x
)
def test_a_question_has_its_answer(catalog: Catalog, tongue: str, case: dict[str, Any]) -> None:
    """The use, what was asked beside it, the pick or nothing, the reason, the language."""
    if code := case.get("misuse"):
        with pytest.raises(Misuse) as caught:
            ask(catalog, case["question"])
        assert (code, 2) == (caught.value.code, caught.value.exit_code)
        assert case["reason"] in caught.value.message
        return
    answer = ask(catalog, case["question"])
    assert (case["use_cases"], tongue) == (list(answer.use_cases), answer.language)
    assert case["asked"] == wishes_of(answer)
    assert case["pick"] == (answer.pick.id if answer.pick else None)
    told = answer.pick.why if answer.pick else [w for one in answer.nearest for w in one.why]
    assert any(case["reason"] in line for line in told), told
    out = {one.id: " | ".join(one.why) for one in answer.ruled_out}
    for recipe, why in case.get("refused", {}).items():
        assert why in out[recipe]
    relax = {one.wish: one.pick for one in answer.relax}
    assert case.get("relax", {}).items() <= relax.items()
    assert case.get("outgrown", False) <= (answer.outgrown is not None)
    pair = [part.id for part in answer.side_by_side.parts] if answer.side_by_side else []
    assert case.get("side_by_side", []) == pair


@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        (
            "agents with image input, 64K, 2 users, leave 40 GB free",
            {"context_tokens": 65536, "users": 2, "modalities": ("image",), "leave_free_gb": 40.0},
        ),
        (
            "chat for 30 pupils in Spanish, 12 tok/s each, Apache licence, with vllm",
            {
                "users": 30,
                "languages": ("es",),
                "min_tok_s_per_user": 12.0,
                "licences": ("apache",),
                "engines": ("vllm",),
            },
        ),
        ("agents, only 60 GB free now", {"free_now_gb": 60.0}),
    ],
)
def test_a_sentence_options_and_python_are_one_request(
    catalog: Catalog, capsys: Any, sentence: str, options: dict[str, Any]
) -> None:
    """The same question is the same object and the same answer, however it is asked."""
    use = sentence.split()[0].strip(",")
    said = understood(sentence, catalog)
    assert said == understood(use, catalog, language="en", **options)
    names = {
        "context_tokens": "--context",
        "users": "--users",
        "min_tok_s_per_user": "--min-speed",
        "modalities": "--reads",
        "languages": "--languages",
        "free_now_gb": "--free-now",
        "leave_free_gb": "--leave-free",
        "licences": "--licence",
        "engines": "--engine",
    }
    argv = ["recommend", use, "--json", "--answer-in", "en", "--machine", "dgx-spark"]
    for key, value in options.items():
        argv += [names[key], ",".join(value) if isinstance(value, tuple) else f"{value:g}"]
    main(argv)
    assert json.loads(capsys.readouterr().out) == ask(catalog, sentence).model_dump(mode="json")


@pytest.mark.parametrize(
    ("question", "old", "new", "pick"),
    [
        (
            "30 alumnos, español, respuesta interactiva",
            "four_users_total_tok_s: 196.6",
            "four_users_total_tok_s: 296.6",
            "qwen3.6-35b-a3b-nvfp4-vllm",
        ),
        (
            "chat for 4 users at 70 tok/s each",
            "four_users_total_tok_s: 213.2",
            "four_users_total_tok_s: 293.2",
            "nemotron-3.5-lightning-30b-a3b-nvfp4-vllm-dspark",
        ),
    ],
)
def test_other_figures_change_the_answer(
    tmp_path: Path, question: str, old: str, new: str, pick: str
) -> None:
    """In a catalog whose figures differ another recipe is picked, or one where nothing suited."""
    folder = tmp_path / "catalog"
    shutil.copytree(data_root() / "catalog", folder)
    path = folder / "evidence" / "standard-round-2026-10.yaml"
    assert 1 == path.read_text().count(old)
    path.write_text(path.read_text().replace(old, new))
    answer = ask(open_catalog(folder), question)
    assert pick == (answer.pick.id if answer.pick else None)


def test_an_option_goes_before_the_sentence(catalog: Catalog) -> None:
    """Who says four users and --users 2 is answered for two."""
    assert 2 == ask(catalog, "agents for 4 users", users=2).constraints.users


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        ({"engines": ("tensorrt",)}, "unknown_id"),
        ({"languages": ("spanish",)}, "bad_language"),
        ({"modalities": ("smell",)}, "bad_modality"),
        ({"free_now_gb": -1.0}, "bad_amount"),
        ({"min_tok_s_per_user": float("nan")}, "bad_amount"),
        ({"leave_free_gb": float("inf")}, "bad_amount"),
    ],
)
def test_a_wish_that_is_none_is_misuse(catalog: Catalog, wishes: Any, code: str) -> None:
    """With the values that there are."""
    with pytest.raises(Misuse) as caught:
        ask(catalog, "agents", **wishes)
    assert code == caught.value.code
    assert caught.value.repair


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("image generation", "no recipe does 'image generation'"),
        ("quiero generar imágenes", "ninguna receta hace 'generar imagenes'"),
        ("agents that make music", "no recipe does 'make music'"),
        ("embeddings for search", "no recipe does 'embeddings'"),
        ("agents, -5 users", "-5 is no amount"),
        ("agents with 0 users", "users 0 is no amount"),
        ("agentes, 0 tokens de contexto", "context_tokens 0 no es una cantidad"),
        ("coding at 0 tok/s", "min_tok_s_per_user 0.0 is no amount"),
        ("agents on llama.cpp", "no engine has the id 'llama.cpp'"),
        ("agentes con Ollama", "ningún motor tiene el id 'ollama'"),
    ],
)
def test_what_nothing_here_does_is_refused(catalog: Catalog, question: str, message: str) -> None:
    """What is asked for is never passed over, nor read as something else."""
    with pytest.raises(Misuse) as caught:
        ask(catalog, question)
    assert message in caught.value.message
    assert caught.value.repair


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("gpt-oss for agents", "gpt-oss"),
        ("gpt oss 120b, agents", "gpt-oss"),
        ("quiero gemma para imágenes", "gemma"),
        ("Qwen3.6 for coding", "qwen"),
        ("deepseek for coding", "deepseek"),
        ("coding under the llama license", None),
        ("agentes que saben llamar herramientas", None),
    ],
)
def test_a_model_that_is_named_does_not_decide(
    catalog: Catalog, question: str, named: str | None
) -> None:
    """Figures do, and the answer says that the name was read."""
    told = [text for text in ask(catalog, question).warnings if "list --all" in text]
    assert ([] if named is None else [True]) == [f"({named})" in text for text in told]


@pytest.mark.parametrize(
    ("question", "use"),
    [
        ("OCR of scanned documents", "multimodal"),
        ("leer documentos escaneados", "multimodal"),
        ("resumir PDF largos", "reasoning"),
    ],
)
def test_documents_are_seen_or_read(catalog: Catalog, question: str, use: str) -> None:
    """A scan is a picture; a long PDF is a long text."""
    assert use == ask(catalog, question).use_case


def test_two_at_once_have_two_ports_and_a_sum_that_fits(catalog: Catalog) -> None:
    """Both commands to paste, ports that differ, fractions that leave the host its part."""
    pair = ask(catalog, "agents and audio at once").side_by_side
    assert pair is not None
    first, second = pair.parts
    assert (8000, 8001) == (first.port, second.port)
    spark = catalog.machine("dgx-spark")
    total = sum(part.gpu_memory_utilization for part in pair.parts) * spark.mem_total_bytes
    assert abs(total - pair.total_bytes) < 2
    assert pair.total_bytes + spark.host_reserve_bytes + pair.left_bytes == pair.usable_bytes
    assert pair.left_bytes >= 0
    for part in pair.parts:
        assert f"-p 127.0.0.1:{part.port}:8000" in part.command
        assert f"--gpu-memory-utilization={part.gpu_memory_utilization:g}" in part.command
        assert part.command.startswith("docker run ")
    assert "start the first, wait until it is ready" in pair.notes[1]


def test_two_at_once_get_less_where_the_whole_would_not_fit(catalog: Catalog) -> None:
    """Own fractions of 0.5 and 0.4 leave no 30 GB: both are lowered to what still serves."""
    pair = ask(catalog, "agents and audio at once, leave 30 GB free").side_by_side
    assert pair is not None
    assert pair.left_bytes >= 30e9
    shares = [part.gpu_memory_utilization for part in pair.parts]
    assert shares[0] < 0.5
    assert shares[1] < 0.4
    for part in pair.parts:
        least = sr.estimate_memory(part.id, catalog=catalog, machine="dgx-spark")
        assert part.gpu_memory_utilization >= least.min_gpu_memory_utilization


def test_two_that_do_not_fit_are_refused_with_the_one_that_does_both(catalog: Catalog) -> None:
    """No room for two with 90 GB left free: the recipe that serves both alone, and a warning."""
    answer = ask(catalog, "agents and audio at once, leave 85 GB free")
    assert answer.side_by_side is None
    assert answer.pick is not None
    assert "nemotron-3-nano-omni-30b-a3b-nvfp4-vllm" == answer.pick.id
    assert "no two recipes fit side by side at these settings" in answer.warnings


def test_a_number_of_users_at_once_is_no_second_recipe(catalog: Catalog) -> None:
    """Four users at once are users; two uses without such a word stay ambiguous."""
    answer = ask(catalog, "agents with images for 4 users at once")
    assert (("agents",), None, 4) == (
        answer.use_cases,
        answer.side_by_side,
        answer.constraints.users,
    )


def test_the_way_out_is_named_where_one_spark_is_not_enough(catalog: Catalog) -> None:
    """Both formats for more machines; nothing of it where a licence is what fails."""
    answer = ask(catalog, "400 users, chat, 20 tok/s, 128K")
    assert answer.outgrown is not None
    assert "--format sparkrun" in answer.outgrown
    assert "--format kubernetes" in answer.outgrown
    assert ask(catalog, "multimodal, apache licence").outgrown is None
    assert ask(catalog, "agents").outgrown is None


def test_a_spanish_answer_has_no_english_sentence_of_ours(catalog: Catalog) -> None:
    """Every sentence has both languages with the same places; the catalog's notes say so."""
    for key, (english, spanish) in SENTENCES.items():
        places = [sorted(re.findall(r"\{(\w*)", text)) for text in (english, spanish)]
        assert places[0] == places[1], key
        assert english != spanish or key in ("p95",), key
    answer = ask(catalog, "agentes")
    assert answer.warnings[-1].startswith("(en inglés) ")


def test_the_page_counts_the_rest_and_says_nothing_twice(capsys: Any) -> None:
    """Four alternatives and how many more; what a figure means and what rules out, said once."""
    assert 0 == main(["recommend", "agents", "--machine", "dgx-spark"])
    page = capsys.readouterr().out
    assert 1 == page.count("an agent waits for each of its own steps")
    assert 1 == page.count("it does not call tools")
    assert "more: --all, or --limit N" in page
    main(["recommend", "agents", "--machine", "dgx-spark", "--limit", "2"])
    short = capsys.readouterr().out
    main(["recommend", "agents", "--machine", "dgx-spark", "--all"])
    whole = capsys.readouterr().out
    assert len(short.splitlines()) < len(page.splitlines()) < len(whole.splitlines())
    assert "--limit N" not in whole


def test_the_limit_counts_what_it_cuts(catalog: Catalog) -> None:
    """In Python and JSON all alternatives come unless fewer are asked for."""
    whole = ask(catalog, "agents")
    cut = ask(catalog, "agents", limit=3)
    assert (0, 3) == (whole.more_alternatives, len(cut.alternatives))
    assert len(whole.alternatives) == cut.more_alternatives + 3


def test_nothing_suits_has_an_exit_code_of_its_own(capsys: Any) -> None:
    """1, with the nearest, what would do, and the next command; misuse stays 2."""
    argv = ["recommend", "multimodal,", "apache", "licence", "--machine", "dgx-spark"]
    assert 1 == main(argv)
    page = capsys.readouterr().out
    for words in ("nothing suits", "nearest:", "what would do:", "under any licence"):
        assert words in page
    assert 2 == main(["recommend", "content", "writing"])


def test_acceptance_by_position_is_said_of_too_many_drafts(catalog: Catalog) -> None:
    """7 draft tokens on Gemma 4, whose acceptance was 6 % at the 4th position, are warned of."""
    answer = ask(catalog, "chat")
    why = {one.id: " ".join(one.why) for one in answer.alternatives}
    assert "of 7 draft tokens the last ones hardly pay" in why["gemma-4-31b-nvfp4-vllm-mtp"]
    assert "4th 6 %" in why["gemma-4-31b-nvfp4-vllm-mtp"]
    assert "hardly pay" not in why["gemma-4-26b-a4b-nvfp4-vllm-mtp"]


def test_a_lower_fraction_is_what_command_takes(capsys: Any) -> None:
    """The fraction of a reason is an option of command, and too little is warned of."""
    recipe = "nemotron-3-nano-omni-30b-a3b-nvfp4-vllm"
    argv = ["command", recipe, "--gpu-memory-utilization", "0.34", "--json"]
    assert 0 == main([*argv, "--machine", "dgx-spark"])
    told = json.loads(capsys.readouterr().out)
    assert "--gpu-memory-utilization=0.34" in told["argv"]
    assert [] == [w for w in told["warnings"] if "is less than" in w]
    argv[3] = "0.1"
    main([*argv, "--machine", "dgx-spark"])
    assert "is less than" in " ".join(json.loads(capsys.readouterr().out)["warnings"])
    argv[3] = "1.5"
    assert 2 == main(argv)


@pytest.mark.parametrize(
    ("question", "users", "note"),
    [
        (
            "agents, 4 users now, 16 later",
            4,
            "several numbers of users are named (4, 16): this is for 4; for another give --users N",
        ),
        (
            "agentes para 30 alumnos y 2 profesores",
            30,
            "se nombran varios números de usuarios (30, 2): la respuesta es para 30; para otro, "
            "--users N",
        ),
        ("agents and audio at once, 2 users now, 3 later", 2, "several numbers of users are named"),
    ],
)
def test_several_numbers_of_users_are_told(
    catalog: Catalog, question: str, users: int, note: str
) -> None:
    """One is answered for, and the answer says which, in the language of the question."""
    answer = ask(catalog, question)
    assert users == answer.constraints.users
    assert 1 == len([told for told in answer.warnings if told.startswith(note)])
    chosen = ask(catalog, question, users=3)
    assert 3 == chosen.constraints.users
    assert not [told for told in chosen.warnings if told.startswith(note[:20])]
