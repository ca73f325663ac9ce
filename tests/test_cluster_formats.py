"""sparkrun's format and Kubernetes objects: what they hold, leave out and refuse."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sparkrecipes import operations as ops
from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli import main
from sparkrecipes.commands.kubernetes import resource_name
from sparkrecipes.commands.pods import COMPLETES, FETCH
from sparkrecipes.errors import Misuse
from sparkrecipes.importing import import_text
from sparkrecipes.schema.recipe import Recipe
from tests.support.hub import Hub, HubRepo
from tests.support.hub_client import environment

CATALOG = open_catalog()
SCHEMA = Path(__file__).parent / "data" / "kubernetes" / "leaderworkerset.schema.json"
LWS = json.loads(SCHEMA.read_text())
DFLASH = "qwen3.6-35b-a3b-nvfp4-vllm-dflash"
NIM = "gpt-oss-20b-mxfp4-nim"
PLUGIN = "nemotron-3.5-lightning-30b-a3b-nvfp4-vllm"


def command(recipe_id: str, format: str, **options: Any) -> Any:
    """Render a recipe of the shipped catalog."""
    return ops.render_command(recipe_id, format=format, catalog=CATALOG, **options)


def objects(recipe_id: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the Kubernetes objects of a recipe by kind."""
    text = command(recipe_id, "kubernetes", **options).shell
    return {tree["kind"]: tree for tree in yaml.safe_load_all(text)}


def sparkrun_ids() -> list[str]:
    """List the recipes that sparkrun's format can say."""
    return [
        recipe.id
        for recipe in CATALOG.recipes.values()
        if recipe.engine == "vllm" and not any("<weights>" in flag for flag in recipe.flags)
    ]


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("recipe_id", sparkrun_ids())
def test_a_recipe_comes_back_from_sparkrun(recipe_id: str, nodes: int) -> None:
    """Recipe -> sparkrun -> import gives the same recipe, field for field."""
    found = import_text(command(recipe_id, "sparkrun", nodes=nodes).shell, CATALOG, name="x.yaml")
    assert ("sparkrun-v2", recipe_id) == (found.format, found.same_as)
    back = {**yaml.safe_load(found.text), "id": recipe_id}
    assert CATALOG.recipe(recipe_id) == Recipe.model_validate_json(json.dumps(back))
    told = {one.what for one in found.not_carried}
    assert (nodes > 1) == (f"--tensor-parallel-size {nodes}" in told)


def test_sparkrun_says_two_nodes_and_stays_safe() -> None:
    """Two nodes unless said; loopback, no privileges, no host IPC; a pin reaches the engine."""
    tree = yaml.safe_load(command(DFLASH, "sparkrun").shell)
    assert (2, 2, 2) == (tree["min_nodes"], tree["max_nodes"], tree["defaults"]["tensor_parallel"])
    assert "127.0.0.1" == tree["defaults"]["host"]
    assert {"privileged": False, "ipc": "private", "shm_size": "64g"} == tree["executor_config"]
    assert "model_revision" not in tree
    opened = yaml.safe_load(command(DFLASH, "sparkrun", bind="0.0.0.0", nodes=3).shell)
    assert ("0.0.0.0", 3) == (opened["defaults"]["host"], opened["min_nodes"])


def test_pins_reach_both_formats(tmp_path: Path) -> None:
    """Digest and commits of a lock: the image by digest, --revision, and the fetched commit."""
    digest, commit, draft = "sha256:" + "d" * 64, "a" * 40, "b" * 40
    path = tmp_path / "mine.yaml"
    path.write_text((CATALOG.root / "recipes" / f"{DFLASH}.yaml").read_text())
    recipe = CATALOG.recipe(DFLASH)
    (tmp_path / "mine.lock.yaml").write_text(
        f'resolved_on: "2026-12-02"\nimage:\n  reference: "{recipe.image.reference}"\n'
        f'  digest: "{digest}"\n  platform: linux/arm64\n'
        f"weights:\n  repo: {recipe.weights.repo}\n  revision: {json.dumps(commit)}\n"
        f"drafter:\n  repo: {recipe.drafter.repo}\n  revision: {json.dumps(draft)}\n"
    )
    tree = yaml.safe_load(command(str(path), "sparkrun").shell)
    assert ("vllm/vllm-openai@" + digest, commit) == (tree["container"], tree["model_revision"])
    assert "--revision {model_revision}" in tree["command"]
    assert draft == json.loads(tree["defaults"]["speculative_config"])["revision"]
    pod = objects(str(path))["Deployment"]["spec"]["template"]["spec"]
    assert [commit, draft] == [one["command"][4] for one in pod["initContainers"]]
    assert {"vllm/vllm-openai@" + digest} == {
        one["image"] for one in (*pod["initContainers"], *pod["containers"])
    }
    assert not [w for w in command(str(path), "kubernetes").warnings if "sparkrecipes pin" in w]


