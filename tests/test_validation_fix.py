"""`validate --fix`: what is mechanical is put right; everything else stays as it was written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkrecipes.catalog import data_root, open_catalog, validate
from sparkrecipes.cli.main import main
from sparkrecipes.errors import CatalogError
from sparkrecipes.schema.findings import FileChange
from sparkrecipes.strict_yaml import Fix, parse
from sparkrecipes.strict_yaml.editing import CannotEdit, edited, spans_of, written_item

DATA = Path(__file__).parent / "data" / "catalog"
GOOD = (DATA / "recipes" / "tiny-8b-fp8-vllm.yaml").read_text()


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe in a catalog that a test may break."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    catalog = Path(shutil.copytree(DATA, tmp_path / "catalog"))
    return catalog / "recipes" / "tiny-8b-fp8-vllm.yaml"


def fixed(path: Path, text: str) -> tuple[str, list[str]]:
    """Write a text, put it right, and return it with the codes of the changes."""
    path.write_text(text, newline="")
    report = validate([path], fix=True)
    changes = [one.code for change in report.changes for one in change.changes]
    with path.open(newline="") as file:
        return file.read(), changes


FIXES = [
    ("misspelt key", "serving:", "servng:", "unknown_key"),
    ("key with dashes", "served_model_name:", "served-model-name:", "unknown_key"),
    ("misspelt inner key", "  context_tokens:", "  context_token:", "unknown_key"),
    ("unquoted version", '"0.31.0"', "0.31", "wrong_type"),
    ("quoted number", "users: 4", 'users: "4"', "wrong_type"),
    ("case of a value", "kv_cache_dtype: fp8", "kv_cache_dtype: FP8", "wrong_value"),
    ("case of a capability", "  - tools", "  - Tools", "wrong_value"),
    ("case of an id", "engine: vllm", "engine: vLLM", "wrong_value"),
    ("case of a repository", "vllm/vllm-openai", "vLLM/vllm-openai", "image_case"),
    ("number in the environment", '"1"', "1", "wrong_type"),
    ("its own id", "title:", "id: tiny-8b-fp8-vllm\ntitle:", "id_key"),
    ("flag twice", "hermes\n", "hermes\n  - --tool-call-parser=hermes\n", "duplicate_flag"),
    (
        "flag twice in other words",
        "hermes\n",
        "hermes\n  - --tool_call_parser\n  - hermes\n",
        "duplicate_flag",
    ),
    ("name and value in one item", "parser=hermes", "parser hermes", "joined_flag"),
    ("abbreviated", "--enable-auto-tool-choice", "--enable-auto-tool-ch", "abbreviated_flag"),
    ("spaces at the end", "users: 4\n", "users: 4  \n", "trailing_space"),
    ("tabs at the end", "users: 4\n", "users: 4\t\n", "trailing_space"),
]


@pytest.mark.parametrize(
    ("right", "wrong", "code"), [f[1:] for f in FIXES], ids=[f[0] for f in FIXES]
)
def test_a_mechanical_fault_is_put_right_to_the_letter(recipe, right, wrong, code):
    """The file is then what it was before the fault, every other byte the same."""
    assert right in GOOD
    after, changes = fixed(recipe, GOOD.replace(right, wrong, 1))
    if wrong == "0.31":
        assert GOOD.replace('"0.31.0"', '"0.31"') == after
    else:
        assert GOOD == after
    assert [code] == changes


def test_several_faults_of_one_file_are_all_put_right(recipe):
    """One change may bring the next to light: a flag in full is one that is there already."""
    wrong = GOOD.replace("engine: vllm", "engine: VLLM").replace("users: 4", "user: 4")
    wrong = wrong.replace("hermes\n", "hermes\n  - --tool-call-pars=hermes\n")
    after, changes = fixed(recipe, wrong)
    assert GOOD == after
    assert {"wrong_value", "unknown_key", "abbreviated_flag", "duplicate_flag"} == set(changes)


def test_renamed_flags_are_written_as_the_release_has_them(recipe):
    """With the value they had; those without effect go."""
    flags = "hermes\n  - --disable-log-requests # no noise\n  - --cuda-graph-sizes\n  - '8'\n"
    after, changes = fixed(recipe, GOOD.replace("hermes\n", flags + "  - --use-v2-block-manager\n"))
    lines = "hermes\n  - --no-enable-log-requests # no noise\n  - --cudagraph-capture-sizes=8\n"
    assert GOOD.replace("hermes\n", lines) == after
    assert ["renamed_flag"] * 3 == changes


def test_keys_come_in_the_order_of_other_recipes_with_their_comments(recipe):
    """A comment right above a key goes with it; what is above the first one stays."""
    env = '# no network\nenv:\n  HF_HUB_OFFLINE: "1" # none\n'
    assert 'env:\n  HF_HUB_OFFLINE: "1"\n' in GOOD
    rest = GOOD.replace('env:\n  HF_HUB_OFFLINE: "1"\n', "")
    after, changes = fixed(recipe, rest.replace("engine: vllm\n", f"{env}engine: vllm\n"))
    assert rest.replace("startup_timeout_s", f"{env}startup_timeout_s") == after
    assert ["key_order"] == changes


DOUBTFUL = [
    ("another value of the same flag", "hermes\n", "hermes\n  - --tool-call-parser=openai\n"),
    (
        "a short name of a flag with another value",
        "hermes\n",
        "hermes\n  - --tool-call-pars=openai\n",
    ),
    ("a key with one name that is a little like it", "startup_timeout_s:", "startup_s:"),
    ("a key that is not near enough", "engine_version", "engine_ver"),
    ("a key that is there already", "served_model_name:", "titel: x\nserved_model_name:"),
    ("a boolean word", '"1"', "off"),
    ("an unknown model", "model: tiny-8b", "model: tiny-9b"),
    ("another id", "title:", "id: other\ntitle:"),
    ("a misspelt flag", "--tool-call-parser", "--tool-cal-parser"),
    ("a flag of a field", "hermes\n", "hermes\n  - --max-model-len=1\n"),
    ("a removed flag", "hermes\n", "hermes\n  - --calculate-kv-scales\n"),
    ("a wrong choice", "hermes\n", "hermes\n  - --dtype=bf16\n"),
    ("a repeated flag with a comment", "hermes\n", "hermes\n  - --tool-call-parser=hermes # 2\n"),
    ("a context above the model's", "context_tokens: 32768", "context_tokens: 327680"),
    ("a tab inside", "  users: 4", "\tusers: 4"),
]


@pytest.mark.parametrize(
    ("right", "wrong"), [d[1:] for d in DOUBTFUL], ids=[d[0] for d in DOUBTFUL]
)
def test_what_is_doubtful_is_not_touched(recipe, right, wrong):
    """It stays a problem, and the file stays as it is."""
    text = GOOD.replace(right, wrong, 1)
    assert text != GOOD
    assert (text, []) == fixed(recipe, text)
    assert validate([recipe]).problems


def test_a_dry_run_says_it_all_and_writes_nothing(recipe, capsys):
    """The diff, the changes, and the problems of the file as it is; exit 1."""
    text = GOOD.replace("engine: vllm", "engine: VLLM")
    recipe.write_text(text)
    assert 1 == main(["validate", "--fix", "--dry-run", str(recipe)])
    said = capsys.readouterr().out
    assert "\n-engine: VLLM\n+engine: vllm\n" in said
    assert "11: would change (wrong_value): engine: VLLM" in said
    assert "1 errors" in said
    assert text == recipe.read_text()
    assert 0 == main(["validate", "--fix", str(recipe)])
    assert ": changed (wrong_value)" in capsys.readouterr().out
    assert GOOD == recipe.read_text()


def test_a_dry_run_needs_fix(recipe, capsys):
    """Alone it would do what validate does anyway."""
    assert 2 == main(["validate", "--dry-run", str(recipe)])
    assert "--fix --dry-run" in capsys.readouterr().err


def test_validate_says_what_it_could_put_right(recipe, capsys):
    """By problem for programs, in one line for people; not after it was tried."""
    recipe.write_text(GOOD.replace("engine: vllm", "engine: VLLM"))
    assert [True] == [p.fixable for p in validate([recipe]).problems]
    main(["validate", str(recipe)])
    assert "1 can be put right: sparkrecipes validate --fix" in capsys.readouterr().out
    recipe.write_text(GOOD.replace("served_model_name:", "titel: x\nserved_model_name:"))
    assert [False] == [p.fixable for p in validate([recipe]).problems]
    recipe.write_text(GOOD.replace("engine: vllm", "engine: sglan"))
    assert [False] == [p.fixable for p in validate([recipe]).problems if p.level == "error"]


def test_the_marks_of_other_editors_are_kept(recipe):
    """Windows line ends, a byte order mark, and the file's permissions."""
    recipe.chmod(0o640)
    windows = "\ufeff" + GOOD.replace("\n", "\r\n")
    after, changes = fixed(recipe, windows.replace("engine: vllm", "engine: VLLM"))
    assert (windows, ["wrong_value"]) == (after, changes)
    assert 0o640 == recipe.stat().st_mode & 0o777
    assert (windows, []) == fixed(recipe, windows)


