"""Judgement: what makes a round doubtful is found and named, and not printed as a figure."""

from __future__ import annotations

from typing import Any

import pytest

from sparkrecipes import standard_round as sr
from tests.support.replay_server import (
    DONE,
    Engine,
    ReplayServer,
    Request,
    Script,
    answer,
    event,
    page,
    stream,
    usage,
    words,
)
from tests.support.scripted_round import codes, good, measure


def test_a_cached_long_prompt_is_named_and_its_speed_counts_what_was_read() -> None:
    """C110: 45,984 of 46,000 tokens from the cache are 16 tokens of prefill."""

    def chat(request: Request) -> Script:
        return answer(
            80, first=0.02, prompt=46_000, prompt_tokens_details={"cached_tokens": 45_984}
        )

    data, _ = measure(chat, only="long")

    assert 45_984 == data["long_prompt"]["cached_tokens"]
    assert data["long_prompt"]["prefill_tok_s"] < 900
    assert "cached_long_prompt" in codes(data)


def short(tokens: int) -> Script:
    """An answer that ends by itself."""
    steps = [(0.001 * n, event({"content": word})) for n, word in enumerate(words(tokens))]
    return stream([*steps, (steps[-1][0], event({}, "stop") + usage(tokens) + DONE)])


@pytest.mark.parametrize(
    ("tokens", "code", "comparable"),
    [(20, "too_short", False), (90, "early_stop", True), (160, None, True)],
)
def test_short_answers_keep_their_figure_and_a_warning(
    tokens: int, code: str | None, comparable: bool
) -> None:
    """Under 64 tokens nothing is comparable; an early stop is said."""
    data, _ = measure(lambda _: short(tokens), only="single")

    assert comparable is data["single"]["comparable"]
    assert data["single"]["decode_tok_s"]["median"] > 0
    assert ([code] if code else []) == codes(data)
    assert {"stop": 3} == data["single"]["finish_reasons"]


def test_garbage_is_found_before_any_figure() -> None:
    """C89: health is fine, the answer is `!!!!`: named, and not comparable with anything."""

    def chat(_: Request) -> Script:
        marks = [(0.001 * n, event({"content": "!"})) for n in range(80)]
        return stream([*marks, (0.08, event({}, "length") + usage(80) + DONE)])

    data, _ = measure(chat, quick=True)

    assert data["smoke"]["words"] is False
    assert "hardly any letters" in data["smoke"]["message"]
    assert data["single"]["comparable"] is False
    assert "garbage_output" in codes(data)


def test_another_model_behind_the_endpoint_is_named() -> None:
    """By the list of models, and by what the answers say."""
    listed, _ = measure(Engine(good, model="other"), only="single")
    assert ["wrong_model"] == codes(listed)

    def chat(_: Request) -> Script:
        texts = [(0.001 * n, event({"content": w}, model="spy")) for n, w in enumerate(words(80))]
        return stream([*texts, (0.08, event({}, "length") + usage(80) + DONE)])

    answered, _ = measure(chat, only="single")
    assert "wrong_model: asked for m, answered by spy" in answered["warnings"]


def test_a_model_that_answers_by_its_own_name_is_the_right_one() -> None:
    """As every real engine does, in each event."""

    def chat(_: Request) -> Script:
        texts = [(0.001 * n, event({"content": w}, model="m")) for n, w in enumerate(words(200))]
        return stream([*texts, (0.2, event({}, "length", model="m") + usage(200) + DONE)])

    data, _ = measure(chat, only="single")
    assert [] == codes(data)


def test_the_counters_of_a_nim_are_found_where_it_has_them() -> None:
    """Under ``/v1/metrics``: so that a restart would have been seen."""

    class Nim(Engine):
        def __call__(self, request: Request) -> Script:
            if request.path == "/v1/metrics":
                return page(b"process_start_time_seconds 1.7e9\n", kind="text/plain")
            return super().__call__(request)

    data, _ = measure(Nim(good), only="single")
    assert data["stability"]["restarted"] is False


def test_the_only_served_model_is_found() -> None:
    """An empty name means it; its engine and version are noted."""
    with ReplayServer(Engine(good, model="the-one", context=8192)) as server:
        data = sr.run_round(server.base_url, "", only="single")

    assert {
        "base_url": f"{server.base_url}/v1",
        "model": "the-one",
        "engine": "vllm",
        "engine_version": "0.32.0",
        "context_tokens": 8192,
    } == data["server"]


