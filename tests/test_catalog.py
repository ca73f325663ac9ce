"""The catalog: what it answers, what it refuses, and what it keeps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkrecipes import catalog_files
from sparkrecipes.catalog import Catalog, InvalidFile, data_root, open_catalog
from sparkrecipes.catalog_files import cached_list_json, catalog_root, catalog_state
from sparkrecipes.errors import CatalogError, Misuse, UnknownId
from sparkrecipes.strict_yaml import StrictYamlError

SMALL = Path(__file__).parent / "data" / "catalog"
RECIPE = "recipes/tiny-8b-fp8-vllm.yaml"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; no variables of the machine's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARKRECIPES_CATALOG", raising=False)
    monkeypatch.delenv("SPARKRECIPES_MACHINE", raising=False)
    return tmp_path / "cache" / "sparkrecipes" / "list.json"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the small catalog that a test may change."""
    return Path(shutil.copytree(SMALL, tmp_path / "catalog"))


@pytest.fixture
def catalog() -> Catalog:
    """The small catalog."""
    return open_catalog(SMALL)


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file that must hold it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_ids_are_the_names_of_the_files(catalog):
    """Sorted, without ending; each value knows its id."""
    ids = [
        "tiny-8b-fp8-vllm",
        "tiny-8b-fp8-vllm-long",
        "tiny-8b-fp8-vllm-mtp",
        "tiny-8b-nvfp4-vllm",
    ]
    assert ids == sorted(catalog.recipes)
    assert ids == sorted(recipe.id for recipe in catalog.recipes.values())
    assert ["other", "vllm"] == list(catalog.engines)
    assert ["tiny-8b"] == list(catalog.models)
    assert ["round"] == list(catalog.evidence)
    assert ["agents"] == list(catalog.use_cases)
    assert ["out_of_memory"] == list(catalog.diagnoses)
    assert ["box"] == list(catalog.machines)
    assert ["engine"] == [entry.kind for entry in catalog.does_not_run]


def whole_list(catalog):
    """Return all rows of the list, and have it kept, with nothing added to a row."""
    return catalog.listed(everything=True, complete=lambda _, row: row).recipes


def test_hidden_files_and_other_endings_are_no_files(copy):
    """Editors leave both behind."""
    for name in (".tiny.yaml", "tiny.yaml~", "tiny.yml", "README.md"):
        (copy / "recipes" / name).write_text("not a recipe\n")
    assert 4 == len(open_catalog(copy).recipes)


def test_the_list_is_ordered_by_speed_and_doubt(catalog):
    """The fastest first, then doubtful figures, then those without any."""
    ids = [
        "tiny-8b-fp8-vllm",
        "tiny-8b-fp8-vllm-mtp",
        "tiny-8b-fp8-vllm-long",
        "tiny-8b-nvfp4-vllm",
    ]
    assert ids == [summary.id for summary in catalog.summaries()]


def test_the_list_leaves_out_what_other_publications_measured(copy):
    """It is counted and said, and shown where all is asked for; a recipe of one's own stays."""
    untested = copy / "recipes" / "tiny-8b-nvfp4-vllm.yaml"
    near = "resembles:\n  - row: round#tiny-8b-fp8-vllm\n    differs: the weights\n"
    before = open_catalog(copy).listed()
    assert (4, 0, "") == (len(before.recipes), before.more, before.note)
    untested.write_text(untested.read_text() + near)
    catalog = open_catalog(copy)
    assert (3, 1) == (len(catalog.listed().recipes), catalog.listed().more)
    assert "sparkrecipes list --all" in catalog.listed().note
    whole = catalog.listed(everything=True)
    assert (4, 0, "") == (len(whole.recipes), whole.more, whole.note)
    assert ("round",) == whole.recipes[-1].known_from


def test_the_fastest_of_equal_trust_is_first(copy):
    """Without the doubt the faster figure leads."""
    text = (copy / "evidence" / "round.yaml").read_text()
    (copy / "evidence" / "round.yaml").write_text(text.partition("    caveats:")[0])
    ids = [summary.id for summary in open_catalog(copy).summaries()]
    assert ["tiny-8b-fp8-vllm-mtp", "tiny-8b-fp8-vllm"] == ids[:2]


def test_the_status_follows_from_evidence_and_what_does_not_run(catalog):
    """Nobody writes it down."""
    states = {summary.id: summary.status for summary in catalog.summaries()}
    assert {
        "tiny-8b-fp8-vllm": "measured",
        "tiny-8b-fp8-vllm-mtp": "measured",
        "tiny-8b-fp8-vllm-long": "does_not_run",
        "tiny-8b-nvfp4-vllm": "untested",
    } == states


