"""Replaces the results of a test server by given ones, by method, over any transport. For example:

async with websocket() as server:
    replace_results(server, {"tools/list": lambda params: {"tools": [{"name": 7}]}})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.wire.server.service import RequestError
from tests.servers.web.http_sse import HttpSse
from tests.servers.web.streamable import Streamable
from tests.servers.web.tools import Honest
from tests.servers.web.websocket import WebSocketSite

Json = dict[str, Any]
Lie = Callable[[Json], Any]
"""From the parameters of a request to its result; an `Exception` that it returns is raised."""


def error(code: int, message: str = "no", data: Any = None) -> Exception:
    """What a lie returns to answer with an error of the protocol."""
    return RequestError(code, message, data)


def replace_results(server: Streamable | HttpSse | WebSocketSite, lies: Mapping[str, Lie]) -> None:
    """From now on, the server's answers to these methods are the lies."""
    for method, lie in lies.items():
        server.in_memory.stories[method] = _story(lie)


def _story(lie: Lie) -> Any:
    async def tell(params: Json, honest: Honest) -> msgspec.Raw:
        answer = lie(params)
        if isinstance(answer, Exception):
            raise answer
        return msgspec.Raw(msgspec.json.encode(answer))

    return tell
