"""T140: a flood of lines that never complete an event is cut off in the same way as a flood of messages."""

import pytest

from tests.torture.test_t109_floods import chunked, flooding, is_cut_off

__all__ = ["flooding"]

LINES = {"times to wait": "retry: 1\n", "kinds": "event: x\n", "ids": "id: 1\n"}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("what", LINES)
@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_t140_an_event_with_endless_fields_is_a_flood(bystander_host, flooding, kind, what):
    text = LINES[what]
    async with bystander_host({"type": kind, "url": flooding(kind)}) as a:
        await is_cut_off(a, chunked(text) if kind == "sse" else text)