def test_a_measured_recipe_runs_whatever_is_known_of_its_like(copy):
    """Evidence is stronger than a rule about an image."""
    edit(copy / "does_not_run.yaml", "v0.25.1", "v0.31.0-aarch64")
    catalog = open_catalog(copy)
    assert "measured" == catalog.status(catalog.recipe("tiny-8b-fp8-vllm"))
    assert "does_not_run" == catalog.status(catalog.recipe("tiny-8b-nvfp4-vllm"))


def test_a_summary_has_the_october_row_and_every_doubt(catalog):
    """Doubts of the figures first, then those of the recipe."""
    by_id = {summary.id: summary for summary in catalog.summaries()}
    assert 90.0 == by_id["tiny-8b-fp8-vllm-mtp"].published.single_user_tok_s
    assert ("Counted in chunks, not tokens.",) == by_id["tiny-8b-fp8-vllm-mtp"].caveats
    assert ("Nobody ran exactly this.",) == by_id["tiny-8b-nvfp4-vllm"].caveats
    assert by_id["tiny-8b-nvfp4-vllm"].published is None


def test_a_row_of_another_method_is_not_the_october_row(copy):
    """Figures of two methods never stand in one column."""
    edit(copy / "evidence" / "round.yaml", "method: october", "method: school")
    catalog = open_catalog(copy)
    recipe = catalog.recipe("tiny-8b-fp8-vllm")
    assert catalog.october_row(recipe) is None
    assert ["school"] == [row.method for row in catalog.published(recipe)]
    assert {None} == {summary.published for summary in catalog.summaries()}
    assert "measured" == catalog.status(recipe)


def test_detail_has_every_source_once(catalog):
    """Those of the recipe, then those of the evidence."""
    detail = catalog.detail(catalog.recipe("tiny-8b-fp8-vllm-mtp"))
    assert ("made up for the tests", "the round's page") == detail.sources
    assert ["Counted in chunks, not tokens."] == [caveat.text for caveat in detail.caveats]
    assert ["round"] == [row.evidence for row in detail.published]


def test_a_source_of_both_recipe_and_evidence_is_named_once(copy):
    """The first place stays."""
    edit(copy / RECIPE, "made up for the tests", "the round's page")
    catalog = open_catalog(copy)
    assert ("the round's page",) == catalog.detail(catalog.recipe("tiny-8b-fp8-vllm")).sources


def test_unknown_ids_name_the_nearest(catalog):
    """Recipes, models, engines and machines: misuse, with what was perhaps meant."""
    for ask, near in (
        (lambda: catalog.recipe("tiny-8b-fp8-vlm"), "tiny-8b-fp8-vllm"),
        (lambda: catalog.model("tiny8b"), "tiny-8b"),
        (lambda: catalog.recipe("Tin"), "tiny-8b-"),
        (lambda: catalog.engine("vlm"), "vllm"),
        (lambda: catalog.machine("bax"), "box"),
    ):
        with pytest.raises(UnknownId) as caught:
            ask()
        assert 2 == caught.value.exit_code
        assert f"did you mean {near}" in caught.value.repair


def test_a_recipe_may_be_a_file(copy, catalog, tmp_path, monkeypatch):
    """Its id is the file's name; links are to the catalog that is open."""
    shutil.copy(copy / RECIPE, tmp_path / "mine.yaml")
    assert "mine" == catalog.recipe(str(tmp_path / "mine.yaml")).id
    monkeypatch.chdir(tmp_path)
    assert "mine" == catalog.recipe("mine.yaml").id
    assert "mine" == catalog.recipe(Path("mine.yaml")).id


def test_a_file_that_is_not_there_is_misuse(catalog, tmp_path):
    """Not an invalid file."""
    with pytest.raises(Misuse, match="there is no file"):
        catalog.recipe(tmp_path / "none.yaml")
    with pytest.raises(Misuse, match="there is no file"):
        catalog.machine("./none")


def test_the_machine_is_named_or_the_spark(catalog, copy, monkeypatch):
    """By id, by file, by the environment; else the DGX Spark."""
    assert "box" == catalog.machine("box").id
    assert "box" == catalog.machine(copy / "machines" / "box.yaml").id
    with pytest.raises(UnknownId, match="dgx-spark"):
        catalog.machine()
    monkeypatch.setenv("SPARKRECIPES_MACHINE", str(copy / "machines" / "box.yaml"))
    assert "box" == catalog.machine(None).id
    monkeypatch.delenv("SPARKRECIPES_MACHINE")
    assert "dgx-spark" == open_catalog(data_root() / "catalog").machine().id


