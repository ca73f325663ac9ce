"""What a reference means, and what registries say: hosts are recorded, the client is real."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkrecipes import images
from sparkrecipes.errors import Misuse
from sparkrecipes.images import docker_credentials, registry, transport
from sparkrecipes.images.problem import RegistryProblem
from sparkrecipes.images.reference import is_loopback
from sparkrecipes.images.registry import parse_challenges, retry_after_s
from sparkrecipes.schema.image import ImageReport
from tests.support import oci
from tests.support.oci import Content, entry
from tests.support.registry import (
    API,
    RecordedHosts,
    Reply,
    Request,
    error,
    free_port,
    guarded,
    stored,
    token,
)

ZEROS = f"sha256:{'0' * 64}"
SECRET = "planted-secret-41c7"
GHCR = 'Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="repository:org/img:pull"'
NVCR = 'Bearer realm="https://nvcr.io/proxy_auth",scope="repository:nim/org/img:pull"'
HUB = (
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",'
    'scope="repository:vllm/vllm-openai:pull"'
)


@pytest.fixture
def hosts(monkeypatch, tmp_path):
    """Recorded hosts that the environment leads to, and an empty Docker config."""
    for name in list(os.environ):
        if name.lower() in ("no_proxy", "all_proxy", "http_proxy", "https_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with RecordedHosts() as recorded:
        for name, value in recorded.environment().items():
            monkeypatch.setenv(name, value)
        yield recorded


@pytest.fixture
def content():
    """A multi-arch image under the tag 1.0."""
    stock = Content()
    stock.multi("1.0", "amd64", "arm64")
    return stock


def log_in(folder: Path, registry_key: str, secret: str = SECRET) -> str:
    """Write what ``docker login`` writes; return the Authorization that it stands for."""
    auth = base64.b64encode(f"someone:{secret}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {registry_key: {"auth": auth}}}))
    return f"Basic {auth}"


def serve(hosts: RecordedHosts, stock: Content, repository: str = "eng/img") -> str:
    """Serve content on the plain http registry of loopback; return the name for references."""
    hosts.sites[hosts.address] = stored(repository, stock)
    return f"{hosts.address}/{repository}"


def inspect_manifest(hosts: RecordedHosts, body: bytes) -> ImageReport:
    """Ask about a tag that points at these bytes; the parts of an arm64 image are there."""
    stock = Content()
    stock.image("arm64")
    stock.add(body, oci.MANIFEST, "t")
    return images.inspect(f"{serve(hosts, stock)}:t")


# References


@pytest.mark.parametrize(
    ("given", "whole", "api_host"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest", "registry-1.docker.io"),
        ("vllm/vllm-openai:v0.31.0", "docker.io/vllm/vllm-openai:v0.31.0", "registry-1.docker.io"),
        ("docker.io/ubuntu:24.04", "docker.io/library/ubuntu:24.04", "registry-1.docker.io"),
        ("index.docker.io/a/b:1", "docker.io/a/b:1", "registry-1.docker.io"),
        ("nvcr.io/nim/openai/x:2.0.9", "nvcr.io/nim/openai/x:2.0.9", "nvcr.io"),
        ("localhost/x", "localhost/x:latest", "localhost"),
        ("localhost:5000/x:1", "localhost:5000/x:1", "localhost:5000"),
        ("127.0.0.1:5000/eng/multi:1.0", "127.0.0.1:5000/eng/multi:1.0", "127.0.0.1:5000"),
        ("[::1]:5000/x", "[::1]:5000/x:latest", "[::1]:5000"),
        ("GHCR.io/org/img:A_b.C-1", "ghcr.io/org/img:A_b.C-1", "ghcr.io"),
        (f"ghcr.io/o/i@{ZEROS}", f"ghcr.io/o/i@{ZEROS}", "ghcr.io"),
        (f"ghcr.io/o/i:1@{ZEROS}", f"ghcr.io/o/i:1@{ZEROS}", "ghcr.io"),
        ("a__b/c-d--e/f.g:1", "docker.io/a__b/c-d--e/f.g:1", "registry-1.docker.io"),
    ],
)
def test_reference_gets_dockers_defaults(given, whole, api_host):
    """A reference is completed as Docker completes it, and knows who answers its API."""
    reference = images.parse_reference(given)
    assert (whole, api_host) == (str(reference), reference.api_host)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "a b",
        "-it",
        "--privileged",
        "-/x:1",
        "a/--rm",
        "--network=host/x",
        "x;rm -rf /",
        "$(id)",
        "`id`",
        "x\ny",
        "x:1\n",
        "x:-1",
        "x:",
        "x@sha256:12",
        f"x@sha512:{'0' * 128}",
        f"x@{ZEROS.upper()}",
        "Vllm/vllm-openai",
        "vllm/VLLM-openai:1",
        "https://ghcr.io/o/i:1",
        "docker://x",
        "a//b",
        "/a",
        "a/",
        "a..b/c",
        "../x",
        "user:secret@ghcr.io/x",
        "ghcr.io:99999/x",
        "ghcr.io:0/x",
        "-ghcr.io/x",
        "x:" + "t" * 129,
        "a/" * 150 + "a",
        "a" * 513,
        f"{'a' * 63}.{'b' * 200}.example/{'c' * 250}",
        "0" * 64,
        "xé/y",
    ],
)
def test_bad_reference_is_misuse(bad):
    """Whatever Docker could not pull, or could take for an option, is refused with a repair."""
    with pytest.raises(Misuse) as caught:
        images.parse_reference(bad)
    assert ("bad_reference", 2, True) == (
        caught.value.code,
        caught.value.exit_code,
        bool(caught.value.repair),
    )


@given(st.one_of(st.text(), st.from_regex(r"[-a-z0-9.:/@_]{1,40}", fullmatch=True)))
def test_reference_is_refused_or_safe(text):
    """Any text is refused, or comes back as one word that no option starts like."""
    try:
        reference = images.parse_reference(text)
    except Misuse:
        return
    assert reference == images.parse_reference(str(reference))
    assert not str(reference).startswith("-")
    assert str(reference).isascii()
    assert str(reference).isprintable()
    assert " " not in str(reference)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("127.8.9.1", True),
        ("[::1]:5000", True),
        ("::1", True),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("[::2]", False),
        ("ghcr.io", False),
    ],
)
def test_loopback_is_this_machine_only(host, loopback):
    """Plain http is for this machine itself: a name that merely looks like it does not count."""
    assert loopback == is_loopback(host)


@pytest.mark.parametrize(
    ("ref", "moving"),
    [("x", True), ("x:latest", True), ("x:nightly-0123", True), ("x:v1", False)],
)
def test_moving_tags_are_known(ref, moving):
    """C12 and C26: latest and nightlies change or vanish; a digest never does."""
    assert moving == images.parse_reference(ref).moving
    assert not images.parse_reference(f"{ref}@{ZEROS}").moving


# Platforms


@pytest.mark.parametrize("noted", [{"annotations": oci.ATTESTATION}, {}])
def test_c15_attestation_is_no_platform(hosts, noted):
    """C15: amd64 and an unknown/unknown record of it are one platform, and not arm64."""
    stock = Content()
    note = {**stock.image("x"), "platform": oci.UNKNOWN, **noted}
    stock.index("t", entry(stock.image("amd64"), "amd64"), note)
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert ("found", False, ("linux/amd64",), None) == (
        report.state,
        report.arm64,
        report.platforms,
        report.digest,
    )
    assert "linux/amd64" in report.reason
    assert "build the image" in report.repair


def test_c16_index_with_two_attestations(hosts, content):
    """C16: of four entries two are images; the arm64 one is what should be pulled."""
    report = images.inspect(f"{serve(hosts, content)}:1.0")
    index = json.loads(content.blobs[content.tags["1.0"]])
    assert 4 == len(index["manifests"])
    assert (True, ("linux/amd64", "linux/arm64")) == (report.arm64, report.platforms)
    assert index["manifests"][1]["digest"] == report.digest
    assert content.tags["1.0"] == report.index_digest


@pytest.mark.parametrize("variant", ["", "v8"])
def test_c16_arm64_variant_v8_is_arm64(hosts, variant):
    """C16: arm64 with no variant and with v8 both match."""
    stock = Content()
    stock.index("t", entry(stock.image("arm64", variant=variant), "arm64", variant=variant))
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert (True, ("linux/arm64",)) == (report.arm64, report.platforms)


def test_other_variants_are_other_platforms(hosts):
    """arm/v7 and amd64/v3 are named as they are and never taken for the plain platform."""
    stock = Content()
    stock.index(
        "t",
        entry(stock.image("arm", variant="v7"), "arm", variant="v7"),
        entry(stock.image("amd64", variant="v3"), "amd64", variant="v3"),
    )
    report = images.inspect(f"{serve(hosts, stock)}:t", platform="linux/amd64")
    assert (False, False, ("linux/arm/v7", "linux/amd64/v3")) == (
        report.platform_ok,
        report.arm64,
        report.platforms,
    )


@pytest.mark.parametrize("media_type", [oci.MANIFEST, oci.DOCKER_MANIFEST])
@pytest.mark.parametrize(
    ("architecture", "arm64"), [("amd64", False), ("arm64", True), ("aarch64", True)]
)
def test_c17_single_manifest_is_read_from_its_config(hosts, media_type, architecture, arm64):
    """C17: a single manifest has no platform; its config says it, in whatever spelling."""
    stock = Content()
    stock.image(architecture, tag="t", media_type=media_type)
    report = images.inspect(f"{serve(hosts, stock)}:t")
    expected = "linux/arm64" if arm64 else "linux/amd64"
    assert ("found", arm64, arm64, (expected,), None) == (
        report.state,
        report.arm64,
        report.platform_ok,
        report.platforms,
        report.index_digest,
    )
    assert (stock.tags["t"] if arm64 else None) == report.digest
    assert arm64 or "exec format error" in report.reason


def test_docker_media_types_are_asked_for_too(hosts):
    """A Docker manifest list is found: without its type in Accept it would look missing."""
    stock = Content()
    image = stock.image("arm64", media_type=oci.DOCKER_MANIFEST)
    stock.index("t", entry(image, "arm64"), media_type=oci.DOCKER_INDEX)
    assert images.inspect(f"{serve(hosts, stock)}:t").arm64


def test_compressed_size_is_layers_and_config(hosts):
    """The size is what is transferred for the platform: its layers and its config."""
    stock = Content()
    layers = (os.urandom(1000), os.urandom(234))
    stock.index("t", entry(stock.image("arm64", layers=layers), "arm64"))
    report = images.inspect(f"{serve(hosts, stock)}:t")
    manifest = json.loads(stock.blobs[report.digest])
    sizes = [part["size"] for part in (*manifest["layers"], manifest["config"])]
    assert (3, sum(sizes)) == (len(sizes), report.compressed_bytes)


def test_c19_index_and_config_disagree(hosts):
    """C19: where index and config disagree nobody can say, and neither side is believed."""
    stock = Content()
    stock.index("t", entry(stock.image("amd64"), "arm64"))
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert ("found", None, None) == (report.state, report.arm64, report.platform_ok)
    assert "one of them is wrong" in report.reason
    assert "uname" in report.repair


def test_c27_listed_but_deleted_child(hosts, content):
    """C27: an index that lists arm64 proves nothing when that manifest is gone."""
    child = json.loads(content.blobs[content.tags["1.0"]])["manifests"][1]["digest"]
    del content.blobs[child]
    report = images.inspect(f"{serve(hosts, content)}:1.0")
    assert ("broken", False, None) == (report.state, report.arm64, report.digest)
    assert ("linux/amd64", "linux/arm64") == report.platforms


@pytest.mark.parametrize(
    ("listed", "kernels"),
    [
        ("7.5 8.0 8.6 8.9 9.0 10.0 12.0+PTX", "does not name 12.1"),
        ("8.0 12.1a", "names 12.1"),
        (None, "only a measured run"),
        ("\x1b[31m8.0", "only a measured run"),
    ],
)
def test_c28_architecture_does_not_prove_kernels(hosts, listed, kernels):
    """C28: arm64 is ok, and the reason says that sm_121 is another question."""
    stock = Content()
    env = [f"TORCH_CUDA_ARCH_LIST={listed}"] if listed else []
    stock.image("arm64", tag="t", inner={"Env": env, "Entrypoint": ["vllm", "serve"]})
    report = images.inspect(f"{serve(hosts, stock)}:t")
    readable = listed if listed and listed.isprintable() else None
    assert (True, readable) == (report.arm64, report.cuda_arch_list)
    assert kernels in report.reason
    assert "sm_121" in report.reason
    assert ("vllm", "serve") == report.entrypoint


def test_entry_without_platform_is_opened(hosts):
    """An index may leave platforms out; then the images themselves are asked."""
    stock = Content()
    stock.index("t", stock.image("amd64"), stock.image("arm64", layers=(b"other",)))
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert (True, ("linux/amd64", "linux/arm64")) == (report.arm64, report.platforms)


def test_entries_that_nobody_names_stay_unknown(hosts):
    """With more unnamed entries than are opened the answer is unknown, never no."""
    stock = Content()
    unnamed = [stock.image("amd64", layers=(str(n).encode(),)) for n in range(5)]
    stock.index("t", *unnamed)
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert (None, ("linux/amd64",)) == (report.arm64, report.platforms)


def test_platform_other_than_arm64(hosts, content):
    """The machine's platform is what is judged; arm64 stays a fact beside it."""
    report = images.inspect(f"{serve(hosts, content)}:1.0", platform="linux/amd64")
    assert (True, True, "linux/amd64") == (report.platform_ok, report.arm64, report.platform)


