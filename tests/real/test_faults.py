"""Faults of a whole install on a real Docker Engine: what the user sees, and that nothing is left.

Exit code, code and words of each are those of the table in ``docs/faults.md``. Every test runs
beside a container and a volume of somebody else, with planted secrets.
"""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.real.conftest import TINY_IMAGE, docker, free_port
from tests.real.fault_bench import KEY, NAME, RECIPE, FaultBench, everything, inspected

pytestmark = pytest.mark.real

OTHER = "other-qwen3"


@pytest.fixture
def bench(tiny_image: str, tiny_catalog: Path, tmp_path: Path) -> Iterator[FaultBench]:
    """The command line beside somebody else's things; after the test all of them are as before."""
    stranger = docker("run", "-d", "-v", "/data", tiny_image)
    before = everything()
    bench = FaultBench(tmp_path, tiny_catalog)
    try:
        yield bench
        bench.left_no_secret()
        after = everything()
    finally:
        docker("rm", "--force", "--volumes", stranger)
        docker("rm", "--force", NAME, f"sparkrecipes-{OTHER}", check=False)
    assert before == after
    assert before["containers"]
    assert before["volumes"]


def none_left() -> None:
    """No container has our name."""
    assert "" == docker("ps", "--all", "--quiet", "--filter", f"name=^{NAME}$")


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("exits", "engine ends at once"),
        ("silent", "engine hangs while loading"),
        ("wedged", "engine hangs when asked"),
        ("noise", "engine answers with noise"),
        ("base", "engine refuses to chat"),
        ("locked", "engine wants another key"),
    ],
)
def test_an_engine_that_does_not_get_ready(bench: FaultBench, mode: str, fault: str) -> None:
    """Each has its own name; the container that this install made is removed, its log is kept."""
    bench.write(mode=mode)
    error = bench.fails(fault)
    assert error["message"].startswith("wait: ")
    none_left()
    log = bench.home / "state" / "sparkrecipes" / "installs" / f"{RECIPE}.log"
    assert f"log {log}" in error["message"]
    assert "Starting to load model" in log.read_text()


def test_the_first_error_is_told_and_the_kept_log_is_diagnosed(bench: FaultBench) -> None:
    """The container is gone with its log, so the next command reads the one that was kept."""
    bench.write(mode="exits")
    error = bench.fails("engine ends at once")
    assert "ValueError: no kernel for this GPU" in error["message"]
    command = error["repair"].partition(": sparkrecipes ")[2].split()
    assert "diagnose" == command[0]
    assert "ValueError: no kernel" in bench(*command, code=3)["first_error"]


def test_another_model_answers(bench: FaultBench) -> None:
    """Its name is given."""
    bench.write(env={"MODEL": "other"})
    bench.fails("engine serves another model")
    none_left()


def test_a_port_that_is_taken(bench: FaultBench) -> None:
    """Found before anything is fetched or started."""
    bench.write()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        assert port in bench.fails("port taken", "--port", port)["message"]
    none_left()


def test_a_port_that_is_taken_after_the_check(bench: FaultBench) -> None:
    """Docker finds it: the container that it made and could not start is removed."""
    bench.write()
    port = str(free_port())
    holder = docker("run", "-d", "-p", f"127.0.0.1:{port}:8000", TINY_IMAGE)
    try:
        error = bench.fails("port taken after the check", "--port", port, "--force")
    finally:
        docker("rm", "--force", holder)
    assert error["message"].startswith("launch: ")
    none_left()


def test_another_model_that_is_in_the_way(bench: FaultBench) -> None:
    """It has the port: it is named, and goes on as it was."""
    bench.write()
    bench.write(OTHER)
    port = str(free_port())
    made = bench("launch", OTHER, "--port", port)
    error = bench.fails("port taken by another model", "--port", port)
    assert f"sparkrecipes stop {OTHER}" in error["repair"]
    (running,) = bench("status")["servers"]
    assert made | {"state": "running"} == running
    assert bench("stop", OTHER)["stopped"]


def test_a_name_that_is_taken(bench: FaultBench) -> None:
    """A container of somebody else has it: it is named and left alone, forced or not."""
    bench.write()
    made = docker("run", "-d", "--name", NAME, TINY_IMAGE)
    bench.fails("name taken")
    bench.fails("name taken", "--force")
    assert "true" == docker("inspect", "--format", "{{.State.Running}}", made)
    docker("rm", "--force", made)


def test_a_gpu_that_docker_cannot_give(bench: FaultBench) -> None:
    """Blocked by the check; forced, Docker's own words are explained, and nothing half made."""
    machine = Path(bench.env["SPARKRECIPES_MACHINE"])
    fields = yaml.safe_load(machine.read_text())
    fields["gpu"] = {"name": "GB10", "compute_capability": "12.1", "docker_gpus": "all"}
    machine.write_text(yaml.safe_dump(fields))
    bench.write()
    bench.fails("no NVIDIA toolkit")
    forced = bench.fails("no NVIDIA toolkit, and forced", "--force")
    assert "could not select device driver" in forced["message"]
    none_left()


