"""The image step of an install: a real registry, a real Docker Engine, and what goes wrong there.

Between the two stands a gate that counts bytes, holds a layer half-way, or turns everybody away.
"""

import base64
import io
import json
import os
import platform
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.conftest import CommandLine, docker, free_port, part, tiny_layer
from tests.support.fault_table import faults
from tests.support.oci import Content
from tests.support.planted import REGISTRY_PASSWORD, leaks, plant
from tests.support.registry import docker_registry, push
from tests.support.registry_gate import RegistryGate

pytestmark = pytest.mark.real

RECIPE = "tiny-qwen3-bf16-vllm-ngram"
NAME = f"sparkrecipes-{RECIPE}"
HERE, ELSEWHERE = ("arm64", "amd64") if platform.machine() == "aarch64" else ("amd64", "arm64")
LAYER_BYTES = 3_000_000


def filler(number: int) -> bytes:
    """Return a layer that does not get smaller."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        about = tarfile.TarInfo(f"filler{number}")
        about.size = LAYER_BYTES
        tar.addfile(about, io.BytesIO(os.urandom(LAYER_BYTES)))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """Return the tiny server as an image of five layers, and one for another platform."""
    part("registry.sh")
    stock = Content()
    layers = (tiny_layer(tmp_path_factory.mktemp("rootfs")), *(filler(n) for n in range(4)))
    inner = {"Entrypoint": ["/start.sh"]}
    stock.image(HERE, tag="here", layers=layers, inner=inner)
    stock.image(ELSEWHERE, tag="elsewhere", layers=layers[:1], inner=inner)
    return stock


@pytest.fixture(scope="module")
def registry(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run an open registry that holds both."""
    with docker_registry(tmp_path_factory.mktemp("registry")) as address:
        for tag in ("here", "elsewhere"):
            push(content, tag, address, "eng/tiny")
        yield address


@pytest.fixture
def gate(registry: str, docker_engine: str) -> Iterator[RegistryGate]:
    """Put the gate before it; what was pulled through it is removed again."""
    with RegistryGate(registry) as gate:
        yield gate
        pulled = docker("image", "ls", "--quiet", "--no-trunc", f"{gate.address}/eng/tiny")
        for image in sorted(set(pulled.split())):
            docker("image", "rm", "--force", image)


@pytest.fixture
def cli(tiny_catalog: Path, tmp_path: Path, docker_engine: str) -> Iterator[CommandLine]:
    """The command line with planted secrets; its containers are removed."""
    cli = CommandLine(tmp_path, tiny_catalog)
    cli.env |= {"XDG_STATE_HOME": str(tmp_path / "state"), "DOCKER_CONFIG": str(tmp_path)}
    plant(tmp_path, cli.env, "docker", "ss", "nvidia-smi")
    yield cli
    docker("rm", "--force", NAME, check=False)


def write(cli: CommandLine, reference: str) -> None:
    """Let the recipe name an image; its server ends at once, so that a walk ends there too."""
    path = Path(cli.env["SPARKRECIPES_CATALOG"]) / "recipes" / f"{RECIPE}.yaml"
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    fields["image"] = {"reference": reference, "digest": None}
    fields |= {"weights": None, "flags": [], "speculative": None, "startup_timeout_s": 10}
    path.write_text(yaml.safe_dump({**fields, "env": {"MODE": "exits"}}))


def started(cli: CommandLine, *args: str) -> subprocess.Popen[str]:
    """Begin an install."""
    return subprocess.Popen(
        [*cli.program, "install", RECIPE, "--port", str(free_port()), "--json", *args],
        env=cli.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cli.env["HOME"],
    )


