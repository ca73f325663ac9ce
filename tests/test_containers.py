"""Containers: what is started, found, shown and stopped, and what is left alone."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import containers
from sparkrecipes.catalog import open_catalog
from sparkrecipes.containers.docker import FAILURES, Answer, docker, explain, run
from sparkrecipes.containers.servers import shown_line
from sparkrecipes.errors import LaunchFailed, Misuse, NotReady, Refused, ServerError, Unknown
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.serving import Command, Server
from tests.support.fake_docker import ID, NAME, FakeDocker, described

DATA = Path(__file__).parent / "data" / "docker"
RUN_FAILURES = json.loads((DATA / "run_failures.json").read_text())
HI = {"choices": [{"message": {"role": "assistant", "content": "one two three"}}]}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Put a fake docker, and nothing else, on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return FakeDocker(tmp_path)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    """A recipe of the catalog that vLLM serves."""
    return open_catalog().recipe("qwen3-8b-fp8-vllm")


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The engine file of vLLM."""
    return open_catalog().engine("vllm")


def ours(fake: FakeDocker, *states: str, **changes: Any) -> None:
    """Let docker know one container of ours, whose state changes from call to call."""
    fake.answer("ps", "--all", stdout=f"{ID}\n")
    for state in states or ("running",):
        fake.answer("container", "inspect", stdout=described(state, **changes))


def command(**changes: Any) -> Command:
    """Return a command as ``render`` makes it."""
    given = {
        "argv": ("docker", "run", "--detach", "--name", NAME, "tiny:1"),
        "shell": "docker run",
        "format": "docker",
        "container_name": NAME,
        "base_url": "http://127.0.0.1:8000",
        "gpu_memory_utilization": None,
        "warnings": (),
    }
    return Command.model_validate(given | changes)


def server_at(url: str | None, restarts: int = 0) -> Server:
    """Return a running server of ours."""
    return Server(
        name=NAME,
        container_id=ID,
        recipe_id="demo",
        image="tiny:1",
        state="running",
        exit_code=None,
        base_url=url,
        started_at=None,
        restarts=restarts,
    )


Reply = tuple[int, Any]


@contextmanager
def serving(**replies: Callable[[], Reply] | Reply) -> Iterator[tuple[str, list[str]]]:
    """Serve ``health``, ``models`` and ``completions``; yield the address and what was asked."""
    asked: list[str] = []
    given: dict[str, Any] = {
        "health": (200, ""),
        "models": (200, {"data": [{"id": "qwen3-8b"}]}),
        "completions": (200, HI),
    } | replies

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path} {self.headers.get('Authorization', '')}")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = given[self.path.rpartition("/")[2]]
            status, body = reply() if callable(reply) else reply
            text = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *args: Any) -> None:
            """Stay quiet."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", asked
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


# What Docker says when it fails


@pytest.mark.parametrize("case", RUN_FAILURES, ids=lambda c: f"{c['code']}: {c['source']}"[:60])
def test_each_recorded_failure_has_its_own_name_and_a_repair(case: dict[str, Any]) -> None:
    """C63, C64, C66, C67, C69 and what was recorded: each is told apart and has a next step."""
    said = explain(Answer(case["exit_code"], case["stdout"], case["stderr"]))
    assert case["code"] == said.code
    assert said.repair
    assert "docker says: " in said.message
    assert "--help" not in said.message
    assert "{" not in said.message + said.repair


def test_every_known_failure_was_seen() -> None:
    """Each entry of the table is met by a recorded or sourced text, or by one made below."""
    seen = {case["code"] for case in RUN_FAILURES}
    elsewhere = {"docker_missing", "docker_timeout", "exec_format"}
    assert {failure.code for failure in FAILURES} - elsewhere <= seen


def test_docker_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a docker program nothing is known, whether asked or acted: one exit code, 3."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unknown) as asked:
        containers.list_servers()
    assert "docker_missing" == asked.value.code
    with pytest.raises(Unknown) as acted:
        containers.launch(command(), recipe_id="demo")
    assert ("docker_missing", 3) == (acted.value.code, acted.value.exit_code)
    assert "install Docker" in acted.value.repair
    assert containers.local_image_platform("tiny:1") is None
    assert containers.restart_token(NAME) is None


def test_a_command_that_does_not_end_is_ended() -> None:
    """A docker that hangs is an answer after its time, not a hang."""
    answer = run(("sleep", "5"), timeout_s=0.1)
    assert 124 == answer.exit_code
    assert "docker_timeout" == explain(answer).code


def test_no_shell_reads_an_argument(fake: FakeDocker) -> None:
    """Characters that a shell would act on arrive as they are."""
    hostile = "$(touch /tmp/x); `id` && 'a' \"b\" \n--privileged"
    fake.answer("run", stdout="ok")
    docker("run", hostile)
    assert [["run", hostile]] == fake.calls


def test_no_secret_is_repeated_from_an_error() -> None:
    """Docker's own words are shown without tokens."""
    secret = "hf_" + "a" * 34
    said = explain(Answer(125, "", f"docker: bad value HF_TOKEN={secret}\n"))
    assert secret not in said.message
    assert "bad value" in said.message


