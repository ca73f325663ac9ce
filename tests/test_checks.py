"""What stands in the way of a start: facts in, findings out, nothing touched."""

import socket
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sparkrecipes import memory
from sparkrecipes.catalog import open_catalog
from sparkrecipes.checks import CHECKS, CheckFacts, HubProblem, check, summary_of, verdict_of
from sparkrecipes.operations import diagnose, render_command
from sparkrecipes.operations.gathering import port_is_free
from sparkrecipes.schema.evidence import DoesNotRunEntry
from sparkrecipes.schema.findings import CheckReport, Finding
from sparkrecipes.schema.image import ImageReport
from sparkrecipes.schema.machine import (
    DiskSpace,
    DockerSeen,
    GpuSeen,
    HostReport,
    LiveMemory,
    MemoryUser,
)
from sparkrecipes.schema.recipe import LocalBuild, WeightsSource
from sparkrecipes.schema.serving import Server
from sparkrecipes.weights_cache import CachedRepo

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
NIM = "gpt-oss-20b-mxfp4-nim"
LOCAL = "qwen3.8-flash-next-nvfp4-vllm-patched-mtp"
EAGLE = "gpt-oss-20b-mxfp4-vllm-eagle3"
GIB = 2**30
GB = 10**9
DIGEST = f"sha256:{'a' * 64}"
COMMIT = "b" * 40


@cache
def catalog():
    """Open the shipped catalog once."""
    return open_catalog(Path(__file__).parents[1] / "catalog")


def host(**changes) -> HostReport:
    """Describe an idle DGX Spark."""
    report = HostReport(
        is_spark=True,
        platform="linux/arm64",
        kernel="6.17",
        cpu_count=20,
        mem_total_bytes=catalog().machine(None).mem_total_bytes,
        mem_available_bytes=117 * GIB,
        mem_free_bytes=110 * GIB,
        swap_total_bytes=16 * GIB,
        swap_free_bytes=16 * GIB,
        gpus=(
            GpuSeen(
                name="NVIDIA GB10",
                driver="580.95.05",
                compute_capability="12.1",
                memory_total_bytes=None,
            ),
        ),
        cuda_version="13.0",
        docker=DockerSeen(state="ok", version="28.2.2", gpu_runtime=True),
        disks=(
            DiskSpace(what="weights", path="/w", free_bytes=900 * GB, total_bytes=1000 * GB),
            DiskSpace(what="docker", path="/d", free_bytes=300 * GB, total_bytes=400 * GB),
        ),
        machine="dgx-spark",
        warnings=(),
    )
    return report.model_copy(update=changes)


def amd64_host() -> HostReport:
    """Describe a machine without GPU and Docker, as tests run on."""
    docker = DockerSeen(state="missing")
    return host(is_spark=False, platform="linux/amd64", gpus=(), docker=docker)


def image(**changes) -> ImageReport:
    """Describe an image that has the platform."""
    report = ImageReport(
        ref="docker.io/vllm/vllm-openai:v0.31.0-aarch64",
        state="found",
        platform="linux/arm64",
        platform_ok=True,
        arm64=True,
        platforms=("linux/arm64",),
        digest=DIGEST,
        compressed_bytes=10 * GB,
        reason="there",
        entrypoint=("vllm", "serve"),
        cuda_version="13.0.1",
    )
    return report.model_copy(update=changes)


def cached(repo: str = "nvidia/Qwen3.6-35B-A3B-NVFP4", **changes) -> CachedRepo:
    """Describe weights that are whole."""
    folder = Path("/w/models--x")
    whole = CachedRepo(repo, folder, COMMIT, folder / "snapshots" / COMMIT, True, 24 * GB)
    return replace(whole, **changes)


def server(recipe_id: str = RECIPE, state: str = "running", port: int = 8000) -> Server:
    """Describe one of our containers."""
    return Server(
        name=f"sparkrecipes-{recipe_id}",
        container_id="0a1b",
        recipe_id=recipe_id,
        image="x",
        state=state,
        exit_code=None,
        base_url=f"http://127.0.0.1:{port}/v1",
        started_at=None,
        restarts=0,
    )


