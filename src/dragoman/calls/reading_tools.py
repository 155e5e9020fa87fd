"""The built-in tools by which a model reads: large results that were saved, and resources of servers.

`read_result` needs no permission, because reading a result that this host saved changes nothing and sends
nothing; `content/store.py` finds the answer. The tools for resources are deferred: a model finds them by
searching. The pipeline has judged their calls, so what they read is not judged again; only a list of all
servers is, server by server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from dragoman.calls.requests import LIST_RESOURCES, READ_RESOURCE, object_schema
from dragoman.calls.resources import ResourceReader, Resources
from dragoman.calls.sending import Listed
from dragoman.catalog.resources import Resource, ResourceTemplate, as_listed
from dragoman.catalog.tools import BuiltinResult, BuiltinTool
from dragoman.content.blocks import TextBlock
from dragoman.content.budget import ResultLimits
from dragoman.content.media import TEXT_LIMIT, Media
from dragoman.content.store import ANSWER_LIMIT, BadQuestion, NotSaved, ResultStore
from dragoman.content.tokens import MOST_PER_CHARACTER
from dragoman.errors import InvalidArguments

NAME: Final = "read_result"
NOTE_CHARACTERS: Final = 200
"""Characters that are reserved for the sentence about how to read on."""

_WAYS: Final[dict[str, Any]] = {
    "lines": {
        "type": "string",
        "maxLength": 40,
        "description": 'Lines by number, from 1: "100-200", "100-" or "7".',
    },
    "grep": {
        "type": "string",
        "maxLength": 1000,
        "description": "Lines that contain these words, with their numbers. "
        'Between slashes it is a regular expression: "/err(or)?/".',
    },
    "offset": {"type": "integer", "minimum": 0, "description": "Text from this byte on."},
}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "handle": {
            "type": "string",
            "maxLength": 100,
            "description": "The result's handle, as it was given.",
        },
        **_WAYS,
    },
    "required": ["handle"],
    "additionalProperties": False,
}


def result_tool(store: ResultStore, limits: Callable[[], ResultLimits] = ResultLimits) -> BuiltinTool:
    """`read_result`. Its answers fit the limits, so that they are never saved in turn."""

    async def read(arguments: Mapping[str, Any]) -> BuiltinResult:
        question = {way: arguments[way] for way in _WAYS if arguments.get(way) is not None}
        if len(question) > 1:
            raise _wrong(f"give one of {', '.join(_WAYS)}, not several")
        try:
            return await store.ask(arguments["handle"], question, _answer_limit(limits()))
        except (BadQuestion, NotSaved) as error:
            raise _wrong(str(error)) from None

    return BuiltinTool(
        NAME,
        read,
        title="Read a large result",
        description="Reads on in a tool's result that was too large to be shown whole. Give the handle that "
        "was given with it, and one of lines, grep or offset; the handle alone reads the beginning.",
        input_schema=_SCHEMA,
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        needs_permission=False,
    )


def _answer_limit(limits: ResultLimits) -> int:
    room = min(limits.characters, limits.tokens // MOST_PER_CHARACTER) - NOTE_CHARACTERS
    return max(NOTE_CHARACTERS, min(ANSWER_LIMIT, room))


def _wrong(why: str) -> InvalidArguments:
    return InvalidArguments("", NAME, (why,))


T = TypeVar("T", Resource, ResourceTemplate)
LISTED_LIMIT: Final = 500
"""The most resources, and the most templates, that a model is shown at once."""
PROBLEM_LIMIT: Final = 20

_DEFERRED: Final = {"anthropic/deferLoading": True, "anthropic/searchHint": "MCP resources files data"}
_READS: Final = {"readOnlyHint": True, "idempotentHint": True}
_SERVER: Final = {"type": "string", "description": "The server's name."}
_OWNER: Final = {
    "type": "string",
    "description": "The server's name. Can be omitted if only one server has the resource.",
}
_URI: Final = {"type": "string", "description": "The resource's URI, exactly as it is listed."}


def resource_tools(resources: Resources, reader: ResourceReader) -> tuple[BuiltinTool, BuiltinTool]:
    """`list_mcp_resources` and `read_mcp_resource`. `reader` judges nothing, `resources` does."""
    media = Media()

    async def list_them(arguments: Mapping[str, Any]) -> BuiltinResult:
        server = arguments.get("server")
        if not server:
            return describe(await resources.list(), await resources.templates())
        return describe(await reader.list(server), await reader.templates(server))

    async def read_one(arguments: Mapping[str, Any]) -> BuiltinResult:
        found = await reader.read(arguments["server"], arguments["uri"])
        notes = tuple(TextBlock(f"[{problem}]") for problem in found.problems[:PROBLEM_LIMIT])
        return (*await media.shown(found.contents, owner=found.server), *notes)

    async def with_server(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if arguments.get("server"):
            return arguments
        return {**arguments, "server": await resources.server_of(arguments["uri"])}

    return (
        BuiltinTool(
            LIST_RESOURCES.name,
            list_them,
            title="List resources",
            description="Lists the resources and resource templates of MCP servers. "
            "Give `server` to see one server's only.",
            input_schema=object_schema({"server": _SERVER}),
            annotations={**_READS, "openWorldHint": False},
            meta=_DEFERRED,
            needs_permission=False,
            server_argument="server",
        ),
        BuiltinTool(
            READ_RESOURCE.name,
            read_one,
            title="Read a resource",
            description="Reads one resource of an MCP server. Text and images are shown; "
            "other data is saved to a file whose name is given.",
            input_schema=object_schema({"server": _OWNER, "uri": _URI}, "uri"),
            annotations=_READS,
            meta=_DEFERRED,
            server_argument="server",
            complete=with_server,
        ),
    )


def describe(resources: Listed[Resource], templates: Listed[ResourceTemplate]) -> str:
    """Both lists for a model, as JSON that stays whole however long they are."""
    problems = list(dict.fromkeys((*resources.problems, *templates.problems)))
    kept = _of_each_server(resources.items, LISTED_LIMIT)
    shown: dict[str, Any] = {}
    if templates.items:
        some = _of_each_server(templates.items, LISTED_LIMIT)
        shown["resourceTemplates"] = [as_listed(each) for each in some]
    if problems:
        shown["problems"] = problems[:PROBLEM_LIMIT]
    while len(text := _written(kept, shown, len(resources) - len(kept))) > TEXT_LIMIT:
        if kept:
            kept = _of_each_server(kept, len(kept) // 2)
        elif shown.pop("resourceTemplates", None) is None:
            break
    return text


def _of_each_server(items: Sequence[T], limit: int) -> list[T]:
    """As many as are allowed, in their order: of each server the first, then of each the second, and so on. A
    server with very many hides none of another's."""
    if len(items) <= limit:
        return list(items)
    ranks, seen = list[int](), Counter[str]()
    for each in items:
        ranks.append(seen[each.server])
        seen[each.server] += 1
    chosen = sorted(range(len(items)), key=ranks.__getitem__)[:limit]
    return [items[place] for place in sorted(chosen)]


def _written(kept: Sequence[Resource], shown: Mapping[str, Any], left_out: int) -> str:
    more = {"notShown": f"{left_out} more resources; name a server to see fewer"} if left_out else {}
    whole = {"resources": [as_listed(each) for each in kept], **shown, **more}
    return msgspec.json.encode(whole).decode()