def test_a_key_that_somebody_chose_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no shape to know it by, but it stands in this environment: its value is taken out."""
    monkeypatch.setenv("VLLM_API_KEY", "correct horse battery")
    monkeypatch.setenv("SHORT_TOKEN", "the")
    said = explain(Answer(125, "", "docker: the engine wants correct horse battery staple\n"))
    assert said.message.endswith("docker says: the engine wants [removed] staple)")


@pytest.mark.parametrize(
    ("said", "host", "words"),
    [
        ("unix:///var/run/docker.sock. Is the docker daemon running?", "", "sudo systemctl start"),
        ("unix:///run/user/1000/docker.sock. Is the docker", "", "systemctl --user start docker"),
        ("tcp://box:2375. Is the docker daemon running?", "tcp://box:2375", "DOCKER_HOST says"),
    ],
    ids=["the system's", "a context's", "DOCKER_HOST's"],
)
def test_the_docker_that_was_asked_is_the_one_to_start(
    monkeypatch: pytest.MonkeyPatch, said: str, host: str, words: str
) -> None:
    """Starting the system's daemon does not help where another one was asked."""
    monkeypatch.setenv("DOCKER_HOST", host)
    stderr = f"Cannot connect to the Docker daemon at {said}"
    assert words in explain(Answer(1, "", stderr)).repair


def test_a_rootless_socket_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user has one and the system's Docker does not answer."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    down = Answer(1, "", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    assert "DOCKER_HOST" not in explain(down).repair
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(tmp_path / "docker.sock"))
        assert "DOCKER_HOST" not in explain(down).repair
        left_over.listen()
        offer = f"export DOCKER_HOST=unix://{tmp_path}/docker.sock"
        assert offer in explain(down).repair
        denied = "permission denied while trying to connect to the docker API"
        assert offer in explain(Answer(1, "", denied)).repair


