"""Checks of this host: is it the machine, can Docker be used, is the place free."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, ok, unknown, warning
from sparkrecipes.schema.findings import Finding
from sparkrecipes.schema.serving import Server

DOCKER_REPAIRS = {
    "missing": "install Docker Engine: sudo apt-get install -y docker.io",
    "not_running": "start it: sudo systemctl start docker",
    "denied": "sudo usermod -aG docker $USER  (then log out and in again, or: newgrp docker)",
    "unknown": "see why: docker info",
}
"""What to do for each state. Source: https://docs.docker.com/engine/install/linux-postinstall/"""

TOOLKIT_REPAIR = (
    "sudo apt-get install -y nvidia-container-toolkit && "
    "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
)
"""Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"""

SECRET_SOURCES = {
    "NGC_API_KEY": "make a key at https://org.ngc.nvidia.com/setup/api-keys, then: ",
    "HF_TOKEN": "make a token at https://huggingface.co/settings/tokens, then: ",
}


def check_platform(facts: CheckFacts) -> Iterator[Finding]:
    """The host must have the platform of the machine that the recipe is meant for."""
    host, machine = facts.host, facts.machine
    if host.platform == machine.platform:
        yield ok("platform", f"this host is {host.platform}, as {facts.machine_name} is")
        return
    yield blocker(
        "platform",
        f"this host is {host.platform}, but {facts.machine_name} is {machine.platform}",
        f"run it there; to see the whole walk here: sparkrecipes rehearse {facts.recipe.id}",
    )


def check_gpu(facts: CheckFacts) -> Iterator[Finding]:
    """A machine with a GPU needs that GPU, and a driver that answers."""
    wanted = facts.machine.gpu
    if wanted is None:
        return
    seen = {gpu.compute_capability: gpu for gpu in facts.host.gpus}
    found = seen.get(wanted.compute_capability)
    if found is not None:
        yield ok("gpu", f"{found.name}, driver {found.driver or 'unknown'}")
    elif not seen:
        yield blocker(
            "gpu",
            f"no GPU answers here; the recipe needs {wanted.name} "
            f"(compute capability {wanted.compute_capability})",
            "nvidia-smi must list it; where it fails, install or reload the NVIDIA driver",
        )
    else:
        names = ", ".join(gpu.name for gpu in facts.host.gpus)
        yield warning(
            "gpu",
            f"this host has {names}; the recipe was made for {wanted.name} "
            f"(compute capability {wanted.compute_capability})",
            "describe this machine in a file and name it: --machine FILE",
        )


def check_docker(facts: CheckFacts) -> Iterator[Finding]:
    """Docker must answer, to us."""
    docker = facts.host.docker
    detail = f": {docker.message}" if docker.message else ""
    repair = DOCKER_REPAIRS.get(docker.state, "")
    match docker.state:
        case "ok":
            yield ok("docker", f"Docker {docker.version or 'of an unknown version'} answers")
        case "missing":
            yield blocker("docker", f"there is no Docker here{detail}", repair)
        case "not_running":
            yield blocker("docker", f"Docker is installed but does not run{detail}", repair)
        case "denied":
            yield blocker("docker", f"Docker does not let this user in{detail}", repair)
        case _:
            yield unknown("docker", f"Docker did not answer{detail}", repair)


def check_gpu_toolkit(facts: CheckFacts) -> Iterator[Finding]:
    """Containers reach a GPU only through the NVIDIA container toolkit (or its CDI files)."""
    docker = facts.host.docker
    if facts.machine.gpu is None or docker.state != "ok":
        return
    if docker.gpu_runtime:
        yield ok("gpu_toolkit", "Docker can give containers the GPU")
    elif docker.gpu_runtime is False:
        yield blocker(
            "gpu_toolkit",
            "Docker cannot give containers the GPU: no NVIDIA runtime and no CDI device "
            "(docker run --gpus would say: could not select device driver)",
            TOOLKIT_REPAIR,
        )
    else:
        yield unknown(
            "gpu_toolkit",
            "whether Docker can give containers the GPU could not be seen",
            "see: docker info --format '{{.Runtimes}}' and nvidia-ctk cdi list",
        )


def check_port(facts: CheckFacts) -> Iterator[Finding]:
    """The port must be free before a load of many minutes, not only after it."""
    port = facts.port
    if facts.port_free is None:
        yield unknown("port", f"whether port {port} is free could not be seen", _who_holds(port))
    elif facts.port_free:
        yield ok("port", f"port {port} is free")
    elif holder := _holder(facts):
        yield blocker(
            "port",
            f"port {port} is taken by our {holder.name} ({holder.recipe_id})",
            f"sparkrecipes stop {holder.recipe_id}, or choose another: --port {_next(port)}",
        )
    else:
        yield blocker(
            "port",
            f"port {port} is taken by something that is not ours",
            f"choose another: --port {_next(port)}; to see who has it: {_who_holds(port)}",
        )


def check_name(facts: CheckFacts) -> Iterator[Finding]:
    """Only one container can have the recipe's name."""
    recipe_id = facts.recipe.id
    if facts.servers is None:
        if facts.host.docker.state == "ok":
            message = "whether a server of this recipe exists could not be seen"
            yield unknown("name", message, "see: sparkrecipes status")
        return
    same = [server for server in facts.servers if server.recipe_id == recipe_id]
    running = next((server for server in same if server in facts.running), None)
    stop = f"sparkrecipes stop {recipe_id}"
    if running:
        where = f" at {running.base_url}" if running.base_url else ""
        yield blocker(
            "name",
            f"{running.name} of this recipe is {running.state} already{where}",
            f"use it, or stop it first: {stop}",
        )
    elif same:
        message = f"a container of ours with this name is left over ({same[0].state})"
        yield warning("name", message, f"remove it: {stop}")
    else:
        yield ok("name", "no other server of this recipe exists")


def check_secrets(facts: CheckFacts) -> Iterator[Finding]:
    """Keys that the engine needs must be set; only their names are ever looked at."""
    for name in facts.engine.secrets:
        if name in facts.env_set:
            yield ok("secrets", f"{name} is set")
        else:
            yield blocker(
                "secrets",
                f"{name} is not set, and {facts.engine.title} does not start without it",
                f"{SECRET_SOURCES.get(name, '')}export {name}=...",
            )


def _holder(facts: CheckFacts) -> Server | None:
    end = f":{facts.port}"
    return next((s for s in facts.running if s.base_url and end == _port_of(s.base_url)), None)


def _port_of(base_url: str) -> str:
    return f":{base_url.rstrip('/').removesuffix('/v1').rpartition(':')[2]}"


def _next(port: int) -> int:
    return port + 1 if port < 65535 else 8000


def _who_holds(port: int) -> str:
    return f"docker ps --filter publish={port}; ss -ltnp 'sport = :{port}'"
