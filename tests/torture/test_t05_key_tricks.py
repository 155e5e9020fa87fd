"""T05: Keys are matched exactly; similar keys are ignored."""

import pytest

from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.lines import ID, VERSION, message, result

WRONG, RIGHT = result("wrong"), result("right")

REFUSED = {
    "Result": message(VERSION, ID, f'"Result":{WRONG}'),
    "RESULT": message(VERSION, ID, f'"RESULT":{WRONG}'),
    "result with a long s": message(VERSION, ID, f'"re\xc5\xbfult":{WRONG}'),
    "result with a NUL": message(VERSION, ID, f'"result\\u0000":{WRONG}'),
    "jsonrpc 1.0": message('"jsonrpc":"1.0"', ID, f'"result":{WRONG}'),
    "jsonrpc as a number": message('"jsonrpc":2.0', ID, f'"result":{WRONG}'),
    "no jsonrpc": message(ID, f'"result":{WRONG}'),
    "JSONRPC": message('"JSONRPC":"2.0"', ID, f'"result":{WRONG}'),
}

ACCEPTED = {
    "extra keys": message(
        '"x":[1,{}]', VERSION, ID, '"Error":{"code":1}', f'"result":{RIGHT}', '"\xc3\xa9":null'
    ),
    "look-alikes beside the real one": message(
        f'"Result":{WRONG}', VERSION, ID, f'"result":{RIGHT}', f'"RESULT":{WRONG}'
    ),
    "an escaped key": message(VERSION, ID, f'"re\\u0073ult":{RIGHT}'),
    "the result twice, the last counts": message(VERSION, ID, f'"result":{WRONG}', f'"result":{RIGHT}'),
    "another id first, the last counts": message(VERSION, '"id":"other"', ID, f'"result":{RIGHT}'),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
async def test_t05_a_malformed_envelope_fails_its_call(bystander_host, era, line):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        with pytest.raises(MalformedReply, match="malformed reply from hostile"):
            async with at_once():
                await a.call("say", writes=[line])
        await a.serves_still()


@pytest.mark.parametrize("line", ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_t05_unknown_keys_are_ignored(bystander_host, era, line):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("say", writes=[line]) == "right"
        await a.serves_still()
