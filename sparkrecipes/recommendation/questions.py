"""Which use case a question means, in English or Spanish."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from sparkrecipes.errors import Misuse, nearest
from sparkrecipes.schema.use_case import UseCase

Words = tuple[str, ...]

_WORD = re.compile(r"[a-z0-9]+")


def understand(question: str, use_cases: Mapping[str, UseCase]) -> UseCase:
    """Find the one use case that a question names by its id, its name or a synonym.

    Case and accents are ignored; only whole words and phrases count. Where one phrase lies
    inside a longer one, the longer one decides: "coding agent" is about coding.

    Args:
        question: A word, a phrase or a sentence.
        use_cases: The use cases by id.

    Raises:
        Misuse: The words name no use case, or more than one.
    """
    named = _named(words(question), _phrases(use_cases))
    if len(named) == 1:
        return use_cases[named.pop()]
    if named:
        several = " and ".join(sorted(named))
        raise Misuse(
            f"{_shown(question)} names more than one use case: {several}",
            code="ambiguous_use_case",
            repair=f"ask for one of them, e.g. sparkrecipes recommend {min(named)}",
        )
    near = nearest(" ".join(words(question)), _spoken(use_cases))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    known = ", ".join(f"{key} ({use.names['es']})" for key, use in use_cases.items())
    raise Misuse(
        f"{_shown(question)} names no use case",
        code="unknown_use_case",
        repair=f"{hint}ask for one of: {known}",
    )


def words(text: str) -> Words:
    """Split a text into words of plain lower-case letters and digits: "Código!" is "codigo"."""
    flat = unicodedata.normalize("NFKD", text.casefold())
    return tuple(_WORD.findall("".join(c for c in flat if not unicodedata.combining(c))))


def _spoken(use_cases: Mapping[str, UseCase]) -> Iterator[str]:
    """List everything that use cases are called."""
    for key, use in use_cases.items():
        yield key
        yield from use.names.values()
        for synonyms in use.synonyms.values():
            yield from synonyms


def _phrases(use_cases: Mapping[str, UseCase]) -> dict[Words, set[str]]:
    """Return the use cases that each phrase means."""
    meaning: dict[Words, set[str]] = {}
    for key, use in use_cases.items():
        for phrase in _spoken({key: use}):
            meaning.setdefault(words(phrase), set()).add(key)
    return meaning


def _named(question: Words, meaning: Mapping[Words, set[str]]) -> set[str]:
    """Return the use cases that a question names outside of longer phrases."""
    lengths = sorted({len(phrase) for phrase in meaning if phrase}, reverse=True)
    named: set[str] = set()
    taken: set[int] = set()
    for length in lengths:
        found = [
            range(start, start + length)
            for start in range(len(question) - length + 1)
            if question[start : start + length] in meaning
        ]
        fresh = [span for span in found if not taken.issuperset(span)]
        named.update(*(meaning[question[span.start : span.stop]] for span in fresh))
        taken.update(_all(fresh))
    return named


def _all(spans: Iterable[range]) -> Iterator[int]:
    for span in spans:
        yield from span


def _shown(question: str) -> str:
    line = " ".join(question.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