def test_a_link_stays_a_link(recipe, tmp_path):
    """The file that it names is changed."""
    link = recipe.with_name("tiny-8b-fp8-vllm-link.yaml")
    recipe.write_text(GOOD.replace("engine: vllm", "engine: VLLM"))
    link.symlink_to(recipe)
    [change] = validate([link], fix=True).changes
    assert link.is_symlink()
    assert (GOOD, str(link)) == (recipe.read_text(), change.file)


def test_text_blocks_keep_their_spaces(recipe):
    """In a literal text the spaces at the ends of lines belong to it."""
    text = GOOD.replace("title: Tiny 8B FP8", "title: |-\n  Tiny  \n  8B")
    assert (text, []) == fixed(recipe, text)


def test_a_file_that_cannot_be_written_is_said_so(recipe, monkeypatch):
    """And nothing is left beside it."""
    recipe.write_text(GOOD.replace("engine: vllm", "engine: VLLM"))

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CatalogError, match="cannot be written: No space left"):
        validate([recipe], fix=True)
    assert [] == list(recipe.parent.glob(".*"))


def test_the_shipped_catalog_has_nothing_to_put_right():
    """Every file of it is already as it should be written."""
    report = validate([data_root() / "catalog"], fix=True, dry_run=True)
    assert () == report.changes


