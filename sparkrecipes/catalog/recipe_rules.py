"""What a recipe must be beside well-typed: one small rule each, in the order of ``RULES``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkrecipes.catalog.wording import Fault
from sparkrecipes.engine_flags import (
    env_problems,
    flag_problems,
    given_flags,
    holds_secret,
    known_versions,
    loads_code,
    names_secret,
)
from sparkrecipes.errors import nearest
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.evidence import Evidence, split_reference
from sparkrecipes.schema.model import Model
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.strict_yaml import Fix, PathInTree


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a recipe is checked against.

    Attributes:
        model: Its model; None where that is missing or itself not valid.
        engine: Its engine; None likewise.
        models: Ids of the models there are.
        engines: Ids of the engines there are.
        evidence: Looks an evidence set up; None where that is not valid.
        evidence_ids: Ids of the evidence sets there are.
    """

    model: Model | None
    engine: Engine | None
    models: tuple[str, ...]
    engines: tuple[str, ...]
    evidence: Callable[[str], Evidence | None]
    evidence_ids: tuple[str, ...]


class Rule(NamedTuple):
    """A rule and the recipe's fields that it reads: where one is wrong, it is not asked."""

    needs: frozenset[str]
    find: Callable[[Recipe, Around], Iterator[Fault]]


NEEDS_DRAFTER = ("eagle3", "dflash", "dspark")
"""Methods whose draft tokens come from a second model."""

_MOVING = re.compile(r"(^|[-_.])(latest|nightly|main|master|dev|edge|head)([-_.]|$)")
_RELEASE = re.compile(r"^v?(\d+\.\d+\.\d+)")
_JOBS = re.compile(r"[1-9][0-9]{0,3}")


def _known_model(recipe: Recipe, around: Around) -> Iterator[Fault]:
    yield from _link("model", recipe.model, around.models)


def _known_engine(recipe: Recipe, around: Around) -> Iterator[Fault]:
    yield from _link("engine", recipe.engine, around.engines)


def _link(key: str, wanted: str, known: tuple[str, ...]) -> Iterator[Fault]:
    if wanted not in known:
        near = nearest(wanted, known)
        repair = f"did you mean {' or '.join(near)}?" if near else f"add {key}s/{wanted}.yaml"
        yield Fault((key,), f"unknown_{key}", f"no {key} has the id {wanted}", repair)


def _build(recipe: Recipe, around: Around) -> Iterator[Fault]:
    model = around.model
    if model is None or recipe.quant is None:
        return
    quants = sorted({build.quant for build in model.builds})
    if recipe.quant not in quants:
        message = f"{recipe.model} has no build {recipe.quant}"
        yield Fault(("quant",), "unknown_build", message, f"its builds: {', '.join(quants)}")
    elif recipe.weights and recipe.weights.repo not in {build.repo for build in model.builds}:
        message = f"{recipe.weights.repo} is no build of {recipe.model}: its size is not known"
        repair = f"add it to the builds of models/{recipe.model}.yaml"
        yield Fault(("weights", "repo"), "unknown_build", message, repair, "hint")


def _evidence(recipe: Recipe, around: Around) -> Iterator[Fault]:
    for at, ref in enumerate(recipe.evidence):
        yield from _reference(ref, ("evidence", at), around, rows_only=True)
    for at, near in enumerate(recipe.resembles):
        yield from _reference(near.row, ("resembles", at, "row"), around, rows_only=False)


def _reference(ref: str, where: PathInTree, around: Around, *, rows_only: bool) -> Iterator[Fault]:
    name, mark, row_id = ref.partition("#")
    if name not in around.evidence_ids:
        near = nearest(name, around.evidence_ids)
        repair = f"did you mean {near[0]}#{row_id}?" if near else "write <evidence file>#<row>"
        yield Fault(where, "unknown_evidence", f"there is no evidence set {name}", repair)
    elif found := around.evidence(name):
        rows = [row.id for row in found.rows] if rows_only else list(found.ids)
        if not mark or row_id not in rows:
            near = nearest(row_id, rows) or rows[:3]
            message = f"{name} has no row {row_id}" if mark else f"{ref} names no row"
            repair = f"did you mean {name}#{near[0]}?" if near else f"{name} measured no recipe"
            yield Fault(where, "unknown_evidence", message, repair)


