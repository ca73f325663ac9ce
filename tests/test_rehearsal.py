"""Rehearsal: the published timing, played so that a real client measures the published figures."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkrecipes import standard_round
from sparkrecipes.catalog import open_catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.rehearsal import EngineDouble, Timing
from sparkrecipes.rehearsal.answers import WORDS, arguments_for, offered_tool
from sparkrecipes.rehearsal.decoding import Decoder, Drafter, Stream
from sparkrecipes.rehearsal.prompts import PrefixCache, Prompt, count_tokens
from sparkrecipes.rehearsal.timing import LONG_PROMPT_TOKENS
from sparkrecipes.reports import compare
from sparkrecipes.schema.evidence import EvidenceRow, Figures, SustainedRow, WorkloadSet
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import Round
from tests.support.timing_retry import measured

CATALOG = open_catalog()
VLLM = CATALOG.engine("vllm")
AGENTS = CATALOG.recipe("qwen3.6-35b-a3b-nvfp4-vllm-mtp")
ROWS = [row for row in (CATALOG.october_row(r) for r in CATALOG.recipes.values()) if row]


def a_row(**figures: float | None) -> EvidenceRow:
    """A row that is quick to play: 300 tokens take 0.65 s."""
    plain: dict[str, float | None] = {
        "single_user_tok_s": 500.0,
        "four_users_total_tok_s": 1000.0,
        "ttft_ms": 50.0,
        "long_prompt_46k_s": 1.2,
        "load_min": 3.0,
        "memory_gb": None,
        "stable": None,
    }
    return EvidenceRow(
        id="row",
        date="2026-10-06",
        context_tokens=131072,
        users=4,
        kv_cache_dtype="fp8",
        figures=Figures.model_validate(plain | figures),
    )


@contextmanager
def a_double(
    recipe: Recipe = AGENTS, row: EvidenceRow | None = None, **options: Any
) -> Iterator[EngineDouble]:
    """A double that is ready at once."""
    with EngineDouble(recipe, VLLM, row or a_row(), **{"load_s": 0.0, **options}) as double:
        yield double


def ask(
    double: EngineDouble, path: str = "/v1/chat/completions", **body: Any
) -> tuple[int, dict[str, Any]]:
    """One request: status and JSON."""
    connection = http.client.HTTPConnection(urlsplit(double.base_url).netloc, timeout=30)
    try:
        request = {"model": AGENTS.served_model_name, "messages": [user("Hola")], **body}
        connection.request("POST" if body else "GET", path, json.dumps(request) if body else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else {"text": text}
    finally:
        connection.close()


def user(content: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": content}


def stream(double: EngineDouble, **body: Any) -> list[tuple[float, dict[str, Any]]]:
    """One streamed request: (seconds after it was sent, event), the end as an empty event."""
    connection = http.client.HTTPConnection(urlsplit(double.base_url).netloc, timeout=30)
    connection.connect()
    request = {
        "model": double.recipe.served_model_name,
        "messages": [user("Cuenta algo del mar.")],
        "stream": True,
        "stream_options": {"include_usage": True},
        **body,
    }
    sent = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", json.dumps(request))
    events = []
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            data = line[6:].strip()
            event = {} if data == b"[DONE]" else json.loads(data)
            events.append((time.perf_counter() - sent, event))
    connection.close()
    return events


def field(event: dict[str, Any], name: str) -> Any:
    """A field of the first choice's delta."""
    choices = event.get("choices") or [{}]
    return choices[0].get("delta", {}).get(name)


# What the timing says, without a socket.


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_published_figures_follow_from_the_timing_of_every_row(row: EvidenceRow) -> None:
    """300 tokens, four users and the long prompt give all 23 rows' figures back exactly."""
    timing, figures = Timing.of(row), row.figures
    hidden = round(timing.reasoning_share * 300)
    seen_ttft = timing.ttft_s + hidden / timing.single_tok_s
    assert figures.ttft_ms == pytest.approx(1000 * seen_ttft)
    assert figures.single_user_tok_s == pytest.approx(300 / ((300 - hidden) / timing.single_tok_s))
    wall = timing.ttft_s + 300 / timing.four_users_tok_s
    assert figures.four_users_total_tok_s == pytest.approx(1200 / wall)
    long = timing.first_token_s(LONG_PROMPT_TOKENS) + 100 / timing.single_tok_s
    assert figures.long_prompt_46k_s == pytest.approx(long)


