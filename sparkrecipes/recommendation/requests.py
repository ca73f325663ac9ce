"""From a sentence and options to one request: the same question is the same object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sparkrecipes.errors import Misuse
from sparkrecipes.recommendation.questions import (
    Words,
    ambiguous,
    named_uses,
    spoken_language,
    unknown,
    words,
)
from sparkrecipes.recommendation.sentences import (
    AT_ONCE,
    BELOW_ZERO,
    MOST_LETTERS,
    WRITES_TEXT,
    Found,
    plain,
    read_sentence,
    user_counts,
)
from sparkrecipes.recommendation.voice import say
from sparkrecipes.schema.base import Capability
from sparkrecipes.schema.recommendation import Constraints, Language, Request
from sparkrecipes.schema.use_case import UseCase

MOST_USES = 2
Abilities = tuple[Capability, ...]
SENSES: Abilities = ("image", "audio", "video")
MAKE = re.compile(r"[a-z]+(?:-[a-z]+)*")
OTHER_MAKES = ("deepseek", "mistral", "phi", "glm", "kimi", "minimax", "granite")
"""Makes of models that people ask for, here or not."""
CODE = re.compile(r"[a-z]{2,3}")


def read_request(
    question: str,
    use_cases: Mapping[str, UseCase],
    known_engines: Iterable[str],
    *,
    language: Language | None = None,
    **wishes: Any,
) -> Request:
    """Understand a question: its uses, what must hold, and the language of the answer.

    Args:
        question: A use case, a synonym or a sentence, in English or Spanish.
        use_cases: The use cases by id.
        known_engines: Ids of the engines there are.
        language: Of the answer; None: that of the question.
        **wishes: Fields of ``Constraints``; those that are given go before the sentence.

    Raises:
        Misuse: The words name no use case and ask for nothing, or name more than one.
    """
    engines = tuple(known_engines)
    tongue = language or spoken_language(question, use_cases)
    _refuse_what_none_does(question, tongue)
    found, rest = read_sentence(question, engines)
    named = named_uses(rest, use_cases)
    pair = len(named) > 1 and re.search(rf"\b(?:{AT_ONCE})\b", rest) is not None
    only: Abilities = ()
    if not pair:
        named, senses, only = _senses(named, use_cases)
        found |= {"modalities": senses} if senses else {}
    given = {key: value for key, value in wishes.items() if value not in (None, (), [])}
    uses, assumed = _uses(question, named, use_cases, bool(found or given), tongue, pair=pair)
    if "users" in found and "users" not in given and len(counts := user_counts(question)) > 1:
        told = ", ".join(map(str, counts))
        assumed = (*assumed, say(tongue, "several_users", told=told, users=found["users"]))
    return Request(
        use_cases=uses,
        constraints=Constraints(**_checked({**found, **given}, engines, tongue)),
        language=tongue,
        senses=only,
        assumed=assumed,
    )


def models_named(question: str, families: Iterable[str]) -> tuple[str, ...]:
    """Return the makes of models that a question names: "gpt-oss for agents" names one.

    Args:
        question: The sentence.
        families: Families of the models there are, e.g. ``gemma-4``, ``qwen3.6``.
    """
    makes = {found[0] for family in families if (found := MAKE.match(family))}
    text = plain(question[:MOST_LETTERS])
    shown = {make: make.replace("-", "[ -]?") for make in sorted(makes | {*OTHER_MAKES})}
    licence = r"(?! licen[cs])(?!\.cpp)"
    return tuple(
        m
        for m, sign in shown.items()
        if re.search(rf"(?<!licencia )\b{sign}(?=[\d .,;:]|$){licence}", text)
    )


def _senses(
    named: Mapping[str, set[Words]], use_cases: Mapping[str, UseCase]
) -> tuple[dict[str, set[Words]], Abilities, Abilities]:
    """Take a use that only its abilities name as a need of the other use.

    "Agents with image input" is about agents; "image input" alone is about seeing.

    Returns:
        The uses that are left, what they need beside, and what a use was named by alone.
    """
    abilities: dict[str, list[str]] = {}
    for key, said in named.items():
        means = {words(p): a for a, phrases in use_cases[key].means.items() for p in phrases}
        if said <= set(means):
            abilities[key] = [means[phrase] for phrase in said]
    senses = {ability for key in abilities for ability in abilities[key]}
    told = tuple(sense for sense in SENSES if sense in senses)
    if not abilities or len(abilities) == len(named):
        return dict(named), (), told
    return {key: said for key, said in named.items() if key not in abilities}, told, ()


def _uses(
    question: str,
    named: Mapping[str, set[Words]],
    use_cases: Mapping[str, UseCase],
    asks: bool,
    tongue: Language,
    *,
    pair: bool,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose the use, or the two, that a question is about; a general one where it names none."""
    if len(named) == 1 or (pair and len(named) == MOST_USES):
        return tuple(named), ()
    if named:
        raise ambiguous(question, named, tongue)
    general = [key for key, use in use_cases.items() if use.general]
    if not asks or not general:
        raise unknown(question, use_cases, tongue)
    name = use_cases[general[0]].names[tongue]
    return (general[0],), (say(tongue, "assumed_use", use=name),)


def _refuse_what_none_does(question: str, tongue: Language) -> None:
    """Refuse what is no text, and amounts below nothing, which no reader may read as more.

    Raises:
        Misuse: With what can be asked instead.
    """
    if made := WRITES_TEXT.search(plain(question[:MOST_LETTERS])):
        raise Misuse(
            say(tongue, "writes_text", made=made[0]),
            code="unknown_use_case",
            repair=say(tongue, "ask_what_it_reads"),
        )
    if below := BELOW_ZERO.search(question[:MOST_LETTERS]):
        amount = below[0].strip(" ,;:=")
        raise Misuse(
            say(tongue, "no_amount", amount=amount),
            code="bad_amount",
            repair=say(tongue, "above_zero"),
        )


def _checked(given: Found, engines: tuple[str, ...], tongue: Language) -> Found:
    """Check what a sentence or an option asks for, and make lists of what is several.

    Raises:
        Misuse: An engine that is not there, a code that is none, an amount that is no amount.
    """
    checked = Found()
    for key, value in given.items():
        checked[key] = tuple(value) if isinstance(value, list | tuple) else value
    for engine in checked.get("engines", ()):
        if engine not in engines:
            raise Misuse(
                say(tongue, "no_engine", engine=engine),
                code="unknown_id",
                repair=say(tongue, "one_of", known=", ".join(engines)),
            )
    for code in checked.get("languages", ()):
        if not CODE.fullmatch(code):
            raise Misuse(
                f"{code!r} is no language code",
                code="bad_language",
                repair="write ISO 639-1, e.g. es, en, ca",
            )
    for sense in checked.get("modalities", ()):
        if sense not in ("text", "image", "audio", "video", "tools", "reasoning"):
            raise Misuse(
                f"{sense!r} is nothing that a recipe reads or does",
                code="bad_modality",
                repair="one of: image, audio, video, tools, reasoning",
            )
    for key in ("users", "context_tokens", "min_tok_s_per_user", "free_now_gb", "leave_free_gb"):
        if key in checked and not 0 < checked[key] < float("inf"):
            raise Misuse(
                say(tongue, "no_amount", amount=f"{key} {checked[key]}"),
                code="bad_amount",
                repair=say(tongue, "above_zero"),
            )
    return checked
