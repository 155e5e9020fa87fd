"""T63: lists that never end, repeat themselves or break off are read in bounds, and say so."""

import json

import pytest

from dragoman.catalog.tools import PAGE_LIMIT, TOOL_LIMIT
from tests.servers import zoo
from tests.torture.arena import MEGABYTE, at_once

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
    "the same cursor again": ([page("a", nextCursor="1"), page("b", nextCursor="1")], "ab", "repeats itself"),
    "a circle": ([*TWO_OF_THREE, page("c", nextCursor="1")], "abc", "repeats itself"),
    "an error on page three": ([*TWO_OF_THREE, {"error": -32603}], "ab", "incomplete"),
    "an error at once": ([{"error": -32603}], "", "incomplete"),
    "a cursor that is a number": ([page("a", nextCursor=5)], "", "incomplete"),
    "tools that are no list": ([{"tools": "many"}], "", "incomplete"),
    "tools that are null": ([{"tools": None}], "", "incomplete"),
    "the same tool on two pages": ([page("a", nextCursor="1"), page("a", "b")], "ab", "used twice"),
}  # fmt: skip


@pytest.mark.parametrize(("pages", "names", "problem"), CASES.values(), ids=CASES.keys())
async def test_t63_what_can_be_read_is_kept_and_what_is_missing_is_told(arena, era, pages, names, problem):
    async with arena(zoo("lists_as_told.py", json.dumps(pages), protocol=era), wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        assert a.view.status == "connected"
        assert [tool.wire_name for tool in a.host.tools() if tool.server == "hostile"] == list(names)
        assert (
            (len(a.view.problems) == 1 and problem in a.view.problems[0]) if problem else not a.view.problems
        )
        for name in names:
            assert await a.call(name) == name


async def test_t63_an_ever_new_cursor_meets_the_limit_of_pages(arena, era):
    async with arena(zoo("lists_without_end.py", "1", "0", protocol=era), wait=False) as a:
        async with at_once(10):
            await a.host.ready(timeout=30)
        assert a.view.status == "connected"
        assert a.view.tool_count == PAGE_LIMIT
        assert any(f"more than {PAGE_LIMIT} pages" in problem for problem in a.view.problems)


async def test_t63_empty_pages_without_end_meet_the_limit_too(arena):
    async with arena(zoo("lists_without_end.py", "0", "0"), wait=False) as a:
        async with at_once(10):
            await a.host.ready(timeout=30)
        assert a.view.tool_count == 0
        assert any(f"more than {PAGE_LIMIT} pages" in problem for problem in a.view.problems)


@pytest.mark.parametrize("pages", [1, 20])
async def test_t63_a_hundred_thousand_tools_are_cut_at_the_limit(arena, pages):
    async with arena(zoo("lists_without_end.py", str(100_000 // pages), str(pages)), wait=False) as a:
        async with at_once(20):
            await a.host.ready(timeout=30)
        assert a.view.tool_count == TOOL_LIMIT
        assert any(f"more than {TOOL_LIMIT} tools" in problem for problem in a.view.problems)
        assert a.pulse.growth_bytes < 128 * MEGABYTE


async def test_t63_a_list_that_hangs_does_not_keep_the_server_from_being_used(arena):
    """Connecting ends with the time allowed; what was never listed cannot be called, but says why."""
    settings = {"MCP_TIMEOUT": 700, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
    async with arena(zoo("never_lists.py"), settings=settings, wait=False) as a:
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        assert a.view.status == "connected"
        assert "the list of tools is incomplete" in a.view.problems[0]
