"""Connections: what hosts and clients are told is well formed, and never holds a secret."""

import json
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from sparkrecipes import connections
from sparkrecipes.catalog import open_catalog
from sparkrecipes.cli import agent_parser, main
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.connection import connect
from sparkrecipes.schema.agent import Client, Host, Snippet

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
MODEL = "qwen3.6-35b-a3b"
URL = "http://127.0.0.1:8000/v1"
COMMAND = ["uvx", "sparkrecipes", "mcp"]


def entry(snippet: Snippet) -> dict[str, Any]:
    """Read what a host's configuration says of our server, as that host would."""
    if snippet.file.endswith(".toml"):
        table: dict[str, Any] = tomllib.loads(snippet.content)["mcp_servers"]
    else:
        content = json.loads(snippet.content)
        table = content.get("mcpServers") or content["servers"]
    found: dict[str, Any] = table["sparkrecipes"]
    return found


@pytest.mark.parametrize("host", connections.HOSTS)
def test_a_host_is_told_what_to_start(host: Host) -> None:
    """In its own file and form, with the place where that is described."""
    snippet = connections.host_snippet(host, COMMAND)
    found = entry(snippet)
    assert COMMAND == [found["command"], *found["args"]]
    assert snippet.source.startswith("https://")
    assert ("stdio" if host == "vscode" else None) == found.get("type")


@pytest.mark.parametrize("host", connections.HOSTS)
def test_a_host_is_told_where_the_server_listens(host: Host) -> None:
    """Over HTTP with the token's variable, never its value."""
    found = entry(connections.host_snippet(host, url="http://127.0.0.1:8765/mcp"))
    key = "httpUrl" if host == "gemini" else "url"
    assert "http://127.0.0.1:8765/mcp" == found[key]
    assert "SPARKRECIPES_MCP_TOKEN" in json.dumps(found)
    assert "command" not in found


@pytest.mark.parametrize("host", connections.HOSTS)
def test_the_command_prints_it(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`mcp --print-config HOST`, also for a server with options."""
    assert 0 == main(["mcp", "--print-config", host, "--read-only", "--json"])
    snippet = Snippet.model_validate_json(capsys.readouterr().out)
    assert "--read-only" in entry(snippet)["args"]
    assert 0 == main(["mcp", "--print-config", host])
    assert "sparkrecipes" in capsys.readouterr().out


def test_the_help_page_knows_all_hosts_and_clients() -> None:
    """They stand there a second time, because a help page does not load the types."""
    assert get_args(Host) == agent_parser.HOSTS
    assert get_args(Client) == agent_parser.CLIENTS


def snippet_of(client: Client, recipe: str = RECIPE) -> Snippet:
    """Return a client's snippet."""
    return connections.client_snippet(client, open_catalog().recipe(recipe), URL)


@pytest.mark.parametrize("client", connections.CLIENTS)
def test_a_client_is_told_address_and_model(client: Client) -> None:
    """And where its key comes from: never a key."""
    snippet = snippet_of(client)
    assert client == "open-webui" or MODEL in snippet.content
    assert (
        "127.0.0.1:8000/v1" in snippet.content or "host.docker.internal:8000/v1" in snippet.content
    )
    assert snippet.source.startswith("https://")


def test_each_clients_form_is_its_own() -> None:
    """JSON and YAML that the client's reader takes, with the keys that it looks at."""
    opencode = json.loads(snippet_of("opencode").content)
    provider = opencode["provider"]["spark"]
    assert ("@ai-sdk/openai-compatible", URL) == (provider["npm"], provider["options"]["baseURL"])
    assert {"context": 131072, "output": 16384} == provider["models"][MODEL]["limit"]
    openclaw = json.loads(snippet_of("openclaw").content)
    model = openclaw["models"]["providers"]["spark"]
    assert ("openai-completions", URL) == (model["api"], model["baseUrl"])
    assert (131072, ["text", "image"]) == (
        model["models"][0]["contextWindow"],
        model["models"][0]["input"],
    )
    hermes = yaml.safe_load(snippet_of("hermes").content)["model"]
    assert (MODEL, "custom", URL) == (hermes["default"], hermes["provider"], hermes["base_url"])
    litellm = yaml.safe_load(snippet_of("litellm").content)["model_list"][0]
    assert (f"hosted_vllm/{MODEL}", URL) == (
        litellm["litellm_params"]["model"],
        litellm["litellm_params"]["api_base"],
    )
    assert f"OPENAI_BASE_URL={URL}\n" in snippet_of("openai").content


def test_a_recipe_without_tools_says_so() -> None:
    """Agents that need them would fail."""
    with_tools = snippet_of("hermes")
    without = snippet_of("hermes", "gemma-4-26b-a4b-nvfp4-vllm")
    assert (False, True) == tuple(
        any("does not call tools" in note for note in s.notes) for s in (with_tools, without)
    )


def test_a_server_that_is_not_there_is_not_said_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without Docker nobody knows; the address is where it would listen."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = connect(RECIPE)
    assert (None, URL, MODEL) == (found.running, found.base_url, found.model)
    other = connect(RECIPE, base_url="http://spark.local:9000/v1/")
    assert "http://spark.local:9000/v1" == other.base_url


def test_misuse_names_the_nearest_client(capsys: pytest.CaptureFixture[str]) -> None:
    """From Python and on the command line."""
    with pytest.raises(Misuse) as wrong:
        connect(RECIPE, client="openai-sdk")
    assert "openai" in wrong.value.repair
    assert 2 == main(["connect", RECIPE, "--client", "hermess"])
    assert "hermes" in capsys.readouterr().err
    assert 0 == main(["connect", RECIPE, "--client", "litellm"])
    assert "hosted_vllm" in capsys.readouterr().out