def test_amd64_machine_and_amd64_image(hosts):
    """An amd64 image suits an amd64 machine, and still has no arm64."""
    stock = Content()
    stock.image("amd64", tag="t")
    report = images.inspect(f"{serve(hosts, stock)}:t", platform="linux/amd64")
    assert (True, False) == (report.platform_ok, report.arm64)


# What is broken


def _manifest(**changes: object) -> bytes:
    stock = Content()
    tree = json.loads(stock.blobs[stock.image("arm64")["digest"]])
    return json.dumps(tree | changes).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>a captive portal</html>",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"schemaVersion": 1, "fsLayers": []}',
        b'{"manifests": [1]}',
        b'{"manifests": [{"platform": {"os": "linux", "architecture": "arm64"}}]}',
        b'{"manifests": [{"digest": "sha256:../../x", "platform": {}}]}',
        _manifest(config={"digest": ZEROS}),
        _manifest(config={"digest": ZEROS, "size": -1}),
        _manifest(layers=[{"size": "7"}]),
        _manifest(layers=[{"size": -1}]),
        _manifest(layers=[{"size": True}]),
        _manifest(layers=[7]),
    ],
)
def test_malformed_manifest_is_broken(hosts, body):
    """Nonsense from a registry is an answer of its own, not a crash and not a no."""
    report = inspect_manifest(hosts, body)
    assert ("broken", None) == (report.state, report.arm64)


