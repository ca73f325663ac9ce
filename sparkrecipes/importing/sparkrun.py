"""Reading a recipe of sparkrun: version 2, or version 1, which is eugr's spark-vllm-docker.

Its command is a template with ``{key}`` placeholders for ``defaults``. They are put in by plain
text replacement; no templating engine and no shell is run.

Source: https://github.com/spark-arena/sparkrun/blob/main/RECIPES.md and
https://github.com/eugr/spark-vllm-docker/tree/main/recipes
"""

from __future__ import annotations

import json
import re

from sparkrecipes.commands.sparkrun import ADDED_KEY
from sparkrecipes.importing.foreign_yaml import ForeignYaml
from sparkrecipes.importing.found import Found, Word
from sparkrecipes.importing.serving import split_or_refuse, take_commands
from sparkrecipes.schema.engine import Engine

_HOOK = "a program that runs on this host or in the container; an import runs nothing"
_NODES = "a recipe is for one Spark; for more, see sparkrecipes command --format sparkrun"
_CONTAINER = "the container is started with this tool's own safe settings"

WHY: dict[str, str] = {
    "mods": "patches of the container at its start: it is not the image that was measured",
    "build_args": "an image that is built here is not the one that was measured",
    "builder": "an image that is built here is not the one that was measured",
    "builder_config": "an image that is built here is not the one that was measured",
    "pre_exec": _HOOK,
    "post_exec": _HOOK,
    "post_commands": _HOOK,
    "stop_after_post": _HOOK,
    "min_nodes": _NODES,
    "max_nodes": _NODES,
    "mode": _NODES,
    "cluster_only": _NODES,
    "solo_only": _NODES,
    "cluster_config": _NODES,
    "containers": "a recipe is one container",
    "distribution_config": _NODES,
    "benchmark": "speed is measured with the standard round",
    "runtime_config": "a recipe has no place for it",
    "executor_config": _CONTAINER,
    "readiness": "readiness is a real completion, which the tool asks for itself",
    "metadata": "the catalog's model file holds such facts, each with its source",
}
KNOWN = frozenset(
    [
        "recipe_version",
        "name",
        "description",
        "model",
        "model_revision",
        "runtime",
        "runtime_version",
        "container",
        "command",
        "defaults",
        "env",
        "executor_config",
        "readiness",
        "metadata",
    ]
)
ONE_NODE: dict[str, tuple[object, ...]] = {
    "min_nodes": (1,),
    "max_nodes": (1,),
    "mode": ("solo", "auto"),
    "cluster_only": (False,),
    "solo_only": (True, False),
}
"""Values that say what a recipe is anyway."""

RUNTIMES = {"vllm-distributed": "vllm", "vllm-ray": "vllm", "eugr-vllm": "vllm"}
RUNTIMES["llama-cpp"] = "llama.cpp"
RENAMED = {
    "tensor_parallel": "--tensor-parallel-size",
    "pipeline_parallel": "--pipeline-parallel-size",
    "data_parallel": "--data-parallel-size",
}
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
MAX_TEMPLATE = 64 * 1024
"""Characters of a command after its placeholders were filled; a real one has a few thousand."""
MAX_DEPTH = 4
"""How often a value may name another value."""


def read(found: Found, yaml: ForeignYaml) -> None:
    """Read a recipe of either version; the engine's arguments come from its command."""
    found.title = title_of(yaml)
    found.image = yaml.word(("container",))
    found.model = yaml.word(("model",))
    found.revision = yaml.word(("model_revision",))
    runtime = yaml.word(("runtime",))
    if runtime:
        found.engine = RUNTIMES.get(runtime.text, runtime.text)
    found.env = yaml.variables(found, ("env",))
    for name, word in found.env.items():
        found.env[name] = Word(word.text, word.line, "$" in word.text)
    executor(found, yaml)
    wait(found, yaml)
    metadata(found, yaml)
    silent = {key for key, values in ONE_NODE.items() if yaml.tree.get(key) in values}
    yaml.drop_rest(found, (), KNOWN | silent, WHY, "a recipe has no place for it")
    command = yaml.word(("command",))
    if command:
        take_template(found, yaml, command)


