"""Strict YAML: what is read, what is refused and where, and that nothing else can happen."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkrecipes.catalog import data_root
from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml import MAX_BYTES, Document, StrictYamlError, parse, read, reading

LOADERS = {"c": reading.FAST_LOADER, "pure": reading.PURE_LOADER}


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of PyYAML's parsers in turn."""
    monkeypatch.setattr(reading, "FAST_LOADER", LOADERS[request.param])
    return str(request.param)


def problems_of(text: str) -> tuple[Problem, ...]:
    """Return the problems of a text that must be refused."""
    with pytest.raises(StrictYamlError) as caught:
        parse(text)
    return caught.value.problems


def test_the_c_parser_is_used_where_it_is_built_in():
    """The wheels of PyYAML have it: then nothing is parsed by the slow parser."""
    assert yaml.CSafeLoader is reading.FAST_LOADER


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 8", 8),
        ("a: -8", -8),
        ("a: 0", 0),
        ("a: 0.5", 0.5),
        ("a: true", True),
        ("a: false", False),
        ("a: null", None),
        ('a: "0.10"', "0.10"),
        ("a: '8'", "8"),
        ("a: 1.10.0", "1.10.0"),
        ("a: v1", "v1"),
        ("a: y", "y"),
        ("a: fp8", "fp8"),
        ("a: 127.0.0.1:8000", "127.0.0.1:8000"),
        ("a: --x=1", "--x=1"),
        ("a: |\n  one\n  two\n", "one\ntwo\n"),
        ('a: "\\u00e9"', "é"),
        ("a: {}", {}),
        ("a: [1, x]", [1, "x"]),
        ("a:\n  - b: 1\n", [{"b": 1}]),
        ("# c\n---\na: 1\n...\n", 1),
    ],
)
def test_values_are_read_one_way(loader, text, value):
    """Numbers, booleans and null have one spelling each; all else is text."""
    read_value = parse(text).tree["a"]
    assert (type(value), value) == (type(read_value), read_value)


REFUSED = [
    ("tab: C06", 'env:\n\tA: "1"\n', 2, 1, "tab", "replace the tab by spaces"),
    ("tab inside", "a: b\tc\n", 1, 5, "tab", "replace the tab by spaces"),
    ("bool: C02", "a: off", 1, 4, "ambiguous", 'quote it: "off"'),
    ("Norway", "a: [es, no]", 1, 9, "ambiguous", 'quote it: "no"'),
    ("capital", "a: True", 1, 4, "ambiguous", "write true or false"),
    ("tilde", "a: ~", 1, 4, "ambiguous", "write null"),
    ("nothing", "a:\nb: 1", 1, 1, "empty_value", "write the value, or null"),
    ("nothing in a list", "a:\n  -\n", 1, 1, "empty_value", "write the value, or null"),
    ("octal", "a: 0123", 1, 4, "ambiguous", 'quote it: "0123"'),
    ("hex", "a: 0x1F", 1, 4, "ambiguous", 'quote it: "0x1F"'),
    ("underscore", "a: 131_072", 1, 4, "ambiguous", "write plain digits"),
    ("plus", "a: +1", 1, 4, "ambiguous", "write plain digits"),
    ("exponent", "a: 1e5", 1, 4, "ambiguous", "write plain digits"),
    ("commit like a number", "a: 12345e67", 1, 4, "ambiguous", 'quote it: "12345e67"'),
    ("no digit before", "a: .5", 1, 4, "ambiguous", "write plain digits"),
    ("inf", "a: .inf", 1, 4, "ambiguous", "write a number"),
    ("nan", "a: .NaN", 1, 4, "ambiguous", "write a number"),
    ("base 60", "a: 22:22", 1, 4, "ambiguous", 'quote it: "22:22"'),
    ("date", "a: 2026-10-06", 1, 4, "ambiguous", 'quote it: "2026-10-06"'),
    ("time", "a: 2026-10-06 10:00:00", 1, 4, "ambiguous", "quote it"),
    ("long number", "a: 1234567890123456789", 1, 4, "ambiguous", "fewer digits"),
    ("endless number", "a: " + "9" * 5000, 1, 4, "ambiguous", "fewer digits"),
    ("duplicate: C04", "s:\n  m: 32768\n  m: 262144\n", 3, 3, "duplicate_key", "keep one"),
    ("duplicate, quoted", 'a: 1\n"a": 2\n', 2, 1, "duplicate_key", "keep one"),
    ("number key", "8000: a", 1, 1, "key_type", 'quote it: "8000"'),
    ("bool key", "on: a", 1, 1, "key_type", 'quote it: "on"'),
    ("null key", "null: a", 1, 1, "key_type", "quote it"),
    ("list key", "? [a]\n: b\n", 1, 3, "key_type", "quote the key"),
    ("merge key", "<<: {a: 1}", 1, 1, "key_type", 'quote it: "<<"'),
    ("anchor", "a: &x 1", 1, 4, "alias", "write the values out"),
    ("alias", "a: *x", 1, 4, "alias", "write the values out"),
    ("tag", "a: !!python/object:os.system x", 1, 4, "tag", "remove the tag"),
    ("own tag", "a: !x y", 1, 4, "tag", "remove the tag"),
    ("directive", "%YAML 1.2\n---\na: 1\n", 1, 1, "directive", "delete the line"),
    ("two documents", "a: 1\n---\nb: 2\n", 2, 1, "several_documents", "split"),
    ("NUL", "a: 1\nb: \0\n", 2, 4, "unprintable", "delete it"),
    ("escaped NUL", 'a: "x\\0"', 1, 4, "unprintable", "remove the escape"),
    ("terminal escape", 'a: "\\e[31m"', 1, 4, "unprintable", "remove the escape"),
    ("reordering", "a: \u202eb", 1, 4, "unprintable", "delete it"),
    ("lone carriage return", "a: 1\rb: 2", 1, 5, "unprintable", "delete it"),
    ("lone surrogate", "a: \ud800", 1, 4, "unprintable", "delete it"),
    ("colon", "a: b: c", 1, 5, "yaml_syntax", "quote the text"),
    ("no colon", "a: 1\nb\n", 2, 1, "yaml_syntax", "add the ':'"),
    ("open quote", "a: 'x\nb: 1\n", 1, 4, "yaml_syntax", "close it"),
    ("open bracket", "a: [1, 2\nb: 1\n", 1, 4, "yaml_syntax", "close it"),
    ("nothing in a bracket", "a: [\n", 2, 1, "yaml_syntax", "close that"),
    ("indentation", "a:\n   b: 1\n  c: 2\n", 3, 3, "yaml_syntax", "align it"),
    ("sign", "a: @x", 1, 4, "yaml_syntax", "quote the text"),
    ("bad escape", 'a: "\\q"', 1, 6, "yaml_syntax", "write the \\ twice"),
    ("no character", 'a: "\\UFFFFFFFF"', 1, 5, "yaml_syntax", "write the \\ twice"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "repair"),
    [c[1:] for c in REFUSED],
    ids=[c[0] for c in REFUSED],
)
def test_what_is_refused_has_its_place_and_repair(loader, text, line, column, code, repair):
    """Both parsers name the same place, and say what to write instead."""
    first = problems_of(text)[0]
    assert (line, column, code) == (first.line, first.column, first.code)
    assert repair in first.repair


