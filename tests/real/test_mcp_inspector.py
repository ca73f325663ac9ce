"""The MCP Inspector and the conformance suite, real: every tool, both transports, both eras."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import part
from tests.support import fast_catalog
from tests.support.fast_catalog import RECIPE
from tests.support.token_proxy import TokenProxy

pytestmark = pytest.mark.real

TOKEN = "0123456789abcdef0123456789abcdef"
ERAS = ("legacy", "modern")
TRANSPORTS = ("stdio", "http")

SCENARIOS = (
    "server-initialize",
    "server-session-lifecycle",
    "tools-list",
    "resources-list",
    "prompts-list",
    "ping",
    "completion-complete",
    "caching",
    "http-header-validation",
    "dns-rebinding-protection",
    "sep-2164-resource-not-found",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
    "sep-2640-skills-directory",
)
"""Those that a real server can pass: the others call tools that only a test server has."""

STATELESS_NEEDS_FIXTURES = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
}
"""Checks of ``server-stateless`` that call such a tool."""


@dataclass
class Served:
    """A server over HTTP, and how to ask it."""

    folder: Path
    env: dict[str, str]
    passed: dict[str, str]
    port: int

    def target(self, transport: str) -> list[str]:
        """Return what the Inspector connects to."""
        if transport == "stdio":
            # A host passes on only what it is told to.
            passed = [
                word for name, value in self.passed.items() for word in ("-e", f"{name}={value}")
            ]
            return [*passed, "--", sys.executable, "-m", "sparkrecipes", "mcp", "--offline"]
        return [
            *("--server-url", f"http://127.0.0.1:{self.port}/mcp", "--transport", "http"),
            *("--header", f"Authorization: Bearer {TOKEN}"),
        ]

    def inspect(
        self, era: str, transport: str, *words: str, code: int = 0, lines: bool = False
    ) -> Any:
        """Run the Inspector; return its JSON: one object, or one a line."""
        program = self.folder / "node_modules" / ".bin"
        where = self.target(transport)
        asked = ["--format", "json", "-q", "--protocol-era", era, *words]
        done = subprocess.run(
            [str(program / "node"), str(program / "mcp-inspector"), "--cli", *asked, *where],
            capture_output=True,
            text=True,
            env=self.env,
            timeout=120,
        )
        assert code == done.returncode, (words, done.stdout[-2000:], done.stderr[-2000:])
        if lines:
            return [json.loads(line) for line in done.stdout.splitlines()]
        return json.loads(done.stdout)

    def call(self, era: str, transport: str, tool: str, code: int = 0, **given: Any) -> Any:
        """Call a tool; return its facts, or its error."""
        answer = self.inspect(
            era,
            transport,
            *("--method", "tools/call", "--tool-name", tool),
            *("--tool-args-json", json.dumps(given)),
            code=code,
        )["result"]
        return json.loads(answer["content"][0]["text"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Install the suite and start a server over HTTP; jobs are shared with those over a pipe."""
    folder = Path(part("inspector.sh", "env"))
    home = tmp_path_factory.mktemp("inspected")
    passed = fast_catalog.environment(home) | {
        name: os.environ[name] for name in ("PYTHONPATH", "DOCKER_HOST") if name in os.environ
    }
    env = {**os.environ, **passed, "SPARKRECIPES_MCP_TOKEN": TOKEN}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "sparkrecipes", "mcp", "--http", "--offline", "--port", str(port)],
        env=env,
        stdin=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not listens(port):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    try:
        yield Served(folder, env, passed, port)
    finally:
        process.terminate()
        process.wait(timeout=15)


