"""sparkrun's own check of what ``command --format sparkrun`` writes; needs Python 3.12."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from sparkrecipes import operations as ops
from sparkrecipes.catalog import open_catalog
from tests.real.conftest import HERE, part
from tests.test_cluster_formats import sparkrun_ids

pytestmark = pytest.mark.real


def answers(folder: Path, files: list[Path]) -> list[dict]:
    """Run ``sparkrun recipe validate`` for each file; it reaches no registry and tells nobody."""
    env = os.environ | {
        "HOME": str(folder),
        "GIT_ALLOW_PROTOCOL": "none",
        "SPARKRUN_NO_TELEMETRY": "1",
    }
    done = subprocess.run(
        [part("clusters.sh", "sparkrun"), str(HERE / "validate_sparkrun.py"), *map(str, files)],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert 0 == done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sparkrun_finds_nothing_wrong(tmp_path: Path) -> None:
    """Every recipe that the format can say, for one and for two nodes: no error, no warning."""
    catalog = open_catalog()
    files = []
    for recipe_id in sparkrun_ids():
        for nodes in (1, 2):
            path = tmp_path / f"{recipe_id}.{nodes}.yaml"
            command = ops.render_command(recipe_id, format="sparkrun", nodes=nodes, catalog=catalog)
            path.write_text(command.shell)
            files.append(path)
    found = answers(tmp_path, files)
    assert len(files) == len(found)
    wrong = [(one["recipe"], one["issues"]) for one in found if one["errors"] or one["warnings"]]
    assert [] == wrong


def test_sparkrun_refuses_what_is_wrong(tmp_path: Path) -> None:
    """Its check is no rubber stamp: the same recipe for an unknown runtime is refused."""
    text = ops.render_command("qwen3-8b-fp8-vllm", format="sparkrun").shell
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace("runtime: vllm-distributed", "runtime: nonsense"))
    assert [False] == [one["valid"] for one in answers(tmp_path, [path])]
