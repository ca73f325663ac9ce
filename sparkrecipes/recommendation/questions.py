"""Which use cases a question names, in English or Spanish, and which language it is in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from sparkrecipes.errors import Misuse, nearest
from sparkrecipes.recommendation.voice import OR, say
from sparkrecipes.schema.recommendation import Language
from sparkrecipes.schema.use_case import UseCase

Words = tuple[str, ...]

_WORD = re.compile(r"[a-z0-9]+")

_SPANISH = """
a al algo alumnos con contexto cual cuales de del dejar el ella en es espanol esta este la
las libres lo los mas me mejor memoria mi modelo modelos necesito no para pero por que
quiero respuesta respuestas se sin su tengo un una uno usuario usuarios varios vez y ya
"""
_ENGLISH = """
a an and answer answers at best can context each fast for free i in is it leave me memory
model models my need not now of on or own should spanish that the this to user users want
what which with without you your
"""
SPANISH = frozenset(_SPANISH.split())
ENGLISH = frozenset(_ENGLISH.split())
"""Words that tell one language from the other; those of both count for neither."""


def understand(question: str, use_cases: Mapping[str, UseCase]) -> UseCase:
    """Find the one use case that a question names by its id, its name or a synonym.

    Case and accents are ignored; only whole words and phrases count. Where one phrase lies
    inside a longer one, the longer one decides: "coding agent" is about coding. A general use
    counts only where no other is named.

    Args:
        question: A word, a phrase or a sentence.
        use_cases: The use cases by id.

    Raises:
        Misuse: The words name no use case, or more than one.
    """
    named = named_uses(question, use_cases)
    if len(named) == 1:
        return use_cases[next(iter(named))]
    tongue = spoken_language(question, use_cases)
    if named:
        raise ambiguous(question, named, tongue)
    raise unknown(question, use_cases, tongue)


def named_uses(question: str, use_cases: Mapping[str, UseCase]) -> dict[str, set[Words]]:
    """Return the uses that a question names, in its order, each with the phrases that name it."""
    named = _named(words(question), _phrases(use_cases))
    special = {key: said for key, said in named.items() if not use_cases[key].general}
    return special or named


def ambiguous(question: str, named: Mapping[str, object], tongue: Language) -> Misuse:
    """Ask back where two uses are named."""
    keys = sorted(named)
    several = (" y " if tongue == "es" else " and ").join(keys)
    pair = say(tongue, "two_uses", first=keys[0], second=keys[1])
    return Misuse(
        say(tongue, "ambiguous", question=_shown(question), several=several),
        code="ambiguous_use_case",
        repair=say(tongue, "ask_one", one=keys[0], pair=pair),
    )


def unknown(question: str, use_cases: Mapping[str, UseCase], tongue: Language) -> Misuse:
    """Say which uses there are where none is named."""
    near = nearest(" ".join(words(question)), _spoken(use_cases))
    hint = say(tongue, "did_you_mean", near=OR[tongue].join(near)) if near else ""
    known = ", ".join(f"{key} ({use.names['es']})" for key, use in use_cases.items())
    return Misuse(
        say(tongue, "no_use", question=_shown(question)),
        code="unknown_use_case",
        repair=hint + say(tongue, "ask_for", known=known),
    )


def spoken_language(question: str, use_cases: Mapping[str, UseCase]) -> Language:
    """Tell the language of a question: by its words, its signs, and the synonyms it uses."""
    told = words(question)
    spanish = sum(word in SPANISH - ENGLISH for word in told)
    english = sum(word in ENGLISH - SPANISH for word in told)
    spanish += sum(sign in question for sign in "¿¡ñáéíóú")
    for use in use_cases.values():
        names = {
            lang: {*map(words, (*use.synonyms.get(lang, ()), use.names[lang]))}
            for lang in use.names
        }
        spanish += any(_holds(told, phrase) for phrase in names["es"] - names["en"])
        english += any(_holds(told, phrase) for phrase in names["en"] - names["es"])
    return "es" if spanish > english else "en"


def words(text: str) -> Words:
    """Split a text into words of plain lower-case letters and digits: "Código!" is "codigo"."""
    flat = unicodedata.normalize("NFKD", text.casefold())
    return tuple(_WORD.findall("".join(c for c in flat if not unicodedata.combining(c))))


def _holds(told: Words, phrase: Words) -> bool:
    size = len(phrase)
    return any(told[at : at + size] == phrase for at in range(len(told) - size + 1))


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


def _named(question: Words, meaning: Mapping[Words, set[str]]) -> dict[str, set[Words]]:
    """Return the use cases that a question names outside of longer phrases, with the phrases."""
    lengths = sorted({len(phrase) for phrase in meaning if phrase}, reverse=True)
    named: dict[str, tuple[int, set[Words]]] = {}
    taken: set[int] = set()
    for length in lengths:
        fresh = [
            start
            for start in range(len(question) - length + 1)
            if question[start : start + length] in meaning
            and not taken.issuperset(range(start, start + length))
        ]
        for start in fresh:
            phrase = question[start : start + length]
            for key in meaning[phrase]:
                first, said = named.get(key, (start, set()))
                named[key] = (min(first, start), said | {phrase})
            taken.update(range(start, start + length))
    return {key: named[key][1] for key in sorted(named, key=lambda key: named[key][0])}


def _shown(question: str) -> str:
    line = " ".join(question.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
