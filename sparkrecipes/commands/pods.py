"""The pods of a recipe: weights fetched first, the engine, its probes, and nothing of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkrecipes.commands.container import ADDED_LABEL, LABEL
from sparkrecipes.commands.warnings import API_KEY
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import WeightsSource

NAME_LABEL = "app.kubernetes.io/name"
LEADER_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"
"""Label that the LeaderWorkerSet controller gives each pod; the leader's is 0.

Source: https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1
"""

FETCH = (
    "import sys; from huggingface_hub import snapshot_download as get; "
    "get(sys.argv[1], revision=sys.argv[2], local_dir=sys.argv[3])"
)
"""Run by the engine's own image before the engine: it holds the Hub's client."""

COMPLETES = (
    "import json, os, sys, urllib.request as u; k = os.environ.get('VLLM_API_KEY'); "
    "b = {'model': sys.argv[2], 'max_tokens': 1, 'messages': [{'role': 'user', 'content': 'Hi'}]}; "
    "h = {'Content-Type': 'application/json', **({'Authorization': 'Bearer ' + k} if k else {})}; "
    "u.urlopen(u.Request(sys.argv[1], json.dumps(b).encode(), h), timeout=55).read()"
)
"""A real completion of one token: /health answers before the first request compiles kernels."""

PROBE_EVERY_S = 10
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What a pod runs, as plain values.

    Attributes:
        name: Name of the objects and of the Secret.
        recipe_id: The recipe.
        engine: How it is served.
        machine: What a node is.
        image: By digest or by tag.
        local_image: Whether it must be on the node already.
        served_model_name: What clients ask for.
        arguments: What the engine is given.
        env: Plain variables.
        added_env: Names of those that are not the recipe's own.
        sources: Repositories to fetch.
        shm_size: Shared memory, e.g. ``16g`` (GiB).
        startup_timeout_s: How long a start may take.
        storage_gib: Size of the volume for the weights.
    """

    name: str
    recipe_id: str
    engine: Engine
    machine: Machine
    image: str
    local_image: bool
    served_model_name: str
    arguments: tuple[str, ...]
    env: dict[str, str]
    added_env: tuple[str, ...]
    sources: tuple[WeightsSource, ...]
    shm_size: str | None
    startup_timeout_s: int
    storage_gib: int


def leader_arguments(arguments: tuple[str, ...], nodes: int) -> tuple[str, ...]:
    """Add what makes one server of several nodes: rank 0 answers.

    The controller puts both variables into each container.

    Source: https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1 and
    https://docs.vllm.ai/en/stable/serving/parallelism_scaling.html
    """
    return (
        *map(literal, arguments),
        f"--tensor-parallel-size={nodes}",
        f"--nnodes={nodes}",
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--master-addr=$(LWS_LEADER_ADDRESS)",
    )


def worker_arguments(arguments: tuple[str, ...], nodes: int) -> tuple[str, ...]:
    """Add the same for the other nodes, which answer nobody."""
    return (*leader_arguments(arguments, nodes), "--headless")


def literal(text: str) -> str:
    """Keep Kubernetes from reading a variable into a value."""
    return text.replace("$(", "$$(")


def pod(
    serving: Serving, arguments: tuple[str, ...], *, leads: bool, own_claim: bool
) -> dict[str, Any]:
    """Describe a pod's template.

    Args:
        serving: What it runs.
        arguments: What its engine is given.
        leads: Whether it answers requests.
        own_claim: Whether its volume is a claim of its own; else the set makes one for each pod.
    """
    written = arguments if arguments is not serving.arguments else map(literal, arguments)
    volumes: list[dict[str, Any]] = [shared_memory(serving)]
    if own_claim:
        claim = {"claimName": serving.name}
        volumes.append({"name": "weights", "persistentVolumeClaim": claim})
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        # Variables of a Service named like the engine would overwrite the engine's own.
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/arch": serving.machine.platform.partition("/")[2]},
        "securityContext": pod_security(serving),
        "initContainers": [fetching(serving, source) for source in serving.sources],
        "containers": [engine_container(serving, list(written), leads=leads)],
        "volumes": volumes,
    }
    if serving.image.startswith("nvcr.io/"):
        spec["imagePullSecrets"] = [{"name": "ngc-pull"}]
    if not serving.sources:
        del spec["initContainers"]
    labels = {NAME_LABEL: serving.name}
    added = {ADDED_LABEL: ",".join(serving.added_env)} if serving.added_env else {}
    return {
        "metadata": {"labels": labels, "annotations": {LABEL: serving.recipe_id, **added}},
        "spec": spec,
    }