@pytest.mark.parametrize("header", [">#", "|-#", ">2#", "|+1# why"])
def test_a_comment_glued_to_a_text_is_refused_by_both_parsers(loader, header):
    """One parser takes it and the other does not: neither is to decide."""
    [problem] = problems_of(f"a: 1\nb:\n  - {header}\n    text\n")
    assert 3 == problem.line
    assert parse(f"a: 1\nb:\n  - {header.replace('#', ' #')}\n      text # is text\n").tree


def test_a_duplicate_names_both_lines(loader):
    """C04: the last value would win silently."""
    [problem] = problems_of("serve:\n  max_model_len: 32768\n  max_model_len: 262144\n")
    assert "the key 'max_model_len' is given twice: lines 2 and 3" == problem.message


def test_all_problems_come_in_one_pass(loader):
    """C02: three of the four values would be booleans, and y would not."""
    text = "env:\n  TELEMETRY_LEVEL: off\n  ALLOW_PLAINTEXT: yes\n  REGION: no\n  ACCEPT_EULA: y\n"
    assert [2, 3, 4] == [problem.line for problem in problems_of(text)]


def test_problems_are_counted_only_so_far(loader):
    """A file of another kind does not fill the screen."""
    assert 50 == len(problems_of("".join(f"k{i}: no\n" for i in range(1000))))
    assert 50 == len(problems_of("\t\n" * 1000))


def test_long_texts_are_cut_in_messages(loader):
    """A hostile key does not fill the screen either."""
    key = "k" * 5000
    [problem] = problems_of(f"{key}: 1\n{key}: 2\n")
    assert len(problem.message) < 150


def test_an_anchor_bomb_is_refused_at_once(loader):
    """C05: 306 bytes that stand for 9^9 leaves are refused before anything is walked."""
    text = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
    begin = time.process_time()
    assert ["alias"] == [problem.code for problem in problems_of(text)]
    assert time.process_time() - begin < 0.2


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "- " * 5000])
def test_deep_nesting_is_refused(loader, text):
    """No recursion: a cap on the levels, at which the reading stops."""
    assert ["too_deep"] == [problem.code for problem in problems_of(text)]
    assert {"a": [[[1]]]} == parse("a: [[[1]]]").tree


def test_a_full_file_is_read_in_bounded_time():
    """The largest file that is accepted takes a fraction of a second."""
    text = "".join(f"key_{number:06d}: {number}\n" for number in range(12_000))
    begin = time.process_time()
    assert 12_000 == len(parse(text).tree)
    assert time.process_time() - begin < 2.0


