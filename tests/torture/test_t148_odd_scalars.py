"""T148: optional values of a wrong type, or far too large, beside what is needed, cost only themselves."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.catalog.paging import read_pages, undecoded
from dragoman.connections.handshake import read_introduction
from dragoman.wire.codec import Unreadable
from dragoman.wire.messages import DiscoverResult, InitializeResult
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
async def test_t148_an_odd_value_beside_a_list_costs_no_item(beside: dict[str, Any], problem: str | None):
    async def fetch(params: Any) -> Raw:
        return Raw(msgspec.json.encode({"tools": [{"name": "a"}], **beside}))

    pages = await read_pages(fetch, "tools", "tools", undecoded)
    assert [bytes(item) for item in pages.items] == [b'{"name":"a"}']
    assert pages.problems == ([problem] if problem else [])


@pytest.mark.parametrize(
    "beside",
    [
        {"serverInfo": {"name": None, "version": 1.0}},
        {"instructions": ["a"]},
        {"capabilities": []},
        {"serverInfo": 5, "instructions": 5, "capabilities": 5, "_meta": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [InitializeResult, DiscoverResult])
def test_t148_an_odd_value_in_an_introduction_is_left_out(shape: Any, beside: dict[str, Any]):
    needed = {"protocolVersion": "2025-11-25", "supportedVersions": ["2026-07-28"]}
    good = {"capabilities": {"tools": {}}, "instructions": "Read first."}
    found = read_introduction(shape, Raw(msgspec.json.encode({**needed, **good, **beside})))
    wanted = {name: value for name, value in good.items() if name not in beside}
    assert found == shape(
        needed["protocolVersion" if shape is InitializeResult else "supportedVersions"], **wanted
    )


def test_t148_what_is_needed_has_to_be_right():
    with pytest.raises(Unreadable):
        read_introduction(InitializeResult, Raw(b'{"protocolVersion":5,"capabilities":{}}'))


async def test_t148_large_values_beside_what_is_needed_are_not_decoded():
    async def fetch(params: Any) -> Raw:
        return page

    page = Raw(msgspec.json.encode({"tools": [], "ttlMs": FILLER, "resultType": "complete"}))
    answer = Raw(
        msgspec.json.encode({"protocolVersion": "x", "capabilities": {"experimental": {"a": FILLER}}})
    )
    timer = CpuTimer()
    assert (await read_pages(fetch, "tools", "tools", undecoded)).problems == []
    assert read_introduction(InitializeResult, answer).capabilities is None
    assert timer.seconds() < 0.5
