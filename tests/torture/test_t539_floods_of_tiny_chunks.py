"""T539: a server sends an event stream in chunks of one byte, which never complete an event: it is cut off
in the same way as a flood of messages."""

import pytest

from dragoman.errors import ConnectionLost
from tests.torture.bystander_host import at_once, until
from tests.torture.test_t109_floods import REASON, flooding

__all__ = ["flooding"]


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_t539_chunks_of_one_byte_are_a_flood(bystander_host, flooding, kind: str):
    first = "3\r\n:: \r\n" if kind == "sse" else ": "
    async with bystander_host({"type": kind, "url": flooding(kind)}) as a:
        with pytest.raises(ConnectionLost) as caught:
            async with at_once(30):
                await a.call("flood", text="1\r\n \r\n", first=first, seconds=60)
        assert caught.value.cause == REASON
        await until(lambda: a.view.status == "failed")
