"""The three formats of the command, each read by the program that it is written for."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkrecipes import commands
from sparkrecipes.catalog import open_catalog
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe, RecipeImage
from sparkrecipes.schema.serving import Command
from tests.real.conftest import CommandLine, docker, free_port, part

pytestmark = pytest.mark.real

CATALOG = open_catalog()
RECIPES = tuple(CATALOG.recipes.values())
PARSE = "import sys, compose_spec; compose_spec.PyCompose.from_yaml(sys.stdin.read())"
ODD = ("--a=50%h", "--b=${HOME} $x", '--c={"k": "\\\\d"}', ";", "'x'", "é ü")
"""Arguments that each of the formats could read as something else."""


@pytest.fixture(scope="module")
def parser() -> str:
    """A Python that has a parser of the Compose Specification."""
    return part("formats.sh", "env")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A weights cache that has the folder of each repository."""
    for recipe in RECIPES:
        for source in (recipe.weights, recipe.drafter):
            if source:
                (tmp_path / f"models--{source.repo.replace('/', '--')}").mkdir(exist_ok=True)
    return tmp_path


def render(
    recipe: Recipe, cache: Path, format: str = "docker", machine: Machine | None = None
) -> Command:
    """Render a shipped recipe as a Spark would run it."""
    return commands.render(
        recipe,
        CATALOG.engine(recipe.engine),
        machine or CATALOG.machine("dgx-spark"),
        format=format,
        weights=None,
        drafter=None,
        cache_root=cache,
        context_tokens=recipe.serving.context_tokens,
        users=recipe.serving.users,
        gpu_memory_utilization=recipe.serving.gpu_memory_utilization,
        catalog_version=CATALOG.version,
        compile_jobs=4,
    )


def run(*argv: str, stdin: str = "", **env: str) -> str:
    """Run a program that must accept what it is given; return its output."""
    done = subprocess.run(
        argv,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME": "/nowhere"} | env,
    )
    assert 0 == done.returncode, f"{argv}: {done.stdout}"
    return done.stdout


def odd(recipe: Recipe) -> Recipe:
    """Give a recipe arguments that could be read as something else."""
    return recipe.model_copy(update={"flags": ODD, "title": "100% odd", "env": {"A": "${B} %h"}})


each = pytest.mark.parametrize(
    "recipe", [*RECIPES, odd(RECIPES[0])], ids=[*(recipe.id for recipe in RECIPES), "odd values"]
)


@each
def test_compose_reads_what_is_written(
    parser: str, cache: Path, tmp_path: Path, recipe: Recipe
) -> None:
    """The specification's parser takes every key, and docker-compose sees the same container."""
    command = render(recipe, cache, "compose")
    run(parser, "-c", PARSE, stdin=command.shell)
    file = tmp_path / "compose.yaml"
    file.write_text(command.shell.replace("      bind:\n        create_host_path: false\n", ""))
    seen = yaml.safe_load(run("docker-compose", "--file", str(file), "config"))
    (service,) = seen["services"].values()
    (image,) = (item for item in command.argv if item == recipe.image.reference)
    given = list(command.argv[command.argv.index(image) + 1 :])
    assert given == [item.replace("$$", "$") for item in service.get("command", [])]
    assert (image, command.container_name, "no") == (
        service["image"],
        service["container_name"],
        service["restart"],
    )
    inside = CATALOG.engine(recipe.engine).container_port
    assert [f"127.0.0.1:8000:{inside}/tcp"] == service["ports"]
    assert recipe.id == service["labels"]["org.sparkrecipes.recipe"]


@each
def test_systemd_takes_the_unit(
    docker_engine: str, parser: str, cache: Path, tmp_path: Path, recipe: Recipe
) -> None:
    """Not a warning from systemd's own reader of units."""
    unit = tmp_path / f"{commands.container_name(recipe.id)}.service"
    unit.write_text(render(recipe, cache, "systemd").shell)
    assert "" == run("systemd-analyze", "verify", "--man=no", str(unit))


@pytest.fixture
def made(tiny_image: str) -> Iterator[list[str]]:
    """Containers that a test makes and never starts; they and their volumes are removed."""
    volumes = docker("volume", "ls", "--quiet").split()
    names: list[str] = []
    yield names
    docker("rm", "--force", *names)
    for volume in set(docker("volume", "ls", "--quiet").split()) - set(volumes):
        docker("volume", "rm", volume)


@each
def test_docker_makes_the_container_that_is_written(
    tiny_image: str, made: list[str], cache: Path, recipe: Recipe
) -> None:
    """The engine itself repeats what it understood: arguments, mounts, port, GPU, log, policy."""
    here = CATALOG.machine("dgx-spark").model_copy(update={"platform": platform_of(tiny_image)})
    recipe = recipe.model_copy(update={"image": RecipeImage(reference=tiny_image)})
    argv = render(recipe, cache, machine=here).argv
    assert ("docker", "run", "--detach") == argv[:3]
    made.append(docker("create", *argv[3:]).splitlines()[-1])
    item = json.loads(docker("container", "inspect", made[0]))[0]
    host, config = item["HostConfig"], item["Config"]
    assert list(argv[argv.index(tiny_image) + 1 :]) == (config["Cmd"] or [])
    assert ("no", "json-file") == (host["RestartPolicy"]["Name"], host["LogConfig"]["Type"])
    assert {"max-size": "50m", "max-file": "3"} == host["LogConfig"]["Config"]
    engine = CATALOG.engine(recipe.engine)
    published = [{"HostIp": "127.0.0.1", "HostPort": "8000"}]
    assert {f"{engine.container_port}/tcp": published} == host["PortBindings"]
    assert [(-1, [["gpu"]])] == [(d["Count"], d["Capabilities"]) for d in host["DeviceRequests"]]
    assert {f"{name}={value}" for name, value in recipe.env.items()} <= set(config["Env"] or [])
    assert (False, "default", "") == (host["Privileged"], host["NetworkMode"], host["PidMode"])
    mounts = host["Mounts"]
    assert all(mount.get("ReadOnly") for mount in mounts if mount["Type"] == "bind")
    volumes = [mount for mount in mounts if mount["Type"] == "volume"]
    assert bool(engine.cache_volume) == bool(volumes)


def platform_of(image: str) -> str:
    """The platform of an image that is here."""
    return docker("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", image)


def test_what_compose_starts_is_ours(
    parser: str, tiny_image: str, tiny_catalog: Path, tmp_path: Path, docker_engine: str
) -> None:
    """A server that was started by its Compose file is found, waited for, shown and stopped."""
    path = tiny_catalog / "recipes" / "tiny-qwen3-bf16-vllm-ngram.yaml"
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    fields["image"]["reference"] = tiny_image
    fields |= {"weights": None, "flags": [], "speculative": None}
    fields["env"] = {"MODEL": fields["served_model_name"]}
    path.write_text(yaml.safe_dump(fields))
    cli = CommandLine(tmp_path, tiny_catalog)
    shown = cli("command", path.stem, "--format", "compose", "--port", str(free_port()))
    file = tmp_path / "compose.yaml"
    file.write_text(shown["shell"])
    run("docker-compose", "--file", str(file), "up", "--detach", DOCKER_HOST=docker_engine)
    try:
        assert [path.stem] == [server["recipe_id"] for server in cli("status")["servers"]]
        assert fields["served_model_name"] == cli("wait", path.stem, "--timeout", "30")["model"]
        assert cli("stop", path.stem)["stopped"]
        assert [] == cli("status")["servers"]
    finally:
        run("docker-compose", "--file", str(file), "down", DOCKER_HOST=docker_engine)
