"""Loading: how far a start has come, and how long it may still take."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import containers
from sparkrecipes.catalog import open_catalog
from sparkrecipes.containers import readiness, watch
from sparkrecipes.containers.endpoint import Endpoint, Seen
from sparkrecipes.containers.loading import Loading
from sparkrecipes.errors import NotReady
from sparkrecipes.schema.serving import Server
from tests.support.fake_docker import ID, NAME, FakeDocker, described

CATALOG = open_catalog()
RECIPE = CATALOG.recipe("qwen3-8b-fp8-vllm")
VLLM = CATALOG.engine("vllm")
NOBODY = "http://127.0.0.1:1"


def bar(done: int, total: int = 9) -> str:
    """A line of vLLM's bar."""
    return (
        f"Loading safetensors checkpoint shards:  {100 * done // total}% Completed | {done}/{total}"
    )


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """A docker on PATH that answers what a test says."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return FakeDocker(tmp_path)


def server(url: str = NOBODY, **changes: Any) -> Server:
    """A running container of ours."""
    fields = {
        "name": NAME,
        "container_id": ID,
        "recipe_id": "demo",
        "image": "tiny:1",
        "state": "running",
        "exit_code": None,
        "base_url": url,
        "started_at": None,
        "restarts": 0,
    }
    return Server.model_validate(fields | changes)


def wait_in_vain(**options: Any) -> tuple[NotReady, list[str]]:
    """Wait for a server that does not get ready; return the error and what was told."""
    told: list[str] = []
    recipe = options.pop("recipe", RECIPE)
    given = {"poll_s": 0.01, "progress": told.append} | options
    with pytest.raises(NotReady) as err:
        containers.wait_until_ready(options.pop("server", server()), recipe, VLLM, **given)
    return err.value, told


def test_the_published_time_is_what_is_left_at_first() -> None:
    """At the start nothing else is known, and without a published time nothing is said."""
    assert 120.0 == Loading(162.0).left_s(42.0)
    assert "about 2.0 min left" == Loading(162.0).time_words(42.0)
    assert (None, "") == (Loading().left_s(42.0), Loading().time_words(42.0))


def test_the_rate_of_the_shards_counts_where_it_says_more() -> None:
    """C76: 28 s a shard: four of nine after 250 s leave 140 s, whatever was published."""
    for published in (None, 162.0):
        loading = Loading(published)
        loading.read([bar(1)], 166.0)
        loading.read([bar(4)], 250.0)
        assert 140.0 == loading.left_s(250.0)
        assert 130.0 == loading.left_s(260.0)
    assert 300.0 == Loading(550.0).left_s(250.0)


def test_longer_than_published_is_said() -> None:
    """No time that has run out is given as the time that is left."""
    assert (None, "longer than the published 2.7 min") == (
        Loading(162.0).left_s(200.0),
        Loading(162.0).time_words(200.0),
    )


def test_each_tenth_of_the_shards_is_told_once() -> None:
    """Sixty shards are ten lines; the drafter's own bar begins anew."""
    loading = Loading()
    told = [loading.read([bar(done, 60)], float(done)) for done in range(61)]
    assert 11 == len([words for words in told if words])
    assert loading.read([bar(60, 60)], 61.0) is None
    assert "loading weights: 1 of 2 shards" == loading.read([bar(1, 2)], 62.0)
    assert loading.read([bar(1, 1)], 63.0) is None


def test_progress_says_what_is_loaded_and_the_time_left(fake: FakeDocker) -> None:
    """Milestones and shards come with the time left by the published load time."""
    lines = ["Starting to load model /weights/x...", bar(0), bar(4)]
    for count, state in ((1, "running"), (2, "running"), (3, "exited")):
        fake.answer("logs", stdout="\n".join(lines[:count]))
        fake.answer("container", "inspect", stdout=described(state))
    _, told = wait_in_vain(timeout_s=60.0, published_s=600.0)
    assert [
        "started, reading the weights",
        "loading weights",
        "loading weights: 0 of 9 shards",
        "loading weights: 4 of 9 shards",
    ] == [line.partition(", about")[0] for line in told]
    assert all(line.endswith("min left") for line in told)