def test_config_that_is_gone_is_broken(hosts):
    """A manifest whose config is not there cannot be pulled, whatever its index says."""
    stock = Content()
    stock.image("arm64", tag="t")
    config = json.loads(stock.blobs[stock.tags["t"]])["config"]["digest"]
    del stock.blobs[config]
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert ("broken", None) == (report.state, report.arm64)
    assert "config" in report.reason


@pytest.mark.parametrize("config", [{}, {"architecture": 7}, {"architecture": "a b\x1b"}])
def test_artifact_without_architecture_is_no_image(hosts, config):
    """A chart or another artifact is stored like an image, but names no architecture."""
    stock = Content()
    tree = {"config": stock.add_json(config, "application/x"), "layers": []}
    stock.add_json({"schemaVersion": 2, **tree}, oci.MANIFEST, "t")
    report = images.inspect(f"{serve(hosts, stock)}:t")
    assert ("broken", None) == (report.state, report.arm64)
    assert "not a container image" in report.reason


def test_nested_index_is_broken(hosts, content):
    """Docker pulls no index inside an index."""
    content.index("t", entry(content.multi("inner", "arm64"), "arm64"))
    report = images.inspect(f"{serve(hosts, content)}:t")
    assert ("broken", None) == (report.state, report.arm64)


