"""The Hugging Face cache, read without its library: every layout is built by hand here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkrecipes.weights_cache import cache_root, find, repo_folder, wanted_files

SHA = "a" * 40
OTHER = "b" * 40
REPO = "acme/tiny"


def safetensors(payload: int = 16) -> bytes:
    """Return a valid safetensors file with one tensor of ``payload`` bytes."""
    entry = {"w": {"dtype": "U8", "shape": [payload], "data_offsets": [0, payload]}}
    header = json.dumps(entry).encode()
    return len(header).to_bytes(8, "little") + header + b"\x01" * payload


WHOLE = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": safetensors(),
}


def fill(
    root: Path,
    files: dict[str, bytes],
    *,
    commit: str = SHA,
    main: str | None = SHA,
    listing: dict[str, int] | None = None,
) -> Path:
    """Lay out a repository as the library does, and return its folder."""
    folder = root / "models--acme--tiny"
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "snapshots" / commit).mkdir(parents=True, exist_ok=True)
    for number, (name, content) in enumerate(files.items()):
        blob = folder / "blobs" / f"{commit[:1]}{number:039d}"
        blob.write_bytes(content)
        link = folder / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    if main:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / "main").write_text(main)
    if listing is not None:
        (folder / "trees").mkdir(exist_ok=True)
        entries = {name: {"size": size, "blob_id": "0" * 40} for name, size in listing.items()}
        text = json.dumps({"format_version": 1, "files": entries})
        (folder / "trees" / f"{commit}.json").write_text(text)
    return folder


def test_the_root_follows_the_librarys_own_rules(monkeypatch):
    """Each variable wins over the next, as the real library's constants say in a fresh process."""
    cases: list[dict[str, str]] = [
        {"HF_HUB_CACHE": "/c", "HUGGINGFACE_HUB_CACHE": "/o", "HF_HOME": "/h"},
        {"HUGGINGFACE_HUB_CACHE": "/o", "HF_HOME": "/h"},
        {"HF_HOME": "~/h", "XDG_CACHE_HOME": "/x"},
        {"XDG_CACHE_HOME": "/x"},
        {"HF_HUB_CACHE": "$SPARE/hub", "SPARE": "/spare"},
        {},
    ]
    names = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")
    for case in cases:
        for name in names:
            monkeypatch.delenv(name, raising=False)
        for name, value in case.items():
            monkeypatch.setenv(name, value)
        code = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert Path(seen.stdout.strip()) == cache_root(), case


def test_a_whole_snapshot_is_found_by_branch_commit_or_alone(tmp_path):
    """Main, the commit itself, and the only commit of a cache without refs are all found."""
    folder = fill(tmp_path, WHOLE)
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (folder, SHA, folder / "snapshots" / SHA) == (
        found.folder,
        found.revision,
        found.snapshot,
    )
    assert (True, ()) == (found.complete, found.problems)
    assert sum(map(len, WHOLE.values())) == found.total_bytes
    assert found == find(REPO, SHA, root=tmp_path) == find(REPO, "main", root=tmp_path)
    (folder / "refs" / "main").unlink()
    assert found == find(REPO, root=tmp_path)


def test_nothing_is_guessed_between_two_commits(tmp_path):
    """Two commits and no main: neither is the cached one."""
    fill(tmp_path, WHOLE, main=None)
    fill(tmp_path, WHOLE, commit=OTHER, main=None)
    assert find(REPO, root=tmp_path) is None
    assert find(REPO, OTHER, root=tmp_path) is not None


@pytest.mark.parametrize(
    ("repo", "revision"),
    [
        ("acme/absent", None),
        (REPO, OTHER),
        (REPO, "v9"),
        (REPO, "../../../outside"),
        ("../outside", None),
        ("acme/../..", None),
        ("/etc", None),
        ("acme", None),
        ("", None),
    ],
)
def test_what_is_not_there_is_none(tmp_path, repo, revision):
    """Absent, misspelt and hostile names find nothing and raise nothing."""
    root = tmp_path / "hub"
    fill(root, WHOLE)
    (tmp_path / "outside").write_text(SHA)
    assert find(repo, revision, root=root) is None


