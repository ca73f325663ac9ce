"""The test catalog with figures so fast that a whole rehearsal takes some seconds."""

import re
import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "catalog"
RECIPE = "tiny-8b-fp8-vllm-mtp"
FIGURES = {
    "single_user_tok_s": "1500.0",
    "four_users_total_tok_s": "3000.0",
    "ttft_ms": "20",
    "load_min": "0.5",
}


def fast_catalog(folder: Path) -> Path:
    """Copy the test catalog, with other published figures and a machine that they fit."""
    catalog = folder / "catalog"
    shutil.copytree(DATA, catalog)
    evidence = catalog / "evidence" / "round.yaml"
    text = evidence.read_text()
    for name, value in FIGURES.items():
        text = re.sub(rf"{name}: .*", f"{name}: {value}", text)
    # Without its caveat this recipe is the pick for agents.
    evidence.write_text(text.partition("    caveats:")[0])
    machine = catalog / "machines" / "box.yaml"
    machine.write_text(machine.read_text().replace("16000000000", "64000000000"))
    return catalog


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of this user is read or written."""
    catalog = fast_catalog(folder)
    return {
        "SPARKRECIPES_CATALOG": str(catalog),
        "SPARKRECIPES_MACHINE": "box",
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_CACHE": str(folder / "hub"),
    }


def use(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Set that environment for this process and what it starts."""
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