def test_the_daemons_own_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull without network, in a shell with a proxy that the daemon does not read."""
    failed = Answer(1, "", "dial tcp: lookup registry-1.docker.io: no such host")
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    assert "daemon does not read" not in explain(failed).repair
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert "daemon does not read HTTPS_PROXY" in explain(failed).repair


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("unix:///run/user/1000/docker.sock", None),
        ("tcp://127.0.0.1:2375", None),
        ("tcp://[::1]:2375", None),
        ("ssh://me@spark", "spark"),
        ("tcp://192.168.1.7:2376", "192.168.1.7"),
        ("tcp://[broken", None),
    ],
)
def test_where_docker_runs(
    fake: FakeDocker, monkeypatch: pytest.MonkeyPatch, address: str, host: str | None
) -> None:
    """By DOCKER_HOST or by the context in use: this host, or the name of another."""
    monkeypatch.setenv("DOCKER_HOST", address)
    assert host == containers.elsewhere()
    monkeypatch.delenv("DOCKER_HOST")
    fake.answer("context", "inspect", stdout=f"{address}\n")
    assert host == containers.elsewhere()


# Launch


def test_launch_runs_exactly_the_rendered_command(fake: FakeDocker) -> None:
    """The argv that ``command`` shows is the argv that is run, and the container is returned."""
    fake.answer("run", stdout=f"{ID}\n")
    fake.answer("container", "inspect", stdout=described())
    server = containers.launch(command(), recipe_id="demo")
    assert list(command().argv[1:]) == fake.calls[0]
    assert ("demo", "running", "http://127.0.0.1:18000") == (
        server.recipe_id,
        server.state,
        server.base_url,
    )


def test_only_a_docker_command_is_started(fake: FakeDocker) -> None:
    """A compose file is not something to run, and nothing is run."""
    with pytest.raises(Misuse):
        containers.launch(command(format="compose"), recipe_id="demo")
    assert not (fake.folder / "calls.jsonl").exists()


def test_a_container_that_could_not_start_is_removed(fake: FakeDocker) -> None:
    """C66: the half-made container of a failed run goes, by the id that docker printed."""
    failed = next(c for c in RUN_FAILURES if c["code"] == "port_in_use" and c["stdout"])
    made = failed["stdout"].strip()
    fake.answer("run", stdout=failed["stdout"], stderr=failed["stderr"], exit_code=125)
    created = described(State={"Status": "created"}, Id=made)
    fake.answer("container", "inspect", stdout=created)
    fake.answer("rm", stdout=made)
    fake.answer("ps", "--filter", "publish=8000", stdout="other-server\n")
    with pytest.raises(LaunchFailed) as err:
        containers.launch(command(), recipe_id="demo")
    assert "port_in_use" == err.value.code
    assert "other-server" in err.value.message
    assert "--port 8001" in err.value.repair
    assert [["rm", made]] == [call for call in fake.calls if call[0] == "rm"]


@pytest.mark.parametrize(
    "found",
    [
        described(State={"Status": "created"}, recipe_id=None),
        described(State={"Status": "created"}, recipe_id="another"),
        described("running"),
    ],
    ids=["no label", "another recipe", "it runs"],
)
def test_nothing_else_is_removed_after_a_failure(fake: FakeDocker, found: str) -> None:
    """A container without our label, of another recipe, or that runs is not cleaned up."""
    fake.answer("run", stdout=f"{ID}\n", stderr="docker: no space left on device", exit_code=125)
    fake.answer("container", "inspect", stdout=found)
    with pytest.raises(LaunchFailed):
        containers.launch(command(), recipe_id="demo")
    assert [] == [call for call in fake.calls if call[0] in ("rm", "stop")]


def taken(fake: FakeDocker, holder: str) -> None:
    """Let the name be taken by a container."""
    failed = next(case for case in RUN_FAILURES if case["code"] == "name_in_use")
    fake.answer("run", stderr=failed["stderr"], exit_code=125)
    fake.answer("container", "inspect", stdout=holder)


def test_an_ended_container_of_ours_gives_its_name_up(fake: FakeDocker) -> None:
    """C69: what carries our label, serves this recipe and does not run is replaced."""
    taken(fake, described("exited"))
    fake.answer("run", stdout=f"{ID}\n")
    fake.answer("rm")
    containers.launch(command(), recipe_id="demo")
    assert ["run", "container", "rm", "run", "container"] == [call[0] for call in fake.calls]
    assert ["rm", ID] in fake.calls


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (described("exited", recipe_id=None), "not ours"),
        (described("running"), "of ours that serves demo and is running"),
        (described("exited", recipe_id="other"), "of ours that serves other"),
    ],
    ids=["foreign", "running", "another recipe"],
)
def test_a_taken_name_says_whose_it_is(fake: FakeDocker, holder: str, words: str) -> None:
    """C69: a foreign or running container is never removed for its name."""
    taken(fake, holder)
    with pytest.raises(LaunchFailed) as err:
        containers.launch(command(), recipe_id="demo")
    assert "name_in_use" == err.value.code
    assert words in err.value.message
    assert {"run", "container"} == {call[0] for call in fake.calls}


# List, find, logs, stop


def test_an_inspected_container_is_read(fake: FakeDocker) -> None:
    """State, exit code, restarts and published port come from docker's own description."""
    ours(fake, "restarting", RestartCount=4)
    server = containers.list_servers().servers[0]
    assert (NAME, "restarting", 3, 4) == (
        server.name,
        server.state,
        server.exit_code,
        server.restarts,
    )
    assert "http://127.0.0.1:18000" == server.base_url


