"""T09: One invalid tool definition among fifty is left out with its reason; the others are not affected."""

import json
from typing import Any

import pytest

from tests.servers import stdio_server
from tests.servers.web import http_sse, streamable, websocket
from tests.servers.web.given_answers import replace_results
from tests.torture.bystander_host import at_once
from tests.torture.conftest import LEGACY, MODERN

OBJECT = {"type": "object"}
GOOD = [{"name": f"good_{n}", "inputSchema": OBJECT} for n in range(49)]

BAD = {
    "no name": {"inputSchema": OBJECT},
    "a number for a name": {"name": 7, "inputSchema": OBJECT},
    "an empty name": {"name": "", "inputSchema": OBJECT},
    "a name of 10 000 characters": {"name": "n" * 10_000, "inputSchema": OBJECT},
    "no schema": {"name": "bad"},
    "a schema that is true": {"name": "bad", "inputSchema": True},
    "a schema that is a text": {"name": "bad", "inputSchema": "object"},
    "a schema that is null": {"name": "bad", "inputSchema": None},
    "a schema of another type": {"name": "bad", "inputSchema": {"type": "string"}},
    "properties that are a list": {"name": "bad", "inputSchema": {"type": "object", "properties": []}},
    "a property that is a text": {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": "b"}}},
    "required that is a text": {"name": "bad", "inputSchema": {"type": "object", "required": "a"}},
    "a description that is a list": {"name": "bad", "inputSchema": OBJECT, "description": []},
    "annotations that are a text": {"name": "bad", "inputSchema": OBJECT, "annotations": "read-only"},
    "no object at all": "bad",
    "null": None,
    "a name used twice": {"name": "good_7", "inputSchema": OBJECT, "description": "the second"},
}


def lists(*tools: Any) -> dict[str, Any]:
    return stdio_server("lists_given_pages.py", json.dumps([{"tools": tools}]))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_t09_one_invalid_definition_is_left_out_with_its_reason(bystander_host, bad):
    async with bystander_host(lists(*GOOD[:25], bad, *GOOD[25:])) as a:
        assert a.view.status == "connected"
        assert a.view.tool_count == 49
        assert len(a.view.problems) == 1
        assert "is left out: " in a.view.problems[0]
        assert len(a.view.problems[0]) < 600, "bounded, whatever the name"
        async with at_once():
            for tool in GOOD:
                assert await a.call(tool["name"]) == tool["name"]


async def test_t09_several_invalid_definitions_do_not_affect_the_valid_ones(bystander_host):
    async with bystander_host(lists(*BAD.values(), *GOOD)) as a:
        # The duplicate is first here, so it is the one that is kept.
        assert a.view.tool_count == 49
        assert len(a.view.problems) == len(BAD)
        assert {tool.wire_name for tool in a.host.tools() if tool.server == "hostile"} == {
            tool["name"] for tool in GOOD
        }


UNUSUAL_BUT_VALID = {
    "constructor": {"name": "constructor", "inputSchema": OBJECT},
    "__proto__": {"name": "__proto__", "inputSchema": OBJECT},
    "__class__": {"name": "__class__", "inputSchema": OBJECT},
    "a property named __proto__": {
        "name": "fine",
        "inputSchema": {"type": "object", "properties": {"__proto__": {}}},
    },
    "an output schema without a type": {"name": "fine", "inputSchema": OBJECT, "outputSchema": {}},
    "an output schema that is a text": {"name": "fine", "inputSchema": OBJECT, "outputSchema": "x"},
    "a schema with a $ref to nowhere": {
        "name": "fine",
        "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
    },
    "an unknown keyword and field": {
        "name": "fine",
        "inputSchema": {"type": "object", "x-new": 1},
        "colour": "red",
    },
}


@pytest.mark.parametrize("tool", UNUSUAL_BUT_VALID.values(), ids=UNUSUAL_BUT_VALID.keys())
async def test_t09_unusual_but_valid_definitions_can_be_called(bystander_host, tool):
    async with bystander_host(lists(*GOOD, tool)) as a:
        assert (a.view.tool_count, a.view.problems) == (50, ())
        async with at_once():
            assert await a.call(tool["name"]) == tool["name"]
        listed = next(each for each in a.host.tools() if each.wire_name == tool["name"])
        assert listed.input_schema == tool["inputSchema"]


HEADERS = {
    "empty": {"a": {"type": "string", "x-mcp-header": ""}},
    "with a line break": {"a": {"type": "string", "x-mcp-header": "A\r\nB: c"}},
    "twice, in another case": {
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "string", "x-mcp-header": "a"},
    },
    "on an array's item": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
    "on a number": {"a": {"type": "number", "x-mcp-header": "A"}},
}