def test_only_rows_with_that_caveat_hide_reasoning() -> None:
    """The five GPT-OSS rows, with a usual true TTFT and 46.6 to 47.1 tok/s on the 20B."""
    hidden = {row.id: Timing.of(row) for row in ROWS if Timing.of(row).reasoning_share}
    assert 5 == len(hidden)
    assert all(id_.startswith("gpt-oss") for id_ in hidden)
    assert all(0.08 < timing.ttft_s < 0.13 for timing in hidden.values())
    whole = {id_: 300 / (t.ttft_s + 300 / t.single_tok_s) for id_, t in hidden.items()}
    assert 46.6 == pytest.approx(whole["gpt-oss-20b-mxfp4-vllm"], abs=0.05)
    assert 46.7 == pytest.approx(whole["gpt-oss-20b-mxfp4-nim"], abs=0.05)
    assert 47.1 == pytest.approx(whole["gpt-oss-20b-mxfp4-vllm-eagle3"], abs=0.05)


def test_speed_scales_everything() -> None:
    """At 0.7 every rate is 0.7 of it and every time is 1/0.7."""
    full, slow = Timing.of(a_row()), Timing.of(a_row(), 0.7)
    assert slow.single_tok_s == pytest.approx(0.7 * full.single_tok_s)
    assert slow.four_users_tok_s == pytest.approx(0.7 * full.four_users_tok_s)
    assert slow.ttft_s == pytest.approx(full.ttft_s / 0.7)
    assert slow.first_token_s(40_000) == pytest.approx(full.first_token_s(40_000) / 0.7)


def test_users_between_and_beyond_the_published_ones() -> None:
    """Two and three lie between one and four; more than four share the total of four."""
    timing = Timing.of(a_row())
    speeds = [timing.tok_s(users) for users in (1, 2, 3, 4, 8)]
    assert sorted(speeds, reverse=True) == speeds
    assert timing.single_tok_s == speeds[0]
    assert timing.four_users_tok_s / 2 == speeds[4]


def test_what_is_not_published_is_not_invented() -> None:
    """Without a total nothing is gained by batching; without a speed there is nothing to play."""
    timing = Timing.of(a_row(four_users_total_tok_s=None, long_prompt_46k_s=None))
    assert 125.0 == timing.four_users_tok_s
    assert timing.ttft_s == timing.first_token_s(100_000)
    for missing in ("single_user_tok_s", "ttft_ms"):
        with pytest.raises(Misuse, match="no published speed"):
            Timing.of(a_row(**{missing: None}))
    with pytest.raises(Misuse, match="cannot be played"):
        Timing.of(a_row(), 0.0)


def test_a_schedule_survives_changes_of_speed() -> None:
    """Half the tokens at 10 a second, the rest at 5: each leaves when it should, with no drift."""
    stream_ = Stream(at_s=100.0, tok_s=10.0)
    assert 102.0 == stream_.due_s(20)
    stream_.change(101.0, 5.0)
    assert 103.0 == stream_.due_s(20)
    stream_.change(101.0, 10.0)
    assert 102.0 == stream_.due_s(20)
    early = Stream(at_s=100.0, tok_s=10.0)
    early.change(99.0, 20.0)  # before the first token
    assert 100.5 == early.due_s(10)


@measured
def test_streams_beyond_the_slots_wait_their_turn() -> None:
    """With one slot the second stream begins when the first has ended."""
    decoder = Decoder(Timing.of(a_row(ttft_ms=50.0)), slots=1)
    began, ends = time.perf_counter(), []

    def run() -> None:
        with decoder.stream(time.perf_counter(), 10) as mine:
            decoder.wait_for(mine, 25)  # 0.05 + 25 / 500 s
        ends.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.1 == pytest.approx(ends[0], abs=0.04)
    assert 0.2 <= ends[1]


def test_acceptance_is_exactly_the_published_one() -> None:
    """Over many steps the counters give 69.3 %, and a step never takes more than it drafted."""
    drafter = Drafter(2, 69.3)
    sizes = [drafter.step() for _ in range(5000)]
    assert 0.693 == pytest.approx(drafter.accepted / drafter.drafted, abs=1e-4)
    assert sum(sizes) == drafter.drafts + drafter.accepted
    assert 3 >= max(sizes)


