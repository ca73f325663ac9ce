"""Contributing: a round becomes evidence without naming a host; a change is laid out for review."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import contribute_round, review_changes
from sparkrecipes.catalog import open_catalog, validate
from sparkrecipes.cli.main import main
from sparkrecipes.contributions import (
    NoRepository,
    NotContributable,
    Repository,
    evidence_text,
    pointing_at,
)
from sparkrecipes.errors import CatalogError, Misuse, UnknownId
from sparkrecipes.schema.contribution import Review
from sparkrecipes.schema.round import Round
from sparkrecipes.strict_yaml import parse
from tests.support.full_round import full_round

DATA = Path(__file__).parent / "data" / "catalog"
RECIPE = "tiny-8b-fp8-vllm"
MACHINE = {"id": "box", "mem_total_bytes": 10_000_000_000}
SECRET = "hf_abcdefghijklmnopqrstuvwx"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the small catalog and one commit on its branch main."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    top = tmp_path / "clone"
    shutil.copytree(DATA, top / "catalog")
    git(top, "init", "-q", "-b", "main")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "Begin")
    monkeypatch.chdir(top)
    return top


def git(top: Path, *words: str) -> None:
    """Run git in a repository as nobody in particular."""
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], cwd=top, check=True, capture_output=True)


def measured(**changes: Any) -> Round:
    """Return a round of the small recipe on the small machine."""
    return full_round(**{"recipe_id": RECIPE, "machine": MACHINE} | changes)


def contribute(clone: Path, **changes: Any) -> Any:
    """Contribute such a round."""
    return contribute_round(measured(**changes), catalog=clone / "catalog")


def test_a_round_becomes_a_row_that_its_recipe_points_at(clone):
    """The figures of the published method, valid, and shown as published from then on."""
    answer = contribute(clone)
    opened = open_catalog(clone / "catalog")
    row = opened.evidence[answer.reference.partition("#")[0]].rows[0]
    assert (102.3, 240.0, 106.0, 9.5, True) == (
        row.figures.single_user_tok_s,
        row.figures.four_users_total_tok_s,
        row.figures.ttft_ms,
        row.figures.long_prompt_46k_s,
        row.figures.stable,
    )
    assert (None, None) == (row.figures.load_min, row.figures.memory_gb)
    assert answer.reference in opened.recipe(RECIPE).evidence
    assert answer.reference.partition("#")[0] in {
        found.evidence for found in opened.published(opened.recipe(RECIPE))
    }
    report = validate([Path(answer.evidence_file), Path(answer.recipe_file)])
    assert ((), True) == (report.problems, report.valid)
    assert 8 == len(opened.evidence[Path(answer.evidence_file).stem].by_workload[0].workloads)


def test_a_contributed_round_is_shown_and_ranked_with_none(clone):
    """Nobody else has seen that machine: the list keeps to the publication's figures."""
    opened = open_catalog(clone / "catalog")
    before = opened.summary(opened.recipe(RECIPE)).published
    contribute(clone, published_method__single_user_tok_s=999.0)
    opened = open_catalog(clone / "catalog")
    recipe = opened.recipe(RECIPE)
    assert before == opened.summary(recipe).published
    alone = recipe.model_copy(update={"evidence": recipe.evidence[-1:]})
    assert (None, "measured") == (opened.october_row(alone), opened.status(alone))
    assert 999.0 == opened.published(alone)[0].row.figures.single_user_tok_s


def test_only_one_line_of_the_recipe_changes(clone):
    """Comments and layout stay."""
    before = (clone / "catalog" / "recipes" / f"{RECIPE}.yaml").read_text()
    answer = contribute(clone)
    after = Path(answer.recipe_file).read_text()
    assert before == after.replace(f"  - {answer.reference}\n", "")
    assert f"+  - {answer.reference}" in answer.recipe_diff


