"""From an engine's arguments to the fields of a recipe, and the flags that remain."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from sparkrecipes.engine_flags import GivenFlag, given_flags, holds_secret
from sparkrecipes.engine_flags.json_values import json_fault
from sparkrecipes.engine_flags.options import option_table
from sparkrecipes.importing.found import Found, Word
from sparkrecipes.schema.base import KvCacheDtype
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Speculative, SpeculativeMethod
from sparkrecipes.strict_yaml.scalars import UNSEEN

TOPOLOGY = frozenset(
    (
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
        "--data-parallel-size",
        "--decode-context-parallel-size",
        "--prefill-context-parallel-size",
        "--distributed-executor-backend",
        "--nnodes",
        "--node-rank",
        "--master-addr",
        "--master-port",
        "--headless",
    )
)
"""Flags that spread a server over GPUs or machines; a recipe is for one Spark with one GPU."""

SECRET_FLAGS = ("--api-key", "--hf-token")
_SIZES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""Source: vLLM, vllm/engine/arg_utils.py, human_readable_int."""
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_SNAPSHOT = re.compile(
    r"(?P<root>.*/models--(?P<owner>[^/]+?)--(?P<name>[^/]+)/snapshots/(?P<revision>[^/]+))/?"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")


@dataclass
class Served:
    """What the arguments say, by the keys of a recipe.

    Attributes:
        values: Fields of the recipe.
        serving: Fields of its ``serving``.
        flags: What is no field, in the file's order.
        lines: Where each key was said.
        folders: Paths inside the container that stand for ``<weights>`` and ``<drafter>``.
    """

    values: dict[str, Any] = field(default_factory=dict)
    serving: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)


def served_by(found: Found, engine: Engine) -> Served:
    """Sort the arguments of a found command into fields and flags; note what is neither."""
    return _Reader(found, engine).read()


