"""Pulling an image: bytes from the engine's own API, layers from its command line elsewhere."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkrecipes import containers
from sparkrecipes.containers.engine_api import engine_socket, pull_events
from sparkrecipes.errors import LaunchFailed
from sparkrecipes.images import engine_auth, parse_reference
from sparkrecipes.schema.transfer import LINE, Transfer
from tests.support.fake_docker import FakeDocker
from tests.support.fake_engine import FakeEngine

EVENTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "docker" / "pull_events.jsonl")
    .read_text()
    .splitlines()
]
DIGEST = "sha256:1b4f1bd2f920cd6df900e0743f48bac32edc6482360cd593e42860541c03977b"
REFERENCE = f"registry.example/eng/img@{DIGEST}"
SIZES = {"b38a24a6b17b": 3001117, "7a33cac9969b": 3001116, "b2b853d55c18": 9_000_000}
LAYERS = {f"sha256:{short}{'0' * 52}": size for short, size in SIZES.items()}
INSPECT = ("image", "inspect")
CONTEXT = ("context", "inspect")
SECRET = "a-planted-registry-password"
PULLED = """0123456789ab: Pulling fs layer
ba9876543210: Already exists
0123456789ab: Download complete
0123456789ab: Pull complete
Digest: sha256:1111
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Put a fake docker, and nothing else, on PATH; nobody is logged in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return FakeDocker(tmp_path)


@pytest.fixture
def engine(fake: FakeDocker, tmp_path: Path) -> Iterator[FakeEngine]:
    """Let the command line name a socket on which a fake engine listens; nothing is here yet."""
    with FakeEngine(tmp_path / "docker.sock", list(EVENTS)) as engine:
        fake.answer(*CONTEXT, stdout=f"unix://{engine.path}\n")
        fake.answer(*INSPECT, exit_code=1)
        yield engine


def test_a_pull_tells_bytes_of_all_layers_together(fake: FakeDocker, engine: FakeEngine) -> None:
    """By digest, for the platform; what was here counts as done, and nothing goes backwards."""
    fake.answer(*INSPECT, stdout="linux/arm64\n")
    seen: list[Transfer] = []
    assert containers.pull_image(
        REFERENCE, "linux/arm64", recipe_id="x", layers=LAYERS, progress=seen.append
    )
    ((asked, login),) = engine.asked
    assert "fromImage=registry.example%2Feng%2Fimg&tag=sha256%3A1b4f" in asked
    assert "platform=linux%2Farm64" in asked
    assert login is None
    total = sum(SIZES.values())
    assert (9_000_000, total, 1, 3) == (
        seen[0].done_bytes,
        seen[0].total_bytes,
        seen[0].done_parts,
        seen[0].total_parts,
    )
    assert (total, 3, 3) == (seen[-1].done_bytes, seen[-1].done_parts, seen[-1].total_parts)
    assert sorted(at.done_bytes for at in seen) == [at.done_bytes for at in seen]
    assert 0.0 == seen[0].bytes_per_s
    assert [] == [call for call in fake.calls if call[0] == "pull"]


def test_a_pull_of_unknown_size_claims_no_whole(fake: FakeDocker, engine: FakeEngine) -> None:
    """Where the registry told no sizes there is neither a total nor a time left."""
    fake.answer(*INSPECT, stdout="linux/arm64\n")
    seen: list[Transfer] = []
    containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x", progress=seen.append)
    assert {(None, None)} == {(at.total_bytes, at.eta_s) for at in seen}
    assert 6_002_233 == seen[-1].done_bytes