@pytest.mark.parametrize("what", ["manifest", "header", "config"])
def test_bytes_must_be_what_their_digest_says(hosts, what):
    """Content that was altered on its way is found out at each of its digests."""
    stock = Content()
    stock.image("arm64", tag="t")
    digest = stock.tags["t"]
    config = json.loads(stock.blobs[digest])["config"]["digest"]
    honest = stored("eng/img", stock)

    def altered(request: Request) -> Reply:
        reply = honest(request)
        if what == "header" and "manifests" in request.path:
            return Reply(200, reply.body, reply.headers | {"Docker-Content-Digest": ZEROS})
        if (what == "config") == (config in request.path):
            return Reply(200, reply.body + b" ", API)
        return reply

    name = serve(hosts, stock)
    hosts.sites[hosts.address] = altered
    report = images.inspect(f"{name}:t" if what == "header" else f"{name}@{digest}")
    assert ("broken", None) == (report.state, report.arm64)
    assert "digest says" in report.reason


def test_digest_wins_over_tag(hosts, content):
    """With a tag and a digest the digest is asked for, as Docker does."""
    report = images.inspect(f"{serve(hosts, content)}:moved@{content.tags['1.0']}")
    assert (True, content.tags["1.0"]) == (report.arm64, report.index_digest)


def test_body_has_a_cap(hosts):
    """A body without end is not read to its end."""
    report = inspect_manifest(hosts, b" " * (transport.MAX_BODY_BYTES + 1))
    assert ("broken", True) == (report.state, "4 MiB" in report.reason)


# Answers that are not the image


@pytest.mark.parametrize(
    ("reply", "state", "repair"),
    [
        (error(404, "NAME_UNKNOWN"), "missing", "spelling of the repository"),
        (error(404, "MANIFEST_UNKNOWN"), "missing", "spelling of repository and tag"),
        (Reply(404, b"<html>"), "unknown", ""),
        (error(401, "UNAUTHORIZED"), "auth_required", "docker login 127.0.0.1"),
        (error(403, "DENIED"), "auth_required", "docker login 127.0.0.1"),
        (error(429, "TOOMANYREQUESTS", Retry_After="61"), "rate_limited", "in 61 s"),
        (error(429), "rate_limited", "later"),
        (error(500), "unknown", "later"),
        (error(503), "unknown", "later"),
        (error(418), "unknown", ""),
        (Reply(302, b"", {"Location": "/again"}), "broken", ""),
        (Reply(302, b"", {"Location": "//[::g]/"}), "broken", ""),
        (Reply(302, b"", {"Location": f"http://{'a' * 64}.localhost/x"}), "unknown", ""),
        (Reply(302, b"", {"Location": "http://127.0.0.1:99999999/x"}), "no_network", ""),
        (Reply(302, b"", {"Location": "http://blobs.example/x"}), "unknown", ""),
        (Reply(302, b"", {"Location": "ftp://blobs.example/x"}), "unknown", ""),
        (Reply(302, b"", {"Location": "https://me:pw@blobs.example/x"}), "broken", ""),
    ],
)
def test_each_answer_is_told_apart(hosts, reply, state, repair):
    """Missing, denied, limited, broken and unknown are different things to do."""
    hosts.sites[hosts.address] = lambda request: reply
    report = images.inspect(f"{hosts.address}/eng/img:1.0")
    assert (state, None, None) == (report.state, report.arm64, report.platform_ok)
    assert repair in report.repair
    assert all(url.startswith(f"http://{hosts.address}/") for url in hosts.urls())


