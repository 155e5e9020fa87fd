"""Parses JSON text into values with their positions.

Accepts JSON, and JSON with comments and trailing commas; reports an error with line and column. Takes linear
time and limits the nesting. An error message contains nothing of the text except, at most, the name of one
key. `jsonc` contains the fast parser and changes texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, cast

from msgspec import Struct

from dragoman.cleaning import one_line

DEPTH_LIMIT: Final = 100
"""The maximum nesting of values. Later readers are recursive, and must not exhaust the stack."""

_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_TRIVIA: Final = re.compile(r"(?:[ \t\n\r]++|//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_COMMENT: Final = re.compile(r"//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/")
_STRING_BODY: Final = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_A_NUMBER: Final = re.compile(r"-?(?:NaN|Infinity)")
_WORDS: Final = {"true": True, "false": False, "null": None}
_WORD: Final = re.compile("true|false|null")
_BYTE_ORDER_MARK: Final = "\ufeff"


class SyntaxProblem(ValueError):
    """The text is not JSON. Line and column count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column

    @classmethod
    def at(cls, text: str, offset: int, reason: str) -> SyntaxProblem:
        return cls(reason, *place(text, offset))


class Node(Struct, frozen=True):
    """A value and its span. Objects and lists have parts."""

    start: int
    end: int
    value: Any
    parts: tuple[Child, ...] = ()

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def part(self, key: str | int) -> Child | None:
        # An index is valid in lists only and a key in objects only: 0 is not a key, "0" is not an index.
        return next((part for part in self.parts if part.key == key), None)


class Child(Struct, frozen=True):
    """A member of an object or an item of a list."""

    key: str | int
    start: int
    """Where the member's key, or the item, begins."""
    node: Node
    comma: int | None
    """The position of the comma after it."""


class Tree(Struct, frozen=True):
    text: str
    root: Node
    comments: tuple[tuple[int, int], ...]
    """The span of each comment, in order."""

    def find(self, path: tuple[str | int, ...]) -> Node | None:
        node = self.root
        for key in path:
            part = node.part(key)
            if part is None:
                return None
            node = part.node
        return node

    def comments_in(self, start: int, end: int) -> list[str]:
        return [self.text[first:last] for first, last in self.comments if start <= first and last <= end]


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def is_blank(text: str) -> bool:
    """Whether the text has only white space and comments."""
    return _TRIVIA.fullmatch(text) is not None


def scan(text: str, *, comments: bool) -> Tree:
    """The text as a tree, or a `SyntaxProblem`."""
    return _Scanner(text, comments).scan()


def nodes_of(node: Node) -> Iterator[Node]:
    """The node and everything inside it, outermost first."""
    yield node
    for part in node.parts:
        yield from nodes_of(part.node)


