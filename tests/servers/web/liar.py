"""A server whose answers are made up, by method, and then travel as the others' do over any transport.

I own: putting a test's words in the place of the zoo's. For example:

    async with websocket() as server:
        liar(server, {"tools/list": lambda params: {"tools": [{"name": 7}]}})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.testing import server as testing_server
from tests.servers.web.http_sse import HttpSse
from tests.servers.web.streamable import Streamable
from tests.servers.web.websocket import WebSocketSite

Json = dict[str, Any]
Lie = Callable[[Json], Any]
"""From the parameters of a request to its result; an `Exception` that it returns is raised."""


def error(code: int, message: str = "no", data: Any = None) -> Exception:
    """What a lie returns to answer with an error of the protocol."""
    return testing_server._Refusal(code, message, data)


def liar(server: Streamable | HttpSse | WebSocketSite, lies: Mapping[str, Lie]) -> None:
    """From now on, the server's answers to these methods are the lies."""
    honest = server.zoo._result

    async def result(method: str, params: Json, send: Callable[[bytes], None]) -> Json:
        if method not in lies:
            return await honest(method, params, send)
        answer = lies[method](params)
        if isinstance(answer, Exception):
            raise answer
        return answer

    server.zoo._result = result  # type: ignore[method-assign]
