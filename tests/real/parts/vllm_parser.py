"""Asks the vLLM that is first on the path; run by the interpreter of vLLM's environment.

::

    vllm_parser.py parse    argv lists on stdin, a JSON list; on stdout what its parser says to
                            each: null, or its complaint
    vllm_parser.py names    what else it knows by name: parsers, methods, variables, JSON keys

The answer is the last line of stdout: vLLM writes its own lines before it.
"""

import argparse
import builtins
import contextlib
import dataclasses
import io
import json
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NO_KEY = "no_such_key"
VARIABLE = re.compile(r"""["'](VLLM_[A-Z0-9_]+)["']""")


def serve_parser() -> argparse.ArgumentParser:
    """Build the parser of ``vllm serve``."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    try:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
    except ImportError:  # before 0.26
        from vllm.entrypoints.openai.cli_args import make_arg_parser
    return make_arg_parser(FlexibleArgumentParser())


def complaint(parser: argparse.ArgumentParser, argv: list[str]) -> str | None:
    """Return what a parser has against arguments; None: it takes them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            parser.parse_args(argv)
    except SystemExit:
        return said.getvalue().strip()[-400:]
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


class Names(dict[str, Any]):
    """Names that annotations use; those of type checkers only stand for anything."""

    def __init__(self, module: Any) -> None:
        """Look names up in a module, then among the built-in ones."""
        self.module = module

    def __missing__(self, name: str) -> Any:
        """Return what a name means."""
        return getattr(self.module, name, getattr(builtins, name, Any))


def configs_in(hint: Any) -> list[type]:
    """Return vLLM's configuration classes that a type hint names."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return [hint] if hint.__module__.startswith("vllm") else []
    return [found for inner in typing.get_args(hint) for found in configs_in(inner)]


def keys_of(config: type, before: str = "") -> Iterator[str]:
    """Yield the keys of a configuration, nested ones with dots."""
    hints = typing.get_type_hints(config, localns=Names(sys.modules[config.__module__]))
    for field in dataclasses.fields(config):
        if field.init and not field.name.startswith("_"):
            yield f"{before}{field.name}"
            inner = configs_in(hints.get(field.name))
            if len(inner) == 1 and before.count(".") < 3:
                yield from keys_of(inner[0], f"{before}{field.name}.")


def json_keys() -> dict[str, list[str]]:
    """Return the keys of each option that takes JSON and refuses others."""
    from vllm.config.speculative import SpeculativeConfig
    from vllm.engine import arg_utils

    parser = serve_parser()
    hints = typing.get_type_hints(arg_utils.EngineArgs, localns=Names(arg_utils))
    found = {}
    for action in parser._actions:
        configs = configs_in(hints.get(action.dest))
        name = next((n for n in action.option_strings if n.startswith("--")), "")
        if len(configs) == 1 and complaint(parser, ["model", f'{name}={{"{NO_KEY}":1}}']):
            found[name] = sorted(set(keys_of(configs[0])))
    return found | {"--speculative-config": sorted(f.name for f in given(SpeculativeConfig))}


def given(config: type) -> list[Any]:
    """Return the fields of a configuration that are given, not worked out."""
    return [field for field in dataclasses.fields(config) if field.init and field.name[0] != "_"]


SHAPES = {
    "whole": "7",
    "negative": "-1",
    "decimal": "1.5",
    "suffixed": "7k",
    "auto": "auto",
    "None": "None",
}
"""Ways to write a number, each with an example."""

NO_NUMBERS = ("word", '["word"]', '{"word":1}')
"""Values of options that take any word, or JSON."""


def value_shapes() -> dict[str, list[str]]:
    """Return how each option that takes a number may have it written."""
    parser = serve_parser()
    found = {}
    for action in parser._actions:
        name = next((n for n in action.option_strings if n.startswith("--")), "")
        if not name or action.nargs == 0 or action.choices:
            continue
        if all(complaint(parser, ["model", f"{name}={text}"]) for text in NO_NUMBERS):
            takes = [
                shape
                for shape, example in SHAPES.items()
                if not complaint(parser, ["model", f"{name}={example}"])
            ]
            if "whole" in takes:
                found[name] = sorted(takes)
    return found


def variables() -> list[str]:
    """Return the environment variables that its Python code names."""
    import vllm
    from vllm import envs

    found = {name for name in envs.environment_variables if name.startswith("VLLM_")}
    for path in Path(vllm.__file__).parent.rglob("*.py"):
        found |= set(VARIABLE.findall(path.read_text(encoding="utf-8")))
    return sorted(found)


def names() -> dict[str, Any]:
    """Return what a release knows by name, beside its options."""
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    return {
        "tool_parsers": sorted(ToolParserManager.list_registered()),
        "reasoning_parsers": sorted(ReasoningParserManager.list_registered()),
        "quantization": sorted(QUANTIZATION_METHODS),
        "env": variables(),
        "json_keys": json_keys(),
        "values": value_shapes(),
    }


if __name__ == "__main__":
    if sys.argv[1] == "names":
        answer: Any = names()
    else:
        parser = serve_parser()
        answer = [complaint(parser, argv) for argv in json.load(sys.stdin)]
    print(f"\n{json.dumps(answer)}")
