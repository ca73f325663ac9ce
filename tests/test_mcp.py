"""The MCP server: few tools, small answers, one shape for answers and errors, both eras."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from sparkrecipes.catalog import open_catalog
from sparkrecipes.mcp_server import Settings, build_server
from sparkrecipes.mcp_server.house import House
from sparkrecipes.mcp_server.wording import as_tools
from tests.support import fast_catalog
from tests.support.mcp import ERAS, Pipe, call, calls_in, facts, fault, with_client

AGENTS_PICK = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
RECIPES = sorted(open_catalog().recipes)
MEASURED = sorted(summary.id for summary in open_catalog().listed().recipes)
SMALL = 4096
"""Bytes of an answer that nobody asked to be long."""

TOOLS = {
    "search_recipes": "use_case query context_tokens users max_memory_gb limit cursor",
    "get_recipe": "recipe_id detail",
    "estimate_memory": "recipe_or_model context_tokens users kv_cache_dtype",
    "check_recipe": "recipe_id",
    "get_job": "job_id wait_s log_lines",
    "list_jobs": "",
    "list_servers": "",
    "diagnose": "log server",
    "plan_install": "recipe_id context_tokens users port rehearse",
    "start_install": "plan_id",
    "start_round": "recipe_id base_url model quick",
    "cancel_job": "job_id",
    "stop_server": "name",
}
ACTING = ("plan_install", "start_install", "start_round", "cancel_job", "stop_server")


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes this user's jobs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def tools(settings: Settings | None = None, era: str = "2026-07-28") -> list[dict[str, Any]]:
    """Return tools/list as it goes over the wire."""
    found = with_client(lambda client: client.list_tools(), settings, era=era)
    return [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in found.tools]


def size(value: Any) -> int:
    """Return the bytes of a value as compact JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_and_their_parameters_are_those_of_the_design(era: str) -> None:
    """Thirteen, with the names that others rely on, in both eras."""
    seen = {t["name"]: " ".join(t["inputSchema"].get("properties", {})) for t in tools(era=era)}
    assert TOOLS == seen


def test_the_tool_list_is_small() -> None:
    """What a model sees is at most 8 kB, all of it at most 16 kB: an agent's context is dear."""
    shown = ("name", "description", "inputSchema", "annotations")
    assert size([{key: tool[key] for key in shown} for tool in tools()]) <= 8192
    assert size(tools()) <= 16384


def test_every_tool_has_all_four_annotations() -> None:
    """Hosts decide by them what a person is asked."""
    hints = {t["name"]: t["annotations"] for t in tools()}
    names = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert dict.fromkeys(TOOLS, names) == {name: set(hint) for name, hint in hints.items()}
    writes = {name for name, hint in hints.items() if not hint["readOnlyHint"]}
    assert {"start_install", "start_round", "cancel_job", "stop_server"} == writes
    destroys = {name for name, hint in hints.items() if hint["destructiveHint"]}
    assert {"cancel_job", "stop_server"} == destroys


def test_descriptions_say_when_to_use_a_tool_and_what_comes_next() -> None:
    """At least a sentence each; what is named in them exists."""
    for tool in tools():
        assert 60 <= len(tool["description"]) <= 400, tool["name"]


def test_a_read_only_server_does_not_have_what_acts() -> None:
    """They are not refused: they are not there."""
    settings = Settings(offline=True, read_only=True)
    assert set(TOOLS) - set(ACTING) == {tool["name"] for tool in tools(settings)}
    error = fault(call("start_install", {"plan_id": "plan-x"}, settings))
    assert "unknown_tool" == error["code"]


@pytest.mark.parametrize("era", ERAS)
def test_a_use_case_gives_the_pick_and_its_reasons_first(era: str) -> None:
    """In Spanish too; the pick is the operation's own, and next says what to call."""
    found = facts(call("search_recipes", {"use_case": "agentes"}, era=era))
    assert (AGENTS_PICK, AGENTS_PICK) == (found["pick"]["id"], found["recipes"][0]["id"])
    assert found["pick"]["why"]
    assert ("check_recipe", {"recipe_id": AGENTS_PICK}) == calls_in(found["next"])[0]


