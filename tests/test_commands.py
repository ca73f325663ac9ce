"""The commands: small recipes made here, and one golden text for every shipped recipe."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkrecipes.catalog import open_catalog
from sparkrecipes.commands import (
    CATALOG_LABEL,
    DIGEST_LABEL,
    LABEL,
    SETTINGS_LABEL,
    MountedWeights,
    container_name,
    render,
)
from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.schema.engine import Engine, FlagNames
from sparkrecipes.schema.machine import Gpu, Machine
from sparkrecipes.schema.recipe import (
    LocalBuild,
    Recipe,
    RecipeImage,
    Serving,
    Speculative,
    WeightsSource,
)
from sparkrecipes.schema.serving import Command
from tests.support import golden_commands

SHA = "a" * 40
DIGEST = "sha256:" + "d" * 64
ROOT = Path("/home/spark/.cache/huggingface/hub")
TARGET = MountedWeights(ROOT / "models--acme--tiny", SHA)
DRAFTER = MountedWeights(ROOT / "models--acme--draft", "b" * 40)
MOUNT = f"type=bind,source={ROOT}/models--acme--tiny,target=/weights/models--acme--tiny,readonly"

FLAGS = FlagNames(
    context_tokens="--max-model-len",
    users="--max-num-seqs",
    kv_cache_dtype="--kv-cache-dtype",
    gpu_memory_utilization="--gpu-memory-utilization",
    served_model_name="--served-model-name",
    speculative="--speculative-config",
)
VLLM = Engine(
    id="vllm",
    title="vLLM",
    arguments="command",
    model_argument=True,
    flags=FLAGS,
    container_port=8000,
    listen_flags=("--host=0.0.0.0", "--port=8000"),
    weights_mount="/weights",
    optional_secrets=("VLLM_API_KEY",),
    health_path="/health",
    models_path="/v1/models",
    chat_path="/v1/chat/completions",
    metrics_path="/metrics",
    sources=("a test",),
)
NIM = VLLM.model_copy(
    update={
        "id": "nim",
        "title": "NIM",
        "arguments": "env",
        "arguments_env": "NIM_PASSTHROUGH_ARGS",
        "model_argument": False,
        "listen_flags": (),
        "cache_volume": "/opt/nim/.cache",
        "secrets": ("NGC_API_KEY",),
        "optional_secrets": (),
    }
)
SPARK = Machine(
    id="dgx-spark",
    title="DGX Spark",
    platform="linux/arm64",
    gpu=Gpu(name="GB10", compute_capability="12.1", docker_gpus="all"),
    mem_total_bytes=130_663_165_952,
    host_reserve_bytes=5 * 2**30,
    unified_memory=True,
    memory_bandwidth_gb_s=273.0,
    sources=("a test",),
)
PLAIN_HOST = SPARK.model_copy(update={"platform": "linux/amd64", "gpu": None})
RECIPE = Recipe(
    id="tiny-vllm",
    title="Tiny on vLLM",
    model="tiny",
    quant="bf16",
    weights=WeightsSource(repo="acme/tiny", revision=SHA),
    image=RecipeImage(reference="vllm/vllm-openai:v0.31.0"),
    engine="vllm",
    engine_version="0.31.0",
    served_model_name="tiny",
    serving=Serving(
        context_tokens=1024, users=4, kv_cache_dtype="fp8", gpu_memory_utilization=0.35
    ),
    flags=("--enable-prefix-caching", '--limit-mm-per-prompt={"image":4}'),
    env={"HF_HUB_OFFLINE": "1", "A_FIRST": "x y"},
    shm_size="16g",
    startup_timeout_s=600,
    capabilities=("text",),
    sources=("a test",),
)
NIM_RECIPE = RECIPE.model_copy(
    update={
        "id": "tiny-nim",
        "engine": "nim",
        "weights": None,
        "image": RecipeImage(reference="nvcr.io/nim/acme/tiny:2.0.9"),
    }
)


def made(recipe: Recipe = RECIPE, engine: Engine = VLLM, **changes: Any) -> Command:
    """Render a recipe with its own settings, except for what the test changes."""
    options: dict[str, Any] = {
        "weights": TARGET if recipe.weights else None,
        "drafter": DRAFTER if recipe.drafter else None,
        "cache_root": ROOT,
        "context_tokens": recipe.serving.context_tokens,
        "users": recipe.serving.users,
        "gpu_memory_utilization": recipe.serving.gpu_memory_utilization,
        "catalog_version": "1.2.3+abc",
    }
    machine = changes.pop("machine", SPARK)
    return render(recipe, engine, machine, **{**options, **changes})


def changed(**fields: Any) -> Recipe:
    """Return the recipe with other fields."""
    return RECIPE.model_copy(update=fields)


def unchecked_image(reference: str) -> RecipeImage:
    """Return an image that passed no validation, as a hostile caller could build it."""
    return RecipeImage.model_construct(reference=reference, digest=None, local_build=None)


def after(argv: tuple[str, ...], option: str) -> list[str]:
    """List the items that follow an option, each time it stands."""
    return [argv[i + 1] for i, item in enumerate(argv) if item == option]


def test_the_whole_command_of_a_small_recipe():
    """Every argument of `docker run`, in order, each its own item."""
    command = made()
    assert (
        *("docker", "run", "--detach", "--name", "sparkrecipes-tiny-vllm"),
        *("--label", "org.sparkrecipes.catalog=1.2.3+abc"),
        *("--label", "org.sparkrecipes.recipe=tiny-vllm"),
        *("--label", "org.sparkrecipes.settings=5b19ecadbf65"),
        *("--gpus", "all", "--platform", "linux/arm64", "--shm-size", "16g"),
        *("-p", "127.0.0.1:8000:8000", "-e", "A_FIRST=x y", "-e", "HF_HUB_OFFLINE=1"),
        *("--mount", MOUNT, "--restart", "no", "--log-driver", "json-file"),
        *("--log-opt", "max-size=50m", "--log-opt", "max-file=3"),
        "vllm/vllm-openai:v0.31.0",
        f"/weights/models--acme--tiny/snapshots/{SHA}",
        *("--host=0.0.0.0", "--port=8000", "--served-model-name=tiny", "--max-model-len=1024"),
        *("--max-num-seqs=4", "--kv-cache-dtype=fp8", "--gpu-memory-utilization=0.35"),
        *("--enable-prefix-caching", '--limit-mm-per-prompt={"image":4}'),
    ) == command.argv
    assert command.argv == tuple(shlex.split(command.shell))
    assert ("sparkrecipes-tiny-vllm", "http://127.0.0.1:8000") == (
        command.container_name,
        command.base_url,
    )
    assert container_name("x") == "sparkrecipes-x"
    assert LABEL == "org.sparkrecipes.recipe"


def labels(command: Command) -> dict[str, str]:
    """The labels of a command, by name."""
    return dict(label.split("=", 1) for label in after(command.argv, "--label"))


def test_the_labels_say_recipe_catalog_and_digest():
    """What runs can be traced: the digest is a label where it is known, and only then."""
    assert {LABEL, CATALOG_LABEL, SETTINGS_LABEL} == set(labels(made()))
    told = labels(made(image_digest=DIGEST))
    assert ("tiny-vllm", "1.2.3+abc", DIGEST) == (
        told[LABEL],
        told[CATALOG_LABEL],
        told[DIGEST_LABEL],
    )
    pinned = RecipeImage(reference=f"vllm/vllm-openai:v1@{DIGEST}")
    assert DIGEST == labels(made(changed(image=pinned)))[DIGEST_LABEL]


NINJA = VLLM.model_copy(update={"compile_jobs_env": "MAX_JOBS"})


def test_compile_jobs_are_set_and_marked_as_not_the_recipes():
    """The variable, its label and `added_env`; what runs without it has the same settings."""
    command = made(engine=NINJA, compile_jobs=3)
    assert ["A_FIRST=x y", "HF_HUB_OFFLINE=1", "MAX_JOBS=3"] == after(command.argv, "-e")
    assert {"MAX_JOBS": "3"} == command.added_env
    assert "MAX_JOBS" == labels(command)["org.sparkrecipes.added-env"]
    assert labels(made())[SETTINGS_LABEL] == labels(command)[SETTINGS_LABEL]


@pytest.mark.parametrize("format", ["docker", "compose", "systemd", "sparkrun", "kubernetes"])
def test_compile_jobs_are_set_in_every_format(format: str):
    """Each text has the variable and says whose it is; a file of several nodes as well."""
    nodes = 2 if format == "kubernetes" else None
    command = made(engine=NINJA, compile_jobs=3, format=format, nodes=nodes)
    assert {"MAX_JOBS": "3"} == command.added_env
    assert "MAX_JOBS" in command.shell.replace("MAX_JOBS", "", 1)
    assert "added-env" in command.shell.replace("_", "-")
    assert "MAX_JOBS" not in made(engine=NINJA, format=format, nodes=nodes).shell


def test_compile_jobs_of_the_recipe_go_before_ours():
    """Its own number stands, nothing is marked; an engine without the variable gets none."""
    own = changed(env={"MAX_JOBS": "1"})
    command = made(own, engine=NINJA, compile_jobs=3)
    assert (["MAX_JOBS=1"], {}) == (after(command.argv, "-e"), command.added_env)
    assert "org.sparkrecipes.added-env" not in labels(command)
    assert made() == made(compile_jobs=3)


def test_the_settings_label_changes_with_what_the_engine_is_given():
    """Arguments, variables and address count; image and catalog have labels of their own."""
    same = labels(made())[SETTINGS_LABEL]
    others = (
        made(context_tokens=2048),
        made(port=8001),
        made(changed(env={"A": "b"})),
        made(NIM_RECIPE, NIM),
        made(NIM_RECIPE, NIM, users=2),
    )
    assert 6 == len({same, *(labels(other)[SETTINGS_LABEL] for other in others)})
    alike = (made(image_digest=DIGEST), made(catalog_version="2"), made(set_env=("VLLM_API_KEY",)))
    assert {same} == {labels(other)[SETTINGS_LABEL] for other in alike}


def test_safe_defaults_hold_for_every_engine():
    """Loopback, no host network, no host IPC, no privileges, no policy that hides a crash loop."""
    for command in (made(), made(NIM_RECIPE, NIM)):
        assert not {"--privileged", "--network", "--net", "--ipc", "--pid", "--cap-add", "-v"} & {
            item.partition("=")[0] for item in command.argv
        }
        assert ["127.0.0.1:8000:8000"] == after(command.argv, "-p")
        assert ["no"] == after(command.argv, "--restart")


def test_a_machine_without_a_gpu_gets_none():
    """The GPU option and the platform are the machine's, not ours."""
    argv = made(machine=PLAIN_HOST).argv
    assert "--gpus" not in argv
    assert ["linux/amd64"] == after(argv, "--platform")