def facts(
    recipe_id: str = RECIPE,
    *,
    available_gib: float | None = 117,
    total_gib: float | None = None,
    context: int | None = None,
    users: int | None = None,
    recipe: dict | None = None,
    fraction: float | None = None,
    **changes,
) -> CheckFacts:
    """Gather what an idle Spark with everything in place would show; then change it."""
    shelf = catalog()
    chosen = shelf.recipe(recipe_id)
    if fraction is not None:
        serving = chosen.serving.model_copy(update={"gpu_memory_utilization": fraction})
        chosen = chosen.model_copy(update={"serving": serving})
    chosen = chosen.model_copy(update=recipe or {})
    machine = shelf.machine("dgx-spark")
    if total_gib:
        machine = machine.model_copy(update={"mem_total_bytes": round(total_gib * GIB)})
    engine = shelf.engine(chosen.engine)
    request = memory.recipe_request(
        chosen,
        shelf.model(chosen.model),
        engine,
        shelf.october_row(shelf.recipe(recipe_id)),
        context_tokens=context,
        users=users,
    )
    available = None if available_gib is None else round(available_gib * GIB)
    gathered = CheckFacts(
        recipe=chosen,
        engine=engine,
        machine=machine,
        host=host(),
        estimate=memory.estimate(request, machine, available_bytes=available),
        image=image(),
        weights=cached(),
        drafter=cached("x/drafter") if chosen.drafter else None,
        port=8000,
        port_free=True,
        servers=(),
        does_not_run=shelf.does_not_run,
        local_image=False,
        env_set=frozenset({"HF_TOKEN", "NGC_API_KEY"}),
        hub_token=True,
        offline=False,
    )
    return replace(gathered, **changes)


def found(report: CheckReport, name: str) -> list[Finding]:
    """Return the findings of one check."""
    return [finding for finding in report.findings if finding.check == name]


def one(given: CheckFacts, name: str) -> Finding:
    """Return the only finding of one check."""
    findings = found(check(given), name)
    assert 1 == len(findings), findings
    return findings[0]


def test_idle_spark_is_ready():
    """With everything in place the verdict is ready, and warnings do not change it."""
    report = check(facts())
    assert ("ready", RECIPE) == (report.verdict, report.recipe_id)
    assert not [f for f in report.findings if f.level in ("blocker", "unknown")]


@pytest.mark.parametrize("recipe_id", sorted(open_catalog().recipes))
@pytest.mark.parametrize("where", ["spark", "amd64, offline"])
def test_every_recipe_is_judged_and_every_finding_has_its_repair(recipe_id, where):
    """Each recipe of the catalog gets findings, and all that are not ok say what to do."""
    elsewhere = {
        "host": amd64_host(),
        "available_gib": None,
        "image": None,
        "offline": True,
        "weights": None,
        "servers": None,
        "env_set": frozenset(),
        "hub_token": False,
        "local_image": None,
    }
    report = check(facts(recipe_id, **(elsewhere if where != "spark" else {})))
    assert len(report.findings) >= 8
    assert [] == [f for f in report.findings if f.level != "ok" and not f.repair]
    assert [] == [f for f in report.findings if f.check == "does_not_run"]
    assert [] == [f for f in found(report, "engine_flags") if f.level == "blocker"]
    blocked = where != "spark" or recipe_id == LOCAL
    assert ("blocked" if blocked else "ready") == report.verdict


def test_checks_are_named_and_documented():
    """A check is a documented function called check_<fact>, listed once."""
    assert len(CHECKS) == len(set(CHECKS))
    assert [] == [c for c in CHECKS if not c.__name__.startswith("check_") or not c.__doc__]


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        (["ok", "warning"], "ready"),
        (["ok", "unknown"], "unknown"),
        (["unknown", "blocker"], "blocked"),
        ([], "ready"),
    ],
)
def test_verdict(levels, verdict):
    """A blocker blocks; an unknown essential check leaves it open; warnings do neither."""
    findings = [Finding(check="image", level=level, message="m") for level in levels]
    assert verdict == verdict_of(findings)


def test_unknown_that_no_start_hangs_on_is_ready():
    """Not knowing whether a repository is gated does not make a start unknown."""
    assert "ready" == verdict_of([Finding(check="gated", level="unknown", message="m")])


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"port": "ok"}, "ready, nothing is wrong"),
        ({"port": "ok", "disk": "warning"}, "ready, with 1 warning"),
        (
            {"gated": "unknown", "disk": "unknown", "name": "warning"},
            "ready as far as could be seen, with 1 warning; not known: gated, disk",
        ),
        ({"port": "blocker", "image": "unknown"}, "blocked by port, and not known: image"),
        ({"image": "unknown"}, "not known whether it would start: image could not be seen"),
    ],
)
def test_the_summary_never_hides_what_is_not_known(levels, said):
    """A ready that rests on something nobody saw says so, in the same sentence."""
    findings = [Finding(check=name, level=level, message="m") for name, level in levels.items()]
    assert said == summary_of(findings)


