"""Operations on servers as a person or a program calls them: what is asked of Docker, and when."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import containers, operations
from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli.main import main
from sparkrecipes.commands import SETTINGS_LABEL
from sparkrecipes.containers.description import read
from sparkrecipes.errors import Misuse, Refused, SparkRecipesError
from sparkrecipes.machine import host_platform
from sparkrecipes.operations import installation, launching
from sparkrecipes.operations.preflight import Launch
from sparkrecipes.operations.workspace import open_workspace
from sparkrecipes.schema.machine import LiveMemory, MemoryUser
from tests.support.fake_docker import ID, FakeDocker, described

KNOWN = "qwen3-8b-fp8-vllm"
DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """A docker on PATH that answers what a test says."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return FakeDocker(tmp_path)


def error_of(*args: str) -> SparkRecipesError:
    """Call an operation on a server and return its error."""
    calls = {
        "stop": operations.stop,
        "logs": operations.server_logs,
        "wait": operations.wait_until_ready,
        "diagnose": operations.diagnose_server,
    }
    with pytest.raises(SparkRecipesError) as err:
        calls[args[0]](args[1])  # type: ignore[operator]
    return err.value


@pytest.mark.parametrize("word", ["stop", "logs", "wait", "diagnose"])
def test_an_unknown_id_is_misuse_whether_docker_answers_or_not(fake: FakeDocker, word: str) -> None:
    """The id is wrong with Docker up or down: exit 2, and the nearest ids are named."""
    fake.answer("ps", stderr=DOWN, exit_code=1)
    fake.answer("ps")
    fake.answer("container", "inspect", stdout="[]", stderr="No such container: x", exit_code=1)
    for _ in ("down", "up"):
        err = error_of(word, "qwen3-8b-fp8-vlm")
        assert ("unknown_id", 2) == (err.code, err.exit_code)
        assert KNOWN in err.repair


@pytest.mark.parametrize("word", ["stop", "logs", "wait", "diagnose"])
def test_docker_that_does_not_answer_is_unknown(fake: FakeDocker, word: str) -> None:
    """A known id and no daemon: exit 3 for each, and how to start it."""
    fake.answer("ps", stderr=DOWN, exit_code=1)
    err = error_of(word, KNOWN)
    assert ("docker_not_running", 3) == (err.code, err.exit_code)
    assert "systemctl start docker" in err.repair


def test_a_recipe_of_another_catalog_can_be_stopped(fake: FakeDocker) -> None:
    """Its container carries our label, so the id need not be one of this catalog."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout=described(recipe_id="demo"))
    fake.answer("stop")
    fake.answer("rm")
    assert operations.stop("demo").stopped


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan"), float("inf")])
def test_a_deadline_that_cannot_be_is_misuse(deadline: float) -> None:
    """Not 0, not below, not a day: before anything is asked."""
    with pytest.raises(Misuse) as err:
        operations.wait_until_ready(KNOWN, timeout_s=deadline)
    assert "bad_timeout" == err.value.code


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "soon"])
def test_the_command_line_refuses_such_a_deadline(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the option is named."""
    assert 2 == main(["wait", KNOWN, f"--timeout={text}"])
    assert "--timeout" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ({"ExitCode": 137, "OOMKilled": True}, "container_oom"),
        ({"ExitCode": 137, "OOMKilled": False}, "host_oom"),
        ({"Status": "created", "Error": 'could not select device driver "" with capabilities'}, ""),
    ],
    ids=["own limit", "C92: whole host", "C63: never started"],
)
def test_a_container_is_diagnosed_by_how_it_ended(
    fake: FakeDocker, state: dict[str, object], cause: str
) -> None:
    """Whoever kills it writes nothing into its log: Docker's state is read as well."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout=described("exited", State=state))
    fake.answer("logs", stdout="Loading safetensors checkpoint shards: 44% Completed | 4/9\n")
    found = operations.diagnose_server("demo").diagnoses
    assert [cause or "no_gpu_runtime"] == [d.id for d in found]


@pytest.fixture
def this_host(tmp_path: Path) -> Path:
    """A machine file of this host, with a Spark's memory and without a GPU."""
    text = (open_catalog().root / "machines" / "dgx-spark.yaml").read_text()
    machine = tmp_path / "here.yaml"
    lines = text.replace("platform: linux/arm64", f"platform: {host_platform()}").splitlines()
    at = lines.index("gpu:")
    end = next(i for i in range(at + 1, len(lines)) if not lines[i].startswith("  "))
    machine.write_text("\n".join([*lines[:at], "gpu: null", *lines[end:]]) + "\n")
    return machine


