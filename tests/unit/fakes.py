"""Replacements shared by unit tests: they record what they are given and answer from a script."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.calls.elicitation import Elicitor, elicitation_handlers
from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.calls.requests import Requests
from dragoman.calls.tool_call import ToolCall
from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import BuiltinTool, ServerTool
from dragoman.connections.server_requests import (
    NO_CONTEXT,
    Refusal,
    RequestContext,
    ServerRequests,
    UrlCompletions,
)
from dragoman.errors import CallError, DragomanError
from dragoman.hooks.active import ActiveHooks, HookSession
from dragoman.interaction import RelatedCall
from dragoman.names import ServerName
from dragoman.permissions.checker import call_of
from dragoman.permissions.decide import Verdict, decide
from dragoman.protocol import METHOD_NOT_FOUND
from dragoman.questions import Questions
from dragoman.wire.codec import encode_error, encode_result
from dragoman.wire.messages import MessageId, ToolDefinition


class RecordingWaiter:
    """Waits for a reply like an `asyncio.Future`, and remembers every resolution."""

    def __init__(self) -> None:
        self.resolutions: list[bytes | DragomanError] = []

    def done(self) -> bool:
        return bool(self.resolutions)

    def set_result(self, result: Raw) -> None:
        self.resolutions.append(bytes(result))

    def set_exception(self, exception: DragomanError) -> None:
        self.resolutions.append(exception)

    @property
    def outcome(self) -> bytes | DragomanError:
        (only,) = self.resolutions
        return only


class RecordingListener:
    """Hears what a server sends unasked."""

    def __init__(self) -> None:
        self.notifications: list[tuple[str, bytes]] = []
        self.requests: list[tuple[MessageId, str]] = []
        self.faults: list[tuple[str, str]] = []
        self.unrequested_count = 0

    def notified(self, method: str, params: Raw) -> None:
        self.notifications.append((method, bytes(params)))

    def asked(self, request_id: MessageId, method: str, params: Raw) -> None:
        self.requests.append((request_id, method))

    def faulted(self, kind: str, sample: str) -> None:
        self.faults.append((kind, sample))

    def unrequested(self, count: int) -> None:
        self.unrequested_count += count


class Nobody:
    """Answers no server's questions, as a host does that declares nothing."""

    completions = UrlCompletions()

    async def answer(
        self, method: str, params: Raw, context: RequestContext = NO_CONTEXT
    ) -> Mapping[str, Any]:
        raise Refusal(METHOD_NOT_FOUND, f"this client does not offer {method}")


async def _performed(call: ToolCall) -> CallOutcome:
    assert call.perform is not None
    try:
        found = await call.perform(call.arguments)
    except CallError as error:
        return outcome_of_error("", call.name, error)
    assert not isinstance(found, str)
    return CallOutcome(server="", tool=call.name, content=found)


class _AllowsAll:
    def preview(self, tool: BuiltinTool, arguments: Mapping[str, Any]) -> Verdict:
        call = call_of(tool, arguments)
        return decide(call, (), "bypassPermissions")


def no_hooks() -> ActiveHooks:
    session = HookSession("", "/", lambda: "default")
    return ActiveHooks((), session, lambda tool, arguments: (), lambda report: None)


def allowed_requests() -> Requests:
    """Requests that nothing stands in the way of: no rule, no hook, no log."""
    return Requests(_performed, no_hooks(), _AllowsAll())


def definition(name: str, schema: Mapping[str, Any] | bytes | None = None, **more: Any) -> ToolDefinition:
    raw = schema if isinstance(schema, bytes) else msgspec.json.encode(schema or {"type": "object"})
    return ToolDefinition(name, Raw(raw), **more)


def tool(
    schema: Mapping[str, Any] | bytes | None = None, *, server: str = "box", name: str = "open"
) -> ServerTool:
    return ServerTool(ServerName(server), qualify(server, name), definition(name, schema))


def person_of(forms: Any = None, urls: Any = None) -> Any:
    """A person for whom these answer."""
    given = {"elicit_form": forms, "elicit_url": urls, "wait_for_url": urls}
    found = {name: getattr(by, name) for name, by in given.items() if hasattr(by, name)}
    return SimpleNamespace(**found) if found else None


def elicitor_of(person: Any, hooks: ActiveHooks | None = None) -> Elicitor:
    return Elicitor(Questions(person), hooks or no_hooks(), lambda server: None)


def requests_answered_by(forms: Any = None, urls: Any = None) -> ServerRequests:
    """The table of a server "s" whose elicitations these answer."""
    return ServerRequests(elicitation_handlers("s", elicitor_of(person_of(forms, urls))))


A_CALL = RequestContext(calls=(RelatedCall("tools/call", "mcp__s__act", "call_1"),))


async def reply_of(
    requests: ServerRequests,
    request_id: MessageId,
    method: str,
    params: Raw,
    context: RequestContext = A_CALL,
) -> bytes:
    """What a server that sends this request in the course of a call is answered."""
    local = requests.local_reply(request_id, method, has_call=bool(context.calls))
    if local is not None:
        return local
    try:
        return encode_result(request_id, await requests.answer(method, params, context))
    except Refusal as refusal:
        return encode_error(request_id, refusal.code, refusal.message)