# This host


def test_other_machine_says_what_would_block_there():
    """On amd64 without GPU and Docker each of them is named, and the rehearsal offered."""
    report = check(facts(host=amd64_host(), available_gib=None))
    blocked = {f.check for f in report.findings if f.level == "blocker"}
    assert {"platform", "gpu", "docker"} == blocked
    assert f"sparkrecipes rehearse {RECIPE}" in found(report, "platform")[0].repair
    assert "unknown" == found(report, "memory_now")[0].level


@pytest.mark.parametrize(
    ("state", "level", "repair"),
    [
        ("ok", "ok", ""),
        ("missing", "blocker", "apt-get install"),
        ("not_running", "blocker", "systemctl start docker"),
        ("denied", "blocker", "usermod -aG docker"),
        ("unknown", "unknown", "docker info"),
    ],
)
def test_docker_states(state, level, repair):
    """Missing, not running and denied are mended differently."""
    finding = one(facts(host=host(docker=DockerSeen(state=state, gpu_runtime=True))), "docker")
    assert (level, True) == (finding.level, repair in finding.repair)


@pytest.mark.parametrize(
    ("runtime", "level"), [(True, "ok"), (False, "blocker"), (None, "unknown")]
)
def test_c63_gpu_runtime(runtime, level):
    """C63: without the NVIDIA toolkit a start fails; the repair installs and configures it."""
    docker = DockerSeen(state="ok", gpu_runtime=runtime)
    finding = one(facts(host=host(docker=docker)), "gpu_toolkit")
    assert (level, level != "blocker" or "nvidia-ctk runtime configure" in finding.repair) == (
        finding.level,
        True,
    )


@pytest.mark.parametrize(
    ("built", "served", "level"),
    [
        ("13.0.1", "13.0", "ok"),
        ("12.8", "13.0", "ok"),
        ("13.2.0", "13.0", "warning"),
        ("14.0", "13.0", "blocker"),
        (None, "13.0", "unknown"),
        ("13.0", None, "unknown"),
    ],
)
def test_c74_driver_serves_the_cuda_of_the_image(built, served, level):
    """C74: image CUDA 13.2, driver 13.0: `driver 580+` is satisfied and still wrong."""
    given = facts(host=host(cuda_version=served), image=image(cuda_version=built))
    finding = one(given, "cuda")
    assert level == finding.level
    assert level != "warning" or "error 803 or 804, or run without the GPU" in finding.message
    assert level not in ("warning", "blocker") or "older CUDA" in finding.repair


def test_cuda_of_the_image_that_is_here_counts():
    """What Docker has is what runs, whatever the tag means at the registry by now."""
    given = facts(image=image(cuda_version="13.0"), local_image_cuda="14.1")
    assert "blocker" == one(given, "cuda").level
    assert [] == found(check(facts(host=host(gpus=()))), "cuda")


def test_c64_stale_description_of_the_gpu():
    """C64: the CDI file of the driver before the last update: seen before a start fails on it."""
    old = DockerSeen(state="ok", gpu_runtime=True, cdi_driver="575.57.08")
    finding = one(facts(host=host(docker=old)), "gpu_toolkit")
    assert "warning" == finding.level
    assert "575.57.08" in finding.message
    assert "580.95.05" in finding.message
    assert "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml" in finding.repair
    assert "nvidia-ctk cdi list" in finding.repair
    same = DockerSeen(state="ok", gpu_runtime=True, cdi_driver="580.95.05")
    assert "ok" == one(facts(host=host(docker=same)), "gpu_toolkit").level


@pytest.mark.parametrize("recipe_id", sorted(open_catalog().recipes))
def test_c73_no_command_asks_for_the_nvidia_runtime(recipe_id):
    """C73: --runtime nvidia gives error 803 where --gpus all works: ours is always --gpus."""
    argv = render_command(recipe_id).argv
    assert "--gpus" in argv
    assert [] == [word for word in argv if word.startswith("--runtime")]