def test_tokens_are_counted_about_as_a_tokenizer_does() -> None:
    """Digits and signs are a token each, words one for each four letters."""
    assert 0 == count_tokens("")
    assert 2 + 3 + 1 == count_tokens("tarea 123.")


def test_a_repeated_prompt_is_cached_and_a_nonce_at_its_start_defeats_that() -> None:
    """C110: blocks are looked up from the start, so that one new word makes all of it new."""
    cache = PrefixCache()
    text = " ".join(WORDS * 20)
    first = Prompt.of([user(text)])
    assert 0 == cache.look_up(first)
    assert 0.9 * first.tokens < cache.look_up(first) <= first.tokens
    assert 0 == cache.look_up(Prompt.of([user(f"[ronda 7f3a] {text}")]))
    assert cache.hits > 0


@pytest.mark.parametrize(
    ("choice", "name"),
    [("auto", "a"), ("required", "a"), ("none", None), ({"function": {"name": "b"}}, "b")],
)
def test_the_tool_that_is_asked_for_is_called(choice: Any, name: str | None) -> None:
    """The named one, else the first, and none where none is wanted."""
    tools = [{"type": "function", "function": {"name": n}} for n in ("a", "b")]
    called = offered_tool({"tools": tools, "tool_choice": choice})
    assert name == (called["name"] if called else None)


def test_arguments_fit_their_schema() -> None:
    """Required arguments have values of their types; odd schemas do no harm."""
    schema = {
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer"},
            "extra": {"type": "string"},
        },
        "required": ["city", "unit", "days"],
    }
    assert {"city": "Lima", "unit": "C", "days": 1} == arguments_for(schema)
    assert {} == arguments_for(None)
    assert {"x": "Lima"} == arguments_for({"required": ["x", 3], "properties": []})


# Over a socket.


@measured
def test_a_quick_round_measures_the_published_figures() -> None:
    """The real client over a socket: each figure within 3 %, and the report says matches."""
    recipe = AGENTS.model_copy(update={"speculative": None})
    row = a_row()
    with a_double(recipe, row) as double:
        round_ = quick_round(double, recipe)
    seen, wanted = round_.published_method, row.figures
    assert wanted.single_user_tok_s == pytest.approx(seen.single_user_tok_s, rel=0.03)
    assert wanted.four_users_total_tok_s == pytest.approx(seen.four_users_total_tok_s, rel=0.03)
    assert wanted.long_prompt_46k_s == pytest.approx(seen.long_prompt_46k_s, rel=0.03)
    assert wanted.ttft_ms == pytest.approx(seen.ttft_ms, abs=8)
    assert LONG_PROMPT_TOKENS == pytest.approx(round_.long_prompt.prompt_tokens, rel=0.01)
    assert (True, True, True) == (
        round_.smoke.words,
        round_.smoke.tool_call,
        round_.smoke.image,
    )
    assert round_.stability.failed == 0
    assert round_.stability.restarted is False
    assert round_.acceptance is None
    report = compare(round_, row, recipe_id=recipe.id)
    assert ("matches", True) == (report.verdict, report.simulated)


@measured
def test_played_slower_it_is_reported_slower() -> None:
    """At 0.7 the report says slower, by 30 %."""
    row = a_row(single_user_tok_s=900.0)
    with a_double(AGENTS, row, speed=0.7) as double:
        round_ = quick_round(double, AGENTS, only="single")
    report = compare(round_, row, recipe_id=AGENTS.id)
    assert "slower" == report.verdict
    assert -30 == pytest.approx(report.rows[0].difference_pct, abs=2)


def quick_round(double: EngineDouble, recipe: Recipe, only: str | None = None) -> Round:
    """Measure a double as a rehearsal does."""
    data = standard_round.run_round(
        double.base_url,
        recipe.served_model_name,
        quick=True,
        only=only,
        capabilities=recipe.capabilities,
        recipe_id=recipe.id,
        simulated=True,
    )
    return Round.model_validate_json(json.dumps(data))