def title_of(yaml: ForeignYaml) -> str | None:
    """Return what the file is called for people."""
    for path in (("metadata", "description"), ("description",), ("name",)):
        if word := yaml.word(path):
            return " ".join(word.text.split())
    return None


def executor(found: Found, yaml: ForeignYaml) -> None:
    """Take the shared memory; the rest of the container is the tool's own."""
    found.shm_size = yaml.word(("executor_config", "shm_size"))
    safe = {"shm_size"}
    safe |= {k for k, v in (("privileged", False), ("gpus", "all")) if _is(yaml, k, v)}
    safe |= {k for k in ("ipc", "network") if _is(yaml, k, "private") or _is(yaml, k, "bridge")}
    yaml.drop_rest(found, ("executor_config",), safe, {}, _CONTAINER)


def _is(yaml: ForeignYaml, key: str, value: object) -> bool:
    return bool(yaml.at(("executor_config", key)) == value)


def wait(found: Found, yaml: ForeignYaml) -> None:
    """Take how long a start may take."""
    seconds = yaml.at(("readiness", "health_timeout_s"))
    known = {"inference"}
    if isinstance(seconds, int) and not isinstance(seconds, bool) and 10 <= seconds <= 14400:
        found.startup_timeout_s = seconds
        known.add("health_timeout_s")
    yaml.drop_rest(found, ("readiness",), known, {}, WHY["readiness"])


def metadata(found: Found, yaml: ForeignYaml) -> None:
    """Note facts that a model's file would hold, and take our own note of what was added."""
    if added := yaml.word(("metadata", ADDED_KEY)):
        found.added_env |= set(added.text.split(","))
    yaml.drop_rest(found, ("metadata",), ("description", ADDED_KEY), {}, WHY["metadata"])


def take_template(found: Found, yaml: ForeignYaml, command: Word) -> None:
    """Fill the placeholders of the command with the defaults, and take it apart."""
    defaults = yaml.mapping(("defaults",))
    values = {key: word.text for key, word in defaults.items()}
    if found.model:
        values.setdefault("model", found.model.text)
    if found.revision:
        values.setdefault("model_revision", found.revision.text)
    used = set(_PLACEHOLDER.findall(command.text))
    text = filled(found, command, values)
    take_commands(found, split_or_refuse(found, text, yaml.text_line(("command",))))
    deeper = {name for key in used for name in _PLACEHOLDER.findall(values.get(key, ""))}
    for key, word in defaults.items():
        if key not in used | deeper:
            why = "the command does not use this default, so nothing was set by it"
            found.drop(word.line, f"{key}: {word.text}", why)


def filled(found: Found, command: Word, values: dict[str, str]) -> str:
    """Put values in place of placeholders; one without a value stays as it is."""
    text = command.text
    for _ in range(MAX_DEPTH):
        before = text
        text = _PLACEHOLDER.sub(lambda name: values.get(name[1], name[0]), text)
        if len(text) > MAX_TEMPLATE:
            message = f"the command grows beyond {MAX_TEMPLATE:,} characters"
            raise found.refusal(command.line, "too_large", message, "write the values out")
        if text == before:
            break
    return text


def take_defaults(found: Found, yaml: ForeignYaml, engine: Engine) -> None:
    """Make the arguments of a recipe without a command: each default is an option.

    Lists and mappings become JSON; a value of false leaves the option out, as sparkrun does.
    """
    names = engine.flags
    options = {
        "max_model_len": names.context_tokens,
        "max_num_seqs": names.users,
        "kv_cache_dtype": names.kv_cache_dtype,
        "gpu_memory_utilization": names.gpu_memory_utilization,
        "served_model_name": names.served_model_name,
        **({"speculative_config": names.speculative} if names.speculative else {}),
        **RENAMED,
    }
    defaults = yaml.at(("defaults",))
    for key, value in defaults.items() if isinstance(defaults, dict) else ():
        path = ("defaults", key)
        option = options.get(key, f"--{key.replace('_', '-')}")
        if value is True:
            found.arguments.append(Word(option, yaml.line(path)))
        elif isinstance(value, dict | list):
            found.arguments.append(Word(f"{option}={json.dumps(value)}", yaml.line(path)))
        elif value is not None and value is not False and (word := yaml.word(path)):
            found.arguments.append(Word(f"{option}={word.text}", word.line))