def test_the_cache_is_never_left_by_a_link(tmp_path):
    """A repository, snapshot or file that leads out of the cache is not used as one."""
    root, away = tmp_path / "hub", tmp_path / "away"
    whole = fill(away, WHOLE)
    root.mkdir()
    (root / "models--acme--tiny").symlink_to(whole)
    assert find(REPO, root=root) is None
    (root / "models--acme--tiny").unlink()
    folder = fill(root, WHOLE)
    (folder / "snapshots" / OTHER).symlink_to(whole / "snapshots" / SHA)
    assert find(REPO, OTHER, root=root) is None
    (folder / "snapshots" / SHA / "model.safetensors").unlink()
    (folder / "snapshots" / SHA / "model.safetensors").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_bytes(safetensors())
    found = find(REPO, root=root)
    assert found is not None
    assert (False, ("model.safetensors is a broken link",)) == (found.complete, found.problems)


def test_a_link_in_a_circle_is_broken_and_not_an_error(tmp_path):
    """A link to itself is reported like a dangling one."""
    folder = fill(tmp_path, WHOLE)
    link = folder / "snapshots" / SHA / "extra.json"
    link.symlink_to(link)
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert ("extra.json is a broken link",) == found.problems


def test_files_in_the_shared_store_are_seen_and_said(tmp_path):
    """Hub 2.4 keeps Xet files once for all repositories, outside the repository's folder."""
    folder = fill(tmp_path, WHOLE)
    store = tmp_path / "blobs" / "cc" / ("c" * 64)
    store.parent.mkdir(parents=True)
    blob = (folder / "snapshots" / SHA / "model.safetensors").resolve()
    blob.rename(store)
    blob.symlink_to(os.path.relpath(store, blob.parent))
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (True, True) == (found.complete, found.shared_blobs)


def test_with_the_list_of_the_commit_every_size_is_compared(tmp_path):
    """A missing and a short file are named; files that no engine reads do not matter (C56)."""
    sizes = {name: len(content) for name, content in WHOLE.items()}
    extras = {"original/model.pth": 9, "picture.png": 9}
    fill(tmp_path, WHOLE, listing={**sizes, **extras})
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert found.complete is True
    fill(tmp_path / "2", WHOLE, listing={**sizes, "model.safetensors": 4790000000, "a.json": 1})
    found = find(REPO, root=tmp_path / "2")
    assert found is not None
    size = len(WHOLE["model.safetensors"])
    expected = (f"model.safetensors has {size} of 4,790,000,000 bytes", "a.json is missing")
    assert (False, expected) == (found.complete, found.problems)


def test_unfinished_parts_say_incomplete_unless_the_list_proves_otherwise(tmp_path):
    """A part that a killed download left is no fault of a snapshot whose files are all there."""
    folder = fill(tmp_path, WHOLE)
    (folder / "blobs" / "dd.1234abcd.incomplete").write_bytes(b"x")
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (False, ("1 unfinished parts in blobs/",)) == (found.complete, found.problems)
    fill(tmp_path / "2", WHOLE, listing={n: len(c) for n, c in WHOLE.items()})
    left = tmp_path / "2" / "models--acme--tiny" / "blobs" / "dd.1234abcd.incomplete"
    left.write_bytes(b"x")
    found = find(REPO, root=tmp_path / "2")
    assert found is not None
    assert found.complete is True


def test_a_dangling_link_is_incomplete(tmp_path):
    """A snapshot whose blob is gone is not complete."""
    folder = fill(tmp_path, WHOLE)
    (folder / "snapshots" / SHA / "model.safetensors").resolve().unlink()
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (False, ("model.safetensors is a broken link",)) == (found.complete, found.problems)


def test_a_set_with_missing_parts_is_incomplete_without_any_index(tmp_path):
    """C55: one of three numbered files, no index: the names alone say what is missing."""
    files = {"config.json": b"{}", "model-00001-of-00003.safetensors": safetensors()}
    fill(tmp_path, files)
    found = find(REPO, root=tmp_path)
    assert found is not None
    expected = (
        "model-00002-of-00003.safetensors is missing",
        "model-00003-of-00003.safetensors is missing",
    )
    assert (False, expected) == (found.complete, found.problems)