def test_machine_facts_are_in_it_and_nothing_that_names_a_host(clone, tmp_path):
    """No address, host name, path, message or token of the round reaches the file."""
    answer = contribute(
        clone,
        machine=MACHINE | {"hostname": "secret-host", "path": "/home/ada"},
        server__base_url="http://secret-host.lan:8000/v1",
        server__model="/home/ada/models/x",
        server__engine_version="0.31.0 (http://secret-host.lan)",
        tool_version="0.1.0 /home/ada",
        warnings=(f"too_short: at http://secret-host.lan:8000 {SECRET}",),
        stability__errors=(f"http://secret-host.lan refused {SECRET}",),
        smoke={"words": True, "tool_call": None, "image": None, "message": "/home/ada"},
        saved_to="/home/ada/round.json",
        gpu={
            "samples": 9,
            "under_load": 9,
            "sm_clock_mhz": {"median": 2400.0, "min": 2300.0, "max": 2500.0},
            "utilization_pct": None,
            "power_w": None,
            "temperature_c": {"median": 70.0, "min": 60.0, "max": 81.0},
        },
    )
    text = Path(answer.evidence_file).read_text()
    for word in ("secret-host.lan", "http", "/home", SECRET, "hostname", "8000", "refused"):
        assert word not in text.replace("published", "").replace(SCHEMA, ""), word
    assert "MemTotal 9.31 GiB, SM clock 2400 MHz (median under load), GPU 81 C at most" in text
    assert "warnings of the round: too_short" in text


SCHEMA = "# yaml-language-server: $schema=../schemas/evidence.schema.json\n"

REFUSED = [
    ({"simulated": True}, "rehearsal"),
    ({"method": "school"}, "method school"),
    ({"machine": None}, "which machine"),
    ({"started_at": "yesterday"}, "when it began"),
    ({"warnings": ("garbage_output: x",)}, "no words"),
    ({"warnings": ("other_traffic: x",)}, "somebody else"),
    ({"smoke": {"words": False, "tool_call": None, "image": None}}, "no words"),
    (
        {
            "published_method": dict.fromkeys(
                ("single_user_tok_s", "ttft_ms", "four_users_total_tok_s", "long_prompt_46k_s")
            )
        },
        "no figure",
    ),
]


@pytest.mark.parametrize(("changes", "why"), REFUSED, ids=[r[1] for r in REFUSED])
def test_what_shows_nothing_of_the_recipe_is_refused(clone, changes, why):
    """With the reason, exit 1, and nothing written."""
    with pytest.raises(NotContributable, match=why) as caught:
        contribute(clone, **changes)
    assert 1 == caught.value.exit_code
    assert "" == status(clone)


def status(top: Path) -> str:
    """Return what git finds changed."""
    return subprocess.run(
        ["git", "status", "--porcelain"], cwd=top, check=True, capture_output=True, text=True
    ).stdout


def test_a_total_of_other_users_is_no_total_of_four(clone):
    """The row's column is four users'."""
    assert None is contribute(clone, concurrent__users=8).figures.four_users_total_tok_s


def test_the_recipe_may_be_named_and_must_be_known(clone):
    """A round of an endpoint does not say which recipe was served."""
    with pytest.raises(Misuse, match="which recipe"):
        contribute(clone, recipe_id=None)
    with pytest.raises(UnknownId):
        contribute(clone, recipe_id="tiny-9b")
    answer = contribute_round(
        measured(recipe_id=None), recipe=RECIPE, dry_run=True, catalog=clone / "catalog"
    )
    assert RECIPE == answer.recipe_id


def test_the_same_round_is_taken_once_and_another_gets_its_own_file(clone):
    """Of one recipe and one day."""
    first = contribute(clone)
    with pytest.raises(Misuse, match="in the catalog already"):
        contribute(clone)
    second = contribute(clone, published_method__ttft_ms=107.0)
    assert f"{Path(first.evidence_file).stem}-2" == Path(second.evidence_file).stem
    assert 3 == len(open_catalog(clone / "catalog").recipe(RECIPE).evidence)


def test_a_dry_run_and_the_installed_catalog_write_nothing(clone, tmp_path):
    """The first says what would be; the second is refused with what to name."""
    answer = contribute_round(measured(), dry_run=True, catalog=clone / "catalog")
    assert not answer.written
    assert "" == status(clone)
    shutil.copytree(DATA, tmp_path / "_data" / "catalog")
    with pytest.raises(Misuse, match="installed catalog") as caught:
        contribute_round(measured(), catalog=tmp_path / "_data" / "catalog")
    assert "--catalog" in caught.value.repair