def test_a_login_goes_to_the_engine_alone(
    fake: FakeDocker, engine: FakeEngine, tmp_path: Path
) -> None:
    """As a header over the socket: in no argument of any program."""
    fake.answer(*INSPECT, stdout="linux/arm64\n")
    auth = base64.b64encode(f"me:{SECRET}".encode()).decode()
    config = {"auths": {"registry.example": {"auth": auth}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    sent = json.loads(base64.urlsafe_b64decode(engine.asked[0][1] or ""))
    assert {"username": "me", "password": SECRET, "serveraddress": "registry.example"} == sent
    assert SECRET not in json.dumps(fake.calls)


def test_an_identity_token_is_passed_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some registries' logins are OAuth refresh tokens: only the engine can use them."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    config = {"auths": {"https://index.docker.io/v1/": {"identitytoken": SECRET}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    sent = json.loads(base64.urlsafe_b64decode(engine_auth("docker.io", timeout_s=1) or ""))
    assert {"identitytoken": SECRET, "serveraddress": "https://index.docker.io/v1/"} == sent
    assert engine_auth("ghcr.io", timeout_s=1) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("toomanyrequests: slow down", "rate_limited"),
        ("manifest for a/b:1 not found: manifest unknown", "image_missing"),
        ("no matching manifest for linux/arm64/v8 in the manifest list", "wrong_architecture"),
        ("write /var/lib/docker/tmp/x: no space left on device", "no_space"),
        ("pull access denied for a/b, repository does not exist", "pull_denied"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_pull_that_fails_says_why(
    fake: FakeDocker, engine: FakeEngine, words: str, code: str, at_once: bool
) -> None:
    """The registry's or Docker's reason, as the first answer or in the middle of the layers."""
    if at_once:
        engine.status, engine.lines = 404, [{"message": words}]
    else:
        engine.lines = [*EVENTS[:8], {"errorDetail": {"message": words}, "error": words}]
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    assert code == err.value.code
    assert err.value.repair


def test_an_engine_that_is_not_there_is_explained(fake: FakeDocker, tmp_path: Path) -> None:
    """Its socket is gone, or is not for this user: the code says which."""
    wanted = parse_reference(REFERENCE)
    gone = list(pull_events(str(tmp_path / "none.sock"), wanted, "linux/arm64", None))
    assert ["error"] == [key for event in gone for key in event]
    fake.answer(*CONTEXT, stdout=f"unix://{tmp_path}/none.sock\n")
    fake.answer(*INSPECT, exit_code=1)
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    assert "docker_not_running" == err.value.code


def test_a_pull_through_the_engine_ends_in_time(fake: FakeDocker, engine: FakeEngine) -> None:
    """A registry that trickles does not hold the walk for ever."""
    engine.pause_s = 0.05
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x", timeout_s=0.2)
    assert "docker_timeout" == err.value.code
    assert "run again: sparkrecipes install x" == err.value.repair


@pytest.mark.parametrize(
    ("host", "found"),
    [("unix:///run/user/1000/docker.sock", True), ("tcp://10.0.0.2:2376", False), ("", False)],
)
def test_the_engine_is_the_one_of_the_command_line(
    fake: FakeDocker, host: str, found: bool
) -> None:
    """DOCKER_HOST and contexts are its own to resolve; only a socket of this host is spoken to."""
    fake.answer(*CONTEXT, stdout=f"{host}\n", exit_code=0 if host else 1)
    assert found == (engine_socket() == host.removeprefix("unix://"))


def test_another_engine_is_pulled_by_the_command_line(fake: FakeDocker) -> None:
    """Over tcp or ssh: each finished layer is told; what landed is the machine's platform."""
    fake.answer(*CONTEXT, stdout="ssh://me@spark\n")
    fake.answer(*INSPECT, exit_code=1)
    fake.answer("pull", stdout=PULLED)
    fake.answer(*INSPECT, stdout="linux/arm64\n")
    said: list[Transfer] = []
    assert containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x", progress=said.append)
    assert [(1, 2), (2, 2)] == [(at.done_parts, at.total_parts) for at in said if at.done_parts]
    assert ["pull", "--platform", "linux/arm64", REFERENCE] in fake.calls


def test_the_command_line_says_why_it_failed(fake: FakeDocker) -> None:
    """Its reason stands below the lines of progress."""
    fake.answer(*CONTEXT, exit_code=1)
    fake.answer(*INSPECT, exit_code=1)
    words = "Error response from daemon: toomanyrequests: You have reached your pull rate limit."
    fake.answer("pull", stdout=PULLED, stderr=words, exit_code=1)
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    assert "rate_limited" == err.value.code


def test_the_command_line_ends_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A registry that stops in the middle of a layer does not hold the walk for ever."""
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n[ $1 != pull ] && exit 1\nexec sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x", timeout_s=0.3)
    assert "docker_timeout" == err.value.code
    assert "sparkrecipes install x" in err.value.repair


def test_an_image_that_is_here_is_not_pulled(fake: FakeDocker) -> None:
    """Twice is once."""
    fake.answer(*INSPECT, stdout="linux/arm64\n")
    assert not containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    assert [list(INSPECT)] == [call[:2] for call in fake.calls]


def test_a_pull_proves_nothing(fake: FakeDocker, engine: FakeEngine) -> None:
    """Docker pulled another platform without a word: refused before anything is started."""
    fake.answer(*INSPECT, stdout="linux/amd64\n")
    with pytest.raises(LaunchFailed) as err:
        containers.pull_image(REFERENCE, "linux/arm64", recipe_id="x")
    assert "wrong_architecture" == err.value.code
    assert "is for linux/amd64, not for linux/arm64" in err.value.message


@pytest.mark.parametrize(
    ("done", "total", "parts", "rate", "line"),
    [
        (1.2e9, 9.8e9, 3, 85e6, "image: 1.20 of 9.80 GB, 3 of 25 layers, 85 MB/s, 2 min left"),
        (1.2e9, 9.8e9, 3, 8.56e6, "image: 1.20 of 9.80 GB, 3 of 25 layers, 8.6 MB/s, 17 min left"),
        (1e9, 90e9, 3, 10e6, "image: 1.00 of 90.00 GB, 3 of 25 layers, 10 MB/s, 2.5 h left"),
        (0, 9.8e9, 0, 0.0, "image: 0.00 of 9.80 GB, 0 of 25 layers"),
        (1.2e9, None, 3, 85e6, "image: 1.20 GB, 3 of 25 layers, 85 MB/s"),
        (9.8e9, 9.8e9, 24, 85e6, "image: 9.80 of 9.80 GB, 24 of 25 layers, 85 MB/s, unpacking"),
        (9.8e9, 9.8e9, 25, 85e6, "image: 9.80 of 9.80 GB, 25 of 25 layers, 85 MB/s"),
    ],
)
def test_one_line_shows_every_transfer(
    done: float, total: float | None, parts: int, rate: float, line: str
) -> None:
    """Bytes, parts, rate and the time left; and it can be read again by whoever keeps a job."""
    at = Transfer(
        done_bytes=round(done),
        total_bytes=None if total is None else round(total),
        done_parts=parts,
        total_parts=25,
        parts="layers",
        bytes_per_s=rate,
    )
    assert line == at.line("image")
    found = LINE.match(at.line("image"))
    assert found is not None
    assert ("image", f"{done / 1e9:.2f}") == (found["what"], found["done"])
