"""Images in the real docker-registry: what was recorded of registries holds on a real one."""

import base64
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkrecipes import images
from tests.real.conftest import CommandLine, part
from tests.support.oci import Content, entry
from tests.support.registry import docker_registry, free_port, push
from tests.support.token_server import PASSWORD, USER, token_server

pytestmark = pytest.mark.real

LOGIN = f"{USER}:{PASSWORD}"


@pytest.fixture(scope="module")
def parts() -> None:
    """Install the registry and what pushes to it, where they are missing."""
    part("registry.sh")


@pytest.fixture(scope="module")
def content() -> Content:
    """Write a multi-arch image with attestations, and one image of each platform."""
    stock = Content()
    stock.multi("multi", "amd64", "arm64")
    for name in ("amd64", "arm64"):
        stock.image(name, tag=name, layers=(b"x" * 5000,), inner={"Entrypoint": ["vllm", "serve"]})
    return stock


@pytest.fixture(scope="module")
def registry(parts, content, tmp_path_factory) -> Iterator[str]:
    """Run an open registry that holds the images; return its host and port."""
    with docker_registry(tmp_path_factory.mktemp("open")) as address:
        for tag in ("multi", "amd64", "arm64"):
            push(content, tag, address, "eng/img")
        yield address


@pytest.fixture
def no_login(monkeypatch, tmp_path) -> Path:
    """Use an empty Docker config, and return its folder."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def log_in(folder: Path, address: str, pair: str) -> None:
    """Write what ``docker login`` writes."""
    auth = {"auth": base64.b64encode(pair.encode()).decode()}
    (folder / "config.json").write_text(json.dumps({"auths": {address: auth}}))


def skopeo_digest(reference: str, architecture: str) -> str:
    """Ask skopeo, another implementation, for the digest of one platform's image."""
    out = subprocess.run(
        ["skopeo", f"--override-arch={architecture}", "--override-os=linux", "inspect"]  # noqa: RUF005
        + ["--tls-verify=false", "--format={{.Digest}}", f"docker://{reference}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return out.stdout.strip()


def test_multi_arch_index(registry, no_login, content):
    """C15 and C16: two platforms of four entries, and the arm64 image's own digest and size."""
    report = images.inspect(f"{registry}/eng/img:multi")
    index = json.loads(content.blobs[content.tags["multi"]])
    chosen = index["manifests"][1]["digest"]
    manifest = json.loads(content.blobs[chosen])
    size = manifest["config"]["size"] + sum(layer["size"] for layer in manifest["layers"])
    assert ("found", True, ("linux/amd64", "linux/arm64"), chosen, content.tags["multi"], size) == (
        report.state,
        report.arm64,
        report.platforms,
        report.digest,
        report.index_digest,
        report.compressed_bytes,
    )


@pytest.mark.parametrize(("tag", "arm64"), [("amd64", False), ("arm64", True)])
def test_single_platform_image(registry, no_login, content, tag, arm64):
    """C17: a single manifest is read from its config, and agrees with skopeo."""
    report = images.inspect(f"{registry}/eng/img:{tag}")
    assert ("found", arm64, (f"linux/{tag}",)) == (report.state, report.arm64, report.platforms)
    if arm64:
        assert skopeo_digest(f"{registry}/eng/img:{tag}", tag) == report.digest
        assert ("vllm", "serve") == report.entrypoint


def test_docker_format(registry, no_login, content):
    """An image that was converted to Docker's own media types is found as well."""
    push(content, "arm64", registry, "eng/docker", "--format", "v2s2")
    assert images.inspect(f"{registry}/eng/docker:arm64").arm64


def test_by_digest(registry, no_login, content):
    """A digest is asked for as it is, with or without a tag beside it."""
    digest = content.tags["multi"]
    for reference in (f"eng/img@{digest}", f"eng/img:gone@{digest}"):
        assert images.inspect(f"{registry}/{reference}").arm64


def test_missing_tag_and_missing_repository(registry, no_login):
    """Both are 404 and both are missing; the reason tells which."""
    tag = images.inspect(f"{registry}/eng/img:9.9")
    repository = images.inspect(f"{registry}/eng/none:1.0")
    assert ("missing", "missing", None, None) == (
        tag.state,
        repository.state,
        tag.arm64,
        repository.arm64,
    )
    assert "no tag 9.9" in tag.reason
    assert "no repository eng/none" in repository.reason


def test_c27_deleted_child(registry, no_login):
    """C27: the index is still there, the arm64 image was cleaned away."""
    stock = Content()
    stock.multi("t", "amd64", "arm64")
    push(stock, "t", registry, "eng/cleaned")
    child = json.loads(stock.blobs[stock.tags["t"]])["manifests"][1]["digest"]
    url = f"http://{registry}/v2/eng/cleaned/manifests/{child}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(urllib.request.Request(url, method="DELETE"), timeout=20).close()
    report = images.inspect(f"{registry}/eng/cleaned:t")
    assert ("broken", False) == (report.state, report.arm64)


def test_c19_index_and_config_disagree(registry, no_login):
    """C19: a real registry stores an index that contradicts its image: nobody can say."""
    stock = Content()
    stock.index("t", entry(stock.image("amd64"), "arm64"))
    push(stock, "t", registry, "eng/liar")
    report = images.inspect(f"{registry}/eng/liar:t")
    assert ("found", None) == (report.state, report.arm64)


@pytest.fixture(scope="module")
def basic_registry(parts, content, tmp_path_factory) -> Iterator[str]:
    """Run a registry with htpasswd; return its host and port."""
    folder = tmp_path_factory.mktemp("basic")
    made = subprocess.run(
        ["htpasswd", "-Bbn", USER, PASSWORD], check=True, capture_output=True, timeout=30
    )
    (folder / "htpasswd").write_bytes(made.stdout)
    auth = f"auth: {{htpasswd: {{realm: tests, path: '{folder}/htpasswd'}}}}\n"
    with docker_registry(folder / "registry", auth) as address:
        push(content, "multi", address, "eng/img", "--dest-creds", LOGIN)
        yield address


@pytest.mark.parametrize(
    ("login", "state", "arm64"),
    [
        (None, "auth_required", None),
        (LOGIN, "found", True),
        (f"{USER}:wrong", "bad_credentials", None),
    ],
)
def test_basic_authentication(basic_registry, no_login, login, state, arm64):
    """Basic: nobody, the right login and a wrong one are three answers."""
    if login:
        log_in(no_login, basic_registry, login)
    report = images.inspect(f"{basic_registry}/eng/img:multi")
    assert (state, arm64) == (report.state, report.arm64)
    assert PASSWORD not in report.model_dump_json()


def test_missing_tag_behind_a_login(basic_registry, no_login):
    """Who may look sees that a tag is missing."""
    log_in(no_login, basic_registry, LOGIN)
    assert "missing" == images.inspect(f"{basic_registry}/eng/img:9.9").state


@pytest.fixture(scope="module")
def token_registry(parts, content, tmp_path_factory) -> Iterator[str]:
    """Run a registry with a token server, a public and a private repository."""
    folder = tmp_path_factory.mktemp("token")
    with (
        token_server(folder, frozenset({"eng/public"})) as auth,
        docker_registry(folder / "registry", auth) as address,
    ):
        for repository in ("eng/public", "eng/private"):
            push(content, "multi", address, repository, "--dest-creds", LOGIN)
        yield address


@pytest.mark.parametrize(
    ("repository", "login", "state", "arm64"),
    [
        ("public", None, "found", True),
        ("public", LOGIN, "found", True),
        ("public", f"{USER}:stale", "bad_credentials", True),
        ("private", None, "auth_required", None),
        ("private", LOGIN, "found", True),
        ("private", f"{USER}:stale", "bad_credentials", None),
        ("none", None, "auth_required", None),
        ("none", LOGIN, "missing", None),
    ],
)
def test_bearer_authentication(token_registry, no_login, repository, login, state, arm64):
    """C21 and C22: anonymous tokens, a token without the right, and a stale login.

    A private and a missing repository look the same to nobody, and differ to who is logged in.
    """
    if login:
        log_in(no_login, token_registry, login)
    report = images.inspect(f"{token_registry}/eng/{repository}:multi")
    assert (state, arm64) == (report.state, report.arm64)
    if (repository, state) == ("public", "bad_credentials"):
        assert f"docker logout {token_registry}" == report.repair


@pytest.mark.parametrize(
    ("path", "state", "code"),
    [
        ("eng/img:multi", "found", 0),
        ("eng/img:amd64", "found", 1),
        ("eng/img:9.9", "missing", 1),
    ],
)
def test_command_line(registry, no_login, tmp_path, path, state, code):
    """The command answers the same over the real registry, with the exit codes of the table."""
    answer = CommandLine(tmp_path)("image", f"{registry}/{path}", code=code)
    assert state == answer["state"]


def test_command_line_without_a_registry(no_login, tmp_path):
    """Nobody listens: exit code 3, never a no."""
    answer = CommandLine(tmp_path)("image", f"127.0.0.1:{free_port()}/x:1", code=3)
    assert ("no_network", None) == (answer["state"], answer["arm64"])