def test_a_running_container_has_no_exit_code(fake: FakeDocker) -> None:
    """Docker writes 0 for what has not ended; that is not an exit code."""
    ours(fake, "running")
    assert containers.list_servers().servers[0].exit_code is None


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000"),
        ("0.0.0.0", "http://127.0.0.1:9000"),
        ("::", "http://127.0.0.1:9000"),
        ("::1", "http://[::1]:9000"),
        ("192.168.1.5", "http://192.168.1.5:9000"),
    ],
)
def test_the_address_is_one_that_clients_can_use(fake: FakeDocker, address: str, url: str) -> None:
    """A port on every address is reached on loopback; any other on the address it is bound to."""
    bound = {"8000/tcp": [{"HostIp": address, "HostPort": "9000"}]}
    ours(fake, "running", NetworkSettings={"Ports": bound})
    assert url == containers.list_servers().servers[0].base_url


def test_an_ended_container_still_says_where_it_was(fake: FakeDocker) -> None:
    """An ended container has no live port, only the one that it was given."""
    ours(fake, "exited", NetworkSettings={"Ports": {}})
    assert "http://127.0.0.1:18000" == containers.list_servers().servers[0].base_url


def test_without_containers_nothing_is_inspected(fake: FakeDocker) -> None:
    """An empty list is an answer."""
    fake.answer("ps", "--all")
    assert () == containers.list_servers().servers
    assert containers.find_server("demo") is None


def test_a_container_that_goes_between_two_questions_is_left_out(fake: FakeDocker) -> None:
    """Docker answers for those that are there; the one that is gone is no error."""
    fake.answer("ps", "--all", stdout=f"{ID}\nffff\n")
    fake.answer(
        "container",
        "inspect",
        stdout=described(),
        stderr="Error response from daemon: No such container: ffff\n",
        exit_code=1,
    )
    assert [NAME] == [server.name for server in containers.list_servers().servers]


def test_a_label_that_is_no_recipe_id_is_not_ours(fake: FakeDocker) -> None:
    """A hostile label is not shown as a recipe."""
    ours(fake, "running", recipe_id="../../etc; rm -rf /")
    assert () == containers.list_servers().servers


def test_an_unreadable_answer_is_unknown(fake: FakeDocker) -> None:
    """Something that is not JSON is neither yes nor no."""
    fake.answer("ps", "--all", stdout=ID)
    fake.answer("container", "inspect", stdout="<html>")
    with pytest.raises(Unknown) as err:
        containers.list_servers()
    assert "docker_unreadable" == err.value.code


@pytest.mark.parametrize("ref", ["demo", NAME, "recipes/demo.yaml"])
def test_a_server_is_found_by_recipe_name_or_file(fake: FakeDocker, ref: str) -> None:
    """A recipe id, the path of its file and the container's name all find it."""
    ours(fake)
    found = containers.find_server(ref)
    assert found is not None
    assert NAME == found.name


def test_logs_hold_no_secret_and_do_not_steer_a_terminal(fake: FakeDocker) -> None:
    """Tokens are removed, a progress bar shows its last state, control codes go."""
    secret = "hf_" + "b" * 34
    bar = "loading 10%\rloading 100%"
    ours(fake)
    fake.answer("logs", stdout=f"token {secret}\r\n\x1b[31mred\x1b[0m\n{bar}\n\n\x07bell\n")
    shown = containers.logs(NAME, lines=10)
    assert NAME == shown.name
    assert ("red", "loading 100%", "bell") == shown.lines[1:]
    assert secret not in shown.lines[0]
    assert ["logs", "--tail", "10", ID] in fake.calls