def test_the_catalog_is_named_or_the_shipped_one(copy, monkeypatch):
    """By argument, by the environment; else the one that was installed."""
    assert copy == open_catalog(copy).root
    assert copy == open_catalog(str(copy)).root
    assert data_root() / "catalog" == open_catalog().root
    monkeypatch.setenv("SPARKRECIPES_CATALOG", str(copy))
    assert copy == open_catalog().root
    monkeypatch.chdir(copy.parent)
    assert copy == open_catalog(Path("catalog")).root


def test_a_folder_that_is_no_catalog_is_misuse(tmp_path):
    """Missing, empty, or a file."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path, tmp_path / "file", Path("nul\0")):
        with pytest.raises(Misuse) as caught:
            open_catalog(path)
        assert "no_catalog" == caught.value.code


def test_an_installation_without_its_data_says_so(tmp_path, monkeypatch):
    """The repair is to install again."""
    monkeypatch.setattr(catalog_files, "__file__", str(tmp_path / "sparkrecipes" / "x.py"))
    with pytest.raises(CatalogError, match="not where it was installed"):
        data_root()


def test_an_installed_copy_has_its_data_inside(tmp_path, monkeypatch):
    """The wheel's folder goes before a checkout's."""
    package = tmp_path / "sparkrecipes"
    shutil.copytree(SMALL, package / "_data" / "catalog")
    shutil.copytree(SMALL, tmp_path / "catalog")
    monkeypatch.setattr(catalog_files, "__file__", str(package / "x.py"))
    assert package / "_data" == data_root()
    shutil.rmtree(package / "_data")
    assert tmp_path == data_root()


def test_a_broken_file_breaks_only_itself(copy):
    """Other recipes can still be asked for; the list cannot be given without it."""
    edit(copy / RECIPE, "users: 4", "users: four")
    catalog = open_catalog(copy)
    assert "tiny-8b-nvfp4-vllm" == catalog.recipe("tiny-8b-nvfp4-vllm").id
    for ask in (lambda: catalog.recipe("tiny-8b-fp8-vllm"), catalog.summaries):
        with pytest.raises(InvalidFile) as caught:
            ask()
        assert f"{copy / RECIPE}:16:3: serving.users" in caught.value.message
        assert "sparkrecipes validate" in caught.value.repair
        assert 1 == caught.value.exit_code


def test_a_file_that_is_no_yaml_is_an_error_with_its_place(copy):
    """The same for what cannot even be read."""
    (copy / RECIPE).write_text("a: [1\n")
    with pytest.raises(StrictYamlError, match=r"tiny-8b-fp8-vllm\.yaml:1:4"):
        open_catalog(copy).recipe("tiny-8b-fp8-vllm")


def test_evidence_that_is_not_there_is_an_error(copy):
    """A recipe never loses its figures silently."""
    for old, new in (("round#tiny", "rounds#tiny"), ("rounds#tiny", "round#tony")):
        edit(copy / RECIPE, old, new)
        catalog = open_catalog(copy)
        with pytest.raises(CatalogError) as caught:
            catalog.published(catalog.recipe("tiny-8b-fp8-vllm"))
        assert "unknown_evidence" == caught.value.code


def test_a_catalog_may_lack_what_is_not_needed(copy):
    """A catalog for one test has no use cases and nothing that does not run."""
    for folder in ("use_cases", "diagnoses", "machines"):
        shutil.rmtree(copy / folder)
    (copy / "does_not_run.yaml").unlink()
    catalog = open_catalog(copy)
    assert ({}, ()) == (dict(catalog.use_cases), catalog.does_not_run)
    assert 4 == len(whole_list(catalog))


def test_the_list_is_kept_as_the_command_prints_it(catalog, cache):
    """Byte for byte the JSON of the answer; a second catalog takes the place of the first."""
    assert cached_list_json(SMALL) is None
    for everything in (False, True):
        answer = catalog.listed(everything=everything, complete=lambda _, row: row)
        kept = cached_list_json(SMALL, everything=everything)
        data = answer.model_dump(mode="json")
        assert json.dumps(data, ensure_ascii=False, indent=2) == kept.decode()
    assert [cache] == list(cache.parent.iterdir())
    whole_list(open_catalog())
    assert cached_list_json() is not None
    assert cached_list_json(SMALL) is None
    assert [cache] == list(cache.parent.iterdir())


def test_the_kept_list_is_what_summaries_gives(catalog):
    """Validated again, and equal to what was reckoned."""
    reckoned = whole_list(catalog)
    assert reckoned == whole_list(open_catalog(SMALL))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (RECIPE, "Tiny 8B FP8", "Tiny 8B FP9"),
        ("models/tiny-8b.yaml", "8.0", "9.0"),
        ("evidence/round.yaml", "40.0", "95.0"),
        ("does_not_run.yaml", "v0.25.1", "v0.25.2"),
    ],
)
def test_a_changed_file_changes_the_list(copy, file, old, new):
    """Even where its size is the same."""
    before = whole_list(open_catalog(copy))
    edit(copy / file, old, new)
    assert cached_list_json(copy) is None
    assert before != whole_list(open_catalog(copy))


def test_a_new_or_lost_file_changes_the_list(copy):
    """Names count too."""
    whole_list(open_catalog(copy))
    (copy / RECIPE).rename(copy / "recipes" / "renamed.yaml")
    assert "renamed" in [summary.id for summary in whole_list(open_catalog(copy))]
    (copy / "recipes" / "renamed.yaml").unlink()
    assert 3 == len(whole_list(open_catalog(copy)))


def test_a_list_of_another_release_is_not_used(catalog, monkeypatch):
    """The code that made it may have changed."""
    whole_list(catalog)
    monkeypatch.setattr("sparkrecipes.__version__", "99")
    assert cached_list_json(SMALL) is None


def test_a_broken_cache_is_not_used(catalog, cache):
    """Cut off, flipped, empty, or a folder: the answer is reckoned and the cache mended."""
    right = whole_list(catalog)
    kept = cache.read_bytes()
    flipped = kept[:-50] + bytes([kept[-50] ^ 1]) + kept[-49:]
    for broken in (kept[:-1], flipped, b"", b"\0\0", b"[]", kept[:40]):
        cache.write_bytes(broken)
        assert cached_list_json(SMALL) is None
        assert right == whole_list(open_catalog(SMALL))
        assert kept == cache.read_bytes()
    cache.unlink()
    cache.mkdir()
    assert cached_list_json(SMALL) is None
    assert right == whole_list(open_catalog(SMALL))
    assert [cache] == list(cache.parent.iterdir())


def test_a_kept_list_of_another_shape_is_not_trusted(catalog, cache):
    """What the types refuse is reckoned anew, although it is intact."""
    right = whole_list(catalog)
    wrong = b'{"recipes": [{"id": 1}]}'
    catalog_files.store_list_json(catalog_state(SMALL), wrong, wrong)
    assert wrong == cached_list_json(SMALL)
    assert right == whole_list(open_catalog(SMALL))


def test_no_cache_folder_is_no_error(catalog, tmp_path, monkeypatch):
    """A file in its place, a folder that cannot be made, no home: nothing is kept."""
    (tmp_path / "file").touch()
    for place in (str(tmp_path / "file"), "/dev/null/x", "/proc/x"):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert 4 == len(whole_list(catalog))
        assert cached_list_json(SMALL) is None


def test_a_relative_cache_folder_is_not_used(catalog, tmp_path, monkeypatch):
    """As the XDG rules say; nothing is written where the user happens to stand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    whole_list(catalog)
    assert (tmp_path / "home" / ".cache" / "sparkrecipes" / "list.json").is_file()
    monkeypatch.setenv("HOME", "also/relative")
    whole_list(catalog)
    assert [tmp_path / "home"] == list(tmp_path.iterdir())