def test_where_the_recipe_cannot_be_written_no_evidence_is_left(clone, monkeypatch):
    """Half a contribution is none."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CatalogError, match="cannot be written"):
        contribute(clone)
    assert "" == status(clone)


def test_the_command_line_contributes_a_saved_round(clone, tmp_path, capsys):
    """One file, one command; the name to print is the contributor's own."""
    saved = tmp_path / "round.json"
    saved.write_text(measured().model_dump_json())
    argv = ["contribute", str(saved), "--catalog", str(clone / "catalog"), "--publisher", "Ada"]
    assert 0 == main([*argv, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert "publisher: Ada\n" in Path(answer["evidence_file"]).read_text()
    assert 2 == main([*argv, "--dry-run"])
    saved.write_text(measured(simulated=True).model_dump_json())
    assert 1 == main(argv)
    assert "rehearsal" in capsys.readouterr().err


POINTERS = [
    ("evidence:\n  - a#b\nsources:\n  - x\n", "evidence:\n  - a#b\n  - c#d\nsources:\n  - x\n"),
    (
        "evidence:\n    - a#b # one\nsources: [x]\n",
        "evidence:\n    - a#b # one\n    - c#d\nsources: [x]\n",
    ),
    ("evidence: []\nsources: [x]\n", "evidence:\n  - c#d\nsources: [x]\n"),
    ("evidence: [a#b]\nsources: [x]\n", "evidence:\n  - a#b\n  - c#d\nsources: [x]\n"),
    ("# top\nsources:\n  - x\n", "# top\nevidence:\n  - c#d\nsources:\n  - x\n"),
    (
        "evidence:\n  - >-\n    a#b\nsources: [x]\n",
        "evidence:\n  - >-\n    a#b\n  - c#d\nsources: [x]\n",
    ),
    ("evidence:\n  - c#d\nsources: [x]\n", "evidence:\n  - c#d\nsources: [x]\n"),
]


@pytest.mark.parametrize(("before", "after"), POINTERS)
def test_a_recipe_is_pointed_at_a_row_however_it_is_laid_out(before, after):
    """Whether it had evidence before or not."""
    assert after == pointing_at(before, "c#d")
    assert "c#d" in parse(after).tree["evidence"]


def test_what_strict_yaml_would_read_otherwise_is_not_written():
    """The text is read back before anyone sees it."""
    assert "0.10" in evidence_text({"a": "0.10", "b": "2026-12-02", "c": "no"})
    with pytest.raises(CatalogError):
        evidence_text({"a": "\u202e"})


def change(clone: Path, file: str, *swaps: tuple[str, str]) -> None:
    """Replace texts in a file of the clone."""
    path = clone / file
    text = path.read_text()
    for old, new in swaps:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)


def items(review: Review, kind: str) -> list[str]:
    """Return what is to be looked at of one kind, without where."""
    return [f"{item.what}: {item.old} -> {item.new}" for item in review.items if item.kind == kind]


def test_nothing_changed_is_nothing_to_look_at(clone):
    """Exit 0."""
    review = review_changes()
    assert ((), (), True) == (review.files, review.items, review.valid)
    assert 0 == main(["review"])


def test_a_changed_recipe_shows_image_flags_environment_and_settings(clone):
    """Each with what stood there and what stands there now, by line."""
    change(
        clone,
        f"catalog/recipes/{RECIPE}.yaml",
        ("vllm/vllm-openai:v0.31.0-aarch64", "ghcr.io/other/vllm:v0.31.0"),
        ("  digest: sha256:" + "a" * 64, "  digest: null"),
        ("users: 4", "users: 8"),
        (
            "  - --tool-call-parser=hermes\n",
            "  - --tool-call-parser=openai\n  - --trust-remote-code\n",
        ),
        ('HF_HUB_OFFLINE: "1"', 'HF_HUB_OFFLINE: "0"'),
    )
    review = review_changes()
    [image] = [item for item in review.items if item.kind == "image"]
    assert "ghcr.io/other/vllm:v0.31.0" == image.new
    assert f"vllm/vllm-openai:v0.31.0-aarch64 sha256:{'a' * 64}" == image.old
    assert ("registry ghcr.io; not pinned by digest", 9) == (image.look, image.line)
    assert ["a new flag: None -> --tool-call-parser=openai"] == items(review, "flag")[:1]
    assert "a flag is gone: --tool-call-parser=hermes -> None" in items(review, "flag")
    assert ["a new flag: None -> --trust-remote-code"] == items(review, "code")
    assert ["HF_HUB_OFFLINE: another value: 1 -> 0"] == items(review, "env")
    assert ["serving.users: 4 -> 8"] == items(review, "setting")
    assert any("users 8 is claimed, 4 was measured" in one for one in items(review, "claim"))


def test_a_new_recipe_shows_its_image_and_what_it_claims(clone):
    """Added to git or not."""
    text = (clone / "catalog" / "recipes" / f"{RECIPE}.yaml").read_text()
    text = text.replace("evidence:\n  - round#tiny-8b-fp8-vllm\n", "").replace(
        "  - --enable-auto-tool-choice\n", "  - --enable-auto-tool-choice\n  - --seed=7\n"
    )
    (clone / "catalog" / "recipes" / "tiny-8b-fp8-vllm-mine.yaml").write_text(text)
    review = review_changes()
    assert ("catalog/recipes/tiny-8b-fp8-vllm-mine.yaml",) == review.files
    assert [f"a new image: None -> vllm/vllm-openai:v0.31.0-aarch64 sha256:{'a' * 64}"] == items(
        review, "image"
    )
    assert ["a flag that no other recipe has: None -> --seed=7"] == items(review, "flag")
    claims = " ".join(items(review, "claim"))
    assert "nothing measured this configuration" in claims
    assert "clients may rely on tools" in claims
    assert "a source without an address" in claims
    assert review.valid


def test_a_changed_figure_shows_old_and_new_and_a_new_row_its_figures(clone):
    """By the names of rows, whatever their order."""
    change(
        clone,
        "catalog/evidence/round.yaml",
        ("single_user_tok_s: ", "single_user_tok_s: 9"),
        ("  - id: tiny-8b-fp8-vllm-mtp", "  - id: another"),
    )
    review = review_changes()
    figures = " | ".join(items(review, "figure"))
    assert f"rows.{RECIPE}.figures.single_user_tok_s: " in figures
    assert "a new row another: None -> single_user_tok_s " in figures
    assert "rows.tiny-8b-fp8-vllm-mtp.figures.single_user_tok_s is gone: " in figures
    assert not review.valid
    assert ["catalog/recipes/tiny-8b-fp8-vllm-mtp.yaml"] == [p.file for p in review.problems]


def test_licences_and_facts_of_models_are_shown(clone):
    """A licence that nobody states is said to be that."""
    model = "catalog/models/tiny-8b.yaml"
    change(clone, model, ("licence: null", "licence: mit"), ("kv_heads: 8", "kv_heads: 16"))
    review = review_changes()
    assert ["another licence: not stated -> mit"] == items(review, "licence")
    assert ["layers.1.kv_heads: 8 -> 16"] == items(review, "fact")


def test_files_outside_of_the_catalog_are_named(clone):
    """With what each of them can do; documentation is read anyway."""
    (clone / ".github").mkdir()
    (clone / ".github" / "x.yml").write_text("a: 1\n")
    (clone / "README.md").write_text("x\n")
    (clone / "catalog" / "engines" / "flags").mkdir()
    (clone / "catalog" / "engines" / "flags" / "vllm.json").write_text("{}\n")
    review = review_changes()
    looks = {item.file: item.look for item in review.items}
    assert "it runs in this repository's CI" == looks[".github/x.yml"]
    assert "its own script" in looks["catalog/engines/flags/vllm.json"]
    assert "README.md" not in looks
    assert "README.md" in review.files


def test_a_removed_file_and_an_invalid_one_are_found(clone, capsys):
    """Exit 1 where validate has an error; the file by its name in the clone."""
    (clone / "catalog" / "diagnoses" / "out_of_memory.yaml").unlink()
    change(clone, f"catalog/recipes/{RECIPE}.yaml", ("title:", "titel:"))
    review = review_changes()
    assert ["diagnose is removed: None -> None"] == items(review, "fact")
    assert {f"catalog/recipes/{RECIPE}.yaml"} == {p.file for p in review.problems}
    assert 1 == main(["review", "main"])
    said = capsys.readouterr().out
    assert f"catalog/recipes/{RECIPE}.yaml:2:1: error: unknown key titel" in said
    assert "2 files differ from main" in said


def test_only_the_change_itself_is_compared(clone):
    """What main got meanwhile is not the contributor's."""
    git(clone, "checkout", "-q", "-b", "mine")
    change(clone, f"catalog/recipes/{RECIPE}.yaml", ("users: 4", "users: 2"))
    git(clone, "commit", "-q", "-a", "-m", "Fewer users")
    git(clone, "checkout", "-q", "main")
    change(clone, "catalog/machines/box.yaml", ("title: ", "title: Another "))
    git(clone, "commit", "-q", "-a", "-m", "Meanwhile")
    git(clone, "checkout", "-q", "mine")
    assert (f"catalog/recipes/{RECIPE}.yaml",) == review_changes("main").files


@pytest.mark.parametrize("base", ["nothing", "--output=/tmp/x", "HEAD:catalog", ""])
def test_a_base_that_git_does_not_know_is_misuse(clone, base):
    """An option is none, and nothing is written for it."""
    with pytest.raises(NoRepository) as caught:
        review_changes(base)
    assert 2 == caught.value.exit_code


def test_without_a_repository_it_says_so(tmp_path, monkeypatch):
    """Whether the folder is in none, or git is not installed."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(NoRepository, match="not in a git repository"):
        review_changes(folder=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoRepository, match="git is not installed"):
        review_changes(folder=tmp_path)


def test_a_contributed_round_is_laid_out_for_review(clone):
    """The whole way of a contributor: one round, one command, then what a reviewer sees."""
    contribute(clone)
    review = review_changes()
    assert 2 == len(review.files)
    assert [
        f"a new row {RECIPE}: None -> single_user_tok_s 102.3, four_users_total_tok_s 240.0, "
        "ttft_ms 106.0, long_prompt_46k_s 9.5, stable True"
    ] == items(review, "figure")
    claims = items(review, "claim")
    assert "figures of a user of sparkrecipes, trust rank 3: None -> None" in claims
    assert review.valid


def test_a_kind_of_prompt_that_failed_is_no_row(clone):
    """Its speed is that of the requests that came through, and says nothing of the others."""
    whole = measured().varied
    failed = (whole[0].model_copy(update={"failed": 1}), *whole[1:])
    answer = contribute_round(
        measured().model_copy(update={"varied": failed}), catalog=clone / "catalog"
    )
    [kinds] = open_catalog(clone / "catalog").evidence[Path(answer.evidence_file).stem].by_workload
    assert len(whole) - 1 == len(kinds.workloads)


def test_a_digest_in_the_reference_pins_as_well(clone):
    """Whichever way it is written, a reviewer is told that it is pinned."""
    pinned = "vllm/vllm-openai:v0.31.0-aarch64@sha256:" + "b" * 64
    change(
        clone,
        f"catalog/recipes/{RECIPE}.yaml",
        ("vllm/vllm-openai:v0.31.0-aarch64", pinned),
        ("  digest: sha256:" + "a" * 64, "  digest: null"),
    )
    [image] = [item for item in review_changes().items if item.kind == "image"]
    assert "registry docker.io; pinned by digest" == image.look


def test_a_link_is_not_followed(clone, tmp_path):
    """A file of the reviewer's machine is not read for a link that a contributor made."""
    secret = tmp_path / "id_rsa.yaml"
    secret.write_text("title: a private key\n")
    (clone / "catalog" / "models" / "linked.yaml").symlink_to(secret)
    changed = {one.path: one for one in Repository.around(clone).changed("HEAD")}
    linked = changed["catalog/models/linked.yaml"]
    assert (True, None) == (linked.is_there, linked.new)
