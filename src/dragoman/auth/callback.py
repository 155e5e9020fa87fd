"""The return of the browser after a sign-in, and the loopback listener for it.

The listener is bound before the authorization URL is built, answers GET on one path, accepts the one answer
that belongs to its sign-in, and is closed afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Final, Self

from aiohttp import web

from dragoman.auth import pages
from dragoman.auth.authorization import CallbackAnswer, answer_in
from dragoman.auth.errors import Refused

PATH: Final = "/callback"
_LINE_LIMIT: Final = 16 * 1024
_SILENT: Final = logging.getLogger(f"{__name__}.silent")
_SILENT.disabled = True


class BrowserReturn:
    """Waits for the one answer with which a browser returns from a sign-in. Use as an async context manager;
    `redirect_uri` is known inside."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[CallbackAnswer] = asyncio.get_running_loop().create_future()
        self._accepts: Callable[[CallbackAnswer], bool] = lambda answer: False
        self._succeeded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._has_refused = False
        """Whether an answer was received that does not belong to this sign-in."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.finished(False)

    @property
    def redirect_uri(self) -> str:
        raise NotImplementedError

    def page_for(self, url: str) -> str:
        """The page that the person opens first, for this page of the authorization server."""
        return url

    async def wait(self, accepts: Callable[[CallbackAnswer], bool], seconds: float) -> CallbackAnswer:
        """The first answer that is accepted (with the right state); others have no effect."""
        self._accepts = accepts
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._answer)
        except TimeoutError:
            other = "; an answer with another state was refused" if self._has_refused else ""
            raise Refused(
                f"the browser did not return within {seconds:g} seconds{other}", "Start the sign-in again."
            ) from None

    def deliver(self, url: str) -> bool:
        """Takes a redirect URL that the person pasted; returns whether it belongs to this sign-in."""
        return self.take(answer_in(url))

    def take(self, answer: CallbackAnswer) -> bool:
        if self._answer.done() or not self._accepts(answer):
            self._has_refused = True
            return False
        self._answer.set_result(answer)
        return True

    def finished(self, succeeded: bool) -> None:
        """Decides which page the waiting browser gets."""
        if not self._succeeded.done():
            self._succeeded.set_result(succeeded)

    async def succeeds_within(self, seconds: float) -> bool:
        """Whether the sign-in succeeds within this time."""
        done, _ = await asyncio.wait([self._succeeded], timeout=seconds)
        return bool(done) and self._succeeded.result()

    async def last_page(self) -> str:
        """The page for the browser that has returned, once the sign-in has ended."""
        return pages.DONE if await asyncio.shield(self._succeeded) else pages.NOT_DONE


class CallbackListener(BrowserReturn):
    """The browser returns to a port of this machine."""

    def __init__(self, port: int | None = None, *, host_name: str = "127.0.0.1") -> None:
        """`host_name`: how the redirect URI names this machine (`127.0.0.1` or `localhost`)."""
        super().__init__()
        self._port = port or 0
        self._host_name = host_name
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=1024)
        application.router.add_get(PATH, self._returned, allow_head=False)
        application.router.add_route("*", "/{rest:.*}", self._other)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            # The library logs requests that it cannot read, with the code that they may contain.
            logger=_SILENT,
            handle_signals=False,
            max_line_size=_LINE_LIMIT,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        starting = asyncio.ensure_future(self._start(self._runner))
        try:
            await asyncio.shield(starting)
        except BaseException:
            # The runner does not stop a site that was cancelled while it started.
            await asyncio.wait([starting])
            await self._runner.cleanup()
            raise
        return self

    async def _start(self, runner: web.AppRunner) -> None:
        for listening in self._bind():
            await web.SockSite(runner, listening).start()

    async def __aexit__(self, *_: object) -> None:
        self.finished(False)
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def redirect_uri(self) -> str:
        return f"http://{self._host_name}:{self._port}{PATH}"

    def _bind(self) -> list[socket.socket]:
        """Binds 127.0.0.1, and the same port of ::1 if available: localhost may mean either."""
        try:
            first = socket.create_server(("127.0.0.1", self._port))
        except OSError as error:
            raise Refused(
                f"port {self._port} of this machine, to which the browser is to return, is not free "
                f"({os.strerror(error.errno or 0)})",
                "Is another sign-in under way? Otherwise change oauth.callbackPort.",
            ) from None
        self._port = first.getsockname()[1]
        try:
            return [first, socket.create_server(("::1", self._port), family=socket.AF_INET6)]
        except OSError:
            return [first]

    async def _returned(self, request: web.Request) -> web.Response:
        if not self._is_own_host(request.host) or not self.deliver(str(request.rel_url)):
            return pages.response(pages.NOT_EXPECTED, 400)
        return pages.response(await self.last_page(), 200)

    async def _other(self, request: web.Request) -> web.Response:
        return pages.response(pages.NOT_EXPECTED, 404)

    def _is_own_host(self, host: str) -> bool:
        return host in {f"{name}:{self._port}" for name in ("127.0.0.1", "localhost", "[::1]")}


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
