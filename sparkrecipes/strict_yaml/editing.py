"""One change in the text of a YAML file; everything else stays as it was written.

Comments, quotes, indentation and blank lines of what is not changed are kept, since the text is
cut and joined at the places that the parser names, and never written anew from the tree.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from sparkrecipes.strict_yaml.document import StrictYamlError
from sparkrecipes.strict_yaml.fix import Fix, PathInTree
from sparkrecipes.strict_yaml.reading import PURE_LOADER, parse

Span = tuple[int, int]
"""Where a part begins and ends in the text, in characters."""


class CannotEdit(Exception):
    """The text is not laid out so that the change can be made without touching more."""


@dataclass
class Spans:
    """Where the parts of a text stand.

    Attributes:
        keys: The keys of mappings.
        scalars: Values that are a single word or text.
        block: Paths of the collections that have one line or more for each part.
    """

    keys: dict[PathInTree, Span] = field(default_factory=dict)
    scalars: dict[PathInTree, Span] = field(default_factory=dict)
    block: set[PathInTree] = field(default_factory=set)


def spans_of(text: str) -> Spans:
    """Return where the parts of a text stand; of keys that are given twice, the first."""
    found, stack = Spans(), list[_Open]()
    for event in yaml.parse(text, Loader=PURE_LOADER):
        span = _span(event)
        if isinstance(event, CollectionEndEvent):
            stack.pop()
        elif not isinstance(event, ScalarEvent | CollectionStartEvent):
            continue
        elif stack and stack[-1].wants_key:
            stack[-1].take_key(getattr(event, "value", ""))
            found.keys.setdefault(stack[-1].inner, span)
        else:
            path = stack[-1].next() if stack else ()
            if isinstance(event, ScalarEvent):
                found.scalars.setdefault(path, span)
            else:
                if not event.flow_style:
                    found.block.add(path)
                stack.append(_Open(path, isinstance(event, SequenceStartEvent)))
        if stack and isinstance(event, MappingStartEvent):
            stack[-1].wants_key = True
    return found


def _span(event: Any) -> Span:
    return event.start_mark.index, event.end_mark.index


@dataclass
class _Open:
    """A collection that is being read."""

    path: PathInTree
    is_list: bool
    at: int = -1
    inner: PathInTree = ()
    wants_key: bool = False

    def take_key(self, key: str) -> None:
        """Go on to the value of a key."""
        self.inner = (*self.path, key)
        self.wants_key = False

    def next(self) -> PathInTree:
        """Return the path of the value that comes now."""
        if self.is_list:
            self.at += 1
            return (*self.path, self.at)
        self.wants_key = True
        return self.inner


def edited(text: str, fix: Fix) -> str:
    """Return a text with one change made.

    Args:
        text: YAML with line feeds alone at the ends of lines.
        fix: What to change.

    Raises:
        CannotEdit: The part is not there, or shares its lines with others.
    """
    if fix.kind == "trim":
        return trimmed(text)
    spans = spans_of(text)
    if fix.kind == "order":
        return _ordered(text, spans, fix.items)
    if fix.kind == "items":
        return _with_items(text, spans, fix)
    if fix.kind == "remove":
        return _without_lines(text, spans, [fix.path])
    place = spans.keys.get(fix.path) if fix.kind == "key" else spans.scalars.get(fix.path)
    if place is None:
        raise CannotEdit(f"{fix.path} is not a single word")
    written = json.dumps(fix.text, ensure_ascii=False) if fix.kind == "text" else fix.text
    return text[: place[0]] + written + text[place[1] :]


def trimmed(text: str) -> str:
    """Return a text whose lines do not end in spaces or tabs, and whose last line ends."""
    return "\n".join(line.rstrip(" \t") for line in text.split("\n")).rstrip("\n") + "\n"


def written_item(item: str) -> str:
    """Return an item of a list as it is written: plain where that means the same, else quoted."""
    try:
        if parse(f"- {item}\n").tree == [item]:
            return item
    except StrictYamlError:
        pass
    return "'" + item.replace("'", "''") + "'"


def _with_items(text: str, spans: Spans, fix: Fix) -> str:
    parent, first = fix.path[:-1], int(fix.path[-1])
    old = [(*parent, first + at) for at in range(fix.count)]
    if not fix.items:
        return _without_lines(text, spans, old)
    place = spans.scalars.get(old[0])
    if place is None or (parent not in spans.block and (len(old), len(fix.items)) != (1, 1)):
        raise CannotEdit("the items do not have lines of their own")
    begin = text.rfind("\n", 0, place[0]) + 1
    lead = text[begin : place[0]]
    more = "".join(f"\n{lead}{written_item(item)}" for item in fix.items[1:])
    rest = _without_lines(text, spans, old[1:]) if old[1:] else text
    return rest[: place[0]] + written_item(fix.items[0]) + more + rest[place[1] :]


def _without_lines(text: str, spans: Spans, paths: list[PathInTree]) -> str:
    """Return a text without parts that have one line each, with nothing else on it."""
    parent = paths[0][:-1]
    if not any(path[:-1] == parent and path not in paths for path in (spans.scalars | spans.keys)):
        raise CannotEdit("nothing would be left of what holds it")
    for path in sorted(paths, key=lambda path: spans.scalars.get(path, (0, 0)), reverse=True):
        if path not in spans.scalars or parent not in spans.block:
            raise CannotEdit(f"{path} has no line of its own")
        begin, end = _line_of(text, spans.keys.get(path, spans.scalars[path]), spans.scalars[path])
        text = text[:begin] + text[end:]
    return text


def _line_of(text: str, first: Span, last: Span) -> Span:
    """Return the line that holds a part and nothing else, from its start to the next one's."""
    begin = text.rfind("\n", 0, first[0]) + 1
    end = text.find("\n", last[1])
    end = len(text) if end < 0 else end + 1
    alone = re.fullmatch(r"[ ]*(- +)?", text[begin : first[0]])
    if not alone or text[last[1] : end].strip() or "\n" in text[first[0] : last[1]]:
        raise CannotEdit("the line holds something else too")
    return begin, end


def _ordered(text: str, spans: Spans, order: tuple[str, ...]) -> str:
    """Return a text with its root keys in an order; comments above a key go with it."""
    lines = text.split("\n")
    starts: list[tuple[int, str]] = []
    for path, (begin, _) in spans.keys.items():
        if len(path) == 1:
            number = text.count("\n", 0, begin)
            starts.append((_with_comments(lines, number, starts), str(path[0])))
    head = lines[: starts[0][0]]
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    parts: dict[str, list[str]] = {}
    for (start, key), end in zip(starts, ends, strict=True):
        parts[key] = lines[start:end]
    tail = parts[starts[-1][1]]
    while tail and not tail[-1]:
        tail.pop()
    ranks: dict[str, Any] = {key: at for at, key in enumerate(order)}
    keys = sorted(parts, key=lambda key: ranks.get(key, len(ranks)))
    return "\n".join([*head, *(line for key in keys for line in parts[key])]).rstrip("\n") + "\n"


def _with_comments(lines: list[str], number: int, before: list[tuple[int, str]]) -> int:
    """Return where a key begins, the comment lines right above it included.

    The first key's are left where they are: they are about the file.
    """
    while before and number > 0 and lines[number - 1].startswith("#"):
        number -= 1
    return number
