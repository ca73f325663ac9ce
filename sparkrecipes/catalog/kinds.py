"""The kinds of catalog files: folder, type and words."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkrecipes.catalog_files import DOES_NOT_RUN, KINDS, LOCK_SUFFIX

if TYPE_CHECKING:
    from pydantic import BaseModel


class Kind(NamedTuple):
    """One kind of catalog file.

    Attributes:
        word: What one is called.
        module: Where its types are: each kind is loaded by those who read its files.
        file_name: Name of the type of what the file holds.
        value_name: The same with the id, which is the file's name.
        schema: Name of its JSON Schema, without ending.
    """

    word: str
    module: str
    file_name: str
    value_name: str
    schema: str

    @property
    def file_type(self) -> type[BaseModel]:
        """What the file holds."""
        return self._type(self.file_name)

    @property
    def value_type(self) -> type[BaseModel]:
        """The same with the id."""
        return self._type(self.value_name)

    def _type(self, name: str) -> type[BaseModel]:
        found: type[BaseModel] = getattr(import_module(f"sparkrecipes.schema.{self.module}"), name)
        return found

    @property
    def has_id(self) -> bool:
        """Whether the file's name is an id."""
        return self.file_name != self.value_name


BY_FOLDER: dict[str, Kind] = {
    "recipes": Kind("recipe", "recipe", "RecipeFile", "Recipe", "recipe"),
    "models": Kind("model", "model", "ModelFile", "Model", "model"),
    "engines": Kind("engine", "engine", "EngineFile", "Engine", "engine"),
    "evidence": Kind("evidence set", "evidence", "EvidenceFile", "Evidence", "evidence"),
    "use_cases": Kind("use case", "use_case", "UseCaseFile", "UseCase", "use_case"),
    "diagnoses": Kind("diagnosis", "findings", "DiagnosisFile", "DiagnosisRule", "diagnosis"),
    "machines": Kind("machine", "machine", "MachineFile", "Machine", "machine"),
    "locks": Kind("lock", "lock", "LockFile", "Lock", "lock"),
    DOES_NOT_RUN: Kind(
        "list of what does not run",
        "evidence",
        "DoesNotRunFile",
        "DoesNotRunFile",
        "does_not_run",
    ),
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
    if path.name.endswith(LOCK_SUFFIX):
        return "locks"
    if path.absolute().parent.name in KINDS:
        return path.absolute().parent.name
    _, named, rest = head.partition("yaml-language-server: $schema=")
    schema = rest.split("\n", 1)[0].strip().rsplit("/", 1)[-1].removesuffix(".schema.json")
    folders = (folder for folder, kind in BY_FOLDER.items() if named and kind.schema == schema)
    return next(folders, "recipes")
