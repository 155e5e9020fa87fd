"""Tools: one server's list read page by page, and all servers' lists as one pool.

I own: which definitions are usable (a bad one is dropped alone, with its reason), the bounds on
paging, and finding a tool by its name. Names are given in `naming.py`; when to read is `refresh.py`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw

from dragoman.catalog.naming import assign
from dragoman.cleaning import one_line
from dragoman.errors import DragomanError, UnknownTool
from dragoman.names import QualifiedName, ServerName, WireToolName
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT, ToolDefinition, ToolsPage
from dragoman.wire.mirroring import KEYWORD, BadMirror, Path, mirrored

KEYWORD_BYTES: Final = KEYWORD.encode()
PAGE_LIMIT: Final = 1000
TOOL_LIMIT: Final = 10_000
CHUNK: Final = 2000
PROBLEM_LIMIT: Final = 100
LIST_LIMIT_BYTES: Final = 64 * 1024 * 1024
LIST_LIMIT_COMMAS: Final = 1_000_000
NEAR_LIMIT: Final = 500
NAME_LIMIT: Final = 1024
DESCRIPTION_LIMIT: Final = 2048


class Tool:
    """A tool as models and programs see it."""

    def __init__(self, server: ServerName, name: QualifiedName, definition: ToolDefinition) -> None:
        self.server = server
        self.name = name
        self.wire_name = WireToolName(definition.name)
        self._definition = definition

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def title(self) -> str:
        annotated = (self._definition.annotations or {}).get("title")
        return self._definition.title or (annotated if isinstance(annotated, str) else None) or self.wire_name

    @cached_property
    def description(self) -> str:
        text = self._definition.description or ""
        return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 1] + "…"

    @property
    def input_schema_bytes(self) -> int:
        return memoryview(self._definition.input_schema).nbytes

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = msgspec.json.decode(self._definition.input_schema)
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """None also if it is there but is no schema: a tool can be called all the same."""
        if self._definition.output_schema is ABSENT:
            return None
        try:
            return decode_as(dict[str, Any], self._definition.output_schema)
        except Unreadable:
            return None

    @cached_property
    def mirrored(self) -> Mapping[Path, str]:
        """Which arguments are repeated as headers where the protocol wants it."""
        try:
            return mirrored(self.input_schema)
        except BadMirror:
            return {}

    @property
    def annotations(self) -> Mapping[str, Any]:
        return self._definition.annotations or {}

    @property
    def meta(self) -> Mapping[str, Any]:
        return self._definition.meta or {}


class ToolList(msgspec.Struct, frozen=True):
    """What one server offers, and what of it had to be left out."""

    definitions: tuple[ToolDefinition, ...] = ()
    problems: tuple[str, ...] = ()
    is_whole: bool = True
    """Whether reading came to the list's end, or to a limit of ours."""


FetchPage = Callable[[Mapping[str, Any]], Awaitable[Raw]]


async def read_list(fetch_page: FetchPage, *, mirrors: bool = False) -> ToolList:
    """All pages of a server's `tools/list`, bounded. What was read before an error is kept.

    `mirrors`: headers repeat arguments, so a tool that asks for that in a wrong way is left out.
    """
    reading = _Reading()
    params: Mapping[str, Any] = {}
    seen_cursors: set[str] = set()
    for _ in range(PAGE_LIMIT):
        try:
            page = reading.decode(await fetch_page(params))
        except (DragomanError, Unreadable) as error:
            reading.problems.append(f"the list of tools is incomplete: {error}")
            reading.is_whole = False
            break
        for start in range(0, len(page.tools), CHUNK):
            if not reading.is_full:
                read_definitions(
                    page.tools[start : start + CHUNK], reading.definitions, reading.problems, mirrors=mirrors
                )
                await asyncio.sleep(0)  # a hundred thousand at once would keep everybody else waiting
        if reading.is_full:
            reading.problems.append(f"more than {TOOL_LIMIT} tools: the rest is left out")
            break
        cursor = page.next_cursor
        if cursor is None:  # an empty string is a cursor like any other
            break
        if cursor in seen_cursors:
            reading.problems.append("the list of tools repeats itself (same cursor twice): reading stopped")
            break
        seen_cursors.add(cursor)
        params = {"cursor": cursor}
    else:
        reading.problems.append(f"more than {PAGE_LIMIT} pages of tools: the rest is left out")
    return reading.result()


class _Reading:
    """A list while it is being read, with its bounds."""

    def __init__(self) -> None:
        self.definitions: dict[str, ToolDefinition] = {}
        self.problems: list[str] = []
        self.is_whole = True
        self._size = 0

    @property
    def is_full(self) -> bool:
        return len(self.definitions) > TOOL_LIMIT or len(self.problems) > TOOL_LIMIT

    def decode(self, raw: Raw) -> ToolsPage:
        data = bytes(raw)
        self._size += len(data)
        # Counted first: a few megabytes of `0,0,0` would take longer to decode than a list may.
        if self._size > LIST_LIMIT_BYTES or data.count(b",") > LIST_LIMIT_COMMAS:
            raise Unreadable("it is too large")
        page = decode_as(ToolsPage, data)
        if page.result_type != "complete":
            raise Unreadable(f"it came as {one_line(page.result_type, 50)!r} instead of a list")
        return page

    def result(self) -> ToolList:
        told = self.problems[:PROBLEM_LIMIT]
        if len(self.problems) > PROBLEM_LIMIT:
            told = [*told[:-1], self.problems[-1], f"and {len(self.problems) - PROBLEM_LIMIT} problems more"]
        return ToolList(tuple(self.definitions.values())[:TOOL_LIMIT], tuple(told), self.is_whole)