def test_the_time_counts_from_the_containers_start() -> None:
    """A wait that begins later knows how long it has loaded already."""
    began = time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime(time.time() - 100))
    assert 99 < watch.age_s(server(started_at=began)) < 105
    assert 0.0 == watch.age_s(server(started_at="soon"))
    assert 0.0 == watch.age_s(server(started_at="2999-01-01T00:00:00Z"))


def test_a_quiet_minute_is_told(fake: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches hears that it still goes on."""
    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.05)
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    _, told = wait_in_vain(timeout_s=0.4, published_s=162.0)
    assert re.match(r"still starting after \d+ s, about 2\.\d min left$", told[0])


def moving() -> watch.Watch:
    """A watch on a container whose log goes on moving."""
    line = bar(4)
    later = time.monotonic() + 3600
    return watch.Watch(server(), VLLM, last_line=line, changed_at=later)


def test_the_recipes_deadline_is_put_off_while_the_log_moves(fake: FakeDocker) -> None:
    """C76: once, to twice the recipe's time, and said; then it is still loading, by name."""
    fake.answer("logs", stdout=bar(4))
    fake.answer("container", "inspect", stdout=described())
    told: list[str] = []
    seen = moving()
    seen.progress = told.append
    # A busy machine may take a second for the first look.
    deadline = readiness.Deadline(0.05, 2.0)
    endpoint = Endpoint(NOBODY, RECIPE, VLLM)
    with pytest.raises(NotReady) as err:
        readiness.wait(endpoint, deadline, 0.01, told.append, seen)
    assert "still_loading" == err.value.code
    assert deadline.spent_s >= 2.0
    assert 1 == len([line for line in told if "its log still moves" in line])


def test_only_a_load_that_moves_is_waited_for_longer() -> None:
    """Not a silent one, not a healthy server without completions, and not a second time."""
    given = RECIPE.startup_timeout_s
    wanted = readiness.Deadline.of(RECIPE, None)
    assert (given, 2 * given) == (wanted.limit_s, wanted.longest_s)
    down, up = Seen("down", "no_connection", ""), Seen("up", "no_completion", "")
    silent = moving()
    silent.changed_at = time.monotonic() - 3600
    assert not wanted.put_off(down, silent)
    assert not wanted.put_off(up, moving())
    assert not wanted.put_off(down, None)
    assert wanted.put_off(down, moving())
    assert not wanted.put_off(down, moving())


def test_a_silent_engine_gets_the_recipes_deadline_and_no_more(fake: FakeDocker) -> None:
    """A log that does not move is no reason to wait on."""
    fake.answer("logs", stdout="Starting to load model\n")
    fake.answer("container", "inspect", stdout=described())
    short = RECIPE.model_copy(update={"startup_timeout_s": 0.6})
    err, told = wait_in_vain(recipe=short)
    assert "not_ready" == err.code
    assert ["started, reading the weights"] == told


def test_a_deadline_that_was_asked_for_is_kept(fake: FakeDocker) -> None:
    """What a person sets is not put off."""
    assert readiness.Deadline(5.0, 5.0).limit_s == readiness.Deadline.of(RECIPE, 5.0).longest_s


def test_memory_that_runs_out_ends_the_wait_before_the_host_freezes(fake: FakeDocker) -> None:
    """C92: below the floor twice in a row, whatever the log says; with the way to end it."""
    fake.answer("logs", stdout=bar(4))
    fake.answer("container", "inspect", stdout=described())
    err, _ = wait_in_vain(timeout_s=30.0, floor_bytes=2**60)
    assert "memory_low" == err.code
    assert "sparkrecipes stop demo" in err.repair
    err, _ = wait_in_vain(timeout_s=0.1, floor_bytes=1)
    assert "memory_low" != err.code