CALL = {"tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("delta", "finish", "seen"),
    [
        (CALL, "tool_calls", (True, None)),
        ({"content": "It is red."}, "stop", (False, True)),
        ({"content": "It is blue."}, "stop", (False, False)),
        ({"reasoning": "Let me think about"}, "length", (None, None)),
    ],
)
def test_what_the_recipe_claims_is_tried(
    delta: dict[str, Any], finish: str, seen: tuple[bool | None, bool | None]
) -> None:
    """A tool call and an image; an answer cut short is neither yes nor no (C90)."""

    def chat(request: Request) -> Script:
        if isinstance(request.prompt, str) and "tools" not in request.body:
            return answer(80)
        return stream([(0.0, event(delta) + event({}, finish) + usage(9) + DONE)])

    data, server = measure(chat, quick=True, capabilities=("text", "tools", "image"))
    picture = server.chats[2].prompt[1]["image_url"]["url"]

    assert seen[0] is data["smoke"]["tool_call"]
    if delta is not CALL:
        assert seen[1] is data["smoke"]["image"]
        assert ("no_tool_call" in codes(data)) is (seen[0] is not True)
    assert picture.startswith("data:image/png;base64,iVBORw0KGgo")


def test_speed_with_speculation_is_told_by_kind_of_prompt() -> None:
    """C120: code and prose are rows of their own, each with its acceptance."""
    drafted = [0, 0]

    def chat(request: Request) -> Script:
        kind = "Python" in str(request.prompt)
        drafted[0] += 100
        drafted[1] += 90 if kind else 50
        return answer(80, each=0.0002 if kind else 0.0004)

    def metrics() -> str:
        return (
            f"vllm:spec_decode_num_drafts_total {drafted[0] / 2}\n"
            f"vllm:spec_decode_num_draft_tokens_total {drafted[0]}\n"
            f"vllm:spec_decode_num_accepted_tokens_total {drafted[1]}\n"
        )

    data, _ = measure(Engine(chat, metrics=metrics))
    rates = {row["workload"]: row["acceptance"]["rate_pct"] for row in data["varied"]}
    speeds = {row["workload"]: row["decode_tok_s"]["median"] for row in data["varied"]}

    assert {"code": 90.0, "json_tools": 50.0, "summary": 50.0, "writing": 50.0} == rates
    assert speeds["code"] > 1.4 * speeds["writing"]


def test_speculation_that_drafts_nothing_is_named() -> None:
    """C116: its counters are there and stand still."""
    page_text = "vllm:spec_decode_num_drafts_total 0\n"
    data, _ = measure(Engine(good, metrics=lambda: page_text), only="single")

    assert ["speculation_inactive"] == codes(data)
    assert data["acceptance"]["rate_pct"] is None


@pytest.mark.parametrize("how", ["probe", "start time", "counter"])
def test_a_restart_makes_it_unstable(how: str) -> None:
    """By the container's identity, by the process's start time, or by a counter that fell."""
    marks = iter(range(100))

    def metrics() -> str:
        n = next(marks)
        return {
            "probe": "",
            "start time": f"process_start_time_seconds {1 + (n > 1)}\n",
            "counter": f"vllm:generation_tokens_total {500 - n}\n",
        }[how]

    tokens = iter(["a", "a", *["b"] * 9])
    probe = (lambda: next(tokens)) if how == "probe" else None
    data, _ = measure(Engine(good, metrics=metrics), only="stability", restart_probe=probe)

    assert (True, False) == (data["stability"]["restarted"], data["stable"])
    assert "restarted" in codes(data)


def test_stable_needs_restarts_to_be_observed() -> None:
    """True with a source, null without one, and a probe that fails is no source."""

    def broken() -> str:
        raise RuntimeError("no docker")

    for probe, stable in ((lambda: "same", True), (lambda: None, None), (broken, None)):
        data, _ = measure(good, only="stability", restart_probe=probe)
        assert stable is data["stable"]


def test_foreign_traffic_and_preemption_are_named() -> None:
    """The server made far more tokens than this round asked for, and preempted requests."""
    calls = iter(range(100))

    def metrics() -> str:
        n = next(calls)
        return f"vllm:generation_tokens_total {n * 9000}\nvllm:num_preemptions_total {n}\n"

    data, _ = measure(Engine(good, metrics=metrics), only="single")

    assert ["other_traffic", "preempted"] == codes(data)
