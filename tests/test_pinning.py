"""Pins and the user's own catalog folder: what is resolved, kept, obeyed, compared and shadowed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_data_path

from sparkrecipes import operations as ops
from sparkrecipes.catalog import open_catalog
from sparkrecipes.catalog.owned import with_pins
from sparkrecipes.catalog_files import user_folder
from sparkrecipes.checks import check
from sparkrecipes.cli import main
from sparkrecipes.errors import CatalogError, LaunchFailed, Refused, UnknownId
from sparkrecipes.operations.gathering import gather
from sparkrecipes.operations.image_step import pull
from sparkrecipes.operations.launching import checked_digest
from sparkrecipes.operations.preflight import Launch
from sparkrecipes.operations.walk import Walk
from sparkrecipes.operations.workspace import open_workspace
from sparkrecipes.schema.lock import Lock, LockedWeights
from tests.support.fake_docker import FakeDocker
from tests.support.hub import Hub, HubRepo
from tests.support.hub_client import environment
from tests.support.oci import Content
from tests.support.registry import RecordedHosts, error, stored

DATA = Path(__file__).parent / "data" / "catalog"
SHIPPED = open_catalog().root
FIRST, SECOND = "a" * 40, "b" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"1" * 4000}


class Place:
    """A catalog with one unpinned recipe, its registry and its hub."""

    def __init__(self, folder: Path, hosts: RecordedHosts, hub: Hub) -> None:
        self.folder, self.hosts, self.hub = folder, hosts, hub
        self.catalog = folder / "catalog"
        shutil.copytree(DATA, self.catalog)
        recipe = self.catalog / "recipes" / "tiny-8b-fp8-vllm.yaml"
        text = recipe.read_text()
        lines = [self.changed(line) for line in text.splitlines()]
        recipe.write_text("\n".join(lines) + "\n")
        self.reference = f"{hosts.address}/eng/img:1.0"
        self.push("first")

    def changed(self, line: str) -> str:
        """Name this test's image and repository, without pins."""
        key, _, _ = line.strip().partition(":")
        pad = line[: len(line) - len(line.lstrip())]
        new = {
            "reference": f"{self.hosts.address}/eng/img:1.0",
            "digest": "null",
            "revision": "null",
            "repo": "example/Tiny-8B-FP8",
        }
        return f"{pad}{key}: {new[key]}" if key in new else line

    def push(self, layer: str) -> str:
        """Let the tag be another image; return its digest for the box."""
        stock = Content()
        made = stock.image("amd64", layers=(layer.encode(),))
        stock.index("1.0", {**made, "platform": {"os": "linux", "architecture": "amd64"}})
        self.hosts.sites[self.hosts.address] = stored("eng/img", stock)
        return str(made["digest"])

    def __call__(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run the command line in a process of its own: the Hub's client reads HF_ENDPOINT once."""
        env = environment(self.hub.url, self.folder)
        env |= {
            "SPARKRECIPES_CATALOG": str(self.catalog),
            "SPARKRECIPES_MACHINE": "box",
            "HF_HUB_CACHE": str(self.folder / "hub"),
            "DOCKER_CONFIG": str(self.folder),
            "DOCKER_HOST": "unix:///nowhere.sock",
            "NO_PROXY": "127.0.0.1,localhost",
        }
        done = subprocess.run(
            [sys.executable, "-m", "sparkrecipes", *words, "--json"],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert code == done.returncode, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A registry and a hub of this host, with a recipe that pins neither."""
    repo = HubRepo(FILES, commit=FIRST)
    with RecordedHosts() as hosts, Hub({"example/Tiny-8B-FP8": repo}) as hub:
        yield Place(tmp_path, hosts, hub)


RECIPE = "tiny-8b-fp8-vllm"


def states(report: dict[str, Any]) -> dict[str, str]:
    """Return the state of each pin."""
    return {pin["what"]: pin["state"] for pin in report["pins"]}


def test_pin_writes_a_lock_that_later_commands_obey(place: Place) -> None:
    """Tag to digest, main to commit; ``command`` and ``download`` then use both."""
    digest = place.push("first")
    assert {"image": "unpinned", "weights": "unpinned"} == states(
        place("pin", RECIPE, "--check", code=1)
    )
    report = place("pin", RECIPE)
    lock = place.catalog / "locks" / f"{RECIPE}.yaml"
    assert ("pinned", str(lock)) == (report["state"], report["lock"])
    assert {"image": digest, "weights": FIRST} == {p["what"]: p["now"] for p in report["pins"]}
    assert 0 == main(["validate", str(lock)])
    place.push("second")
    place.hub.repos["example/Tiny-8B-FP8"] = HubRepo(FILES, commit=SECOND)
    shell = place("command", RECIPE)["shell"]
    assert f"/eng/img@{digest} " in shell
    assert f"snapshots/{FIRST} " in shell
    shown = place("show", RECIPE)
    assert (digest, FIRST, str(lock)) == (
        shown["recipe"]["image"]["digest"],
        shown["recipe"]["weights"]["revision"],
        shown["lock"],
    )
    # The hub holds one commit a repository: the pinned one is gone, and that is what was asked.
    error = place("download", RECIPE, code=1)["error"]
    assert ("revision_not_found", True) == (error["code"], FIRST in error["message"])


def test_drift_is_told_with_both_values(place: Place) -> None:
    """A moved tag and a moved branch: ``pin --check`` and ``check`` name what is pinned and now."""
    before = place.push("first")
    place("pin", RECIPE)
    assert {"image": "same", "weights": "same"} == states(place("pin", RECIPE, "--check"))
    now = place.push("second")
    place.hub.repos["example/Tiny-8B-FP8"] = HubRepo(FILES, commit=SECOND)
    moved = place("pin", RECIPE, "--check", code=1)
    assert "moved" == moved["state"]
    assert {"image": "moved", "weights": "moved"} == states(moved)
    assert [(before, now), (FIRST, SECOND)] == [(p["pinned"], p["now"]) for p in moved["pins"]]
    found = {f["check"]: f for f in place("check", RECIPE, code=1)["findings"]}
    for name, values in (("image_pinned", (before, now)), ("weights_pinned", (FIRST, SECOND))):
        assert "warning" == found[name]["level"]
        assert all(value in found[name]["message"] for value in values)
    assert f"sparkrecipes pin {RECIPE}" in found["weights_pinned"]["repair"]
    assert "pinned" == place("pin", RECIPE)["state"]
    assert {"image": "same", "weights": "same"} == states(place("pin", RECIPE, "--check"))


def test_what_nobody_answers_is_unknown(place: Place) -> None:
    """Offline, or with a dead hub: exit code 3, and no lock is written or changed."""
    assert "image_not_resolved" == place("pin", RECIPE, "--offline", code=3)["error"]["code"]
    place("pin", RECIPE)
    text = (place.catalog / "locks" / f"{RECIPE}.yaml").read_text()
    offline = place("pin", RECIPE, "--check", "--offline", code=3)
    assert {"image": "unknown", "weights": "unknown"} == states(offline)
    assert text == (place.catalog / "locks" / f"{RECIPE}.yaml").read_text()
    found = {f["check"]: f for f in place("check", RECIPE, "--offline", code=1)["findings"]}
    assert ("unknown", True) == (
        found["weights_pinned"]["level"],
        "offline" in found["weights_pinned"]["message"],
    )


def test_a_missing_image_or_repository_is_a_no(place: Place) -> None:
    """Nothing is written where one of them is not there; a tag that went away is told as gone."""
    place("pin", RECIPE)
    place.hosts.sites[place.hosts.address] = stored("eng/img", Content())
    gone = place("pin", RECIPE, "--check", code=1)
    assert {"image": "gone", "weights": "same"} == states(gone)
    (place.catalog / "locks" / f"{RECIPE}.yaml").unlink()
    assert "image_not_resolved" == place("pin", RECIPE, code=1)["error"]["code"]
    place.push("first")
    place.hub.repos.clear()
    assert "not_found_or_private" == place("pin", RECIPE, code=1)["error"]["code"]
    assert [] == list((place.catalog / "locks").iterdir())


def test_a_lock_beside_a_recipe_file(place: Place) -> None:
    """A recipe given by its path is pinned beside its file; -o writes it elsewhere."""
    mine = place.folder / "mine.yaml"
    shutil.copy(place.catalog / "recipes" / f"{RECIPE}.yaml", mine)
    report = place("pin", str(mine))
    assert str(place.folder / "mine.lock.yaml") == report["lock"]
    assert "@sha256:" in place("command", str(mine))["shell"]
    assert 0 == main(["validate", str(place.folder / "mine.lock.yaml")])
    elsewhere = place.folder / "a" / "b.yaml"
    assert str(elsewhere) == place("pin", str(mine), "-o", str(elsewhere))["lock"]
    assert "not_written" == place("pin", str(mine), "-o", "/dev/null/x", code=1)["error"]["code"]


def write_lock(catalog: Path, recipe_id: str, **image: str) -> Path:
    """Write a lock by hand."""
    path = catalog / "locks" / f"{recipe_id}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"reference": "x/y:1", "digest": f"sha256:{'d' * 64}", "platform": "linux/arm64"}
    inner = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in (fields | image).items())
    path.write_text(f'resolved_on: "2026-12-02"\nimage:\n{inner}')
    return path


def test_a_lock_of_another_name_is_not_obeyed_and_a_broken_one_stops(tmp_path: Path) -> None:
    """A lock pins a name: where the recipe names another image, its digest would be a lie."""
    catalog = tmp_path / "catalog"
    shutil.copytree(DATA, catalog)
    recipe_id = "tiny-8b-nvfp4-vllm"
    file = catalog / "recipes" / f"{recipe_id}.yaml"
    lines = [line for line in file.read_text().splitlines() if "  digest:" not in line]
    file.write_text("\n".join(lines) + "\n")
    opened = open_catalog(catalog)
    reference = opened.unlocked(recipe_id).image.reference
    assert opened.unlocked(recipe_id).image.digest is None
    write_lock(catalog, recipe_id, reference="other/name:1")
    assert open_catalog(catalog).recipe(recipe_id).image.digest is None
    write_lock(catalog, recipe_id, reference=reference)
    assert f"sha256:{'d' * 64}" == open_catalog(catalog).recipe(recipe_id).image.digest
    path = write_lock(catalog, recipe_id, digest="sha256:short")
    with pytest.raises(CatalogError, match=str(path)):
        open_catalog(catalog).recipe(recipe_id)
    path.write_text('resolved_on: "2026-13-02"\n')
    assert 1 == main(["validate", str(path)])


def test_a_commit_of_another_repository_is_not_obeyed(tmp_path: Path) -> None:
    """The recipe has come to name other weights: the lock's commit is none of theirs."""
    shutil.copytree(DATA, tmp_path / "catalog")
    opened = open_catalog(tmp_path / "catalog")
    recipe = opened.unlocked("tiny-8b-nvfp4-vllm")
    weights = recipe.weights.model_copy(update={"revision": None})
    unpinned = recipe.model_copy(update={"weights": weights})
    for repo, expected in ((weights.repo, FIRST), ("other/weights", None)):
        pin = LockedWeights(repo=repo, revision=FIRST)
        lock = Lock(id=recipe.id, resolved_on="2026-12-02", weights=pin)
        assert expected == with_pins(unpinned, lock).weights.revision
    pinned = weights.model_copy(update={"revision": SECOND})
    own = recipe.model_copy(update={"weights": pinned})
    assert SECOND == with_pins(own, lock).weights.revision


def test_a_launch_runs_the_pinned_digest_although_the_tag_moved(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry is asked for the pinned digest; one that it no longer has is refused."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DOCKER_CONFIG", str(place.folder))
    before = place.push("first")
    write_lock(place.catalog, RECIPE, reference=place.reference, digest=before)
    space = open_workspace(place.catalog, "box")
    wanted = Launch(space.catalog.recipe(RECIPE))
    assert before == checked_digest(space, wanted)
    assert f"@{before}" in ops.render_command(RECIPE, catalog=place.catalog, machine="box").shell
    after = place.push("second")
    with pytest.raises(Refused) as refused:
        checked_digest(space, wanted)
    assert ("pin_gone", f"sparkrecipes pin {RECIPE}") == (
        refused.value.code,
        refused.value.repair.partition(": ")[2],
    )
    facts = gather(space, wanted.recipe, ask_hub=False)
    pinned = next(f for f in check(facts).findings if f.check == "image_pinned")
    assert ("warning", True, True) == (
        pinned.level,
        before in pinned.message,
        after in pinned.message,
    )


@pytest.mark.parametrize("here", [True, False])
def test_a_pinned_image_that_is_here_needs_no_registry(
    place: Place, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """A registry that was asked too often ends the walk only where the image must be pulled."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DOCKER_CONFIG", str(place.folder))
    monkeypatch.setenv("PATH", str(place.folder))
    docker = FakeDocker(place.folder)
    docker.answer("image", "inspect", stdout="linux/amd64\n", exit_code=0 if here else 1)
    digest = place.push("first")
    write_lock(place.catalog, RECIPE, reference=place.reference, digest=digest)
    space = open_workspace(place.catalog, "box")
    place.hosts.sites[place.hosts.address] = lambda _: error(429, Retry_After="61")
    wanted = Launch(space.catalog.recipe(RECIPE))
    if here:
        assert digest == pull(Walk(space, None), wanted)[0]
    else:
        with pytest.raises(LaunchFailed, match="429") as failed:
            pull(Walk(space, None), wanted)
        assert "rate_limited" == failed.value.code


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of the user beside the shipped catalog."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARKRECIPES_CATALOG", raising=False)
    folder = tmp_path / "data" / "sparkrecipes" / "catalog"
    (folder / "recipes").mkdir(parents=True)
    return folder


def own_recipe(user: Path, name: str, **changes: str) -> Path:
    """Write a recipe of the user: a shipped one with other lines."""
    text = (SHIPPED / "recipes" / "qwen3-8b-fp8-vllm.yaml").read_text()
    for old, new in changes.items():
        text = "\n".join(
            f"{old}: {new}" if line.startswith(f"{old}:") else line for line in text.splitlines()
        )
    path = user / "recipes" / f"{name}.yaml"
    path.write_text(text + "\n")
    return path


def test_the_folder_is_the_one_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is worked out without platformdirs, and must be the same; a named catalog has none."""
    for value in ("/somewhere/data", "", "relative"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        if value != "relative":
            assert user_data_path("sparkrecipes") / "catalog" == user_folder(SHIPPED)
    monkeypatch.delenv("XDG_DATA_HOME")
    assert user_data_path("sparkrecipes") / "catalog" == user_folder(SHIPPED)
    assert user_folder(DATA) is None


def test_a_recipe_of_the_user_is_listed_and_can_hide_a_shipped_one(
    user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same rules; what hides a shipped recipe is said by list, show and validate."""
    own_recipe(user, "my-qwen", title="Mine", served_model_name="mine")
    hiding = own_recipe(user, "qwen3-8b-fp8-vllm", title="My own 8B")
    for _cached in (False, True):
        listed = {r.id: r for r in ops.list_recipes(everything=True).recipes}
        assert ("user", False) == (listed["my-qwen"].origin, listed["my-qwen"].shadows)
        assert ("My own 8B", True) == (
            listed["qwen3-8b-fp8-vllm"].title,
            listed["qwen3-8b-fp8-vllm"].shadows,
        )
        assert {"catalog"} == {
            r.origin for key, r in listed.items() if key not in ("my-qwen", "qwen3-8b-fp8-vllm")
        }
        assert 0 == main(["list"])
    assert "qwen3-8b-fp8-vllm (yours, hides the shipped one)" in capsys.readouterr().out
    assert 0 == main(["show", "qwen3-8b-fp8-vllm"])
    shown = capsys.readouterr().out
    assert "My own 8B" in shown
    assert str(hiding) in shown
    assert 0 == main(["validate", str(user)])
    assert "it hides the shipped recipe of the same id" in capsys.readouterr().out
    assert "mine" in ops.render_command("my-qwen").shell
    with pytest.raises(UnknownId):
        ops.get_recipe("my-qwen", catalog=SHIPPED.parent / "tests" / "data" / "catalog")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("title: [\n", "bracket"),
        ("title: x\ncolour: red\n", "colour"),
        ("\0", "U+0000"),
        ("", "mapping"),
    ],
)
def test_a_broken_file_of_the_user_is_named_and_breaks_nothing(
    user: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """Left out, with its place; a shipped recipe that it would hide counts, all others too."""
    for name in ("broken", "qwen3-8b-fp8-vllm"):
        (user / "recipes" / f"{name}.yaml").write_text(text)
    (user / "models").mkdir()
    (user / "models" / "gpt-oss-20b.yaml").write_text(text)
    (user / "does_not_run.yaml").write_text(text)
    whole = ops.list_recipes(everything=True, catalog=open_catalog())
    assert {*open_catalog().recipes} == {r.id for r in whole.recipes}
    assert {"catalog"} == {r.origin for r in whole.recipes}
    files = {Path(p.file).name for p in whole.left_out}
    assert {
        "broken.yaml",
        "qwen3-8b-fp8-vllm.yaml",
        "gpt-oss-20b.yaml",
        "does_not_run.yaml",
    } == files
    assert told in " ".join(p.message for p in whole.left_out)
    assert 0 == main(["list"])
    assert f"! left out: {user}/recipes/broken.yaml:" in capsys.readouterr().out
    assert ops.recommend("agents").pick is not None
    assert 0 == main(["show", "gpt-oss-20b-mxfp4-vllm"])
    with pytest.raises(CatalogError, match=r"broken\.yaml"):
        ops.get_recipe("broken")
    assert 1 == main(["validate", str(user / "recipes")])


def test_a_recipe_of_the_user_that_names_what_is_not_there_is_left_out(user: Path) -> None:
    """An unknown model, engine or evidence row: named, and the list goes on."""
    own_recipe(user, "one", model="no-such-model")
    own_recipe(user, "two", engine="no-such-engine")
    third = own_recipe(user, "three")
    third.write_text(third.read_text().replace("  - standard-round-2026-10#", "  - nowhere#"))
    whole = ops.list_recipes(everything=True)
    assert {"one.yaml", "two.yaml", "three.yaml"} == {Path(p.file).name for p in whole.left_out}
    assert not {"one", "two", "three"} & {r.id for r in whole.recipes}


def test_a_model_of_the_user_serves_his_recipe(user: Path) -> None:
    """Models, engines and evidence of the folder count as well."""
    (user / "models").mkdir()
    shutil.copy(SHIPPED / "models" / "qwen3-8b-fp8.yaml", user / "models" / "my-model.yaml")
    own_recipe(user, "mine", model="my-model")
    assert "my-model" == ops.get_recipe("mine").recipe.model
    assert ops.estimate_memory("mine", context_tokens=4096, users=1).total_bytes


def test_a_closed_or_strange_folder_of_the_user_breaks_nothing(user: Path) -> None:
    """A file where a folder should be, and a list that cannot be read."""
    shutil.rmtree(user / "recipes")
    (user / "recipes").write_text("no folder")
    (user / "models").symlink_to("/nowhere")
    assert ops.list_recipes().recipes
