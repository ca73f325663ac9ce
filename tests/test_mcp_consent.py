"""Consent: what acts asks the person where the client can; a no wins, and nobody waits for ever."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from sparkrecipes import jobs
from sparkrecipes.jobs import planning
from sparkrecipes.mcp_server import Settings, consent
from tests.support import fast_catalog
from tests.support.fake_docker import FakeDocker
from tests.support.mcp import ERAS, Answerer, call, facts, fault

QUESTION = "Install it here: download 20 GB; about 5 to 9 minutes."
ASK = Settings(offline=True)
NAME = "sparkrecipes-tiny"


@pytest.fixture(autouse=True)
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeDocker:
    """A state folder of its own, and a Docker that has nothing."""
    fast_catalog.use(monkeypatch, tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    fake = FakeDocker(folder)
    fake.answer("ps")
    return fake


def install_plan() -> str:
    """Return a plan of a real install, which on this host would fail at its first check."""
    shown = jobs.plan_install(fast_catalog.RECIPE, rehearse=True, offline=True)
    spec = planning.load_plan(shown.plan_id or "").spec.model_copy(update={"kind": "install"})
    command = cast(Any, SimpleNamespace(shell=shown.command))
    return planning.new_plan(spec, command, QUESTION)[0]


def answering(action: str, ok: bool | None = None, heard: list[str] | None = None) -> Answerer:
    """Make a person who answers so, and notes what was asked."""

    async def answer(_context: Any, params: ElicitRequestParams) -> ElicitResult:
        if heard is not None:
            heard.append(params.message)
        content = None if ok is None else {"ok": ok}
        return ElicitResult(action=cast(Any, action), content=content)

    return answer


@pytest.mark.parametrize("era", ERAS)
def test_a_yes_starts_the_job(era: str) -> None:
    """The person sees what the plan says, and what was planned begins."""
    heard: list[str] = []
    plan = install_plan()
    started = facts(
        call(
            "start_install",
            {"plan_id": plan},
            ASK,
            era=era,
            answer=answering("accept", True, heard),
        )
    )
    assert ([QUESTION], "install") == (heard, started["kind"])
    ended = jobs.wait_job(started["job_id"], timeout_s=30)
    assert ended.error is not None
    # Without a network and without its image the walk ends before anything is fetched.
    assert ("failed", "image_not_here") == (ended.state, ended.error.code)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "person", [("decline", None), ("cancel", None), ("accept", False)], ids=str
)
def test_a_no_wins(era: str, person: tuple[str, bool | None]) -> None:
    """Whatever form it takes; nothing is started, and the plan is not used up."""
    plan = install_plan()
    error = fault(call("start_install", {"plan_id": plan}, ASK, era=era, answer=answering(*person)))
    assert "declined" == error["code"]
    assert () == jobs.list_jobs().jobs


@pytest.mark.parametrize("era", ERAS)
def test_stopping_asks_too(era: str, docker: FakeDocker) -> None:
    """A no leaves the container alone: Docker is not even asked."""
    error = fault(call("stop_server", {"name": NAME}, ASK, era=era, answer=answering("decline")))
    assert "declined" == error["code"]
    assert not (docker.folder / "calls.jsonl").exists()


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_is_told_to_ask_before(era: str) -> None:
    """Its own approval is what counts; the plan says that the person must see it."""
    plan = install_plan()
    started = facts(call("start_install", {"plan_id": plan}, ASK, era=era))
    assert "install" == started["kind"]
    jobs.wait_job(started["job_id"], timeout_s=30)


@pytest.mark.parametrize("era", ERAS)
def test_the_question_can_be_left_to_the_host(era: str) -> None:
    """Whoever starts the server decides that, not an agent: no argument does."""
    heard: list[str] = []
    settings = Settings(offline=True, consent="host")
    answer = answering("decline", None, heard)
    facts(call("start_install", {"plan_id": install_plan()}, settings, era=era, answer=answer))
    assert [] == heard
    jobs.wait_job(jobs.list_jobs().jobs[0].id, timeout_s=30)


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never shows the question: refused in time, nothing is started."""
    monkeypatch.setattr(consent, "WAIT_S", 0.2)

    async def silent(_context: Any, _params: ElicitRequestParams) -> ElicitResult:
        await anyio.sleep(30)
        raise AssertionError

    plan, began = install_plan(), time.monotonic()
    error = fault(call("start_install", {"plan_id": plan}, ASK, era="legacy", answer=silent))
    assert time.monotonic() - began < 10
    assert ("no_answer", True) == (error["code"], "--consent host" in error["repair"])
    assert () == jobs.list_jobs().jobs


@pytest.mark.parametrize("era", ERAS)
def test_a_rehearsal_asks_nobody(era: str) -> None:
    """It changes nothing; nor is a job that runs already asked for again."""
    heard: list[str] = []
    plan = jobs.plan_install(fast_catalog.RECIPE, rehearse=True, offline=True).plan_id
    started = facts(
        call(
            "start_install",
            {"plan_id": plan},
            ASK,
            era=era,
            answer=answering("decline", None, heard),
        )
    )
    assert [] == heard
    assert "cancelled" == facts(call("cancel_job", {"job_id": started["job_id"]}, ASK))["state"]


def test_a_plan_that_is_none_is_refused_before_anybody_is_asked() -> None:
    """A person is not bothered with what cannot be done."""
    heard: list[str] = []
    error = fault(
        call("start_install", {"plan_id": "plan-x"}, ASK, answer=answering("accept", True, heard))
    )
    assert ("unknown_plan", []) == (error["code"], heard)
