"""What every answer and every error has in common: its size, its schema, and what it says next."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client

from sparkrecipes import jobs
from sparkrecipes.catalog import open_catalog
from sparkrecipes.mcp_server import Settings, shape, showing
from sparkrecipes.mcp_server.shape import LARGE_BYTES, SMALL_BYTES, bounded, most_bytes, size
from sparkrecipes.mcp_server.wording import as_commands
from sparkrecipes.schema.findings import CheckReport, DiagnosisReport, Finding
from sparkrecipes.schema.job import JobResult
from tests.support import fast_catalog
from tests.support.fake_docker import FakeDocker, described
from tests.support.fast_catalog import RECIPE
from tests.support.mcp import ERAS, call, calls_in, facts, fault, with_client

LONG = "a long word " * 30
READING = (
    "search_recipes",
    "get_recipe",
    "estimate_memory",
    "check_recipe",
    "get_job",
    "list_jobs",
    "list_servers",
    "diagnose",
)


@pytest.fixture(autouse=True)
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeDocker:
    """Folders of its own, and a Docker that has one server of ours."""
    fast_catalog.use(monkeypatch, tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    fake = FakeDocker(folder)
    fake.answer("ps", stdout="x")
    fake.answer("container", "inspect", stdout=described(recipe_id=RECIPE))
    fake.answer("logs", stdout=LONG)
    return fake


def schemas() -> dict[str, Any]:
    """Return each tool's output schema."""
    return {t.name: t.output_schema for t in with_client(lambda c: c.list_tools()).tools}


def test_the_shipped_catalogs_answers_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recipe, whatever it is asked unasked-for: at most 4 kB, and nothing had to be cut."""
    monkeypatch.delenv("SPARKRECIPES_CATALOG")
    monkeypatch.delenv("SPARKRECIPES_MACHINE")
    known = schemas()

    async def ask(client: Client) -> None:
        wanted: list[tuple[str, dict[str, Any]]] = [("search_recipes", {})]
        for recipe_id in sorted(open_catalog().recipes):
            wanted.append(("get_recipe", {"recipe_id": recipe_id}))
            wanted.append(("estimate_memory", {"recipe_or_model": recipe_id}))
        for recipe_id in longest_commands():
            wanted.append(("check_recipe", {"recipe_id": recipe_id}))
            wanted.append(("plan_install", {"recipe_id": recipe_id}))
        for name, given in wanted:
            answer = facts(await client.call_tool(name, given))
            assert size(answer) <= SMALL_BYTES, (name, given, size(answer))
            assert "left out" not in answer["next"], (name, given)
            assert "null" not in shape.compact(answer)
            jsonschema.validate(answer, known[name])

    with_client(ask)


def longest_commands() -> list[str]:
    """Return the recipes with the longest texts: their plans are the longest answers."""
    catalog = open_catalog()
    text = {
        recipe_id: sum(map(len, (*recipe.flags, *recipe.caveats, *recipe.env.values())))
        for recipe_id, recipe in catalog.recipes.items()
    }
    return sorted(text, key=text.__getitem__)[-3:]


def worst_answers() -> list[tuple[str, dict[str, Any]]]:
    """Return answers that are as long as they could ever be."""
    findings = tuple(
        Finding(check=f"check_{n}", level="blocker", message=LONG, repair=LONG) for n in range(30)
    )
    report = CheckReport(recipe_id=RECIPE, verdict="blocked", findings=findings, summary=LONG)
    causes = [
        {"id": f"c{n}", "cause": LONG, "evidence": LONG, "remedy": LONG, "confidence": "high"}
        for n in range(20)
    ]
    diagnosis = DiagnosisReport.model_validate_json(
        json.dumps({"diagnoses": causes, "first_error": LONG})
    )
    figures = [
        {"figure": LONG[:60], "unit": "tok/s", "measured": 1.5, "published": 2.5}
        | {"difference_pct": -40.0, "verdict": "slower"}
        for _ in range(40)
    ]
    result = JobResult.model_validate_json(
        json.dumps(
            {"ok": False, "simulated": False, "verdict": "slower", "summary": LONG}
            | {"figures": figures, "warnings": [LONG] * 40}
        )
    )
    found = {
        "check_recipe": showing.checked(report),
        "diagnose": showing.diagnosed(diagnosis, [LONG] * 50),
        "get_job": showing.result("20260101T000000-abcdef", result),
    }
    return [(n, shape.without_nulls(a.model_dump(mode="json"))) for n, a in found.items()]


@pytest.mark.parametrize(("name", "answer"), worst_answers(), ids=["check", "diagnose", "get_job"])
def test_the_longest_answers_lose_rows_and_say_so(name: str, answer: dict[str, Any]) -> None:
    """Within 4 kB; what is left is whole, what is left out is counted; ranges stay pairs."""
    whole = copy.deepcopy(answer) | {"need_gib": [1.0, 2.0], "next": "call list_servers()"}
    assert size(whole) > SMALL_BYTES
    shown = bounded(copy.deepcopy(whole), SMALL_BYTES)
    assert size(shown) <= SMALL_BYTES
    assert [1.0, 2.0] == shown["need_gib"]
    for key in ("problems", "causes", "figures"):
        if key in whole:
            kept = len(shown[key])
            assert whole[key][:kept] == shown[key]
            said = f"{len(whole[key]) - kept} of {key}"
            assert kept == len(whole[key]) or said in shown["next"]
    if "warnings" in whole:
        assert shown["warnings"][-1] == f"and {40 - len(shown['warnings']) + 1} more"


def test_many_jobs_and_servers_are_small_too(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty containers, twelve jobs on addresses of 2,000 characters."""
    many = [json.loads(described(recipe_id=f"{RECIPE}-{n}"))[0] for n in range(60)]
    docker.answers.clear()
    docker.answer("ps", stdout="x " * 20)
    docker.answer("container", "inspect", stdout=json.dumps(many))
    servers = facts(call("list_servers"))
    assert (True, True) == (size(servers) <= SMALL_BYTES, "of servers)" in servers["next"])
    monkeypatch.setattr("sparkrecipes.jobs.starting.spawn", lambda *_: None)
    for n in range(12):
        jobs.start_round(base_url=f"http://127.0.0.1:9/{n}" + "x" * 1900)
    assert size(facts(call("list_jobs"))) <= SMALL_BYTES


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({}, SMALL_BYTES),
        ({"limit": 10}, SMALL_BYTES),
        ({"limit": 50}, LARGE_BYTES),
        ({"detail": "brief", "log_lines": 0}, SMALL_BYTES),
        ({"detail": "full"}, LARGE_BYTES),
        ({"log_lines": 1}, LARGE_BYTES),
    ],
)
def test_only_what_was_asked_for_is_long(given: dict[str, Any], most: int) -> None:
    """Full detail, many rows, log lines."""
    assert most == most_bytes(given)


