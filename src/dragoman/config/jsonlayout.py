"""The layout of a JSON text, and the smallest changes that keep its style.

Covers indentation, line ends, commas and white space around values that are added, replaced and removed. A
change affects only the text it must, and no comment outside a removed value is lost. `jsonc` decides which
value goes where; `jsontree` parses the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.config.jsontree import Child, Node, Tree, nodes_of

Splice = tuple[int, int, str]
"""A change: start, end, and the replacement."""

LINE_WIDTH: Final = 80
"""A list of plain values that fits is kept on one line."""

_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:/\*(?:(?!\*/)[^\n\r])*+\*/[ \t]*+)*+(?://[^\n\r]*+)?(?=[\n\r])")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def splice(text: str, splices: Iterable[Splice]) -> str:
    """The text with all splices applied. They do not overlap."""
    for start, end, instead in sorted(splices, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def layout_of(tree: Tree) -> Layout:
    newline = "\r\n" if "\r\n" in tree.text else "\n"
    return Layout(tree, newline, _indent_unit(tree))


def _indent_unit(tree: Tree) -> str:
    """The indentation of the first indented member."""
    for node in nodes_of(tree.root):
        outer = indent_of_line(tree.text, node.start)
        for part in node.parts[:1]:
            inner = indent_of_line(tree.text, part.start)
            if inner != outer and inner.startswith(outer):
                return inner.removeprefix(outer)
    return "  "


class Layout(Struct, frozen=True):
    tree: Tree
    newline: str
    indent_unit: str

    # --- the three changes ---

    def replacement(self, node: Node, value: Any) -> Splice:
        """The value in the place of the node, behind the comments that were inside the node."""
        indent = indent_of_line(self.tree.text, node.start)
        kept = self._kept_comments(node.start, node.end, indent)
        return node.start, node.end, kept + self._render(value, indent)

    def addition(self, node: Node, members: Mapping[str, Any]) -> list[Splice]:
        """New last members of the object."""
        if not node.parts:
            return [self._first_members(node, members)]
        last = node.parts[-1]
        comma = [] if last.comma is not None else [(last.node.end, last.node.end, ",")]
        end = last.node.end if last.comma is None else last.comma + 1
        closing = "," if last.comma is not None else ""
        if not self._is_spread(node):
            added = " " + ", ".join(self._members(members, None)) + closing
            return [(end, end, "," + added if comma else added)]
        indent = indent_of_line(self.tree.text, last.start)
        begin = self.newline + indent
        added = begin + f",{begin}".join(self._members(members, indent)) + closing
        rest = _REST_OF_LINE.match(self.tree.text, end)
        after = rest.end() if rest else end
        if after == end and comma:
            return [(end, end, "," + added)]
        return [*comma, (after, after, added)]

    def removal(self, node: Node, part: Child, *, keep_comments: bool) -> list[Splice]:
        """Removes the member with its comma and, if nothing else is on it, its line."""
        text, start, end = self.tree.text, part.start, part.node.end
        kept = self._kept_comments(start, end, indent_of_line(text, start)) if keep_comments else ""
        splices = self._comma_removal(node, part)
        if kept:
            return [*splices, (start, end, kept)]
        if len(node.parts) == 1 and not self._has_comments_around(node, part):
            return [(node.start + 1, node.end - 1, "")]
        if part.comma is not None and not text[end : part.comma].strip():
            splices, end = [], part.comma + 1
        return [*splices, (*self._with_white_space(start, end, part.comma is None), "")]

    # --- the parts of a change ---

    def _first_members(self, node: Node, members: Mapping[str, Any]) -> Splice:
        outer = indent_of_line(self.tree.text, node.start)
        indent = outer + self.indent_unit
        comments = self.tree.text[node.start + 1 : node.end - 1].rstrip()
        begin = self.newline + indent
        added = begin + f",{begin}".join(self._members(members, indent)) + self.newline + outer
        return node.start + 1, node.end - 1, comments + added

    def _is_spread(self, node: Node) -> bool:
        """Whether each member has a line of its own."""
        return "\n" in self.tree.text[node.start : node.parts[0].start]

    def _kept_comments(self, start: int, end: int, indent: str) -> str:
        comments = self.tree.comments_in(start, end)
        # What follows a line comment has to begin on a line of its own.
        return "".join(each + (self.newline + indent if each.startswith("//") else " ") for each in comments)

    def _comma_removal(self, node: Node, part: Child) -> list[Splice]:
        """Removes the member's comma; for the last member, which has none, the comma before it."""
        comma = part.comma
        if comma is None:
            position = node.parts.index(part)
            comma = node.parts[position - 1].comma if position else None
        return [] if comma is None else [(comma, comma + 1, "")]

    def _has_comments_around(self, node: Node, part: Child) -> bool:
        inside = self.tree.comments_in(node.start, node.end)
        return len(inside) > len(self.tree.comments_in(part.start, part.node.end))

    def _with_white_space(self, start: int, end: int, is_last: bool) -> tuple[int, int]:
        """The span extended to whole lines if nothing else is on them, or else by the blanks on one side."""
        text = self.tree.text
        line_start = _line_start(text, start)
        line_end = text.find("\n", end)
        if not text[line_start:start].strip() and line_end >= 0 and not text[end:line_end].strip():
            return line_start, line_end + 1
        if is_last:
            return start - _count_blanks(text[line_start:start][::-1]), end
        return start, end + _count_blanks(text[end:])

    # --- writing values ---

    def _render(self, value: Any, indent: str | None) -> str:
        """The value spread over lines that begin with the indent; on one line if there is none."""
        if isinstance(value, Mapping):
            inner = None if indent is None else indent + self.indent_unit
            return self._enclose("{", self._members(cast("Mapping[str, Any]", value), inner), "}", indent)
        if isinstance(value, list | tuple):
            return self._render_list(cast("list[Any]", value), indent)
        return _string(value) if isinstance(value, str) else json.dumps(value, allow_nan=False)

    def _members(self, members: Mapping[str, Any], indent: str | None) -> list[str]:
        return [f"{_string(key)}: {self._render(value, indent)}" for key, value in members.items()]

    def _render_list(self, items: list[Any] | tuple[Any, ...], indent: str | None) -> str:
        on_one_line = self._enclose("[", [self._render(item, None) for item in items], "]", None)
        is_plain = not any(isinstance(item, Mapping | list | tuple) for item in items)
        if indent is None or (is_plain and len(on_one_line) <= LINE_WIDTH):
            return on_one_line
        return self._enclose(
            "[", [self._render(item, indent + self.indent_unit) for item in items], "]", indent
        )

    def _enclose(self, opening: str, parts: list[str], closing: str, indent: str | None) -> str:
        if indent is None or not parts:
            return opening + ", ".join(parts) + closing
        between = self.newline + indent + self.indent_unit
        return opening + between + f",{between}".join(parts) + self.newline + indent + closing


def _string(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError("the keys of an object are strings")
    # A lone surrogate cannot be written as UTF-8; its escape can.
    written = json.dumps(text, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", written)


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def indent_of_line(text: str, offset: int) -> str:
    start = _line_start(text, offset)
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _count_blanks(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))