def _context(recipe: Recipe, around: Around) -> Iterator[Fault]:
    wanted = recipe.serving.context_tokens
    if around.model is None or wanted <= around.model.context_tokens or overrides_rope(recipe):
        return
    message = f"{wanted:,} tokens are more than {recipe.model} was made for"
    message += f" ({around.model.context_tokens:,})"
    repair = f"write at most {around.model.context_tokens}, or extend it by --hf-overrides (rope)"
    yield Fault(("serving", "context_tokens"), "context_above_model", message, repair)


def overrides_rope(recipe: Recipe) -> bool:
    """Tell whether a recipe stretches the model's positions by its flags."""
    given, _ = given_flags(recipe.flags)
    return any(
        flag.name == "--rope-scaling"
        or (flag.name == "--hf-overrides" and "rope" in f"{flag.key} {flag.value}")
        for flag in given
    )


def _parsers(recipe: Recipe, around: Around) -> Iterator[Fault]:
    if around.engine is None or not known_versions(around.engine.id):
        return
    names = {flag.name for flag in given_flags(recipe.flags)[0]}
    missing = [f for f in ("--enable-auto-tool-choice", "--tool-call-parser") if f not in names]
    if "tools" in recipe.capabilities and missing:
        at = recipe.capabilities.index("tools")
        message = f"tools are claimed without {' and '.join(missing)}: calls come back as text"
        yield Fault(("capabilities", at), "tools_without_parser", message, "add it, or drop tools")


def _modalities(recipe: Recipe, around: Around) -> Iterator[Fault]:
    for at, capability in enumerate(recipe.capabilities):
        reads = around.model is None or capability in around.model.modalities
        if capability in ("image", "audio", "video") and not reads:
            message = f"{recipe.model} is not said to read {capability}"
            repair = f"drop it, or add it to modalities of models/{recipe.model}.yaml"
            yield Fault(("capabilities", at), "unknown_modality", message, repair, "hint")


def _drafter(recipe: Recipe, around: Around) -> Iterator[Fault]:
    method = recipe.speculative.method if recipe.speculative else None
    where = ("speculative", "method")
    if recipe.drafter and method in (None, "ngram"):
        message = f"a drafter is named, but {method or 'no speculation'} uses none"
        yield Fault(("drafter",), "unused_drafter", message, "remove it, or name the method")
    if recipe.drafter or method is None:
        return
    if method in NEEDS_DRAFTER:
        message = f"{method} takes its draft tokens from a second model; none is named"
        yield Fault(where, "drafter_missing", message, "add drafter: {repo: ...}")
    elif method == "mtp" and around.model and not around.model.mtp_layers:
        known = around.model.mtp_layers == 0
        what = "has no MTP layers" if known else "is not known to have MTP layers"
        message = f"{recipe.model} {what}, and no drafter is named"
        level = "error" if known else "hint"
        yield Fault(where, "drafter_missing", message, "add drafter: {repo: ...}", level)


def _image(recipe: Recipe, _around: Around) -> Iterator[Fault]:
    where = ("image", "reference")
    _, tag = split_reference(recipe.image.reference)
    pinned = recipe.image.digest or "@sha256:" in recipe.image.reference
    if not pinned and (tag is None or _MOVING.search(tag)):
        message = f"the tag {tag or 'latest'} moves: what was measured is not what will run"
        repair = "name a release tag, and its digest"
        yield Fault(where, "moving_tag", message, repair, "hint")
    elif not pinned:
        repair = "add digest:, as sparkrecipes image REF gives it"
        message = "the image is not pinned by its digest"
        yield Fault(where, "image_not_pinned", message, repair, "hint")
    release = _RELEASE.match(tag or "")
    version = recipe.engine_version
    recorded = known_versions(recipe.engine)
    if release and version in recorded and release[1] != version:
        message = f"the image's tag says {release[1]}, engine_version says {version}"
        yield Fault(("engine_version",), "version_mismatch", message, f'"{release[1]}"?', "hint")


