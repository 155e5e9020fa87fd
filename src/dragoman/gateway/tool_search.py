"""`tool_search` mode, for clients with small contexts: two tools in place of a long list.

`tool_search` finds tools and returns their names, descriptions and schemas; `call_tool` calls one of them. A
client can only call what it has listed, and many do not read a list again before their model's turn ends:
so a found tool is called by `call_tool`, which is answered like a direct call of that tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.catalog.overview import SCHEMA_CHARACTERS, enumerated, overview
from dragoman.catalog.search import Index, select
from dragoman.catalog.tools import ServerTool, Tool
from dragoman.gateway.results import listed_tool
from dragoman.gateway.settings import View
from dragoman.names import QualifiedName
from dragoman.servers.status import ServerStatus
from dragoman.toolbox import ADVICE, SEARCH, SEARCH_SCHEMA, SearchResult, is_connecting, remarks
from dragoman.wire.server.service import Json

CALL: Final = "call_tool"
Fixed = Callable[[ServerTool], Mapping[str, Any]]
OVERVIEW_TOKENS: Final = 400
"""The size limit of the overview of tools in the description of `tool_search`."""
_DESCRIPTION: Final = (
    "Find tools. Say what you want to do (open a pull request), or give exact names as select:name,name. "
    f"Returns the name, description and input schema of each; call them with {CALL}."
)
_CALL_DEFINITION: Final[Json] = {
    "name": CALL,
    "title": "Call a tool",
    "description": (
        f"Call a tool that {SEARCH} has found, by its exact name, with arguments that fit its input schema."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool"},
            "arguments": {"type": "object", "description": "Its arguments"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}


class SearchArguments(Struct):
    """The arguments of `tool_search`."""

    query: str
    max_results: float = 5
    server: str | None = None


class FoundTools:
    """The tools that callers with the same rights can find in one view."""

    def __init__(self, tools: Mapping[str, ServerTool], view: View, fixed: Fixed) -> None:
        """`tools`: by the names that clients use. `fixed`: the arguments that are fixed for a tool."""
        self._given = tools
        new = frozenset(view.rename.values())
        self._tools = [_as_known(name, tool, fixed(tool), name in new) for name, tool in tools.items()]
        self._servers = sorted({tool.server for tool in self._tools})
        self._index: Index | None = None

    def are_of(self, tools: Mapping[str, ServerTool]) -> bool:
        """Whether they were made of these tools: the host makes new objects, most definitions stay."""
        return len(tools) == len(self._given) and all(
            name == other and tool.definition is given.definition
            for (name, tool), (other, given) in zip(tools.items(), self._given.items())
        )

    def definitions(self) -> list[Json]:
        """What is listed in place of the tools: `tool_search` and `call_tool`."""
        contents = overview(self._tools, OVERVIEW_TOKENS)
        search = {
            "name": SEARCH,
            "title": "Search tools",
            "description": f"{_DESCRIPTION} What can be found:\n{contents}" if contents else _DESCRIPTION,
            "inputSchema": SEARCH_SCHEMA,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }
        return [search, _CALL_DEFINITION]

    async def search(self, question: SearchArguments, concerned: Iterable[ServerStatus]) -> str:
        """The answer to a search. `concerned`: the servers that the caller may know of."""
        chosen = select(question.query, self._tools)
        if chosen is None:
            # In a thread: reading ten thousand definitions would block the event loop.
            tools = await asyncio.to_thread(self._rank, question)
        else:
            tools = [tool for tool in chosen.tools if question.server in (None, tool.server)]
        lines = [_described(tool, is_only=len(tools) == 1) for tool in tools]
        if not tools:
            lines.append(f"No tool was found. {ADVICE} Servers: {enumerated(self._servers)}.")
        views = [view for view in concerned if question.server in (None, view.name)]
        failed = [view for view in views if view.status in ("failed", "needs-auth")]
        found = SearchResult(
            unknown=() if chosen is None else chosen.unknown,
            connecting=tuple(view.name for view in views if is_connecting(view)),
            failed={view.name: view.reason or "" for view in failed},
        )
        return "\n".join([*lines, *remarks(found)])

    def _rank(self, question: SearchArguments) -> list[Tool]:
        if self._index is None:
            self._index = Index(self._tools)
        limit = max(1, int(question.max_results))
        return self._index.search(question.query, server=question.server, limit=limit)


def _as_known(name: str, tool: ServerTool, fixed: Mapping[str, Any], is_renamed: bool) -> ServerTool:
    """A tool as clients know it: with the name that they use, and without arguments that are fixed. One that
    the view renames is not found by its own name."""
    schema = Raw(msgspec.json.encode(listed_tool(name, tool, fixed)["inputSchema"]))
    own = name if is_renamed else tool.definition.name
    definition = structs.replace(tool.definition, name=own, input_schema=schema)
    return ServerTool(tool.server, QualifiedName(name), definition)


def _described(tool: Tool, *, is_only: bool) -> str:
    """A found tool in one line of JSON, so that no description can pretend to be another tool's."""
    schema: Any = Raw(msgspec.json.encode(tool.model_schema))
    if len(bytes(schema)) > SCHEMA_CHARACTERS and not is_only:
        schema = f"too long to be shown beside others; search for select:{tool.name} alone"
    entry = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return msgspec.json.encode(entry).decode()