def read_definitions(
    raws: Iterable[Raw],
    definitions: dict[str, ToolDefinition],
    problems: list[str],
    *,
    mirrors: bool = False,
) -> None:
    """Adds the usable definitions; says of each other one why it is not."""
    for raw in raws:
        try:
            definition = decode_as(ToolDefinition, raw)
            problem = _why_unusable(definition, mirrors)
        except Unreadable as error:
            problems.append(f"tool {_name_in(raw)} is left out: {error.detail}")
            continue
        if problem is None and definition.name in definitions:
            problem = "its name is used twice"
        if problem is None:
            definitions[definition.name] = definition
        else:
            problems.append(f"tool {one_line(definition.name, 80)!r} is left out: {problem}")


def _why_unusable(definition: ToolDefinition, mirrors: bool) -> str | None:
    if not definition.name.strip():
        return "it has no name"
    if len(definition.name) > NAME_LIMIT:
        return f"its name is longer than {NAME_LIMIT} characters"
    try:
        schema = decode_as(dict[str, Any], definition.input_schema)
        problem = _why_unusable_schema(schema)
        # The word is looked for first: few schemas have it, and there may be ten thousand of them.
        if problem is None and mirrors and KEYWORD_BYTES in bytes(definition.input_schema):
            mirrored(schema)
        return problem
    except Unreadable as error:
        return f"its input schema is not a JSON object ({error.detail})"
    except BadMirror as error:
        return str(error)


def _why_unusable_schema(schema: dict[str, Any]) -> str | None:
    """Whether arguments could ever be described by it. Finer points are left to the validator."""
    if schema.get("type", "object") != "object":
        return "its input schema does not describe an object"
    properties: Any = schema.get("properties", {})
    if not isinstance(properties, dict):
        return "the properties of its input schema are not an object"
    for name, part in properties.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(part, dict | bool):
            return f"its input schema has no usable schema for {one_line(str(name), 80)!r}"  # pyright: ignore[reportUnknownArgumentType]
    required: Any = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):  # pyright: ignore[reportUnknownVariableType]
        return "what its input schema requires is not a list of names"
    return None


def _name_in(raw: Raw) -> str:
    try:
        value: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "(unreadable)"
    name: Any = value.get("name") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return repr(one_line(name, 80)) if isinstance(name, str) else "(without a name)"


class Catalog:
    """The pool of all servers' tools. Order is by name, so it is the same every time."""

    def __init__(self) -> None:
        self._lists: dict[ServerName, ToolList] = {}
        self._wanted: dict[ServerName, Callable[[str], bool]] = {}
        self._tools: dict[str, Tool] | None = None

    def limit(self, server: ServerName, wanted: Callable[[str], bool]) -> None:
        """Of this server only the wanted tools, by wire name, are listed and can be called."""
        self._wanted[server] = wanted

    def set_list(self, server: ServerName, tools: ToolList) -> None:
        wanted = self._wanted.get(server)
        if wanted is not None:
            kept = tuple(definition for definition in tools.definitions if wanted(definition.name))
            tools = ToolList(kept, tools.problems)
        self._lists[server] = tools
        self._tools = None

    def forget(self, server: ServerName) -> None:
        self._lists.pop(server, None)
        self._wanted.pop(server, None)
        self._tools = None

    def clear(self, server: ServerName) -> None:
        """Drops what a server offered; what is wanted of it stays."""
        self._lists.pop(server, None)
        self._tools = None

    def listed(self, server: ServerName) -> ToolList:
        return self._lists.get(server, ToolList())

    def problems(self, server: ServerName) -> tuple[str, ...]:
        return self.listed(server).problems

    def definitions(self, server: ServerName) -> tuple[ToolDefinition, ...]:
        return self.listed(server).definitions

    def count(self, server: ServerName) -> int:
        return len(self.definitions(server))

    def tools(self) -> Iterable[Tool]:
        return self._pool().values()

    def resolve(self, name: str) -> Tool:
        pool = self._pool()
        tool = pool.get(name)
        if tool is None:
            raise UnknownTool(name, near=_near(name, pool))
        return tool

    def _pool(self) -> dict[str, Tool]:
        if self._tools is None:
            definitions = {
                (server, WireToolName(definition.name)): definition
                for server, listed in self._lists.items()
                for definition in listed.definitions
            }
            named = sorted((name, key) for key, name in assign(definitions).items())
            self._tools = {name: Tool(key[0], name, definitions[key]) for name, key in named}
        return self._tools


def _near(name: str, pool: Iterable[str]) -> tuple[str, ...]:
    """Names that may have been meant; among very many nobody looks, for it would take too long."""
    import difflib  # wanted only for this sentence

    server = name.rpartition("__")[0]
    candidates = [known for known in pool if known.startswith(server)]
    return tuple(difflib.get_close_matches(name, candidates[:NEAR_LIMIT], n=3))