class _Reader:
    """Reads the arguments once, in order."""

    def __init__(self, found: Found, engine: Engine) -> None:
        self.found, self.served, self.engine = found, Served(), engine
        self.words = [unbraced(word) for word in without_command(found.arguments, engine)]
        table = option_table(engine.id)
        self.options = table.ever() if table else {}
        names = engine.flags
        self.fields: dict[str, Callable[[GivenFlag, str, int], None]] = {
            self.first_name(names.served_model_name): self._name,
            self.first_name(names.context_tokens): self._context,
            self.first_name(names.users): self._users,
            self.first_name(names.kv_cache_dtype): self._cache,
            self.first_name(names.gpu_memory_utilization): self._fraction,
            "--model": self._model,
            "--revision": self._revision,
        }
        if names.speculative:
            self.fields[self.first_name(names.speculative)] = self._speculative
        if engine.model_flag:
            self.fields[engine.model_flag] = self._model
        listening, _ = given_flags(engine.listen_flags)
        self.listening = {flag.name for flag in listening}

    def first_name(self, flag: str) -> str:
        """Return one name for all names of an option."""
        option = self.options.get(flag)
        return option.names[0] if option else flag

    def read(self) -> Served:
        """Read all of them."""
        given, stray = given_flags([word.text for word in self.words])
        for flag in given:
            after = self._not_its_values(flag)
            stray += after
            self._flag(bare(flag) if after else flag)
        for at, index in enumerate(sorted(stray)):
            self._stray(self.words[index], first=at == 0)
        self.served.flags = [self._with_folders(item) for item in self.served.flags]
        return self.served

    def _not_its_values(self, flag: GivenFlag) -> list[int]:
        """Return what follows a flag that takes no value, as in ``--flag MODEL``."""
        option = self.options.get(flag.name)
        if option is None or option.takes != "nothing" or flag.inline is not None:
            return []
        return [flag.index + 1 + at for at in range(len(flag.values))]

    def _stray(self, word: Word, *, first: bool) -> None:
        if first and self.engine.model_argument and "weights" not in self.served.values:
            self._model(GivenFlag(index=0, written="the model", name=""), word.text, word.line)
        elif word.text.strip():
            why = "it is neither a flag nor the value of one"
            self.found.drop(word.line, word.text, why)

    def _flag(self, flag: GivenFlag) -> None:
        line = self.words[flag.index].line
        name, value = self.first_name(flag.name), flag.value
        given = " ".join((flag.written, *((value,) if value is not None else ())))
        items = self.words[flag.index : flag.index + 1 + len(flag.values)]
        if name in SECRET_FLAGS or any(holds_secret(word.text) for word in items):
            why = "a recipe holds no secret; set it where the tool runs, and renew it"
            self.found.drop(line, flag.written, why)
        elif any(word.expands for word in items):
            why = "a shell would put something in its place, and no shell is run"
            self.found.drop(line, given, why)
        elif any(_PLACEHOLDER.search(word.text) for word in items):
            self.found.drop(line, given, "the file gives no value for its placeholder")
        elif any(UNSEEN.search(word.text) or "\n" in word.text for word in items):
            self.found.drop(line, given, "it holds a line break or a character that is not shown")
        elif name in self.listening:
            self._listening(name, given, value, line)
        elif name in TOPOLOGY:
            if value != "1":
                why = "a recipe is for one Spark, which has one GPU: one GPU is what it will use"
                self.found.drop(line, given, why)
        elif name in self.fields and not flag.key:
            self._field(name, flag, value, line, given)
        else:
            self._keep(flag, items)

    def _listening(self, name: str, given: str, value: str | None, line: int) -> None:
        inside = self.found.format in ("docker", "compose") and self.found.image is not None
        if inside and f"{name}={value}" in self.engine.listen_flags:
            return
        if name != "--port" and value not in ("127.0.0.1", "localhost", "::1"):
            why = "the server is published on 127.0.0.1; launch --bind opens it to others"
            self.found.drop(line, given, why)

    def _field(self, name: str, flag: GivenFlag, value: str | None, line: int, given: str) -> None:
        if value is None or not value.strip():
            self.found.drop(line, given, "it has no value")
            return
        key = self.fields[name].__name__
        if key in self.served.lines and name != "--revision":
            why = f"given before in line {self.served.lines[key]}; the engine takes the last"
            self.found.drop(self.served.lines[key], f"an earlier {flag.written}", why)
        self.served.lines[key] = line
        self.fields[name](flag, value, line)

    def _keep(self, flag: GivenFlag, items: list[Word]) -> None:
        """Keep a flag verbatim; a name and its only value become one item."""
        texts = [word.text for word in items]
        if flag.inline is None and len(flag.values) == 1 and not flag.joined:
            texts = [f"{flag.written}={flag.values[0]}"]
        base, equals, rest = texts[0].partition("=")
        if base.startswith("--"):
            texts[0] = base.replace("_", "-") + equals + rest
        before = [item.partition("=")[0] for item in self.served.flags]
        option = self.options.get(flag.name)
        if texts[0].partition("=")[0] in before and not (option and option.repeats):
            at = before.index(texts[0].partition("=")[0])
            why = "given again below; the engine takes the last"
            self.found.drop(items[0].line, self.served.flags.pop(at), why)
        self.served.flags += texts

    def _name(self, flag: GivenFlag, value: str, line: int) -> None:
        self.served.values["served_model_name"] = value
        for other in flag.values[1:]:
            self.found.drop(line, f"{flag.written} {other}", "a recipe serves under one name")

    def _context(self, flag: GivenFlag, value: str, line: int) -> None:
        self._count("context_tokens", flag, value, line)

    def _users(self, flag: GivenFlag, value: str, line: int) -> None:
        self._count("users", flag, value, line)

    def _count(self, key: str, flag: GivenFlag, value: str, line: int) -> None:
        number = re.fullmatch(r"(\d{1,12})(?:\.0+)?([kmgKMG]?)", value)
        count = int(number[1]) * _SIZES.get(number[2], 1) if number else 0
        if 1 <= count <= 10**12:
            self.served.serving[key] = count
        else:
            why = "it is no whole number of at least 1"
            self.found.drop(line, f"{flag.written} {value}", why)

    def _cache(self, flag: GivenFlag, value: str, line: int) -> None:
        known = self.engine.kv_cache_dtypes
        ours = next((own for own, word in known.items() if word == value), value)
        if value in get_args(KvCacheDtype) and known.get(value, value) == value:
            ours = value
        if ours in get_args(KvCacheDtype):
            self.served.serving["kv_cache_dtype"] = ours
        else:
            why = "this type of KV cache is not reckoned with here; the recipe says auto instead"
            self.found.drop(line, f"{flag.written} {value}", why)

    def _fraction(self, flag: GivenFlag, value: str, line: int) -> None:
        number = float(value) if re.fullmatch(r"\d{0,6}\.?\d{1,12}", value) else 0.0
        if 0 < number <= 1:
            self.served.serving["gpu_memory_utilization"] = number
            return
        why = "it is no fraction of the memory between 0 and 1"
        if number > 1:
            why = "an amount in GB (a patched engine takes it so), not a fraction of the memory"
        self.found.drop(line, f"{flag.written} {value}", why)

    def _model(self, _flag: GivenFlag, value: str, line: int) -> None:
        source, folder = repository(self.found, value, None, line)
        if source:
            self.served.values["weights"] = source
            self.served.lines["weights"] = line
        if folder:
            self.served.folders["weights"] = folder

    def _revision(self, flag: GivenFlag, value: str, line: int) -> None:
        if _COMMIT.fullmatch(value):
            self.found.revision = Word(value, line)
        else:
            self.found.drop(line, f"{flag.written} {value}", "a branch or tag moves: no pin")

    def _speculative(self, flag: GivenFlag, value: str, line: int) -> None:
        text = json.dumps(value) if json_fault(value) else value
        tree = json.loads(text) if not json_fault(text) else None
        if not isinstance(tree, dict):
            fault = json_fault(value)
            why = f"it is no JSON object{f': {fault.message}' if fault else ''}"
            self.found.drop(line, f"{flag.written} {value}", why)
            return
        model, revision = tree.pop("model", None), tree.pop("revision", None)
        if isinstance(model, str):
            source, folder = repository(self.found, model, revision, line)
            if source:
                self.served.values["drafter"] = source
            if folder:
                self.served.folders["drafter"] = folder
        self._method(tree, flag, line)

    def _method(self, tree: dict[str, Any], flag: GivenFlag, line: int) -> None:
        method = tree.get("method")
        if isinstance(method, str) and method.endswith("_mtp"):
            self.found.drop(line, f"method {method}", "an older name of mtp; the recipe says mtp")
            tree["method"] = "mtp"
        if tree.get("method") not in get_args(SpeculativeMethod):
            why = f"speculation by {method!r} is not known here; the recipe has none"[:200]
            self.found.drop(line, f"{flag.written}", why)
            return
        kept: dict[str, Any] = {}
        for key, value in tree.items():
            if fits_speculative(key, value):
                kept[key] = value
            else:
                self.found.drop(line, f"{key}: {json.dumps(value)}", "a recipe has no place for it")
        if "num_speculative_tokens" not in kept:
            why = "how many tokens are drafted is not said; the recipe has no speculation"
            self.found.drop(line, flag.written, why)
            return
        self.served.values["speculative"] = kept

    def _with_folders(self, item: str) -> str:
        for role, path in self.served.folders.items():
            item = item.replace(path, f"<{role}>")
        return item


