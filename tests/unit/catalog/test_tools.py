"""Lists read page by page, and the pool made of them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw

from dragoman.catalog.catalog import Catalog, ServerTools
from dragoman.catalog.listing import NAME_LIMIT, ToolList, read_list
from dragoman.catalog.paging import ITEM_LIMIT, PAGE_LIMIT
from dragoman.catalog.texts import DESCRIPTION_LIMIT
from dragoman.catalog.tools import ServerTool
from dragoman.errors import ConnectionLost, RemoteError, UnknownTool
from dragoman.names import QualifiedName, ServerName
from tests.cpu_time import CpuTimer
from tests.unit.fakes import definition, tool

SCHEMA = {"type": "object"}


def page(*tools: object, cursor: object = None, **more: object) -> bytes:
    listed = [{"name": each, "inputSchema": SCHEMA} if isinstance(each, str) else each for each in tools]
    ending = {} if cursor is None else {"nextCursor": cursor}
    return json.dumps({"tools": listed, **ending, **more}).encode()


class Pages:
    """Hands out pages in order and notes what it was asked for."""

    def __init__(self, *pages: bytes | Exception) -> None:
        self._pages = list(pages)
        self.asked: list[Mapping[str, Any]] = []

    async def __call__(self, params: Mapping[str, Any]) -> Raw:
        self.asked.append(params)
        found = self._pages.pop(0)
        if isinstance(found, Exception):
            raise found
        return Raw(found)


def names(listed: ToolList) -> list[str]:
    return [each.name for each in listed.items]


# --- paging ---


async def test_a_single_page_is_the_complete_list():
    pages = Pages(page("b", "a"))
    listed = await read_list(pages)

    assert names(listed) == ["b", "a"]
    assert listed.problems == ()
    assert pages.asked == [{}]


async def test_pages_are_followed_by_their_cursors():
    pages = Pages(page("a", cursor="x"), page("b", cursor="y"), page("c"))
    listed = await read_list(pages)

    assert names(listed) == ["a", "b", "c"]
    assert pages.asked == [{}, {"cursor": "x"}, {"cursor": "y"}]


async def test_an_empty_string_is_a_cursor_and_null_is_the_end():
    pages = Pages(page("a", cursor=""), page("b", nextCursor=None))
    listed = await read_list(pages)

    assert names(listed) == ["a", "b"]
    assert pages.asked == [{}, {"cursor": ""}]


async def test_an_empty_page_in_the_middle_is_not_the_end():
    listed = await read_list(Pages(page("a", cursor="x"), page(cursor="y"), page("b")))

    assert names(listed) == ["a", "b"]


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([page("a", cursor="x"), page("b", cursor="x")], id="the same again"),
        pytest.param([page("a", cursor="x"), page("b", cursor="y"), page(cursor="x")], id="a circle"),
    ],
)
async def test_a_repeated_cursor_ends_the_reading(pages: list[bytes]):
    listed = await read_list(Pages(*pages))

    assert names(listed) == ["a", "b"]
    assert ["the same cursor twice" in problem for problem in listed.problems] == [True]


@pytest.mark.parametrize(
    "failure",
    [
        RemoteError("box", -32602, "bad cursor"),
        ConnectionLost("box", "it exited", may_have_run=True),
        b"{}",
        b'{"tools":7}',
        b'{"tools":[],"nextCursor":7}',
        b'{"tools":[',
        b"null",
        b'{"resultType":"input_required","tools":[]}',
    ],
    ids=str,
)
async def test_an_error_on_the_third_page_keeps_the_first_two(failure: bytes | Exception):
    listed = await read_list(Pages(page("a", cursor="x"), page("b", cursor="y"), failure))

    assert names(listed) == ["a", "b"]
    assert len(listed.problems) == 1


async def test_pages_without_end_are_cut_and_reported():
    asked = 0

    async def endless(params: Mapping[str, Any]) -> Raw:
        nonlocal asked
        asked += 1
        return Raw(page(f"t{asked}", cursor=str(asked)))

    listed = await read_list(endless)

    assert asked == PAGE_LIMIT == len(listed.items)
    assert f"more than {PAGE_LIMIT} pages" in listed.problems[0]


async def test_too_many_tools_are_cut_and_reported():
    listed = await read_list(Pages(page(*map(str, range(ITEM_LIMIT + 5)), cursor="x")))

    assert len(listed.items) == ITEM_LIMIT
    assert f"more than {ITEM_LIMIT} tools" in listed.problems[0]


# --- definitions ---

BAD = [
    ("no name", {"inputSchema": SCHEMA}, "without a name"),
    ("a number as name", {"name": 7, "inputSchema": SCHEMA}, "without a name"),
    ("an empty name", {"name": "", "inputSchema": SCHEMA}, "it has no name"),
    ("a blank name", {"name": " \t", "inputSchema": SCHEMA}, "it has no name"),
    ("an endless name", {"name": "x" * (NAME_LIMIT + 1), "inputSchema": SCHEMA}, "longer than"),
    ("no schema", {"name": "bad"}, "'bad'"),
    ("null as schema", {"name": "bad", "inputSchema": None}, "'bad'"),
    ("a text as schema", {"name": "bad", "inputSchema": "{}"}, "'bad'"),
    ("a list as schema", {"name": "bad", "inputSchema": []}, "'bad'"),
    ("a schema of another type", {"name": "bad", "inputSchema": {"type": "string"}}, "'bad'"),
    ("a list of types", {"name": "bad", "inputSchema": {"type": ["object"]}}, "'bad'"),
    ("properties as a list", {"name": "bad", "inputSchema": {"properties": []}}, "'bad'"),
    ("null as a property", {"name": "bad", "inputSchema": {"properties": {"x": None}}}, "for 'x'"),
    ("a number as a property", {"name": "bad", "inputSchema": {"properties": {"x": 7}}}, "for 'x'"),
    ("required as a text", {"name": "bad", "inputSchema": {"required": "x"}}, "'bad'"),
    ("required with numbers", {"name": "bad", "inputSchema": {"required": [1]}}, "'bad'"),
    ("a number as description", {"name": "bad", "inputSchema": SCHEMA, "description": 7}, "'bad'"),
    ("annotations as a list", {"name": "bad", "inputSchema": SCHEMA, "annotations": []}, "'bad'"),
    ("no object at all", 7, "without a name"),
    ("null", None, "without a name"),
    ("a used name", {"name": "good", "inputSchema": SCHEMA}, "used twice"),
]


@pytest.mark.parametrize(("bad", "reason"), [pytest.param(*row[1:], id=row[0]) for row in BAD])
async def test_an_invalid_definition_is_left_out_alone_with_its_reason(bad: object, reason: str):
    listed = await read_list(Pages(page("good", bad, "last")))

    assert names(listed) == ["good", "last"]
    assert len(listed.problems) == 1
    assert reason in listed.problems[0]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(b'{"type":"object","title":"\xff"}', id="invalid UTF-8"),
        pytest.param(b'{"type":"object","maxProperties":1e999}', id="a number out of range"),
        pytest.param(b'{"type":"object","maxProperties":' + b"9" * 5000 + b"}", id="a number of 5000 digits"),
    ],
)
async def test_a_schema_that_is_too_deep_affects_its_tool_only(schema: bytes):
    bad = b'{"tools":[{"name":"bad","inputSchema":' + schema + b'},{"name":"good","inputSchema":{}}]}'
    listed = await read_list(Pages(bad))

    for each in listed.items:
        assert isinstance(ServerTool(ServerName("s"), QualifiedName("n"), each).input_schema, dict)
    assert "good" in names(listed)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": {"x": True, "y": False, "z": {}}},
        {"type": "object", "x-own": 1},
    ],
    ids=str,
)
async def test_an_unusual_but_valid_schema_is_unchanged(schema: dict[str, object]):
    listed = await read_list(Pages(page({"name": "t", "inputSchema": schema})))
    (only,) = listed.items

    assert ServerTool(ServerName("s"), QualifiedName("n"), only).input_schema == schema


async def test_a_problem_contains_no_terminal_sequences():
    listed = await read_list(
        Pages(
            page(
                {"name": "\x1b]0;owned\x07\u202e", "inputSchema": None},
                {"name": "\x1b[2J", "inputSchema": []},
            )
        )
    )

    assert len(listed.problems) == 2
    assert not any(character in problem for problem in listed.problems for character in "\x1b\x07\u202e")


# --- tools ---


def a_tool(**fields: Any) -> ServerTool:
    return ServerTool(ServerName("s"), QualifiedName("mcp__s__t"), definition("t", **fields))


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"title": "Own", "annotations": {"title": "Annotated"}}, "Own"),
        ({"annotations": {"title": "Annotated"}}, "Annotated"),
        ({"annotations": {"title": 7}}, "t"),
        ({"title": ""}, "t"),
        ({}, "t"),
    ],
    ids=str,
)
def test_a_tools_title(fields: dict[str, Any], title: str):
    assert a_tool(**fields).title == title


def test_a_long_description_is_cut_visibly():
    assert a_tool(description="x" * DESCRIPTION_LIMIT).description == "x" * DESCRIPTION_LIMIT
    cut = a_tool(description="x" * (DESCRIPTION_LIMIT + 1)).description
    assert len(cut) <= DESCRIPTION_LIMIT
    assert cut.endswith("more characters]")


def test_absent_members_of_a_definition_are_empty():
    bare = a_tool()

    assert (bare.description, bare.output_schema, bare.annotations, bare.meta) == ("", None, {}, {})


def test_the_members_of_a_definition_can_be_read():
    full = a_tool(
        output_schema=Raw(b'{"type":"object"}'), annotations={"readOnlyHint": True}, meta={"ui": {"a": 1}}
    )

    assert full.output_schema == {"type": "object"}
    assert full.annotations == {"readOnlyHint": True}
    assert full.meta == {"ui": {"a": 1}}
    assert repr(full) == "<ServerTool mcp__s__t>"


# --- the pool ---


def listed(*tool_names: str, problems: tuple[str, ...] = ()) -> ToolList:
    return ToolList(tuple(definition(name) for name in tool_names), problems)


def offer(catalog: Catalog, server: str, listing: ToolList) -> ServerTools:
    tools = ServerTools(ServerName(server))
    tools.set(listing)
    catalog.add(tools)
    return tools


def test_the_order_of_tools_does_not_depend_on_the_order_of_connections():
    lists = {ServerName("b"): listed("z", "a"), ServerName("a"): listed("m", "c")}
    orders = []
    for servers in (list(lists), list(reversed(lists))):
        catalog = Catalog()
        for server in servers:
            offer(catalog, server, lists[server])
        orders.append([tool.name for tool in catalog.tools()])

    assert orders[0] == orders[1] == ["mcp__a__c", "mcp__a__m", "mcp__b__a", "mcp__b__z"]


def test_a_tool_found_by_name_has_its_wire_name():
    catalog = Catalog()
    offer(catalog, "s", listed("a.b", "plain"))

    assert catalog.resolve("mcp__s__a_b").wire_name == "a.b"
    assert catalog.resolve("mcp__s__plain").server == "s"


def test_tools_whose_names_collide_can_each_be_called():
    catalog = Catalog()
    offer(catalog, "s", listed("a.b", "a_b"))

    found = {catalog.resolve(tool.name).wire_name for tool in catalog.tools()}
    assert found == {"a.b", "a_b"}
    with pytest.raises(UnknownTool):
        catalog.resolve("mcp__s__a_b")


def test_a_new_list_replaces_the_old():
    catalog = Catalog()
    tools = offer(catalog, "s", listed("old", problems=("p",)))
    assert (catalog.count(tools), catalog.problems(tools)) == (1, ("p",))

    tools.set(listed("new", "newer"))
    catalog.changed()
    assert [tool.wire_name for tool in catalog.tools()] == ["new", "newer"]
    assert catalog.problems(tools) == ()


def test_the_tools_of_a_removed_server_are_removed():
    catalog = Catalog()
    tools = offer(catalog, "s", listed("a"))
    list(catalog.tools())
    catalog.remove(tools)

    assert list(catalog.tools()) == []


def test_removing_a_replaced_server_keeps_the_tools_of_its_successor():
    catalog = Catalog()
    before = offer(catalog, "s", listed("a"))
    offer(catalog, "s", listed("b"))
    catalog.remove(before)

    assert [tool.wire_name for tool in catalog.tools()] == ["b"]


def test_the_tool_pool_is_built_once_until_a_change():
    catalog = Catalog()
    offer(catalog, "s", listed("a"))

    assert catalog.resolve("mcp__s__a") is catalog.resolve("mcp__s__a")


@pytest.mark.parametrize(
    ("asked", "near"),
    [("mcp__github__create_isue", "mcp__github__create_issue"), ("create_issue", None), ("", None)],
)
def test_an_unknown_tool_suggests_near_names(asked: str, near: str | None):
    catalog = Catalog()
    offer(catalog, "github", listed("create_issue", "list_repos"))

    with pytest.raises(UnknownTool) as caught:
        catalog.resolve(asked)
    assert caught.value.hint is not None
    if near:
        assert near in caught.value.hint


async def test_very_large_definitions_are_refused_before_decoding():
    async def fetch(params: Mapping[str, Any]) -> Raw:
        return Raw(b'{"tools":[' + b"0," * 2_000_000 + b"0]}")

    started = CpuTimer()
    listed = await read_list(fetch)
    assert started.seconds() < 1
    assert listed.problems == ("the list of tools is incomplete: it is too large",)


async def test_of_many_problems_some_are_reported_and_the_rest_is_counted():
    async def fetch(params: Mapping[str, Any]) -> Raw:
        return Raw(b'{"tools":[' + b"0," * 999 + b"0]}")

    problems = (await read_list(fetch)).problems
    assert len(problems) == 101
    assert problems[-1] == "and 900 problems more"


def test_an_unknown_name_among_very_many_is_reported_quickly():
    catalog = Catalog()
    offer(catalog, "s", listed(*(f"tool_{n}" for n in range(20_000))))
    list(catalog.tools())
    started = CpuTimer()
    with pytest.raises(UnknownTool):
        catalog.resolve("mcp__s__tolo_17")
    assert started.seconds() < 1


@pytest.mark.requirement("CAT-11")
def test_two_schemas_that_cannot_be_read_have_different_digests():
    one, other = (
        tool(b'{"type":"object","maximum":1e999,"description":"' + word + b'"}')
        for word in (b"good", b"evil")
    )

    assert one.input_schema == other.input_schema == {"type": "object"}
    assert one.digest != other.digest