class Schedule:
    """A clock that stands still but for the waits of a stream, and when each of those ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.ends: list[float] = []
        for module in ("decoding", "double", "wire"):
            monkeypatch.setattr(f"sparkrecipes.rehearsal.{module}.clock", lambda: self.now)
        monkeypatch.setattr(
            Decoder, "wait_for", lambda _, stream_, token: self.wait_for(stream_, token)
        )

    def wait_for(self, stream_: Stream, token: float) -> None:
        """Go to the moment when a token leaves; nobody sleeps."""
        self.now = max(self.now, stream_.due_s(token))
        self.ends.append(self.now)


@pytest.fixture
def schedule(monkeypatch: pytest.MonkeyPatch) -> Schedule:
    """The double's own times, without those of this machine."""
    return Schedule(monkeypatch)


def test_hidden_reasoning_gives_the_published_artefact(schedule: Schedule) -> None:
    """GPT-OSS: reasoning first; the old client sees 96.2 tok/s where 47 were generated."""
    recipe = CATALOG.recipe("gpt-oss-20b-mxfp4-vllm")
    row = CATALOG.october_row(recipe)
    assert row
    with a_double(recipe, row) as double:
        events = [event for _, event in stream(double, max_tokens=300)]
    said = [e for e in events if field(e, "reasoning") or field(e, "content")]
    *times, end = schedule.ends
    assert (300, 300) == (len(said), len(times))
    first_text = next(t for t, e in zip(times, said, strict=True) if field(e, "content"))
    assert row.figures.ttft_ms == pytest.approx(1000 * first_text, rel=0.003)
    assert row.figures.single_user_tok_s == pytest.approx(300 / (end - first_text), rel=0.003)
    assert 47.5 == pytest.approx(299 / (times[-1] - times[0]), rel=0.01)
    assert 0.08 < times[0] < 0.25
    usage = next(e["usage"] for e in events if e.get("usage"))
    assert 151 == pytest.approx(usage["completion_tokens_details"]["reasoning_tokens"], abs=2)


def test_the_stream_has_the_shape_of_vllm() -> None:
    """Role first and empty, text, a finish reason, usage with no choices, [DONE]."""
    with a_double() as double:
        events = [event for _, event in stream(double, max_tokens=20)]
    assert {"role": "assistant", "content": ""} == events[0]["choices"][0]["delta"]
    assert "length" == events[-3]["choices"][0]["finish_reason"]
    assert [] == events[-2]["choices"]
    assert 20 == events[-2]["usage"]["completion_tokens"]
    assert {} == events[-1]
    text = "".join(field(event, "content") or "" for event in events)
    assert 20 == len(text.split())
    assert all(word in WORDS for word in text.split())


def test_continuous_usage_and_no_usage() -> None:
    """Usage comes as it is asked for: on every event, or not at all."""
    with a_double() as double:
        options = {"include_usage": True, "continuous_usage_stats": True}
        counts = [
            event["usage"]["completion_tokens"]
            for _, event in stream(double, max_tokens=5, stream_options=options)
            if event.get("usage")
        ]
        silent = [e for _, e in stream(double, max_tokens=5, stream_options=None) if e.get("usage")]
    assert [1, 2, 3, 4, 5, 5] == counts
    assert [] == silent


def workloads(acceptance_pct: float | None) -> WorkloadSet:
    """A published sustained run."""
    run = SustainedRow(
        minutes=15.0, users=4, tok_s=218.0, acceptance_pct=acceptance_pct, failed_requests=0
    )
    return WorkloadSet(recipe=AGENTS.id, workloads=(), sustained=run)


def test_published_acceptance_shows_in_chunks_and_counters() -> None:
    """Several tokens a chunk after the first, and counters that give the published rate."""
    with a_double(workloads=workloads(69.3)) as double:
        chunks = [e for _, e in stream(double, max_tokens=300) if field(e, "content")]
        page = double.metrics()
    assert 300 / 2.386 == pytest.approx(len(chunks), abs=4)
    sizes = [len(field(chunk, "content").split()) for chunk in chunks]
    assert 1 == sizes[0]
    assert {2, 3} == set(sizes[1:-1])
    accepted, drafted = (
        int(re.search(rf"vllm:spec_decode_num_{name}_tokens_total.*\}} (\d+)", page)[1])
        for name in ("accepted", "draft")
    )
    assert 0.693 == pytest.approx(accepted / drafted, abs=0.01)


@pytest.mark.parametrize("known", [None, workloads(None)], ids=["no_set", "no_acceptance"])
def test_unknown_acceptance_has_no_counters(known: WorkloadSet | None) -> None:
    """What was not published is not counted, although the recipe speculates."""
    with a_double(workloads=known) as double:
        stream(double, max_tokens=10)
        page = double.metrics()
    assert "spec_decode" not in page
    assert re.search(r"vllm:generation_tokens_total\{.*\} 10\n", page)
    assert "process_start_time_seconds 1" in page


