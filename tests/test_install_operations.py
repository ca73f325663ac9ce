"""Operations on servers as a person or a program calls them: what is asked of Docker, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkrecipes import operations
from sparkrecipes.cli.main import main
from sparkrecipes.errors import Misuse, SparkRecipesError
from tests.support.fake_docker import ID, FakeDocker, described

KNOWN = "qwen3-8b-fp8-vllm"
DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """A docker on PATH that answers what a test says."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return FakeDocker(tmp_path)


def error_of(*args: str) -> SparkRecipesError:
    """Call an operation on a server and return its error."""
    calls = {
        "stop": operations.stop,
        "logs": operations.server_logs,
        "wait": operations.wait_until_ready,
        "diagnose": operations.diagnose_server,
    }
    with pytest.raises(SparkRecipesError) as err:
        calls[args[0]](args[1])  # type: ignore[operator]
    return err.value


@pytest.mark.parametrize("word", ["stop", "logs", "wait", "diagnose"])
def test_an_unknown_id_is_misuse_whether_docker_answers_or_not(fake: FakeDocker, word: str) -> None:
    """The id is wrong with Docker up or down: exit 2, and the nearest ids are named."""
    fake.answer("ps", stderr=DOWN, exit_code=1)
    fake.answer("ps")
    fake.answer("container", "inspect", stdout="[]", stderr="No such container: x", exit_code=1)
    for _ in ("down", "up"):
        err = error_of(word, "qwen3-8b-fp8-vlm")
        assert ("unknown_id", 2) == (err.code, err.exit_code)
        assert KNOWN in err.repair


@pytest.mark.parametrize("word", ["stop", "logs", "wait", "diagnose"])
def test_docker_that_does_not_answer_is_unknown(fake: FakeDocker, word: str) -> None:
    """A known id and no daemon: exit 3 for each, and how to start it."""
    fake.answer("ps", stderr=DOWN, exit_code=1)
    err = error_of(word, KNOWN)
    assert ("docker_not_running", 3) == (err.code, err.exit_code)
    assert "systemctl start docker" in err.repair


def test_a_recipe_of_another_catalog_can_be_stopped(fake: FakeDocker) -> None:
    """Its container carries our label, so the id need not be one of this catalog."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout=described(recipe_id="demo"))
    fake.answer("stop")
    fake.answer("rm")
    assert operations.stop("demo").stopped


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan"), float("inf")])
def test_a_deadline_that_cannot_be_is_misuse(deadline: float) -> None:
    """Not 0, not below, not a day: before anything is asked."""
    with pytest.raises(Misuse) as err:
        operations.wait_until_ready(KNOWN, timeout_s=deadline)
    assert "bad_timeout" == err.value.code


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "soon"])
def test_the_command_line_refuses_such_a_deadline(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the option is named."""
    assert 2 == main(["wait", KNOWN, f"--timeout={text}"])
    assert "--timeout" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ({"ExitCode": 137, "OOMKilled": True}, "container_oom"),
        ({"ExitCode": 137, "OOMKilled": False}, "host_oom"),
        ({"Status": "created", "Error": 'could not select device driver "" with capabilities'}, ""),
    ],
    ids=["own limit", "C92: whole host", "C63: never started"],
)
def test_a_container_is_diagnosed_by_how_it_ended(
    fake: FakeDocker, state: dict[str, object], cause: str
) -> None:
    """Whoever kills it writes nothing into its log: Docker's state is read as well."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout=described("exited", State=state))
    fake.answer("logs", stdout="Loading safetensors checkpoint shards: 44% Completed | 4/9\n")
    found = operations.diagnose_server("demo").diagnoses
    assert [cause or "no_nvidia_runtime"] == [d.id for d in found]