def forbidden(tree: Any) -> list[str]:
    """Find what would open the host, anywhere in an object."""
    bad = ("hostNetwork", "hostIPC", "hostPID", "hostPort", "hostPath", "privileged", "nodePort")
    if isinstance(tree, dict):
        here = [key for key in tree if key in bad]
        return here + [found for value in tree.values() for found in forbidden(value)]
    return [found for value in tree for found in forbidden(value)] if isinstance(tree, list) else []


def test_a_pod_starts_without_a_proxy_and_never_without_its_key() -> None:
    """NIM's proxies are taken where the Secret has them; its key, and vLLM's, have to be there."""
    wanted = {
        NIM: {"NGC_API_KEY": None, "HTTPS_PROXY": True, "HTTP_PROXY": True, "NO_PROXY": True},
        DFLASH: {"VLLM_API_KEY": None},
    }
    for recipe_id, expected in wanted.items():
        (pod,) = pods_of(objects(recipe_id))
        refs = {
            e["name"]: e["valueFrom"]["secretKeyRef"].get("optional")
            for e in pod["containers"][0]["env"]
            if "valueFrom" in e
        }
        assert expected == refs
    told = " ".join(command(NIM, "kubernetes").warnings)
    assert "it reads NGC_API_KEY (and HF_TOKEN, HTTPS_PROXY, HTTP_PROXY, NO_PROXY, if" in told


def test_weights_are_read_only_and_have_room() -> None:
    """The engine cannot change what was fetched; NIM fills its own; the volume holds it all."""
    trees = objects(DFLASH)
    mounts = [
        next(m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "weights")
        for pod in (*pods_of(trees), *pods_of(objects(NIM)))
    ]
    assert [True, False] == [mount["readOnly"] for mount in mounts]
    bounds = ops.estimate_memory(DFLASH, catalog=CATALOG, machine="dgx-spark").bounds
    weights = bounds["weights_bytes"][1] + bounds["drafter_bytes"][1]
    claim = trees["PersistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"]
    assert weights <= int(claim.removesuffix("Gi")) * 2**30 <= 1.2 * weights


@pytest.mark.parametrize(("recipe_id", "nodes"), [(DFLASH, 1), (DFLASH, 2), (NIM, 1), (PLUGIN, 2)])
def test_kubernetes_opens_nothing_and_holds_no_secret(recipe_id: str, nodes: int) -> None:
    """No host access, a Service inside the cluster alone, values of secrets by reference."""
    trees = objects(recipe_id, nodes=nodes)
    assert [] == [found for tree in trees.values() for found in forbidden(tree)]
    assert "ClusterIP" == trees["Service"]["spec"]["type"]
    text = json.dumps(trees)
    assert '"value": ""' not in text
    for pod in pods_of(trees):
        engine = pod["containers"][0]
        secret = {e["name"]: e["valueFrom"] for e in engine["env"] if "valueFrom" in e}
        key = "NGC_API_KEY" if recipe_id == NIM else "VLLM_API_KEY"
        assert {"name": resource_name(recipe_id), "key": key} == secret[key]["secretKeyRef"]
        assert {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}} == engine[
            "securityContext"
        ]
        assert {"nvidia.com/gpu": 1} == engine["resources"]["limits"]
        assert {"kubernetes.io/arch": "arm64"} == pod["nodeSelector"]
        assert (False, False) == (pod["automountServiceAccountToken"], pod["enableServiceLinks"])
        shm = next(v for v in pod["volumes"] if v["name"] == "shm")["emptyDir"]
        size = CATALOG.recipe(recipe_id).shm_size
        assert {"medium": "Memory", "sizeLimit": f"{size[:-1]}Gi"} == shm


