"""JSON Schemas of the catalog's files, for editors: ``python -m sparkrecipes.catalog.schemas``.

They are made from the types; the description of a field is the text under it in the source,
read here, because pydantic would read it at every start of the tool.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sparkrecipes.catalog.kinds import BY_FOLDER
from sparkrecipes.catalog_files import data_root

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each kind of catalog file, by the name of its schema file."""
    return {kind.schema: _schema(kind.file_type) for kind in BY_FOLDER.values()}


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema to ``<folder>/<kind>.schema.json`` and return the files."""
    folder.mkdir(exist_ok=True)
    written = []
    for name, schema in json_schemas().items():
        path = folder / f"{name}.schema.json"
        path.write_text(schema_text(schema), encoding="utf-8")
        written.append(path)
    return written


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema(file_type: type[BaseModel]) -> dict[str, Any]:
    schema = file_type.model_json_schema()
    for name, part in [(file_type.__name__, schema), *schema.get("$defs", {}).items()]:
        docs = _field_docs(_types_of(file_type)[name])
        _describe(part, docs)
    return {"$schema": DIALECT, **schema}


def _describe(part: dict[str, Any], docs: dict[str, str]) -> None:
    """Put the descriptions of the fields in and drop the titles, which repeat their names."""
    if "description" in part:
        part["description"] = _plain(part["description"])
    for key, field in part.get("properties", {}).items():
        field.pop("title", None)
        if key in docs:
            field["description"] = docs[key]


@functools.cache
def _types_of(file_type: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return every type of ours by name: a schema names its parts by them."""
    found: dict[str, type[BaseModel]] = {}
    modules = [m for name, m in sys.modules.items() if name.startswith("sparkrecipes.schema.")]
    for module in (inspect.getmodule(file_type), *modules):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, BaseModel):
                found.setdefault(name, value)
    return found


def _field_docs(value_type: type[BaseModel]) -> dict[str, str]:
    """Return the text under each field of a type and of the types it extends."""
    docs: dict[str, str] = {}
    for base in reversed(value_type.__mro__):
        if base.__module__.startswith("sparkrecipes.schema."):
            body = _class_bodies(base.__module__).get(base.__name__, [])
            docs |= dict(filter(None, map(_documented, itertools.pairwise(body))))
    return docs


def _documented(pair: tuple[ast.stmt, ast.stmt]) -> tuple[str, str] | None:
    match pair:
        case (
            ast.AnnAssign(target=ast.Name(id=field)),
            ast.Expr(value=ast.Constant(value=str(text))),
        ):
            return field, _plain(text)
    return None


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    source = inspect.getsource(sys.modules[module])
    nodes = ast.parse(source).body
    return {node.name: node.body for node in nodes if isinstance(node, ast.ClassDef)}


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


if __name__ == "__main__":
    for file in write_schemas(data_root() / "catalog" / "schemas"):
        sys.stdout.write(f"{file}\n")
