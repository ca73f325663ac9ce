"""Kubernetes' own schemas on what ``command --format kubernetes`` writes."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import yaml

from sparkrecipes import operations as ops
from sparkrecipes.catalog import Catalog, open_catalog
from sparkrecipes.errors import Misuse
from tests.real.conftest import HERE, part

pytestmark = pytest.mark.real

NODES = {"vllm": 64, "nim": 1, "sglang": 1, "atlas": 0}
"""How many nodes each engine is written for."""


def faults(trees: list[dict[str, Any]]) -> str:
    """Check objects with the real schemas, unknown keys included."""
    done = subprocess.run(
        [part("clusters.sh", "kubernetes"), str(HERE / "validate_kubernetes.py")],
        input="".join(json.dumps(tree) + "\n" for tree in trees),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout


def builtin(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an object of Kubernetes' own kinds, or the pods and claims that a set would make."""
    if tree["kind"] != "LeaderWorkerSet":
        return [tree]
    template = tree["spec"]["leaderWorkerTemplate"]
    made = [
        {"apiVersion": "v1", "kind": "Pod", **template[key]}
        for key in ("leaderTemplate", "workerTemplate")
    ]
    claims = template["volumeClaimTemplates"]
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [*made, *({**kind, **claim} for claim in claims)]


def written(recipe_id: str, nodes: int, catalog: Catalog) -> str:
    """Return the objects of a recipe; nothing where its engine is not written for that."""
    if NODES[catalog.recipe(recipe_id).engine] >= nodes:
        command = ops.render_command(recipe_id, format="kubernetes", nodes=nodes, catalog=catalog)
        return command.shell
    with pytest.raises(Misuse):
        ops.render_command(recipe_id, format="kubernetes", nodes=nodes, catalog=catalog)
    return ""


def test_every_recipe_on_one_node_and_on_two() -> None:
    """Service, claim, Deployment, and the pods of a LeaderWorkerSet: valid for Kubernetes 1.37."""
    catalog = open_catalog()
    trees: list[dict[str, Any]] = []
    for recipe_id in catalog.recipes:
        for nodes in (1, 2):
            for tree in yaml.safe_load_all(written(recipe_id, nodes, catalog)):
                trees += builtin(tree)
    assert len(trees) > 100
    assert "" == faults(trees)


def test_the_schemas_refuse_what_is_wrong() -> None:
    """They are no rubber stamp: an unknown key and a wrong type are faults."""
    text = ops.render_command("qwen3-8b-fp8-vllm", format="kubernetes").shell
    trees = [*yaml.safe_load_all(text)]
    trees[0]["spec"]["ports"][0]["port"] = "http"
    trees[2]["spec"]["template"]["spec"]["containers"][0]["argz"] = []
    assert 2 == len(faults(trees).splitlines())


def test_the_pods_of_a_set_are_checked_like_any_other() -> None:
    """A fault in a leader, a worker or a claim of a LeaderWorkerSet is found, each one."""
    text = ops.render_command("qwen3-8b-fp8-vllm", format="kubernetes", nodes=2).shell
    tree = [*yaml.safe_load_all(text)][1]
    template = tree["spec"]["leaderWorkerTemplate"]
    template["leaderTemplate"]["spec"]["containers"][0]["argz"] = []
    template["workerTemplate"]["spec"]["volumes"][0]["emptyDir"]["medium"] = 1
    template["volumeClaimTemplates"][0]["spec"]["accessModes"] = "ReadWriteOnce"
    assert ["Pod", "Pod", "PersistentVolumeClaim"] == [
        line.split()[0] for line in faults(builtin(tree)).splitlines()
    ]
