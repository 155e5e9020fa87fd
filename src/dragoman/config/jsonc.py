"""JSON text with positions, and edits that keep everything else unchanged.

Reads JSON fast and exactly, finds the position of a value, and changes one value inside a text that people
also edit: comments, order, indentation, line ends and the final newline stay as they are. A changed text
parses to exactly the changed value. `file_reading` and `writer` access the files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NoReturn, cast

from dragoman.cleaning import one_line
from dragoman.config.jsonlayout import indent_of_line, layout_of, splice
from dragoman.config.jsontree import DEPTH_LIMIT, Node, SyntaxProblem, Tree, is_blank, place, scan
from dragoman.json_values import nests_deeper

__all__ = ["SyntaxProblem", "add_members", "locate", "parse", "remove", "set_members", "set_value"]

EMPTY: Final = "{}\n"


def parse(text: str, *, comments: bool = False) -> Any:
    """The value of the text, or a `SyntaxProblem`."""
    if comments:
        return scan(text, comments=True).root.value
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _explain(text, error) from None
    if nests_deeper(value, DEPTH_LIMIT):
        raise _explain(text, None)
    return value


def locate(text: str, path: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column of a member's key or a list's item; None if it does not exist."""
    if path:
        return _places(text, tuple(path[:-1])).get(path[-1])
    try:
        return place(text, scan(text, comments=True).root.start)
    except SyntaxProblem:
        return None


@lru_cache(maxsize=8)
def _places(text: str, path: tuple[str | int, ...]) -> Mapping[str | int, tuple[int, int]]:
    """Line and column of every member of the object or list at the path; empty if there is none.

    Cached, because it is called for each fault of a file.
    """
    try:
        offsets = offsets_in(text, path)
    except ValueError:  # it has comments, or is no JSON
        offsets = _scanned_offsets(text, path)
    places: dict[str | int, tuple[int, int]] = {}
    line, seen, line_end = 1, 0, -1
    for key, offset in offsets:
        line += text.count("\n", seen, offset)
        # Searched only from the last offset: a file may be one line of megabytes.
        line_end = max(line_end, text.rfind("\n", seen, offset))
        seen = offset
        places[key] = line, offset - line_end
    return places


def _scanned_offsets(text: str, path: tuple[str | int, ...]) -> list[tuple[str | int, int]]:
    try:
        owner = scan(text, comments=True).find(path)
    except SyntaxProblem:
        return []
    return [(part.key, part.start) for part in owner.parts] if owner else []


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value at the path. Missing objects on the path are created.

    An object is changed member by member, so that unchanged members keep their form. Comments inside
    a value that is replaced are moved in front of the new one.
    """
    tree = _tree_of(text)
    node = tree.find(tuple(path))
    if node is None:
        return _add(tree, tuple(path[:-1]), {path[-1]: value})
    if isinstance(value, Mapping) and node.is_object and node.parts:
        return _merge(tree.text, tuple(path), node, cast("Mapping[str, Any]", value))
    if _is_same(node.value, value):
        return tree.text
    layout = layout_of(tree)
    return splice(tree.text, [layout.replacement(node, value)])


def set_members(text: str, path: Sequence[str], members: Mapping[str, Any]) -> str:
    """The text with other values of members that the object at the path has."""
    node = _tree_of(text).find(tuple(path)) if members else None
    parts = {part.key: part.node for part in node.parts} if node else {}
    on_one_line: list[str] = []
    for key in sorted(members, key=lambda key: parts[key].start, reverse=True):
        start, end = parts[key].start, parts[key].end
        if "\n" in text[start:end]:  # it shows the layout, so that the rest need not be parsed again
            indent = indent_of_line(text, start)
            changed = set_value(indent + text[start:end], (), members[key])
            text = text[:start] + changed.removeprefix(indent) + text[end:]
        else:
            on_one_line.append(key)
    for key in on_one_line:
        text = set_value(text, (*path, key), members[key])
    return text


def add_members(text: str, path: Sequence[str], members: Mapping[str, Any]) -> str:
    """The text with more members of the object at the path, none of which is there. The object is made where
    it is missing."""
    return _add(_tree_of(text), tuple(path), members)


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at the path; the same text if there is none."""
    return _remove(text, tuple(path), keep_comments=False)