def test_the_digest_replaces_the_tag():
    """A known digest is run, whatever the reference looks like; without one a warning says so."""
    cases = {
        "vllm/vllm-openai:v0.31.0": "vllm/vllm-openai",
        "127.0.0.1:5000/eng/multi:1.0": "127.0.0.1:5000/eng/multi",
        "localhost:5000/multi": "localhost:5000/multi",
        "vllm/vllm-openai:v1@sha256:" + "e" * 64: "vllm/vllm-openai",
    }
    for reference, repository in cases.items():
        recipe = changed(image=RecipeImage(reference=reference))
        command = made(recipe, image_digest=DIGEST)
        assert f"{repository}@{DIGEST}" in command.argv
        assert () == command.warnings
    assert "is named by its tag" in made().warnings[0]


def test_an_image_that_is_built_here_is_never_pulled():
    """Nobody can publish an image of that name and have it run; the digest is left alone."""
    image = RecipeImage(
        reference="patched:latest", local_build=LocalBuild(how="docker build .", source="a test")
    )
    command = made(changed(image=image), image_digest=DIGEST)
    assert ["never"] == after(command.argv, "--pull")
    assert "patched:latest" in command.argv
    assert ("no registry has patched:latest, it is built here: docker build .",) == command.warnings


def test_the_whole_repository_is_mounted_not_the_snapshot():
    """C58: a snapshot holds links into ../../blobs, so that the mount must hold both."""
    assert [MOUNT] == after(made().argv, "--mount")


