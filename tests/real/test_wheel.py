"""The wheel, installed in an empty environment: no checkout, and for reading no network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.conftest import ROOT, CommandLine

pytestmark = pytest.mark.real

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
ALONE = [
    *("unshare", "--map-root-user", "--net", "--mount", "sh", "-c"),
    f'ip link set lo up && mount -t tmpfs none "{ROOT}" && exec "$@"',
    "-",
]
"""Namespaces of its own, that have nothing but loopback and an empty folder for the checkout."""


def run(*argv: str | Path, cwd: Path) -> None:
    """Run a program that must succeed."""
    done = subprocess.run(
        [str(item) for item in argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    assert 0 == done.returncode, done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it, alone, into a new environment far from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    wheel = next(folder.glob("sparkrecipes-*.whl"))
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "install", "-qq")
    run(*pip, "--disable-pip-version-check", wheel, cwd=folder)
    return folder / "venv" / "bin" / "sparkrecipes"


@pytest.fixture
def sparkrecipes(installed: Path, tmp_path: Path) -> CommandLine:
    """The installed command, which can reach nothing but loopback and sees no checkout."""
    cli = CommandLine(tmp_path)
    cli.program = [*ALONE, str(installed)]
    cli.env["PATH"] = f"{os.defpath}:/usr/sbin:/sbin"
    return cli


def test_the_catalog_travels_in_the_wheel(sparkrecipes: CommandLine) -> None:
    """All recipes are there with their published figures, and the pick follows from them."""
    recipes = sparkrecipes("list")["recipes"]
    assert 23 == len(recipes)
    assert 102.3 == next(r for r in recipes if r["id"] == RECIPE)["published"]["single_user_tok_s"]
    assert RECIPE == sparkrecipes("recommend", "agentes")["pick"]["id"]
    assert RECIPE == sparkrecipes("show", RECIPE)["recipe"]["id"]


def test_reading_needs_no_network_and_no_checkout(
    sparkrecipes: CommandLine, tmp_path: Path
) -> None:
    """Size, command, validation, host and diagnosis answer from what was installed."""
    assert "fits" == sparkrecipes("fit", RECIPE)["verdict"]
    too_much = ("llama-3.3-70b-instruct-nvfp4", "--context", "131072", "--users", "4")
    assert "does_not_fit" == sparkrecipes("fit", *too_much, code=1)["verdict"]
    assert ["docker", "run"] == sparkrecipes("command", RECIPE)["argv"][:2]
    assert not sparkrecipes("probe")["is_spark"]
    recipe = tmp_path / "broken.yaml"
    recipe.write_text("title: 1\n")
    assert not sparkrecipes("validate", str(recipe), code=1)["valid"]
    log = tmp_path / "engine.log"
    log.write_text("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n")
    assert sparkrecipes("diagnose", str(log))["diagnoses"]
    assert "unknown_id" == sparkrecipes("show", "nothing", code=2)["error"]["code"]


def test_a_rehearsal_runs_from_the_wheel(sparkrecipes: CommandLine) -> None:
    """The whole walk without a Spark, measured over a socket and marked simulated."""
    report = sparkrecipes("rehearse", "agentes", "--offline", timeout_s=180.0)
    assert (True, True) == (report["ok"], report["simulated"])
    assert (RECIPE, "matches") == (report["recipe_id"], report["report"]["verdict"])
