"""Answers: plain words for any prompt, a tool call where tools are offered, a colour for a picture.

What is said is canned and never the point; how long it is and when it comes is.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sparkrecipes.rehearsal.timing import Timing

DEFAULT_TOKENS = 60
"""Length of an answer where the request sets no limit; then it ends by itself."""

LONGEST_ANSWER = 8192
"""Beyond this an answer ends by itself whatever the limit."""

SENTENCES = (
    "El faro alumbra la costa mientras las barcas vuelven al puerto con redes llenas.",
    "Cada mañana los vecinos abren sus ventanas y saludan al panadero que cruza la plaza.",
    "Un viejo relojero guarda en su taller engranajes diminutos, lupas y cartas sin abrir.",
    "Cuando llueve en primavera, los almendros dejan pétalos blancos sobre los caminos de tierra.",
    "La biblioteca del barrio presta mapas antiguos, novelas cortas y libros de cocina.",
    "Desde la colina se ven tres molinos, un río tranquilo y campos dorados de trigo.",
    "Nadie recuerda quién plantó aquel olivo, pero todos descansan bajo su sombra en verano.",
    "El tren nocturno lleva estudiantes, músicos cansados y maletas con olor a naranja.",
    "En invierno, la escuela enciende una estufa grande y los niños leen cuentos cerca del fuego.",
    "Las abejas vuelan entre romero, tomillo y lavanda antes de regresar despacio a la colmena.",
    "Una guitarra suena lejos, detrás del mercado, justo cuando se apagan las últimas luces.",
    "Mi abuela medía el tiempo con canciones y nunca quemaba una sola tortilla.",
    "Sobre la mesa quedan pan caliente, queso fresco, aceitunas y un vaso de agua clara.",
    "Por fin amanece: el viento cambia, suben las gaviotas y empieza otra jornada sencilla.",
)
WORDS = tuple(word for sentence in SENTENCES for word in sentence.split())

COLOUR_SEEN = ("Rojo", ".")
"""What it says of any picture: the round's own test picture is a red square."""

Field = Literal["content", "reasoning", "tool_calls"]


@dataclass(frozen=True)
class Token:
    """One token: the field of the delta that it travels in, and its text."""

    field: Field
    text: str


@dataclass(frozen=True)
class Answer:
    """What will be said, token by token, and why it ends."""

    tokens: tuple[Token, ...]
    finish_reason: Literal["stop", "length", "tool_calls"]
    tool: str = ""

    @property
    def reasoning_tokens(self) -> int:
        """Tokens that are reasoning."""
        return sum(token.field == "reasoning" for token in self.tokens)


class Speaker:
    """Makes answers; each one begins with another sentence."""

    def __init__(self, timing: Timing) -> None:
        self._share = timing.reasoning_share
        self._turns = itertools.count()

    def answer(self, request: dict[str, Any], pictures: bool) -> Answer:
        """Answer a request: with a tool call, a colour, or words up to its limit."""
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        if tool := offered_tool(request):
            return tool_call(tool)
        if pictures:
            return Answer(tuple(Token("content", text) for text in COLOUR_SEEN), "stop")
        count = min(limit or DEFAULT_TOKENS, LONGEST_ANSWER)
        reasoning = round(count * self._share)
        texts = self._texts()
        tokens = tuple(
            Token("reasoning" if i < reasoning else "content", next(texts)) for i in range(count)
        )
        return Answer(tokens, "length" if count == limit else "stop")

    def _texts(self) -> Iterator[str]:
        """Yield words for ever, from another sentence on each time."""
        first = len(" ".join(SENTENCES[: next(self._turns) % len(SENTENCES)]).split())
        for i in itertools.count(first):
            yield WORDS[i % len(WORDS)] + " "


def offered_tool(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the function that a request wants called: the one it names, else its first."""
    tools = [t.get("function") for t in request.get("tools") or () if isinstance(t, dict)]
    functions = [f for f in tools if isinstance(f, dict) and isinstance(f.get("name"), str)]
    choice = request.get("tool_choice", "auto")
    if not functions or choice == "none":
        return None
    named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    return next((f for f in functions if f["name"] == named), functions[0])


def tool_call(function: dict[str, Any]) -> Answer:
    """Call a function with a value for each argument that it requires."""
    arguments = json.dumps(arguments_for(function.get("parameters")), ensure_ascii=False)
    pieces = [arguments[i : i + 4] for i in range(0, len(arguments), 4)]
    tokens = (Token("tool_calls", ""), *(Token("tool_calls", piece) for piece in pieces))
    return Answer(tokens, "tool_calls", tool=function["name"])


def arguments_for(schema: object) -> dict[str, Any]:
    """Return the plainest values that a JSON Schema of arguments accepts."""
    if not isinstance(schema, dict):
        return {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = [name for name in schema.get("required") or () if isinstance(name, str)]
    return {name: plain_value(properties.get(name)) for name in required}


PLAIN_VALUES = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


def plain_value(schema: object) -> Any:
    """Return the first allowed value, or a plain one of the wanted type."""
    if not isinstance(schema, dict):
        return "Lima"
    if choices := schema.get("enum"):
        return choices[0]
    return PLAIN_VALUES.get(str(schema.get("type")), "Lima")