def test_a_catalog_that_is_none_has_no_kept_list(tmp_path):
    """The caller then meets the error of opening it."""
    assert cached_list_json(tmp_path) is None


def test_reading_changes_nothing_but_the_cache(copy, tmp_path):
    """Every question together leaves one file behind."""
    before = sorted(p for p in tmp_path.rglob("*"))
    catalog = open_catalog(copy)
    for recipe in catalog.recipes.values():
        catalog.detail(recipe)
    whole_list(catalog)
    new = [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p not in before]
    assert ["cache", "cache/sparkrecipes", "cache/sparkrecipes/list.json"] == sorted(new)


def test_the_kept_list_needs_neither_types_nor_yaml():
    """This is what makes ``list --json`` quick."""
    code = (
        "import sys; from sparkrecipes.catalog_files import cached_list_json; cached_list_json();"
        "print([m for m in ('pydantic', 'yaml', 'platformdirs') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == out.stdout.strip()


def test_a_search_in_the_kept_list_needs_no_arithmetic():
    """This is what makes a server's first answer quick: forecasts are made once, then kept."""
    code = (
        "import sys; from sparkrecipes import operations;"
        "operations.list_recipes(everything=True);"
        "heavy = ('sparkrecipes.memory', 'sparkrecipes.speed');"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert "sparkrecipes.memory" in first.stdout
    assert "[]" == second.stdout.strip()


def test_the_catalogs_place_is_absolute(copy, monkeypatch):
    """A kept list is not taken for that of the same name elsewhere."""
    monkeypatch.chdir(copy.parent)
    assert copy == catalog_root(Path("catalog"))
