"""The host as it is: memory, GPU, Docker and disks, from saved hosts and recorded commands."""

import os
import platform
import shlex
import time
from pathlib import Path

import pytest

from sparkrecipes.machine import (
    disk_space,
    host_is_spark,
    host_platform,
    live_memory,
    live_use,
    parse_gpus,
    read_docker,
    read_host,
    reading,
    weights_folder,
)
from sparkrecipes.schema.machine import HostReport

HOSTS = Path(__file__).parent / "data" / "hosts"
GIB = 2**30


def install(folder: Path, name: str, script: str) -> None:
    """Put a command on a PATH of its own."""
    folder.mkdir(exist_ok=True)
    command = folder / name
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a PATH that holds nothing but what a test installs (and the shell's own tools)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("cat", "sleep"):
        (folder / tool).symlink_to(
            next(p for p in (Path("/bin"), Path("/usr/bin")) if (p / tool).exists()) / tool
        )
    monkeypatch.setenv("PATH", str(folder))
    return folder


def prints(file: str, code: int = 0) -> str:
    """Write a script that prints a recorded answer, and what was on stderr beside it."""
    errors = (HOSTS / file).with_suffix(".err")
    also = f"cat {shlex.quote(str(errors))} >&2; " if errors.exists() else ""
    return f"cat {shlex.quote(str(HOSTS / file))}; {also}exit {code}"


def test_a_dgx_spark_is_read_as_it_is(commands: Path) -> None:
    """C122: unknown GPU memory never makes it small: its memory is MemTotal, 121.69 GiB."""
    install(commands, "nvidia-smi", prints("nvidia-smi/gb10.csv"))
    install(commands, "docker", prints("docker/ok.json"))
    report = read_host("dgx-spark", root=HOSTS / "dgx-spark")
    assert report.is_spark
    assert report.mem_total_bytes == 127_600_748 * 1024
    assert 121.69 == round(report.mem_total_bytes / GIB, 2)
    assert report.mem_available_bytes == 112_503_684 * 1024
    assert report.swap_total_bytes == report.swap_free_bytes == 16_777_212 * 1024
    assert "6.17.0-1014-nvidia" == report.kernel
    assert ("NVIDIA GB10", "12.1", None) == (
        report.gpus[0].name,
        report.gpus[0].compute_capability,
        report.gpus[0].memory_total_bytes,
    )
    assert ("ok", "29.1.3", True) == (
        report.docker.state,
        report.docker.version,
        report.docker.gpu_runtime,
    )
    assert "dgx-spark" == report.machine
    assert () == report.warnings


def test_not_a_number_is_accepted_and_the_gpu_stays() -> None:
    """C36: [N/A], N/A and Not Supported are no figures; the row is never dropped."""
    (gpu,) = parse_gpus((HOSTS / "nvidia-smi/c36.csv").read_text())
    assert ("NVIDIA GB10", None) == (gpu.name, gpu.memory_total_bytes)
    for word in ("[N/A]", "N/A", "Not Supported", "[Not Supported]", "[Unknown Error]", ""):
        (gpu,) = parse_gpus(
            f"name, driver_version, memory.total [MiB]\nNVIDIA GB10, {word}, {word}"
        )
        assert (None, None) == (gpu.driver, gpu.memory_total_bytes)


def test_a_gpu_with_memory_of_its_own_states_it() -> None:
    """81559 MiB are bytes of 2^20."""
    (gpu,) = parse_gpus((HOSTS / "nvidia-smi/h100.csv").read_text())
    assert 81559 * 2**20 == gpu.memory_total_bytes


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "No devices were found", "name\n", "a,b\n,,,\n", "name\n\0\n", '"'],
    ids=repr,
)
def test_anything_that_nvidia_smi_prints_is_survived(text: str) -> None:
    """No devices, no rows, broken rows: no exception."""
    assert all(gpu.name for gpu in parse_gpus(text))


def test_the_live_budget_is_memavailable() -> None:
    """C30: 52.0 GiB, though CUDA said 2.77 at that instant."""
    assert (127_600_748 * 1024, 52 * GIB) == live_memory(HOSTS / "c30")


def test_free_memory_is_not_what_can_be_had() -> None:
    """C31: 56.33 GiB can be had of 119.56, though only 26.5 are free."""
    live = live_memory(HOSTS / "c31")
    assert live is not None
    assert (119.56, 56.33) == tuple(round(side / GIB, 2) for side in live)


def test_total_memory_is_read_and_never_assumed() -> None:
    """C35: 121.69 GiB on one GB10, 119.68 on another."""
    totals = [live_memory(HOSTS / host) for host in ("dgx-spark", "oem-gb10")]
    assert [121.69, 119.68] == [round(t[0] / GIB, 2) for t in totals if t]


def test_a_host_without_meminfo_has_no_live_memory(tmp_path: Path) -> None:
    """Nothing stated is nothing known, not zero."""
    assert live_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: lots\nMemAvailable\n\xff")
    assert live_memory(tmp_path) is None
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1024 kB\n")
    assert live_memory(tmp_path) is None


