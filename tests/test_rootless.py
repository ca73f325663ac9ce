"""What a rootless Docker cannot do is seen and said; the engine itself is in tests/real."""

import os
from pathlib import Path

import pytest

from sparkrecipes.machine import read_docker
from sparkrecipes.machine.rootless import can_limit, gpu_without_cgroups
from sparkrecipes.machine.usage import container_bytes, unseen
from sparkrecipes.schema.machine import DockerSeen
from tests.test_checks import check, facts, host, one

ANSWERS = Path(__file__).parent / "data" / "hosts" / "docker"


@pytest.mark.parametrize(
    ("answer", "rootless", "limits"), [("rootless.json", True, False), ("plain.json", None, None)]
)
def test_a_rootless_daemon_is_told(
    answer: str,
    rootless: bool | None,
    limits: bool | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As docker info of a real one says it; an answer without the words is neither yes nor no."""
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\ncat '{ANSWERS / answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    seen, _ = read_docker(tmp_path)
    assert ("ok", rootless, limits) == (seen.state, seen.rootless, seen.limits)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[nvidia-container-cli]\nno-cgroups = true\n", True),
        ("[nvidia-container-cli]\nno-cgroups = false\n", False),
        ("[nvidia-container-cli]\n#no-cgroups = true\n", False),
        (None, False),
    ],
)
def test_the_toolkits_own_file_is_read(text: str | None, told: bool, tmp_path: Path) -> None:
    """A line that is a comment sets nothing, and without a file its default holds."""
    if text is not None:
        (tmp_path / "etc/nvidia-container-runtime").mkdir(parents=True)
        (tmp_path / "etc/nvidia-container-runtime/config.toml").write_text(text)
    assert told == gpu_without_cgroups(tmp_path)


@pytest.mark.parametrize(
    ("runtime", "without", "level", "words"),
    [
        (True, True, "ok", ""),
        (True, False, "warning", "nvidia-container-cli.no-cgroups"),
        (False, True, "blocker", "$HOME/.config/docker/daemon.json"),
    ],
)
def test_the_gpu_of_a_rootless_docker(runtime: bool, without: bool, level: str, words: str) -> None:
    """It needs a runtime of its own daemon, which leaves cgroups alone."""
    docker = DockerSeen(state="ok", gpu_runtime=runtime, rootless=True, gpu_without_cgroups=without)
    found = one(facts(host=host(docker=docker)), "gpu_toolkit")
    assert level == found.level
    assert words in (found.repair or "")


def test_a_docker_that_counts_no_memory_is_warned_of() -> None:
    """And one that does, or does not say, is not."""
    for limits, count in ((False, 1), (True, 0), (None, 0)):
        docker = DockerSeen(state="ok", gpu_runtime=True, limits=limits)
        report = check(facts(host=host(docker=docker)))
        assert count == sum(f.check == "docker_limits" for f in report.findings)


def test_a_port_for_root_alone() -> None:
    """For a rootless Docker it is a no; for another one nobody here can know."""
    for rootless, level in ((True, "blocker"), (False, "unknown")):
        docker = DockerSeen(state="ok", gpu_runtime=True, rootless=rootless)
        found = one(facts(host=host(docker=docker), port=80, port_free=None), "port")
        assert level == found.level


def test_the_rootless_docker_that_answers_is_offered() -> None:
    """Where the one that was asked does not run, or lets nobody in."""
    for state in ("not_running", "denied"):
        docker = DockerSeen(state=state, other_socket="unix:///run/user/1000/docker.sock")
        found = one(facts(host=host(docker=docker)), "docker")
        assert ("blocker", True) == (
            found.level,
            "export DOCKER_HOST=unix:///run/user/1000/docker.sock" in (found.repair or ""),
        )


def test_memory_of_a_rootless_container(tmp_path: Path) -> None:
    """With systemd its group is below the user's; without cgroups the container is named."""
    mine, other = "a" * 64, "b" * 64
    user = os.getuid()
    folder = f"sys/fs/cgroup/user.slice/user-{user}.slice/user@{user}.service/user.slice"
    (tmp_path / folder / f"docker-{mine}.scope").mkdir(parents=True)
    (tmp_path / folder / f"docker-{mine}.scope" / "memory.current").write_text("4096\n")
    assert (4096, None) == (container_bytes(tmp_path, mine), container_bytes(tmp_path, other))
    (note,) = unseen(tmp_path, {mine: "mine", other: "other"})
    assert note.endswith(": other")


def test_without_cgroups_nothing_is_limited_whatever_the_kernel_could() -> None:
    """Some engines say both: that the kernel counts memory, and that they use no cgroups."""
    answers = (
        {"CgroupDriver": "none", "MemoryLimit": True},
        {"CgroupDriver": "systemd", "MemoryLimit": True},
        {},
    )
    assert [False, True, None] == [can_limit(answer) for answer in answers]