@measured
def test_a_start_is_logged_and_answers_only_when_it_is_over() -> None:
    """503 while it loads, the engine's milestones in order, then a completion."""
    with EngineDouble(AGENTS, VLLM, a_row(), load_s=0.4) as double:
        assert 503 == ask(double, "/health")[0]
        assert 503 == ask(double, max_tokens=1)[0]
        assert "Application startup complete" not in "\n".join(double.log_lines)
        time.sleep(0.45)
        assert 200 == ask(double, "/health")[0]
        assert 200 == ask(double, max_tokens=1)[0]
        log = "\n".join(double.log_lines)
    said = [m.says for m in VLLM.milestones if re.search(m.pattern, log)]
    assert {"weights in memory", "KV cache reserved"} == {m.says for m in VLLM.milestones} - set(
        said
    )
    places = [re.search(m.pattern, log).start() for m in VLLM.milestones if m.says in said]
    assert sorted(places) == places
    assert "simulated" in log.splitlines()[0]


def test_pages() -> None:
    """The model with its context, the version marked simulated, and 404 elsewhere."""
    with a_double() as double:
        model = ask(double, "/v1/models")[1]["data"][0]
        assert AGENTS.served_model_name == model["id"]
        assert AGENTS.serving.context_tokens == model["max_model_len"]
        assert "0.31.0+simulated" == ask(double, "/version")[1]["version"]
        assert 404 == ask(double, "/v1/nothing")[0]
        assert 404 == ask(double, "/v1/nothing", max_tokens=1)[0]


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"model": "another"}, 404, "does not exist"),
        ({"messages": []}, 400, "at least one message"),
        ({"messages": "hi"}, 400, "at least one message"),
        ({"max_tokens": 0}, 400, "at least 1"),
        ({"max_tokens": "many"}, 400, "at least 1"),
        ({"max_tokens": 131_073}, 400, "maximum context length is 131072"),
        ({"messages": [user("uno " * 131_073)]}, 400, "maximum context length"),
        ({"messages": [user([{"type": "input_audio"}])]}, 400, "not a multimodal model"),
    ],
)
def test_what_an_engine_refuses(body: dict[str, Any], status: int, says: str) -> None:
    """C111 and others: each with the status and words that clients know."""
    with a_double() as double:
        seen, answer = ask(double, **({"max_tokens": 1} | body))
    assert status == seen
    assert says in answer["error"]["message"]
    assert status == answer["error"]["code"]


def test_what_a_recipe_does_not_claim_is_refused() -> None:
    """Tools and pictures of a recipe for text answer 400, as vLLM does without a parser."""
    plain = AGENTS.model_copy(update={"capabilities": ("text",)})
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    with a_double(plain) as double:
        status, answer = ask(double, tools=TOOLS)
        assert (400, True) == (status, "--enable-auto-tool-choice" in answer["error"]["message"])
        assert 400 == ask(double, messages=[user(picture)])[0]
        assert 200 == ask(double, tools=TOOLS, tool_choice="none", max_tokens=2)[0]


def test_bodies_that_are_no_request() -> None:
    """Not JSON, not an object, too large: 400, and the server goes on."""
    with a_double() as double:
        address = urlsplit(double.base_url).netloc
        for body, length in ((b"{", None), (b"[1]", None), (b"{}", str(2**40)), (b"{}", "x")):
            connection = http.client.HTTPConnection(address, timeout=10)
            headers = {"Content-Length": length} if length else {}
            connection.request("POST", "/v1/chat/completions", body, headers)
            assert 400 == connection.getresponse().status
            connection.close()
        assert 200 == ask(double, max_tokens=1)[0]


def test_answers_that_are_not_streamed() -> None:
    """Words, a tool call with arguments, a picture: whole messages with their usage."""
    with a_double() as double:
        plain = ask(double, max_tokens=6)[1]
        called = ask(double, tools=TOOLS)[1]["choices"][0]
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
        seen = ask(double, messages=[user(picture)], max_tokens=9)[1]["choices"][0]
        ended = ask(double, temperature=0)[1]["choices"][0]
    assert 6 == len(plain["choices"][0]["message"]["content"].split())
    assert 6 == plain["usage"]["completion_tokens"]
    function = called["message"]["tool_calls"][0]["function"]
    assert ("get_weather", {"city": "Lima"}) == (
        function["name"],
        json.loads(function["arguments"]),
    )
    assert "tool_calls" == called["finish_reason"]
    assert ("Rojo.", "stop") == (seen["message"]["content"], seen["finish_reason"])
    assert "stop" == ended["finish_reason"]


