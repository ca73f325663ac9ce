"""Taking a shell command apart without a shell: words with their lines, and nothing is run.

Source: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html (token
recognition and quoting). What a shell would expand is marked, never expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sparkrecipes.importing.found import Word

MAX_WORDS = 2000
"""A command has tens of words; a longer one is not read on."""

_OPERATORS = frozenset(";&|<>()")
_CONTINUED = re.compile(r"\\[ \t]*\n")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+")
_VARIABLE = re.compile(r"\$(?=[A-Za-z_{(0-9@*#?$!-])")
_TILDE = re.compile(r"~(/|$)")


class ShellError(ValueError):
    """A text that is no complete shell command.

    Attributes:
        line: Where, from the first line of the text, which is 0.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass
class Line:
    """One command of a shell text.

    Attributes:
        words: Its words.
        after: The operator or line end that it follows: empty, a newline, ``;``, ``|`` ...
    """

    words: list[Word] = field(default_factory=list)
    after: str = ""


def split(text: str, first_line: int = 1) -> list[Line]:
    """Take a text apart into commands and their words.

    Args:
        text: What a shell would be given.
        first_line: The line number of its beginning.

    Raises:
        ShellError: A quote is not closed, or it is far too long.
    """
    scanner = _Scanner(text, first_line)
    while scanner.step():
        if scanner.count > MAX_WORDS:
            raise ShellError("this is far too long for a command", scanner.line)
    scanner.end_command("")
    return [line for line in scanner.commands if line.words]


def _closing(text: str, at: int) -> int:
    """Return where the bracket at a place is closed; -1 where it is not."""
    opening, closing = text[at], ")" if text[at] == "(" else "}"
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == opening) - (text[index] == closing)
        if depth == 0:
            return index
    return -1


class _Scanner:
    """Walks through a text once; every step moves forward."""

    def __init__(self, text: str, first_line: int) -> None:
        self.text = text
        self.at = 0
        self.line = first_line
        self.commands: list[Line] = []
        self.current = Line()
        self.count = 0
        self.parts: list[str] | None = None
        self.word_line = first_line
        self.expands = False

    def step(self) -> bool:
        """Take the next piece; False at the end."""
        if self.at >= len(self.text):
            return False
        sign = self.text[self.at]
        if sign == "\\":
            self._backslash()
        elif sign in "'\"":
            self._quoted(sign)
        elif sign == "\n":
            self.end_command("\n")
            self._move(1)
        elif sign.isspace():
            self._end_word()
            self._move(1)
        elif sign in _OPERATORS:
            found = re.match(r"[;&|<>()]+", self.text[self.at : self.at + 8])
            operator = found.group() if found else sign
            self.end_command(operator)
            self._move(len(operator))
        elif sign == "#" and self.parts is None:
            end = self.text.find("\n", self.at)
            self._move((len(self.text) if end < 0 else end) - self.at)
        else:
            self._plain(sign)
        return True

    def _plain(self, sign: str) -> None:
        if sign in "$`":
            length = self._expansion(self.at)
            self._put(self.text[self.at : self.at + length])
            self._move(length)
            return
        found = _PLAIN.match(self.text, self.at)
        piece = found.group() if found else sign
        if self.parts is None and _TILDE.match(piece):
            self.expands = True
        self._put(piece)
        self._move(len(piece))

    def _expansion(self, at: int) -> int:
        """Return how long the expansion at ``$`` or a backquote is, and mark the word."""
        text = self.text
        if text[at] == "`":
            end = text.find("`", at + 1)
        elif text.startswith(("$(", "${"), at):
            end = _closing(text, at + 1)
        else:
            self.expands = self.expands or _VARIABLE.match(text, at) is not None
            return 1
        if end < 0:
            raise ShellError("an expansion ($(, ${ or a backquote) is not closed", self.line)
        self.expands = True
        return end + 1 - at

    def _backslash(self) -> None:
        if continued := _CONTINUED.match(self.text, self.at):
            if continued.group() != "\\\n":
                self._end_word()
            self._move(len(continued.group()))
            return
        self._put(self.text[self.at + 1 : self.at + 2])
        self._move(2)

    def _quoted(self, quote: str) -> None:
        started, at = self.line, self.at + 1
        pieces: list[str] = []
        while at < len(self.text) and self.text[at] != quote:
            if quote == '"' and self.text[at] == "\\" and self.text[at + 1 : at + 2] in '"\\$`\n':
                escaped = self.text[at + 1 : at + 2]
                pieces.append("" if escaped == "\n" else escaped)
                at += 2
                continue
            length = self._expansion(at) if quote == '"' and self.text[at] in "$`" else 1
            pieces.append(self.text[at : at + length])
            at += length
        if at >= len(self.text):
            raise ShellError(f"the quote {quote} is not closed", started)
        self._put("".join(pieces))
        self._move(at + 1 - self.at)

    def _put(self, piece: str) -> None:
        if self.parts is None:
            self.parts, self.word_line = [], self.line
        self.parts.append(piece)

    def _move(self, length: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + length)
        self.at += length

    def _end_word(self) -> None:
        if self.parts is not None:
            self.current.words.append(Word("".join(self.parts), self.word_line, self.expands))
            self.count += 1
        self.parts, self.expands = None, False

    def end_command(self, operator: str) -> None:
        """End the word and the command that it belongs to."""
        self._end_word()
        if self.current.words:
            self.commands.append(self.current)
            self.current = Line(after=operator)
        elif operator.strip():
            self.current.after = operator
