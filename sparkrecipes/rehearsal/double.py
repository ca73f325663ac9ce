"""The double: an OpenAI-compatible server on loopback in place of the container."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sparkrecipes.rehearsal.answers import Answer, Speaker, Token
from sparkrecipes.rehearsal.decoding import Decoder, Drafter, Stream, clock
from sparkrecipes.rehearsal.prompts import PrefixCache
from sparkrecipes.rehearsal.startup import startup_log
from sparkrecipes.rehearsal.timing import Timing
from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.evidence import EvidenceRow, WorkloadSet
from sparkrecipes.schema.recipe import Recipe

if TYPE_CHECKING:
    from sparkrecipes.rehearsal.wire import Server

LOAD_S = 2.0
"""A start of minutes is played in so many seconds."""


class EngineDouble:
    """Plays a recipe's published timing; use it as a context manager.

    Args:
        recipe: What it pretends to serve: name, context, users, capabilities, speculation.
        engine: Whose paths and counters it has.
        row: The published figures that it plays.
        speed: 0.7 plays everything at 70 % of the published speed.
        workloads: Published acceptance of speculation; without it there are no such counters.
        load_s: How long the start is made to take.

    Attributes:
        base_url: Where it answers, on an ephemeral port of loopback.

    Raises:
        Misuse: The row lacks the speed or the TTFT of one user.
    """

    def __init__(
        self,
        recipe: Recipe,
        engine: Engine,
        row: EvidenceRow,
        *,
        speed: float = 1.0,
        workloads: WorkloadSet | None = None,
        load_s: float = LOAD_S,
    ) -> None:
        self.recipe = recipe
        self.engine = engine
        self.timing = Timing.of(row, speed)
        self.decoder = Decoder(self.timing, recipe.serving.users)
        self.drafter = drafter_of(recipe, workloads)
        self.speaker = Speaker(self.timing)
        self.cache = PrefixCache()
        self.started_at = time.time()
        self._began_s = clock()
        self._load_s = load_s
        self._log = startup_log(recipe, row, load_s)
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = server_for(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.base_url = self._server.base_url

    def __enter__(self) -> Self:
        """Start to load and to listen."""
        self.started_at, self._began_s = time.time(), clock()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, end what is under way and close every connection."""
        self._server.shutdown()
        self._thread.join()
        self.decoder.stop()
        self._server.close_all()

    @property
    def ready(self) -> bool:
        """Whether the start is over."""
        return clock() - self._began_s >= self._load_s

    @property
    def log_lines(self) -> tuple[str, ...]:
        """What was logged until now, oldest first."""
        passed_s = clock() - self._began_s
        return tuple(line for at_s, line in self._log if at_s <= passed_s)

    def steps(self, answer: Answer, stream: Stream) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each step when the last of them is due, then wait for the end.

        The first token comes alone: it is no draft. The stream ends one interval after the last
        token, so that the published method and the true definition see one speed.
        """
        sent, total = 0, len(answer.tokens)
        while sent < total:
            size = min(self.drafter.step() if self.drafter and sent else 1, total - sent)
            self.decoder.wait_for(stream, sent + size - 1)
            self._count(generation_tokens=size)
            yield answer.tokens[sent : sent + size]
            sent += size
        self.decoder.wait_for(stream, total)

    def count_prompt(self, tokens: int) -> None:
        """Count the tokens of a prompt."""
        self._count(prompt_tokens=tokens)

    def count_finished(self, reason: str) -> None:
        """Count a request that was answered in full."""
        self._count(**{f"finished_{reason}": 1})

    def metrics(self) -> str:
        """Return the page of counters, as Prometheus reads it.

        Counters of speculation are there only where acceptance was published.
        """
        label = f'engine="0",model_name="{self.recipe.served_model_name}"'
        with self._lock:
            counts = Counter(self._counts)
        rows = [
            f"vllm:num_requests_running{{{label}}} {self.decoder.running}",
            f"vllm:num_requests_waiting{{{label}}} {self.decoder.waiting}",
            f"vllm:num_preemptions_total{{{label}}} 0",
            f"vllm:prompt_tokens_total{{{label}}} {counts['prompt_tokens']}",
            f"vllm:generation_tokens_total{{{label}}} {counts['generation_tokens']}",
            f"vllm:prefix_cache_queries_total{{{label}}} {self.cache.queries}",
            f"vllm:prefix_cache_hits_total{{{label}}} {self.cache.hits}",
        ]
        rows += [
            f'vllm:request_success_total{{{label},finished_reason="{reason}"}} '
            f"{counts[f'finished_{reason}']}"
            for reason in ("stop", "length", "tool_calls")
        ]
        rows += self._speculation_rows(label)
        rows.append(f"process_start_time_seconds {self.started_at:.2f}")
        return "\n".join(rows) + "\n"

    def _speculation_rows(self, label: str) -> list[str]:
        """Return the counters of speculation, each with the ``_created`` twin that vLLM adds.

        Acceptance by position was not published, so there is no such counter.
        """
        drafter, names = self.drafter, self.engine.metrics
        if not drafter or not names:
            return []
        values = [
            (names.drafts, drafter.drafts),
            (names.draft_tokens, drafter.drafted),
            (names.accepted_tokens, drafter.accepted),
        ]
        rows = []
        for name, value in values:
            if name:
                created = name.removesuffix("_total") + "_created"
                rows += [f"{name}{{{label}}} {value}", f"{created}{{{label}}} {self.started_at}"]
        return rows

    def _count(self, **more: int) -> None:
        with self._lock:
            self._counts.update(more)


def drafter_of(recipe: Recipe, workloads: WorkloadSet | None) -> Drafter | None:
    """Return the speculation to play, or None where there is none or its acceptance is unknown.

    The acceptance is that of the sustained run: it covers all kinds of prompts.
    """
    sustained = workloads.sustained if workloads else None
    if recipe.speculative is None or sustained is None or sustained.acceptance_pct is None:
        return None
    return Drafter(recipe.speculative.num_speculative_tokens, sustained.acceptance_pct)


def server_for(double: EngineDouble) -> Server:
    """Bind a server to an ephemeral port of loopback; HTTP is imported only here."""
    from sparkrecipes.rehearsal.wire import Server

    return Server(double)