@pytest.mark.parametrize(
    "given",
    [
        {"use_case": "agents", "context_tokens": 65536, "users": 2},
        {"use_case": "agents, 64K, 2 users, leave 40 GB free, Apache licence, on vLLM"},
    ],
)
def test_what_was_asked_for_is_what_is_planned_next(given: dict[str, Any]) -> None:
    """A sentence may hold every constraint; its context and its users go into the plan."""
    found = facts(call("search_recipes", given))
    plan = {"recipe_id": found["pick"]["id"], "context_tokens": 65536, "users": 2}
    assert ("plan_install", plan) == calls_in(found["next"])[1]


def test_search_filters_and_pages() -> None:
    """All recipes once, page by page; words, memory and users rule out."""
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(10):
        page = facts(call("search_recipes", {"limit": 7, **cursor}))
        seen += [row["id"] for row in page["recipes"]]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert (len(seen), RECIPES) == (page["total"], sorted(seen))
    words = facts(call("search_recipes", {"query": "gemma MTP"}))
    assert "gemma-4-26b-a4b-nvfp4-vllm-mtp" == words["recipes"][0]["id"]
    assert [] == [row["id"] for row in words["recipes"] if not re.match("gemma.*-mtp", row["id"])]
    small = facts(call("search_recipes", {"max_memory_gb": 50, "limit": 50}))
    assert 0 < small["total"] < len(RECIPES)
    assert all(row["need_gib"] * 2**30 <= 50.1e9 for row in small["recipes"])
    none = facts(call("search_recipes", {"query": "nothing like it"}))
    assert (0, True) == (none["total"], "nothing suits" in none["next"])


def test_other_answers_are_small_too() -> None:
    """Search with everything asked for, the machine, jobs, servers, a diagnosis of a huge log."""
    log = "\n".join(f"INFO line {n} of a long log that says nothing" for n in range(4000))
    log += "\nValueError: No available memory for the cache blocks"
    for name, given in (
        ("search_recipes", {"use_case": "agents", "context_tokens": 65536, "users": 8}),
        ("search_recipes", {}),
        ("check_recipe", {}),
        ("list_jobs", {}),
        ("diagnose", {"log": log}),
    ):
        assert size(facts(call(name, given))) <= SMALL, name


def test_what_is_asked_for_in_full_is_given() -> None:
    """Flags, environment, sources and the exact command."""
    full = facts(call("get_recipe", {"recipe_id": AGENTS_PICK, "detail": "full"}))
    assert full["command"].startswith("docker run ")
    assert {"flags", "env", "sources", "weights"} <= set(full)
    assert "command" not in facts(call("get_recipe", {"recipe_id": AGENTS_PICK}))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "given", "code", "says", "parameter"),
    [
        (
            "get_recipe",
            {"recipe_id": "qwen3.6-35b-a3b-nvfp4-vllm-mpt"},
            "unknown_id",
            AGENTS_PICK,
            "recipe_id",
        ),
        ("get_recipe", {}, "bad_arguments", "recipe_id", "recipe_id"),
        ("get_recipe", {"recipe": "x"}, "bad_arguments", "recipe_id", "recipe"),
        ("get_recipe", {"recipe_id": 7}, "bad_arguments", "recipe_id", "recipe_id"),
        ("get_recipe", {"recipe_id": "x", "detail": "huge"}, "bad_arguments", "detail", "detail"),
        ("search_recipes", {"limit": 1000}, "bad_arguments", "limit", "limit"),
        ("search_recipes", {"cursor": "nonsense"}, "bad_cursor", "cursor", "cursor"),
        ("search_recipes", {"use_case": "knitting"}, "", "", "use_case"),
        (
            "estimate_memory",
            {"recipe_or_model": "nothing"},
            "unknown_id",
            "search_recipes",
            "recipe_or_model",
        ),
        ("estimate_memory", {"recipe_or_model": "owner/unknown"}, "offline", "", None),
        (
            "plan_install",
            {"recipe_id": AGENTS_PICK, "port": 99999},
            "bad_arguments",
            "port",
            "port",
        ),
        ("plan_install", {"recipe_id": AGENTS_PICK, "users": 0}, "bad_arguments", "users", "users"),
        ("start_install", {"plan_id": "plan-1"}, "unknown_plan", "plan_install", None),
        ("start_round", {}, "nothing_to_measure", "list_servers", "recipe_id"),
        ("get_job", {"job_id": "nothing"}, "unknown_job", "list_jobs", "job_id"),
        ("get_job", {"job_id": "x", "wait_s": 600}, "bad_arguments", "wait_s", "wait_s"),
        ("diagnose", {}, "bad_arguments", "log", "log"),
        ("get_recipes", {}, "unknown_tool", "get_recipe", None),
    ],
)
def test_errors_are_errors_with_code_message_and_repair(
    era: str, name: str, given: dict[str, Any], code: str, says: str, parameter: str | None
) -> None:
    """isError, the parameter at fault or the next call; never a traceback, never a success."""
    error = fault(call(name, given, era=era))
    assert code in ("", error["code"])
    assert error["message"]
    assert says in error["message"] + error["repair"]
    assert "Traceback" not in error["message"]
    assert parameter == error.get("parameter")