def test_the_shared_store_is_mounted_where_links_expect_it():
    """Links of hub 2.4 lead from the repository's blobs to ../../blobs of the whole cache."""
    weights = MountedWeights(TARGET.folder, SHA, shared_blobs=True)
    store = f"type=bind,source={ROOT}/blobs,target=/weights/blobs,readonly"
    assert [MOUNT, store] == after(made(weights=weights).argv, "--mount")
    recipe = changed(drafter=WeightsSource(repo="acme/draft"))
    both = made(
        recipe, weights=weights, drafter=MountedWeights(DRAFTER.folder, "b" * 40, shared_blobs=True)
    )
    assert 1 == after(both.argv, "--mount").count(store)


@pytest.mark.parametrize("shared", [False, True])
def test_links_hold_at_the_places_where_they_are_mounted(tmp_path, shared):
    """C58: with each mount's source laid out at its target, the engine's path leads to content."""
    cache, inside = tmp_path / "hub", tmp_path / "container"
    folder = cache / "models--acme--tiny"
    snapshot = folder / "snapshots" / SHA
    for place in (folder / "blobs", snapshot, cache / "blobs" / "cc"):
        place.mkdir(parents=True)
    blob = folder / "blobs" / "e1"
    if shared:
        (cache / "blobs" / "cc" / "c1").write_text("weights")
        blob.symlink_to("../../blobs/cc/c1")
    else:
        blob.write_text("weights")
    (snapshot / "model.safetensors").symlink_to("../../blobs/e1")
    command = made(weights=MountedWeights(folder, SHA, shared_blobs=shared), cache_root=cache)
    for mount in after(command.argv, "--mount"):
        fields = dict(part.partition("=")[::2] for part in mount.split(","))
        target = inside / fields["target"].lstrip("/")
        shutil.copytree(fields["source"], target, symlinks=True)
    shutil.rmtree(cache)
    model = command.argv[command.argv.index("vllm/vllm-openai:v0.31.0") + 1]
    assert "weights" == (inside / model.lstrip("/") / "model.safetensors").read_text()


