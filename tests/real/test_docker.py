"""Containers on a real Docker Engine: ours are started and stopped, all others survive."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import commands, containers
from sparkrecipes.catalog import open_catalog
from sparkrecipes.errors import LaunchFailed, NotReady, Refused
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Command
from tests.real.conftest import docker, free_port

pytestmark = pytest.mark.real

RECIPE_ID = "docker-test"
NAME = f"sparkrecipes-{RECIPE_ID}"
STRANGER = "somebody-elses-server"
VOLUME = "somebody-elses-volume"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The catalog's engine file of vLLM, which the tiny server plays."""
    return open_catalog().engine("vllm")


@pytest.fixture(scope="module")
def stranger(tiny_image: str) -> Iterator[str]:
    """A container and a volume that are not ours, and must outlive every test."""
    volume = docker("volume", "create", VOLUME)
    made = docker("run", "-d", "--name", STRANGER, "-v", f"{volume}:/data", tiny_image)
    yield made
    docker("rm", "--force", STRANGER)
    docker("volume", "rm", volume)


def everything() -> dict[str, Any]:
    """Return what the engine holds: each container with its state, and the volumes."""
    ids = docker("ps", "--all", "--quiet").split()
    seen = json.loads(docker("container", "inspect", *ids)) if ids else []
    states = {c["Id"]: (c["Name"], c["State"]["Status"], c["RestartCount"]) for c in seen}
    return {"containers": states, "volumes": docker("volume", "ls", "--quiet").split()}


@pytest.fixture(autouse=True)
def bystanders(stranger: str) -> Iterator[None]:
    """After each test all that was there before is there, unrestarted, and nothing of ours."""
    before = everything()
    yield
    containers.stop(RECIPE_ID)
    assert before == everything()
    assert stranger in before["containers"]
    assert VOLUME in before["volumes"]


def recipe(image: str, **env: str) -> Recipe:
    """Return a recipe that the tiny server serves."""
    return Recipe.model_validate(
        {
            "id": RECIPE_ID,
            "title": "A tiny server",
            "model": "none",
            "quant": None,
            "weights": None,
            "image": {
                "reference": image,
                "local_build": {"how": "run tests/real", "source": "tests/real/conftest.py"},
            },
            "engine": "vllm",
            "engine_version": None,
            "served_model_name": "tiny",
            "serving": {
                "context_tokens": 1024,
                "users": 4,
                "kv_cache_dtype": "auto",
                "gpu_memory_utilization": None,
            },
            "env": env,
            "startup_timeout_s": 30,
            "capabilities": ("text",),
            "sources": ("tests/real/test_docker.py",),
        }
    )


def machine(gpu: bool = False) -> Machine:
    """Return this kind of machine, with or without a GPU."""
    spark = open_catalog().machine("dgx-spark")
    changes: dict[str, Any] = {"platform": "linux/amd64"} | ({} if gpu else {"gpu": None})
    return spark.model_copy(update=changes)


def command(wanted: Recipe, engine: Engine, port: int, *, gpu: bool = False) -> Command:
    """Render the recipe's command as the product does."""
    return commands.render(
        wanted,
        engine,
        machine(gpu),
        port=port,
        weights=None,
        drafter=None,
        cache_root=Path("/nowhere"),
        context_tokens=1024,
        users=4,
        gpu_memory_utilization=None,
        catalog_version="test",
    )


@pytest.fixture
def start(tiny_image: str, engine: Engine) -> Callable[..., tuple[Recipe, Command]]:
    """Return a function that renders a recipe of the tiny server."""

    def rendered(port: int | None = None, *, gpu: bool = False, **env: str) -> Any:
        wanted = recipe(tiny_image, **env)
        return wanted, command(wanted, engine, port or free_port(), gpu=gpu)

    return rendered