def test_unknown_is_never_a_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No known cause, no Docker: said as what it is."""
    none = facts(call("diagnose", {"log": "all is well"}))
    assert ("unknown", True) == (none["verdict"], "no all-clear" in none["next"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "docker_missing" == fault(call("list_servers"))["code"]
    assert "docker_missing" == fault(call("diagnose", {"server": AGENTS_PICK}))["code"]
    machine = facts(call("check_recipe"))
    assert "blocked" == machine["verdict"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: sparkrecipes list", "call search_recipes()"),
        ("see it: sparkrecipes show a-b.c", 'see it: get_recipe(recipe_id="a-b.c")'),
        ("run: sparkrecipes status.", "call list_servers()."),
        ("run: sparkrecipes fit owner/repo", 'call estimate_memory(recipe_or_model="owner/repo")'),
        ("run: sparkrecipes install RECIPE again", "call plan_install(recipe_id=...) again"),
        (
            "run: sparkrecipes jobs wait 20260101T000000-abcdef (it runs)",
            'call get_job(job_id="20260101T000000-abcdef", wait_s=45) (it runs)',
        ),
        (
            "run: sparkrecipes jobs wait 20261202T065401-123456",
            'call get_job(job_id="20261202T065401-123456", wait_s=45)',
        ),
        ("sparkrecipes validate x.yaml", "sparkrecipes validate x.yaml"),
        ("sparkrecipes listing", "sparkrecipes listing"),
    ],
)
def test_commands_become_tool_calls(text: str, expected: str) -> None:
    """An agent without a shell is never told to use one where a tool does the same."""
    assert expected == as_tools(text)


@pytest.mark.parametrize("era", ERAS)
def test_resources_and_their_completions(era: str) -> None:
    """Recipes and evidence as their files; ids are completed; what is not there is an error."""

    async def ask(client: Client) -> list[Any]:
        templates = await client.list_resource_templates()
        recipe = await client.read_resource(f"recipe://{AGENTS_PICK}")
        evidence = await client.read_resource("evidence://standard-round-2026-10")
        listed = await client.read_resource("catalog://recipes")
        ids = await client.complete(
            ResourceTemplateReference(uri="recipe://{recipe_id}"),
            {"name": "recipe_id", "value": "qwen3.6"},
        )
        languages = await client.complete(
            PromptReference(name="choose_recipe"), {"name": "language", "value": ""}
        )
        return [templates, recipe, evidence, listed, ids, languages]

    templates, recipe, evidence, listed, ids, languages = with_client(ask, era=era)
    assert {"recipe://{recipe_id}", "evidence://{evidence_id}", "report://{job_id}"} == {
        t.uri_template for t in templates.resource_templates
    }
    file = open_catalog().root / "recipes" / f"{AGENTS_PICK}.yaml"
    assert file.read_text() == recipe.contents[0].text
    assert "rows:" in evidence.contents[0].text
    assert len(RECIPES) == len(json.loads(listed.contents[0].text)["recipes"])
    assert AGENTS_PICK in ids.completion.values
    assert ["en", "es"] == languages.completion.values


def test_a_catalog_file_that_changes_is_read_again(tmp_path: Path) -> None:
    """The catalog stays open, and is never out of date for longer than a second."""
    catalog = fast_catalog.fast_catalog(tmp_path)
    house = House(Settings(catalog=str(catalog), machine="box"))
    first = house.catalog()
    assert first is house.catalog()
    file = catalog / "recipes" / "tiny-8b-fp8-vllm.yaml"
    file.write_text(file.read_text().replace("title: Tiny", "title: Small"))
    house.looked_at -= 2
    assert first is not house.catalog()
    assert house.catalog().recipe("tiny-8b-fp8-vllm").title.startswith("Small")


def test_importing_the_command_line_does_not_load_the_server() -> None:
    """Nor do jobs, plans and connections; only the server itself is heavy."""
    code = (
        "import sys; import sparkrecipes.cli.handlers, sparkrecipes.jobs;"
        "from sparkrecipes.cli import main; main(['skills', 'list', '--json']);"
        "print([m for m in ('mcp', 'huggingface_hub', 'uvicorn') if m in sys.modules],"
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stderr.strip()


def follow(server: Pipe, step: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Take one step; return what its answer says to do next."""
    answer = server.call(step[0], **step[1])
    # A blocked check names the rehearsal last, which needs no Spark; that is what is left.
    return calls_in(answer["next"])[-1 if step[0] == "check_recipe" else 0]