def test_a_container_that_is_killed_while_loading(bench: FaultBench) -> None:
    """137 and no limit of its own: the host ran out of memory, or somebody killed it."""
    bench.write(mode="silent", startup_timeout_s=60)
    with bench.installing() as install:
        docker("kill", NAME)
        install.fails("container killed while loading")
    none_left()


def go_on() -> None:
    """Let the tiny server do what its mode says, now that it is prepared for it."""
    docker("exec", NAME, "/bin/sh", "-c", ": >/go")


def test_a_container_that_goes_over_its_own_limit(bench: FaultBench) -> None:
    """A real OOM kill: somebody gave it a limit, and the kernel kept to it."""
    bench.write(mode="hungry", startup_timeout_s=60)
    with bench.installing() as install:
        docker("update", "--memory", "24m", "--memory-swap", "24m", NAME)
        go_on()
        install.fails("container over its own memory limit")
    none_left()


def test_a_container_that_docker_starts_again_and_again(bench: FaultBench) -> None:
    """Our policy is "no"; where somebody changed it, the loop is seen and not waited out."""
    bench.write(mode="dies", startup_timeout_s=60)
    with bench.installing() as install:
        assert "no" == inspected(NAME)[0]["HostConfig"]["RestartPolicy"]["Name"]
        docker("update", "--restart", "always", NAME)
        go_on()
        install.fails("crash loop")
    none_left()


def test_a_container_that_somebody_removes(bench: FaultBench) -> None:
    """It is not waited for any longer."""
    bench.write(mode="silent", startup_timeout_s=60)
    with bench.installing() as install:
        docker("rm", "--force", NAME)
        install.fails("container removed while loading")


def test_an_install_that_is_interrupted(bench: FaultBench) -> None:
    """Ctrl-C: exit 130, and the container that it made is removed."""
    bench.write(mode="silent", startup_timeout_s=60)
    with bench.installing() as install:
        install.process.send_signal(signal.SIGINT)
        out, err = install.process.communicate(timeout=60)
    # Python may end by the signal itself, which a shell shows as 130 too.
    assert install.process.returncode in (130, -signal.SIGINT), out + err
    error = json.loads(out)["error"]
    assert "interrupted" == error["code"]
    assert f"removed {NAME}" in error["message"]
    assert f"sparkrecipes install {RECIPE}" in error["message"]
    bench.holds_no_secret(out + err)
    none_left()


def test_a_killed_install_is_gone_on_with(bench: FaultBench) -> None:
    """Its container still loads: the next one waits for it, and removes it where that fails."""
    bench.write(mode="silent", startup_timeout_s=60)
    with bench.installing() as install:
        os.kill(install.process.pid, signal.SIGKILL)
        install.process.wait(10)
    made = inspected(NAME)[0]["Id"]
    bench.write(mode="silent")
    error = bench.fails("engine hangs while loading")
    assert error["message"].startswith("wait: ")
    assert f"rm {made}" in (bench.home / "calls").read_text()
    none_left()


def test_two_installs_at_once(bench: FaultBench) -> None:
    """The second is refused and names the first, which goes on."""
    bench.write(mode="silent", startup_timeout_s=60)
    with bench.installing() as install:
        assert RECIPE in bench.fails("two installs at once")["message"]
        assert install.process.poll() is None
        assert inspected(NAME)[0]["State"]["Running"]


def test_the_key_is_where_the_engine_reads_it_and_nowhere_else(bench: FaultBench) -> None:
    """Passed by name: in the container's environment, not in a label, an argument or a mount."""
    bench.write()
    bench("launch", RECIPE, "--port", str(free_port()))
    (item,) = inspected(NAME)
    assert f"VLLM_API_KEY={KEY}" in item["Config"]["Env"]
    told = " ".join(item["Config"]["Env"])
    assert "HF_TOKEN" not in told
    assert "PROXY" not in told
    bench.left_no_secret()
    assert bench("wait", RECIPE)["base_url"]
    assert bench("stop", RECIPE)["stopped"]


def test_what_is_launched_is_what_command_shows(bench: FaultBench) -> None:
    """The arguments of the one ``docker run`` are those of ``command``, item for item."""
    bench.write(flags=["--a=b c", '--d="e"'])
    port = str(free_port())
    shown = bench("command", RECIPE, "--port", port)["argv"]
    bench("launch", RECIPE, "--port", port)
    runs = [line for line in (bench.home / "calls").read_text().splitlines() if line[:4] == "run "]
    assert [" ".join(shown[1:])] == runs
    (item,) = inspected(NAME)
    assert item["Config"]["Cmd"] == shown[shown.index(TINY_IMAGE) + 1 :]
    assert bench("stop", RECIPE)["stopped"]
