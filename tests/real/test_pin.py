"""Pins with real parts: docker-registry, skopeo, the Hub's own client, and a Docker Engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import CommandLine, docker, free_port, part
from tests.support.hub import Hub, HubRepo
from tests.support.registry import docker_registry

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
REPO = "sparkrecipes-ci/tiny-qwen3"
NAME = f"sparkrecipes-{RECIPE}"
FIRST, SECOND = "a" * 40, "b" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"1" * 4000}


@pytest.fixture
def registry(docker_engine: str, tmp_path: Path) -> Iterator[str]:
    """A registry that Docker pushes to and pulls from."""
    part("registry.sh")
    with docker_registry(tmp_path / "registry") as address:
        yield address


def push(image: str, address: str, word: str) -> str:
    """Push another image under the same tag with Docker itself; return the digest that it has."""
    name = f"{address}/eng/img:1.0"
    docker("build", "-q", "-t", name, "-", stdin=f"FROM {image}\nLABEL w={word}\n".encode())
    pushed = docker("push", name)
    docker("image", "rm", "--force", name)
    return "sha256:" + pushed.rpartition("digest: sha256:")[2].split()[0]


def test_a_pinned_install_runs_the_pinned_image_after_the_tag_moved(
    registry: str, tiny_image: str, tiny_catalog: Path, tmp_path: Path
) -> None:
    """Pin, move tag and branch, see both told with their values, and launch what was pinned."""
    recipe = tiny_catalog / "recipes" / f"{RECIPE}.yaml"
    lines = recipe.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("image:"))
    end = next(at for at in range(start + 1, len(lines)) if not lines[at].startswith(" "))
    lines[start:end] = ["image:", f"  reference: {registry}/eng/img:1.0"]
    recipe.write_text("\n".join(lines) + "\n")
    before = push(tiny_image, registry, "before")
    with Hub({REPO: HubRepo(FILES, commit=FIRST)}) as hub:
        cli = CommandLine(tmp_path, tiny_catalog)
        cli.env["HF_ENDPOINT"] = hub.url
        pinned = cli("pin", RECIPE)
        assert [before, FIRST] == [pin["pinned"] for pin in pinned["pins"]]
        cli("download", RECIPE)
        now = push(tiny_image, registry, "after")
        hub.repos[REPO] = HubRepo(FILES, commit=SECOND)
        moved = cli("pin", RECIPE, "--check", code=1)
        told = [(pin["state"], pin["pinned"], pin["now"]) for pin in moved["pins"]]
        assert [("moved", before, now), ("moved", FIRST, SECOND)] == told
        try:
            server = cli("launch", RECIPE, "--port", str(free_port()), "--force")
            assert f"{registry}/eng/img@{before}" == server["image"]
            assert "before" == docker(
                "inspect", "--format", '{{index .Config.Labels "w"}}', server["name"]
            )
        finally:
            docker("rm", "--force", NAME, check=False)
            docker("image", "rm", f"{registry}/eng/img@{before}", check=False)