@pytest.mark.parametrize("host", ["dgx-spark", "oem-gb10"])
def test_a_spark_names_itself(host: str, commands: Path) -> None:
    """By its firmware, or by the system of another maker's box; no driver needs to answer."""
    assert host_is_spark(HOSTS / host)


def test_a_spark_is_known_by_its_gpu(commands: Path, tmp_path: Path) -> None:
    """A box that names itself nowhere has a GB10; another GPU makes no Spark."""
    assert not host_is_spark(tmp_path)
    install(commands, "nvidia-smi", prints("nvidia-smi/gb10.csv"))
    assert host_is_spark(tmp_path)
    assert read_host("dgx-spark", root=tmp_path).is_spark
    install(commands, "nvidia-smi", prints("nvidia-smi/h100.csv"))
    assert not host_is_spark(tmp_path)


def test_a_host_that_is_no_spark_is_told_so(commands: Path, tmp_path: Path) -> None:
    """An empty host: no memory, no GPU, no Docker, and still a whole report."""
    report = read_host("dgx-spark", root=tmp_path)
    assert not report.is_spark
    assert (None, None, ()) == (report.mem_total_bytes, report.mem_available_bytes, report.gpus)
    assert "missing" == report.docker.state
    assert any("not a DGX Spark" in line for line in report.warnings)
    assert any("does not state its available memory" in line for line in report.warnings)
    assert report == HostReport.model_validate_json(report.model_dump_json())


