"""Hooks of type `http`: sends the event as JSON with POST and reads the answer.

Keeps one client per URL, and limits its requests at the same time and the size of bodies. Redirects are not
followed, because they would send arguments and headers to another host. The caller sets time limits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from dragoman.hooks.declared import HttpHook

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
        self._clients: dict[HttpHook, ClientSession] = {}
        self._slots: dict[HttpHook, asyncio.Semaphore] = {}

    def slots_of(self, hook: HttpHook) -> asyncio.Semaphore:
        """The semaphore that each request of the hook acquires. Waiting for it is not part of the hook's time
        limit."""
        return self._slots.setdefault(hook, asyncio.Semaphore(REQUESTS_AT_ONCE))

    async def send(self, hook: HttpHook, given: bytes) -> bytes:
        """Sends the event; returns the body of a successful response, which may be empty."""
        from dragoman.transports import web

        headers = {**dict(hook.headers), "Content-Type": web.JSON, "Accept": web.JSON}
        client = self._client(hook)
        address = web.Network(hook.url).address
        try:
            async with client.post(address, data=given, headers=headers, allow_redirects=False) as response:
                if not 200 <= response.status < 300:
                    raise HttpHookFailure(f"it answered with HTTP {response.status}")
                body = await web.read_body(response, ANSWER_LIMIT_BYTES)
        except web.TooLarge:
            raise HttpHookFailure(
                f"its answer has more than {ANSWER_LIMIT_BYTES // 1024 // 1024} MB"
            ) from None
        except web.FAULTS as error:
            raise HttpHookFailure(web.failure_of(error).cause) from None
        if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            # Of a proxy or a sign-in in front of the endpoint: the hook has not decided.
            raise HttpHookFailure("it answered with a page (HTML or XML)")
        return body

    def _client(self, hook: HttpHook) -> ClientSession:
        client = self._clients.get(hook)
        if client is None:
            from dragoman.transports import web

            network = web.Network(hook.url, proxy=web.proxy_for(hook.url))
            client = self._clients[hook] = web.open_client("hook", network)
        return client

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()
