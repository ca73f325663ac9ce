"""From what was found to the fields of a recipe; what nobody said stays null."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sparkrecipes.catalog import Catalog
from sparkrecipes.engine_flags import given_flags, holds_secret, loads_code, names_secret
from sparkrecipes.engine_flags.options import option_table
from sparkrecipes.errors import CatalogError
from sparkrecipes.importing.arguments import Served, repository, served_by
from sparkrecipes.importing.found import Found, Word, without_secrets
from sparkrecipes.importing.serving import engine_of_image, split_or_refuse
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.model import Model
from sparkrecipes.strict_yaml.scalars import UNSEEN

DEFAULT_WAIT_S = 1800
"""How long a start may take where the file does not say: our wait, no fact about the model."""

_IMAGE = re.compile(
    r"(?P<reference>[A-Za-z0-9][A-Za-z0-9._:/-]*)(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_RELEASE = re.compile(r"^v?(\d+\.\d+\.\d+)(?=$|-)")
_SHM = re.compile(r"(\d{1,7})(\.\d{1,3})?\s*([mMgG])(i?[bB])?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,200}")
_ENGINE_IDS = {"llama.cpp": ("llama.cpp", "llamacpp", "llama-cpp")}


@dataclass
class Draft:
    """A recipe that is being made.

    Attributes:
        fields: By the keys of a recipe, in its order; None where nobody said it.
        why_null: A reason by key, where one is null or comes from elsewhere than the file.
    """

    fields: dict[str, Any]
    why_null: dict[str, str] = field(default_factory=dict)


def engine_of(found: Found, catalog: Catalog) -> Engine:
    """Return the catalog's file of the engine that serves.

    Raises:
        CatalogError: The file does not say which, or the catalog does not know it.
    """
    line = found.image.line if found.image else 1
    found.engine = (
        found.engine
        or engine_by_recipes(found, catalog)
        or (engine_of_image(found.image.text) if found.image else None)
        or engine_by_words(found, catalog)
    )
    if found.engine is None:
        message = "which engine serves is not said: neither the command nor the image names one"
        repair = "put the program before its arguments, e.g. vllm serve MODEL"
        raise found.refusal(line, "unknown_engine", message, repair)
    wanted = _ENGINE_IDS.get(found.engine, (found.engine,))
    known = next((name for name in wanted if name in catalog.engines), None)
    if known is None:
        message = f"it serves with {found.engine[:60]}, and the catalog has no file of that engine"
        repair = f"engines here: {', '.join(catalog.engines)}; add engines/<id>.yaml for another"
        raise found.refusal(line, "unknown_engine", message, repair)
    return catalog.engine(known)


def engine_by_recipes(found: Found, catalog: Catalog) -> str | None:
    """Return the engine of a recipe of the catalog that has the same image, or None."""
    if found.image is None:
        return None
    wanted = name_of_image(found.image.text)
    for recipe_id in catalog.recipes:
        try:
            recipe = catalog.recipes[recipe_id]
        except CatalogError:
            continue
        if name_of_image(recipe.image.reference) == wanted:
            return recipe.engine
    return None


def name_of_image(reference: str) -> str:
    """Return an image's name without tag and digest."""
    head, slash, last = reference.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def engine_by_words(found: Found, catalog: Catalog) -> str | None:
    """Tell the engine by its own variable, or by flags that all are its own; None: unclear."""
    given, _ = given_flags([word.text for word in found.arguments])
    names = [flag.name for flag in given]
    for engine_id in catalog.engines:
        table = option_table(engine_id)
        ever = table.ever() if table else {}
        if catalog.engine(engine_id).arguments_env in found.env:
            return engine_id
        if len(names) > 1 and all(name in ever for name in names):
            return engine_id
    return None