def test_a_scripted_agent_walks_by_the_tools_alone_although_its_server_is_killed(
    tmp_path: Path,
) -> None:
    """From "recommend for agents" to a report, doing only what each answer's next says.

    The server is killed with -9 in the middle of the rehearsal; a new one lists the job and returns
    its result. Only messages are ever on standard output.
    """
    env = fast_catalog.environment(tmp_path)
    server = Pipe(env, "--offline")
    step: tuple[str, dict[str, Any]] = ("search_recipes", {"use_case": "agents"})
    walked = []
    while step[0] != "get_job":
        walked.append(step[0])
        step = follow(server, step)
    assert ["search_recipes", "check_recipe", "plan_install", "start_install"] == walked
    server.kill()
    with Pipe(env, "--offline") as again:
        job_id = step[1]["job_id"]
        listed = again.call("list_jobs")["jobs"]
        # On a busy machine the job may have ended before the new server answers.
        assert [job_id] == [row["job_id"] for row in listed]
        assert listed[0]["state"] in ("running", "done")
        while (seen := again.call(step[0], **step[1]))["state"] == "running":
            step = calls_in(seen["next"])[0]
        assert ("done", True) == (seen["state"], seen["result"]["simulated"])
        assert seen["result"]["figures"]
        report = again.ask("resources/read", {"uri": seen["result"]["report"]})
        assert "simulated" in report["contents"][0]["text"].lower()


def test_the_registrys_file_names_this_package() -> None:
    """Version thrice the same, the marker in the README that is published."""
    root = Path(__file__).parents[1]
    server = json.loads((root / "server.json").read_text())
    package = server["packages"][0]
    version = f'version = "{server["version"]}"'
    assert version in (root / "pyproject.toml").read_text()
    assert (server["version"], "sparkrecipes") == (package["version"], package["identifier"])
    assert len(server["description"]) <= 100
    assert f"mcp-name: {server['name']} " in (root / "README.md").read_text()
    assert server["version"] == build_server().version