def test_a_file_that_the_index_promises_must_be_there(tmp_path):
    """The safetensors index names files; one that is absent makes the snapshot incomplete."""
    index = {"weight_map": {"a": "model.safetensors", "b": "mtp.safetensors"}}
    files = {**WHOLE, "model.safetensors.index.json": json.dumps(index).encode()}
    fill(tmp_path, files)
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (False, ("mtp.safetensors is missing",)) == (found.complete, found.problems)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("config.json", b"Access to model acme/tiny is restricted", "config.json is not JSON"),
        ("model.safetensors", b"", "model.safetensors is cut short or is no safetensors file"),
        (
            "model.safetensors",
            b"Access to model acme/tiny is restricted",
            "model.safetensors is cut short or is no safetensors file",
        ),
        (
            "model.safetensors",
            safetensors()[:-1],
            "model.safetensors is cut short or is no safetensors file",
        ),
        (
            "model.safetensors.index.json",
            b"[]",
            "model.safetensors.index.json is not a safetensors index",
        ),
    ],
)
def test_content_that_is_no_weights_is_seen_without_a_list(tmp_path, name, content, fault):
    """C62 and C56: an error page or a cut file saved under a weight's name is corrupt."""
    fill(tmp_path, {**WHOLE, name: content})
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (False, (fault,)) == (found.complete, found.problems)


@pytest.mark.parametrize("absent", ["tokenizer.json", "config.json", "model.safetensors"])
def test_what_nothing_proves_is_unknown(tmp_path, absent):
    """Without the list, a file that an engine usually needs leaves the answer open."""
    fill(tmp_path, {name: content for name, content in WHOLE.items() if name != absent})
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert (None, ()) == (found.complete, found.problems)


@pytest.mark.parametrize(
    "listing", ["{", "[]", '{"format_version": 2, "files": {"new.json": {"size": 1}}}', "null"]
)
def test_a_list_that_cannot_be_read_proves_nothing(tmp_path, listing):
    """A broken list, or one of a newer layout, is as none at all."""
    folder = fill(tmp_path, WHOLE, listing={})
    (folder / "trees" / f"{SHA}.json").write_text(listing)
    found = find(REPO, root=tmp_path)
    assert found is not None
    assert found.complete is True


def test_a_reference_that_is_no_commit_finds_nothing(tmp_path):
    """A ref that was cut short or points into other folders is not followed."""
    for text in ("", "abc", f"../../{SHA}", "\xff"):
        fill(tmp_path / str(len(text)), WHOLE, main=text or "\n")
        assert find(REPO, root=tmp_path / str(len(text))) is None


def test_the_folders_name_is_the_librarys():
    """Owner and name are joined by two dashes."""
    assert Path("/c/models--acme--tiny") == repo_folder(REPO, Path("/c"))
    assert repo_folder("../x", Path("/c")) is None


GPT_OSS = (
    ".gitattributes",
    "LICENSE",
    "README.md",
    "USAGE_POLICY",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "metal/model.bin",
    "model-00000-of-00002.safetensors",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
    "original/config.json",
    "original/dtypes.json",
    "original/model.safetensors",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
"""A repository laid out like openai/gpt-oss-20b: the same weights three times."""


def test_one_copy_of_the_weights_is_wanted():
    """Of gpt-oss's three copies, the one that the engine reads is fetched."""
    left_out = {n for n in GPT_OSS if n.startswith((".git", "metal/", "original/"))}
    assert tuple(n for n in GPT_OSS if n not in left_out) == wanted_files(GPT_OSS)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["model.safetensors", "pytorch_model.bin", "tf_model.h5"], ["model.safetensors"]),
        (["pytorch_model.bin", "training_args.bin", "model.pth"], ["pytorch_model.bin"]),
        (["pytorch_model.bin.index.json", "model.safetensors"], ["model.safetensors"]),
        (
            ["consolidated.safetensors", "model-00001-of-00001.safetensors", "params.json"],
            ["model-00001-of-00001.safetensors", "params.json"],
        ),
        (["consolidated.safetensors", "params.json"], ["consolidated.safetensors", "params.json"]),
        (["model-q4.gguf", "config.json"], ["model-q4.gguf", "config.json"]),
        (["model.onnx", "onnx/model.onnx_data", "config.json"], ["config.json"]),
        (["checkpoint-500/model.safetensors", "a.safetensors"], ["a.safetensors"]),
        (["eagle/model.safetensors", "model.safetensors"], None),
        (
            ["modeling_nemotron.py", "assets/logo.PNG", "LICENSE"],
            ["modeling_nemotron.py", "LICENSE"],
        ),
        ([], []),
    ],
)
def test_only_what_an_engine_reads_is_wanted(names, wanted):
    """Other formats, other layouts, training state and pictures are left out; the rest stays."""
    assert tuple(names if wanted is None else wanted) == wanted_files(names)


def test_finding_needs_no_library():
    """The room works without importing huggingface_hub or an HTTP client."""
    code = (
        "import sys; from sparkrecipes.weights_cache import find; find('a/b');"
        "print([m for m in ('huggingface_hub', 'httpx2') if m in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "[]" == seen.stdout.strip()
