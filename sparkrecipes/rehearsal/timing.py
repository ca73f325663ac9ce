"""Timing: what an engine's published figures imply for each token of an answer.

The published method counts ``speed = tokens / (end of the stream - first text)``. An answer whose
tokens leave at a steady rate r, the end of the stream one interval after the last token, has that
speed r by the published method and by the true definition alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sparkrecipes.errors import Misuse
from sparkrecipes.schema.evidence import EvidenceRow

ANSWER_TOKENS = 300
"""Length of the published answers: the method's limit, which its prompt reaches."""

PUBLISHED_USERS = 4
"""Users behind ``four_users_total_tok_s``."""

LONG_PROMPT_TOKENS = 46_600
"""What this server counts for the round's prompt of 3,000 log lines, the "46K" of the table."""

LONG_ANSWER_TOKENS = 100
"""The published long prompt allows so many tokens of answer, and its wall time includes them."""

SHORT_PROMPT_TOKENS = 256
"""Prompts up to here have the published TTFT of the short prompt."""

USUAL_TTFT_S = 0.1
"""First token where the published method did not see it: the other rows show 0.06 to 0.15 s."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """When each token of an answer leaves.

    Attributes:
        ttft_s: First token of a short prompt.
        single_tok_s: Decode speed of one user.
        four_users_tok_s: Decode speed of each of four users.
        prefill_s_per_token: Added to the first token for each prompt token above a short prompt.
        reasoning_share: Part of each answer that is reasoning, which the published method does
            not see; 0 where it saw the first token.
    """

    ttft_s: float
    single_tok_s: float
    four_users_tok_s: float
    prefill_s_per_token: float
    reasoning_share: float = 0.0

    @classmethod
    def of(cls, row: EvidenceRow, speed: float = 1.0) -> Self:
        """Derive the timing that gives a row's figures by the published method.

        Args:
            row: The published row.
            speed: 0.7 plays everything at 70 % of the published speed.

        Raises:
            Misuse: The row lacks the speed or the TTFT of one user, or ``speed`` is not positive.
        """
        figures = row.figures
        if not figures.single_user_tok_s or not figures.ttft_ms or speed <= 0:
            raise Misuse(
                f"{row.id}: there is no published speed and TTFT of one user to play"
                if speed > 0
                else f"a speed of {speed} cannot be played",
                code="no_published_figures",
                repair="rehearse a measured recipe: sparkrecipes list",
            )
        ttft_s, single = figures.ttft_ms / 1000, figures.single_user_tok_s
        share = 0.0
        if reasoning_was_hidden(row):
            ttft_s, single, share = with_hidden_reasoning(ttft_s, single)
        four = of_four_users(figures.four_users_total_tok_s, ttft_s, single)
        prefill = of_long_prompt(figures.long_prompt_46k_s, ttft_s, single)
        return cls(
            ttft_s=ttft_s / speed,
            single_tok_s=single * speed,
            four_users_tok_s=four * speed,
            prefill_s_per_token=prefill / speed,
            reasoning_share=share,
        )

    def first_token_s(self, uncached_tokens: int) -> float:
        """Return the time to the first token of a prompt, in s."""
        return self.ttft_s + self.prefill_s_per_token * max(
            0, uncached_tokens - SHORT_PROMPT_TOKENS
        )

    def tok_s(self, users: int) -> float:
        """Return the decode speed of each of so many users.

        Published for one and for four; between them a straight line, above four the same total.
        """
        if users >= PUBLISHED_USERS:
            return self.four_users_tok_s * PUBLISHED_USERS / users
        step = (self.four_users_tok_s - self.single_tok_s) / (PUBLISHED_USERS - 1)
        return self.single_tok_s + step * (max(users, 1) - 1)


def reasoning_was_hidden(row: EvidenceRow) -> bool:
    """Tell whether a caveat doubts both speed and TTFT of one user: the method's blind spot."""
    return any({"single_user_tok_s", "ttft_ms"} <= set(c.figures) for c in row.caveats)


def with_hidden_reasoning(seen_ttft_s: float, seen_tok_s: float) -> tuple[float, float, float]:
    """Return (TTFT s, tokens a second, share of reasoning) behind figures that did not see it.

    Of n tokens the first k are reasoning at the same steady rate r. The method sees the first
    text at ``seen_ttft_s`` and divides all n by the rest: (n - k) / r = n / seen_tok_s, and the
    true TTFT is seen_ttft_s - k / r. The k is taken whose TTFT is closest to a usual one.

    Source: the published rows of GPT-OSS; 300 tokens in 96.2 tok/s and 3.319 s are 6.44 s.
    """
    n = ANSWER_TOKENS

    def rate(k: int) -> float:
        return (n - k) * seen_tok_s / n

    hidden = min(range(n), key=lambda k: abs(seen_ttft_s - k / rate(k) - USUAL_TTFT_S))
    return seen_ttft_s - hidden / rate(hidden), rate(hidden), hidden / n


def of_four_users(total_tok_s: float | None, ttft_s: float, single: float) -> float:
    """Return each user's rate behind a total: 4 n / total = TTFT + n / rate.

    Where no total is published, four users share the speed of one: nothing is gained for free.
    """
    n = ANSWER_TOKENS
    if not total_tok_s:
        return single / PUBLISHED_USERS
    decode_s = PUBLISHED_USERS * n / total_tok_s - ttft_s
    return n / decode_s if decode_s > 0 else total_tok_s / PUBLISHED_USERS


def of_long_prompt(wall_s: float | None, ttft_s: float, single: float) -> float:
    """Return the seconds a prompt token adds: wall = TTFT(46K) + 100 tokens of answer.

    Where no wall time is published, a long prompt costs no more than a short one.
    """
    if not wall_s:
        return 0.0
    prefill_s = wall_s - LONG_ANSWER_TOKENS / single - ttft_s
    return max(prefill_s, 0.0) / (LONG_PROMPT_TOKENS - SHORT_PROMPT_TOKENS)