def test_a_huge_line_is_cut() -> None:
    """No single line fills an agent's context."""
    assert 2000 == len(shown_line("x" * 1_000_000))


@pytest.mark.parametrize("asked", [-5, 10**9])
def test_the_number_of_log_lines_is_bounded(fake: FakeDocker, asked: int) -> None:
    """Docker is asked for at least one line and at most ten thousand."""
    ours(fake)
    fake.answer("logs")
    containers.logs("demo", lines=asked)
    assert 1 <= int(fake.calls[-1][2]) <= 10_000


def test_a_foreign_log_is_not_shown(fake: FakeDocker) -> None:
    """The log of a container without our label is refused; one that is not there is misuse."""
    fake.answer("ps", "--all")
    fake.answer("container", "inspect", "--", NAME, stdout=described(recipe_id=None))
    gone = "Error response from daemon: No such container: x\n"
    fake.answer("container", "inspect", stdout="[]", stderr=gone, exit_code=1)
    with pytest.raises(Refused):
        containers.logs(NAME)
    with pytest.raises(Misuse):
        containers.logs("nothing")


def test_stop_stops_and_removes_only_that_container(fake: FakeDocker) -> None:
    """Stop acts on the id of what carries our label: no force, no volumes, no prune."""
    ours(fake)
    fake.answer("stop")
    fake.answer("rm")
    stopped = containers.stop("demo")
    assert (True, NAME) == (stopped.stopped, stopped.name)
    assert [["stop", "--time", "30", ID], ["rm", ID]] == fake.calls[-2:]


def test_an_ended_container_is_only_removed(fake: FakeDocker) -> None:
    """What does not run needs no stop."""
    ours(fake, "exited")
    fake.answer("rm")
    assert containers.stop("demo").stopped
    assert [["rm", ID]] == fake.calls[2:]


def test_a_container_that_removes_itself_was_stopped(fake: FakeDocker) -> None:
    """Started with --rm, it is gone before it is removed: that is what was asked for."""
    ours(fake)
    fake.answer("stop")
    gone = f"Error response from daemon: removal of container {ID} is already in progress\n"
    fake.answer("rm", stderr=gone, exit_code=1)
    assert containers.stop("demo").stopped


def test_stop_without_a_container_stops_nothing(fake: FakeDocker) -> None:
    """Stopping twice is no error, and it says that there was nothing."""
    fake.answer("ps", "--all")
    gone = "Error response from daemon: No such container: demo\n"
    fake.answer("container", "inspect", stdout="[]\n", stderr=gone, exit_code=1)
    stopped = containers.stop("demo")
    assert not stopped.stopped
    assert "nothing to stop" in stopped.message


def test_stop_refuses_a_foreign_container(fake: FakeDocker) -> None:
    """A container that has the name and not the label is named and left alone."""
    fake.answer("ps", "--all")
    gone = "Error response from daemon: No such container: demo\n"
    fake.answer("container", "inspect", "--", "demo", stdout="[]", stderr=gone, exit_code=1)
    fake.answer("container", "inspect", "--", NAME, stdout=described(recipe_id=None))
    with pytest.raises(Refused) as err:
        containers.stop("demo")
    assert "not_ours" == err.value.code
    assert NAME in err.value.message
    assert {"ps", "container"} == {call[0] for call in fake.calls}


def test_a_stop_that_docker_refuses_is_an_error(fake: FakeDocker) -> None:
    """What was not stopped is not reported as stopped."""
    ours(fake)
    fake.answer("stop", stderr="Error response from daemon: cannot stop\n", exit_code=1)
    with pytest.raises(ServerError) as err:
        containers.stop("demo")
    assert "cannot stop" in err.value.message