def ended(cli: CommandLine, process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Wait for an install; return its error and what was shown meanwhile, without any secret."""
    out, err = process.communicate(timeout=120)
    assert [] == leaks(Path(cli.env["HOME"]), out, err)
    assert "Traceback" not in err
    return json.loads(out)["error"], err


def fails(cli: CommandLine, *args: str, fault: str) -> dict[str, Any]:
    """Install with a fault: exit code, code and words are those of the table, with a repair."""
    process = started(cli, *args)
    error, _ = ended(cli, process)
    row = faults()[fault]
    assert process.returncode in row.exits
    assert error["code"] in row.codes, error
    assert [] == [words for words in row.words if words not in error["message"] + error["repair"]]
    assert error["repair"]
    return error


def layers_of(content: Content, tag: str = "here") -> list[str]:
    """Return the digests of an image's layers."""
    manifest = json.loads(content.blobs[content.tags[tag]])
    return [layer["digest"] for layer in manifest["layers"]]


def test_an_image_comes_by_its_digest_and_is_looked_at(
    cli: CommandLine, gate: RegistryGate, content: Content
) -> None:
    """Every layer once, in bytes; it keeps its tag, so that it is found again offline."""
    reference = f"{gate.address}/eng/tiny:here"
    write(cli, reference)
    error, shown = ended(cli, started(cli))
    by_digest = f"{gate.address}/eng/tiny@{content.tags['here']}"
    assert error["message"].startswith("wait: ")
    assert f"kept: image {by_digest}" in error["message"]
    assert f"image: {by_digest} pulled, linux/{HERE}" in shown
    assert " GB compressed" in shown
    assert "of 5 layers" in shown
    sizes = {digest: len(content.blobs[digest]) for digest in layers_of(content)}
    assert sizes == {digest: gate.sent[digest] for digest in sizes}
    inspect = ("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}")
    assert f"linux/{HERE}" == docker(*inspect, by_digest) == docker(*inspect, reference)

    gate.forget()
    again, shown = ended(cli, started(cli))
    assert again["message"].startswith("wait: ")
    assert f"{by_digest} was here" in shown
    assert not set(gate.sent) & set(sizes)
    gate.retry_after_s = 60
    offline, shown = ended(cli, started(cli, "--offline"))
    assert offline["message"].startswith("wait: ")
    assert f"image: {reference} is here; offline" in shown


def half_pulled(cli: CommandLine, gate: RegistryGate, content: Content) -> subprocess.Popen[str]:
    """Begin an install; return when all layers but the half of the last one have come."""
    *finished, held = layers_of(content)
    gate.held = {held}
    write(cli, f"{gate.address}/eng/tiny:here")
    process = started(cli)
    sizes = {digest: len(content.blobs[digest]) for digest in finished}
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done = all(gate.sent.get(digest) == size for digest, size in sizes.items())
        if done and gate.sent.get(held, 0) >= LAYER_BYTES // 2:
            break
        time.sleep(0.1)
    time.sleep(1.0)
    return process


def test_a_pull_survives_the_end_of_whoever_began_it(
    cli: CommandLine, gate: RegistryGate, content: Content
) -> None:
    """Kill -9 half-way: the pull goes on, the next install joins it, and no byte comes twice."""
    process = half_pulled(cli, gate, content)
    process.kill()
    out, err = process.communicate(timeout=30)
    assert [] == leaks(Path(cli.env["HOME"]), out, err)
    following = started(cli)
    time.sleep(3.0)
    gate.let_go.set()
    error, shown = ended(cli, following)
    assert error["message"].startswith("wait: "), error
    assert f"eng/tiny@{content.tags['here']} pulled" in shown
    sizes = {digest: len(content.blobs[digest]) for digest in layers_of(content)}
    assert sizes == {digest: gate.sent[digest] for digest in sizes}


def test_a_pull_that_is_interrupted_ends_and_is_begun_again(
    cli: CommandLine, gate: RegistryGate, content: Content
) -> None:
    """Ctrl-C half-way: nothing goes on in the background; the next install has the whole image."""
    held = layers_of(content)[-1]
    process = half_pulled(cli, gate, content)
    process.send_signal(signal.SIGINT)
    error, _ = ended(cli, process)
    assert (130, "interrupted") == (process.returncode, error["code"])
    time.sleep(1.0)
    gate.forget()
    error, shown = ended(cli, started(cli))
    assert error["message"].startswith("wait: "), error
    assert f"eng/tiny@{content.tags['here']} pulled" in shown
    assert len(content.blobs[held]) == gate.sent[held]


def test_a_registry_that_is_asked_too_often(cli: CommandLine, gate: RegistryGate) -> None:
    """429 with Retry-After: nothing is pulled, and the time is the registry's own."""
    write(cli, f"{gate.address}/eng/tiny:here")
    gate.retry_after_s = 17
    error = fails(cli, fault="registry answers 429")
    assert error["message"].startswith("image: ")
    assert "ask again in 17 s" in error["repair"]
    assert f"sparkrecipes install {RECIPE}" in error["repair"]
    assert {} == gate.sent


def test_an_image_that_is_gone(cli: CommandLine, gate: RegistryGate) -> None:
    """A tag that its registry does not have: before anything is fetched."""
    write(cli, f"{gate.address}/eng/tiny:gone")
    error = fails(cli, fault="image gone")
    assert error["message"].startswith("check: ")


def test_an_image_for_another_platform(
    cli: CommandLine, gate: RegistryGate, content: Content
) -> None:
    """Refused before a layer is fetched; forced, it is looked at when it is here, and not run."""
    write(cli, f"{gate.address}/eng/tiny:elsewhere")
    error = fails(cli, fault="image for another platform")
    assert f"built for linux/{ELSEWHERE} only" in error["message"]
    assert not set(gate.sent) & set(layers_of(content, "elsewhere"))
    forced = fails(cli, "--force", fault="image for another platform")
    assert "wrong_architecture" == forced["code"]
    assert f"is for linux/{ELSEWHERE}, not for linux/{HERE}" in forced["message"]
    assert "" == docker("ps", "--all", "--quiet", "--filter", f"name=^{NAME}$")


def test_a_registry_that_wants_a_login(
    cli: CommandLine, content: Content, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """The password goes to registry and engine as a header: pulled with it, refused without."""
    folder = tmp_path_factory.mktemp("basic")
    made = subprocess.run(
        ["htpasswd", "-Bbni", "me"],
        input=REGISTRY_PASSWORD.encode(),
        check=True,
        capture_output=True,
        timeout=30,
    )
    (folder / "htpasswd").write_bytes(made.stdout)
    auth = f"auth: {{htpasswd: {{realm: tests, path: '{folder}/htpasswd'}}}}\n"
    with docker_registry(folder / "registry", auth) as address:
        push(content, "here", address, "eng/login", "--dest-creds", f"me:{REGISTRY_PASSWORD}")
        write(cli, f"{address}/eng/login:here")
        fails(cli, fault="registry wants a login")
        pair = base64.b64encode(f"me:{REGISTRY_PASSWORD}".encode()).decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {address: {"auth": pair}}}))
        error, shown = ended(cli, started(cli))
        assert error["message"].startswith("wait: "), error
        assert f"eng/login@{content.tags['here']} pulled" in shown
        docker("image", "rm", "--force", f"{address}/eng/login:here")