class _Scanner:
    def __init__(self, text: str, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._position = 0
        self._spans: list[tuple[int, int]] = []
        self._opened: list[int] = []
        """The start of each list and object that is still open."""

    def scan(self) -> Tree:
        if self._text.startswith(_BYTE_ORDER_MARK):
            if not self._comments:
                raise self._problem("the text begins with a byte-order mark")
            self._position = 1
        self._pass_trivia()
        if self._position == len(self._text):
            raise self._problem("the text is empty")
        root = self._value()
        self._pass_trivia()
        if self._position < len(self._text):
            raise self._problem("there is more text after the end of the value")
        return Tree(self._text, root, tuple(self._spans))

    # --- values ---

    def _value(self) -> Node:
        start = self._position
        match self._text[start : start + 1]:
            case '"':
                value = self._string()
                return Node(start, self._position, value)
            case "{":
                return self._container("}", self._members)
            case "[":
                return self._container("]", self._items)
            case _:
                return self._scalar()

    def _scalar(self) -> Node:
        start = self._position
        if found := _NUMBER.match(self._text, start):
            self._position = found.end()
            return Node(start, found.end(), self._number(found))
        if found := _WORD.match(self._text, start):
            self._position = found.end()
            return Node(start, found.end(), _WORDS[found.group()])
        if _NOT_A_NUMBER.match(self._text, self._position):
            raise self._problem("NaN and Infinity are not allowed in JSON")
        if self._text.startswith("'", self._position):
            raise self._problem("strings are written in double quotes")
        self._refuse("a value was expected")

    def _number(self, found: re.Match[str]) -> int | float:
        is_whole = found.group(1) is None and found.group(2) is None
        try:
            value = int(found.group()) if is_whole else float(found.group())
        except ValueError:  # Python reads no whole number of more than 4300 digits
            value = math.inf
        if value in (math.inf, -math.inf):
            raise self._problem("the number is too large", found.start())
        return value

    def _string(self) -> str:
        start = self._position
        body = _STRING_BODY.match(self._text, start + 1)
        end = body.end() if body else start + 1
        if not self._text.startswith('"', end):
            self._refuse_string(start, end)
        self._position = end + 1
        written = self._text[start : end + 1]
        return cast("str", json.loads(written)) if "\\" in written else written[1:-1]

    # --- objects and lists ---

    def _container(self, closing: str, read_parts: Callable[[], tuple[Any, list[Child]]]) -> Node:
        start = self._position
        self._opened.append(start)
        if len(self._opened) > DEPTH_LIMIT:
            raise self._problem(f"values nest more than {DEPTH_LIMIT} levels deep")
        self._position += 1
        self._pass_trivia()
        value, parts = read_parts()
        self._opened.pop()
        self._position += len(closing)
        return Node(start, self._position, value, tuple(parts))

    def _members(self) -> tuple[dict[str, Any], list[Child]]:
        value: dict[str, Any] = {}
        parts: list[Child] = []
        while not self._text.startswith("}", self._position):
            start = self._position
            key = self._key(value)
            node = self._value()
            value[key] = node.value
            parts.append(Child(key, start, node, self._comma("}")))
        return value, parts

    def _items(self) -> tuple[list[Any], list[Child]]:
        value: list[Any] = []
        parts: list[Child] = []
        while not self._text.startswith("]", self._position):
            start = self._position
            node = self._value()
            value.append(node.value)
            parts.append(Child(len(parts), start, node, self._comma("]")))
        return value, parts

    def _key(self, taken: dict[str, Any]) -> str:
        start = self._position
        if not self._text.startswith('"', start):
            self._refuse("a key in double quotes was expected")
        key = self._string()
        if key in taken:
            raise self._problem(f'the key "{one_line(key, 100)}" is duplicated', start)
        self._pass_trivia()
        if not self._text.startswith(":", self._position):
            self._refuse("a colon was expected after the key")
        self._position += 1
        self._pass_trivia()
        return key

    def _comma(self, closing: str) -> int | None:
        """Moves on to the next part, or to the closing bracket; returns the position of the comma."""
        self._pass_trivia()
        comma = self._position
        if self._text.startswith(closing, comma):
            return None
        if not self._text.startswith(",", comma):
            self._refuse(f"a comma or {closing} was expected")
        self._position += 1
        self._pass_trivia()
        if not self._comments and self._text.startswith(closing, self._position):
            raise self._problem("a trailing comma is not allowed in JSON", comma)
        return comma

    # --- between values ---

    def _pass_trivia(self) -> None:
        pattern = _TRIVIA if self._comments else _SPACE
        found = pattern.match(self._text, self._position)
        end = found.end() if found else self._position
        if self._comments and "/" in self._text[self._position : end]:
            self._spans += (comment.span() for comment in _COMMENT.finditer(self._text, self._position, end))
        self._position = end
        if self._text.startswith(("//", "/*", "#"), end):
            if not self._comments:
                raise self._problem("comments are not allowed in JSON")
            if self._text.startswith("/*", self._position):
                raise self._problem("the comment is not closed")
            raise self._problem("comments begin with //")

    # --- what is wrong ---

    def _problem(self, reason: str, offset: int | None = None) -> SyntaxProblem:
        return SyntaxProblem.at(self._text, self._position if offset is None else offset, reason)

    def _refuse(self, reason: str) -> NoReturn:
        """Raises for an unexpected character; the end of the text has its own message."""
        if self._position < len(self._text):
            if self._text.startswith("\0", self._position):
                reason = "there is a NUL character"
            raise self._problem(reason)
        line, _ = place(self._text, self._opened[-1]) if self._opened else (1, 1)
        what = "object" if self._opened and self._text[self._opened[-1]] == "{" else "list"
        raise self._problem(f"the text ends before the {what} begun in line {line} is closed")

    def _refuse_string(self, start: int, end: int) -> NoReturn:
        match self._text[end : end + 1]:
            case "":
                raise self._problem("the text ends inside the string that begins here", start)
            case "\n" | "\r":
                raise self._problem("the string that begins here is not closed in its line", start)
            case "\\":
                raise self._problem("the escape sequence is not valid in JSON", end)
            case _:
                raise self._problem("there is a control character inside a string", end)
