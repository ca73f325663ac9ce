"""Foreign recipes for the fuzz: files of tests/data/import, damaged, and trees of their keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import strategies as st

from sparkrecipes.catalog import Catalog, validate_text
from sparkrecipes.catalog.checking import check
from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.importing import import_text
from sparkrecipes.schema.importing import ImportedRecipe
from sparkrecipes.strict_yaml import parse

FOLDER = Path(__file__).parents[1] / "data" / "import"
TEXTS = tuple(path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir()))
_KEYS = """
recipe_version model runtime container command defaults env mods min_nodes metadata services llm
image environment ports volumes shm_size variants default model_id base_args features args title
weights repo serving users flags argv port host tensor_parallel executor_config ipc
"""
_WORDS = r"""
docker run vllm serve --max-model-len --max-num-seqs=4 -tp 2 -e A=b --api-key hf_aaaaaaaaaaaa
{port} {{ }} ' " \ $X $( ` ; && | # <weights> a/b ../x /models--a--b/snapshots/c/ 0.10 yes {"a":{}}
{"method":"mtp","num_speculative_tokens":2} --speculative-config vllm/vllm-openai:v1
"""
KEYS, WORDS = _KEYS.split(), _WORDS.split()
TOKEN = re.compile(r"(?<!\w)hf_a{12}")
"""The token among the words, where a cut did not glue it to the end of another word."""
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=True),
    st.text(max_size=20),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=8),
    ),
    max_leaves=20,
)
PIECES = st.one_of(
    st.text(max_size=6), st.sampled_from(("\t", "\n", "&a ", "*a", ": ", "- ", "\0"))
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return one of the files with pieces cut out, put in or repeated."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 40))
        piece = draw(st.one_of(PIECES, st.sampled_from(WORDS), st.sampled_from(KEYS)))
        text = text[:at] + piece + text[at + cut :]
    return text


SHELLS = st.lists(st.one_of(st.sampled_from(WORDS), PIECES), max_size=25).map(" ".join)
DOCUMENTS = st.one_of(damaged(), TREES.map(json.dumps), SHELLS, st.text(max_size=200))


def imported_or_refused(text: str, catalog: Catalog) -> ImportedRecipe | SparkRecipesError:
    """Import a text; return the answer, or our own error."""
    try:
        return import_text(text, catalog, name="fuzz")
    except SparkRecipesError as error:
        return error


def hold(text: str, catalog: Catalog) -> None:
    """Import and validate one document: an answer or our error, and nothing wrong called valid."""
    errors = [p for p in validate_text(text, "fuzz.yaml", catalog) if p.level == "error"]
    if not errors:
        assert check(parse(text), BY_FOLDER["recipes"], "fuzz")[0] is not None
    answer = imported_or_refused(text, catalog)
    if isinstance(answer, SparkRecipesError):
        assert answer.message
        assert answer.repair
        assert "\n" not in answer.message
        assert not TOKEN.search(answer.message)
        return
    found = answer
    value, faults = check(parse(found.text), BY_FOLDER["recipes"], found.id)
    assert found.valid == (not [p for p in found.problems if p.level == "error"])
    assert not found.valid or (value is not None and not faults)
    told = [f"{one.what} {one.why}" for one in found.not_carried]
    told += [f"{problem.message} {problem.repair}" for problem in found.problems]
    assert not TOKEN.search("\n".join((found.text, found.id, found.next, *told)))