def test_launch_runs_exactly_what_command_shows(fake: FakeDocker, this_host: Path) -> None:
    """Item for item, with other settings than measured too."""
    fake.answer("run", stdout=f"{ID}\n")
    fake.answer("container", "inspect", stdout=described(recipe_id=KNOWN))
    asked: dict[str, Any] = {"context_tokens": 4096, "users": 2, "port": 8123, "machine": this_host}
    operations.launch(KNOWN, offline=True, force=True, **asked)
    run = next(call for call in fake.calls if call[0] == "run")
    assert list(operations.render_command(KNOWN, **asked).argv) == ["docker", *run]


def test_a_digest_is_the_only_difference_once_it_is_known(this_host: Path) -> None:
    """By digest the image's name and one label change, and nothing else."""
    space = open_workspace(None, this_host)
    wanted = Launch(space.catalog.recipe(KNOWN))
    digest = "sha256:" + "d" * 64
    shown = set(launching.command_for(space, wanted).argv)
    run = set(launching.command_for(space, wanted, image_digest=digest).argv)
    assert {wanted.recipe.image.reference} == shown - run
    assert [f"org.sparkrecipes.image-digest={digest}", f"vllm/vllm-openai@{digest}"] == sorted(
        run - shown - {"--label"}
    )


def test_the_catalogs_version_changes_with_its_recipes(tmp_path: Path) -> None:
    """Another catalog, or a recipe that was changed, is told apart on what runs."""
    shipped = open_catalog()
    copy = tmp_path / "catalog"
    shutil.copytree(shipped.root, copy)
    assert shipped.version == open_catalog(copy).version
    recipe = copy / "recipes" / f"{KNOWN}.yaml"
    recipe.write_text(recipe.read_text() + "# changed\n")
    assert shipped.version != open_catalog(copy).version


def test_who_is_in_the_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers and GPU processes with their sizes; only ours are offered to be stopped."""
    gib = 2**30
    ours = f"sparkrecipes-{KNOWN}"
    users = (
        MemoryUser(kind="container", name=ours, host_bytes=30 * gib, gpu_bytes=None),
        MemoryUser(kind="container", name="jupyter", host_bytes=8 * gib, gpu_bytes=12 * gib),
        MemoryUser(kind="gpu_process", name="python3", pid=77, host_bytes=None, gpu_bytes=None),
    )
    live = LiveMemory(
        mem_total_bytes=121 * gib,
        mem_available_bytes=60 * gib,
        page_cache_bytes=None,
        swap_total_bytes=None,
        swap_used_bytes=None,
        users=users,
    )
    monkeypatch.setattr("sparkrecipes.machine.live_use", lambda: live)
    err = launching.no_memory_now("big", 100 * gib, 60 * gib)
    assert (
        f"big takes 100.0 GiB, and 60.0 GiB are free; in the way: container {ours} "
        "(30.0 GiB), container jupyter (12.0 GiB), GPU process 77 python3 (an unknown amount)"
    ) == err.message
    assert f"sparkrecipes stop {KNOWN}" in err.repair
    assert "jupyter" not in err.repair


def test_a_launch_that_does_not_fit_now_is_refused_before_docker_runs_it(
    fake: FakeDocker, this_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is read immediately before; nothing is started."""
    total = open_catalog().machine().mem_total_bytes
    monkeypatch.setattr("sparkrecipes.machine.live_memory", lambda: (total, 2**20))
    fake.answer("ps")
    with pytest.raises(Refused) as err:
        operations.launch(KNOWN, offline=True, machine=this_host)
    assert "no_memory_now" == err.value.code
    assert [] == [call for call in fake.calls if call[0] == "run"]


