"""Replies: the JSON of vLLM's answers, streamed and whole.

Source: vLLM 0.32.0 on the wire: the role comes first with empty content, reasoning travels in
``reasoning``, the finish reason stands in the last choice, usage comes last with no choices.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

from sparkrecipes.rehearsal.answers import Answer, Token
from sparkrecipes.schema.recipe import Recipe


def models_page(recipe: Recipe, created_s: float) -> dict[str, Any]:
    """Return the page of served models."""
    model = {
        "id": recipe.served_model_name,
        "object": "model",
        "created": int(created_s),
        "owned_by": recipe.engine,
        "root": recipe.weights.repo if recipe.weights else recipe.served_model_name,
        "parent": None,
        "max_model_len": recipe.serving.context_tokens,
    }
    return {"object": "list", "data": [model]}


class Reply:
    """One completion's envelope."""

    def __init__(self, model: str, answer: Answer, prompt_tokens: int, cached: int) -> None:
        self.answer = answer
        self._prompt, self._cached = prompt_tokens, cached
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model,
        }

    def usage(self, completion_tokens: int) -> dict[str, Any]:
        """Return the tokens of the request so far."""
        thought = min(completion_tokens, self.answer.reasoning_tokens)
        return {
            "prompt_tokens": self._prompt,
            "completion_tokens": completion_tokens,
            "total_tokens": self._prompt + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self._cached},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    def chunk(
        self,
        delta: dict[str, Any] | None,
        *,
        finish_reason: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return one event's data; without a delta it has no choices."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        choices = [] if delta is None else [choice]
        data = {**self._head, "object": "chat.completion.chunk", "choices": choices}
        return data if usage is None else {**data, "usage": usage}

    def whole(self) -> dict[str, Any]:
        """Return a completion that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        texts: dict[str, str] = {}
        for token in self.answer.tokens:
            texts[token.field] = texts.get(token.field, "") + token.text
        if "tool_calls" in texts:
            function = {"name": self.answer.tool, "arguments": texts.pop("tool_calls")}
            message["tool_calls"] = [{"id": "call-0", "type": "function", "function": function}]
        choice = {
            "index": 0,
            "message": message | texts,
            "finish_reason": self.answer.finish_reason,
        }
        usage = self.usage(len(self.answer.tokens))
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage}


def deltas_of(step: tuple[Token, ...], answer: Answer, sent: int) -> Iterator[dict[str, Any]]:
    """Yield a step's deltas, one for each field, each with its number of ``tokens``."""
    start = 0
    while start < len(step):
        end = start + 1
        while end < len(step) and step[end].field == step[start].field:
            end += 1
        text = "".join(token.text for token in step[start:end])
        field, tokens = step[start].field, end - start
        if field == "tool_calls":
            call: dict[str, Any] = {"index": 0, "function": {"arguments": text}}
            if sent + start == 0:
                call |= {"id": "call-0", "type": "function"}
                call["function"] = {"name": answer.tool, "arguments": text}
            yield {"tool_calls": [call], "tokens": tokens}
        else:
            yield {field: text, "tokens": tokens}
        start = end