def assemble(
    found: Found,
    catalog: Catalog,
    engine: Engine,
    *,
    image: str | None = None,
    context_tokens: int | None = None,
    users: int | None = None,
) -> Draft:
    """Make the fields of a recipe.

    Args:
        found: What the file says.
        catalog: Where models are looked up by their repository.
        engine: What serves.
        image: The image to write instead of the file's.
        context_tokens: The same for the longest sequence.
        users: The same for sequences at once.
    """
    env = kept_env(found, engine)
    served = served_by(found, engine)
    weights = weights_of(found, served)
    model, quant = model_of(catalog, weights)
    draft = Draft({})
    reference, digest = image_of(found, image)
    speculative = served.values.get("speculative")
    drafter = served.values.get("drafter") if speculative else None
    name = served.values.get("served_model_name") or (weights or {}).get("repo")
    draft.fields = {
        "title": title_of(found, weights, engine),
        "model": model.id if model else None,
        "quant": quant,
        "weights": weights,
        "drafter": drafter,
        "image": {"reference": reference, "digest": digest},
        "engine": engine.id,
        "engine_version": version_of(reference),
        "served_model_name": name if name and _NAME.fullmatch(name) else None,
        "serving": {
            "context_tokens": context_tokens or served.serving.get("context_tokens"),
            "users": users or served.serving.get("users"),
            "kv_cache_dtype": served.serving.get("kv_cache_dtype", "auto"),
            "gpu_memory_utilization": served.serving.get("gpu_memory_utilization"),
        },
        "speculative": speculative,
        "flags": served.flags,
        "env": env,
        "shm_size": shm_of(found),
        "startup_timeout_s": found.startup_timeout_s or DEFAULT_WAIT_S,
        "capabilities": capabilities_of(served),
        "sources": [f"imported from {UNSEEN.sub('?', found.file)} ({found.format})"],
    }
    explain(found, draft, served, model)
    return draft


def kept_env(found: Found, engine: Engine) -> dict[str, str]:
    """Take the environment; the engine's argument variable becomes its arguments.

    How many kernels may compile at once is left out where our own command set it.
    """
    secrets = {*engine.secrets, *engine.optional_secrets}
    kept: dict[str, str] = {}
    for name, word in found.env.items():
        if name == engine.compile_jobs_env and name in found.added_env:
            continue
        if name == engine.arguments_env:
            for command in split_or_refuse(found, word.text, word.line):
                found.arguments += [Word(w.text, word.line) for w in command.words]
        elif name in secrets or names_secret(name) or holds_secret(f"{name}={word.text}"):
            why = "a recipe holds no secret; set it where the tool runs"
            found.drop(word.line, name, why)
        elif loads_code(name):
            found.drop(word.line, f"{name}={word.text}", "it makes other code run than the image's")
        elif word.expands:
            why = "a shell would put something in its place, and no shell is run"
            found.drop(word.line, f"{name}={word.text}", why)
        elif UNSEEN.search(word.text) or "\n" in word.text or not name.isidentifier():
            found.drop(word.line, name, "it holds a character that a variable should not")
        elif name.isascii():
            kept[name] = word.text
    return kept


def weights_of(found: Found, served: Served) -> dict[str, str | None] | None:
    """Return the repository: the command's, else the file's own key, with its pin."""
    weights: dict[str, str | None] | None = served.values.get("weights")
    revision = found.revision
    if weights is None and found.model:
        weights, _ = repository(found, found.model.text, None, found.model.line)
    if weights and revision and not weights["revision"]:
        if re.fullmatch(r"[0-9a-f]{40}", revision.text):
            return {**weights, "revision": revision.text}
        found.drop(revision.line, f"revision {revision.text}", "a branch or tag moves: no pin")
    return weights


def model_of(
    catalog: Catalog, weights: dict[str, str | None] | None
) -> tuple[Model | None, str | None]:
    """Find the model that has a repository among its builds, and which build it is."""
    if weights is None:
        return None, None
    for model_id in catalog.models:
        try:
            model = catalog.model(model_id)
        except CatalogError:
            continue
        for build in model.builds:
            if build.repo == weights["repo"]:
                return model, build.quant
    return None, None