def test_c73_the_error_itself_is_known():
    """C73: whoever started it otherwise is told what to change."""
    log = (
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). ... Error 803: system has "
        "unsupported display driver / cuda driver combination"
    )
    (found_cause,) = diagnose(log).diagnoses
    assert "cuda_compat_lib_conflict" == found_cause.id
    assert "--gpus all" in found_cause.remedy


def test_machine_without_gpu_needs_no_gpu():
    """A machine file without a GPU asks for neither driver nor toolkit nor fraction."""
    machine = catalog().machine("dgx-spark").model_copy(update={"gpu": None})
    report = check(facts(machine=machine, host=host(gpus=())))
    names = {finding.check for finding in report.findings}
    assert not names & {"gpu", "gpu_toolkit", "start_memory"}


def test_other_gpu_is_a_warning():
    """Another GPU may do, but the recipe was not measured on it."""
    gh200 = GpuSeen(name="GH200", driver="1", compute_capability="9.0", memory_total_bytes=None)
    assert "warning" == one(facts(host=host(gpus=(gh200,))), "gpu").level


def test_c66_port_of_another_of_our_servers():
    """C66: a port that our own server holds: it is named, with how to stop it."""
    other = server("qwen3-8b-fp8-vllm", port=8000)
    finding = one(facts(port_free=False, servers=(other,)), "port")
    assert "blocker" == finding.level
    assert "sparkrecipes-qwen3-8b-fp8-vllm" in finding.message
    assert "sparkrecipes stop qwen3-8b-fp8-vllm" in finding.repair


def test_c67_port_of_a_host_process():
    """C67: a port that is not ours: another is offered, and how to see the owner."""
    finding = one(facts(port_free=False, servers=(server("x", port=8001),)), "port")
    assert "blocker" == finding.level
    assert "--port 8001" in finding.repair
    assert "ss -ltnp" in finding.repair
    assert "publish=8000" in finding.repair


def test_port_of_a_container_that_nobody_listens_for():
    """Without a userland proxy the host's port looks free: the container that has it is named."""
    finding = one(facts(port_free=True, port_holder="the container webui"), "port")
    assert "blocker" == finding.level
    assert "not ours: the container webui" in finding.message


def test_port_of_a_process_that_may_be_seen():
    """Whose it is, where the kernel tells this user."""
    finding = one(facts(port_free=False, port_holder="the process ollama (pid 4711)"), "port")
    assert "the process ollama (pid 4711)" in finding.message


def test_port_that_nobody_could_look_at_is_unknown():
    """Unknown is never free; a container that publishes it is seen all the same."""
    assert "unknown" == check(facts(port_free=None)).verdict
    held = facts(port_free=None, port_holder="the container webui")
    assert "blocker" == one(held, "port").level


