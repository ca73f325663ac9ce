"""Prompts: how many tokens one has, how much of it a prefix cache holds, and what it carries."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PIECES = re.compile(r"\d|[^\W\d_]+|[^\w\s]")
LETTERS_PER_TOKEN = 4

BLOCK_TOKENS = 16
"""Tokens a block of the prefix cache, as in vLLM."""

BLOCK_CHARACTERS = 64
MOST_BLOCKS = 200_000
"""Blocks that are remembered; then the cache starts empty, as a full one evicts."""

NEEDS = {"image_url": "image", "input_audio": "audio", "audio_url": "audio", "video_url": "video"}
"""The capability that each kind of content needs."""


@dataclass(frozen=True)
class Prompt:
    """What a request asks.

    Attributes:
        text: Roles and texts of all messages.
        tokens: Its length.
        kinds: Kinds of content beside text, as requests name them.
    """

    text: str
    tokens: int
    kinds: frozenset[str]

    @classmethod
    def of(cls, messages: list[Any]) -> Prompt:
        """Read the messages of a chat request; what cannot be read is not there."""
        lines, kinds = [], set()
        for message in messages:
            if not isinstance(message, dict):
                continue
            parts = list(texts_of(message.get("content")))
            kinds |= set(kinds_of(message.get("content")))
            lines.append(f"{message.get('role')}: {' '.join(parts)}")
        text = "\n".join(lines)
        return cls(text, count_tokens(text), frozenset(kinds))


def texts_of(content: object) -> Iterator[str]:
    """Yield the texts of a message's content."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def kinds_of(content: object) -> Iterator[str]:
    """Yield the kinds of a message's parts that are no text."""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in NEEDS:
            yield part["type"]


def count_tokens(text: str) -> int:
    """Count about as a BPE tokenizer does: a digit or a sign each, four letters of a word each."""
    return sum(-(-len(piece) // LETTERS_PER_TOKEN) for piece in PIECES.findall(text))


class PrefixCache:
    """Remembers prompts by the blocks they begin with."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._lock = threading.Lock()
        self.queries = self.hits = 0

    def look_up(self, prompt: Prompt) -> int:
        """Return how many of a prompt's tokens were there already, and remember the prompt."""
        chain, blocks = 0, []
        for i in range(0, len(prompt.text) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS):
            chain = hash((chain, prompt.text[i : i + BLOCK_CHARACTERS]))
            blocks.append(chain)
        with self._lock:
            known = next((n for n, b in enumerate(blocks) if b not in self._seen), len(blocks))
            if len(self._seen) + len(blocks) > MOST_BLOCKS:
                self._seen.clear()
            self._seen.update(blocks)
            share = known * BLOCK_CHARACTERS / max(len(prompt.text), 1)
            cached = int(prompt.tokens * share) // BLOCK_TOKENS * BLOCK_TOKENS
            self.queries += prompt.tokens
            self.hits += cached
        return cached
