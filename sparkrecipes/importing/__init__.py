"""Recipes of other tools, read into strict ones: nothing in an imported file is ever executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sparkrecipes.catalog import Catalog, validate_text
from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.importing import compose, docker_run, sparkrun, vllm_recipe
from sparkrecipes.importing.assembling import Draft, assemble, engine_of
from sparkrecipes.importing.detection import Guess, by_text, by_tree, what_else
from sparkrecipes.importing.foreign_yaml import ForeignYaml
from sparkrecipes.importing.found import Found
from sparkrecipes.importing.matching import pinned_like, same_recipe
from sparkrecipes.importing.shell_text import Line
from sparkrecipes.importing.writing import recipe_text
from sparkrecipes.schema.importing import ForeignFormat, ImportedRecipe
from sparkrecipes.schema.recipe import RecipeFile
from sparkrecipes.strict_yaml import MAX_BYTES, parse, read_text

__all__ = ["FORMATS", "import_text", "read_text"]

FORMATS: tuple[ForeignFormat, ...] = (
    "docker",
    "compose",
    "sparkrun-v1",
    "sparkrun-v2",
    "vllm-recipe",
)


def import_text(
    text: str,
    catalog: Catalog,
    *,
    name: str,
    format: str | None = None,
    select: str | None = None,
    image: str | None = None,
    context_tokens: int | None = None,
    users: int | None = None,
) -> ImportedRecipe:
    """Read a file of another tool into a strict recipe.

    Args:
        text: What it holds.
        catalog: Where engines, models and known recipes are looked up.
        name: What the file is called.
        format: One of ``FORMATS``; None: it is recognised.
        select: Which service or variant, where the file has several.
        image: The image to write instead of the file's.
        context_tokens: The longest sequence to write instead of the file's.
        users: Sequences at once to write instead of the file's.

    Raises:
        Misuse: There is no such format.
        CatalogError: The file cannot be read as any, with place and repair.
    """
    if format is not None and format not in FORMATS:
        raise Misuse(f"there is no format {format!r}", repair=f"one of: {', '.join(FORMATS)}")
    name = Path(name).name or "stdin"
    guess, yaml = recognised(text, name, format)
    found = Found(name, guess.format)
    gather(found, text, yaml, select)
    engine = engine_of(found, catalog)
    if yaml and guess.format in ("sparkrun-v1", "sparkrun-v2") and not yaml.word(("command",)):
        sparkrun.take_defaults(found, yaml, engine)
    draft = assemble(
        found, catalog, engine, image=image, context_tokens=context_tokens, users=users
    )
    return finished(found, guess, draft, catalog)


def recognised(text: str, name: str, format: str | None) -> tuple[Guess, ForeignYaml | None]:
    """Tell the format, and parse what is YAML.

    Raises:
        CatalogError: It is none that is known, or no YAML; with the place.
    """
    if len(text) > MAX_BYTES:
        message = f"{name}: {len(text):,} characters; at most {MAX_BYTES:,} are read"
        raise CatalogError(message, code="too_large", repair="give the recipe alone")
    shell = by_text(text)
    if format == "docker" or (format is None and shell):
        is_json = text.lstrip().startswith("{")
        return shell or Guess("docker", "as asked"), read_yaml(text, name) if is_json else None
    yaml = read_yaml(text, name)
    if format is not None:
        return Guess(next(known for known in FORMATS if known == format), "as asked"), yaml
    seen = by_tree(yaml.document.tree)
    if seen is None:
        other = what_else(yaml.document.tree)
        what, repair = other or (
            "none of the formats that are read here",
            f"force one with --from: {', '.join(FORMATS)}",
        )
        raise CatalogError(f"{name}:1: this is {what}", code="unknown_format", repair=repair)
    return seen, yaml


def read_yaml(text: str, name: str) -> ForeignYaml:
    """Parse a foreign YAML or JSON document: looser in words, as strict in everything else."""
    return ForeignYaml(parse(text, name=name, foreign=True), tuple(text.splitlines()))


def gather(found: Found, text: str, yaml: ForeignYaml | None, select: str | None) -> None:
    """Read the file the way of its format."""
    if yaml is None:
        docker_run.read_text(found, text)
    elif found.format == "docker":
        docker_run.take_text(found, [Line(yaml.words(("argv",)))])
    elif not yaml.tree:
        raise found.refusal(
            1, "wrong_type", "keys and values are needed here", "give the whole file"
        )
    elif found.format == "compose":
        compose.read(found, yaml, select)
    elif found.format == "vllm-recipe":
        vllm_recipe.read(found, yaml, select)
    else:
        sparkrun.read(found, yaml)


def finished(found: Found, guess: Guess, draft: Draft, catalog: Catalog) -> ImportedRecipe:
    """Write the recipe, and say what remains to be mended."""
    known = same_recipe(draft.fields, catalog)
    if known:
        recipe_id, value = known.id, pinned_like(known, draft.fields)
        text = recipe_text(file_fields(value), {})
    else:
        recipe_id = proposed_id(draft.fields, catalog)
        left = sorted(found.not_carried, key=lambda one: one.line)
        text = recipe_text(draft.fields, draft.why_null, left)
    problems = validate_text(text, f"{recipe_id}.yaml", catalog)
    valid = not any(problem.level == "error" for problem in problems)
    return ImportedRecipe(
        file=found.file,
        format=found.format,
        recognised_by=guess.by,
        id=recipe_id,
        same_as=known.id if known else None,
        text=text,
        saved_to=None,
        not_carried=tuple(sorted(found.not_carried, key=lambda one: one.line)),
        valid=valid,
        problems=problems,
        next=next_step(known is not None, valid, recipe_id),
    )


def file_fields(recipe: RecipeFile) -> dict[str, Any]:
    """Return what a recipe's file says: no id, and no setting that is merely not set."""
    fields = recipe.model_dump(mode="json", exclude={"id"})
    if recipe.speculative:
        fields["speculative"] = recipe.speculative.model_dump(mode="json", exclude_none=True)
    if fields["image"]["local_build"] is None:
        del fields["image"]["local_build"]
    return fields


def proposed_id(fields: dict[str, Any], catalog: Catalog) -> str:
    """Name a recipe by the pattern ``<model>-<quant>-<engine>[-<speculation>]``, if it is free."""
    repo = (fields["weights"] or {}).get("repo", "").partition("/")[2]
    model = fields["model"] or repo or "model"
    method = (fields["speculative"] or {}).get("method")
    quant = fields["quant"] if not model.endswith(f"-{fields['quant']}") else None
    parts = [model, quant, fields["engine"], method]
    slug = re.sub(r"[^a-z0-9._-]+", "-", "-".join(part for part in parts if part).lower())
    slug = slug.strip("-._")[:80] or "recipe"
    return slug if slug not in catalog.recipes else f"{slug}-imported"


def next_step(known: bool, valid: bool, recipe_id: str) -> str:
    """Say what to do with the recipe."""
    if known:
        return f"the catalog has it: sparkrecipes check {recipe_id}"
    if valid:
        return f"save it with -o {recipe_id}.yaml, then: sparkrecipes fit {recipe_id}.yaml"
    return "save it with -o FILE.yaml, mend what is listed, then: sparkrecipes validate FILE.yaml"
