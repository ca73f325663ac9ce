"""Prompts and skills: short, true to the tools, the same in both languages, and they lead home."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sparkrecipes import agent_skills, operations
from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli import main
from sparkrecipes.cli.parser import build_parser
from sparkrecipes.errors import CatalogError, UnknownId
from sparkrecipes.mcp_server import Settings
from sparkrecipes.rehearsal import EngineDouble
from tests.support import fast_catalog
from tests.support.fake_docker import FakeDocker, described
from tests.support.fast_catalog import RECIPE
from tests.support.mcp import ERAS, calls_in, facts, with_client

NAMES = ("add_recipe", "choose_recipe", "diagnose_failure", "install_and_verify", "measure_running")
SECTIONS = {
    "en": ("Ask the person first, in one message", "Do", "Report at the end"),
    "es": ("Pregunta antes a la persona, en un solo mensaje", "Haz", "Informa al final"),
}
ALL = [(name, language) for name in NAMES for language in agent_skills.LANGUAGES]
ORDER = ("search_recipes", "get_recipe", "estimate_memory", "check_recipe", "plan_install")


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeDocker:
    """A Docker that has one ended server of ours."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    fake = FakeDocker(programs)
    fake.answer("ps", stdout="x")
    fake.answer("container", "inspect", stdout=described("oom", recipe_id=RECIPE))
    fake.answer("logs", stdout="ValueError: No available memory for the cache blocks\n")
    return fake


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, docker: FakeDocker) -> Path:
    """Folders of its own."""
    fast_catalog.use(monkeypatch, tmp_path)
    return tmp_path


def schemas() -> dict[str, dict[str, Any]]:
    """Return each tool's parameters."""
    found = with_client(lambda client: client.list_tools())
    return {tool.name: tool.input_schema["properties"] for tool in found.tools}


def section(text: str, number: int, language: str) -> str:
    """Return one of the three sections of a prompt."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS[language]
    return parts[2 * number + 2]


def test_the_five_prompts_are_there_in_both_languages() -> None:
    """No more and no fewer."""
    assert NAMES == agent_skills.names()
    assert set(ALL) == set(agent_skills.prompts())


@pytest.mark.parametrize(("name", "language"), ALL)
def test_a_prompt_is_short_and_true(name: str, language: str) -> None:
    """Tools and parameters exist; it asks before it acts, and says what to report."""
    text = agent_skills.prompt(name, language).text  # type: ignore[arg-type]
    assert len(text) <= 3500
    assert section(text, 0, language).count("\n") >= 2
    assert section(text, 2, language).count("\n- ") >= 3
    calls = calls_in(text)
    assert len(calls) >= 3
    known = schemas()
    for tool, given in calls:
        assert set(given) <= set(known[tool]), (tool, given)


@pytest.mark.parametrize(("name", "language"), ALL)
def test_commands_in_a_prompt_exist(name: str, language: str) -> None:
    """For an agent that has only the command line."""
    text = agent_skills.prompt(name, language).text  # type: ignore[arg-type]
    parser = build_parser()
    for command in re.findall(r"`sparkrecipes ([^`]+)`", text):
        words = [word.replace("BASE_URL", "http://x") for word in command.split()]
        parser.parse_args(words)


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_say_the_same(name: str) -> None:
    """The same calls and commands in the same order, the same number of points."""
    texts = [agent_skills.prompt(name, language).text for language in agent_skills.LANGUAGES]
    calls, commands, points = zip(
        *(
            (
                calls_in(text),
                re.findall(r"`sparkrecipes ([^`]+)`", text),
                len(re.findall(r"^- |^\d\. ", text, re.MULTILINE)),
            )
            for text in texts
        ),
        strict=True,
    )
    assert calls[0] == calls[1]
    assert commands[0] == commands[1]
    assert points[0] == points[1]


class Follower:
    """An agent that does what a prompt's steps say, word for word."""

    def __init__(self, client: Client, **words: Any) -> None:
        """Take what the person answered."""
        self.client = client
        self.words: dict[str, Any] = {"CONTEXT": 32768, "USERS": 4, "WORDS": "agents", **words}
        self.done: list[str] = []
        self.last: dict[str, Any] = {}

    async def follow(self, steps: str, **changes: Any) -> None:
        """Do the steps; a step for the case of a failure is left out where there was none."""
        for line in steps.splitlines():
            failed = self.last.get("state") in ("failed", "lost")
            if line.startswith(("6. If it failed", "6. Si fall")) and not failed:
                continue
            for tool, given in calls_in(line):
                extra = changes if tool == "plan_install" else {}
                await self.call(tool, {**given, **extra})

    async def call(self, tool: str, given: dict[str, Any]) -> None:
        """Make one call; one that waits is repeated as the prompt says."""
        filled = {key: self.words.get(str(value), value) for key, value in given.items()}
        filled = {key: value for key, value in filled.items() if value is not None}
        while True:
            self.last = facts(await self.client.call_tool(tool, filled))
            self.done.append(tool)
            if self.last.get("state") != "running" or tool != "get_job":
                break
        self.words["PLAN_ID"] = self.last.get("plan_id", self.words.get("PLAN_ID"))
        self.words["JOB_ID"] = self.last.get("job_id", self.words.get("JOB_ID"))
        if pick := self.last.get("pick"):
            self.words["RECIPE_ID"] = pick["id"]