def test_a_server_is_started_found_shown_and_stopped(start: Any, engine: Engine) -> None:
    """The whole life of a container of ours, with the argv that the product renders."""
    wanted, rendered = start()
    server = containers.launch(rendered, recipe_id=RECIPE_ID)
    assert (NAME, RECIPE_ID, rendered.base_url) == (
        server.name,
        server.recipe_id,
        server.base_url,
    )
    said: list[str] = []
    ready = containers.wait_until_ready(server, wanted, engine, progress=said.append)
    assert "tiny" == ready.model
    assert ["started, reading the weights", "loading weights", "answering requests"] == said
    assert [NAME] == [found.name for found in containers.list_servers().servers]
    assert "Application startup complete." == containers.logs(RECIPE_ID).lines[-1]
    before = containers.restart_token(NAME)
    docker("restart", "--time", "5", NAME)
    assert before != containers.restart_token(NAME)
    assert containers.stop(RECIPE_ID).stopped
    assert containers.find_server(RECIPE_ID) is None


def test_a_container_has_our_label_and_listens_on_loopback(start: Any) -> None:
    """The label says which recipe it is; the port is not open to the network."""
    _, rendered = start()
    containers.launch(rendered, recipe_id=RECIPE_ID)
    seen = json.loads(docker("container", "inspect", NAME))[0]
    assert RECIPE_ID == seen["Config"]["Labels"][commands.LABEL]
    assert ["127.0.0.1"] == [b["HostIp"] for b in seen["HostConfig"]["PortBindings"]["8000/tcp"]]
    assert not seen["HostConfig"]["Privileged"]
    assert "host" not in (seen["HostConfig"]["NetworkMode"], seen["HostConfig"]["IpcMode"])


def test_stopping_twice_stops_once(start: Any) -> None:
    """The second stop finds nothing and is no error."""
    _, rendered = start()
    containers.launch(rendered, recipe_id=RECIPE_ID)
    stopped = [containers.stop(RECIPE_ID).stopped for _ in range(2)]
    assert [True, False] == stopped


@pytest.mark.parametrize("name", [STRANGER, "not-the-name"])
def test_a_strangers_container_is_not_stopped_or_shown(name: str) -> None:
    """A container without our label is refused by its name, and is no server of ours."""
    if name == STRANGER:
        with pytest.raises(Refused):
            containers.stop(name)
        with pytest.raises(Refused):
            containers.logs(name)
    else:
        assert not containers.stop(name).stopped
    assert () == containers.list_servers().servers


def test_a_strangers_container_with_our_name_is_left_alone(start: Any, tiny_image: str) -> None:
    """The name that we would take is taken: launch and stop say so, and it still runs."""
    made = docker("run", "-d", "--name", NAME, tiny_image)
    try:
        with pytest.raises(LaunchFailed) as err:
            containers.launch(start()[1], recipe_id=RECIPE_ID)
        assert "name_in_use" == err.value.code
        assert "not ours" in err.value.message
        with pytest.raises(Refused):
            containers.stop(RECIPE_ID)
        assert "running" == docker("inspect", "--format", "{{.State.Status}}", made)
    finally:
        docker("rm", "--force", made)


def test_an_ended_container_of_ours_is_replaced(start: Any) -> None:
    """What ended keeps its log until the next start takes its name."""
    _, rendered = start(MODE="exits")
    first = containers.launch(rendered, recipe_id=RECIPE_ID)
    docker("wait", NAME)
    second = containers.launch(start()[1], recipe_id=RECIPE_ID)
    assert first.container_id != second.container_id
    assert "running" == second.state


def test_a_running_server_is_not_started_twice(start: Any) -> None:
    """The name says that it is ours and runs; it goes on running."""
    first = containers.launch(start()[1], recipe_id=RECIPE_ID)
    with pytest.raises(LaunchFailed) as err:
        containers.launch(start()[1], recipe_id=RECIPE_ID)
    assert "of ours" in err.value.message
    found = containers.find_server(RECIPE_ID)
    assert found is not None
    assert (first.container_id, "running") == (found.container_id, found.state)


def test_a_gpu_that_docker_cannot_reach_is_named(start: Any) -> None:
    """--gpus all without the NVIDIA toolkit: the repair, and no half-made container."""
    with pytest.raises(LaunchFailed) as err:
        containers.launch(start(gpu=True)[1], recipe_id=RECIPE_ID)
    assert "no_gpu_runtime" == err.value.code
    assert "nvidia-ctk runtime configure" in err.value.repair
    assert containers.find_server(RECIPE_ID) is None


