"""Weights sized by the files that the Hub has today, asked by its own client."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sparkrecipes.errors import Unknown
from sparkrecipes.hub_models import sizes
from sparkrecipes.hub_models.repository import read_config
from tests.support.hub import Hub, HubRepo
from tests.support.hub_client import environment

BUILD = "nvidia/Qwen3.6-35B-A3B-NVFP4"
RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm"
CATALOG_BYTES = (22_172_768_666, 26_600_000_000)


def repository(size: int) -> HubRepo:
    """Make a repository whose weights have a size; a second copy of them does not count."""
    files = {"model.safetensors": b"w", "consolidated.safetensors": b"w", "config.json": b"{}"}
    return HubRepo(files, claimed_sizes={"model.safetensors": size})


def fit(url: str, home: Path, *argv: str, code: int | None = 0) -> dict[str, Any]:
    """Run ``fit`` against a Hub, with a cache of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkrecipes", "fit", *argv, "--json"],
        capture_output=True,
        text=True,
        env=environment(url, home, XDG_CACHE_HOME=str(home / "cache")),
    )
    assert code in (None, done.returncode), done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def closed_port() -> str:
    """Give an address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_a_build_of_the_catalog_is_sized_by_the_files_of_today(tmp_path: Path) -> None:
    """Loaded at 0.95 to 1.12 of the files, and within what was measured; the source is said.

    The second question needs no Hub.
    """
    with Hub({BUILD: repository(22_000_000_000)}) as hub:
        answer = fit(hub.url, tmp_path, RECIPE)
    again = fit(hub.url, tmp_path, RECIPE)
    offline = fit(hub.url, tmp_path, RECIPE, "--offline")
    assert answer == again
    assert "hub and catalog" == answer["weights_source"]
    low, high = answer["bounds"]["weights_bytes"]
    assert (CATALOG_BYTES[0], int(22_000_000_000 * 1.12)) == (low, high)
    (line,) = (x for x in answer["assumptions"] if x.startswith("weights: "))
    assert f"huggingface.co/{BUILD}/tree/{'a' * 40}" in line
    assert ("catalog", list(CATALOG_BYTES)) == (
        offline["weights_source"],
        offline["bounds"]["weights_bytes"],
    )


def test_files_that_contradict_the_catalog_count(tmp_path: Path) -> None:
    """Another checkpoint under the same name: today's files, and the contradiction is said."""
    with Hub({BUILD: repository(40_000_000_000)}) as hub:
        answer = fit(hub.url, tmp_path, RECIPE)
    assert [38_000_000_000, 44_800_000_000] == answer["bounds"]["weights_bytes"]
    assert any("another size than the catalog's" in line for line in answer["assumptions"])


def test_a_hub_that_cannot_be_reached_is_not_asked_again_at_once(tmp_path: Path) -> None:
    """The catalog answers; for ten minutes no time is lost on the network."""
    url = closed_port()
    assert "catalog" == fit(url, tmp_path, RECIPE)["weights_source"]
    (kept,) = (tmp_path / "cache" / "sparkrecipes").glob("sizes-*.json")
    assert ["unreached"] == list(json.loads(kept.read_text()))
    when = kept.stat().st_mtime_ns
    assert "catalog" == fit(url, tmp_path, RECIPE)["weights_source"]
    assert when == kept.stat().st_mtime_ns


@pytest.mark.parametrize(
    ("broken", "read"),
    [("[]", {}), ("{", {}), ('{"x": 1}', {}), ('{"o/x": {"at": "soon"}}', {"o/x": {"at": "soon"}})],
)
def test_a_broken_memory_is_no_obstacle(tmp_path: Path, broken: str, read: Any) -> None:
    """It is read as empty, or as never asked."""
    kept = tmp_path / "sizes.json"
    kept.write_text(broken)
    assert read == sizes.read(kept)
    assert 0.0 == sizes.asked_at(sizes.read(kept), "o/x")


def test_a_repository_that_the_hub_does_not_show_keeps_the_catalogs_size(tmp_path: Path) -> None:
    """404 is an answer: the build is sized by the catalog, and the Hub was reached."""
    with Hub({}) as hub:
        answer = fit(hub.url, tmp_path, RECIPE)
    assert "catalog" == answer["weights_source"]
    (kept,) = (tmp_path / "cache" / "sparkrecipes").glob("sizes-*.json")
    assert [BUILD] == list(json.loads(kept.read_text()))


def test_a_missing_size_is_asked_for_again_sooner() -> None:
    """An hour, where a size is kept for a week: somebody may log in or accept a licence."""
    assert (sizes.KEPT_S, sizes.MISSING_S) == (
        sizes.lifetime({"size_bytes": 1}),
        sizes.lifetime({"size_bytes": None}),
    )
    assert sizes.MISSING_S < sizes.KEPT_S


def test_a_name_that_is_not_resolved_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver may hang for half a minute, which no client's timeout bounds; one answer stays."""
    hung = Event()

    def fetch(repo: str) -> dict[str, Any] | None:
        """Stand for the client: of one repository it hears, of the other never."""
        if repo == "owner/hung":
            hung.wait(20)
            return None
        return {"size_bytes": 7, "source": "a test"}

    monkeypatch.setattr(sizes, "fetch_size", fetch)
    monkeypatch.setattr(sizes, "PATIENCE_S", 0.2)
    found = sizes.fetch_sizes(["owner/hung", "owner/quick"], 1.0)
    hung.set()
    assert {"owner/quick", sizes.UNREACHED} == set(found)
    assert 7 == found["owner/quick"]["size_bytes"]


def test_a_strange_repository_without_a_network_is_unknown(tmp_path: Path) -> None:
    """Exit code 3 and what to do, never a fault of ours."""
    answer = fit(closed_port(), tmp_path, "owner/unseen", code=3)
    assert "no_network" == answer["error"]["code"]


@pytest.mark.parametrize("config", [b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_configuration_that_cannot_be_read_is_unknown(tmp_path: Path, config: bytes) -> None:
    """Somebody else wrote it: no JSON, no object, no text, or one that exhausts the reader."""
    file = tmp_path / "config.json"
    file.write_bytes(config)
    with pytest.raises(Unknown) as caught:
        read_config("owner/broken", file)
    assert "bad_config" == caught.value.code