def pod_security(serving: Serving) -> dict[str, Any]:
    """Keep the runtime's own system call filter; a cache that the image fills must be writable."""
    kept: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    # NIM runs as the user 1000 and writes its cache.
    return {**kept, "fsGroup": 1000} if serving.engine.cache_volume else kept


def shared_memory(serving: Serving) -> dict[str, Any]:
    """Describe /dev/shm: memory of the node, and never more than the recipe says."""
    size = serving.shm_size
    limit = {"sizeLimit": f"{size[:-1]}{size[-1].upper()}i"} if size else {}
    return {"name": "shm", "emptyDir": {"medium": "Memory", **limit}}


def volume_claim(serving: Serving) -> dict[str, Any]:
    """Ask for a volume that one node writes."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{serving.storage_gib}Gi"}},
    }


def fetching(serving: Serving, source: WeightsSource) -> dict[str, Any]:
    """Describe the container that fetches a repository into the volume before the engine starts."""
    target = f"/weights/{source.repo.replace('/', '--')}"
    return {
        "name": f"fetch-{'weights' if source == serving.sources[0] else 'drafter'}",
        "image": serving.image,
        "imagePullPolicy": "Never" if serving.local_image else "IfNotPresent",
        "command": ["python3", "-c", FETCH, source.repo, source.revision or "main", target],
        "env": [
            {"name": "HF_HUB_DISABLE_TELEMETRY", "value": "1"},
            {"name": "HF_TOKEN", "valueFrom": from_secret(serving, "HF_TOKEN", optional=True)},
        ],
        "volumeMounts": [{"name": "weights", "mountPath": "/weights"}],
        "securityContext": container_security(),
    }


def from_secret(serving: Serving, key: str, *, optional: bool) -> dict[str, Any]:
    """Take a value from the recipe's Secret; it is nowhere in the text."""
    chosen: dict[str, Any] = {"name": serving.name, "key": key}
    return {"secretKeyRef": {**chosen, "optional": True} if optional else chosen}


def is_needed(engine: Engine, name: str) -> bool:
    """Tell whether pods must not start without a variable of the Secret.

    Others in the cluster can reach the Service, so an engine that can ask for a key has to have
    one. A proxy is not everywhere.
    """
    return name in engine.secrets or name == API_KEY


def container_security() -> dict[str, Any]:
    """Give no rights that serving does not need."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def engine_container(serving: Serving, arguments: list[str], *, leads: bool) -> dict[str, Any]:
    """Describe the container of the engine."""
    engine = serving.engine
    plain = [{"name": k, "value": literal(v)} for k, v in sorted(serving.env.items())]
    names = (*engine.secrets, *engine.optional_secrets)
    secrets = [
        {"name": n, "valueFrom": from_secret(serving, n, optional=not is_needed(engine, n))}
        for n in names
    ]
    own_ip = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    fixed = [own_ip] if arguments and "--nnodes" in " ".join(arguments) else []
    gpu = {"limits": {"nvidia.com/gpu": 1}} if serving.machine.gpu else {}
    store = engine.cache_volume or "/weights"
    container: dict[str, Any] = {
        "name": "engine",
        "image": serving.image,
        "imagePullPolicy": "Never" if serving.local_image else "IfNotPresent",
        "args": arguments,
        "env": [*plain, *fixed, *secrets],
        "resources": gpu,
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 (the container's own)
            {"name": "weights", "mountPath": store, "readOnly": engine.cache_volume is None},
        ],
        "securityContext": container_security(),
    }
    if leads:
        container["ports"] = [{"name": "http", "containerPort": engine.container_port}]
        container |= probes(serving)
    return {key: value for key, value in container.items() if value not in ([], {})}


def probes(serving: Serving) -> dict[str, Any]:
    """Ask for a real completion until the first is there, then whether it is well.

    No liveness probe: a restart loads all weights again, and hides why it was needed.
    """
    engine = serving.engine
    url = f"http://127.0.0.1:{engine.container_port}{engine.chat_path}"
    return {
        "startupProbe": {
            "exec": {"command": ["python3", "-c", COMPLETES, url, serving.served_model_name]},
            "periodSeconds": PROBE_EVERY_S,
            "timeoutSeconds": PROBE_TIMEOUT_S,
            "failureThreshold": max(1, -(-serving.startup_timeout_s // PROBE_EVERY_S)),
        },
        "readinessProbe": {
            "httpGet": {"path": engine.health_path, "port": "http"},
            "periodSeconds": PROBE_EVERY_S,
            "timeoutSeconds": 5,
        },
    }
