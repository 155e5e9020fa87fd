"""Faulty answers of web servers. Each can be used alone or in front of a correct server. For example:

async with streamable(on={"tools/call": answers.html()}) as server: …
server.on["tools/call"] = answers.first(2, answers.status(503, retry_after="1"))
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from aiohttp import web

from tests.servers.web.site import Answer, Ask, in_turn

JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}

Lost = Literal["404", "404 -32001", "400 -32000", "200 -32600"]


def reply_to(ask: Ask, text: str = "fine", **changes: Any) -> bytes:
    """A reply that fits a call, before any habit spoils it."""
    content = [{"type": "text", "text": text}]
    result = {"resultType": "complete", "content": content, "isError": False}
    return json.dumps({"jsonrpc": "2.0", "id": ask.id, "result": result, **changes}).encode()


def error_to(ask: Ask, code: int, message: str, data: Any = None) -> bytes:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return json.dumps({"jsonrpc": "2.0", "id": ask.id, "error": error}).encode()


# --- when: which requests get the answer ---


def first(count: int, answer: Answer) -> Answer:
    """So many requests get the answer, the rest go to the server behind."""
    return in_turn([answer] * count)


def after(count: int, answer: Answer) -> Answer:
    """So many requests go to the server behind, the rest get the answer."""
    return in_turn([_pass] * count + [answer] * 100_000)


async def _pass(_: Ask) -> None:
    return None


# --- statuses ---


def status(
    code: int, body: str = "", *, retry_after: str | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    more = {**(headers or {}), **({} if retry_after is None else {"Retry-After": retry_after})}

    async def answer(_: Ask) -> web.StreamResponse:
        return web.Response(status=code, text=body, headers=more)

    return answer


def empty(code: int = 204) -> Answer:
    async def answer(_: Ask) -> web.StreamResponse:
        return web.Response(status=code)

    return answer


def html(code: int = 200) -> Answer:
    async def answer(_: Ask) -> web.StreamResponse:
        return web.Response(status=code, text="<html><h1>Welcome!</h1></html>", content_type="text/html")

    return answer


def redirect(code: int, target: str) -> Answer:
    return status(code, headers={"Location": target})


def challenge(code: int = 401, value: str = 'Bearer realm="mcp"') -> Answer:
    return status(code, headers={"WWW-Authenticate": value})


def session_lost(how: Lost = "404 -32001") -> Answer:
    """The ways in which servers say that they know no such session."""

    async def answer(ask: Ask) -> web.StreamResponse:
        code, _, error = how.partition(" ")
        if not error:
            return web.Response(status=int(code), text="Not Found")
        said = {"code": int(error), "message": "Session not found"}
        body = {"jsonrpc": "2.0", "error": said, "id": ask.id if code == "200" else None}
        return web.Response(status=int(code), body=json.dumps(body).encode(), headers=JSON)

    return answer


def error(code: int, message: str = "no", *, status: int = 200, data: Any = None) -> Answer:
    """An error of the protocol."""

    async def answer(ask: Ask) -> web.StreamResponse:
        return web.Response(status=status, body=error_to(ask, code, message, data), headers=JSON)

    return answer


# --- bodies ---


def body(spell: Callable[[Ask], bytes], *, headers: Mapping[str, str] = JSON, status: int = 200) -> Answer:
    """Any body at all, as if it were a reply."""

    async def answer(ask: Ask) -> web.StreamResponse:
        return web.Response(status=status, body=spell(ask), headers=headers)

    return answer


def foreign_id(identity: Any = "somebody-else") -> Answer:
    return body(lambda ask: reply_to(ask, id=identity))


def raw(spell: Callable[[Ask], bytes], *, close: bool = True) -> Answer:
    """Bytes on the connection that no HTTP library would write."""

    async def answer(ask: Ask) -> web.StreamResponse:
        transport = ask.http.transport
        assert transport is not None
        transport.write(spell(ask))
        if not close:
            await asyncio.Event().wait()
        transport.close()
        await asyncio.sleep(1)  # until the closed connection cancels this handler
        return web.Response()

    return answer


def wrong_length(by: int, *, close: bool = True) -> Answer:
    """A `Content-Length` that is wrong by so many bytes: too long if positive."""

    def spell(ask: Ask) -> bytes:
        reply = reply_to(ask)
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(reply) + by}\r\n\r\n"
        )
        return head.encode() + reply

    return raw(spell, close=close)


Coding = Literal["gzip", "deflate", "gzip, gzip"]


def bomb(coding: Coding, size: int) -> Answer:
    """A short body that becomes a reply with `size` bytes of text."""

    async def answer(ask: Ask) -> web.StreamResponse:
        before, after = reply_to(ask, "@").split(b"@")
        packed = _packed(coding, before, after, size)
        return await _stream(ask, [packed], {**JSON, "Content-Encoding": coding})

    return answer


@functools.lru_cache(maxsize=4)
def _packed(coding: Coding, before: bytes, after: bytes, size: int) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31 if coding.startswith("gzip") else 15)
    parts = [packer.compress(before)]
    megabyte = b"0" * 2**20
    for _ in range(size // 2**20):
        parts.append(packer.compress(megabyte))
    parts += [packer.compress(megabyte[: size % 2**20]), packer.compress(after), packer.flush()]
    packed = b"".join(parts)
    return gzip.compress(packed) if coding == "gzip, gzip" else packed


def endless(piece: bytes = b"0" * 65536, *, headers: Mapping[str, str] = JSON) -> Answer:
    """A body that goes on for as long as somebody reads it."""

    async def answer(ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(ask.http)
        await response.write(b'data: {"' if headers is EVENTS else b'{"jsonrpc":"2.0","text":"')
        while True:
            await response.write(piece)

    return answer


def endless_event(piece: bytes = b"0" * 65536) -> Answer:
    """A server-sent event that never ends."""
    return endless(piece, headers=EVENTS)


def drip(seconds: float, *, headers: Mapping[str, str] = JSON) -> Answer:
    """A reply that comes byte by byte, with a pause before each, and never to an end."""

    async def answer(ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(ask.http)
        while True:
            await response.write(b":" if headers is EVENTS else b" ")
            await asyncio.sleep(seconds)

    return answer


# --- connections ---


def never() -> Answer:
    """Nothing, not even a status."""

    async def answer(_: Ask) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return answer


def hang_up() -> Answer:
    """The connection ends instead of an answer."""
    return raw(lambda _: b"")


# --- streams of events ---


def events(spell: Callable[[bytes], bytes], *, end: bool = True) -> Answer:
    """A stream with whatever is made of the right reply; `end=False` leaves it open afterwards."""

    async def answer(ask: Ask) -> web.StreamResponse:
        return await _stream(ask, [spell(reply_to(ask))], EVENTS, end=end)

    return answer


async def _stream(
    ask: Ask, pieces: list[bytes], headers: Mapping[str, str], *, end: bool = True
) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    await response.prepare(ask.http)
    for piece in pieces:
        await response.write(piece)
    if not end:
        await asyncio.Event().wait()
    await response.write_eof()
    return response


def _in_lines(reply: bytes) -> bytes:
    return b"".join(
        b"data: " + line.encode() + b"\n" for line in json.dumps(json.loads(reply), indent=1).split("\n")
    )


ODD_EVENTS: Mapping[str, Callable[[bytes], bytes]] = {
    "plain": lambda reply: b"event: message\ndata: " + reply + b"\n\n",
    "no event name, no space": lambda reply: b"data:" + reply + b"\n\n",
    "CR only": lambda reply: b"event: message\rdata: " + reply + b"\r\r",
    "CRLF": lambda reply: b"event: message\r\ndata: " + reply + b"\r\n\r\n",
    "BOM": lambda reply: b"\xef\xbb\xbfdata: " + reply + b"\n\n",
    "comments": lambda reply: b": hello\n\n:\n: again\ndata: " + reply + b"\n: more\n\n: bye\n\n",
    "many lines of data": lambda reply: _in_lines(reply) + b"\n",
    "empty priming event": lambda reply: b"id: 1\ndata:\n\nid: 2\ndata: " + reply + b"\n\n",
    "unknown event": lambda reply: b"event: weather\ndata: sunny\n\ndata: " + reply + b"\n\n",
    "unknown field": lambda reply: b"mood: good\ndata: " + reply + b"\nnonsense\n\n",
    "huge retry": lambda reply: b"retry: 999999999\ndata: " + reply + b"\n\n",
    "negative retry": lambda reply: b"retry: -1\ndata: " + reply + b"\n\n",
    "retry in words": lambda reply: b"retry: soon\ndata: " + reply + b"\n\n",
    "line separators in the text": lambda reply: (
        b"data: " + reply.replace(b"fine", "fi\u2028\u2029\u0085ne".encode()) + b"\n\n"
    ),
}
"""Streams that hold the right reply all the same."""

SPOILED_EVENTS: Mapping[str, Callable[[bytes], bytes]] = {
    "end without a reply": lambda _: b": nothing to say\n\n",
    "end inside the reply": lambda reply: b"data: " + reply[: len(reply) // 2],
    "end before the blank line": lambda reply: b"data: " + reply + b"\n",
    "no JSON": lambda _: b"data: hello\n\n",
    "a foreign id": lambda reply: b'data: {"jsonrpc":"2.0","id":"nobody","result":{}}\n\n',
}
"""Streams from which no reply can be had."""
