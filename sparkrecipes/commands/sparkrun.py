"""A recipe in sparkrun's format, version 2: for two and more Sparks.

Each value stands in ``defaults``, so that ``sparkrun run -o key=value`` reaches it, and the command
names it. The container gets no privileges and no host IPC; the host's network is sparkrun's own.

Source: https://github.com/spark-arena/sparkrun/blob/main/RECIPES.md
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sparkrecipes.commands.arguments import shown
from sparkrecipes.errors import Misuse
from sparkrecipes.schema.recipe import Recipe, WeightsSource

if TYPE_CHECKING:
    from sparkrecipes.commands.cluster import ClusterRequest

RUNTIMES = {"vllm": "vllm-distributed"}
"""Engines that it is written for, and what sparkrun calls their native clustering."""

_PLAIN_FLAG = re.compile(r"--([a-z][a-z0-9-]*)=([^']*)")
_PLACEHOLDER = re.compile(r"\{\{|\{[A-Za-z_]\w*\}")
ADDED_KEY = "sparkrecipes_added_env"
"""Key of ``metadata`` that names what this tool set beside the recipe's own variables."""

_FOLDERS = ("<weights>", "<drafter>")


def sparkrun_text(request: ClusterRequest) -> str:
    """Write the recipe's file.

    Raises:
        Misuse: sparkrun has no such engine, or nothing that a flag's folder could be.
    """
    import yaml

    recipe = request.recipe
    refuse_what_it_cannot(request)
    defaults, command = template(request)
    weights = recipe.weights
    document: dict[str, Any] = {
        "recipe_version": "2",
        "model": weights.repo if weights else None,
        "model_revision": weights.revision if weights else None,
        "runtime": RUNTIMES[request.engine.id],
        "container": request.image,
        "min_nodes": request.nodes,
        "max_nodes": request.nodes,
        "metadata": {
            "description": recipe.title,
            **({ADDED_KEY: ",".join(request.added_env)} if request.added_env else {}),
        },
        "defaults": defaults,
        "env": dict(sorted((recipe.env | request.added_env).items())) or None,
        "executor_config": {
            "privileged": False,
            "ipc": "private",
            **({"shm_size": recipe.shm_size} if recipe.shm_size else {}),
        },
        "readiness": {"health_timeout_s": recipe.startup_timeout_s, "inference": True},
        "command": command,
    }
    kept = {key: value for key, value in document.items() if value is not None}
    yaml.add_representer(Block, written_as_block, Dumper=yaml.SafeDumper)
    text: str = yaml.safe_dump(kept, sort_keys=False, width=2**20, allow_unicode=True)
    return text


class Block(str):
    """A text of several lines, which YAML writes as such."""

    __slots__ = ()


def written_as_block(dumper: Any, text: Block) -> Any:
    """Write a text with ``|``, so that people can read and change it."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


def refuse_what_it_cannot(request: ClusterRequest) -> None:
    """Refuse recipes that the format cannot say.

    Raises:
        Misuse: With what stands in the way.
    """
    recipe = request.recipe
    if request.engine.id not in RUNTIMES or recipe.weights is None:
        raise Misuse(
            f"{recipe.id} is served by {request.engine.title}, and sparkrun's format is written "
            "for vLLM",
            code="format_without_engine",
            repair="use --format docker, or a vLLM recipe of that model: sparkrecipes list --all",
        )
    named = [flag for flag in recipe.flags if any(folder in flag for folder in _FOLDERS)]
    if named:
        raise Misuse(
            f"{named[0]} names a file of the weights' folder, and sparkrun has no name for that",
            code="format_without_folder",
            repair="use --format docker or kubernetes",
        )


def template(request: ClusterRequest) -> tuple[dict[str, Any], Block]:
    """Return the defaults and the command that uses each of them."""
    recipe, names, settings = request.recipe, request.engine.flags, request.settings
    word = request.engine.kv_cache_dtypes
    dtype = recipe.serving.kv_cache_dtype
    fields: tuple[tuple[str, str | None, Any], ...] = (
        ("host", "--host", request.bind),
        ("port", "--port", request.port),
        ("tensor_parallel", "--tensor-parallel-size", request.nodes),
        ("served_model_name", names.served_model_name, recipe.served_model_name),
        ("max_model_len", names.context_tokens, settings.context_tokens),
        ("max_num_seqs", names.users, settings.users),
        ("kv_cache_dtype", names.kv_cache_dtype, word.get(dtype, dtype)),
        (
            "gpu_memory_utilization",
            names.gpu_memory_utilization,
            settings.gpu_memory_utilization,
        ),
        ("speculative_config", names.speculative, speculative(recipe)),
    )
    defaults: dict[str, Any] = {}
    words = ["vllm serve {model}"]
    if recipe.weights and recipe.weights.revision:
        words.append("--revision {model_revision}")
    for key, flag, value in fields:
        if flag and value is not None:
            defaults[key] = float(shown(value)) if isinstance(value, float) else value
            words.append(f"{flag} {quoted(key, value)}")
    words += flag_words(recipe, defaults)
    return defaults, Block(" \\\n  ".join(words) + "\n")


def quoted(key: str, value: Any) -> str:
    """Name a default in the command; one that a shell would split stands in quotes."""
    plain = not isinstance(value, str) or shlex.quote(value) == value
    return f"{{{key}}}" if plain else f"'{{{key}}}'"


def flag_words(recipe: Recipe, defaults: dict[str, Any]) -> Iterator[str]:
    """Write the recipe's flags: a value becomes a default, where the template can name it."""
    for flag in recipe.flags:
        found = _PLAIN_FLAG.fullmatch(flag)
        key = found[1].replace("-", "_") if found else ""
        if found and key not in defaults and not _PLACEHOLDER.search(found[2]):
            defaults[key] = found[2]
            yield f"--{found[1]} {quoted(key, found[2])}"
        elif _PLACEHOLDER.search(flag):
            raise Misuse(
                f"{flag} holds braces that sparkrun would take for a placeholder",
                code="format_without_braces",
                repair="use --format docker or kubernetes",
            )
        else:
            yield shlex.quote(flag)


def speculative(recipe: Recipe) -> str | None:
    """Write speculation as the engine's JSON, with the drafter as a repository."""
    if recipe.speculative is None:
        return None
    option = recipe.speculative.model_dump(mode="json", exclude_none=True)
    option |= named_drafter(recipe.drafter)
    return json.dumps(option, separators=(",", ":"))


def named_drafter(drafter: WeightsSource | None) -> dict[str, str]:
    """Name a drafter and its commit the way the engine takes them."""
    if drafter is None:
        return {}
    pin = {"revision": drafter.revision} if drafter.revision else {}
    return {"model": drafter.repo, **pin}