def test_only_a_listener_takes_a_port() -> None:
    """An address that this host does not have is no sign that somebody else has its port.

    192.0.2.1 is set aside for documentation: no host has it (RFC 5737).
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port_is_free(port) is False
        assert port_is_free(port, "192.0.2.1") is None
    assert port_is_free(port) is True


@pytest.mark.parametrize(
    ("state", "level"), [("running", "blocker"), ("restarting", "blocker"), ("exited", "warning")]
)
def test_c69_name_of_our_own_container(state, level):
    """C69: our running server of the recipe is in the way; a left-over one can be removed."""
    finding = one(facts(servers=(server(state=state),)), "name")
    assert (level, True) == (finding.level, f"sparkrecipes stop {RECIPE}" in finding.repair)


def test_c69_name_of_a_foreign_container():
    """C69: a container of somebody else has the name: it is named, and never ours to remove."""
    holder = f"sparkrecipes-{RECIPE} (nginx, exited)"
    finding = one(facts(name_holder=holder), "name")
    assert ("blocker", True) == (finding.level, holder in finding.message)
    assert "sparkrecipes stop" not in finding.repair


def test_missing_key_of_the_engine():
    """NIM does not start without NGC_API_KEY: said before the image is pulled."""
    finding = one(facts(NIM, env_set=frozenset()), "secrets")
    assert "blocker" == finding.level
    assert "export NGC_API_KEY=" in finding.repair
    assert "ok" == one(facts(NIM), "secrets").level


# The image


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "ok"),
        ({"platform_ok": False, "digest": None}, "blocker"),
        ({"platform_ok": None}, "unknown"),
        ({"state": "missing", "platform_ok": None}, "blocker"),
        ({"state": "auth_required", "platform_ok": None}, "blocker"),
        ({"state": "bad_credentials", "platform_ok": True}, "blocker"),
        ({"state": "denied", "platform_ok": None}, "blocker"),
        ({"state": "broken", "platform_ok": False}, "blocker"),
        ({"state": "broken", "platform_ok": None}, "unknown"),
        ({"state": "rate_limited", "platform_ok": None}, "unknown"),
        ({"state": "no_network", "platform_ok": None}, "unknown"),
    ],
)
def test_image_states(changes, level):
    """What cannot be pulled blocks; what nobody could see (C19, C24, a limit) stays unknown."""
    finding = one(facts(image=image(**changes)), "image")
    assert (level, True) == (finding.level, level == "ok" or bool(finding.repair))


def test_image_that_docker_has_needs_no_registry():
    """An image that is here for the platform is enough, offline too."""
    given = facts(image=None, offline=True, local_image=True, local_image_platform="linux/arm64")
    assert "ok" == one(given, "image").level


def test_image_that_docker_has_for_another_platform_blocks():
    """C17: Docker pulls an amd64 image on arm64 without a word; a start would fail."""
    given = facts(local_image=True, local_image_platform="linux/amd64")
    assert "blocker" == one(given, "image").level


def test_offline_image_is_unknown():
    """Offline, an image that is not here is unknown, and so is the verdict."""
    assert "unknown" == check(facts(image=None, offline=True)).verdict


@pytest.mark.parametrize(("local", "level"), [(True, "ok"), (False, "blocker"), (None, "unknown")])
def test_local_build(local, level):
    """An image that no registry has is a blocker with how to build it, unless it is here."""
    finding = one(facts(LOCAL, image=None, local_image=local), "image")
    how = catalog().recipe(LOCAL).image.local_build.how
    assert (level, level != "ok") == (finding.level, how in finding.repair)


@pytest.mark.parametrize(
    ("reference", "digest", "seen", "level"),
    [
        ("a/b:v1", DIGEST, DIGEST, "ok"),
        ("a/b:v1", DIGEST, None, "ok"),
        ("a/b:latest", DIGEST, DIGEST, "ok"),
        ("a/b:v1", None, DIGEST, "ok"),
        ("a/b:v1", None, None, "warning"),
        ("a/b:latest", None, DIGEST, "warning"),
        ("a/b:nightly-0123abcd", None, DIGEST, "warning"),
    ],
)
def test_image_pinned(reference, digest, seen, level):
    """C12 and C26: a moving tag is warned of; a checked digest is what will run."""
    own = catalog().recipe(RECIPE).image
    changed = own.model_copy(update={"reference": reference, "digest": digest})
    given = facts(recipe={"image": changed}, image=image(digest=seen))
    assert level == one(given, "image_pinned").level


@pytest.mark.parametrize(
    ("flags", "entrypoint", "level"),
    [
        (("--enable-prefix-caching",), ("vllm", "serve"), "ok"),
        (("--enable-prefix-caching",), ("/usr/local/bin/vllm", "serve"), "ok"),
        (("vllm", "serve", "--enable-prefix-caching"), ("vllm", "serve"), "blocker"),
        (("serve",), None, "blocker"),
        (("--enable-prefix-caching",), ("/opt/nvidia/entrypoint.sh",), "warning"),
    ],
)
def test_c70_entrypoint_doubled(flags, entrypoint, level):
    """C70: flags that repeat the entrypoint, and an entrypoint that is not the engine's."""
    given = facts(recipe={"flags": flags}, image=image(entrypoint=entrypoint))
    assert level == one(given, "entrypoint").level


# Memory


def test_does_not_fit_names_what_does():
    """Too many users for the machine: a blocker, and the number of users that fit."""
    given = facts(context=131072, users=400)
    finding = one(given, "memory")
    assert "blocker" == finding.level
    most = given.estimate.max_users_at_context
    assert most
    assert f"--context 131072 --users {most}" in finding.repair


