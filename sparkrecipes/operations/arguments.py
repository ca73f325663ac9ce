"""The door of every operation: a wrong argument is misuse that names it, never a traceback."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sparkrecipes.errors import Misuse

Operation = TypeVar("Operation", bound=Callable[..., Any])

_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
}
_CONFIG = ConfigDict(arbitrary_types_allowed=True, strict=True)


@functools.cache
def checked(operation: Operation) -> Operation:
    """Return an operation that says of a wrong argument which one it is and what it takes.

    Nothing is converted: ``users="4"`` is refused, and what is right is passed on as it is.
    """
    signature = inspect.signature(operation)
    types = {name: adapter(hint) for name, hint in hints_of(operation).items()}

    @functools.wraps(operation)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            require(operation.__name__, name, value, types[name])
        try:
            return operation(*args, **kwargs)
        except ValidationError as error:
            for name, value in given.items():
                if any(same(value, one["input"]) for one in error.errors(include_url=False)):
                    raise wrong(operation.__name__, name, value, error) from None
            raise

    return typing.cast(Operation, call)


def hints_of(operation: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters; that of the answer may be known to type checkers only."""
    bare = FunctionType(operation.__code__, operation.__globals__)
    bare.__annotations__ = {k: v for k, v in operation.__annotations__.items() if k != "return"}
    return typing.get_type_hints(bare)


def adapter(hint: Any) -> TypeAdapter[Any]:
    """Return what checks values of a type; our own classes are taken as they are."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=_CONFIG)


def require(operation: str, name: str, value: Any, wanted: TypeAdapter[Any]) -> None:
    """Check one argument.

    Raises:
        Misuse: It is of another type.
    """
    try:
        wanted.validate_python(value)
    except ValidationError:
        message = f"{name} of {operation} takes {in_words(wanted._type)}, not {shown(value)}"
        raise misuse(operation, message) from None


def wrong(operation: str, name: str, value: Any, error: ValidationError) -> Misuse:
    """Return the misuse of a value that its own type refuses."""
    why = str(error.errors(include_url=False)[0]["msg"])
    return misuse(operation, f"{name} of {operation}: {shown(value)}: {why[:1].lower()}{why[1:]}")


def misuse(operation: str, message: str) -> Misuse:
    """Return a misuse of an operation, with where its arguments are described."""
    repair = f"see help(sparkrecipes.{operation})"
    return Misuse(message, code="bad_arguments", repair=repair)


def same(value: Any, refused: Any) -> bool:
    """Tell whether what a type refused is the argument that was given."""
    return type(value) is type(refused) and value is not None and bool(value == refused)


def shown(value: Any) -> str:
    """Return a value as a message may hold it."""
    text = repr(value)
    return f"{text if len(text) <= 60 else f'{text[:57]}...'} ({type(value).__name__})"


def in_words(hint: Any) -> str:
    """Return what a type hint asks for, as people say it."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin is None:
        return f"a {getattr(hint, '__name__', str(hint))}"
    if callable(origin) and "Callable" in str(origin):
        return "a function"
    if issubclass_of(origin, typing.Sequence):
        return f"a list of {in_words(inner[0])}"
    return " or ".join(dict.fromkeys(in_words(one) for one in inner))


def issubclass_of(origin: Any, kind: Any) -> bool:
    """Tell whether a hint's origin is a class of a kind."""
    return isinstance(origin, type) and issubclass(origin, typing.get_origin(kind) or kind)