def test_a_spark_whose_driver_is_silent_is_warned_of(commands: Path) -> None:
    """The host names itself, and nvidia-smi is missing or fails."""
    install(commands, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    report = read_host("dgx-spark", root=HOSTS / "dgx-spark")
    assert () == report.gpus
    assert any("nvidia-smi names no GPU" in line for line in report.warnings)


def test_swapped_out_memory_is_warned_of(commands: Path, tmp_path: Path) -> None:
    """Three GiB in swap on a Spark: memory is or was short."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/dgx-release").write_text('DGX_NAME="DGX Spark"')
    (tmp_path / "proc/meminfo").write_text("SwapTotal: 16777216 kB\nSwapFree: 13631488 kB\n")
    report = read_host("dgx-spark", root=tmp_path)
    assert any("3.0 GiB are swapped out" in line for line in report.warnings)


@pytest.mark.parametrize(
    ("answer", "code", "state", "gpu"),
    [
        ("ok.json", 0, "ok", True),
        ("cdi.json", 0, "ok", True),
        ("plain.json", 0, "ok", False),
        ("stopped.json", 1, "not_running", None),
        ("denied.json", 1, "denied", None),
    ],
)
def test_the_state_of_docker(
    answer: str, code: int, state: str, gpu: bool | None, commands: Path, tmp_path: Path
) -> None:
    """A daemon with a GPU runtime, with CDI devices, with neither; none; and no right to ask."""
    install(commands, "docker", prints(f"docker/{answer}", code))
    seen, folder = read_docker(tmp_path)
    assert (state, gpu) == (seen.state, seen.gpu_runtime)
    assert (state == "ok") == (seen.message == "")
    assert Path("/var/lib/docker") == folder


def test_a_cdi_file_gives_containers_the_gpu(commands: Path, tmp_path: Path) -> None:
    """A daemon that lists no device finds it in /etc/cdi."""
    install(commands, "docker", prints("docker/plain.json"))
    (tmp_path / "etc/cdi").mkdir(parents=True)
    (tmp_path / "etc/cdi/nvidia.yaml").write_text("cdiVersion: 0.6.0\n")
    assert read_docker(tmp_path)[0].gpu_runtime


def test_an_old_docker_says_it_on_stderr(commands: Path, tmp_path: Path) -> None:
    """Nothing on stdout, and the reason beside it."""
    install(commands, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert "not_running" == read_docker(tmp_path)[0].state


def test_a_command_that_hangs_is_left_behind(
    commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither Docker nor the driver can hold the report up; the answer is unknown, not fine."""
    monkeypatch.setattr(reading, "COMMAND_TIMEOUT_S", 0.2)
    install(commands, "docker", "exec sleep 30")
    install(commands, "nvidia-smi", "exec sleep 30")
    start = time.monotonic()
    report = read_host("dgx-spark", root=tmp_path)
    assert time.monotonic() - start < 5
    assert ("unknown", ()) == (report.docker.state, report.gpus)


def test_disks_are_those_that_are_written_to(commands: Path, tmp_path: Path) -> None:
    """Weights, images and our own data; a folder not there yet is measured by its parent."""
    report = read_host("dgx-spark", root=tmp_path)
    assert ["weights", "docker", "data"] == [disk.what for disk in report.disks]
    space = disk_space("weights", tmp_path / "not" / "there" / "yet")
    assert space.free_bytes is not None
    assert space.total_bytes is not None
    assert 0 < space.free_bytes <= space.total_bytes
    assert str(tmp_path / "not" / "there" / "yet") == space.path


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HF_HUB_CACHE": "/data/hub", "HF_HOME": "/data/hf"}, "/data/hub"),
        ({"HF_HOME": "/data/hf"}, "/data/hf/hub"),
        ({"HOME": "/home/someone"}, "/home/someone/.cache/huggingface/hub"),
    ],
)
def test_the_weights_folder_is_that_of_the_hubs_own_client(
    env: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HF_HUB_CACHE, else HF_HOME/hub, else the cache of the user."""
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert Path(expected) == weights_folder()


@pytest.mark.parametrize(
    ("machine_name", "expected"),
    [
        ("x86_64", "amd64"),
        ("AMD64", "amd64"),
        ("aarch64", "arm64"),
        ("arm64", "arm64"),
        ("riscv64", "riscv64"),
    ],
)
def test_platforms_are_named_as_registries_do(
    machine_name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aarch64 is arm64, x86_64 is amd64, others as they are."""
    monkeypatch.setattr(platform, "machine", lambda: machine_name)
    assert f"{platform.system().lower()}/{expected}" == host_platform()


def test_this_very_host_is_read() -> None:
    """On whatever runs the tests: a report, no exception, and its own memory."""
    report = read_host("dgx-spark")
    assert host_platform() == report.platform
    assert (os.cpu_count() or 1) == report.cpu_count
    assert report.is_spark == host_is_spark()


CONTAINER = "ab12" * 16
OTHER = "cd34" * 16


def saved_host(root: Path) -> Path:
    """Save a host in use: meminfo, one GPU process in a container, and cgroups of two."""
    files = {
        "proc/meminfo": (
            "MemTotal: 127600748 kB\nMemFree: 4000000 kB\nMemAvailable: 54525952 kB\n"
            "Buffers: 100 kB\nCached: 50000000 kB\nShmem: 1000000 kB\n"
            "SwapTotal: 16777212 kB\nSwapFree: 12582908 kB\n"
        ),
        "proc/4711/cgroup": f"0::/system.slice/docker-{CONTAINER}.scope\n",
        "proc/815/cgroup": "0::/user.slice/session.scope\n",
        f"sys/fs/cgroup/system.slice/docker-{CONTAINER}.scope/memory.current": "5368709120\n",
        f"sys/fs/cgroup/system.slice/docker-{CONTAINER}.scope/memory.stat": (
            "anon 1073741824\ninactive_file 3221225472\n"
        ),
        f"sys/fs/cgroup/memory/docker/{OTHER}/memory.usage_in_bytes": "1000\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_who_holds_the_memory_is_read(commands: Path, tmp_path: Path) -> None:
    """Containers with the GPU processes in them, processes outside, page cache and swap."""
    install(
        commands,
        "nvidia-smi",
        "echo '4711, VLLM::EngineCore, 51200 MiB'; echo '815, python3, [N/A]'",
    )
    install(commands, "docker", f"echo '{CONTAINER} other-vllm'; echo '{OTHER} tiny'")
    found = live_use(saved_host(tmp_path / "host"))
    assert found is not None
    assert 54_525_952 * 1024 == found.mem_available_bytes
    assert (50_000_000 + 100 - 1_000_000) * 1024 == found.page_cache_bytes
    assert (16_777_212 - 12_582_908) * 1024 == found.swap_used_bytes
    assert [
        ("container", "other-vllm", None, 2 * GIB, 50 * GIB),
        ("gpu_process", "python3", 815, None, None),
    ] == [(u.kind, u.name, u.pid, u.host_bytes, u.gpu_bytes) for u in found.users]
    assert () == found.notes


def test_what_could_not_be_asked_is_said(commands: Path, tmp_path: Path) -> None:
    """Docker and a driver that fail leave notes, never an error; without either there are none."""
    host = saved_host(tmp_path / "host")
    alone = live_use(host)
    assert alone is not None
    assert ((), ()) == (alone.users, alone.notes)
    install(commands, "nvidia-smi", "exit 9")
    install(commands, "docker", "exit 1")
    silent = live_use(host)
    assert silent is not None
    assert 2 == len(silent.notes)


def test_a_container_that_docker_does_not_name_keeps_its_id(commands: Path, tmp_path: Path) -> None:
    """A GPU process in a container of which Docker says nothing: the id stands for its name."""
    install(commands, "nvidia-smi", "echo '4711, VLLM::EngineCore, 51200 MiB'")
    found = live_use(saved_host(tmp_path / "host"))
    assert found is not None
    assert [(CONTAINER[:12], 50 * GIB)] == [(u.name, u.gpu_bytes) for u in found.users]


def test_a_host_that_states_no_memory_has_no_live_use(tmp_path: Path) -> None:
    """No /proc/meminfo: unknown, not zero."""
    assert live_use(tmp_path) is None
