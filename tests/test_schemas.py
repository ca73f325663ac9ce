"""The JSON Schemas that editors use are those of the types, and every file names its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import data_root, json_schemas
from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.catalog.schemas import schema_text, write_schemas
from sparkrecipes.catalog_files import DOES_NOT_RUN, KINDS, files

CATALOG = data_root() / "catalog"


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema of an object, at any depth."""
    parts = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield schema
    for part in parts if isinstance(schema, dict | list) else ():
        yield from objects(part)


def test_the_committed_schemas_are_current(tmp_path: Path):
    """Run ``python -m sparkrecipes.catalog.schemas`` after a change of the types."""
    made = {path.name: path.read_text() for path in write_schemas(tmp_path)}
    kept = {path.name: path.read_text() for path in (CATALOG / "schemas").iterdir()}
    assert made == kept


def test_every_kind_has_a_schema():
    """One of each kind of file, under the name that files put in their first line."""
    assert {kind.schema for kind in BY_FOLDER.values()} == set(json_schemas())
    assert (len(KINDS) + 1) == len(json_schemas())


@pytest.mark.parametrize("name", json_schemas())
def test_no_object_takes_unknown_keys(name):
    """Editors mark what ``validate`` would refuse."""
    found = list(objects(json_schemas()[name]))
    assert found
    assert {False} == {part["additionalProperties"] for part in found}


def test_descriptions_are_the_words_under_the_fields():
    """They are read from the source, also those of a type that another extends."""
    schema = json_schemas()["recipe"]
    assert "Longest sequence" in json.dumps(schema["$defs"]["Serving"]["properties"])
    assert "File of `catalog/models/`." == schema["properties"]["model"]["description"]
    described = [p for p in schema["properties"].values() if "description" in p]
    assert len(schema["properties"]) == len(described)


def test_schemas_ask_for_what_the_types_ask_for():
    """Required keys and defaults come from the types; the id does not stand in the file."""
    schema = json_schemas()["recipe"]
    assert "engine_version" in schema["required"]
    assert "env" not in schema["required"]
    assert "id" not in schema["properties"]


def test_every_catalog_file_names_its_schema():
    """An editor checks a file while it is written."""
    wrong = []
    for folder, kind in BY_FOLDER.items():
        one = folder == DOES_NOT_RUN
        paths = [CATALOG / folder] if one else files(CATALOG, folder).values()
        schema = f"{'' if one else '../'}schemas/{kind.schema}.schema.json"
        line = f"# yaml-language-server: $schema={schema}"
        wrong += [p.name for p in paths if p.read_text().split("\n", 1)[0].strip() != line]
    assert [] == wrong


def test_schema_files_end_in_a_newline_and_keep_accents():
    """As an editor would save them."""
    assert '{\n  "a": "é"\n}\n' == schema_text({"a": "é"})
