"""The Docker command line: a list of arguments in, an answer out, every failure named."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkrecipes import machine as hosts
from sparkrecipes.containers.secrecy import without_secrets

TIMEOUT_S = 30.0
"""For what the engine answers from its own state."""

LONGEST_REASON = 400
"""Characters of Docker's own words that are shown."""


@dataclass(frozen=True)
class Answer:
    """What a command answered.

    Attributes:
        exit_code: As a shell sees it: 127 where there is no such program, 124 after a time-out.
        stdout: Its output, with stderr merged in where that was asked for.
        stderr: Its errors and progress.
    """

    exit_code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether the command did what was asked."""
        return self.exit_code == 0


@dataclass(frozen=True)
class Failure:
    """A known way to fail.

    Attributes:
        code: A stable word for programs.
        pattern: Regular expression found in Docker's own words.
        cause: What it means; may name ``{image}``, ``{port}``, ``{name}`` and ``{recipe}``.
        repair: The next command; may name the same and ``{next_port}``.
    """

    code: str
    pattern: str
    cause: str
    repair: str


FAILURES = (
    Failure(
        "docker_missing",
        r"docker: command not found",
        "Docker is not installed here, or is not on PATH",
        "install Docker Engine, then run: sparkrecipes probe",
    ),
    Failure(
        "docker_not_running",
        r"(?i)cannot connect to the docker daemon|is the docker daemon running|"
        r"error during connect|failed to connect to the docker api",
        "the Docker daemon does not answer",
        "{start_docker}",
    ),
    Failure(
        "docker_denied",
        r"(?i)permission denied while trying to connect",
        "this user may not use Docker",
        "{use_rootless}run: sudo usermod -aG docker $USER, then log in again",
    ),
    Failure(
        "docker_timeout",
        r"timed out after [\d.]+ s",
        "Docker did not answer in time",
        "is it busy, or still pulling an image? see: docker info",
    ),
    Failure(
        "cdi_spec_missing",
        r"(?i)unresolvable CDI devices|failed to inject CDI devices|CDI device injection failed",
        "Docker finds no description (CDI) of the GPU; it is missing or older than the driver",
        "run: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, "
        "and look with: nvidia-ctk cdi list",
    ),
    Failure(
        "no_gpu_runtime",
        r'could not select device driver "(nvidia|cdi)?" with capabilities|'
        r"(?i:unknown (or invalid )?runtime (name|specified):? ?nvidia)",
        "Docker cannot reach the GPU: the NVIDIA Container Toolkit is missing or not set up",
        "install nvidia-container-toolkit, then run: sudo nvidia-ctk runtime configure "
        "--runtime=docker && sudo systemctl restart docker",
    ),
    Failure(
        "gpu_cgroups",
        r"nvidia-container-cli\S*: mount error: .*(devices\.allow|device rules|BPF_CGROUP)",
        "the NVIDIA runtime may not give the GPU by cgroups, as in a rootless Docker",
        "run: sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
    ),
    Failure(
        "privileged_port",
        r"cannot expose privileged port",
        "port {port} is for root alone, and so a rootless Docker may not publish it",
        "choose one above 1023: --port 8000",
    ),
    Failure(
        "port_in_use",
        r"port is already allocated",
        "port {port} is published by another container",
        "see which: docker ps --filter publish={port}, or start with: --port {next_port}",
    ),
    Failure(
        "port_in_use_host",
        r"bind: address already in use",
        "port {port} is held by a process of this host, not by a container",
        "see which: ss -ltnp 'sport = :{port}', or start with: --port {next_port}",
    ),
    Failure(
        "name_in_use",
        r'[Cc]ontainer name "/?[^"]+" is already in use',
        "a container already has the name {name}",
        "see: docker ps --all --filter name={name}",
    ),
    Failure(
        "wrong_architecture",
        r"no matching manifest for \S+|does not match the specified platform",
        "the image {image} has no build for this machine's platform",
        "see its platforms: sparkrecipes image {image}",
    ),
    Failure(
        "rate_limited",
        r"(?i)toomanyrequests|too many requests|pull rate limit",
        "the registry limits how often {image} may be pulled, and the limit is reached",
        "run: docker login (a signed-in user may pull more), or try again later",
    ),
    Failure(
        "pull_denied",
        r"pull access denied|: (unauthorized|denied)\b|authentication required|"
        r"no basic auth credentials|insufficient_scope",
        "the registry refuses {image}: it is private, misspelt or needs a login; it does not say "
        "which",
        "check the name with: sparkrecipes image {image}, then: docker login",
    ),
    Failure(
        "image_not_here",
        r"[Nn]o such image",
        "this host does not have the image, and no registry has it to pull",
        "see how to build or get it: sparkrecipes show {recipe}",
    ),
    Failure(
        "image_missing",
        r"manifest unknown|name unknown|: not found",
        "the registry has no image {image}",
        "check the tag with: sparkrecipes image {image}",
    ),
    Failure(
        "no_network",
        r"no such host|connection refused|i/o timeout|TLS handshake timeout|"
        r"network is unreachable|Client\.Timeout exceeded|context deadline exceeded",
        "the image {image} is not on this host and its registry cannot be reached",
        "check the network, then run: docker pull {image}{daemon_proxy}",
    ),
    Failure(
        "no_space",
        r"no space left on device",
        "Docker's disk is full",
        "see what fills it: docker system df",
    ),
    Failure(
        "exec_format",
        r"exec format error",
        "the image was built for another architecture",
        "see its platforms: sparkrecipes check {recipe}",
    ),
    Failure(
        "mount_missing",
        r"bind source path does not exist|invalid mount config",
        "a folder that the container needs is not there",
        "run: sparkrecipes download {recipe}",
    ),
    Failure(
        "bad_entrypoint",
        r"executable file not found in \$PATH",
        "the image does not hold the program that it should start",
        "check the recipe's image and engine: sparkrecipes show {recipe}",
    ),
)
"""What the docker command says when it fails, most specific first.

