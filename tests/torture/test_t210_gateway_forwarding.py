"""T210: results of servers reach the clients of a gateway in full, in every encoding and form."""

import json
from typing import Any

import pytest

from dragoman.wire.server.connection import MessageStream
from tests.gateway import Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")


class Raw:
    """A legacy server whose only tool gives a result of these bytes, after a progress notification."""

    def __init__(self, result: bytes, *, progress: bool = False) -> None:
        self._result = result
        self._progress = progress

    async def serve(self, end: MessageStream) -> None:
        while (message := await end.receive()) is not None:
            request = json.loads(message)
            if "id" in request:
                for reply in self._replies(request):
                    end.send(reply)

    def _replies(self, request: dict[str, Any]) -> list[bytes]:
        number = json.dumps(request["id"]).encode()
        if request["method"] == "tools/call":
            token = request["params"].get("_meta", {}).get("progressToken")
            params = {"progressToken": token, "progress": 1}
            progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            before = [json.dumps(progress).encode()] if self._progress else []
            return [*before, b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (number, self._result)]
        opening = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        }
        results = {
            "initialize": opening,
            "tools/list": {"tools": [{"name": "give", "inputSchema": {"type": "object"}}]},
        }
        if request["method"] not in results:
            error = {"code": -32601, "message": "unknown"}
            return [json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()]
        result = results[request["method"]]
        return [json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()]


CALL = {"name": "raw__give", "arguments": {}}
TEXT = [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    "result",
    [
        {"content": TEXT, "structuredContent": {"resultType": "invoice"}},
        {"content": [{"type": "text", "text": "resultType"}]},
        {},
    ],
    ids=["a member of the structured content", "a text", "nothing"],
)
async def test_t210_every_modern_result_contains_its_result_type(result: dict[str, Any]):
    server = Raw(json.dumps(result).encode())
    async with gateway_of({"raw": server}) as running, Client(running.url) as client:
        reply = await client.modern("tools/call", CALL)
        assert reply.last["result"] == {"resultType": "complete", **result}


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
async def test_t210_line_ends_between_members_do_not_break_an_event_stream(line_end: bytes):
    result = b'{"content":' + line_end + b'[{"type":"text",' + line_end + b' "text":"x"}]}'
    server = Raw(result, progress=True)
    async with gateway_of({"raw": server}) as running, Client(running.url) as client:
        reply = await client.modern("tools/call", CALL, meta={"progressToken": "p"})
        assert reply.headers["Content-Type"] == "text/event-stream"
        assert reply.last["result"] == {"resultType": "complete", "content": TEXT}


@pytest.mark.parametrize(
    "result",
    [
        b'{"content":[{"type":"text","text":"\xff\xfe"}]}',
        b'{"content":[],"structuredContent":{"\xc3":1}}',
        b'{"content":[{"type":"text","text":"' + b"x" * 300_000 + b'\xff"}]}',
    ],
    ids=["a text", "a key", "a large text"],
)
async def test_t210_a_result_that_is_not_utf_8_fails_only_its_call(result: bytes):
    async with gateway_of({"raw": Raw(result)}) as running, Client(running.url) as client:
        await client.initialize()
        for _ in range(2):
            failed = (await client.legacy("tools/call", CALL)).last["result"]
            assert failed["isError"]
            assert failed["content"][0]["text"].startswith("malformed reply from raw: ")
