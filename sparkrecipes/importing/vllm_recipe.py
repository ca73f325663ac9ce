"""Reading a recipe of vLLM's own collection: argument lists by feature, variant and hardware.

Source: https://github.com/vllm-project/recipes (models/*/*.yaml)
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.importing.foreign_yaml import ForeignYaml
from sparkrecipes.importing.found import Found
from sparkrecipes.strict_yaml import PathInTree

SPARK = "dgx_spark_gb10"
"""What the collection calls a Spark."""

DEFAULT_VARIANT = "default"
_ABOUT = "the catalog's model file holds such facts, each with its source"
_OTHERS = "for other hardware, or for how several GPUs share a model"
WHY: dict[str, str] = {
    "guide": "prose",
    "meta": _ABOUT,
    "compatible_strategies": _OTHERS,
    "default_strategy": _OTHERS,
    "strategy_overrides": _OTHERS,
    "hardware_overrides": _OTHERS,
    "dependencies": "packages beside the image: an image that has them is needed",
    "omni": "another server than the one a recipe is for",
    "kv_offload_support": _ABOUT,
}
_MODEL_ARGUMENTS = ("model_id", "base_args", "base_env", "docker_image", "min_vllm_version")
_VARIANT_KEYS = ("model_id", "extra_args", "extra_env", "docker_image", "precision", "tp")


def read(found: Found, yaml: ForeignYaml, select: str | None) -> None:
    """Read one variant with the features that are on unless asked otherwise."""
    variant = variant_name(found, yaml, select)
    path: PathInTree = ("variants", variant)
    title = yaml.word(("meta", "title"))
    precision = yaml.word((*path, "precision"))
    parts = [word.text for word in (title, precision) if word]
    found.title = " ".join(" ".join(parts).split()) or None
    found.engine = "vllm"
    found.model = yaml.word((*path, "model_id")) or yaml.word(("model", "model_id"))
    found.image = yaml.word((*path, "docker_image")) or yaml.word(("model", "docker_image"))
    for here in argument_lists(found, yaml, path):
        found.arguments += yaml.words(here)
    for here in (
        ("model", "base_env"),
        (*path, "extra_env"),
        (*path, "hardware_overrides", SPARK, "extra_env"),
        ("hardware_overrides", SPARK, "extra_env"),
    ):
        found.env |= yaml.variables(found, here)
    note_rest(found, yaml, path)


def variant_name(found: Found, yaml: ForeignYaml, select: str | None) -> str:
    """Choose the variant: the one named, else ``default``, else the only one.

    Raises:
        CatalogError: It is not there, or there are several and none was named.
    """
    variants = yaml.tree.get("variants")
    names = [*variants] if isinstance(variants, dict) else []
    if select is None and (DEFAULT_VARIANT in names or not names):
        chosen = DEFAULT_VARIANT
    elif select in names or (select is None and len(names) == 1):
        chosen = select or names[0]
    else:
        message = f"no variant {select}" if select else f"{len(names)} variants"
        repair = f"name one with --select: {', '.join(names) or 'there is none'}"
        raise found.refusal(yaml.line(("variants",)), "which_variant", message, repair)
    for other in names:
        if other != chosen:
            line = yaml.line(("variants", other))
            found.drop(line, f"variant {other}", f"for this one: --select {other}")
    return chosen


def argument_lists(found: Found, yaml: ForeignYaml, variant: PathInTree) -> Iterator[PathInTree]:
    """Say where the arguments stand, in the order in which they are given."""
    yield ("model", "base_args")
    features = yaml.tree.get("features")
    asked = [word.text for word in yaml.words(("opt_in_features",))]
    for name in features if isinstance(features, dict) else ():
        path: PathInTree = ("features", name)
        if name in asked:
            why = "a feature that is off unless asked for; add its arguments as flags"
            found.drop(yaml.line(path), f"feature {name}", why)
            continue
        default = yaml.word((*path, "default_mode"))
        yield (*path, "modes", default.text, "args") if default else (*path, "args")
        yield (*path, "hardware_overrides", SPARK, "args")
    yield (*variant, "extra_args")
    yield ("hardware_overrides", SPARK, "extra_args")
    yield (*variant, "hardware_overrides", SPARK, "extra_args")


def note_rest(found: Found, yaml: ForeignYaml, variant: PathInTree) -> None:
    """Note what else the file says."""
    hardware = yaml.at(("meta", "hardware"))
    if not (isinstance(hardware, dict) and SPARK in hardware):
        line = yaml.line(("meta", "hardware"))
        found.drop(line, "meta.hardware", f"does not name {SPARK}: nobody says it runs there")
    minimum = yaml.word((*variant, "vram_minimum_gb"))
    if minimum:
        why = "about the size of the weights, no fit: see sparkrecipes fit"
        found.drop(minimum.line, f"vram_minimum_gb: {minimum.text}", why)
    tp = yaml.word((*variant, "tp"))
    if tp and tp.text != "1":
        found.drop(tp.line, f"tp: {tp.text}", "a recipe is for one Spark, which has one GPU")
    version = yaml.word(("model", "min_vllm_version"))
    if version:
        why = "the oldest release that may do; a recipe names the one that it runs"
        found.drop(version.line, f"min_vllm_version: {version.text}", why)
    known = ("model", "features", "opt_in_features", "variants", "meta")
    yaml.drop_rest(found, (), known, WHY, "a recipe has no place for it")
    yaml.drop_rest(found, ("model",), _MODEL_ARGUMENTS, {}, _ABOUT)
    spoken = (*_VARIANT_KEYS, "vram_minimum_gb", "description", "label")
    yaml.drop_rest(found, variant, spoken, WHY, "a recipe has no place for it")
