"""Requests that servers may send to the host: a table of methods, and the answers.

Each row has the capabilities that are declared to the server for it. The same table serves requests of the
legacy era and `input_required` results of the modern era. A request without a row is refused, and so is one
that belongs to no call, where the row says that it must.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from dragoman.cleaning import cut
from dragoman.errors import HostClosed
from dragoman.interaction import RelatedCall
from dragoman.protocol import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.questions import OpenQuestion, is_cancelled
from dragoman.wire.codec import can_be_encoded, encode_error, encode_result
from dragoman.wire.messages import MessageId

RECENT_LIMIT: Final = 32
ID_LIMIT: Final = 1000
"""Characters of an elicitation id."""


class Refusal(Exception):
    """A request is not answered; `code` and the text say why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestContext(Struct, frozen=True, kw_only=True):
    """What is known of a request besides its parameters."""

    calls: tuple[RelatedCall, ...] = ()
    """The call that it belongs to; several, if it is one of these and not known which."""
    within: OpenQuestion | None = None
    """The question that the call helps to answer, if it was made for that."""
    sampling_depth: int = 0
    """Sampling requests that the call helps to answer, one within the other."""
    is_input_round: bool = False
    """Whether it came in an `input_required` result: the server does not wait, and is sent the call again
    with the answer."""


NO_CONTEXT = RequestContext()


class RequestHandler(Struct, frozen=True):
    """Answers the requests of one method."""

    method: str
    capabilities: Mapping[str, Any]
    """What is declared to the server."""
    answer: Callable[[Raw, RequestContext], Awaitable[Mapping[str, Any]]]
    """The result for these parameters; raises `Refusal`."""
    needs_call: bool = True
    """Whether it is refused while no call of the server is under way."""


class UrlCompletions:
    """Waits for `notifications/elicitation/complete` of one server."""

    def __init__(self) -> None:
        self._expected: dict[str, list[asyncio.Event]] = {}
        self._recent: deque[str] = deque(maxlen=RECENT_LIMIT)
        """Completed before they were waited for: the report may come right behind the error -32042."""

    @contextlib.contextmanager
    def expecting(self, ids: Collection[str]) -> Generator[Mapping[str, asyncio.Event]]:
        """By elicitation id, what is set when the server reports it complete, or has done so just before."""
        events = {each: asyncio.Event() for each in ids if each}
        for each, event in events.items():
            self._expected.setdefault(each, []).append(event)
            if each in self._recent:
                self._recent.remove(each)
                event.set()
        try:
            yield events
        finally:
            for each, event in events.items():
                self._expected[each].remove(event)
                if not self._expected[each]:
                    del self._expected[each]

    def completed(self, elicitation_id: str) -> None:
        waiting = self._expected.get(elicitation_id)
        if waiting is None and len(elicitation_id) <= ID_LIMIT:
            self._recent.append(elicitation_id)
        for event in waiting or ():
            event.set()


class ServerRequests:
    """The handlers for the requests of one server."""

    def __init__(self, handlers: Sequence[RequestHandler] = ()) -> None:
        self._handlers = {handler.method: handler for handler in handlers}
        self.completions = UrlCompletions()

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What is declared to the server."""
        return {name: part for each in self._handlers.values() for name, part in each.capabilities.items()}

    def local_reply(self, request_id: MessageId, method: str, *, has_call: bool) -> bytes | None:
        """The reply that is known without a handler: to a ping, or why the request is refused; None if a
        handler answers it."""
        handler = self._handlers.get(method)
        if handler is None and method == "ping":
            return encode_result(request_id, {})
        if handler is None:
            return encode_error(request_id, METHOD_NOT_FOUND, _not_offered(method))
        if handler.needs_call and not has_call:
            why = f"{method} is refused: it belongs to no call that is under way"
            return encode_error(request_id, INVALID_REQUEST, why)
        return None

    def needs_call(self, method: str) -> bool:
        return self._handlers[method].needs_call

    async def answer(
        self, method: str, params: Raw, context: RequestContext = NO_CONTEXT
    ) -> Mapping[str, Any]:
        """The result of a request that has a handler, or `Refusal`."""
        handler = self._handlers.get(method)
        if handler is None:
            raise Refusal(METHOD_NOT_FOUND, _not_offered(method))
        try:
            result = await handler.answer(params, context)
        except (Refusal, HostClosed):
            raise
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise Refusal(INTERNAL_ERROR, f"{method} could not be answered") from None
        except Exception:  # border: a program's model or front end, or a request that nothing was made for
            raise Refusal(INTERNAL_ERROR, f"{method} could not be answered") from None
        if not can_be_encoded(result):
            raise Refusal(INTERNAL_ERROR, f"the answer to {method} cannot be written as JSON")
        return result


def _not_offered(method: str) -> str:
    return f"this client does not offer {cut(method, 200)}"