def _image_case(recipe: Recipe, _around: Around) -> Iterator[Fault]:
    """Docker refuses capitals in a repository; in a tag they count.

    Source: https://github.com/distribution/reference (repository name must be lowercase).
    """
    repository, _ = split_reference(recipe.image.reference)
    host, slash, path = repository.partition("/")
    if not slash or not re.search(r"[.:]|^localhost$", host):
        host, slash, path = "", "", repository
    if path != path.lower():
        rest = recipe.image.reference[len(repository) :]
        right = f"{host}{slash}{path.lower()}{rest}"
        fix = Fix(path=("image", "reference"), kind="plain", text=right)
        message = f"{repository}: a repository is written in lower case"
        yield Fault(("image", "reference"), "image_case", message, f"write {right}", fix=fix)


def _revisions(recipe: Recipe, _around: Around) -> Iterator[Fault]:
    for key, source in (("weights", recipe.weights), ("drafter", recipe.drafter)):
        if source and source.revision is None:
            message = f"the revision of {source.repo} is not pinned"
            repair = "add revision:, the full commit"
            yield Fault((key, "repo"), "revision_not_pinned", message, repair, "hint")


def _env(recipe: Recipe, around: Around) -> Iterator[Fault]:
    engine = around.engine
    secrets = (*engine.secrets, *engine.optional_secrets) if engine else ()
    for name, value in recipe.env.items():
        path = ("env", name)
        if name in secrets or names_secret(name) or holds_secret(f"{name}={value}"):
            what = "the name of this variable" if holds_secret(name) else name
            message = f"{what} is a secret, and a recipe is public"
            repair = "remove it, renew it if it was real, and set it where the tool runs"
            yield Fault(path, "secret", message, repair)
        elif loads_code(name):
            message = f"{name} makes other code run than the image's"
            yield Fault(path, "dangerous_env", message, "remove it; use an image that has it")
        elif engine and name == engine.arguments_env:
            message = f"{name} is set by the command from flags and fields"
            yield Fault(path, "field_flag", message, "write the arguments as flags")
        elif engine and name == engine.compile_jobs_env and not _JOBS.fullmatch(value):
            message = f"{name}={value} bounds nothing: it is no whole number from 1 on"
            yield Fault(path, "bad_value", message, f'write e.g. {name}: "4", or leave it out')


def _flags(recipe: Recipe, around: Around) -> Iterator[Fault]:
    if around.engine is None:
        return
    for found in flag_problems(recipe, around.engine):
        yield Fault(found.path, found.code, found.message, found.repair, found.level, found.fix)


def _known_env(recipe: Recipe, around: Around) -> Iterator[Fault]:
    for found in env_problems(recipe, around.engine) if around.engine else ():
        yield Fault(found.path, found.code, found.message, found.repair, found.level)


def _rule(needs: str, find: Callable[[Recipe, Around], Iterator[Fault]]) -> Rule:
    return Rule(frozenset(needs.split()), find)


RULES: tuple[Rule, ...] = (
    _rule("model", _known_model),
    _rule("engine", _known_engine),
    _rule("model quant weights", _build),
    _rule("evidence resembles", _evidence),
    _rule("model serving flags", _context),
    _rule("engine capabilities flags", _parsers),
    _rule("model capabilities", _modalities),
    _rule("model speculative drafter", _drafter),
    _rule("image engine engine_version", _image),
    _rule("image", _image_case),
    _rule("weights drafter", _revisions),
    _rule("engine env", _env),
    _rule("engine engine_version image env", _known_env),
    _rule("engine engine_version flags weights drafter", _flags),
)
"""Every rule; a new one is a function here and a fault-named file in the tests."""
