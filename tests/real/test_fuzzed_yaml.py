"""10,000 documents that are nearly recipes: no traceback, and nothing accepted that is none.

What is accepted is judged by two others: PyYAML must read the same values, and jsonschema must
find them right by the schema that the catalog publishes.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkrecipes.catalog import open_catalog, validate
from sparkrecipes.catalog.validation import validate_text
from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml import StrictYamlError, parse
from tests.real.conftest import ROOT

pytestmark = pytest.mark.real

CATALOG = open_catalog(ROOT / "catalog")
TEXTS = [path.read_text() for path in sorted((ROOT / "catalog" / "recipes").glob("*.yaml"))]
SCHEMA = json.loads((ROOT / "catalog" / "schemas" / "recipe.schema.json").read_text())
JUDGE = jsonschema.Draft202012Validator(SCHEMA)
WORDS = """\
null true no 0 -1 4 010 0x1f 1e3 .5 1:30 2026-10-06 ~ [] {} '' "" [1] {a: 1} &a *a !!str << vllm
fp8 FP8 '4' "\\t" "\\ud800" 9999999999999999999 --seed=1 {"a":1} | > - ? @x `x %x"""
VALUES = WORDS.split()
ODD = "\t\x00\x0b\u2028\u202e\ufeff\x85\"'{}[]:#&*!|>%@`-?,\\\n é漢🙂"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends."""
    return text.splitlines(keepends=True)


@st.composite
def nearly_recipes(draw: st.DrawFn) -> str:
    """Draw a shipped recipe with a few lines, values or characters changed."""
    lines = lines_of(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        kind = draw(st.integers(0, 7))
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
        elif kind == 2 and ":" in line:
            lines[at] = f"{line.partition(':')[0]}: {draw(st.sampled_from(VALUES))}\n"
        elif kind == 3 and line.strip():
            column = draw(st.integers(0, len(line) - 1))
            lines[at] = line[:column] + draw(st.sampled_from(ODD)) + line[column + 1 :]
        elif kind == 4:
            lines[at] = " " * draw(st.integers(0, 6)) + line.lstrip()
        elif kind == 5:
            lines[at] = f"{draw(st.from_regex(r'[a-z_]{1,12}', fullmatch=True))}: {line.strip()}\n"
        elif kind == 6:
            lines.insert(at, draw(st.text(max_size=30)) + "\n")
        elif line.lstrip().startswith("- "):
            lines[at] = f"{line.partition('- ')[0]}- {draw(st.sampled_from(VALUES))}\n"
    return "".join(lines)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(sorted(SCHEMA["properties"])) | st.text(max_size=8), inner, max_size=5
        )
    ),
    max_leaves=12,
)
DOCUMENTS = st.one_of(
    *[nearly_recipes()] * 6,
    TREES.map(lambda tree: str(yaml.safe_dump(tree, allow_unicode=True))),
    TREES.map(json.dumps),
    st.text(max_size=200),
)
COUNTS = {"documents": 0, "accepted": 0}


def is_right(problems: tuple[Problem, ...]) -> bool:
    """Tell whether a text is called valid."""
    return not any(problem.level == "error" for problem in problems)


def check(text: str) -> None:
    """Hold one document to all that is promised of every one."""
    COUNTS["documents"] += 1
    problems = validate_text(text, "drawn-by-hypothesis.yaml", CATALOG)
    for problem in problems:
        assert problem.message.strip()
        assert 1 <= problem.line <= text.count("\n") + 2
        assert "Traceback" not in problem.message
    if not is_right(problems):
        return
    COUNTS["accepted"] += 1
    tree: Any = parse(text).tree
    assert tree == yaml.safe_load(text)
    assert [] == [error.message for error in JUDGE.iter_errors(tree)]


@settings(
    max_examples=10_000,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(DOCUMENTS)
def fuzz(text: str) -> None:
    """Draw 10,000 documents."""
    check(text)


def test_ten_thousand_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """Enough of them are accepted that the judges had something to judge, most are refused."""
    fuzz()
    with capsys.disabled():
        print(f"\n{COUNTS['documents']} documents, {COUNTS['accepted']} of them valid")
    assert COUNTS["documents"] >= 10_000
    assert 200 < COUNTS["accepted"] < COUNTS["documents"] / 2


@settings(max_examples=500, deadline=None, database=None)
@given(st.binary(max_size=300))
def test_bytes_that_are_no_text_are_problems(data: bytes) -> None:
    """Whatever a file holds, it is read as UTF-8 or refused with a place."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn-by-hypothesis.yaml"
        path.write_bytes(data)
        report = validate([path], CATALOG)
    assert report.problems
    assert not report.valid


def test_a_refusal_is_one_of_ours() -> None:
    """Of strict YAML, or of the types: the judges are not asked about those."""
    with pytest.raises(StrictYamlError):
        parse("a: no\n")
