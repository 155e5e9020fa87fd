"""Describes what a server offers to all its clients: its name, its revisions, and a handler for each method.

The capabilities follow from the handlers. A handler is given a `ClientRequest` and returns the result, or
raises `RequestError` or `InputRequired`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Raw, Struct

from dragoman.protocol import (
    INVALID_PARAMS,
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    RESOURCE_NOT_FOUND,
    REVISIONS,
    Era,
)

if TYPE_CHECKING:
    from dragoman.wire.server.request import ClientRequest

Json = dict[str, Any]
RequestId = str | int
LARGEST_ID: Final = 2**63 - 1
"""A larger integer cannot be encoded in the reply."""
ListKind = Literal["tools", "prompts", "resources"]
Result = Mapping[str, Any] | Raw
"""A `Raw` result is sent as it is; members that an era requires are added to a mapping only."""
Handler = Callable[["ClientRequest"], Awaitable[Result]]

_CAPABILITY_OF: Final = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "logging": "logging",
}
"""The first part of a method → the capability that a handler for it declares."""


class RequestError(Exception):
    """The request is answered with this error. `legacy_code`: its code in the legacy era, if that differs."""

    def __init__(
        self, code: int, message: str, data: object = None, *, legacy_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self._code = code
        self._legacy_code = code if legacy_code is None else legacy_code

    def code_in(self, era: Era) -> int:
        return self._legacy_code if era == "legacy" else self._code


class ResourceNotFound(RequestError):
    def __init__(self, uri: str) -> None:
        message = f"no resource {uri}"
        super().__init__(INVALID_PARAMS, message, {"uri": uri}, legacy_code=RESOURCE_NOT_FOUND)


class InputRequired(BaseException):
    """The request is answered with `input_required` (modern era); the client sends it again with the input.

    Not an `Exception`: like a cancellation, it passes through code that handles the errors of a tool.
    """

    def __init__(self, requests: Mapping[str, Json], state: str | None = None) -> None:
        """`requests`: method and params of each, by key; `state`: the client returns it with the input."""
        super().__init__("input required")
        self.requests = requests
        self.state = state


class Client(Struct, kw_only=True):
    """The client that sent a request: in the legacy era one for a whole connection, in the modern era one per
    request."""

    era: Era
    revision: str
    info: Json = {}
    capabilities: Json = {}
    log_level: str | None = "info"
    """Log messages below this level are not sent; None: no log messages are sent."""
    is_initialized: bool = True
    """False between `initialize` and `notifications/initialized`."""


def _report(method: str, error: BaseException) -> None:
    context = {"message": f"the handler of {method} failed", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)


class Service(Struct, kw_only=True):
    """A program that has to distinguish its clients makes one for each connection."""

    name: str
    version: str
    handlers: Mapping[str, Handler]
    """The handlers by method. Handlers for notifications are called too; their results are not used.

    `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` are called in addition to what the
    connection does itself; the latter two also in the modern era, for each URI of `subscriptions/listen`.
    """
    instructions: str | None = None
    revisions: tuple[str, ...] = REVISIONS
    list_changes: frozenset[ListKind] = frozenset()
    """The lists whose changes are reported."""
    more_capabilities: Mapping[str, Any] = {}
    report: Callable[[str, BaseException], None] = _report
    """Receives what a handler raises besides `RequestError`: the client only learns of an internal error.
    By default, it is logged as an error of the event loop."""

    @property
    def info(self) -> Json:
        return {"name": self.name, "version": self.version}

    @property
    def legacy_revisions(self) -> list[str]:
        return [revision for revision in LEGACY_REVISIONS if revision in self.revisions]

    @property
    def modern_revisions(self) -> list[str]:
        return [revision for revision in MODERN_REVISIONS if revision in self.revisions]

    def capabilities(self) -> Json:
        kinds = (_CAPABILITY_OF.get(method.partition("/")[0]) for method in self.handlers)
        found: Json = {kind: {} for kind in kinds if kind is not None}
        for kind in sorted(self.list_changes & found.keys()):
            found[kind]["listChanged"] = True
        if "resources/subscribe" in self.handlers:
            found["resources"]["subscribe"] = True
        return {**found, **self.more_capabilities}

    async def run(self, handler: Handler, request: ClientRequest) -> None:
        """Calls a handler whose result is not awaited."""
        try:
            await handler(request)
        except Exception as error:  # border: an exception of a handler fails only its own request
            self.report(request.method, error)
