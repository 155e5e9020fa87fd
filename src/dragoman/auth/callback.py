"""The loopback listener to which the browser returns after a sign-in.

It is bound before the authorization URL is built, answers GET on one path, accepts the one answer that
belongs to its sign-in, and is closed afterwards. Its pages are fixed: nothing of a request appears in them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Final

from aiohttp import web

from dragoman.auth.authorization import CallbackAnswer, answer_in
from dragoman.auth.errors import Refused

PATH: Final = "/callback"
_LINE_LIMIT: Final = 16 * 1024
_SILENT: Final = logging.getLogger(f"{__name__}.silent")
_SILENT.disabled = True

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Connection": "close",
}
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} · Dragoman</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 100vh;
  margin: 0; background: light-dark(#f4f5f7, #15171a); color: light-dark(#1c1f23, #e8eaed) }}
main {{ max-width: 26rem; margin: 1rem; padding: 2.5rem 2.5rem 2rem; text-align: center; border-radius: 14px;
  background: light-dark(#fff, #1f2226); box-shadow: 0 8px 30px rgb(0 0 0 / .12) }}
.mark {{ width: 56px; height: 56px; margin: 0 auto 1rem; border-radius: 50%; display: grid;
  place-items: center; font-size: 28px; color: #fff; background: {color} }}
h1 {{ font-size: 1.35rem; margin: 0 0 .5rem }}
p {{ margin: 0; color: light-dark(#555c66, #a8afb8) }}
</style></head>
<body><main><div class="mark" aria-hidden="true">{mark}</div><h1>{title}</h1><p>{text}</p></main></body>
</html>
"""
_DONE: Final = _PAGE.format(
    title="You are signed in",
    mark="✓",
    color="#1f883d",
    text="Dragoman has received the answer. You can close this page and return to where you started.",
)
_NOT_DONE: Final = _PAGE.format(
    title="The sign-in did not succeed",
    mark="!",
    color="#bf5b04",
    text="Nothing was changed. Return to where you started: the reason is shown there.",
)
_NOT_EXPECTED: Final = _PAGE.format(
    title="Nothing to do here",
    mark="?",
    color="#6e7781",
    text="This address does not belong to a sign-in that is under way. You can close this page.",
)


class CallbackListener:
    """Use as an async context manager; `redirect_uri` is known inside."""

    def __init__(self, port: int | None = None, *, host_name: str = "127.0.0.1") -> None:
        """`host_name`: how the redirect URI names this machine (`127.0.0.1` or `localhost`)."""
        self._port = port or 0
        self._host_name = host_name
        self._answer: asyncio.Future[CallbackAnswer] = asyncio.get_running_loop().create_future()
        self._accepts: Callable[[CallbackAnswer], bool] = lambda answer: False
        self._succeeded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._has_refused = False
        """Whether an answer came that does not belong to this sign-in."""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> CallbackListener:
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
        try:
            for listening in self._bind():
                await web.SockSite(self._runner, listening).start()
        except BaseException:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._succeeded.done():
            self._succeeded.set_result(False)
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def redirect_uri(self) -> str:
        return f"http://{self._host_name}:{self._port}{PATH}"

    def _bind(self) -> list[socket.socket]:
        """127.0.0.1, and the same port of ::1 where there is one: localhost may mean either."""
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

    async def wait(self, accepts: Callable[[CallbackAnswer], bool], seconds: float) -> CallbackAnswer:
        """The first answer that is accepted (whose state is right); others change nothing."""
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
        """Takes a redirect URL that the person pasted; whether it belongs to this sign-in."""
        return self._take(answer_in(url))

    def _take(self, answer: CallbackAnswer) -> bool:
        if self._answer.done() or not self._accepts(answer):
            self._has_refused = True
            return False
        self._answer.set_result(answer)
        return True

    def finished(self, succeeded: bool) -> None:
        """Decides which page the waiting browser gets."""
        if not self._succeeded.done():
            self._succeeded.set_result(succeeded)

    async def _returned(self, request: web.Request) -> web.Response:
        if not self._is_own_host(request.host) or not self._take(answer_in(str(request.rel_url))):
            return _page(_NOT_EXPECTED, 400)
        succeeded = await asyncio.shield(self._succeeded)
        return _page(_DONE if succeeded else _NOT_DONE, 200)

    async def _other(self, request: web.Request) -> web.Response:
        return _page(_NOT_EXPECTED, 404)

    def _is_own_host(self, host: str) -> bool:
        return host in {f"{name}:{self._port}" for name in ("127.0.0.1", "localhost", "[::1]")}


def _page(text: str, status: int) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", headers=_HEADERS)


def is_free(port: int) -> bool:
    """Whether the port can be bound now."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
