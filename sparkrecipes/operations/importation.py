"""Recipes of other tools: read into strict ones, and saved where asked."""

from __future__ import annotations

from pathlib import Path

from sparkrecipes import importing
from sparkrecipes.catalog import Catalog
from sparkrecipes.errors import Refused, SparkRecipesError
from sparkrecipes.operations.workspace import Place, open_catalog_of, positive
from sparkrecipes.schema.importing import ImportedRecipe


def import_recipe(
    file: Path | str,
    *,
    text: str | None = None,
    format: str | None = None,
    select: str | None = None,
    image: str | None = None,
    context_tokens: int | None = None,
    users: int | None = None,
    output: Path | str | None = None,
    catalog: Catalog | Place = None,
) -> ImportedRecipe:
    """Read a recipe of another tool into a strict one; nothing in it is ever executed.

    Args:
        file: A ``docker run`` line in a file, a Compose file, a recipe of sparkrun, eugr or vLLM.
        text: What it holds, where it is no file; then ``file`` is only its name.
        format: ``docker``, ``compose``, ``sparkrun-v1``, ``sparkrun-v2`` or ``vllm-recipe``; None:
            it is recognised.
        select: Which service or variant, where it has several.
        image: The image to write instead of the file's.
        context_tokens: The longest sequence to write instead of the file's.
        users: Sequences at once to write instead of the file's.
        output: Where to save the recipe: a new file, or a folder; None: nowhere.
        catalog: Where engines, models and known recipes are looked up.

    Returns:
        The recipe's text, what it could not carry, and what remains to be mended.

    Raises:
        CatalogError: The file is none that can be read, with place and repair.
        Refused: The file to write is there already.
    """
    opened = open_catalog_of(catalog)
    found = importing.import_text(
        importing.read_text(Path(file)) if text is None else text,
        opened,
        name=str(file),
        format=format,
        select=select,
        image=image,
        context_tokens=positive("--context", context_tokens),
        users=positive("--users", users),
    )
    if output is None:
        return found
    path = save(found, Path(output))
    return found.model_copy(update={"saved_to": str(path)})


def save(found: ImportedRecipe, output: Path) -> Path:
    """Write the recipe to a new file.

    Raises:
        Refused: It is there already.
        SparkRecipesError: It cannot be written.
    """
    path = output / f"{found.id}.yaml" if output.is_dir() else output
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(found.text)
    except FileExistsError:
        raise Refused(
            f"{path} is there already", code="exists", repair="name another file with -o"
        ) from None
    except OSError as error:
        raise SparkRecipesError(
            f"{path} cannot be written: {error.strerror}",
            code="not_written",
            repair="name another file with -o",
        ) from None
    return path