def test_c31_start_check_against_the_total():
    """C31: 0.5 of 119.56 GiB is wanted, 56.33 are there: refused before the start, 0.46 passes."""
    given = facts(available_gib=59063644 / 2**20, total_gib=119.56, fraction=0.5)
    relaxed = given.estimate.model_copy(update={"min_gpu_memory_utilization": 0.4})
    report = check(replace(given, estimate=relaxed))
    finding = found(report, "start_memory")[0]
    assert ("blocked", "blocker") == (report.verdict, finding.level)
    assert "59.8 GiB" in finding.message
    assert "56.3 GiB" in finding.message
    assert "at most 0.46 (55.0 GiB)" in finding.repair
    assert [] == found(report, "memory_now")
    assert 1 == sum("refuse" in f.message or f.check == "start_memory" for f in report.findings)


def test_c34_largest_fraction_on_an_idle_machine():
    """C34: 0.87 of 121.69 GiB is 105.87; with 101.3 free at most 0.83 passes."""
    given = facts(available_gib=101.3, total_gib=121.69, fraction=0.87)
    relaxed = given.estimate.model_copy(update={"min_gpu_memory_utilization": 0.4})
    finding = one(replace(given, estimate=relaxed), "start_memory")
    assert "blocker" == finding.level
    assert "105.9 GiB" in finding.message
    assert "at most 0.83 (101.0 GiB)" in finding.repair
    assert "drop_caches" not in finding.repair


def test_lower_fraction_that_would_not_serve_is_not_advised():
    """Where even the smallest fraction that serves is not free, lowering is no way out."""
    given = facts(available_gib=40)
    needed = given.estimate.model_copy(update={"min_gpu_memory_utilization": 0.44})
    finding = one(replace(given, estimate=needed), "start_memory")
    assert "does not help" in finding.repair
    assert "set serving" not in finding.repair


def test_barely_enough_at_start_is_a_warning():
    """A fraction that passes by less than free memory moves is warned of."""
    total = catalog().machine("dgx-spark").mem_total_bytes
    given = facts(available_gib=(0.5 * total + 2**20) / GIB)
    assert "warning" == one(given, "start_memory").level


def test_running_servers_are_what_to_stop():
    """Memory that our own servers hold is freed by stopping them: they are named."""
    busy = (server("qwen3-8b-fp8-vllm", port=8001), server(NIM, "exited", 8002))
    finding = one(facts(available_gib=30, servers=busy), "start_memory")
    assert "sparkrecipes stop qwen3-8b-fp8-vllm" in finding.repair
    assert NIM not in finding.repair


def test_whoever_is_in_the_way_is_named():
    """Memory that others hold, whoever started them: names and sizes, the largest first."""
    others = (
        MemoryUser(kind="container", name="webui", host_bytes=40 * GIB, gpu_bytes=None),
        MemoryUser(kind="gpu_process", name="ollama", pid=7, host_bytes=None, gpu_bytes=20 * GIB),
        MemoryUser(kind="gpu_process", name="python3", pid=8, host_bytes=None, gpu_bytes=None),
    )
    live = LiveMemory(
        mem_total_bytes=121 * GIB,
        mem_available_bytes=30 * GIB,
        page_cache_bytes=None,
        swap_total_bytes=None,
        swap_used_bytes=None,
        users=others,
    )
    named = "in the way: webui (40.0 GiB), ollama (20.0 GiB), python3"
    assert named in one(facts(available_gib=30, live=live), "start_memory").message
    tight = facts(live=live)
    changed = tight.estimate.model_copy(update={"verdict_now": "does_not_fit"})
    assert named in one(replace(tight, estimate=changed), "memory_now").message


@pytest.mark.parametrize(
    ("verdict", "level"),
    [("fits", "ok"), ("tight", "warning"), ("does_not_fit", "blocker"), ("unknown", "unknown")],
)
def test_memory_verdicts_become_levels(verdict, level):
    """The estimate's verdicts, for the machine and for now, are the findings' levels."""
    given = facts()
    changed = given.estimate.model_copy(update={"verdict": verdict, "verdict_now": verdict})
    given = replace(given, estimate=changed)
    assert (level, level) == (one(given, "memory").level, one(given, "memory_now").level)


def test_other_settings_start_with_the_fraction_that_serves_them():
    """More users than measured need a larger fraction, and that is what must be free."""
    given = facts(users=5)
    larger = given.estimate.model_copy(update={"min_gpu_memory_utilization": 0.8})
    assert "0.80 x" in one(replace(given, estimate=larger), "start_memory").message