def test_other_kinds_are_put_right_too(recipe):
    """Whatever the types and the layout show."""
    model = recipe.parents[1] / "models" / "tiny-8b.yaml"
    before = model.read_text()
    model.write_text(
        before.replace("hidden_size", "hiden_size").replace("count: 32", 'count: "32"')
    )
    [change] = validate([model], fix=True).changes
    assert before == model.read_text()
    assert {"unknown_key", "wrong_type"} == {one.code for one in change.changes}


LINES = GOOD.splitlines(keepends=True)
ODD_LINES = st.sampled_from(
    [
        *LINES,
        "  - --seed 7\n",
        "  - --enable-prefix-cach\n",
        "  - --seed=7 # once\n",
        "servng: {}\n",
        "users: '4'\n",
        "# a comment\n",
        "title: x  \n",
        "env: {A: 1}\n",
        "capabilities: [Text, TOOLS]\n",
        "\n",
    ]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_putting_right_ends_and_never_harms(recipe, data):
    """A second time changes nothing; comments stay; what was valid is; errors never grow."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + data.draw(st.integers(0, 1))] = data.draw(st.lists(ODD_LINES, max_size=2))
    text = "".join(lines)
    recipe.write_text(text)
    before = validate([recipe])
    after, changes = fixed(recipe, text)
    again, more = fixed(recipe, after)
    assert (after, []) == (again, more)
    assert bool(changes) == (after != text)
    comments = sorted(line.strip() for line in text.splitlines() if line.lstrip().startswith("#"))
    assert comments == sorted(
        line.strip() for line in after.splitlines() if line.lstrip().startswith("#")
    )
    assert validate([recipe]).valid or not before.valid


def test_an_item_is_quoted_only_where_it_must_be():
    """Plain text stays plain; what YAML would read otherwise is quoted."""
    for item in ("--a=b", "--a={x: 1} # y", "7", "no", "it's", "- x", "", 'a: "b"'):
        assert [item] == parse(f"- {written_item(item)}\n").tree
    assert "--a=b" == written_item("--a=b")


CANNOT = [
    ("a: [b, c]\n", Fix(path=("a", 0), kind="remove")),
    ("a:\n  - b\n", Fix(path=("a", 0), kind="remove")),
    ("a: {b: 1, c: 2}\n", Fix(path=("a", "b"), kind="remove")),
    ("a:\n  - b # why\n  - c\n", Fix(path=("a", 0), kind="remove")),
    ("a:\n  - >-\n    b\n    c\n  - d\n", Fix(path=("a", 0), kind="remove")),
    ("a: [b, c]\n", Fix(path=("a", 0), kind="items", items=("d",), count=2)),
    ("a:\n  b: 1\n", Fix(path=("a",), kind="text", text="x")),
    ("a: 1\n", Fix(path=("b",), kind="key", text="c")),
]


@pytest.mark.parametrize(("text", "fix"), CANNOT)
def test_what_shares_its_line_is_not_cut_out(text, fix):
    """Rather no change than one that takes more with it."""
    with pytest.raises(CannotEdit):
        edited(text, fix)


def test_an_edit_changes_its_own_place_alone():
    """In block and in flow style, with quotes and comments around."""
    text = "a: # one\n  - 'b' # two\n  - c\nd: {e: 1, f: [g, h]} # three\n"
    edits = [
        (Fix(path=("a", 0), kind="items", items=("x", "y")), ("'b' # two\n", "x\n  - y # two\n")),
        (Fix(path=("d", "f", 1), kind="plain", text="i"), ("h]", "i]")),
        (Fix(path=("d", "e"), kind="text", text="1"), ("e: 1", 'e: "1"')),
        (Fix(path=("d", "e"), kind="key", text="k"), ("e: 1", "k: 1")),
        (Fix(path=("a", 1), kind="remove"), ("  - c\n", "")),
    ]
    for fix, (old, new) in edits:
        assert text.replace(old, new) == edited(text, fix)
    assert {(), ("a",)} == spans_of(text).block


def test_the_diff_and_the_changes_speak_of_the_same(recipe):
    """One change, one line out and one in."""
    recipe.write_text(GOOD.replace("engine: vllm", "engine: VLLM"))
    [change] = validate([recipe], fix=True, dry_run=True).changes
    assert isinstance(change, FileChange)
    assert not change.written
    body = [x for x in change.diff.splitlines() if x[:1] in "+-" and x[:3] not in ("+++", "---")]
    assert ["-engine: VLLM", "+engine: vllm"] == body


def test_a_file_outside_of_a_catalog_is_put_right_too(tmp_path):
    """Against the catalog that was opened."""
    mine = tmp_path / "mine.yaml"
    mine.write_text(GOOD.replace("engine: vllm", "engine: VLLM"))
    assert validate([mine], open_catalog(DATA), fix=True).valid
    assert GOOD == mine.read_text()
