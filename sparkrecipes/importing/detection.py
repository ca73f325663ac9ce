"""Telling what kind of file it is, and by what it was told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sparkrecipes.schema.importing import ForeignFormat

_SHELL_LINE = re.compile(
    r"^\s*(sudo\s+)?(\w+=\S*\s+)*((docker|podman|nerdctl)\s+(container\s+)?(run|create)\b"
    r"|vllm\s+serve\b|(\S*/)?python3?\s+-m\s+\w|sglang\s+serve\b|llama-server\b|trtllm-serve\b)",
    re.MULTILINE,
)
_KEY_LINE = re.compile(r"^[A-Za-z_][\w.-]*:(\s|$)", re.MULTILINE)
_OWN_KEYS = frozenset(("serving", "capabilities", "served_model_name"))
_V1_KEYS = frozenset(("build_args", "mods", "cluster_only", "solo_only"))


class Guess(NamedTuple):
    """A format and what it was told by."""

    format: ForeignFormat
    by: str


def by_text(text: str) -> Guess | None:
    """Recognise a shell text before it is read as YAML; None: it is none."""
    found = _SHELL_LINE.search(text)
    if found is None or _KEY_LINE.search(text[: found.start()]):
        return None
    words = " ".join(found.group().split())
    return Guess("docker", f"its command: {words}")


def by_tree(tree: Any) -> Guess | None:
    """Recognise a YAML or JSON document by its keys; None: by none of them."""
    if not isinstance(tree, Mapping):
        return None
    version = tree.get("recipe_version")
    if version is not None:
        old = str(version) in ("1", "1.0")
        return Guess("sparkrun-v1" if old else "sparkrun-v2", f"recipe_version {version}")
    if isinstance(tree.get("argv"), list):
        return Guess("docker", "the key argv, as sparkrecipes command --json writes it")
    if isinstance(tree.get("services"), Mapping):
        return Guess("compose", "the key services")
    if isinstance(tree.get("model"), Mapping) and "model_id" in tree["model"]:
        return Guess("vllm-recipe", "the key model.model_id")
    if "container" in tree or "runtime" in tree:
        old = bool(_V1_KEYS & set(tree)) and "runtime" not in tree
        named = "container" if "container" in tree else "runtime"
        return Guess("sparkrun-v1" if old else "sparkrun-v2", f"the key {named}")
    return None


def what_else(tree: Any) -> tuple[str, str] | None:
    """Return what a document is instead, and what to do with it; None: nothing known."""
    if not isinstance(tree, Mapping):
        return None
    if _OWN_KEYS & set(tree):
        return "a recipe of this tool already", "run: sparkrecipes validate FILE"
    if "apiVersion" in tree and "kind" in tree:
        return "a Kubernetes manifest", "give the container's command as a docker run line"
    return None