def test_the_entrypoint_is_not_doubled():
    """C70: vLLM's image starts ``vllm serve`` itself; arguments begin with the model's folder."""
    catalog = open_catalog()
    for recipe in catalog.recipes.values():
        argv = made(recipe, catalog.engine(recipe.engine)).argv
        rest = argv[argv.index(recipe.image.reference) + 1 :]
        engine = catalog.engine(recipe.engine)
        assert engine.command == rest[: len(engine.command)]
        rest = rest[len(engine.command) :]
        assert not {"vllm", "serve", "nim-serve"} & set(rest)
        folder = rest[0].removeprefix(f"{engine.model_flag}=") if rest else ""
        assert not rest or folder.startswith("/weights/models--")


def test_the_cache_of_the_caller_is_mounted():
    """C59: the mount is where the weights are, for any cache; nobody's home is assumed."""
    elsewhere = MountedWeights(Path("/data/hf/models--acme--tiny"), SHA)
    (mount,) = after(made(weights=elsewhere).argv, "--mount")
    assert "source=/data/hf/models--acme--tiny" in mount.split(",")


@pytest.mark.parametrize(
    ("pinned", "cached", "revision", "warning"),
    [
        (SHA, True, SHA, None),
        (
            None,
            True,
            SHA,
            f"the recipe pins no revision of acme/tiny: {SHA} is the one in the cache",
        ),
        (
            SHA,
            False,
            SHA,
            "acme/tiny is not in the cache: run sparkrecipes download tiny-vllm",
        ),
        (
            None,
            False,
            "REVISION",
            "acme/tiny is not in the cache: run sparkrecipes download tiny-vllm",
        ),
    ],
)
def test_the_revision_is_the_recipes_else_the_cached_one_else_a_word(
    pinned, cached, revision, warning
):
    """What is not pinned or not there is said, with the command that mends it."""
    recipe = changed(weights=WeightsSource(repo="acme/tiny", revision=pinned))
    command = made(recipe, weights=TARGET if cached else None, image_digest=DIGEST)
    assert f"/weights/models--acme--tiny/snapshots/{revision}" in command.argv
    assert ((warning,) if warning else ()) == command.warnings
    assert [MOUNT] == after(command.argv, "--mount")


