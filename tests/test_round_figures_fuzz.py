"""Fuzz: whatever a server sends, the figures of it are of their type, or are not there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkrecipes.schema.round import Concurrent, LongPrompt, Single, Sustained
from sparkrecipes.standard_round import (
    Answer,
    Exchange,
    Reading,
    concurrent_figures,
    long_figures,
    single_figures,
    sustained_figures,
)
from tests.support.replay_server import DONE, data, event

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**7, 10**30),
        st.floats(),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ("prompt_tokens", "completion_tokens", "total_tokens")
COUNT = st.one_of(st.integers(1, 500), st.integers(10**7, 10**30), JSON)
USAGE = st.fixed_dictionaries(
    dict.fromkeys(NAMES, COUNT),
    optional={
        "prompt_tokens_details": st.dictionaries(st.just("cached_tokens"), COUNT),
        "completion_tokens_details": st.dictionaries(st.just("reasoning_tokens"), COUNT),
    },
)
EVENTS = st.one_of(
    st.text(max_size=6).map(lambda text: event({"content": text})),
    st.text(max_size=6).map(lambda text: event({"reasoning": text})),
    USAGE.map(lambda usage: data({"choices": [], "usage": usage})),
    JSON.map(lambda value: data({"choices": value})),
    st.tuples(JSON, JSON).map(lambda pair: event({"content": pair[0]}, pair[1])),  # type: ignore[arg-type]
    JSON.map(data),
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """One finished request, of any bytes at any times."""
    gaps = st.floats(1e-6, 1e4)
    at, pieces = 0.5, [(0.5, event({"content": "hola"}))]
    for raw in draw(st.lists(EVENTS, max_size=6)):
        at += draw(gaps)
        pieces.append((at, raw))
    ending = event({}, "stop") + DONE
    pieces.append((at + draw(gaps), ending if draw(st.integers(0, 3)) else b""))
    status = draw(st.sampled_from([200, 200, 200, 200, 400, 503]))
    end = draw(st.sampled_from(["eof", "eof", "eof", "reset"]))
    exchange = Exchange(pieces, end, pieces[-1][0], status, t0=draw(st.floats(0, 1e6)))
    return Answer(exchange, Reading.of(exchange))


def valid(kind: Any, figures: dict[str, Any]) -> None:
    """Check figures by their type, as they come out of a file."""
    kind.model_validate_json(json.dumps(figures))


@settings(max_examples=60, deadline=None)
@given(several=st.lists(answers(), min_size=1, max_size=4))
def test_figures_of_anything_are_of_their_type(several: list[Answer]) -> None:
    """Finite numbers that are not negative, texts, or null: never a round that cannot be read."""
    valid(Single, single_figures(several, several[0]))
    valid(Concurrent, concurrent_figures([several]))
    valid(LongPrompt, long_figures(several))
    load = sustained_figures([("any", answer) for answer in several], 0.0, 60.0)
    rest = {"minutes": 1.0, "users": 4, "failed": 0, "acceptance": None}
    valid(Sustained, load | rest | {"mem_available_low_bytes": None})
