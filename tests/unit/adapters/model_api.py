"""A model API that says what it is told to say."""

from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from dragoman import Host
from dragoman.events import CallEvent, Event

Json = dict[str, Any]


class ModelApi:
    """Answers each request with the next of its replies, and keeps what it was sent."""

    def __init__(self) -> None:
        self.replies: list[Json] = []
        self.requests: list[Json] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        return web.json_response(self.replies[len(self.requests) - 1])


async def call_ids(host: Host, listener: AsyncIterator[Event]) -> set[str]:
    """By which ids events have named calls; the host is closed."""
    await host.close()
    return {event.call_id async for event in listener if isinstance(event, CallEvent)}