def test_the_drafter_reaches_the_speculative_option():
    """Its snapshot's path is the model of the option, and its repository is mounted too."""
    recipe = changed(
        drafter=WeightsSource(repo="acme/draft", revision="b" * 40),
        speculative=Speculative(method="dspark", num_speculative_tokens=3),
        flags=("--chat-template=<weights>/chat_template.jinja",),
    )
    command = made(recipe, image_digest=DIGEST)
    (option,) = (a for a in command.argv if a.startswith("--speculative-config="))
    path = "/weights/models--acme--draft/snapshots/" + "b" * 40
    expected = {"method": "dspark", "num_speculative_tokens": 3, "model": path}
    assert expected == json.loads(option.partition("=")[2])
    assert 2 == len(after(command.argv, "--mount"))
    assert f"--chat-template=/weights/models--acme--tiny/snapshots/{SHA}/chat_template.jinja" in (
        command.argv
    )


def test_a_flag_cannot_name_a_folder_that_is_not_there():
    """``<drafter>`` without a drafter is refused, not passed on."""
    with pytest.raises(CatalogError) as caught:
        made(changed(flags=("--model-loader=<drafter>",)))
    assert "no_such_folder" == caught.value.code


def test_other_settings_than_measured_are_set():
    """Context, users and the fraction given reach the engine; no fraction, no flag."""
    command = made(context_tokens=512, users=1, gpu_memory_utilization=0.5)
    assert {"--max-model-len=512", "--max-num-seqs=1", "--gpu-memory-utilization=0.5"} <= set(
        command.argv
    )
    assert 0.5 == command.gpu_memory_utilization
    without = made(gpu_memory_utilization=None)
    assert not [a for a in without.argv if a.startswith("--gpu-memory-utilization")]


def test_a_nim_keeps_its_own_cache_and_gets_arguments_by_variable():
    """Named volume, key by name, engine arguments in its own variable, nothing after the image."""
    command = made(NIM_RECIPE, NIM, set_env={"NGC_API_KEY"}, image_digest=DIGEST)
    assert ["type=volume,source=sparkrecipes-nim-cache,target=/opt/nim/.cache"] == after(
        command.argv, "--mount"
    )
    env = after(command.argv, "-e")
    assert "NGC_API_KEY" == env[-1]
    (passed,) = (e for e in env if e.startswith("NIM_PASSTHROUGH_ARGS="))
    arguments = shlex.split(passed.partition("=")[2])
    assert "--max-model-len=1024" in arguments
    assert '--limit-mm-per-prompt={"image":4}' in arguments
    assert command.argv[-1].startswith("nvcr.io/nim/acme/tiny@sha256:")
    assert () == command.warnings
    missing = made(NIM_RECIPE, NIM, image_digest=DIGEST).warnings
    assert ("NGC_API_KEY is not set: the container needs it, export it first",) == missing


def test_secrets_pass_by_name_only_and_only_when_set():
    """A value never stands in the command; a key that is not set is not asked for."""
    assert "VLLM_API_KEY" not in made().argv
    argv = made(set_env={"VLLM_API_KEY", "HF_TOKEN", "PATH"}).argv
    assert "VLLM_API_KEY" == after(argv, "-e")[-1]
    assert "HF_TOKEN" not in argv


@pytest.mark.parametrize(
    ("bind", "published", "url"),
    [
        ("127.0.0.1", "127.0.0.1:9000:8000", "http://127.0.0.1:9000"),
        ("0.0.0.0", "0.0.0.0:9000:8000", "http://127.0.0.1:9000"),
        ("192.168.1.5", "192.168.1.5:9000:8000", "http://192.168.1.5:9000"),
        ("::1", "[::1]:9000:8000", "http://[::1]:9000"),
        ("::", "[::]:9000:8000", "http://[::1]:9000"),
    ],
)
def test_the_port_is_published_where_asked(bind, published, url):
    """Any address of the host, and the URL that clients on it use."""
    command = made(bind=bind, port=9000)
    assert ([published], url) == (after(command.argv, "-p"), command.base_url)


def test_an_open_port_warns_and_wants_a_key():
    """Without a key it says so; with one it says who must send it; loopback says nothing."""
    silent = made(image_digest=DIGEST)
    open_ = made(image_digest=DIGEST, bind="0.0.0.0")
    keyed = made(image_digest=DIGEST, bind="0.0.0.0", set_env={"VLLM_API_KEY"})
    nim = made(NIM_RECIPE, NIM, image_digest=DIGEST, bind="0.0.0.0", set_env={"NGC_API_KEY"})
    assert () == silent.warnings
    assert "without a key: set VLLM_API_KEY first" in open_.warnings[0]
    assert "clients must send the key in VLLM_API_KEY" in keyed.warnings[0]
    assert "VLLM_API_KEY" in keyed.argv
    assert "NIM asks for no key" in nim.warnings[0]