Source: recorded from docker 28.2 against engine 20.10, and NVIDIA/nvidia-docker#1034,
NVIDIA/nvidia-container-toolkit#1537 and #1487, moby/moby#38729, docker/docs#13140,
ollama/ollama#7540.
"""

UNREACHABLE = frozenset(("docker_missing", "docker_not_running", "docker_denied"))
"""Failures in which Docker was not asked at all, so that nothing is known: neither yes nor no."""

UNKNOWN_FAILURE = Failure(
    "docker_failed", "", "Docker did not do what was asked", "see: docker info"
)

PULLED = re.compile(r"^Unable to find image '([^']+)' locally$", re.MULTILINE)
"""How Docker names the image that it then tries to pull."""

NOT_A_REASON = re.compile(
    r"^\s*$|^(Run|See) 'docker .*--help'|^Unable to find image .* locally$|"
    r": (Pulling|Waiting|Downloading|Extracting|Verifying|Download complete|Pull complete)"
)
"""Lines of stderr that do not say what went wrong."""


ADDRESS = re.compile(r"(?:unix|tcp|ssh|https?)://[^\s,'\"]*[^\s,'\".]")
SYSTEM_SOCKETS = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")


class Words(dict[str, str]):
    """Values for a text's braces; what is not known stays a word."""

    def __missing__(self, key: str) -> str:
        """Name what is not known."""
        return f"the {key.replace('_', ' ')}"


@dataclass(frozen=True)
class Explained:
    """A failure in words.

    Attributes:
        code: A stable word for programs.
        message: What it means, and what Docker said.
        repair: The next command.
    """

    code: str
    message: str
    repair: str


def run(argv: Sequence[str], *, timeout_s: float = TIMEOUT_S, merge_stderr: bool = False) -> Answer:
    """Run one command without a shell and without standard input.

    Args:
        argv: The program and its arguments.
        timeout_s: After this it is ended.
        merge_stderr: Whether stderr goes into ``stdout``, in the order of writing.

    Returns:
        Its answer; a program that is not there or does not end is an answer too.
    """
    try:
        with subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except BaseException:  # Ctrl-C as well: nothing that was started goes on
                process.kill()
                process.wait()
                raise
    except (FileNotFoundError, PermissionError):
        return Answer(127, "", f"{argv[0]}: command not found")
    except subprocess.TimeoutExpired:
        return Answer(124, "", f"{' '.join(argv[:2])}: timed out after {timeout_s:g} s")
    said = (stdout.decode(errors="replace"), (stderr or b"").decode(errors="replace"))
    return Answer(process.returncode, *said)


def docker(*args: str, timeout_s: float = TIMEOUT_S, merge_stderr: bool = False) -> Answer:
    """Run ``docker`` with these arguments."""
    return run(("docker", *args), timeout_s=timeout_s, merge_stderr=merge_stderr)


def explain(answer: Answer, words: Mapping[str, str] | None = None) -> Explained:
    """Say what a failed command means and what to do.

    Args:
        answer: What it answered.
        words: Values for the braces of causes and repairs: port, next_port, name, recipe.
    """
    pulled = PULLED.search(answer.stderr)
    failure = next((f for f in FAILURES if re.search(f.pattern, answer.stderr)), UNKNOWN_FAILURE)
    found = {
        "start_docker": start_docker(answer.stderr),
        "use_rootless": use_rootless(),
        "daemon_proxy": daemon_proxy(),
    }
    known = Words({**({"image": pulled[1]} if pulled else {}), **found, **(words or {})})
    reason = reason_of(answer)
    cause = failure.cause.format_map(known)
    return Explained(
        failure.code,
        f"{cause} (docker says: {reason})" if reason else cause,
        failure.repair.format_map(known),
    )


def start_docker(said: str) -> str:
    """Say how to get an answer from the Docker that was asked, which need not be the system's."""
    asked = ADDRESS.search(said)
    if os.environ.get("DOCKER_HOST"):
        return "DOCKER_HOST says where Docker is: mend it, or unset it for this host's own Docker"
    if asked and asked[0] not in SYSTEM_SOCKETS:
        return (
            "it was asked where your docker context says; see: docker context ls, and for a "
            "rootless Docker: systemctl --user start docker"
        )
    return f"{use_rootless()}run: sudo systemctl start docker"


def use_rootless() -> str:
    """Offer the rootless Docker of this user, where it answers and was not asked."""
    socket = None if os.environ.get("DOCKER_HOST") else hosts.rootless_socket()
    return f"use your rootless Docker: export DOCKER_HOST=unix://{socket}, or " if socket else ""


def daemon_proxy() -> str:
    """Say that the daemon does not read this shell's proxy, where the shell has one."""
    if not any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy")):
        return ""
    return (
        " (Docker's daemon does not read HTTPS_PROXY of this shell: "
        "https://docs.docker.com/engine/daemon/proxy/)"
    )


def reason_of(answer: Answer) -> str:
    """Return Docker's own reason in one line, without secrets."""
    lines = [line for line in answer.stderr.splitlines() if not NOT_A_REASON.search(line)]
    if not lines:
        return ""
    reason = without_secrets(lines[-1].strip())
    for prefix in ("docker: ", "Error response from daemon: "):
        reason = reason.removeprefix(prefix)
    return reason[:LONGEST_REASON]
