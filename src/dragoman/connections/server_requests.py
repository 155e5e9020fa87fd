"""Requests that servers may send to the host: a table of methods, and the answers.

Each row has the capabilities that are declared to the server for it. The same table serves requests of the
legacy era and `input_required` results of the modern era. A request without a row is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from dragoman.protocol import METHOD_NOT_FOUND
from dragoman.wire.codec import encode_error, encode_result
from dragoman.wire.messages import MessageId


class Refusal(Exception):
    """A request is not answered; `code` and the text say why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestHandler(Struct, frozen=True):
    """Answers the requests of one method."""

    method: str
    capabilities: Mapping[str, Any]
    """What is declared to the server."""
    answer: Callable[[Raw], Awaitable[Mapping[str, Any]]]
    """The result for these parameters; raises `Refusal`."""


class ServerRequests:
    """The handlers for the requests of one server."""

    def __init__(self, handlers: Sequence[RequestHandler] = ()) -> None:
        self._handlers = {handler.method: handler for handler in handlers}

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What is declared to the server."""
        return {name: part for each in self._handlers.values() for name, part in each.capabilities.items()}

    def can_answer_locally(self, method: str) -> bool:
        """Whether the reply is known without a handler: to a ping, or that the method is not offered."""
        return method not in self._handlers

    def local_reply(self, request_id: MessageId, method: str) -> bytes:
        if method == "ping":
            return encode_result(request_id, {})
        return encode_error(request_id, METHOD_NOT_FOUND, _not_offered(method))

    async def reply(self, request_id: MessageId, method: str, params: Raw) -> bytes:
        """The message that answers a request."""
        if self.can_answer_locally(method):
            return self.local_reply(request_id, method)
        try:
            return encode_result(request_id, await self.answer(method, params))
        except Refusal as refusal:
            return encode_error(request_id, refusal.code, refusal.message)

    async def answer(self, method: str, params: Raw) -> Mapping[str, Any]:
        """The result of a request that has a handler, or `Refusal`."""
        handler = self._handlers.get(method)
        if handler is None:
            raise Refusal(METHOD_NOT_FOUND, _not_offered(method))
        return await handler.answer(params)


def _not_offered(method: str) -> str:
    return f"this client does not offer {method[:200]}"