def test_marks_are_keys_and_items(loader):
    """Line and column from 1; what is not there has the place of what would hold it."""
    document = parse("é: 1\nlist:\n  - a\n  - {b: c}\n")
    assert (1, 1) == document.mark(("é",))
    assert (2, 1) == document.mark(("list",))
    assert (4, 5) == document.mark(("list", 1))
    assert (4, 6) == document.mark(("list", 1, "b"))
    assert (4, 5) == document.mark(("list", 1, "missing"))
    assert (1, 1) == document.mark(("missing",))


def test_numbers_keep_what_was_written(loader):
    """C01: 0.10 becomes 0.1, so the text is kept for the message."""
    document = parse("engine:\n  min_version: 0.10\n")
    assert "0.10" == document.written[("engine", "min_version")]
    assert 0.1 == document.tree["engine"]["min_version"]


def test_an_empty_text_is_an_empty_document(loader):
    """It is left to the types to say what is missing."""
    assert [None, None, None] == [parse(t).tree for t in ("", "# only a comment\n", "---\n")]


def test_windows_line_ends_and_a_byte_order_mark_are_read(loader):
    """Editors on Windows write both; places are the same."""
    document = parse("\ufeffa: 1\r\nb: 2\r\n")
    assert ({"a": 1, "b": 2}, (2, 1)) == (document.tree, document.mark(("b",)))


def test_a_huge_file_is_refused_unread(tmp_path: Path):
    """10 MB are refused by their size; so are 10 GB, at once."""
    for size in (10_000_000, 10_000_000_000):
        path = tmp_path / f"{size}.yaml"
        path.touch()
        os.truncate(path, size)
        begin = time.process_time()
        with pytest.raises(StrictYamlError) as caught:
            read(path)
        assert time.process_time() - begin < 0.1
        assert "too_large" == caught.value.problems[0].code
        assert f"{size:,} bytes" in caught.value.message


def test_a_text_has_the_same_limit():
    """What comes by another way than a file is no larger."""
    assert parse("#" * MAX_BYTES).tree is None
    assert ["too_large"] == [p.code for p in problems_of("#" * (MAX_BYTES + 1))]


def test_what_is_no_file_is_refused(tmp_path: Path):
    """A pipe would block, a folder cannot be read, a missing file is said to be missing."""
    os.mkfifo(tmp_path / "pipe.yaml")
    codes = []
    for name in ("pipe.yaml", ".", "missing.yaml", "nul\0.yaml"):
        with pytest.raises(StrictYamlError) as caught:
            read(tmp_path / name)
        codes.append(caught.value.problems[0].code)
    assert ["not_a_file", "not_a_file", "unreadable", "unreadable"] == codes


def test_bytes_that_are_not_utf8_have_a_place(tmp_path: Path):
    """Latin-1 files are refused where their first accent stands."""
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(StrictYamlError) as caught:
        read(path)
    [problem] = caught.value.problems
    assert (2, 7, "not_utf8") == (problem.line, problem.column, problem.code)
    assert str(path) == problem.file


def test_the_error_says_place_count_and_repair():
    """The first problem stands for all in the one line that a user sees."""
    with pytest.raises(StrictYamlError) as caught:
        parse("a: no\nb: off\n", name="x.yaml")
    assert "x.yaml:1:4: no is a boolean for some YAML readers (and 1 more)" == caught.value.message
    assert 'quote it: "no"' in caught.value.repair
    assert (1, "invalid_yaml") == (caught.value.exit_code, caught.value.code)


def test_both_parsers_read_the_shipped_catalog_alike(monkeypatch: pytest.MonkeyPatch):
    """Trees, places and written numbers are the same."""
    paths = sorted((data_root() / "catalog").rglob("*.yaml"))
    fast = [read(path) for path in paths]
    monkeypatch.setattr(reading, "FAST_LOADER", reading.PURE_LOADER)
    assert len(paths) > 30
    assert fast == [read(path) for path in paths]


PIECES = ["a: ", "b", "- ", "\n", "  ", "{", "}", "[", "]", "'", '"', ",", "? ", "|", ">", "0.10"]
PIECES += [
    "no",
    "# c",
    "---\n",
    "...",
    "&x",
    "*x",
    "!t",
    "\\",
    "\t",
    "%",
    "\x00",
    "é",
    "<<: ",
    "1_0",
]
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


def document_of(text: str) -> Document | None:
    """Return the document of a text, or None where it is refused with a reason."""
    try:
        return parse(text)
    except StrictYamlError as error:
        return None if error.problems else pytest.fail("refused without a reason")


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_any_text_gives_a_document_or_the_error(text: str):
    """No other exception reaches a caller, by either parser; what both accept is the same."""
    answers = []
    for loader in LOADERS.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading, "FAST_LOADER", loader)
            answers.append(document_of(text))
    fast, pure = answers
    assert fast == pure or pure is None or fast is None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_give_a_document_or_the_error(tmp_path_factory, data: bytes):
    """The same for files: what is read is what the text gives."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(data)
    try:
        found = read(path).tree
    except StrictYamlError as error:
        assert {str(path)} == {problem.file for problem in error.problems}  # noqa: PT017
    else:
        assert found == parse(data.decode()).tree