def test_trusted_code_is_said():
    """Code of a repository runs only with a warning."""
    command = made(changed(flags=("--trust-remote-code",)), image_digest=DIGEST)
    expected = "--trust-remote-code runs Python code of acme/tiny inside the container"
    assert (expected,) == command.warnings


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("format", "podman", "misuse"),
        ("port", 0, "bad_port"),
        ("port", 65536, "bad_port"),
        ("bind", "localhost", "bad_address"),
        ("bind", "127.0.0.1 --privileged", "bad_address"),
        ("bind", "fe80::1%eth0", "bad_address"),
        ("bind", "", "bad_address"),
    ],
)
def test_a_wrong_option_is_misuse(option, value, code):
    """A format, port or address that cannot be is refused with what can."""
    with pytest.raises(Misuse) as caught:
        made(**{option: value})
    assert code == caught.value.code
    assert caught.value.repair


@pytest.mark.parametrize(
    "fields",
    [
        {"image": unchecked_image("--privileged")},
        {"image": unchecked_image("-v/:/host")},
        {"image": unchecked_image("vllm/vllm-openai:v1 --privileged")},
        {"image": unchecked_image("vllm/vllm-openai:v1\n--privileged")},
        {"flags": ("--a\x00b",)},
        {"flags": ("--a\nExecStartPre=/bin/sh",)},
        {"env": {"A": "1\n2"}},
        {"title": "Tiny\n[Service]\nExecStart=/bin/sh"},
        {"served_model_name": "tiny\u2028x"},
        {"env": {"NGC_API_KEY": "nvapi-1"}},
        {"env": {"HF_TOKEN": "hf_1"}},
        {"flags": ("--api-key=sk-1",)},
        {"flags": ("--api-key", "sk-1")},
    ],
)
@pytest.mark.parametrize("format", ["docker", "compose", "systemd"])
def test_hostile_values_are_refused(fields, format):
    """An image that is an option, line breaks, NUL and written secrets make no command."""
    with pytest.raises(CatalogError) as caught:
        made(changed(**fields), format=format)
    assert "unsafe_value" == caught.value.code
    assert not {"hf_1", "nvapi-1", "sk-1"} & set(caught.value.message.replace("'", " ").split())


@pytest.mark.parametrize("text", ["-v", "--privileged", "$(id)", "`id`", "a b", "'", '"', "${X}"])
def test_odd_values_stay_values(text):
    """A name that looks like an option or shell code is still one argument, in its place."""
    recipe = changed(served_model_name=text, env={"A": text})
    argv = made(recipe).argv
    assert f"--served-model-name={text}" in argv[argv.index("vllm/vllm-openai:v0.31.0") :]
    assert [f"A={text}"] == after(argv, "-e")
    assert argv == tuple(shlex.split(made(recipe).shell))


def test_a_cache_whose_path_has_commas_is_mounted_whole():
    """Docker reads --mount as CSV; a comma or quote in a path is quoted by its rules."""
    odd = MountedWeights(Path('/data/a,b"c/models--acme--tiny'), SHA)
    (mount,) = after(made(weights=odd).argv, "--mount")
    assert '"source=/data/a,b""c/models--acme--tiny"' in mount


def test_compose_says_the_same():
    """The Compose file has the same engine arguments, port, mounts, GPU, labels and policy."""
    command = made(format="compose")
    document = yaml.safe_load(command.shell)
    (name, service), *_ = document["services"].items()
    argv = made().argv
    assert argv == command.argv
    assert "sparkrecipes-tiny-vllm" == name == service["container_name"]
    assert list(argv[argv.index("vllm/vllm-openai:v0.31.0") + 1 :]) == service["command"]
    assert ["127.0.0.1:8000:8000"] == service["ports"]
    assert ["A_FIRST=x y", "HF_HUB_OFFLINE=1"] == service["environment"]
    assert ("linux/arm64", "16g", "no") == (
        service["platform"],
        service["shm_size"],
        service["restart"],
    )
    assert {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]} == service["deploy"][
        "resources"
    ]["reservations"]["devices"][0]
    (volume,) = service["volumes"]
    assert (str(TARGET.folder), True, False) == (
        volume["source"],
        volume["read_only"],
        volume["bind"]["create_host_path"],
    )
    assert {"max-size": "50m", "max-file": "3"} == service["logging"]["options"]
    assert "tiny-vllm" == service["labels"][LABEL]
    assert "deploy" not in made(format="compose", machine=PLAIN_HOST).shell


