"""T537: no memory is left for a long message of a local server. The running call fails, and the server is
used again: its connection does not stay open without being read."""

import io
from types import SimpleNamespace

import pytest

from dragoman.errors import ConnectionLost
from dragoman.transports import lines
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.network import COMES_BACK, connected

pytestmark = pytest.mark.requirement("TRN-1")
HEAD, TAIL = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"', '"}]}}'
LONG = {"head": HEAD, "part": "x", "times": 3 * lines.LONG_BYTES, "tail": TAIL}


class Full(io.BytesIO):
    """Accepts the first parts of a line, then raises MemoryError."""

    def write(self, *_: object) -> int:
        raise MemoryError


async def test_t537_the_call_fails_with_the_reason_and_the_server_is_reconnected(
    bystander_host, monkeypatch: pytest.MonkeyPatch
):
    async with bystander_host(stdio_server("writes_long_lines.py"), settings=COMES_BACK) as a:
        with monkeypatch.context() as shortage:
            shortage.setattr(lines, "io", SimpleNamespace(BytesIO=Full))
            with pytest.raises(ConnectionLost) as caught:
                async with at_once():
                    await a.call("say", **LONG)
        assert caught.value.cause == "its output could not be read: MemoryError"
        assert caught.value.may_have_run
        await connected(a)
        assert len((await a.outcome("say", raw=True, **LONG)).text) > 0
