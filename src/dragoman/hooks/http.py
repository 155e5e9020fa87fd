"""Hooks of type `http`: sends the event as JSON with POST and reads the answer.

Keeps one client per URL, and limits its requests at the same time and the size of bodies. Redirects are not
followed, because they would send arguments and headers to another host. The caller sets time limits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from dragoman.hooks.declared import Post

if TYPE_CHECKING:  # aiohttp is loaded when the first hook is sent
    from aiohttp import ClientSession

ANSWER_LIMIT_BYTES: Final = 1024 * 1024
REQUESTS_AT_ONCE: Final = 32
"""The most requests of one hook at the same time. More could use up the file descriptors of the process, and
a hook that fails for that denies nothing."""


class HttpHookFailure(Exception):
    """The request failed; the text says why."""


class HttpHooks:
    def __init__(self) -> None:
        self._clients: dict[Post, ClientSession] = {}
        self._places: dict[Post, asyncio.Semaphore] = {}

    def place(self, post: Post) -> asyncio.Semaphore:
        """To be held by each request. Waiting for it is not part of a hook's time."""
        return self._places.setdefault(post, asyncio.Semaphore(REQUESTS_AT_ONCE))

    async def send(self, post: Post, given: bytes) -> bytes:
        """Sends the event; returns the body of a successful response, which may be empty."""
        from dragoman.transports import web

        headers = {**dict(post.headers), "Content-Type": web.JSON, "Accept": web.JSON}
        client = self._client(post)
        address = web.Network(post.url).address
        try:
            async with client.post(address, data=given, headers=headers, allow_redirects=False) as response:
                if not 200 <= response.status < 300:
                    raise HttpHookFailure(f"it answered with HTTP {response.status}")
                return await web.read_body(response, ANSWER_LIMIT_BYTES)
        except web.TooLarge:
            raise HttpHookFailure(
                f"its answer has more than {ANSWER_LIMIT_BYTES // 1024 // 1024} MB"
            ) from None
        except web.FAULTS as error:
            raise HttpHookFailure(web.failure_of(error).cause) from None

    def _client(self, post: Post) -> ClientSession:
        client = self._clients.get(post)
        if client is None:
            from dragoman.transports import web

            network = web.Network(post.url, proxy=web.proxy_for(post.url))
            client = self._clients[post] = web.open_client("hook", network)
        return client

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()