def test_the_restart_token_changes_with_each_start(fake: FakeDocker) -> None:
    """A restart count, another start or another container is another token."""
    fake.answer("container", "inspect", stdout=described())
    fake.answer("container", "inspect", stdout=described())
    fake.answer("container", "inspect", stdout=described(RestartCount=1))
    fake.answer("container", "inspect", stdout=described(State={"StartedAt": "2026-12-02T05"}))
    tokens = [containers.restart_token(NAME) for _ in range(4)]
    assert tokens[0] == tokens[1]
    assert 3 == len(set(tokens))


def test_the_platform_of_a_local_image_is_told(fake: FakeDocker) -> None:
    """A pull proves nothing about the architecture; the image's own description does."""
    fake.answer("image", "inspect", stdout="linux/arm64\n")
    assert "linux/arm64" == containers.local_image_platform("org/image:1")


# Readiness


def wait(recipe: Recipe, engine: Engine, url: str | None, **options: Any) -> Any:
    """Wait for a server of ours with short pauses."""
    given = {"timeout_s": 5.0, "poll_s": 0.02} | options
    return containers.wait_until_ready(server_at(url), recipe, engine, **given)


def not_ready(recipe: Recipe, engine: Engine, url: str | None, **options: Any) -> NotReady:
    """Wait for a server that will not get ready."""
    with pytest.raises(NotReady) as err:
        wait(recipe, engine, url, **options)
    return err.value


def test_ready_is_a_real_completion(fake: FakeDocker, recipe: Recipe, engine: Engine) -> None:
    """Health, the model's name and words: only then it is ready, with the milestones seen."""
    log = (DATA / "vllm_start.log").read_text()
    fake.answer("logs", stdout=log.partition("INFO:     Application startup")[0])
    fake.answer("logs", stdout=log)
    fake.answer("container", "inspect", stdout=described())
    said: list[str] = []
    with serving() as (url, asked):
        ready = wait(recipe, engine, url, progress=said.append)
    assert ("qwen3-8b", url) == (ready.model, ready.base_url)
    assert ["GET /health ", "GET /v1/models ", "POST /v1/chat/completions "] == asked
    assert ["started, reading the weights", "loading weights", "answering requests"] == said
    assert list(ready.milestones) == said


def test_health_alone_is_not_ready(fake: FakeDocker, recipe: Recipe, engine: Engine) -> None:
    """C88: health and models are fine, the first chat request is refused: not ready for chat."""
    message = (
        "As of transformers v4.44, default chat template is no longer allowed, so you must provide "
        "a chat template if the tokenizer does not define one. None"
    )
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    for body in (
        {"error": {"message": message, "type": "BadRequestError", "code": 400}},
        {"object": "error", "message": message},
    ):
        with serving(completions=(400, body)) as (url, _):
            err = not_ready(recipe, engine, url)
        assert "not_ready_for_chat" == err.code
        assert err.message.endswith(f"400: {message}")
        assert "--chat-template" in err.repair


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"content": "!" * 32}, "degenerate_output"),
        ({"content": ""}, "empty_answer"),
        ({"content": None}, "empty_answer"),
    ],
    ids=["C89: one character", "empty", "null"],
)
def test_an_answer_without_words_is_not_ready(
    fake: FakeDocker, recipe: Recipe, engine: Engine, message: dict[str, Any], code: str
) -> None:
    """C89: HTTP 200 with noise or nothing is a broken engine."""
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    with serving(completions=(200, {"choices": [{"message": message}]})) as (url, _):
        assert code == not_ready(recipe, engine, url).code


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_alone_is_an_answer(
    fake: FakeDocker, recipe: Recipe, engine: Engine, field: str
) -> None:
    """C90: all tokens went to reasoning, content is null: cut off, and ready."""
    choice = {
        "message": {"content": None, field: "We need to compute"},
        "finish_reason": "length",
    }
    answer = {"choices": [choice], "usage": {"completion_tokens": 32}}
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    with serving(completions=(200, answer)) as (url, _):
        assert "qwen3-8b" == wait(recipe, engine, url).model


