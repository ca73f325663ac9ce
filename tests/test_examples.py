"""Examples and agent prompts: what they show works, and what they name exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparkrecipes.catalog import open_catalog
from sparkrecipes.rehearsal import EngineDouble

ROOT = Path(__file__).parent.parent
RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
LANGUAGES = ("en", "es")


def run_example(folder: Path, name: str, *arguments: str) -> tuple[int, str]:
    """Run an example as a person does, with a data folder of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def test_pick_and_check(tmp_path: Path) -> None:
    """A pick in Spanish with its size; off the Spark the check says so and exits 1 or 3."""
    code, text = run_example(tmp_path, "pick_and_check.py", "agentes", "--offline")
    assert text.startswith(RECIPE)
    assert "fits: needs at most" in text
    assert code == {"ready": 0, "blocked": 1, "unknown": 3}[text.split("verdict: ")[-1].strip()]


def test_measure_endpoint(tmp_path: Path) -> None:
    """An endpoint is measured and compared: at eight times the published speed, faster."""
    catalog = open_catalog()
    recipe = catalog.recipe(RECIPE)
    row = catalog.october_row(recipe)
    assert row
    with EngineDouble(recipe, catalog.engine("vllm"), row, speed=8.0, load_s=0.0) as double:
        code, text = run_example(tmp_path, "measure_endpoint.py", double.base_url, RECIPE, "single")
    assert 0 == code
    assert "Faster than published: one user" in text
    assert re.search(r"decode [78]\d\d\.\d tok/s", text)


@pytest.mark.parametrize("arguments", [[], ["http://127.0.0.1:9"], ["ftp://x"], ["a"] * 5])
def test_an_example_that_cannot_measure_says_why(tmp_path: Path, arguments: list[str]) -> None:
    """No argument, nobody there, a bad address, too many: a line, 1, and no traceback."""
    code, text = run_example(tmp_path, "measure_endpoint.py", *arguments)
    assert 1 == code
    assert "decode" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_agent_prompts_are_short_and_name_commands_that_exist(language: str) -> None:
    """Every command and option in a prompt is known to the command line."""
    text = (ROOT / f"agent_prompts/install_and_verify.{language}.md").read_text()
    assert 4000 > len(text)
    for command, rest in re.findall(r"`sparkrecipes (\w+)([^`]*)`", text):
        usage = subprocess.run(
            [sys.executable, "-m", "sparkrecipes", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for option in re.findall(r"--[\w-]+", rest):
            assert option in usage, (command, option)


def test_both_languages_say_the_same() -> None:
    """The prompts name the same commands in the same order, and have the same sections."""
    commands, sections = [], []
    for language in LANGUAGES:
        text = (ROOT / f"agent_prompts/install_and_verify.{language}.md").read_text()
        commands.append(re.findall(r"`sparkrecipes (\w+)", text))
        sections.append(len(re.findall(r"^#+ |^- |^\d\. ", text, re.MULTILINE)))
    assert commands[0] == commands[1]
    assert sections[0] == sections[1]