def test_missing_tag_names_the_nearest(hosts, content):
    """Of a repository that exists the tags are asked for, and the nearest are offered."""
    stock = Content(tags={"v0.31.0-aarch64": ZEROS, "v0.31.0": ZEROS, "v0.31.0-\x1barch64": ZEROS})
    report = images.inspect(f"{serve(hosts, stock)}:v0.31.0-arch64")
    assert ("missing", "did you mean v0.31.0-aarch64 or v0.31.0?") == (report.state, report.repair)
    assert "no tag v0.31.0-arch64" in report.reason
    none = images.inspect(f"{hosts.address}/eng/other:1")
    assert ("missing", True) == (none.state, "no repository eng/other" in none.reason)


@pytest.mark.parametrize("tags", [b"nonsense", b'{"tags": 7}', b'{"tags": [7, "a b"]}', None])
def test_tag_list_that_is_no_help_changes_nothing(hosts, tags):
    """Whatever the list of tags is, a missing tag is missing."""
    gone = error(404, "MANIFEST_UNKNOWN")
    hosts.sites[hosts.address] = lambda request: (
        (Reply(500) if tags is None else Reply(200, tags)) if "/tags/" in request.path else gone
    )
    assert "missing" == images.inspect(f"{hosts.address}/eng/img:1.0").state


def test_retry_after_may_be_a_date():
    """Retry-After is a number of seconds or an HTTP date; nonsense is no number."""
    soon = datetime.now(UTC) + timedelta(seconds=90)
    assert retry_after_s(format_datetime(soon, usegmt=True)) in (88, 89, 90)
    assert (61, 0, None, None) == (
        retry_after_s("61"),
        retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT"),
        retry_after_s(""),
        retry_after_s("-5"),
    )


def test_c26_purged_nightly(hosts):
    """C26: a nightly that is gone is missing, and the way out is a release tag."""
    gone = error(404, "MANIFEST_UNKNOWN")
    hosts.sites["registry-1.docker.io"] = guarded(lambda _: gone, HUB, "Bearer a-token")
    hosts.sites["auth.docker.io"] = lambda _: token()
    report = images.inspect("vllm/vllm-openai:nightly-0123abcd")
    assert ("missing", None) == (report.state, report.arm64)
    assert "last 14" in report.reason
    assert "release tag" in report.repair


def test_c21_private_and_misspelt_look_the_same(hosts):
    """C21: ghcr refuses the anonymous token: nobody can say, and that is not a no."""
    refused = error(401, "UNAUTHORIZED")
    hosts.sites["ghcr.io"] = lambda request: (
        refused if request.path.startswith("/token") else error(401, WWW_Authenticate=GHCR)
    )
    report = images.inspect("ghcr.io/org/img:1.0")
    assert ("auth_required", None) == (report.state, report.arm64)
    assert "private or misspelt" in report.reason
    assert "read:packages" in report.repair
    assert 1 == hosts.urls().count("https://ghcr.io/token")


def test_c21_public_image_of_the_same_registry(hosts, content):
    """C21: the same registry grants an anonymous token for a public image."""
    hosts.sites["ghcr.io"] = _ghcr(content, lambda request: token())
    report = images.inspect("ghcr.io/org/img:1.0")
    assert ("found", True) == (report.state, report.arm64)
    asked = next(r for r in hosts.requests if r.path.startswith("/token"))
    assert "/token?scope=repository%3Aorg%2Fimg%3Apull&service=ghcr.io" == asked.path
    assert "authorization" not in asked.headers


def _ghcr(stock: Content, grant):
    """Serve ghcr.io/org/img to who has the token."""
    images_site = guarded(stored("org/img", stock), GHCR, "Bearer a-token")
    return lambda request: (
        grant(request) if request.path.startswith("/token") else images_site(request)
    )


def test_c22_stale_login_of_a_public_image(hosts, content, tmp_path):
    """C22: an expired login breaks a public image: it is read anonymously, and that is said."""
    log_in(tmp_path, "ghcr.io")

    def grant(request: Request) -> Reply:
        return error(403, "DENIED") if "authorization" in request.headers else token()

    hosts.sites["ghcr.io"] = _ghcr(content, grant)
    report = images.inspect("ghcr.io/org/img:1.0")
    assert ("bad_credentials", True, "docker logout ghcr.io") == (
        report.state,
        report.arm64,
        report.repair,
    )
    assert report.digest
    assert "docker pull would fail" in report.reason


@pytest.mark.parametrize(
    ("with_login", "state"), [(error(401), "bad_credentials"), (token("other"), "denied")]
)
def test_refused_login_of_a_private_image(hosts, content, tmp_path, with_login, state):
    """A login that is refused and one that may not read are different, and neither is a no."""
    log_in(tmp_path, "ghcr.io")
    hosts.sites["ghcr.io"] = _ghcr(
        content, lambda r: with_login if "authorization" in r.headers else error(401)
    )
    report = images.inspect("ghcr.io/org/img:1.0")
    assert (state, None) == (report.state, report.arm64)
    assert "docker login ghcr.io" in report.repair


