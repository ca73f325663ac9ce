"""Rounds against scripted engines, for tests."""

from __future__ import annotations

import json
from typing import Any

from sparkrecipes.schema.round import Round
from sparkrecipes.standard_round import run_round
from tests.support.replay_server import Engine, ReplayServer, Request, Script, answer


def measure(engine: Any, **options: Any) -> tuple[dict[str, Any], ReplayServer]:
    """Run a round against a chat or an engine: the data, checked by its type, and the server."""
    with ReplayServer(engine if isinstance(engine, Engine) else Engine(engine)) as server:
        data = run_round(server.base_url, "m", **({"sustained_minutes": 0} | options))
    Round.model_validate_json(json.dumps(data))
    return data, server


def codes(data: dict[str, Any]) -> list[str]:
    """The words of a round's warnings."""
    return [line.partition(":")[0] for line in data["warnings"]]


def good(request: Request) -> Script:
    """An engine in good health: 100 tokens, and a prompt of three characters a token."""
    return answer(100, each=0.0004, prompt=len(str(request.prompt)) // 3)