@pytest.mark.parametrize("era", ERAS)
def test_errors_are_as_the_tools_own_schema_says(era: str) -> None:
    """A client that holds a structure to the schema takes an error too; a good answer needs all."""
    known = schemas()
    assert 13 == len(known)

    async def ask(client: Client) -> list[dict[str, str]]:
        return [fault(await client.call_tool(name, {"no_such": 1})) for name in known]

    for schema, error in zip(known.values(), with_client(ask, era=era), strict=True):
        assert ("bad_arguments", "no_such") == (error["code"], error["parameter"])
        jsonschema.validate({"error": error}, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({}, schema)


def test_a_read_only_server_names_no_tool_that_it_does_not_have() -> None:
    """What acts is named as the command that a person may run; so in its instructions."""
    settings = Settings(offline=True, read_only=True)
    wanted: dict[str, dict[str, Any]] = {
        "search_recipes": {"use_case": "agents"},
        "get_recipe": {"recipe_id": RECIPE},
        "estimate_memory": {"recipe_or_model": RECIPE},
        "check_recipe": {"recipe_id": RECIPE},
        "list_servers": {},
        "list_jobs": {},
        "diagnose": {"log": "CUDA out of memory"},
    }

    async def ask(client: Client) -> list[str]:
        told = [client.instructions or ""]
        told += [tool.description or "" for tool in (await client.list_tools()).tools]
        for name, given in wanted.items():
            told.append(facts(await client.call_tool(name, given))["next"])
        return told

    said = with_client(ask, settings)
    assert [] == [text for text in said if {name for name, _ in calls_in(text)} - set(READING)]
    assert any(f"sparkrecipes install {RECIPE}" in text for text in said)
    assert not any("plan_install" in text or "start_" in text for text in said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('call plan_install(recipe_id="a-b")', "the person may run: sparkrecipes install a-b"),
        ('then plan_install(recipe_id="a", rehearse=true)', "then sparkrecipes rehearse a"),
        ("plan_install(recipe_id=...) again", "sparkrecipes install RECIPE again"),
        (
            'plan_install(recipe_id="a", context_tokens=65536, users=2).',
            "sparkrecipes install a --context 65536 --users 2.",
        ),
        ('call check_recipe(recipe_id="a")', 'call check_recipe(recipe_id="a")'),
    ],
)
def test_calls_become_commands(text: str, expected: str) -> None:
    """Only of tools that are not there."""
    assert expected == as_commands(text, ["plan_install"])