def test_missing_image_behind_a_stale_login_is_missing(hosts, tmp_path):
    """What anybody can see to be missing is missing, whatever the login is worth."""
    log_in(tmp_path, "ghcr.io")
    hosts.sites["ghcr.io"] = _ghcr(
        Content(), lambda r: error(403) if "authorization" in r.headers else token()
    )
    assert "missing" == images.inspect("ghcr.io/org/img:1.0").state


def test_c24_transient_refusal_of_ngc(hosts, content, monkeypatch):
    """C24: nvcr.io refuses an anonymous token now and then: one retry, then the verdict."""
    monkeypatch.setattr(registry, "RETRY_AFTER_S", 0.01)
    replies = [error(401), token()]
    site = guarded(stored("nim/org/img", content), NVCR, "Bearer a-token")
    hosts.sites["nvcr.io"] = lambda request: (
        replies.pop(0) if request.path.startswith("/proxy_auth") else site(request)
    )
    assert ("found", True) == (
        (report := images.inspect("nvcr.io/nim/org/img:1.0")).state,
        report.arm64,
    )
    replies[:] = [error(401), error(401), error(401)]
    report = images.inspect("nvcr.io/nim/org/img:1.0")
    assert ("auth_required", None, 1) == (report.state, report.arm64, len(replies))
    assert "$oauthtoken" in report.repair
    assert "NGC API key" in report.repair


def test_rate_limit_of_the_token_server(hosts):
    """A 429 of the token server is the same answer as one of the registry."""
    hosts.sites["registry-1.docker.io"] = lambda _: error(401, WWW_Authenticate=HUB)
    hosts.sites["auth.docker.io"] = lambda _: error(429, Retry_After="9")
    report = images.inspect("vllm/vllm-openai:v1")
    assert ("rate_limited", True) == (report.state, "9 s" in report.repair)


# The network


def test_refused_connection_is_no_network(hosts):
    """Nobody listens: no network, not missing."""
    report = images.inspect(f"127.0.0.1:{free_port()}/x:1")
    assert ("no_network", None) == (report.state, report.arm64)
    assert "refuses the connection" in report.reason


def test_unknown_name_is_no_network(hosts, monkeypatch):
    """A name that does not resolve is no network (a proxy would resolve it itself)."""
    monkeypatch.delenv("HTTPS_PROXY")
    report = images.inspect("registry.invalid/x:1", timeout_s=3)
    assert ("no_network", None) == (report.state, report.arm64)


def test_name_that_no_resolver_takes_is_no_crash(hosts, monkeypatch):
    """A host with a part above 63 characters cannot be asked; that is an answer too."""
    monkeypatch.delenv("HTTPS_PROXY")
    report = images.inspect(f"{'a' * 64}.example/x:1")
    assert ("unknown", None) == (report.state, report.arm64)