def image_of(found: Found, wanted: str | None) -> tuple[str | None, str | None]:
    """Return reference and digest; a name that cannot be an image is left out."""
    word = Word(wanted, 1) if wanted else found.image
    if word is None:
        return None, None
    match = None if holds_secret(word.text) else _IMAGE.fullmatch(word.text)
    if match is None or word.expands or len(word.text) > 500:
        found.drop(word.line, f"image {word.text}", "it is no image's name")
        return None, None
    reference, digest = match["reference"], match["digest"]
    if "/" not in reference:
        why = "a name without a registry's path: built on some host, or Docker Hub's own; --image"
        found.drop(word.line, f"image {reference}", f"{why} REF names one that can be pulled")
    return reference, digest


def version_of(reference: str | None) -> str | None:
    """Return the release that an image's tag names; None where it names none."""
    tag = (reference or "").rpartition("/")[2].partition(":")[2]
    release = _RELEASE.match(tag)
    return release[1] if release else None


def shm_of(found: Found) -> str | None:
    """Return the shared memory as a recipe writes it: whole MiB or GiB."""
    word = found.shm_size
    size = _SHM.fullmatch(word.text.strip()) if word else None
    if word is None:
        return None
    if word.text.isdecimal() and int(word.text) % 2**20 == 0 and 0 < int(word.text) < 2**50:
        mib = int(word.text) // 2**20
    elif size and not word.expands:
        unit = 1024 if size[3] in "gG" else 1
        mib = round(float(size[1] + (size[2] or "")) * unit)
    else:
        found.drop(word.line, f"shm_size {word.text}", "it is no size in MiB or GiB")
        return None
    if mib < 1:
        found.drop(word.line, f"shm_size {word.text}", "it is no size in MiB or GiB")
        return None
    if size and size[2]:
        found.drop(word.line, f"shm_size {word.text}", f"in whole MiB: {mib}m")
    return f"{mib // 1024}g" if mib % 1024 == 0 else f"{mib}m"


def title_of(found: Found, weights: dict[str, str | None] | None, engine: Engine) -> str:
    """Return one line for people."""
    told = UNSEEN.sub(" ", without_secrets(found.title or "")).strip()
    name = (weights or {}).get("repo") or found.file
    return told[:200] or UNSEEN.sub("?", f"{name} on {engine.id}, imported")


def capabilities_of(served: Served) -> list[str]:
    """Claim what the flags show: tools with a parser, reasoning with one; else text."""
    names = {item.partition("=")[0] for item in served.flags}
    found = ["text"]
    if {"--enable-auto-tool-choice", "--tool-call-parser"} <= names:
        found.append("tools")
    if "--reasoning-parser" in names:
        found.append("reasoning")
    return found


def explain(found: Found, draft: Draft, served: Served, model: Model | None) -> None:
    """Say why a field is null, or where a value comes from that the file does not have."""
    why, fields = draft.why_null, draft.fields
    serving = fields["serving"]
    if fields["weights"] is None:
        why["weights"] = "the file names no repository"
    if model is None:
        why["model"] = "no model of the catalog has this repository among its builds"
        why["quant"] = "see model"
    if fields["image"]["reference"] is None:
        why["image.reference"] = "the file names no image: --image REF"
    if fields["engine_version"] is None:
        why["engine_version"] = "the image's tag names no release"
    if fields["served_model_name"] is None:
        why["served_model_name"] = "the file names none"
    elif "served_model_name" not in served.values:
        why["served_model_name"] = "not in the file: the engine's default is the repository"
    if serving["context_tokens"] is None and model:
        serving["context_tokens"] = model.context_tokens
        why["serving.context_tokens"] = "not in the file: the engine's default is the model's own"
    elif serving["context_tokens"] is None:
        why["serving.context_tokens"] = "not in the file: --context TOKENS"
    if serving["users"] is None:
        why["serving.users"] = "not in the file, and the engine's default varies: --users N"
    if serving["gpu_memory_utilization"] is None:
        why["serving.gpu_memory_utilization"] = "not in the file: the engine's default"
    if found.startup_timeout_s is None:
        why["startup_timeout_s"] = "not in the file: this tool's own wait"