def listens(port: int) -> bool:
    """Say whether somebody answers there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_no_fault_in_the_tools(
    served: Served, era: str, transport: str
) -> None:
    """``--strict``: no schema that some client could not take."""
    listed = served.inspect(era, transport, "--method", "tools/list", "--strict")
    assert 13 == len(listed["result"]["tools"])


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_drives_every_tool(served: Served, era: str, transport: str) -> None:
    """From the pick to the end of a job; an error is a tool error (exit code 5)."""

    def call(tool: str, code: int = 0, **given: Any) -> Any:
        return served.call(era, transport, tool, code, **given)

    assert call("search_recipes", use_case="agents")["pick"]["id"]
    assert RECIPE == call("get_recipe", recipe_id=RECIPE)["id"]
    assert "fits" == call("estimate_memory", recipe_or_model=RECIPE, users=1)["verdict"]
    assert call("check_recipe", recipe_id=RECIPE)["verdict"] in ("ready", "blocked", "unknown")
    assert "found" == call("diagnose", log="CUDA out of memory")["verdict"]
    plan = call("plan_install", recipe_id=RECIPE, rehearse=True)
    job = call("start_install", plan_id=plan["plan_id"])
    assert "running" == job["state"]
    assert job["job_id"] in [row["job_id"] for row in call("list_jobs")["jobs"]]
    assert call("get_job", job_id=job["job_id"], wait_s=1)["state"] in ("running", "done")
    assert call("cancel_job", job_id=job["job_id"])["state"] in ("cancelled", "done")
    round_ = call("start_round", base_url="http://127.0.0.1:9", model="none")
    while (ended := call("get_job", job_id=round_["job_id"], wait_s=20))["state"] == "running":
        pass
    assert ("failed", "round_failed") == (ended["state"], ended["error"]["code"])
    assert "unknown_id" == call("get_recipe", 5, recipe_id="nothing")["error"]["code"]
    unknown = call("stop_server", 5, name="no-such-recipe")
    assert "unknown_id" == unknown["error"]["code"]
    # Without a Docker daemon this is an error with a code; with one it answers.
    done = subprocess.run(["docker", "info"], capture_output=True)
    assert call("list_servers", 0 if done.returncode == 0 else 5)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_reads_prompts_and_resources(
    served: Served, era: str, transport: str
) -> None:
    """Five prompts in two languages, a recipe by its address."""
    prompts = served.inspect(era, transport, "--method", "prompts/list")["result"]["prompts"]
    assert 5 == len(prompts)
    got = served.inspect(
        era,
        transport,
        *("--method", "prompts/get", "--prompt-name", "install_and_verify"),
        *("--prompt-args", "language=es"),
    )
    assert "Pregunta antes" in json.dumps(got, ensure_ascii=False)
    read = served.inspect(
        era, transport, "--method", "resources/read", "--uri", f"recipe://{RECIPE}"
    )
    assert "title:" in json.dumps(read)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_inspector_verifies_the_skills(served: Served, transport: str) -> None:
    """Every file by its digest and size; only the newer era has extensions."""
    reports = served.inspect(
        "modern",
        transport,
        *("--method", "skills/list", "--verify", "--require-digests"),
        lines=True,
    )
    skills = [report for report in reports if "files" in report]
    assert 5 == len(skills)
    assert {"verified"} == {file["status"] for skill in skills for file in skill["files"]}
    assert all(skill["conformance"] == [] == skill["frontmatter"] for skill in skills)


def test_the_inspectors_load_finds_no_error(served: Served) -> None:
    """Two hundred calls, four at a time."""
    seen = served.inspect(
        "modern",
        "http",
        *("--method", "tools/call", "--tool-name", "search_recipes", "--tool-arg", "query=tiny"),
        *("--load", "--load-requests", "200", "--load-concurrency", "4"),
    )
    text = json.dumps(seen)
    assert '"errors": 0' in text or '"errorRate": 0' in text, text


@pytest.fixture(scope="module")
def conformance(served: Served) -> Iterator[Any]:
    """Return what runs one scenario of the conformance suite."""
    program = served.folder / "node_modules" / ".bin"

    with TokenProxy(served.port, TOKEN) as proxy:

        def run(scenario: str, output: Path) -> tuple[int, dict[str, str]]:
            url = f"http://{proxy.address}/mcp"
            done = subprocess.run(
                [
                    *(str(program / "node"), str(program / "conformance"), "server"),
                    *("--url", url, "--scenario", scenario, "-o", str(output)),
                ],
                capture_output=True,
                text=True,
                env=served.env,
                timeout=120,
            )
            found = [json.loads(path.read_text()) for path in output.rglob("checks.json")]
            checks = {check["id"]: check["status"] for checks in found for check in checks}
            assert checks, done.stdout + done.stderr
            return done.returncode, checks

        yield run


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(conformance: Any, tmp_path: Path, scenario: str) -> None:
    """Every check of each scenario that fits a real server."""
    code, checks = conformance(scenario, tmp_path)
    assert (0, []) == (code, [name for name, status in checks.items() if status == "FAILURE"])


def test_conformance_of_the_stateless_era(conformance: Any, tmp_path: Path) -> None:
    """All but the checks that call a tool which only a test server has."""
    _, checks = conformance("server-stateless", tmp_path)
    failed = {name for name, status in checks.items() if status == "FAILURE"}
    assert (STATELESS_NEEDS_FIXTURES, True) == (failed, len(checks) > 20)