def test_the_wrong_model_is_named(fake: FakeDocker, recipe: Recipe, engine: Engine) -> None:
    """A server of something else is known at once, with the names that it serves."""
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    with serving(models=(200, {"data": [{"id": "llama"}, {"id": "other"}]})) as (url, asked):
        err = not_ready(recipe, engine, url)
    assert "wrong_model" == err.code
    assert "llama, other" in err.message
    assert not any("POST" in line for line in asked)


def test_a_healthy_server_without_completions_is_wedged(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """Health 200 and no completion by the deadline has its own name."""
    fake.answer("logs", stdout="Application startup complete.\n")
    fake.answer("container", "inspect", stdout=described())
    with serving(completions=(500, {"error": {"message": "EngineDeadError"}})) as (url, _):
        err = not_ready(recipe, engine, url, timeout_s=0.2)
    assert "wedged" == err.code
    assert "EngineDeadError" in err.message


def test_a_completion_that_hangs_is_wedged(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """A server that takes the request and never answers does not hold the wait for ever."""
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    released = threading.Event()

    def hang() -> Reply:
        released.wait(10)
        return 200, HI

    with serving(completions=hang) as (url, _):
        err = not_ready(recipe, engine, url, timeout_s=0.3)
        released.set()
    assert "wedged" == err.code
    assert "ReadTimeout" in err.message


def test_an_engine_that_loses_every_request_is_wedged_before_the_deadline(
    fake: FakeDocker, recipe: Recipe, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an hour is for loading; healthy without a completion is given up after ten minutes."""
    monkeypatch.setattr("sparkrecipes.containers.readiness.WEDGED_S", 0.2)
    fake.answer("logs", stdout="Application startup complete.\n")
    fake.answer("container", "inspect", stdout=described())
    with serving(completions=(500, {"error": {"message": "EngineDeadError"}})) as (url, _):
        err = not_ready(recipe, engine, url, timeout_s=60.0)
    assert "wedged" == err.code


def test_a_failure_that_passes_is_waited_out(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """503 while loading, no model yet and one 500 are steps on the way."""
    replies: dict[str, list[Reply]] = {
        "health": [(503, "")],
        "models": [(200, {"data": []})],
        "completions": [(500, "oops")],
    }
    last = {
        "health": (200, ""),
        "models": (200, {"data": [{"id": "qwen3-8b"}]}),
        "completions": (200, HI),
    }

    def next_of(name: str) -> Callable[[], Reply]:
        return lambda: replies[name].pop() if replies[name] else last[name]

    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described())
    with serving(**{name: next_of(name) for name in replies}) as (url, _):
        assert "qwen3-8b" == wait(recipe, engine, url).model


@pytest.mark.parametrize(
    ("state", "changes", "code"),
    [
        ("exited", {}, "exited"),
        ("oom", {}, "oom_killed"),
        ("exited", {"State": {"ExitCode": 137, "OOMKilled": False}}, "host_oom"),
        ("restarting", {"RestartCount": 4}, "crash_loop"),
    ],
    ids=["exited", "OOMKilled", "C92: 137 alone", "crash loop"],
)
def test_a_container_that_ended_is_known_at_once(
    fake: FakeDocker,
    recipe: Recipe,
    engine: Engine,
    state: str,
    changes: dict[str, Any],
    code: str,
) -> None:
    """The deadline is not waited for, and the error carries the last log lines."""
    fake.answer("logs", stdout="starting\nRuntimeError: no kernel image\n")
    fake.answer("container", "inspect", stdout=described(state, **changes))
    err = not_ready(recipe, engine, "http://127.0.0.1:1", timeout_s=60.0)
    assert code == err.code
    assert ("starting", "RuntimeError: no kernel image") == err.log_tail
    assert err.repair


def test_one_restart_may_heal(fake: FakeDocker, recipe: Recipe, engine: Engine) -> None:
    """A second start with a warm compile cache often works: it is waited for."""
    fake.answer("logs")
    fake.answer("container", "inspect", stdout=described(RestartCount=1))
    with serving() as (url, _):
        assert "qwen3-8b" == wait(recipe, engine, url).model


def test_a_removed_container_ends_the_wait(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """Somebody removed it: no deadline is waited for."""
    gone = f"Error response from daemon: No such container: {ID}\n"
    fake.answer("logs", stderr=gone, exit_code=1)
    fake.answer("container", "inspect", stdout="[]", stderr=gone, exit_code=1)
    assert "gone" == not_ready(recipe, engine, "http://127.0.0.1:1", timeout_s=60.0).code


def test_a_log_that_moves_is_still_loading(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """C76: at the deadline a log that goes on is told apart from a silent one."""
    for done in range(1, 60):
        line = f"Loading safetensors checkpoint shards: {done}% Completed | {done}/100"
        fake.answer("logs", stdout=line)
    fake.answer("container", "inspect", stdout=described())
    err = not_ready(recipe, engine, "http://127.0.0.1:1", timeout_s=0.3)
    assert "still_loading" == err.code
    assert "/100" in err.message
    assert "--timeout" in err.repair


def test_a_silent_server_is_not_ready(recipe: Recipe, engine: Engine) -> None:
    """Without a container to look at, the deadline ends the wait."""
    with pytest.raises(NotReady) as err:
        containers.wait_for_endpoint(
            "http://127.0.0.1:1/v1", recipe, engine, timeout_s=0.1, poll_s=0.02
        )
    assert "not_ready" == err.value.code


def test_an_unhealthy_server_is_not_asked_further(recipe: Recipe, engine: Engine) -> None:
    """Health that answers 503 is neither a model nor a completion away from ready."""
    with serving(health=(503, "")) as (url, asked), pytest.raises(NotReady) as err:
        containers.wait_for_endpoint(url, recipe, engine, timeout_s=0.1, poll_s=0.02)
    assert {"GET /health "} == set(asked)
    assert "503" in err.value.message


def test_a_container_without_a_port_cannot_be_waited_for(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """There is no address to ask."""
    fake.answer("logs")
    assert "no_port" == not_ready(recipe, engine, None).code


def test_docker_that_cannot_be_asked_does_not_end_the_wait(
    fake: FakeDocker, recipe: Recipe, engine: Engine
) -> None:
    """A daemon that restarts is no verdict on the engine, which may answer all the same."""
    down = "Cannot connect to the Docker daemon at unix:///run/docker.sock."
    fake.answer("logs", stderr=down, exit_code=1)
    fake.answer("container", "inspect", stderr=down, exit_code=1)
    with serving() as (url, _):
        assert () == wait(recipe, engine, url).milestones


def test_a_server_with_a_key_is_asked_with_it(
    recipe: Recipe, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the environment is sent; a server that wants another one is named at once."""
    monkeypatch.setenv("VLLM_API_KEY", "secret-of-the-test")
    with serving() as (url, asked):
        containers.wait_for_endpoint(url, recipe, engine, timeout_s=5.0)
    assert asked[-1].endswith("Bearer secret-of-the-test")
    refusing = serving(models=(401, {"error": "Unauthorized"}))
    with refusing as (url, _), pytest.raises(NotReady) as err:
        containers.wait_for_endpoint(url, recipe, engine, timeout_s=5.0)
    assert "api_key" == err.value.code
    assert "secret-of-the-test" not in str(err.value) + err.value.repair


def test_no_proxy_is_asked_for_this_host(
    recipe: Recipe, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy variables of the host do not lead the way to a server on it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving() as (url, _):
        ready = containers.wait_for_endpoint(f"{url}/v1", recipe, engine, timeout_s=5.0)
    assert url == ready.base_url


@pytest.mark.parametrize("body", ["<html>", "[]", '{"choices": []}', '{"choices": [1]}', "null"])
def test_an_answer_that_is_no_completion_is_wedged(
    recipe: Recipe, engine: Engine, body: str
) -> None:
    """Whatever comes back, it is judged and never crashes the wait."""
    with serving(completions=(200, body)) as (url, _), pytest.raises(NotReady) as err:
        containers.wait_for_endpoint(url, recipe, engine, timeout_s=0.1, poll_s=0.02)
    assert "wedged" == err.value.code