def test_c32_missing_fraction_is_warned_of():
    """C32: a recipe without a fraction gets the release's default, which is said."""
    serving = catalog().recipe(RECIPE).serving.model_copy(update={"gpu_memory_utilization": None})
    report = check(facts(recipe={"serving": serving}))
    warned = [f for f in found(report, "estimate") if "gpu_memory_utilization" in f.message]
    assert 1 == len(warned)
    assert "0.92" in warned[0].message
    assert "0.92 x" in found(report, "start_memory")[0].message


def test_c44_large_shared_memory_is_warned_of():
    """C44: 64 GiB of shared memory come out of the same pool."""
    messages = [f.message for f in found(check(facts()), "estimate")]
    assert 1 == sum("shm-size" in message for message in messages)


# Weights and disk


@pytest.mark.parametrize(
    ("weights", "level"),
    [
        (cached(), "ok"),
        (None, "warning"),
        (cached(complete=False, problems=("model-2.safetensors missing",)), "warning"),
        (cached(complete=None), "warning"),
    ],
)
def test_weights_present_and_whole(weights, level):
    """Missing weights are no blocker: the repair is the download."""
    finding = one(facts(weights=weights), "weights")
    assert (level, level != "ok") == (
        finding.level,
        f"sparkrecipes download {RECIPE}" in finding.repair,
    )


def test_drafter_is_looked_at_too():
    """A recipe with a drafter needs both repositories."""
    report = check(facts(EAGLE, drafter=None))
    assert "warning" == found(report, "drafter")[0].level
    assert [] == found(check(facts()), "drafter")


@pytest.mark.parametrize(
    ("wanted", "level"), [(None, "warning"), (COMMIT, "ok"), ("c" * 40, "warning")]
)
def test_revision(wanted, level):
    """An unpinned revision and another one than pinned are warned of."""
    source = WeightsSource(repo="nvidia/Qwen3.6-35B-A3B-NVFP4", revision=wanted)
    finding = one(facts(recipe={"weights": source}), "weights_revision")
    assert level == finding.level
    assert wanted is not None or f"revision: {COMMIT}" in finding.repair


@pytest.mark.parametrize(
    ("changes", "levels"),
    [
        ({"gated": True, "weights": None}, ["blocker"]),
        ({"gated": None, "weights": None}, ["unknown"]),
        ({"gated": False, "weights": None}, []),
        ({"gated": True}, []),
        ({"gated": True, "weights": None, "hub_token": True}, []),
        ({"gated": True, "weights": None, "download_bytes": 7}, []),
    ],
)
def test_gated_repository(changes, levels):
    """A gated repository needs a token, unless it is here, or the Hub itself gives its files."""
    given = facts(**{"hub_token": False, **changes})
    findings = found(check(given), "gated")
    assert levels == [finding.level for finding in findings]
    assert all("HF_TOKEN" in finding.repair for finding in findings)


@pytest.mark.parametrize(
    ("changes", "level", "said"),
    [
        ({"download_bytes": 24 * GB}, "ok", "24.0 GB to fetch"),
        ({"download_bytes": 0}, "ok", "all here"),
        (
            {"hub_problem": HubProblem("gated_no_token", "it is gated", "hf auth login", True)},
            "blocker",
            "it is gated",
        ),
        (
            {"hub_problem": HubProblem("no_network", "no answer", "check the network", False)},
            "unknown",
            "not known: no answer",
        ),
    ],
)
def test_what_the_hub_says(changes, level, said):
    """The Hub's own answer: what is to be fetched, a no with its repair, or nothing known."""
    finding = one(facts(weights=None, **changes), "hub")
    assert (level, True) == (finding.level, said in finding.message)
    assert level == "ok" or finding.repair
    assert [] == found(check(facts()), "hub")


def disks(weights_free, docker_free, total=(1000 * GB, 400 * GB)) -> HostReport:
    """Describe a host with this much room."""
    return host(
        disks=(
            DiskSpace(what="weights", path="/w", free_bytes=weights_free, total_bytes=total[0]),
            DiskSpace(what="docker", path="/d", free_bytes=docker_free, total_bytes=total[1]),
        )
    )


@pytest.mark.parametrize(
    ("weights_free", "docker_free", "levels"),
    [
        (900 * GB, 300 * GB, ["ok", "ok"]),
        (5 * GB, 300 * GB, ["blocker", "ok"]),
        (900 * GB, 9 * GB, ["ok", "blocker"]),
        (900 * GB, 20 * GB, ["ok", "warning"]),
        (None, None, ["unknown", "unknown"]),
    ],
)
def test_disk(weights_free, docker_free, levels):
    """Room for the weights and for the image; between the bounds it is a warning."""
    given = facts(host=disks(weights_free, docker_free), weights=None)
    assert levels == [finding.level for finding in found(check(given), "disk")]