def pods_of(trees: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods of a Deployment, or of a set: leader, then worker."""
    if "Deployment" in trees:
        return [trees["Deployment"]["spec"]["template"]["spec"]]
    template = trees["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    return [template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]]


def test_several_nodes_are_one_leader_worker_set() -> None:
    """Its own schema holds; all compute one model, only the leader answers and is served."""
    trees = objects(DFLASH, nodes=2)
    assert ["Service", "LeaderWorkerSet"] == [*trees]
    assert is_valid_set(trees["LeaderWorkerSet"])
    assert 2 == trees["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["size"]
    leader, worker = (pod["containers"][0] for pod in pods_of(trees))
    cluster = [
        "--tensor-parallel-size=2",
        "--nnodes=2",
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--master-addr=$(LWS_LEADER_ADDRESS)",
    ]
    assert cluster == leader["args"][-4:]
    assert [*leader["args"], "--headless"] == worker["args"]
    assert ("ports" in leader, "ports" in worker) == (True, False)
    assert ("startupProbe" in leader, "startupProbe" in worker) == (True, False)
    assert "0" == trees["Service"]["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"]


FORMATS = jsonschema.FormatChecker()


@FORMATS.checks("int32")
def is_int32(value: object) -> bool:
    """Hold whole numbers to 32 bits, as Kubernetes does."""
    return not isinstance(value, int) or -(2**31) <= value < 2**31


def is_valid_set(tree: dict[str, Any]) -> bool:
    """Check a LeaderWorkerSet with its schema."""
    checker: Any = jsonschema.Draft202012Validator(LWS, format_checker=FORMATS)
    return bool(checker.is_valid(tree))


def changed(tree: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a copy with another value at a path."""
    copy: dict[str, Any] = json.loads(json.dumps(tree))
    at: Any = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def own_fields(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Walk the fields of a set; pods' specs are Kubernetes' own, checked in tests/real."""
    if path[:1] not in ((), ("spec",)) or path[-2:-1] in (("leaderTemplate",), ("workerTemplate",)):
        return
    if path:
        yield path, tree
    inside = tree.items() if isinstance(tree, dict) else ()
    for key, value in enumerate(tree) if isinstance(tree, list) else inside:
        yield from own_fields(value, (*path, key))


@pytest.mark.parametrize("nodes", [2, 64])
@pytest.mark.parametrize(
    "recipe_id", [r.id for r in CATALOG.recipes.values() if r.engine == "vllm"]
)
def test_every_set_has_the_fields_of_its_crd(recipe_id: str, nodes: int) -> None:
    """Each recipe that several nodes can serve gives a set that its schema takes."""
    assert is_valid_set(objects(recipe_id, nodes=nodes)["LeaderWorkerSet"])


def test_the_schema_of_the_set_refuses_every_wrong_field() -> None:
    """An unknown key in any object and a wrong type of any field are faults."""
    tree = objects(DFLASH, nodes=2)["LeaderWorkerSet"]
    fields = [*own_fields(tree)]
    assert 15 <= len(fields)
    for path, value in fields:
        wrong: Any = "no list" if isinstance(value, list) else ["no such type"]
        assert not is_valid_set(changed(tree, path, wrong)), path
        if isinstance(value, dict) and path[-1] != "requests":
            assert not is_valid_set(changed(tree, path, {**value, "bogus": 1})), path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "leaderWorkerTemplate", "restartPolicy"), "Always"),
        (("spec", "leaderWorkerTemplate", "size"), "2"),
        (("spec", "leaderWorkerTemplate", "size"), 2**31),
        (("spec", "leaderWorkerTemplate", "subGroupPolicy"), {"subGroupPolicyType": "Leader"}),
        (("spec", "leaderWorkerTemplate"), {"size": 2}),
        (("spec", "startupPolicy"), "Now"),
        (("spec", "replicas"), 1_000_001),
        (("spec", "replicas"), -1),
        (("spec", "networkConfig"), {}),
        (("spec", "networkConfig"), {"subdomainPolicy": "Own"}),
        (("spec", "rolloutStrategy"), {}),
        (("spec", "rolloutStrategy"), {"type": "Recreate"}),
        (("spec",), {}),
        (("metadata", "name"), "qwen3.6"),
        (("apiVersion",), "leaderworkerset.x-k8s.io/v2"),
    ],
)
def test_the_schema_of_the_set_refuses(path: tuple[str, ...], value: Any) -> None:
    """Wrong words, bounds and names, and what is missing, are faults."""
    tree = objects(DFLASH, nodes=2)["LeaderWorkerSet"]
    assert not is_valid_set(changed(tree, path, value))


def test_the_schema_of_the_set_refuses_no_more_than_the_crd() -> None:
    """What a set may say beside what we write: rollouts, subgroups, claims' policy, quantities."""
    tree = objects(DFLASH, nodes=2)["LeaderWorkerSet"]
    rolling = {"maxSurge": 0, "maxUnavailable": "25%", "partition": 0}
    for path, value in {
        ("spec", "networkConfig"): {"subdomainPolicy": "UniquePerReplica"},
        ("spec", "rolloutStrategy"): {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": rolling,
        },
        ("spec", "leaderWorkerTemplate", "restartPolicy"): "RecreateGroupAfterStart",
        ("spec", "leaderWorkerTemplate", "subGroupPolicy"): {"subGroupSize": 1},
        ("spec", "leaderWorkerTemplate", "persistentVolumeClaimRetentionPolicy"): {
            "whenDeleted": "Delete"
        },
        ("spec", "leaderWorkerTemplate", "volumeClaimTemplates"): [
            {"spec": {"resources": {"requests": {"storage": 5}}, "storageClassName": "fast"}}
        ],
    }.items():
        tree = changed(tree, path, value)
        assert is_valid_set(tree), path


def test_the_dual_spark_incident_is_told_for_several_nodes() -> None:
    """What is known not to run on two Sparks comes first; on one node it is not said."""
    for format in ("sparkrun", "kubernetes"):
        many = command(DFLASH, format, nodes=2).warnings
        assert "two Sparks" in many[0]
        assert "Host memory collapsed" in many[0]
        assert any("nobody measured" in warning for warning in many)
        assert not [w for w in command(DFLASH, format, nodes=1).warnings if "collapsed" in w]


@pytest.mark.parametrize(
    ("recipe_id", "options", "code"),
    [
        (DFLASH, {"format": "docker", "nodes": 2}, "one_machine"),
        (DFLASH, {"format": "sparkrun", "nodes": 65}, "misuse"),
        (DFLASH, {"format": "sparkrun", "nodes": 0}, "misuse"),
        (DFLASH, {"format": "kubernetes", "bind": "0.0.0.0"}, "no_host_address"),
        (DFLASH, {"format": "kubernetes", "port": 0}, "bad_port"),
        (NIM, {"format": "sparkrun"}, "format_without_engine"),
        (NIM, {"format": "kubernetes", "nodes": 2}, "format_without_engine"),
        (PLUGIN, {"format": "sparkrun"}, "format_without_folder"),
        ("qwen3.6-35b-a3b-fp8-atlas-mtp", {"format": "kubernetes"}, "format_without_engine"),
        (DFLASH, {"format": "helm"}, "misuse"),
    ],
)
def test_what_a_format_cannot_say_is_refused(
    recipe_id: str, options: dict[str, Any], code: str
) -> None:
    """Each with what to do instead."""
    with pytest.raises(Misuse) as refused:
        command(recipe_id, **options)
    assert code == refused.value.code
    assert refused.value.repair


def test_a_value_is_no_variable_and_no_placeholder(tmp_path: Path) -> None:
    """``$(X)`` is doubled for Kubernetes; braces that sparkrun would fill are refused."""
    text = (CATALOG.root / "recipes" / "qwen3-8b-fp8-vllm.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("flags:\n", 'flags:\n  - "--chat-template=$(X){{ y }}"\n'))
    args = objects(str(path))["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--chat-template=$$(X){{ y }}" in args
    with pytest.raises(Misuse, match="placeholder"):
        command(str(path), "sparkrun")


def test_names_are_dns_labels() -> None:
    """A recipe's id may hold dots and be long; a name of Kubernetes may not."""
    assert "sparkrecipes-qwen3-6-35b-a3b" == resource_name("qwen3.6-35b-a3b")
    assert len(resource_name("a" * 100)) <= 50
    assert "sparkrecipes-a" == resource_name("a" + "." * 60)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The text on stdout, warnings on stderr; JSON has what starts it as argv."""
    assert 0 == main(["command", DFLASH, "--format", "kubernetes", "--nodes", "2"])
    shown = capsys.readouterr()
    assert shown.out.startswith("apiVersion: v1\n")
    assert "LeaderWorkerSet controller" in shown.err.replace("\n", " ")
    assert 0 == main(["command", DFLASH, "--format", "sparkrun", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert ("sparkrun", ["sparkrun", "run"]) == (answer["format"], answer["argv"][:2])


class Endpoint(BaseHTTPRequestHandler):
    """Answers a chat completion to who shows the key."""

    asked: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        """Answer."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        ok = self.headers.get("Authorization") == "Bearer k" and self.path.endswith("completions")
        self.send_response(200 if ok else 401)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def test_the_probe_asks_for_a_real_completion() -> None:
    """The command of the startup probe, run: 0 with the key, else not."""
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"

    def probe(**env: str) -> int:
        asked = [sys.executable, "-c", COMPLETES, url, "tiny"]
        return subprocess.run(asked, env=env, capture_output=True, timeout=30).returncode

    try:
        assert (0, 1, 1) == (probe(VLLM_API_KEY="k"), probe(VLLM_API_KEY="no"), probe())
    finally:
        server.shutdown()
        server.server_close()
    assert {"model": "tiny", "max_tokens": 1} == {
        key: Endpoint.asked[0][key] for key in ("model", "max_tokens")
    }


def test_the_first_container_fetches_with_the_real_client(tmp_path: Path) -> None:
    """The command of the fetching container, run against the small hub: the files lie there."""
    files = {"config.json": b"{}", "model.safetensors": b"1" * 4000}
    with Hub({"acme/tiny": HubRepo(files)}) as hub:
        target = tmp_path / "acme--tiny"
        asked = [sys.executable, "-c", FETCH, "acme/tiny", "main", str(target)]
        done = subprocess.run(
            asked, env=environment(hub.url, tmp_path), capture_output=True, text=True, timeout=60
        )
    assert 0 == done.returncode, done.stderr
    assert files == {name: (target / name).read_bytes() for name in files}
