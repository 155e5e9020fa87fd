"""T63: Lists that never end, repeat or break off are read within limits, and that is reported."""

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dragoman.catalog.paging import ITEM_LIMIT, PAGE_LIMIT
from dragoman.errors import ConnectTimeout, HandshakeFailed
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.servers.web.given_answers import error, replace_results
from tests.torture.bystander_host import MEGABYTE, at_once
from tests.torture.conftest import LEGACY, MODERN

OBJECT = {"type": "object"}


def page(*names: str, **more: object) -> dict[str, object]:
    return {"tools": [{"name": name, "inputSchema": OBJECT} for name in names], **more}


TWO_OF_THREE = [page("a", nextCursor="1"), page("b", nextCursor="2")]

CASES = {
    "three pages": ([*TWO_OF_THREE, page("c")], "abc", None),
    "an empty cursor is one like any other": ([page("a", nextCursor=""), page("b")], "ab", None),
    "null is the end": ([page("a", nextCursor=None)], "a", None),
    "empty pages between": ([page("a", nextCursor="1"), page(nextCursor="2"), page("b")], "ab", None),
    "an empty list": ([page()], "", None),
    "the same cursor again": ([page("a", nextCursor="1"), page("b", nextCursor="1")], "ab", "cursor twice"),
    "a circle": ([*TWO_OF_THREE, page("c", nextCursor="1")], "abc", "cursor twice"),
    "a cursor that is a number": ([page("a", nextCursor=5)], "a", "its nextCursor is not a text"),
    "an error on page three": ([*TWO_OF_THREE, {"error": -32603}], "ab", "incomplete"),
    "the same tool on two pages": ([page("a", nextCursor="1"), page("a", "b")], "ab", "used twice"),
}  # fmt: skip


@pytest.mark.parametrize(("pages", "names", "problem"), CASES.values(), ids=CASES.keys())
async def test_t63_readable_items_are_kept_and_missing_ones_are_reported(
    bystander_host, era, pages, names, problem
):
    async with bystander_host(
        stdio_server("lists_given_pages.py", json.dumps(pages), protocol=era), wait=False
    ) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        assert a.view.status == "connected"
        assert [tool.wire_name for tool in a.host.tools() if tool.server == "hostile"] == list(names)
        assert (
            (len(a.view.problems) == 1 and problem in a.view.problems[0]) if problem else not a.view.problems
        )
        for name in names:
            assert await a.call(name) == name


async def test_t63_a_cursor_that_always_changes_reaches_the_page_limit(bystander_host, era):
    async with bystander_host(stdio_server("lists_without_end.py", "1", "0", protocol=era), wait=False) as a:
        async with at_once(10):
            await a.host.ready(timeout=30)
        assert a.view.status == "connected"
        assert a.view.tool_count == PAGE_LIMIT
        assert any(f"more than {PAGE_LIMIT} pages" in problem for problem in a.view.problems)


async def test_t63_endless_empty_pages_reach_the_page_limit(bystander_host):
    async with bystander_host(stdio_server("lists_without_end.py", "0", "0"), wait=False) as a:
        async with at_once(10):
            await a.host.ready(timeout=30)
        assert a.view.tool_count == 0
        assert any(f"more than {PAGE_LIMIT} pages" in problem for problem in a.view.problems)


