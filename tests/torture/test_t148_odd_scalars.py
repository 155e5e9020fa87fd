"""T148: optional values of a wrong type, or far too large, beside a list affect only themselves."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.catalog.paging import read_pages, undecoded
from tests.cpu_time import CpuTimer

pytestmark = pytest.mark.requirement("CAT-1")

FILLER = [[]] * 3_000_000
"""A value that would take a second to decode."""


@pytest.mark.parametrize(
    ("beside", "problem"),
    [
        ({"nextCursor": 0}, "the list of tools may be incomplete: its nextCursor is not a text"),
        ({"nextCursor": False}, "the list of tools may be incomplete: its nextCursor is not a text"),
        ({"nextCursor": None}, None),
        ({"resultType": None}, None),
        ({"ttlMs": []}, None),
        ({"ttlMs": "soon"}, None),
    ],
    ids=str,
)
async def test_t148_a_wrong_value_beside_a_list_loses_no_item(beside: dict[str, Any], problem: str | None):
    async def fetch(params: Any) -> Raw:
        return Raw(msgspec.json.encode({"tools": [{"name": "a"}], **beside}))

    pages = await read_pages(fetch, "tools", "tools", undecoded)
    assert [bytes(item) for item in pages.items] == [b'{"name":"a"}']
    assert pages.problems == ([problem] if problem else [])


async def test_t148_large_values_beside_the_needed_ones_are_not_decoded():
    async def fetch(params: Any) -> Raw:
        return page

    page = Raw(msgspec.json.encode({"tools": [], "ttlMs": FILLER, "resultType": "complete"}))
    timer = CpuTimer()
    assert (await read_pages(fetch, "tools", "tools", undecoded)).problems == []
    assert timer.seconds() < 0.5
