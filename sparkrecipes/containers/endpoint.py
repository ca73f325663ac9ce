"""An endpoint: whether it answers a real completion, and with words.

An open port, a healthy ``/health`` and a listed model prove little: engines have served all three
while the first request failed, hung, or gave ``!!!!!!!!``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sparkrecipes.containers.secrecy import without_secrets
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.recipe import Recipe

if TYPE_CHECKING:
    import httpx2

QUESTION = "Count from one to ten."
ANSWER_TOKENS = 32

HEALTH_TIMEOUT_S = 5.0
COMPLETION_TIMEOUT_S = 120.0
"""A first completion may still compile kernels; one that is lost is asked again."""

DEGENERATE_CHARACTERS = 16
"""An answer this long of one character, as broken FP4 kernels give it, is not an answer.

Source: Avarok-Cybersecurity/dgx-vllm#5, vllm-project/vllm#49886.
"""

API_KEY_ENV = "VLLM_API_KEY"
"""The variable that the engine itself takes its key from."""

LONGEST_MESSAGE = 400


@dataclass(frozen=True)
class Seen:
    """What an endpoint did when it was asked.

    Attributes:
        stage: ``down``: no health; ``up``: health, but no completion; ``ready``; ``failed``: an
            answer that waiting does not change.
        code: A stable word for programs.
        message: What it did.
        repair: The next step.
    """

    stage: Literal["down", "up", "ready", "failed"]
    code: str
    message: str
    repair: str = ""


class Endpoint:
    """One OpenAI-compatible server that should serve a recipe."""

    def __init__(self, base_url: str, recipe: Recipe, engine: Engine) -> None:
        """Remember where it is and what it should serve; nothing is asked yet.

        Args:
            base_url: With or without ``/v1``.
            recipe: Whose model it should serve.
            engine: Whose paths it has.
        """
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self.recipe = recipe
        self.engine = engine

    def look(self, client: httpx2.Client, timeout_s: float) -> Seen:
        """Ask for health, models and a completion, as far as each goes well."""
        import httpx2

        try:
            return (
                self.health(client, timeout_s)
                or self.models(client, timeout_s)
                or self.completion(client, timeout_s)
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as err:
            return Seen("down", "no_connection", f"{self.base_url}: {type(err).__name__}")

    def health(self, client: httpx2.Client, timeout_s: float) -> Seen | None:
        """Ask whether the engine is up; None where it says so."""
        path = self.engine.health_path
        answer = client.get(self.base_url + path, timeout=min(timeout_s, HEALTH_TIMEOUT_S))
        if answer.status_code == 200:
            return None
        return Seen("down", "unhealthy", f"{path} answers {answer.status_code}")

    def models(self, client: httpx2.Client, timeout_s: float) -> Seen | None:
        """Ask which models are served; None where the recipe's is one of them."""
        path, wanted = self.engine.models_path, self.recipe.served_model_name
        answer = client.get(self.base_url + path, timeout=min(timeout_s, HEALTH_TIMEOUT_S))
        if answer.status_code in (401, 403):
            return no_key(answer.status_code)
        names = model_names(answer) if answer.status_code == 200 else []
        if wanted in names:
            return None
        if not names:
            return Seen("up", "no_models", f"{path} names no model yet")
        return Seen(
            "failed",
            "wrong_model",
            f"{self.base_url} serves {', '.join(names)}, not {wanted}",
            f"set served_model_name of {self.recipe.id}, or see what runs there: "
            "sparkrecipes status",
        )

    def completion(self, client: httpx2.Client, timeout_s: float) -> Seen:
        """Ask for a short completion and judge the answer."""
        import httpx2

        path = self.engine.chat_path
        body = {
            "model": self.recipe.served_model_name,
            "messages": [{"role": "user", "content": QUESTION}],
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "stream": False,
        }
        limit = min(timeout_s, COMPLETION_TIMEOUT_S)
        try:
            answer = client.post(self.base_url + path, json=body, timeout=limit)
        except httpx2.TransportError as err:
            return Seen(
                "up", "no_completion", f"no completion within {limit:.0f} s ({type(err).__name__})"
            )
        if answer.status_code == 200:
            return judge(answer_text(answer))
        return refused(answer)


def new_client() -> httpx2.Client:
    """Open a client that speaks to this host alone: no proxy of the environment is asked."""
    import httpx2

    key = os.environ.get(API_KEY_ENV)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.Client(headers=headers, trust_env=False, follow_redirects=False)


def judge(text: str | None) -> Seen:
    """Say whether an answer is one; reasoning counts, for it is where a short answer may end."""
    if text is None:
        return Seen("up", "unreadable", "the completion is not the JSON of a chat completion")
    words = text.strip()
    if not words:
        return Seen(
            "failed",
            "empty_answer",
            "a completion came, and it is empty: neither content nor reasoning",
            "check the chat template and the reasoning parser of the recipe",
        )
    if len(words) >= DEGENERATE_CHARACTERS and len(set(words)) == 1:
        return Seen(
            "failed",
            "degenerate_output",
            f"the engine answers with one character alone: {words[:DEGENERATE_CHARACTERS]}",
            "use another kernel (e.g. --moe-backend marlin or --enforce-eager) or a newer image",
        )
    return Seen("ready", "ready", f"a completion of {len(words)} characters")


def refused(answer: httpx2.Response) -> Seen:
    """Say what a completion that was refused means: a 5xx may pass, a 4xx does not."""
    said = f"the completion was answered with {answer.status_code}: {error_message(answer)}"
    if answer.status_code in (401, 403):
        return no_key(answer.status_code)
    if answer.status_code >= 500 or answer.status_code == 429:
        return Seen("up", "server_error", said)
    return Seen(
        "failed",
        "not_ready_for_chat",
        said,
        "healthy, but not for chat: give --chat-template, or serve an instruct model",
    )


def no_key(status: int) -> Seen:
    """Say that the server wants a key."""
    return Seen(
        "failed",
        "api_key",
        f"the server answers {status}: it wants an API key, or another one",
        f"set {API_KEY_ENV} to the key that it was started with",
    )


def content(answer: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of an answer, or an empty one where it is something else."""
    try:
        found = json.loads(answer.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def model_names(answer: httpx2.Response) -> list[str]:
    """Return the ids of ``/v1/models``."""
    listed = content(answer).get("data")
    items = listed if isinstance(listed, list) else []
    return [str(item["id"]) for item in items if isinstance(item, dict) and item.get("id")]


def answer_text(answer: httpx2.Response) -> str | None:
    """Return all words of a chat completion, or None where it is not one.

    vLLM names reasoning ``reasoning``, older releases and NIM ``reasoning_content``.
    """
    choices = content(answer).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        return None
    parts = [message.get(key) for key in ("reasoning", "reasoning_content", "content")]
    called = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return "".join(part for part in parts if isinstance(part, str)) + called


def error_message(answer: httpx2.Response) -> str:
    """Return the server's own words, with or without the outer ``error`` key, without secrets."""
    body = content(answer)
    inner = body.get("error")
    message = inner.get("message") if isinstance(inner, dict) else inner
    said = message or body.get("message") or body.get("detail") or answer.text
    return without_secrets(" ".join(str(said).split()))[:LONGEST_MESSAGE]
