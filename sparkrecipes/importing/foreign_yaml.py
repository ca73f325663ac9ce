"""A parsed foreign file, read key by key: each value as it was written, with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkrecipes.importing.found import Found, Word
from sparkrecipes.strict_yaml import Document, PathInTree

_BLOCK = re.compile(r":\s*(&\S+\s+)?[|>][-+0-9]*\s*(#.*)?$")


@dataclass(frozen=True)
class ForeignYaml:
    """A document and the lines it was parsed from.

    Attributes:
        document: The tree with its places.
        lines: The file's lines.
    """

    document: Document
    lines: tuple[str, ...]

    @property
    def tree(self) -> Mapping[str, Any]:
        """The keys at the top."""
        return self.document.tree if isinstance(self.document.tree, dict) else {}

    def line(self, path: PathInTree) -> int:
        """Return the line of a key or item."""
        return self.document.mark(path)[0]

    def at(self, path: PathInTree) -> Any:
        """Return what stands at a path; None where nothing does."""
        value: Any = self.document.tree
        for part in path:
            if isinstance(value, list) and isinstance(part, int):
                value = value[part] if part < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value

    def word(self, path: PathInTree) -> Word | None:
        """Return a scalar as it was written; None where it is none, or null."""
        value = self.at(path)
        if value is None or isinstance(value, dict | list):
            return None
        written = self.document.written.get(path)
        return Word(written if written is not None else str(value), self.line(path))

    def text_line(self, path: PathInTree) -> int:
        """Return the line that a text begins in: the next one for a block (``|``, ``>``)."""
        line = self.line(path)
        here = self.lines[line - 1] if line <= len(self.lines) else ""
        return line + 1 if _BLOCK.search(here) else line

    def words(self, path: PathInTree) -> list[Word]:
        """Return a list of scalars; what is no scalar is left out."""
        value = self.at(path)
        items = range(len(value)) if isinstance(value, list) else ()
        found = (self.word((*path, index)) for index in items)
        return [word for word in found if word is not None]

    def mapping(self, path: PathInTree) -> dict[str, Word]:
        """Return a mapping's scalars by key, each as it was written."""
        value = self.at(path)
        keys = value if isinstance(value, dict) else {}
        found = {key: self.word((*path, key)) for key in keys}
        return {key: word for key, word in found.items() if word is not None}

    def variables(self, found: Found, path: PathInTree) -> dict[str, Word]:
        """Return environment variables; note each whose value readers differ on."""
        words = self.mapping(path)
        for name, word in words.items():
            here = (*path, name)
            value = self.at(here)
            if here in self.document.written and isinstance(value, str | bool):
                why = "without quotes: a boolean or number for some readers; taken as the text"
                found.drop(word.line, f"{name}: {word.text}", why)
        return words

    def shown(self, path: PathInTree) -> str:
        """Return a value in a few words, for the list of what was not carried."""
        value, name = self.at(path), str(path[-1])
        if isinstance(value, dict):
            return f"{name}: {', '.join(map(str, value))}" if value else name
        if isinstance(value, list):
            parts = [str(item) for item in value if not isinstance(item, dict | list)]
            return f"{name}: {', '.join(parts)}" if parts else name
        word = self.word(path)
        return f"{name}: {word.text}" if word else name

    def drop_rest(
        self,
        found: Found,
        path: PathInTree,
        known: Iterable[str],
        why: Mapping[str, str],
        otherwise: str,
    ) -> None:
        """Note every key of a mapping that is not known, with the reason for it."""
        value = self.at(path)
        for key in value if isinstance(value, dict) else ():
            here = (*path, key)
            if key not in known and self.at(here) not in (None, [], {}):
                found.drop(self.line(here), self.shown(here), why.get(key, otherwise))
