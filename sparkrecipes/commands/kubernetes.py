"""A recipe as Kubernetes objects: a Deployment on one node, a LeaderWorkerSet on several.

Existing parts only: the engine's own image, NVIDIA's device plugin, and for several nodes the
LeaderWorkerSet controller. No host network, host IPC, host port, host path or privileges; tokens
come from a Secret; the Service is reachable inside the cluster alone.

Source: https://kubernetes.io/docs/reference/kubernetes-api/ and
https://github.com/kubernetes-sigs/lws (its API and docs/examples/vllm)
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from sparkrecipes.commands.arguments import engine_arguments
from sparkrecipes.commands.pods import (
    LEADER_LABEL,
    NAME_LABEL,
    Serving,
    leader_arguments,
    pod,
    volume_claim,
    worker_arguments,
)
from sparkrecipes.commands.weights import Placed
from sparkrecipes.errors import Misuse
from sparkrecipes.schema.recipe import WeightsSource

if TYPE_CHECKING:
    from sparkrecipes.commands.cluster import ClusterRequest

NOTES = {
    "lws": (
        "the cluster needs the LeaderWorkerSet controller, 0.8 or newer "
        "(https://lws.sigs.k8s.io), and every node fetches the weights into a volume of its own"
    ),
    "nvcr": (
        "nvcr.io wants a login: kubectl create secret docker-registry ngc-pull "
        "--docker-server=nvcr.io --docker-username='$oauthtoken' (it asks for the key)"
    ),
}
DOWNLOAD_WAIT_S = 4 * 3600
"""How long the first download may take before a rollout counts as stuck: 100 GB at 60 Mbit/s."""

SLACK = 1.1
"""Room of the volume beyond the weights' own size."""

UNKNOWN_GIB = 200
"""Storage that is asked for where the weights' size is not known; a warning says so."""

WITH_PYTHON = ("vllm", "nim", "sglang")
"""Engines whose images hold Python and, where they do not fetch by themselves, the Hub's client."""

MAX_NAME = 50
"""Pods of a set are named after it with a number behind; a name has at most 63 signs."""


def kubernetes_text(request: ClusterRequest) -> str:
    """Write the objects as one file of several documents.

    Raises:
        Misuse: An address, or several nodes with an engine that cannot share a model over them.
    """
    import yaml

    refuse_what_it_cannot(request)
    serving = serving_of(request)
    objects = [service(serving, request), *workload(serving, request)]
    text: str = yaml.safe_dump_all(objects, sort_keys=False, width=2**20, allow_unicode=True)
    return text


def resource_name(recipe_id: str) -> str:
    """Name the objects: a DNS label, whatever a recipe's id holds."""
    name = re.sub(r"[^a-z0-9]+", "-", f"sparkrecipes-{recipe_id}".lower())
    return name[:MAX_NAME].strip("-")


def refuse_what_it_cannot(request: ClusterRequest) -> None:
    """Refuse what these objects do not do.

    Raises:
        Misuse: With what to do instead.
    """
    if request.bind not in ("127.0.0.1", "::1"):
        raise Misuse(
            "a Service has no address of the host to listen on",
            code="no_host_address",
            repair="leave --bind out, and open the Service with an Ingress that has TLS and a key",
        )
    if request.engine.id not in WITH_PYTHON:
        raise Misuse(
            f"the image of {request.engine.title} holds no Python, by which the pods fetch weights "
            "and ask for a completion",
            code="format_without_engine",
            repair="use --format docker or compose",
        )
    if request.nodes > 1 and request.engine.id != "vllm":
        raise Misuse(
            f"{request.engine.title} is not written for several nodes here",
            code="format_without_engine",
            repair="use --nodes 1, or a vLLM recipe of that model: sparkrecipes list --all",
        )


def serving_of(request: ClusterRequest) -> Serving:
    """Gather what the pods run."""
    recipe, engine = request.recipe, request.engine
    target, draft = folder(recipe.weights), folder(recipe.drafter)
    arguments = engine_arguments(recipe, engine, target, draft, request.settings)
    env = dict(recipe.env)
    if engine.arguments_env:
        env[engine.arguments_env], arguments = shlex.join(arguments), ()
    room = request.weights_bytes
    gib = UNKNOWN_GIB if room is None else max(1, -(-int(room * SLACK) // 2**30))
    return Serving(
        name=resource_name(recipe.id),
        recipe_id=recipe.id,
        engine=engine,
        machine=request.machine,
        image=request.image,
        local_image=recipe.image.local_build is not None,
        served_model_name=recipe.served_model_name,
        arguments=arguments,
        env=env | request.added_env,
        added_env=tuple(request.added_env),
        sources=tuple(source for source in (recipe.weights, recipe.drafter) if source),
        shm_size=recipe.shm_size,
        startup_timeout_s=recipe.startup_timeout_s,
        storage_gib=gib,
    )


def folder(source: WeightsSource | None) -> Placed | None:
    """Say where a repository lies inside: in one folder, whatever its commit is."""
    if source is None:
        return None
    return Placed(
        repo=source.repo,
        path=f"/weights/{source.repo.replace('/', '--')}",
        revision=source.revision or "main",
        pinned=source.revision is not None,
        cached=True,
        mounts=(),
    )


def metadata(serving: Serving) -> dict[str, Any]:
    """Name and label an object."""
    labels = {NAME_LABEL: serving.name, "app.kubernetes.io/managed-by": "sparkrecipes"}
    return {"name": serving.name, "labels": labels}


def service(serving: Serving, request: ClusterRequest) -> dict[str, Any]:
    """Describe the Service: inside the cluster alone, and only the pod that answers."""
    leads = {LEADER_LABEL: "0"} if request.nodes > 1 else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(serving),
        "spec": {
            "type": "ClusterIP",
            "selector": {NAME_LABEL: serving.name, **leads},
            "ports": [{"name": "http", "port": request.port, "targetPort": "http"}],
        },
    }


def workload(serving: Serving, request: ClusterRequest) -> list[dict[str, Any]]:
    """Describe what runs: a Deployment with its volume, or a LeaderWorkerSet."""
    if request.nodes > 1:
        return [leader_worker_set(serving, request.nodes)]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(serving),
        "spec": volume_claim(serving),
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(serving),
        "spec": {
            "replicas": 1,
            # Two pods at once would want the same GPU.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": serving.startup_timeout_s + DOWNLOAD_WAIT_S,
            "selector": {"matchLabels": {NAME_LABEL: serving.name}},
            "template": pod(serving, serving.arguments, leads=True, own_claim=True),
        },
    }
    return [claim, deployment]


def leader_worker_set(serving: Serving, nodes: int) -> dict[str, Any]:
    """Describe a set whose first pod answers and whose others compute with it."""
    leader = leader_arguments(serving.arguments, nodes)
    workers = worker_arguments(serving.arguments, nodes)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata(serving),
        "spec": {
            "replicas": 1,
            # All pods have to find each other to load: workers do not wait for the leader.
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": nodes,
                # One node that is lost takes the model with it: all begin anew together.
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": pod(serving, leader, leads=True, own_claim=False),
                "workerTemplate": pod(serving, workers, leads=False, own_claim=False),
                "volumeClaimTemplates": [
                    {"metadata": {"name": "weights"}, "spec": volume_claim(serving)}
                ],
            },
        },
    }
