"""T03: A byte that is not valid UTF-8 never blocks a session."""

import pytest

from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.lines import log, reply

BAD_BYTES = {
    "a lone 0xff": "\xff",
    "a cut-off sequence": "\xe2\x82",
    "an overlong slash": "\xc0\xaf",
    "a surrogate": "\xed\xa0\x80",
    "beyond Unicode": "\xf4\x90\x80\x80",
}


@pytest.mark.parametrize("bad", BAD_BYTES.values(), ids=BAD_BYTES.keys())
async def test_t03_invalid_utf8_in_a_notification_does_not_affect_the_next_reply(bystander_host, era, bad):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        for line in (log(f"bad {bad} byte"), f'{{"jsonrpc":"2.0","method":"x{bad}"}}\n', f"noise {bad}\n"):
            async with at_once():
                assert await a.call("say", writes=[line + reply()]) == "right"
        await a.serves_still()


@pytest.mark.parametrize("bad", BAD_BYTES.values(), ids=BAD_BYTES.keys())
async def test_t03_invalid_utf8_in_a_reply_fails_that_call_at_once(bystander_host, era, bad):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        for line in (
            reply().replace("right", f"wrong {bad}"),
            reply().replace('"type"', f'"ty{bad}pe"'),
            f'{{"jsonrpc":"2.0","id":$ID,"error":{{"code":1,"message":"{bad}"}}}}\n',
        ):
            with pytest.raises(MalformedReply, match=r"hostile.*UTF-8"):
                async with at_once():
                    await a.call("say", writes=[line])
        await a.serves_still()