RUN_AND_INTERRUPT = """#!/bin/sh
case "$1" in
run) sleep 0.3; kill -INT $PPID; exec sleep 5 ;;
container) cat {folder}/made.json ;;
*) echo "$@" >>{folder}/asked ;;
esac
"""


@pytest.mark.parametrize(
    ("created", "removed"), [("2999-01-01T00:00:00Z", True), ("2001-01-01T00:00:00Z", False)]
)
def test_an_interrupted_start_leaves_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created: str, removed: bool
) -> None:
    """Docker goes on with a run that Ctrl-C ended; an older container is not ours to end."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "made.json").write_text(described(recipe_id=KNOWN, Created=created))
    program = tmp_path / "docker"
    program.write_text(RUN_AND_INTERRUPT.format(folder=tmp_path))
    program.chmod(0o755)
    command = operations.render_command(KNOWN)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            containers.launch(command, recipe_id=KNOWN)
    finally:
        signal.signal(signal.SIGINT, before)
    asked = tmp_path / "asked"
    assert removed == (asked.exists() and f"rm {ID}" in asked.read_text())


CATALOG = open_catalog()


@pytest.mark.parametrize("recipe_id", [*CATALOG.recipes])
def test_the_command_sets_the_compilers_that_fit_reckons_with(recipe_id: str) -> None:
    """MAX_JOBS of the command is the number behind fit's first start, whatever the settings."""
    peak = operations.estimate_memory(recipe_id, catalog=CATALOG, offline=True).first_start
    expected = {} if peak is None else {"MAX_JOBS": str(peak.max_jobs)}
    for settings in ({}, {"context_tokens": 4096, "users": 1}):
        command = operations.render_command(recipe_id, catalog=CATALOG, **settings)
        assert expected == command.added_env
    assert (peak is None) == (CATALOG.recipe(recipe_id).engine == "atlas")


def test_what_runs_is_compared_with_what_is_asked(this_host: Path) -> None:
    """The same settings, others by default, and others that were asked for: those are refused."""
    space = open_workspace(None, this_host)
    recipe = space.catalog.recipe(KNOWN)
    argv = launching.command_for(space, Launch(recipe)).argv
    label = next(item for item in argv if item.startswith(SETTINGS_LABEL))
    item = json.loads(described(recipe_id=KNOWN))[0]
    item["Config"]["Labels"][SETTINGS_LABEL] = label.partition("=")[2]
    running = read(item).server()
    assert "the same settings" in installation.as_it_runs(space, Launch(recipe), running)
    other = installation.as_it_runs(space, Launch(recipe, port=8001), running)
    assert "with other settings than these" in other
    with pytest.raises(Refused) as err:
        installation.as_it_runs(space, Launch(recipe, users=1), running)
    assert ("runs_otherwise", f"end it first: sparkrecipes stop {KNOWN}") == (
        err.value.code,
        err.value.repair,
    )


def test_a_remedy_names_the_recipe(fake: FakeDocker) -> None:
    """What can be run as it stands, not a word to fill in."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout=described("oom"))
    fake.answer("logs")
    assert "sparkrecipes command demo" in operations.diagnose_server("demo").diagnoses[0].remedy


@pytest.mark.parametrize(
    ("proxy", "warned"),
    [
        ("http://127.0.0.1:3128", True),
        ("localhost:3128", True),
        ("http://proxy.lan:3128", False),
        ("", False),
    ],
)
def test_a_nim_gets_the_proxy_by_name_and_is_told_where_it_cannot_reach_it(
    monkeypatch: pytest.MonkeyPatch, proxy: str, warned: bool
) -> None:
    """It fetches its own weights; vLLM does not, and gets no proxy."""
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    for recipe, gets_it in (("gpt-oss-20b-mxfp4-nim", True), (KNOWN, False)):
        command = operations.render_command(recipe)
        assert gets_it == ("HTTPS_PROXY" in command.argv)
        told = [line for line in command.warnings if line.startswith("HTTPS_PROXY leads to")]
        assert (gets_it and warned) == bool(told)
