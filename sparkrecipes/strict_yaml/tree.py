"""From parser events to a tree with marks, noting on the way what is not strict."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from sparkrecipes.schema.findings import Problem
from sparkrecipes.strict_yaml.document import Document, StrictYamlError, error_at, shown
from sparkrecipes.strict_yaml.fix import PathInTree
from sparkrecipes.strict_yaml.scalars import UNSEEN, Ambiguous, resolve

MAX_DEPTH = 32
"""Levels of a tree: a catalog file has fewer than ten."""
MAX_PROBLEMS = 50
"""After that many the reading stops: the file is something else than a catalog file."""

GLUED_COMMENT = re.compile(r"[|>][0-9+-]{0,2}#")
"""A comment without a space before it, behind the sign of a text: libyaml takes it, and YAML 1.2
(rule 79, ``s-b-comment``) and PyYAML's own parser do not."""


def build(text: str, name: str, loader: Any, *, foreign: bool = False) -> Document:
    """Build the document of a text with one of PyYAML's loaders.

    Args:
        text: What is read.
        name: What problems call it.
        loader: The parser.
        foreign: Whether a word that readers differ on is taken as the text it is, and a value
            that is missing as null.

    Raises:
        StrictYamlError: The text is YAML, but not strict.
        yaml.YAMLError: It is not YAML.
    """
    builder = _Builder(name, foreign, text.split("\n"))
    for event in yaml.parse(text, Loader=loader):
        builder.take(event)
    if builder.problems:
        raise StrictYamlError(tuple(builder.problems))
    return Document(name, builder.root, builder.marks, builder.written)


@dataclass
class _Frame:
    """A mapping or sequence that is being filled."""

    container: dict[str, Any] | list[Any]
    path: PathInTree
    key: str | None = None
    """The key whose value comes next."""
    repeated: bool = False
    """Whether that key stood before: then its value is dropped."""


@dataclass
class _Builder:
    """Builds the tree from parser events and notes what is wrong on the way."""

    name: str
    foreign: bool
    lines: list[str]
    root: Any = None
    marks: dict[PathInTree, tuple[int, int]] = field(default_factory=dict)
    written: dict[PathInTree, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    documents: int = 0
    stack: list[_Frame] = field(default_factory=list)

    def take(self, event: Any) -> None:
        """Take the next event of the parser."""
        if isinstance(event, NodeEvent):
            self._node(event)
        elif isinstance(event, CollectionEndEvent):
            self.stack.pop()
        elif isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                message = "a second document starts here; one file holds one"
                self._stop(event, "several_documents", message, "remove the '---', or split")

    def _node(self, event: Any) -> None:
        if isinstance(event, AliasEvent) or event.anchor is not None:
            message = "an anchor or alias (& or *); they are not read, whatever they stand for"
            self._stop(event, "alias", message, "write the values out, or quote the text")
        if event.tag is not None:
            message = f"a tag ({shown(event.tag)}); types follow from how a value is written"
            self._stop(event, "tag", message, "remove the tag; quote a text that starts with !")
        if getattr(event, "style", None) in ("|", ">"):
            self._block(event)
        frame = self.stack[-1] if self.stack else None
        if frame and isinstance(frame.container, dict) and frame.key is None:
            self._key(frame, event)
            return
        path = self._path(frame)
        if isinstance(event, ScalarEvent) and not event.style and not event.value:
            self._empty(frame, path)
            return
        self.marks.setdefault(path, _place(event))
        value = self._value(event, path)
        self._attach(frame, value)
        if isinstance(event, CollectionStartEvent):
            self.stack.append(_Frame(value, path))
            if len(self.stack) > MAX_DEPTH:
                message = f"more than {MAX_DEPTH} levels deep"
                self._stop(event, "too_deep", message, "a catalog file needs fewer than ten")

    def _block(self, event: Any) -> None:
        """Refuse a header of a text over several lines that parsers read differently."""
        row, column = _place(event)
        header = self.lines[row - 1] if row <= len(self.lines) else ""
        if GLUED_COMMENT.match(header, column - 1):
            message = f"a comment right behind the {event.style}; some parsers take it, some do not"
            self._add((row, column), "glued_comment", message, "put a space before the #")

    def _empty(self, frame: _Frame | None, path: PathInTree) -> None:
        """Refuse a missing value; an empty document is left to the reader's types.

        The two parsers place what is not there differently: the place is that of its key or list.
        """
        self._attach(frame, None)
        if frame is not None and not self.foreign:
            place = self.marks.get(path) or self.marks[frame.path]
            message = "nothing stands after the ':' or '-'"
            self._add(place, "empty_value", message, "write the value, or null")

    def _key(self, frame: _Frame, event: Any) -> None:
        if not isinstance(event, ScalarEvent):
            message = "a list or mapping as a key; keys are text"
            self._stop(event, "key_type", message, "quote the key")
            return
        key = self._checked(event)
        if not event.style:
            self._plain_key(event, key)
        path = (*frame.path, key)
        frame.key, frame.repeated = key, key in frame.container
        if frame.repeated:
            before = self.marks[path][0]
            message = (
                f"the key '{shown(key)}' is given twice: lines {before} and {_place(event)[0]}"
            )
            self._add(_place(event), "duplicate_key", message, "keep one of them")
        else:
            self.marks[path] = _place(event)
            if isinstance(frame.container, dict):
                frame.container[key] = None

    def _plain_key(self, event: Any, key: str) -> None:
        try:
            what = "" if isinstance(resolve(key), str) else "not text"
        except Ambiguous as ambiguous:
            what = ambiguous.what
        if what and not self.foreign:
            message, repair = f"the key {shown(key)} is {what}", f'quote it: "{shown(key)}"'
            self._add(_place(event), "key_type", message, repair)

    def _value(self, event: Any, path: PathInTree) -> Any:
        if isinstance(event, CollectionStartEvent):
            return {} if isinstance(event, MappingStartEvent) else []
        text = self._checked(event)
        if event.style:
            return text
        try:
            value = resolve(text)
        except Ambiguous as ambiguous:
            if self.foreign:
                self.written.setdefault(path, text)
                return text
            message = f"{shown(text)} is {ambiguous.what}"
            self._add(_place(event), "ambiguous", message, ambiguous.repair)
            return text
        if not isinstance(value, str):
            self.written.setdefault(path, text)
        return value

    def _checked(self, event: Any) -> str:
        text: str = event.value
        if found := UNSEEN.search(text):
            message = f"the text holds the unprintable character U+{ord(found.group()):04X}"
            self._add(_place(event), "unprintable", message, "remove the escape")
        return text

    def _path(self, frame: _Frame | None) -> PathInTree:
        if frame is None:
            return ()
        if isinstance(frame.container, dict):
            return (*frame.path, frame.key or "")
        return (*frame.path, len(frame.container))

    def _attach(self, frame: _Frame | None, value: Any) -> None:
        if frame is None:
            self.root = value
        elif isinstance(frame.container, list):
            frame.container.append(value)
        else:
            if frame.key is not None and not frame.repeated:
                frame.container[frame.key] = value
            frame.key = None

    def _add(self, place: tuple[int, int], code: str, message: str, repair: str) -> None:
        self.problems.append(error_at(self.name, place, code, message, repair))
        if len(self.problems) >= MAX_PROBLEMS:
            raise StrictYamlError(tuple(self.problems))

    def _stop(self, event: Any, code: str, message: str, repair: str) -> None:
        self._add(_place(event), code, message, repair)
        raise StrictYamlError(tuple(self.problems))


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1