# --- reading ---


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is duplicated")
    return value


def _number(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise ValueError("too large")
    return value


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("not a number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_refuse_constant
)


def _explain(text: str, error: Exception | None) -> SyntaxProblem:
    """The position and reason of a syntax error, found by the slow parser."""
    try:
        scan(text, comments=False)
    except SyntaxProblem as problem:
        return problem
    if isinstance(error, json.JSONDecodeError):
        return SyntaxProblem(error.msg, error.lineno, error.colno)
    return SyntaxProblem("it cannot be read as JSON", 1, 1)


# --- changing ---


def _tree_of(text: str) -> Tree:
    if not text.strip():
        text = EMPTY
    elif is_blank(text):
        text = text.rstrip() + "\n" + EMPTY
    return scan(text, comments=True)


def _is_same(old: Any, new: Any) -> bool:
    # By their JSON text, because 1 == True == 1.0 in Python.
    return json.dumps(old) == json.dumps(new)


def _merge(text: str, path: tuple[str, ...], node: Node, value: Mapping[str, Any]) -> str:
    for key, inner in value.items():
        text = set_value(text, (*path, key), inner)
    for key in [key for key in node.value if key not in value]:
        text = _remove(text, (*path, key), keep_comments=True)
    return text


def _add(tree: Tree, path: tuple[str, ...], members: Mapping[str, Any]) -> str:
    depth = next(count for count in range(len(path), -1, -1) if tree.find(path[:count]))
    node = tree.find(path[:depth])
    assert node is not None
    if not node.is_object:
        what = f'"{one_line(path[depth - 1], 100)}" is not an object' if depth else "it is not a JSON object"
        raise SyntaxProblem.at(tree.text, node.start, what)
    for key in reversed(path[depth:]):
        members = {key: members}
    return splice(tree.text, layout_of(tree).addition(node, members))


def _remove(text: str, path: tuple[str, ...], *, keep_comments: bool) -> str:
    if not path:
        raise ValueError("what is to be removed needs a path")
    if is_blank(text):
        return text
    tree = scan(text, comments=True)
    owner = tree.find(path[:-1])
    part = owner.part(path[-1]) if owner else None
    if owner is None or part is None:
        return text
    return splice(text, layout_of(tree).removal(owner, part, keep_comments=keep_comments))


_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_PLAIN_DECODER: Final = json.JSONDecoder()


def offsets_in(text: str, path: tuple[str | int, ...]) -> list[tuple[str | int, int]]:
    """The keys, or indices, of the value at the path, and where each begins, in order. Nothing if there is no
    such value; `ValueError` if the text is not strict JSON.

    Other values are skipped with the standard library's decoder, which is about a hundred times as fast as
    the scanner of `jsontree.py`.
    """
    at: int | None = _after_space(text, 0)
    for key in path:
        at = next((value for found, _, value in _items(text, at) if found == key), None)
        if at is None:
            return []
    return [(key, start) for key, start, _ in _items(text, at or 0)]


def _items(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Key or index, its start, and the start of its value."""
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return
    closing = "}" if opening == "{" else "]"
    at, number = _after_space(text, at + 1), 0
    while text[at : at + 1] != closing:
        start, key = at, number
        if opening == "{":
            key, at = _decoded(text, at)
            at = _after_space(text, _past(text, _after_space(text, at), ":"))
        yield key, start, at
        _, at = _decoded(text, at)
        at, number = _after_space(text, at), number + 1
        if text[at : at + 1] != closing:
            at = _after_space(text, _past(text, at, ","))


def _decoded(text: str, at: int) -> tuple[str | int, int]:
    try:
        return _PLAIN_DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _past(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise ValueError(f"{character} is missing")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
