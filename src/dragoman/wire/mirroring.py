"""Decides which parts of a request are repeated as HTTP headers, and encodes them.

Contains the rules for `x-mcp-header` in a tool's input schema, the headers for the arguments of a call, and
the base64 form for values that a header cannot contain. A schema that breaks the rules makes its tool
unusable over HTTP only.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.cleaning import cut
from dragoman.protocol import HTTP_TOKEN

KEYWORD: Final = "x-mcp-header"
LARGEST_INTEGER: Final = 2**53 - 1
DEPTH_LIMIT: Final = 64

Path = tuple[str, ...]

_TOKEN = re.compile(HTTP_TOKEN)
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_ESCAPED = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


class BadMirror(Exception):
    """The schema declares headers in a way that the rules do not allow."""


def mirrored(schema: Mapping[str, Any]) -> dict[Path, str]:
    """Where in the arguments a value is to be repeated → the header's own name. Raises `BadMirror`."""
    found: dict[Path, str] = {}
    names: set[str] = set()
    for path, name in _annotations(schema, (), 0):
        if name.lower() in names:
            raise BadMirror(f"two parts of its schema want the header {name}")
        names.add(name.lower())
        found[path] = name
    return found


def argument_headers(paths: Mapping[Path, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one call. An absent or null argument has no header."""
    headers: dict[str, str] = {}
    for path, name in paths.items():
        value = _at(arguments, path)
        if value is not None:
            headers[f"Mcp-Param-{name}"] = escape(_spelled(value))
    return headers


def request_headers(method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
    """The headers in which every request repeats its own parts."""
    headers = {"Mcp-Method": method}
    key = _NAMED_BY.get(method)
    if key is not None and params is not None and isinstance(params.get(key), str):
        headers["Mcp-Name"] = escape(params[key])
    return headers


def escape(value: str) -> str:
    """The value in a form that a header can carry; a value that looks escaped is escaped again."""
    if _PLAIN.fullmatch(value) and not _ESCAPED.fullmatch(value):
        return value
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    return f"=?base64?{encoded}?="


def _annotations(schema: Any, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Every `x-mcp-header` with the path of properties that leads to it; in any other place it is an
    error."""
    if depth > DEPTH_LIMIT:
        raise BadMirror("its schema is nested too deeply to look for headers")
    if not isinstance(schema, dict):
        return
    for key, part in cast("dict[str, Any]", schema).items():
        if key == KEYWORD:
            yield path, _checked(cast("dict[str, Any]", schema), path, part)
        elif key == "properties" and isinstance(part, dict):
            for name, inner in cast("dict[str, Any]", part).items():
                yield from _annotations(inner, (*path, name), depth + 1)
        elif _mentions(part, depth + 1):
            raise BadMirror(f"{KEYWORD} is under {key!r}, where only properties may lead to it")


def _checked(schema: Mapping[str, Any], path: Path, name: Any) -> str:
    if not path:
        raise BadMirror(f"{KEYWORD} is at the root of its schema")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise BadMirror(f"{KEYWORD} of {cut(path[-1], 80)!r} is no name for a header")
    if schema.get("type") not in ("string", "integer", "boolean"):
        raise BadMirror(f"{KEYWORD} is on {cut(path[-1], 80)!r}, which is no string, integer or boolean")
    return name


def _mentions(part: Any, depth: int) -> bool:
    """Whether a schema contains the annotation at any depth. Values such as defaults are not schemas, but a
    tool that has the word there need not be distinguished."""
    if depth > DEPTH_LIMIT:
        raise BadMirror("its schema is nested too deeply to look for headers")
    if isinstance(part, dict):
        members = cast("dict[str, Any]", part)
        return KEYWORD in members or any(_mentions(value, depth + 1) for value in members.values())
    if isinstance(part, list):
        return any(_mentions(value, depth + 1) for value in cast("list[Any]", part))
    return False


def _at(arguments: Mapping[str, Any], path: Path) -> Any:
    value: Any = arguments
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(name)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return None  # not a number that every server reads in the same way
    return value if isinstance(value, str | int) else None


def _spelled(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