def without_command(words: list[Word], engine: Engine) -> list[Word]:
    """Take off the words by which an image is told to serve, where they stand before the rest."""
    texts = tuple(word.text for word in words[: len(engine.command)])
    return words[len(engine.command) :] if texts == engine.command else words


def bare(flag: GivenFlag) -> GivenFlag:
    """Return a flag without the words that only follow it."""
    return GivenFlag(index=flag.index, written=flag.written, name=flag.name, key=flag.key)


def fits_speculative(key: str, value: Any) -> bool:
    """Tell whether a setting of the engine's JSON is one that a recipe knows."""
    if key not in Speculative.model_fields:
        return False
    if key in ("num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return isinstance(value, str) and bool(value) and not UNSEEN.search(value)


def repository(
    found: Found, value: str, revision: Any, line: int
) -> tuple[dict[str, str | None] | None, str | None]:
    """Read a model as a repository, or as the folder of one in a Hugging Face cache.

    Returns:
        The repository with its revision, and the folder it was named by; None for each.
    """
    if holds_secret(value):
        found.drop(line, "a model's name", "it holds a secret, and a recipe holds none")
        return None, None
    pin = revision if isinstance(revision, str) and _COMMIT.fullmatch(revision) else None
    if revision is not None and pin is None:
        found.drop(line, f"revision {revision}", "a branch or tag moves: no pin")
    if cached := _SNAPSHOT.fullmatch(value):
        repo = f"{cached['owner']}/{cached['name']}"
        commit = cached["revision"] if _COMMIT.fullmatch(cached["revision"]) else pin
        if _REPO.fullmatch(repo) and len(repo) <= 200:
            return {"repo": repo, "revision": commit}, cached["root"]
    if _REPO.fullmatch(value) and len(value) <= 200:
        return {"repo": value, "revision": pin}, None
    why = "a folder or file, not a Hugging Face repository: which weights it holds is not said"
    found.drop(line, value, why)
    return None, None


def unbraced(word: Word) -> Word:
    """Collapse the doubled braces of a template, where that makes JSON of a value.

    Source: https://github.com/spark-arena/sparkrun/pull/214
    """
    head, equals, value = word.text.partition("=")
    if not (equals and head.startswith("--")):
        head, equals, value = "", "", word.text
    if "{{" not in value or not json_fault(value):
        return word
    collapsed = value.replace("{{", "{").replace("}}", "}")
    return word if json_fault(collapsed) else Word(head + equals + collapsed, word.line)