async def followed(
    client: Client, name: str, language: str, *, rehearse: bool = False, **words: Any
) -> Follower:
    """Get a prompt as a host gets it, and do its steps word for word."""
    got = await client.get_prompt(name, {"language": language})
    agent = Follower(client, **words)
    steps = section(got.messages[0].content.text, 1, language)
    await agent.follow(steps, **({"rehearse": True} if rehearse else {}))
    return agent


def follow_prompt(name: str, language: str, era: str = "2026-07-28", **words: Any) -> Follower:
    """Follow one prompt on a server of its own."""
    return with_client(
        lambda client: followed(client, name, language, **words), Settings(offline=True), era=era
    )


def test_following_install_and_verify_ends_with_a_verdict(folder: Path) -> None:
    """Off the Spark, as it says, with rehearse=true; in both languages at once, by two agents.

    They ask for the same work, so that they come to the end of the same job.
    """

    async def both(client: Client) -> list[Follower]:
        walks = (
            followed(client, "install_and_verify", language, rehearse=True)
            for language in agent_skills.LANGUAGES
        )
        return list(await asyncio.gather(*walks))

    agents = with_client(both, Settings(offline=True))
    for agent in agents:
        assert ["start_install", "get_job"] == list(dict.fromkeys(agent.done))[-2:]
        assert ("done", True) == (agent.last["state"], agent.last["result"]["simulated"])
        assert agent.last["result"]["figures"]
    assert 1 == len({agent.last["job_id"] for agent in agents})


@pytest.mark.parametrize("language", agent_skills.LANGUAGES)
def test_following_choose_recipe_ends_with_what_stands_in_the_way(
    folder: Path, language: str
) -> None:
    """A pick, its notes, its size, its checks; nothing is planned."""
    agent = follow_prompt("choose_recipe", language)
    assert list(ORDER[:4]) == agent.done
    assert agent.last["verdict"] in ("ready", "blocked", "unknown")


@pytest.mark.parametrize(("language", "era"), [*zip(("en", "es"), ERAS, strict=True)])
def test_following_diagnose_failure_ends_with_a_cause_and_a_plan(
    folder: Path, language: str, era: str
) -> None:
    """Of a container that was killed, and of a pasted log."""
    agent = follow_prompt(
        "diagnose_failure", language, era, rehearse=True, RECIPE_ID=RECIPE, LOG="exit code 137"
    )
    assert ["list_servers", "list_jobs", "diagnose", "diagnose", "check_recipe"] == agent.done[:5]
    assert "plan_install" == agent.done[-1]