def test_a_streamed_tool_call_can_be_put_together() -> None:
    """Name and id come first, arguments in pieces."""
    with a_double() as double:
        events = [event for _, event in stream(double, tools=TOOLS)]
    calls = [field(event, "tool_calls")[0] for event in events if field(event, "tool_calls")]
    assert "get_weather" == calls[0]["function"]["name"]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert {"city": "Lima"} == json.loads(arguments)
    assert 1 == sum("id" in call for call in calls)


@measured
def test_a_client_that_leaves_frees_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    """After connections that are cut in mid-stream, the next request has the speed of one user."""
    with a_double(row=a_row(ttft_ms=10.0)) as double:
        address = urlsplit(double.base_url)
        for _ in range(4):
            connection = http.client.HTTPConnection(address.netloc, timeout=10)
            body = {"model": AGENTS.served_model_name, "messages": [user("x")], "stream": True}
            connection.request(
                "POST", "/v1/chat/completions", json.dumps(body | {"max_tokens": 4000})
            )
            connection.getresponse().read(10)
            connection.close()
        deadline = time.perf_counter() + 5
        while double.decoder.running and time.perf_counter() < deadline:
            time.sleep(0.02)
        assert 0 == double.decoder.running
        assert 0.21 == pytest.approx(stream(double, max_tokens=100)[-1][0], abs=0.03)
    assert "" == capfd.readouterr().err


@measured
def test_closing_ends_what_is_under_way(capfd: pytest.CaptureFixture[str]) -> None:
    """A request of a minute does not keep the walk from ending, and the port is free at once."""
    slow = a_row(single_user_tok_s=5.0, four_users_total_tok_s=20.0, ttft_ms=30_000.0)
    failed: list[Exception] = []

    def run(double: EngineDouble) -> None:
        try:
            ask(double, max_tokens=300)
        except (OSError, http.client.HTTPException) as err:
            failed.append(err)

    began = time.perf_counter()
    with a_double(row=slow) as double:
        thread = threading.Thread(target=run, args=(double,))
        thread.start()
        time.sleep(0.2)
    thread.join(5)
    while double.decoder.running and time.perf_counter() < began + 3:
        time.sleep(0.01)
    assert 0 == double.decoder.running
    assert 1 == len(failed)
    assert 3 > time.perf_counter() - began
    with pytest.raises(OSError, match="refused"):
        ask(double, "/health")
    assert "" == capfd.readouterr().err


def test_answers_begin_differently_and_are_words() -> None:
    """No two answers in a row are the same, and none repeats a few words."""
    with a_double() as double:
        texts = [
            ask(double, max_tokens=150)[1]["choices"][0]["message"]["content"] for _ in range(2)
        ]
    assert texts[0] != texts[1]
    assert all(75 < len(set(text.split())) for text in texts)


def test_a_stream_ends_one_interval_after_its_last_token(schedule: Schedule) -> None:
    """So 10 tokens at 20 a second end half a second after the first: both definitions see 20."""
    with a_double(row=a_row(single_user_tok_s=20.0, ttft_ms=60.0)) as double:
        stream(double, max_tokens=10)
    first, *_, end = schedule.ends
    assert 0.06 == pytest.approx(first)
    assert 0.56 == pytest.approx(end)


@measured
def test_gaps_are_even() -> None:
    """Tokens leave on an absolute schedule: late wake-ups do not add up over an answer.

    How late the timeliest of the last 50 tokens is, against that of the first 50: a machine that
    is busy now and then delays some tokens, a schedule that drifts delays all.
    """
    with a_double(row=a_row(single_user_tok_s=200.0, ttft_ms=20.0)) as double:
        events = stream(double, max_tokens=200)
    times = [t for t, event in events if field(event, "content")]
    late = [t - 0.005 * n for n, t in enumerate(times)]
    assert 200 == len(late)
    assert 0.0 == pytest.approx(min(late[-50:]) - min(late[:50]), abs=0.004)
