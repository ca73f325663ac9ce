"""What a sentence asks for beside the use: users, context, speed, memory, languages and more.

Each reader finds its phrases in a plain text (no accents, lower case) and takes them out, so that
``open source`` is not about code and ``four users at once`` is not about two recipes at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sparkrecipes.recommendation.capacity import GB, GIB
from sparkrecipes.speed import SLOW_TOK_S

Found = dict[str, Any]
"""Constraints by name."""

WORDS = {
    "one": 1, "single": 1, "un": 1, "una": 1, "uno": 1, "solo": 1, "two": 2, "dos": 2,
    "three": 3, "tres": 3, "four": 4, "cuatro": 4, "five": 5, "cinco": 5, "six": 6, "seis": 6,
    "seven": 7, "siete": 7, "eight": 8, "ocho": 8, "nine": 9, "nueve": 9, "ten": 10, "diez": 10,
    "twelve": 12, "doce": 12, "fifteen": 15, "quince": 15, "twenty": 20, "veinte": 20,
    "thirty": 30, "treinta": 30,
}  # fmt: skip
LANGUAGES = {
    "spanish": "es", "espanol": "es", "espanola": "es", "castellano": "es", "english": "en",
    "ingles": "en", "french": "fr", "frances": "fr", "german": "de", "aleman": "de",
    "italian": "it", "italiano": "it", "portuguese": "pt", "portugues": "pt", "catalan": "ca",
    "valencian": "ca", "valenciano": "ca", "chinese": "zh", "chino": "zh", "japanese": "ja",
    "japones": "ja", "hindi": "hi", "thai": "th", "tailandes": "th", "basque": "eu",
    "euskera": "eu", "galician": "gl", "gallego": "gl",
}  # fmt: skip
OPEN_LICENCES = ("apache-2.0", "mit")
"""What ``open source`` and ``commercial use`` are understood as: licences that allow both."""

MOST_LETTERS = 2000
"""Of a sentence; the rest is not read."""
OTHER_ENGINES = ("llama.cpp", "ollama", "tensorrt llm", "trt llm", "lm studio", "mlx")
"""Engines that people ask for, here or not: to be refused by name, never passed over."""
BELOW_ZERO = re.compile(r"(?:^|[\s,;:=])[-\u2212]\s?\d")
"""An amount below nothing."""
WRITES_TEXT = re.compile(
    r"\b(?:(?:image|picture|photo|video|audio|music|speech|voice) (?:generation|synthesis)|"
    r"(?:generat|creat|mak|draw|paint)(?:e|es|ing)? (?:an? )?"
    r"(?:images?|pictures?|photos?|videos?|music|speech|audio)|text to (?:speech|image|video)|"
    r"(?:generar|crear|dibujar|pintar|generacion de|creacion de|sintesis de) (?:una? )?"
    r"(?:imagen(?:es)?|fotos?|dibujos?|videos?|musica|audios?|voz)|texto a (?:voz|imagen|video)|"
    r"tts|embeddings?|rerank(?:er|ing)?)\b"
)
"""What no recipe does: every one of them answers in text."""

_NUMBER = rf"(\d+|{'|'.join(WORDS)})"
_PEOPLE = (
    "users?|people|persons?|students?|pupils?|teachers?|developers?|clients?|requests?|employees|streams?|"
    "sessions?|usuari[oa]s?|personas?|alumn[oa]s?|profesor(?:es|as?)?|estudiantes?|desarrollador(?:es|as)?|"
    "programador(?:es|as)?|emplead[oa]s?|clientes?|peticiones|sesiones|companer[oa]s?"
)
AT_ONCE = (
    r"at once|at the same time|side by side|simultaneous(?:ly)?|in parallel|alongside|"
    r"concurrent(?:ly)?|"
    r"a la vez|al mismo tiempo|simultane[oa]s?|simultaneamente|en paralelo|lado a lado|juntos"
)
"""Two uses at once; after a number of users it says nothing more."""

USERS = re.compile(
    rf"\b{_NUMBER}(?: (?:concurrent|simultaneous|active|other|solo|single))? "
    rf"(?P<who>{_PEOPLE})\b"
    rf"(?: (?:{AT_ONCE}))?"
)
CLASS_OF = re.compile(
    rf"\b(?:class|classroom|team|group|clase|aula|equipo|grupo) (?:of|de) {_NUMBER}\b"
)
_LATER = (
    "later|afterwards|soon|next (?:year|month|week)|in (?:the )?future|"
    "mas (?:tarde|adelante)|luego|despues|pronto|en (?:el|un) futuro"
)
_ABOUT = "up to|about|maybe|hasta|unos|unas|quizas?"
_GROUP = "team|class|classroom|group|office|company|equipo|clase|aula|grupo|oficina|empresa"
SIZED_GROUP = re.compile(rf"\b(?:small|pequen[oa]) (?=(?:{_GROUP})\b)|\b({_GROUP}) pequen[oa]\b")
"""A small team is few people, not a small model."""
K_BY_USERS = re.compile(r"\b(\d+(?:\.\d+)?)(k|m) ?x ?(\d+)\b")
COUNTS = (
    (USERS, (1,)),
    (CLASS_OF, (1,)),
    (K_BY_USERS, (3,)),
    (re.compile(rf"(?<![\d.])\b{_NUMBER} (?:{_LATER})\b"), (1,)),
    (re.compile(rf"\b(?:{_LATER})(?: (?:{_ABOUT}))* {_NUMBER}(?= ?[,;]|$)"), (1,)),
    (re.compile(rf"(?<![\d.])\b{_NUMBER} (?:to|or|a|o|u|hasta) {_NUMBER} (?:{_PEOPLE})\b"), (1, 2)),
    (re.compile(rf"\b(?:between|entre) {_NUMBER} (?:and|y) {_NUMBER} (?:{_PEOPLE})\b"), (1, 2)),
)
"""All that say how many users, with the groups that hold the numbers: "4 users now, 16 later",
"4 to 16 users"."""
CONTEXT = re.compile(
    r"\b(?:(\d+(?:\.\d+)?|un|one) ?(k|m|mil|thousand|millones|million|millon)"
    r"|(\d{3,8}|0)(?= (?:de )?(?:tokens?|contexto?)))"
    r"(?: (?:de )?(?:tokens?|contexto?|window|ventana))*\b(?! ?(?:gb|gib|tok))"
)
CONTEXT_OF = re.compile(
    r"\b(?:context|contexto|window|ventana) (?:of |de |up to |hasta )*(\d{3,8})\b"
)
SPEED = re.compile(
    r"\b(\d+(?:\.\d+)?) ?(?:t|tok|toks|tokens?) ?(?:/|per|por|a) ?(?:s|sec|second|segundo)\b"
    r"(?: (?:per|por|for each|para cada|each|cada) ?(?:user|usuario|one|uno|alumno|student)?)?"
    r"|\b(\d+(?:\.\d+)?) ?tps\b"
)
INTERACTIVE = re.compile(
    r"\b(?:(?:respuestas? |answers? )?(?:interactiv[aoe]s?|interactive)|real time|tiempo real|"
    r"fluid[oa]s?)(?: (?:answers?|responses?|use|uso))?\b"
)
MEMORY = re.compile(r"\b(\d+(?:\.\d+)?) ?(gb|gib)\b")
LEAVE = re.compile(
    r"\b(?:leav\w*|keep\w*|spare|dej\w+|qued(?:e|en)|sobr\w+|reserv\w+|mantener|mantengan?)\b"
)
ABOUT_MEMORY = re.compile(
    r"\b(?:free|available|libres?|disponibles?|now|ahora|memory|memoria|only|solo|hay|left)\b"
)
OPEN = re.compile(
    r"\b(?:open source|open licen[cs]e|free software|commercial(?: use)?|codigo abierto|"
    r"licencia (?:abierta|libre)|software libre|(?:uso )?comercial)\b"
)
NAMED_LICENCE = re.compile(
    r"\b(?:licen[cs]ed?(?: under)? |licencia (?:de )?)(apache|mit|llama|nvidia)\b(?: ?2(?:\.0)?)?"
    r"|\b(apache|mit|llama|nvidia)(?: ?2(?:\.0)?)?[ -]licen[cs]ed?\b"
    r"|\b(apache)(?: ?2(?:\.0)?)?\b"
)
NOT = re.compile(
    r"\b(?:without|no|not|sin|except|excepto|salvo)"
    r"(?: (?:a|an|un|una|el|using|usar|on|with|con|en))* $"
)


class Reading(NamedTuple):
    """What a sentence says beside the use."""

    found: Found
    """Constraints by name."""
    rest: str
    """The sentence without the phrases that said them."""


def plain(text: str) -> str:
    """Write a text in lower case without accents; signs that part numbers stay."""
    flat = unicodedata.normalize("NFKD", text.casefold())
    flat = "".join(c for c in flat if not unicodedata.combining(c))
    flat = re.sub(r"(?<=\d),(?=\d{3}\b)", "", flat).replace("\u00d7", "x")
    flat = re.sub(r"(?<=\d),(?=\d)", ".", flat)
    return re.sub(r"[^a-z0-9./,;:]+", " ", flat).strip()


def read_sentence(text: str, engines: Iterable[str]) -> Reading:
    """Read constraints from a sentence in English or Spanish.

    Args:
        text: The sentence.
        engines: Names of the engines there are.
    """
    rest, found = plain(text[:MOST_LETTERS]), Found()
    for reader in READERS:
        rest, more = reader(rest)
        found |= {key: value for key, value in more.items() if key not in found}
    rest, named = _engines(rest, tuple(engines))
    return Reading(found | named, rest)


def _number(text: str) -> int:
    return WORDS.get(text) or int(text)


def _tokens(number: str, unit: str) -> int:
    """Read a context: ``64K`` is 64 x 1024, ``64 mil`` is 64,000."""
    factor = {
        "k": 1024, "m": 1024**2, "mil": 1000, "thousand": 1000, "million": 10**6,
        "millon": 10**6, "millones": 10**6,
    }  # fmt: skip
    return round((WORDS.get(number) or float(number)) * factor[unit])


def _take(pattern: re.Pattern[str], text: str) -> tuple[str, re.Match[str] | None]:
    """Take the first match out of a text; a comma in its place keeps its neighbours apart."""
    match = pattern.search(text)
    return (f"{text[: match.start()]}, {text[match.end() :]}", match) if match else (text, None)


def _users(text: str) -> tuple[str, Found]:
    text = SIZED_GROUP.sub(lambda match: match[1] or "", text)
    rest, match = _take(K_BY_USERS, text)
    if match:
        return rest, {"context_tokens": _tokens(match[1], match[2]), "users": int(match[3])}
    match = USERS.search(text)
    if match:
        # Who they are may say what for: five developers are users, and about code.
        told = f"{text[: match.start()]}{match['who']}, {text[match.end() :]}"
        return told, {"users": _number(match[1])}
    rest, match = _take(CLASS_OF, text)
    return (rest, {"users": _number(match[1])}) if match else (text, {})


def user_counts(text: str) -> tuple[int, ...]:
    """List the different numbers of users that a sentence names, in its order.

    One of them is asked for; where there are more, the answer has to say which.

    Args:
        text: The sentence.
    """
    flat = plain(text[:MOST_LETTERS])
    found = [
        (match.start(group), _number(match[group]))
        for pattern, groups in COUNTS
        for match in pattern.finditer(flat)
        for group in groups
    ]
    return tuple(dict.fromkeys(number for _, number in sorted(found)))


def _speed(text: str) -> tuple[str, Found]:
    rest, match = _take(SPEED, text)
    if match:
        return rest, {"min_tok_s_per_user": float(match[1] or match[2])}
    rest, match = _take(INTERACTIVE, text)
    return (rest, {"min_tok_s_per_user": SLOW_TOK_S}) if match else (text, {})


def _memory(text: str) -> tuple[str, Found]:
    """Read amounts of memory: to be left free, or free now; the words around them decide."""
    found = Found()
    while match := MEMORY.search(text):
        start = max(text.rfind(sign, 0, match.start()) for sign in ",;:") + 1
        stops = [at for sign in ",;:" if (at := text.find(sign, match.end())) >= 0]
        end = min(stops, default=len(text))
        clause = text[start:end]
        gb = float(match[1]) * (1 if match[2] == "gb" else GIB / GB)
        if gb > 0:
            key = "leave_free_gb" if LEAVE.search(clause) else "free_now_gb"
            found.setdefault(key, round(gb, 3))
        left = ABOUT_MEMORY.sub(" ", LEAVE.sub(" ", clause.replace(match[0], " ", 1)))
        text = f"{text[:start]}{left}{text[end:]}"
    return text, found


def _context(text: str) -> tuple[str, Found]:
    rest, match = _take(CONTEXT_OF, text)
    if match is None:
        rest, match = _take(CONTEXT, text)
        if match is None:
            return text, {}
        tokens = int(match[3]) if match[3] else _tokens(match[1], match[2])
    else:
        tokens = int(match[1])
    return rest, {"context_tokens": tokens}


def _languages(text: str) -> tuple[str, Found]:
    named = [LANGUAGES[word] for word in re.findall(r"[a-z]+", text) if word in LANGUAGES]
    rest = re.sub(rf"\b(?:{'|'.join(LANGUAGES)})\b", " ", text)
    return (rest, {"languages": tuple(dict.fromkeys(named))}) if named else (text, {})


def _licences(text: str) -> tuple[str, Found]:
    rest, match = _take(OPEN, text)
    if match:
        return rest, {"licences": OPEN_LICENCES}
    rest, match = _take(NAMED_LICENCE, text)
    return (rest, {"licences": (match[1] or match[2] or match[3],)}) if match else (text, {})


def _engines(text: str, engines: tuple[str, ...]) -> tuple[str, Found]:
    """Read engines that are wanted, or that are not."""
    wanted: list[str] = []
    refused: list[str] = []
    for engine in (*engines, *(other for other in OTHER_ENGINES if other not in engines)):
        match = re.search(rf"\b{re.escape(engine)}\b", text)
        if match:
            (refused if NOT.search(text[: match.start()]) else wanted).append(engine)
            text = text[: match.start()] + text[match.end() :]
    known_refused = set(refused) & set(engines)
    allowed = wanted or ([e for e in engines if e not in refused] if known_refused else [])
    return text, {"engines": tuple(allowed)} if allowed else {}


READERS: tuple[Callable[[str], tuple[str, Found]], ...] = (
    _speed,
    _memory,
    _users,
    _context,
    _licences,
    _languages,
)
"""In this order: what has a unit is taken before bare numbers."""
