"""The kinds of catalog files: folder, type and words."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from sparkrecipes.catalog_files import DOES_NOT_RUN, KINDS
from sparkrecipes.schema.engine import Engine, EngineFile
from sparkrecipes.schema.evidence import DoesNotRunFile, Evidence, EvidenceFile
from sparkrecipes.schema.findings import DiagnosisFile, DiagnosisRule
from sparkrecipes.schema.machine import Machine, MachineFile
from sparkrecipes.schema.model import Model, ModelFile
from sparkrecipes.schema.recipe import Recipe, RecipeFile
from sparkrecipes.schema.use_case import UseCase, UseCaseFile


class Kind(NamedTuple):
    """One kind of catalog file.

    Attributes:
        word: What one is called.
        file_type: What the file holds.
        value_type: The same with the id, which is the file's name.
        schema: Name of its JSON Schema, without ending.
    """

    word: str
    file_type: type[BaseModel]
    value_type: type[BaseModel]
    schema: str

    @property
    def has_id(self) -> bool:
        """Whether the file's name is an id."""
        return self.file_type is not self.value_type


BY_FOLDER: dict[str, Kind] = {
    "recipes": Kind("recipe", RecipeFile, Recipe, "recipe"),
    "models": Kind("model", ModelFile, Model, "model"),
    "engines": Kind("engine", EngineFile, Engine, "engine"),
    "evidence": Kind("evidence set", EvidenceFile, Evidence, "evidence"),
    "use_cases": Kind("use case", UseCaseFile, UseCase, "use_case"),
    "diagnoses": Kind("diagnosis", DiagnosisFile, DiagnosisRule, "diagnosis"),
    "machines": Kind("machine", MachineFile, Machine, "machine"),
    DOES_NOT_RUN: Kind("list of what does not run", DoesNotRunFile, DoesNotRunFile, "does_not_run"),
}
"""Every kind by its folder, or by its name where it is one file."""


def kind_of(path: Path, head: str = "") -> str:
    """Return the kind of a file: by its folder or name, by its schema line, else a recipe.

    Args:
        path: The file.
        head: How its text begins.

    Returns:
        A key of ``BY_FOLDER``.
    """
    if path.name == DOES_NOT_RUN:
        return DOES_NOT_RUN
    if path.absolute().parent.name in KINDS:
        return path.absolute().parent.name
    _, named, rest = head.partition("yaml-language-server: $schema=")
    schema = rest.split("\n", 1)[0].strip().rsplit("/", 1)[-1].removesuffix(".schema.json")
    folders = (folder for folder, kind in BY_FOLDER.items() if named and kind.schema == schema)
    return next(folders, "recipes")
