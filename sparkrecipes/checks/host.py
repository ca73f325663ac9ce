"""Checks of this host: is it the machine, does its driver serve the image, can Docker be used."""

from __future__ import annotations

from collections.abc import Iterator

from sparkrecipes.checks.facts import CheckFacts, blocker, ok, unknown, warning
from sparkrecipes.schema.findings import Finding

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

ROOTLESS_TOOLKIT_REPAIR = (
    "sudo apt-get install -y nvidia-container-toolkit && nvidia-ctk runtime configure "
    "--runtime=docker --config=$HOME/.config/docker/daemon.json && systemctl --user restart docker"
    " && sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place"
)
"""Source: the same page, "Rootless mode"."""

NO_CGROUPS_REPAIR = (
    "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place  (for all engines of "
    "this host)"
)

CDI_REPAIR = (
    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then look: nvidia-ctk cdi list"
)
"""Source: https://github.com/NVIDIA/nvidia-container-toolkit/issues/1537"""

CUDA_REPAIR = (
    "update DGX OS, which brings the driver: sudo apt-get update && sudo apt-get dist-upgrade; or "
    "take an image that was built with an older CUDA"
)

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


def check_cuda(facts: CheckFacts) -> Iterator[Finding]:
    """The driver must serve the CUDA that the image was built with.

    Within one major release an older driver serves most of a newer CUDA; an image that brings a
    compatibility library for it can fail all the same (errors 803 and 804), and some engines then
    go on without the GPU.

    Source: https://docs.nvidia.com/deploy/cuda-compatibility/ and
    https://github.com/noonghunna/club-3090/issues/633
    """
    if facts.machine.gpu is None or not facts.host.gpus:
        return
    built = facts.image.cuda_version if facts.image else None
    built = facts.local_image_cuda or built
    served = facts.host.cuda_version
    if served is None:
        message = "which CUDA the driver serves could not be seen"
        yield unknown("cuda", message, "see the first lines of: nvidia-smi")
    elif built is None:
        yield unknown(
            "cuda",
            f"the driver serves CUDA {served}; which one the image was built with is not known",
            f"see its environment (CUDA_VERSION): docker image inspect "
            f"{facts.recipe.image.reference}",
        )
    elif _release(built) <= _release(served):
        yield ok("cuda", f"the driver serves CUDA {served}; the image was built with {built}")
    else:
        same = _release(built)[0] == _release(served)[0]
        make = warning if same else blocker
        but = ": it may fail with CUDA error 803 or 804, or run without the GPU" if same else ""
        message = f"the image was built with CUDA {built}, and the driver serves {served} only{but}"
        yield make("cuda", message, CUDA_REPAIR)


def check_docker(facts: CheckFacts) -> Iterator[Finding]:
    """Docker must answer, to us."""
    docker = facts.host.docker
    detail = f": {docker.message}" if docker.message else ""
    repair = DOCKER_REPAIRS.get(docker.state, "")
    if docker.other_socket:
        repair = f"your rootless Docker answers: export DOCKER_HOST={docker.other_socket}"
    match docker.state:
        case "ok":
            rootless = ", rootless: its daemon is this user's own" if docker.rootless else ""
            version = docker.version or "of an unknown version"
            yield ok("docker", f"Docker {version} answers{rootless}")
        case "missing":
            yield blocker("docker", f"there is no Docker here{detail}", repair)
        case "not_running":
            yield blocker("docker", f"Docker is installed but does not run{detail}", repair)
        case "denied":
            yield blocker("docker", f"Docker does not let this user in{detail}", repair)
        case _:
            yield unknown("docker", f"Docker did not answer{detail}", repair)


def check_docker_limits(facts: CheckFacts) -> Iterator[Finding]:
    """Without cgroups nobody knows what a container holds; no recipe sets a limit of its own."""
    if facts.host.docker.limits is False:
        yield warning(
            "docker_limits",
            "this Docker neither counts nor limits the memory of containers (no cgroups): what "
            "each holds is not shown; while a model loads, the host's own memory is watched",
            "a rootless Docker needs cgroup version 2 and systemd for it: "
            "https://docs.docker.com/engine/security/rootless/tips/",
        )


def check_gpu_toolkit(facts: CheckFacts) -> Iterator[Finding]:
    """Containers reach a GPU only through the NVIDIA container toolkit (or its CDI files)."""
    docker = facts.host.docker
    if facts.machine.gpu is None or docker.state != "ok":
        return
    driver = next((gpu.driver for gpu in facts.host.gpus if gpu.driver), None)
    if docker.gpu_runtime and docker.cdi_driver and driver and docker.cdi_driver != driver:
        yield warning(
            "gpu_toolkit",
            f"the GPU's description for containers (CDI) is of driver {docker.cdi_driver}, and "
            f"{driver} runs: a start may say: unresolvable CDI devices",
            CDI_REPAIR,
        )
    elif docker.gpu_runtime and docker.rootless and not docker.gpu_without_cgroups:
        yield warning(
            "gpu_toolkit",
            "rootless Docker may not give devices by cgroups, and the NVIDIA runtime is not told "
            "to leave them alone: a start may say: nvidia-container-cli: mount error",
            NO_CGROUPS_REPAIR,
        )
    elif docker.gpu_runtime:
        yield ok("gpu_toolkit", "Docker can give containers the GPU")
    elif docker.gpu_runtime is False:
        yield blocker(
            "gpu_toolkit",
            "Docker cannot give containers the GPU: no NVIDIA runtime and no CDI device "
            "(docker run --gpus would say: could not select device driver)",
            ROOTLESS_TOOLKIT_REPAIR if docker.rootless else TOOLKIT_REPAIR,
        )
    else:
        yield unknown(
            "gpu_toolkit",
            "whether Docker can give containers the GPU could not be seen",
            "see: docker info --format '{{.Runtimes}}' and nvidia-ctk cdi list",
        )


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


def _release(version: str) -> tuple[int, int]:
    """Return major and minor of a version; what comes behind them does not count."""
    major, minor = (*version.split("."), "0")[:2]
    return int(major), int(minor)