@pytest.mark.parametrize("properties", HEADERS.values(), ids=HEADERS.keys())
async def test_t09_header_annotations_are_ignored_over_stdio(bystander_host, properties):
    tool = {"name": "annotated", "inputSchema": {"type": "object", "properties": properties}}
    async with bystander_host(lists(*GOOD, tool)) as a:
        assert (a.view.tool_count, a.view.problems) == (50, ())
        async with at_once():
            assert await a.call("annotated") == "annotated"


# The same over the network, where headers repeat arguments.

SITES = {"http": streamable, "sse": http_sse, "ws": websocket}
BAD_HEADERS = {
    **HEADERS,
    "at a text that is no name": {"a": {"type": "string", "x-mcp-header": "Two Words"}},
    "a number for a name": {"a": {"type": "string", "x-mcp-header": 7}},
    "beyond ASCII": {"a": {"type": "string", "x-mcp-header": "Région"}},
    "on an object": {"a": {"type": "object", "x-mcp-header": "A"}},
    "without a type": {"a": {"x-mcp-header": "A"}},
    "behind anyOf": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}},
    "too deep to find": json.loads(
        '{"properties":{"a":' * 100 + '{"type":"string","x-mcp-header":"A"}' + "}}" * 100
    ),
}


def schema_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("properties", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
async def test_t09_over_http_a_bad_header_annotation_leaves_out_its_tool_only(bystander_host, properties):
    bad = {"name": "annotated", "inputSchema": schema_of(properties)}
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(
            server,
            {
                "tools/list": lambda _: {"tools": [*GOOD[:25], bad, *GOOD[25:]]},
                "tools/call": lambda params: {"content": [{"type": "text", "text": params["name"]}]},
            },
        )
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            assert (a.view.status, a.view.tool_count) == ("connected", 49)
            (problem,) = a.view.problems
            assert problem.startswith("tool 'annotated' is left out: ")
            assert "\r" not in problem
            assert await a.call("good_0") == "good_0"


@pytest.mark.requirement("TRN-2")
async def test_t09_several_bad_header_annotations_do_not_affect_other_tools(bystander_host):
    bad = [
        {"name": f"bad_{n}", "inputSchema": schema_of(properties)}
        for n, properties in enumerate(BAD_HEADERS.values())
    ]
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": [*bad, *GOOD]}})
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            assert a.view.tool_count == 49
            assert len(a.view.problems) == len(bad)


@pytest.mark.parametrize("kind", ["http", "sse", "ws"])
async def test_t09_header_annotations_are_ignored_where_arguments_are_not_sent_as_headers(
    bystander_host, kind
):
    """Headers repeat arguments only in the modern era over HTTP."""
    tools = [
        {"name": f"annotated_{n}", "inputSchema": schema_of(properties)}
        for n, properties in enumerate(BAD_HEADERS.values())
    ]
    revision = MODERN if kind == "ws" else LEGACY
    async with SITES[kind](revisions=(revision,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": tools}})
        async with bystander_host({"type": kind, "url": server.url, "protocol": revision}) as a:
            assert a.view.status == "connected", a.view.reason
            assert (a.view.tool_count, a.view.problems) == (len(tools), ())


@pytest.mark.parametrize("kind", SITES)
async def test_t09_invalid_definitions_are_left_out_over_every_transport(bystander_host, kind):
    revision = LEGACY if kind == "sse" else MODERN
    async with SITES[kind](revisions=(revision,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": [*BAD.values(), *GOOD]}})
        async with bystander_host({"type": kind, "url": server.url, "protocol": revision}) as a:
            assert a.view.tool_count == 49
            assert len(a.view.problems) == len(BAD)