def test_a_port_of_another_container_is_named(start: Any, tiny_image: str) -> None:
    """The other container is named and goes on; ours leaves nothing behind."""
    port = free_port()
    other = docker("run", "-d", "--name", "port-holder", "-p", f"127.0.0.1:{port}:8000", tiny_image)
    try:
        with pytest.raises(LaunchFailed) as err:
            containers.launch(start(port)[1], recipe_id=RECIPE_ID)
        assert "port_in_use" == err.value.code
        assert "port-holder" in err.value.message
        assert containers.find_server(RECIPE_ID) is None
        assert "running" == docker("inspect", "--format", "{{.State.Status}}", other)
    finally:
        docker("rm", "--force", other)


def test_a_port_of_a_host_process_is_named(start: Any) -> None:
    """A process of this host holds the port: another repair than for a container."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(LaunchFailed) as err:
            containers.launch(start(holder.getsockname()[1])[1], recipe_id=RECIPE_ID)
    assert "port_in_use_host" == err.value.code
    assert "ss -ltnp" in err.value.repair


def test_an_image_that_is_not_here_is_named(engine: Engine) -> None:
    """A local build that this host does not have is not looked for in a registry."""
    wanted = recipe("sparkrecipes-ci/not-built:1")
    with pytest.raises(LaunchFailed) as err:
        containers.launch(command(wanted, engine, free_port()), recipe_id=RECIPE_ID)
    assert "image_not_here" == err.value.code


def test_an_engine_that_exits_is_known_at_once(start: Any, engine: Engine) -> None:
    """No deadline is waited for; the log is there above the wall of tracebacks, without secrets."""
    wanted, rendered = start(MODE="exits")
    server = containers.launch(rendered, recipe_id=RECIPE_ID)
    with pytest.raises(NotReady) as err:
        containers.wait_until_ready(server, wanted, engine, timeout_s=60.0)
    assert "exited" == err.value.code
    assert "exit code 3" in err.value.message
    assert 200 == len(err.value.log_tail)
    assert "no kernel for this GPU" in err.value.log_tail[-2]
    assert "hf_abc" not in err.value.log_tail[-2]


def test_a_container_that_is_killed_while_loading_is_known(start: Any, engine: Engine) -> None:
    """Exit code 137 without OOMKilled is read as the host running out of memory."""
    wanted, rendered = start(MODE="silent")
    server = containers.launch(rendered, recipe_id=RECIPE_ID)
    docker("kill", NAME)
    with pytest.raises(NotReady) as err:
        containers.wait_until_ready(server, wanted, engine, timeout_s=60.0)
    assert "host_oom" == err.value.code


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"MODE": "wedged"}, "wedged"),
        ({"MODEL": "other"}, "wrong_model"),
        ({"MODE": "silent"}, "not_ready"),
    ],
    ids=["wedged", "wrong model", "silent"],
)
def test_a_server_that_never_gets_ready_is_told_apart(
    start: Any, engine: Engine, env: dict[str, str], code: str
) -> None:
    """Healthy without completions, another model, and no answer at all have their own names."""
    wanted, rendered = start(**env)
    server = containers.launch(rendered, recipe_id=RECIPE_ID)
    with pytest.raises(NotReady) as err:
        containers.wait_until_ready(server, wanted, engine, timeout_s=3.0)
    assert code == err.value.code


def test_a_load_is_ended_before_the_host_freezes(start: Any, engine: Engine) -> None:
    """C92: the container goes on loading, and the host's own memory falls below the floor."""
    wanted, rendered = start(MODE="silent")
    server = containers.launch(rendered, recipe_id=RECIPE_ID)
    with pytest.raises(NotReady) as err:
        containers.wait_until_ready(server, wanted, engine, timeout_s=30, floor_bytes=2**60)
    assert "memory_low" == err.value.code
    assert "the host may freeze" in err.value.message
    assert f"sparkrecipes stop {RECIPE_ID}" in err.value.repair