def test_disk_that_both_share_is_counted_once():
    """C53: weights and image on one file system must fit together."""
    same = disks(60 * GB, 60 * GB, (500 * GB, 500 * GB))
    alone = disks(60 * GB, 60 * GB)
    big = {"weights": None, "download_bytes": 50 * GB}
    assert ["ok", "ok"] == [f.level for f in found(check(facts(host=alone, **big)), "disk")]
    finding = one(facts(host=same, **big), "disk")
    assert ("warning", True) == (finding.level, "60.0 to 84.0 GB" in finding.message)


def test_disk_counts_only_what_is_missing():
    """What is in the cache or in Docker already needs no room."""
    given = facts(host=disks(0, 0), local_image=True)
    assert ["ok", "ok"] == [finding.level for finding in found(check(given), "disk")]


def test_unknown_sizes_are_unknown():
    """A size that nobody knows is not room enough, but no start hangs on it."""
    bounds = {**facts().estimate.bounds, "weights_bytes": None}
    given = facts(weights=None, image=image(compressed_bytes=None))
    given = replace(given, estimate=given.estimate.model_copy(update={"bounds": bounds}))
    report = check(given)
    assert ["unknown", "unknown"] == [finding.level for finding in found(report, "disk")]
    assert "ready" == report.verdict
    assert "not known: disk" in report.summary


def test_a_size_that_is_not_known_is_asked_for():
    """Nobody is told to make room where only a size is unknown: that is what is to be found out."""
    given = facts(image=image(compressed_bytes=None))
    finding = found(check(given), "disk")[1]
    reference = given.recipe.image.reference
    assert f"ask for the size: sparkrecipes image {reference}" == finding.repair
    offline = found(check(replace(given, offline=True)), "disk")[1]
    assert offline.repair.startswith("with a network and without --offline, ask for the size")


def test_known_part_of_an_unknown_size_can_be_too_much():
    """What is known to be needed blocks, although the rest is not known."""
    same = disks(20 * GB, 20 * GB, (500 * GB, 500 * GB))
    given = facts(host=same, weights=None, download_bytes=50 * GB, image=None)
    finding = one(given, "disk")
    assert ("blocker", True) == (finding.level, "at least 50.0 GB" in finding.message)


def test_nim_weights_go_into_docker():
    """NIM fetches its weights into a volume: Docker's disk must hold both."""
    given = facts(NIM, host=disks(1 * GB, 15 * GB), weights=None)
    levels = [finding.level for finding in found(check(given), "disk")]
    assert ["ok", "blocker"] == levels


# The recipe


def test_known_not_to_run():
    """C14's kind: what is known not to run is a blocker with what to do instead."""
    entry = DoesNotRunEntry(
        title="T", model="qwen3.6-35b-a3b", users=4, kind="engine", why="W", remedy="R", source="S"
    )
    finding = one(facts(does_not_run=(entry,)), "does_not_run")
    assert ("blocker", "R") == (finding.level, finding.repair)
    assert [] == found(check(facts(does_not_run=(entry,), users=3)), "does_not_run")


def test_unknown_flag_blocks_and_unchecked_release_is_unknown():
    """A flag that the release does not know ends a start after minutes: said at once."""
    flags = ("--enable-prefix-cachingg",)
    report = check(facts(recipe={"flags": flags}))
    assert ("blocked", "blocker") == (report.verdict, found(report, "engine_flags")[0].level)
    assert "--enable-prefix-caching" in found(report, "engine_flags")[0].repair
    other = one(facts(recipe={"engine_version": "0.1.2"}), "engine_flags")
    assert "unknown" == other.level


def test_foreign_code_is_shown_before_anything_runs():
    """trust_remote_code runs code of the repository: said, with whether that is pinned."""
    finding = one(facts(), "foreign_code")
    assert "warning" == finding.level
    assert "--trust-remote-code" in finding.message
    assert "unpinned" in finding.message
    assert [] == found(check(facts("qwen3-8b-fp8-vllm")), "foreign_code")


def test_local_build_is_data():
    """The patched recipe says itself how its image is made."""
    assert isinstance(catalog().recipe(LOCAL).image.local_build, LocalBuild)