def test_proxy_that_is_down_is_no_network(hosts, monkeypatch):
    """The proxy of the environment is used for other hosts, and never for this machine."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert "no_network" == images.inspect("ghcr.io/org/img:1").state
    stock = Content()
    stock.image("arm64", tag="t")
    assert "found" == images.inspect(f"{serve(hosts, stock)}:t").state


def test_untrusted_certificate_is_unknown(hosts, monkeypatch, tmp_path):
    """A certificate that nobody here vouches for is not answered as missing or no network."""
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    report = images.inspect("ghcr.io/org/img:1")
    assert ("unknown", True) == (report.state, "certificate" in report.reason)


@pytest.mark.parametrize(
    ("name", "value"), [("HTTPS_PROXY", "ftp://x:1"), ("SSL_CERT_FILE", "/does/not/exist")]
)
def test_unusable_environment_is_said(hosts, monkeypatch, name, value):
    """A proxy or certificate setting that cannot be used is named, without a traceback."""
    monkeypatch.setenv(name, value)
    report = images.inspect("ghcr.io/org/img:1")
    assert ("unknown", True) == (report.state, name in report.repair)


@pytest.mark.parametrize("drip_s", [0.05, 5.0])
def test_time_is_bounded_in_all(hosts, drip_s):
    """A server that drips or says nothing ends at the deadline, whatever each read takes."""
    hosts.sites[hosts.address] = lambda _: Reply(200, b"{" * 100, {}, drip_s)
    began = time.monotonic()
    report = images.inspect(f"{hosts.address}/x:1", timeout_s=0.4)
    assert "no_network" == report.state
    assert time.monotonic() - began < 2


def test_each_read_ends_at_the_deadline(hosts):
    """The client itself ends a body that drips, before anybody gives up on it."""
    hosts.sites[hosts.address] = lambda _: Reply(200, b"{" * 100, {}, 0.05)
    client = transport.Transport(transport.Deadline(0.3), allow_http=True)
    began = time.monotonic()
    with pytest.raises(RegistryProblem) as caught:
        client.get(f"http://{hosts.address}/")
    client.close()
    assert "no_network" == caught.value.state
    assert time.monotonic() - began < 1


def test_resolver_that_hangs_is_not_waited_for(hosts, monkeypatch):
    """Resolving a name has no time limit of its own; a hanging resolver cannot be had here."""
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(3))
    began = time.monotonic()
    assert "no_network" == images.inspect("registry.example/x:1", timeout_s=0.2).state
    assert time.monotonic() - began < 2


# Secrets


def test_redirect_to_another_host_loses_the_token(hosts, content):
    """Blobs are often stored elsewhere: that host gets no Authorization."""
    inner = stored("org/img", content)

    def site(request: Request) -> Reply:
        if "/blobs/" in request.path:
            return Reply(307, b"", {"Location": f"https://blobs.example{request.path}"})
        return inner(request)

    hosts.sites["ghcr.io"] = lambda request: (
        token()
        if request.path.startswith("/token")
        else guarded(site, GHCR, "Bearer a-token")(request)
    )
    hosts.sites["blobs.example"] = inner
    assert images.inspect("ghcr.io/org/img:1.0").arm64
    shown = {r.host for r in hosts.requests if "authorization" in r.headers}
    assert ({"ghcr.io"}, True) == (shown, "blobs.example" in {r.host for r in hosts.requests})


def test_token_stays_lost_when_a_redirect_leads_back(hosts, content):
    """Once a redirect has left the registry, a way back does not bring the token back."""
    away = {"Location": "https://blobs.example/x"}
    back = {"Location": "https://ghcr.io/back"}
    hosts.sites["blobs.example"] = lambda _: Reply(302, b"", back)
    hosts.sites["ghcr.io"] = lambda request: (
        token()
        if request.path.startswith("/token")
        else guarded(lambda _: Reply(302, b"", away), GHCR, "Bearer a-token")(request)
    )
    images.inspect("ghcr.io/org/img:1.0")
    asked_back = [r for r in hosts.requests if r.path == "/back"]
    assert asked_back
    assert not any("authorization" in request.headers for request in asked_back)


@pytest.mark.parametrize(
    "realm", ["http://auth.example/token", "http://LOOPBACK/token", "auth.example", ""]
)
def test_credentials_never_go_over_plain_http(hosts, tmp_path, realm):
    """A realm without https gets nothing from us, neither a login nor a question."""
    log_in(tmp_path, "ghcr.io")
    challenge = f'Bearer realm="{realm.replace("LOOPBACK", hosts.address)}",service="x"'
    hosts.sites["ghcr.io"] = lambda _: error(401, WWW_Authenticate=challenge)
    report = images.inspect("ghcr.io/org/img:1.0")
    assert report.arm64 is None
    assert {"https://ghcr.io/v2/org/img/manifests/1.0"} == set(hosts.urls())


def test_token_server_alone_sees_the_login(hosts, content, tmp_path):
    """A Docker Hub login goes to the realm of Docker Hub; the registry sees only the token."""
    basic = log_in(tmp_path, "https://index.docker.io/v1/")
    site = guarded(stored("vllm/vllm-openai", content), HUB, "Bearer a-token")
    hosts.sites["registry-1.docker.io"] = site
    hosts.sites["auth.docker.io"] = lambda _: token()
    assert images.inspect("vllm/vllm-openai:1.0").arm64
    shown = {
        (r.host, r.headers["authorization"]) for r in hosts.requests if "authorization" in r.headers
    }
    assert {("auth.docker.io", basic), ("registry-1.docker.io", "Bearer a-token")} == shown


def test_login_of_one_registry_is_not_shown_to_another(hosts, tmp_path):
    """A login is for its own registry."""
    log_in(tmp_path, "ghcr.io")
    hosts.sites["registry.example"] = lambda _: error(401, WWW_Authenticate="Basic realm=x")
    assert "auth_required" == images.inspect("registry.example/x:1").state
    assert not any("authorization" in request.headers for request in hosts.requests)


def test_basic_login(hosts, content, tmp_path):
    """A registry with Basic authentication gets the login, and says no to a wrong one."""
    basic = log_in(tmp_path, hosts.address)
    site = stored("eng/img", content)
    hosts.sites[hosts.address] = guarded(site, 'Basic realm="x"', basic)
    assert images.inspect(f"{hosts.address}/eng/img:1.0").arm64
    log_in(tmp_path, hosts.address, "wrong")
    report = images.inspect(f"{hosts.address}/eng/img:1.0")
    assert ("bad_credentials", None) == (report.state, report.arm64)


def test_login_that_may_not_read_is_denied(hosts, tmp_path):
    """403 to a login that was shown is denied; to one that was never asked for it is not."""
    basic = log_in(tmp_path, hosts.address)
    refused = error(403, "DENIED")
    hosts.sites[hosts.address] = guarded(lambda _: refused, 'Basic realm="x"', basic)
    assert "denied" == images.inspect(f"{hosts.address}/eng/img:1.0").state
    hosts.sites[hosts.address] = lambda _: refused
    assert "auth_required" == images.inspect(f"{hosts.address}/eng/img:1.0").state


@pytest.mark.parametrize(
    "answer",
    [
        error(401, WWW_Authenticate=GHCR),
        error(403, "DENIED"),
        error(404, "MANIFEST_UNKNOWN"),
        error(429),
        error(500),
        Reply(200, b"not json"),
        Reply(302, b"", {"Location": "http://blobs.example/"}),
    ],
)
def test_no_secret_in_any_answer(hosts, tmp_path, answer):
    """Whatever goes wrong, neither the login nor the token is in the report."""
    basic = log_in(tmp_path, "ghcr.io")
    hosts.sites["ghcr.io"] = lambda request: (
        token("a-token-8812") if request.path.startswith("/token") else answer
    )
    text = images.inspect("ghcr.io/org/img:1.0").model_dump_json()
    assert not [secret for secret in (SECRET, basic[6:], "a-token-8812") if secret in text]


def test_token_that_is_no_token_is_broken(hosts):
    """A token that could break a header is refused."""
    hosts.sites["ghcr.io"] = lambda request: (
        token("a\r\nX-Evil: 1")
        if request.path.startswith("/token")
        else error(401, WWW_Authenticate=GHCR)
    )
    assert "broken" == images.inspect("ghcr.io/org/img:1.0").state


def test_challenges_are_read_as_registries_write_them():
    """Quoted and bare values, one scheme or two, and a name that only contains one."""
    header = 'Bearer realm="https://a.example/t?x=1,2",scope=repository:a/basic:pull, Basic realm=b'
    bearer, basic = parse_challenges(header)
    assert ("bearer", "https://a.example/t?x=1,2", "repository:a/basic:pull") == (
        bearer.scheme,
        bearer.parameters["realm"],
        bearer.parameters["scope"],
    )
    assert ("basic", {"realm": "b"}) == (basic.scheme, basic.parameters)
    assert () == parse_challenges("Negotiate") == parse_challenges("")


# The Docker config


def helper(folder: Path, name: str, body: str, monkeypatch) -> None:
    """Put a credential helper on PATH."""
    path = folder / f"docker-credential-{name}"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_credential_helper_is_asked_for_its_registry(tmp_path, monkeypatch):
    """A helper gets the registry on its standard input, Docker Hub under Docker's own name."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(
        json.dumps({"credsStore": "all", "credHelpers": {"ghcr.io": "one"}})
    )
    answer = '{"Username": "%s-\'"$(cat)"\'", "Secret": "s"}'
    helper(tmp_path, "all", f"printf '{answer % 'all'}'", monkeypatch)
    helper(tmp_path, "one", f"printf '{answer % 'one'}'", monkeypatch)
    names = [
        docker_credentials.find_credentials(name, timeout_s=5).username
        for name in ("ghcr.io", "nvcr.io", "docker.io")
    ]
    assert ["one-ghcr.io", "all-nvcr.io", "all-https://index.docker.io/v1/"] == names


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"credsStore": "x"}, """echo '{"Username": "u", "Secret": "s"}'; exit 1"""),
        ({"credsStore": "x"}, "exec sleep 60"),
        ({"credsStore": "x"}, "echo credentials not found; exit 1"),
        ({"credsStore": "x"}, "echo nonsense"),
        ({"credsStore": "x"}, """echo '{"Username": "<token>", "Secret": "refresh"}'"""),
        ({"credsStore": "../x"}, """echo '{"Username": "u", "Secret": "s"}'"""),
        ({"credsStore": "absent"}, ""),
        ({"auths": {"ghcr.io": {"auth": "!!!"}}}, ""),
        ({"auths": {"ghcr.io": {"auth": "bm9jb2xvbg=="}}}, ""),
        ({"auths": {"ghcr.io": {}}}, ""),
        ({"auths": {"ghcr.io.example": {"auth": "dTpz"}}}, ""),
        ({"auths": []}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_unusable_login_is_no_login(tmp_path, monkeypatch, config, body):
    """What Docker's config or a helper cannot give is asked for anonymously, in bounded time."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    helper(tmp_path, "x", body, monkeypatch)
    assert docker_credentials.find_credentials("ghcr.io", timeout_s=0.5) is None


def test_helper_is_a_name_and_no_path(tmp_path, monkeypatch):
    """A helper's name cannot lead out of PATH, whatever lies in the working directory."""
    trap = tmp_path / "docker-credential-.." / "x"
    trap.parent.mkdir()
    trap.write_text("""#!/bin/sh\necho '{"Username": "u", "Secret": "s"}'\n""")
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"credsStore": "../x"}))
    assert docker_credentials.find_credentials("ghcr.io", timeout_s=5) is None


@pytest.mark.parametrize("key", ["https://index.docker.io/v1/", "docker.io", "index.docker.io"])
def test_login_of_docker_hub_has_many_names(tmp_path, monkeypatch, key):
    """Docker Hub's login is found under each name that tools write."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    log_in(tmp_path, key)
    assert "someone" == docker_credentials.find_credentials("docker.io", timeout_s=1).username


def test_secret_is_not_in_the_repr():
    """Credentials can be printed without showing what they hold."""
    assert SECRET not in repr(docker_credentials.Credentials("someone", SECRET))


def test_http_client_is_loaded_when_it_is_used():
    """Importing the module costs no HTTP client: read commands start fast."""
    code = "import sys, sparkrecipes.images; print('httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()