@pytest.mark.parametrize("language", agent_skills.LANGUAGES)
def test_following_measure_running_ends_with_a_report(folder: Path, language: str) -> None:
    """Of an endpoint that plays published timing."""
    catalog = open_catalog()
    recipe = catalog.recipe(RECIPE)
    row = catalog.october_row(recipe)
    assert row
    with EngineDouble(recipe, catalog.engine("vllm"), row, load_s=0.0) as double:
        agent = follow_prompt(
            "measure_running", language, RECIPE_ID=RECIPE, BASE_URL=double.base_url
        )
    assert ["list_servers", "start_round"] == agent.done[:2]
    assert ("done", "round") == (agent.last["state"], agent.last["kind"])
    assert 4 == len(agent.last["result"]["figures"])


@pytest.mark.parametrize("language", agent_skills.LANGUAGES)
def test_following_add_recipe_ends_with_a_valid_file_and_its_command(
    folder: Path, capsys: pytest.CaptureFixture[str], language: agent_skills.Language
) -> None:
    """The nearest recipe as a pattern; the new file is validated, sized, checked and rendered."""
    catalog = folder / "catalog" / "recipes"
    text = (catalog / f"{RECIPE}.yaml").read_text()
    file = catalog / "tiny-8b-fp8-vllm-new.yaml"
    file.write_text(text.partition("evidence:")[0] + "sources:\n  - https://example.org/new\n")
    agent = follow_prompt("add_recipe", language, RECIPE_ID=RECIPE, MODEL="tiny")
    assert ["search_recipes", "get_recipe", "estimate_memory", "check_recipe"] == agent.done
    steps = section(agent_skills.prompt("add_recipe", language).text, 1, language)
    commands = re.findall(r"`sparkrecipes (\w+) FILE`", steps)
    assert ["validate", "fit", "check", "command"] == commands
    for command in commands:
        code = main([command, str(file), "--json", "--offline"])
        answer = json.loads(capsys.readouterr().out)
        assert "error" not in answer, (command, answer)
        assert code in (0, 1, 3)
    assert operations.validate_recipe([file]).valid


def test_what_was_given_stands_after_the_prompt() -> None:
    """In the prompt's own language."""

    async def ask(client: Client) -> list[str]:
        asked = ({"use_case": "agents"}, {"use_case": "agents", "language": "es"})
        got = [await client.get_prompt("choose_recipe", given) for given in asked]
        return [str(one.messages[0].content.text).splitlines()[-1] for one in got]

    assert ["Given: use_case = agents", "Dado: use_case = agents"] == with_client(ask)


def test_skills_are_the_same_words(tmp_path: Path) -> None:
    """A folder each, named as its front matter says; files of others are left alone."""
    written = agent_skills.write_skills(tmp_path)
    assert (10, ()) == (len(written.written), written.kept)
    for skill in agent_skills.skills().skills:
        text = (tmp_path / skill.name / "SKILL.md").read_text()
        assert text.startswith(f'---\nname: {skill.name}\ndescription: "')
        assert (
            agent_skills.prompt(skill.name.removeprefix("sparkrecipes-").replace("-", "_")).text
            in text
        )
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.name)
        assert len(skill.description) <= 1024
    changed = tmp_path / "sparkrecipes-add-recipe" / "SKILL.md"
    changed.write_text("mine\n")
    again = agent_skills.write_skills(tmp_path)
    assert ((str(changed),), "mine\n") == (again.kept, changed.read_text())


def test_the_command_line_gives_prompts_and_skills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """List, a text to paste in either language, a folder for agents."""
    assert 0 == main(["skills", "--json"])
    assert 5 == len(json.loads(capsys.readouterr().out)["skills"])
    assert 0 == main(["skills", "show", "choose_recipe", "--lang", "es"])
    assert "Pregunta antes" in capsys.readouterr().out
    assert 0 == main(["skills", "add", "--dir", str(tmp_path / "skills")])
    assert (tmp_path / "skills" / "sparkrecipes-choose-recipe" / "SKILL.md").is_file()
    assert 2 == main(["skills", "show", "nothing"])


def test_broken_prompts_are_named(tmp_path: Path) -> None:
    """A file without its front matter; a name that is none."""
    file = tmp_path / "x.en.md"
    file.write_text("# no front matter\n")
    with pytest.raises(CatalogError):
        agent_skills.read_prompt(file, "x", "en")
    with pytest.raises(UnknownId):
        agent_skills.prompt("nothing")