@pytest.mark.parametrize("pages", [1, 20])
async def test_t63_a_hundred_thousand_tools_are_truncated_at_the_limit(bystander_host, pages):
    async with bystander_host(
        stdio_server("lists_without_end.py", str(100_000 // pages), str(pages)), wait=False
    ) as a:
        async with at_once(20):
            await a.host.ready(timeout=30)
        assert a.view.tool_count == ITEM_LIMIT
        assert any(f"more than {ITEM_LIMIT} tools" in problem for problem in a.view.problems)
        assert a.pulse.growth_bytes < 128 * MEGABYTE


NOTHING_TO_READ = {
    "an error": [{"error": -32603}],
    "no such method": [{"error": -32601}],
    "tools that are no list": [{"tools": "many"}],
    "tools that are null": [{"tools": None}],
}


@pytest.mark.parametrize("pages", NOTHING_TO_READ.values(), ids=NOTHING_TO_READ.keys())
async def test_t63_a_server_that_returns_no_list_of_its_tools_has_failed_with_the_reason(
    bystander_host, era, pages
):
    """It declares tools; without a list, none of them can be called."""
    async with bystander_host(
        stdio_server("lists_given_pages.py", json.dumps(pages), protocol=era), wait=False
    ) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        assert a.view.status == "failed"
        assert isinstance(a.view.error, HandshakeFailed)
        assert a.view.error.phase == "tools/list"
        assert (a.view.reason or "").startswith("hostile: tools/list failed: ")


async def test_t63_a_list_request_that_hangs_fails_at_the_timeout(bystander_host):
    settings = {"MCP_TIMEOUT": 700, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
    async with bystander_host(stdio_server("never_lists.py"), settings=settings, wait=False) as a:
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        assert a.view.status == "failed"
        assert isinstance(a.view.error, ConnectTimeout)
        assert a.view.error.phase == "tools/list"


# The same over the network.

SITES = {"http": streamable, "sse": http_sse, "ws": websocket}
WAYS = [("http", LEGACY), ("http", MODERN), ("sse", LEGACY), ("ws", MODERN)]


def in_pages(pages: list[dict[str, Any]]) -> dict[str, Any]:
    """Replies of a hostile server whose list is returned in these pages."""
    follows = {p["nextCursor"]: n + 1 for n, p in reversed(list(enumerate(pages))) if "nextCursor" in p}

    def listed(params: dict[str, Any]) -> Any:
        given = pages[0 if params.get("cursor") is None else follows[params["cursor"]]]
        return error(given["error"]) if "error" in given else {"resultType": "complete", **given}

    return {
        "tools/list": listed,
        "tools/call": lambda params: {"content": [{"type": "text", "text": params["name"]}]},
    }


@pytest.mark.parametrize(("kind", "revision"), WAYS)
async def test_t63_every_kind_of_list_is_read_over_the_network_as_over_stdio(bystander_host, kind, revision):
    async with AsyncExitStack() as stack:
        others = {}
        for what, (pages, _, _) in CASES.items():
            server = await stack.enter_async_context(SITES[kind](revisions=(revision,)))
            replace_results(server, in_pages(pages))
            others[what] = {"type": kind, "url": server.url, "protocol": revision}
        async with bystander_host(others=others) as a:
            for what, (_, names, problem) in CASES.items():
                listed = [tool.wire_name for tool in a.host.tools() if tool.server == what]
                assert (a.host.servers[what].status, listed) == ("connected", list(names)), what
                told = a.host.servers[what].problems
                assert (len(told) == 1 and problem in told[0]) if problem else not told, what


@pytest.mark.parametrize(("kind", "revision"), WAYS)
async def test_t63_a_cursor_that_always_changes_reaches_the_page_limit_over_the_network(
    bystander_host, kind, revision, monkeypatch
):
    monkeypatch.setattr("dragoman.catalog.paging.PAGE_LIMIT", 50)
    asked = 0

    def listed(_: Any) -> Any:
        nonlocal asked
        asked += 1
        return page(f"tool_{asked}", nextCursor=str(asked))

    async with SITES[kind](revisions=(revision,)) as server:
        replace_results(server, {"tools/list": listed})
        async with bystander_host({"type": kind, "url": server.url, "protocol": revision}, wait=False) as a:
            async with at_once(5):
                await a.host.ready(timeout=30)
            assert (a.view.status, a.view.tool_count, asked) == ("connected", 50, 50)
            assert any("more than 50 pages" in problem for problem in a.view.problems)


PAGE_THREE = {
    "500": answers.status(500),
    "404": answers.status(404),
    "a page for people": answers.html(),
    "somebody else's": answers.foreign_id(),
    "cut off": answers.hang_up(),
    "half": answers.body(lambda ask: answers.reply_to(ask)[:-20]),
}


@pytest.mark.parametrize("replies", ["json", "sse"])
@pytest.mark.parametrize("trouble", PAGE_THREE.values(), ids=PAGE_THREE.keys())
async def test_t63_items_read_before_a_network_failure_are_kept_and_the_failure_is_reported(
    bystander_host, trouble, replies
):
    async with streamable(revisions=(MODERN,), replies=replies) as server:
        replace_results(server, in_pages([*TWO_OF_THREE, page("c")]))
        server.on["tools/list"] = answers.after(2, trouble)
        async with bystander_host({"url": server.url, "protocol": MODERN}, wait=False) as a:
            async with at_once():
                await a.host.ready(timeout=10)
            assert a.view.status == "connected"
            assert [tool.wire_name for tool in a.host.tools() if tool.server == "hostile"] == ["a", "b"]
            assert "the list of tools is incomplete" in a.view.problems[0]
            assert await a.call("a") == "a"
