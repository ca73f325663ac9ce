"""How a client is told to use a recipe's endpoint: one function a client, each with its source.

No key is written: where the server wants one, clients read it from ``VLLM_API_KEY``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

from sparkrecipes.schema.agent import Client, Snippet
from sparkrecipes.schema.recipe import Recipe

CLIENTS: tuple[Client, ...] = get_args(Client)
PROVIDER = "spark"
"""Our name for the endpoint in a client's configuration."""
NO_KEY = "none"
"""Sent where a client wants a key and the server does not."""
ANSWER_SHARE = 8
"""An answer may take an eighth of the context: the rest is for what was said before."""
LEAST_FOR_HERMES = 64_000
"""Tokens of context below which Hermes does not start.

Source: https://github.com/NousResearch/hermes-agent/blob/main/website/docs/reference/faq.md
"""


def client_snippet(
    client: Client, recipe: Recipe, base_url: str, context_tokens: int | None = None
) -> Snippet:
    """Write what a client's configuration must say.

    Args:
        client: Which client.
        recipe: What is served.
        base_url: Where, with ``/v1``.
        context_tokens: Longest sequence that the server was set for; None: as measured.
    """
    found = WRITERS[client](recipe, base_url, context_tokens or recipe.serving.context_tokens)
    if "tools" in recipe.capabilities:
        return found
    note = "this recipe does not call tools: agents that need them will fail"
    return found.model_copy(update={"notes": (*found.notes, note)})


def openai(recipe: Recipe, base_url: str, _context: int) -> Snippet:
    """The OpenAI libraries and everything that reads their variables."""
    return Snippet(
        program="OpenAI SDK and compatible clients",
        file="environment",
        content=(
            f"export OPENAI_BASE_URL={base_url}\n"
            f"export OPENAI_API_KEY=${{VLLM_API_KEY:-{NO_KEY}}}\n"
            f"export OPENAI_MODEL={recipe.served_model_name}\n"
        ),
        notes=("the model's name is part of each request: model=$OPENAI_MODEL",),
        source="https://github.com/openai/openai-python#configuring-the-http-client",
    )


def opencode(recipe: Recipe, base_url: str, context: int) -> Snippet:
    """OpenCode: a provider of its own, with the model's limits."""
    model = {
        "name": recipe.title,
        "tool_call": "tools" in recipe.capabilities,
        "limit": {"context": context, "output": context // ANSWER_SHARE},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "DGX Spark",
        "options": {"baseURL": base_url, "apiKey": "{env:VLLM_API_KEY}"},
        "models": {recipe.served_model_name: model},
    }
    content = {
        "$schema": "https://opencode.ai/config.json",
        "model": f"{PROVIDER}/{recipe.served_model_name}",
        "provider": {PROVIDER: provider},
    }
    return Snippet(
        program="OpenCode",
        file="~/.config/opencode/opencode.json",
        content=json.dumps(content, indent=2, ensure_ascii=False),
        notes=(
            "without a key on the server, any value of VLLM_API_KEY will do",
            "OpenCode 2 writes the same as providers, package (npm here), settings (options here) "
            "and capabilities.tools (tool_call here)",
        ),
        source="https://github.com/anomalyco/opencode/blob/dev/packages/web/src/content/docs/"
        "providers.mdx; of OpenCode 2: https://opencode.ai/docs/providers/",
    )


def hermes(recipe: Recipe, base_url: str, context: int) -> Snippet:
    """Hermes Agent: a custom endpoint."""
    content = (
        "model:\n"
        f"  default: {json.dumps(recipe.served_model_name)}\n"
        "  provider: custom\n"
        f"  base_url: {base_url}\n"
        f"  context_length: {context}\n"
    )
    notes: tuple[str, ...] = (
        "where the server wants a key: hermes config set model.api_key, in a shell of yours",
    )
    if context < LEAST_FOR_HERMES:
        notes = (*notes, f"Hermes wants at least {LEAST_FOR_HERMES:,} tokens of context")
    return Snippet(
        program="Hermes Agent",
        file="~/.hermes/config.yaml",
        content=content,
        command=f"hermes config set model.provider custom && "
        f"hermes config set model.base_url {base_url}",
        notes=notes,
        source="https://github.com/NousResearch/hermes-agent/blob/main/website/docs/reference/faq.md",
    )


def openclaw(recipe: Recipe, base_url: str, context: int) -> Snippet:
    """OpenClaw: a provider that speaks chat completions."""
    kinds = [kind for kind in ("text", "image") if kind in recipe.capabilities]
    model = {
        "id": recipe.served_model_name,
        "name": recipe.title,
        "reasoning": "reasoning" in recipe.capabilities,
        "input": kinds or ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": context,
        "maxTokens": context // ANSWER_SHARE,
    }
    provider = {
        "baseUrl": base_url,
        "apiKey": "${VLLM_API_KEY}",
        "api": "openai-completions",
        "models": [model],
    }
    primary = f"{PROVIDER}/{recipe.served_model_name}"
    content = {
        "agents": {"defaults": {"model": {"primary": primary}}},
        "models": {"mode": "merge", "providers": {PROVIDER: provider}},
    }
    return Snippet(
        program="OpenClaw",
        file="~/.openclaw/openclaw.json",
        content=json.dumps(content, indent=2, ensure_ascii=False),
        notes=("without a key on the server, any value of VLLM_API_KEY will do",),
        source="https://docs.openclaw.ai/concepts/model-providers",
    )


def litellm(recipe: Recipe, base_url: str, _context: int) -> Snippet:
    """LiteLLM's proxy: a model list."""
    name = recipe.served_model_name
    content = (
        "model_list:\n"
        f"  - model_name: {json.dumps(name)}\n"
        "    litellm_params:\n"
        f"      model: {json.dumps(f'hosted_vllm/{name}')}\n"
        f"      api_base: {base_url}\n"
        "      api_key: os.environ/VLLM_API_KEY\n"
    )
    return Snippet(
        program="LiteLLM proxy",
        file="config.yaml",
        content=content,
        command="litellm --config config.yaml",
        notes=("without a key on the server, any value of VLLM_API_KEY will do",),
        source="https://docs.litellm.ai/docs/providers/vllm",
    )


def open_webui(_recipe: Recipe, base_url: str, _context: int) -> Snippet:
    """Open WebUI: it lists the models itself; from a container the host has another name."""
    inside = base_url.replace("127.0.0.1", "host.docker.internal").replace(
        "localhost", "host.docker.internal"
    )
    return Snippet(
        program="Open WebUI",
        file="environment of the container",
        content=(
            f"OPENAI_API_BASE_URL={inside}\n"
            f"OPENAI_API_KEY=${{VLLM_API_KEY:-{NO_KEY}}}\n"
            "ENABLE_OLLAMA_API=false\n"
        ),
        notes=(
            "give its container --add-host=host.docker.internal:host-gateway; a server that is "
            "published on 127.0.0.1 alone is reached only with --network host, or after "
            "sparkrecipes install RECIPE --bind with an address of the Docker bridge and a key",
        ),
        source="https://docs.openwebui.com/getting-started/env-configuration/",
    )


Writer = Callable[[Recipe, str, int], Snippet]
WRITERS: dict[Client, Writer] = {
    "openai": openai,
    "opencode": opencode,
    "hermes": hermes,
    "openclaw": openclaw,
    "litellm": litellm,
    "open-webui": open_webui,
}