def test_compose_of_a_nim_names_its_volume_and_its_key():
    """The volume keeps its own name, and the key stands without a value."""
    document = yaml.safe_load(made(NIM_RECIPE, NIM, format="compose").shell)
    (service,) = document["services"].values()
    assert {"sparkrecipes-nim-cache": {"name": "sparkrecipes-nim-cache"}} == document["volumes"]
    assert "NGC_API_KEY" == service["environment"][-1]
    assert "command" not in service


def test_compose_takes_no_dollar_for_a_variable():
    """Compose fills ${X} in; ours stay as they are."""
    service = yaml.safe_load(made(changed(env={"A": "${HOME} $x"}), format="compose").shell)
    assert ["A=$${HOME} $$x"] == service["services"]["sparkrecipes-tiny-vllm"]["environment"]


def unit(text: str) -> dict[str, list[str]]:
    """Read a unit file's settings; a name may stand several times."""
    settings: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            settings.setdefault(name, []).append(value)
    return settings


def systemd_split(line: str) -> list[str]:
    r"""Split a command line by the rules of systemd.service(5): quotes, \\, %% and $$."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]


def test_the_unit_runs_the_same_container_in_the_foreground():
    """The same arguments, except that systemd itself sees the container end; no restart."""
    command = made(format="systemd")
    settings = unit(command.shell)
    expected = [{"--detach": "--rm"}.get(item, item) for item in command.argv]
    assert ["/usr/bin/docker", *expected[1:]] == systemd_split(settings["ExecStart"][0])
    assert ["/usr/bin/docker stop sparkrecipes-tiny-vllm"] == settings["ExecStop"]
    assert (["no"], ["exec"]) == (settings["Restart"], settings["Type"])
    assert "EnvironmentFile" not in settings


def test_the_unit_escapes_what_systemd_would_expand():
    """Percent, dollar, quotes and backslashes arrive as they are; a lone ; ends no command."""
    odd = ("--a=50%h", "--b=${HOME} $x", '--c={"k": "\\\\d"}', ";", "'x'")
    command = made(changed(flags=odd, title="100% tiny"), format="systemd")
    line = unit(command.shell)["ExecStart"][0]
    assert list(odd) == systemd_split(line)[-len(odd) :]
    assert '"--a=50%%h" "--b=$${HOME} $$x"' in line
    assert '";"' in line
    assert ["100%% tiny"] == unit(command.shell)["Description"]


def test_the_unit_of_a_nim_reads_its_key_from_a_file():
    """The key is in no unit, which all can read."""
    command = made(NIM_RECIPE, NIM, format="systemd", image_digest=DIGEST)
    assert ["/etc/sparkrecipes/secrets.env"] == unit(command.shell)["EnvironmentFile"]
    expected = (
        "put NGC_API_KEY as NAME=value into /etc/sparkrecipes/secrets.env (mode 0600) for the unit",
    )
    assert expected == command.warnings


def test_every_shipped_recipe_has_its_golden_command():
    """A change of any command is seen in its text; none is missing, none is left over."""
    catalog = open_catalog()
    texts = {path.stem: path.read_text() for path in golden_commands.FOLDER.glob("*.txt")}
    made_now = {r.id: golden_commands.golden(catalog, r) for r in catalog.recipes.values()}
    assert texts == made_now, "if meant: python -m tests.support.golden_commands"


@pytest.mark.parametrize("format", ["compose", "systemd"])
def test_every_shipped_recipe_has_the_other_formats(format):
    """Each is written without a fault, and says the same port, image and secrets."""
    catalog = open_catalog()
    for recipe in catalog.recipes.values():
        command = made(recipe, catalog.engine(recipe.engine), format=format)
        assert recipe.image.reference in command.shell
        port = catalog.engine(recipe.engine).container_port
        assert f"127.0.0.1:8000:{port}" in command.shell
        assert ("NGC_API_KEY" in command.shell) == (recipe.engine == "nim")
