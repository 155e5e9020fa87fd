"""Requests of a server that are not tool calls: lists, resources, prompts, completion, subscriptions.

Each request takes the same steps as a tool call, in the same function: it is passed to the pipeline as a call
of a built-in tool (`read_mcp_resource`, `get_mcp_prompt` …) whose arguments name the server and the subject.
Rules, hooks and the audit log see it under that name; rules and hooks about the server apply as well. A
program's own request needs no allow rule: it is made unless a rule or a hook denies it, or wants a question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, structs

from dragoman.calls.outcome import CallOutcome
from dragoman.calls.sending import Listed, Sender, current_request
from dragoman.calls.tool_call import ToolCall, new_call_id
from dragoman.catalog.prompts import Completion, PromptMessage, PromptResult
from dragoman.catalog.resources import ResourceContents
from dragoman.catalog.tools import BuiltinTool
from dragoman.content.blocks import Block, ResourceData, TextBlock
from dragoman.errors import DragomanError, PermissionRefused
from dragoman.hooks.active import ActiveHooks
from dragoman.interaction import LOCAL_CALLER, Caller
from dragoman.permissions.checker import PermissionChecker
from dragoman.servers.lists import ListReader
from dragoman.servers.server import Server

T = TypeVar("T")
L = TypeVar("L", bound=Struct)


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


async def _is_performed(arguments: Mapping[str, Any]) -> str:
    raise NotImplementedError  # each request brings its own function


def _kind(
    called: str,
    does: str,
    /,
    *required: str,
    subject: str | None = None,
    only_reads: bool = True,
    **properties: Any,
) -> BuiltinTool:
    return BuiltinTool(
        called,
        _is_performed,
        title=does,
        description=does,
        input_schema=object_schema({"server": _TEXT, **properties}, "server", *required),
        annotations={"readOnlyHint": only_reads, "idempotentHint": True},
        server_argument="server",
        subject_argument=subject,
    )


LIST_SECONDS: Final = 5.0
"""How long a list of all servers waits for each of them."""
LATE_SECONDS: Final = 0.05
"""The same for a server that did not answer in time the last time."""
_TEXT: Final = {"type": "string"}

LIST_RESOURCES: Final = _kind("list_mcp_resources", "List resources or resource templates")
READ_RESOURCE: Final = _kind("read_mcp_resource", "Read a resource, or subscribe to it", "uri", uri=_TEXT)
LIST_PROMPTS: Final = _kind("list_mcp_prompts", "List prompts")
GET_PROMPT: Final = _kind(
    "get_mcp_prompt", "Get a prompt", "name", subject="name", name=_TEXT, arguments={"type": "object"}
)
COMPLETE: Final = _kind(
    "complete_mcp_argument",
    "Complete an argument of a prompt (name) or of a resource template (uri)",
    "argument",
    "value",
    subject="name",
    name=_TEXT,
    uri=_TEXT,
    argument=_TEXT,
    value=_TEXT,
    given={"type": "object"},
)
GET_TASK: Final = _kind(
    "get_mcp_task", "Get the state of a task", "tool", subject="tool", tool=_TEXT, task=_TEXT
)
CANCEL_TASK: Final = _kind(
    "cancel_mcp_task", "Cancel a task", "tool", subject="tool", only_reads=False, tool=_TEXT, task=_TEXT
)
KINDS: Final[Mapping[str, BuiltinTool]] = {
    kind.name: kind
    for kind in (LIST_RESOURCES, READ_RESOURCE, LIST_PROMPTS, GET_PROMPT, COMPLETE, GET_TASK, CANCEL_TASK)
}
"""By the names under which rules, hooks and the audit log know them."""


class HookView(Struct, Generic[T], frozen=True):
    """How hooks see a result, and how their texts become part of it."""

    shown: Callable[[T], tuple[Block, ...]]
    replaced: Callable[[T, tuple[str, ...]], T]
    """The result with these texts in place of everything that the server sent."""
    extended: Callable[[T, tuple[str, ...]], T]
    """The result with these texts after it."""


class Requests:
    """Makes requests through `call`, the pipeline's entry."""

    def __init__(
        self,
        call: Callable[[ToolCall], Awaitable[CallOutcome]],
        hooks: ActiveHooks,
        permissions: PermissionChecker,
        caller: Caller = LOCAL_CALLER,
    ) -> None:
        self._call = call
        self._hooks = hooks
        self._permissions = permissions
        self._caller = caller

    def for_caller(self, caller: Caller) -> Requests:
        return Requests(self._call, self._hooks, self._permissions, caller)

    async def make(
        self,
        kind: BuiltinTool,
        arguments: Mapping[str, Any],
        perform: Callable[[Mapping[str, Any]], Awaitable[T]],
        view: HookView[T],
        call_id: str | None = None,
    ) -> T:
        """The result of `perform`, which is given the arguments as hooks leave them. `PermissionRefused` if
        it may not be made. `call_id`: as in events and hooks, and in questions of the server."""
        made: list[tuple[T, tuple[Block, ...]]] = []
        call_id = call_id or new_call_id()

        async def run(given: Mapping[str, Any]) -> tuple[Block, ...]:
            token = current_request.set((call_id, self._caller))
            try:
                result = await perform(given)
            finally:
                current_request.reset(token)
            shown = view.shown(result) if self._hooks.wants("PostToolUse", kind, given) else ()
            made.append((result, shown))
            return shown

        outcome = await self._call(
            ToolCall(
                kind.name,
                arguments,
                builtin_tools={kind.name: kind},
                perform=run,
                caller=self._caller,
                call_id=call_id,
            )
        )
        if outcome.error is not None:
            raise outcome.error
        return _apply_hook_changes(*made[-1], outcome.content, view)

    async def listed(
        self,
        kind: BuiltinTool,
        sender: Sender,
        reader_of: Callable[[Server], ListReader[L]],
        server: str | None,
        *,
        fresh: bool,
    ) -> Listed[L]:
        """One server's list, or those of all servers that have one.

        Only if one server is named, its absence or a refusal is an error, and its list is waited for as long
        as any result. Without a name, a server that rules deny is not shown, and no question is asked about
        one to which an ask rule applies.
        """

        async def perform(given: Mapping[str, Any]) -> Listed[L]:
            asked = sender.known(given["server"])
            listing = sender.list_of(reader_of(asked), asked, fresh=fresh)
            return await (_in_time(reader_of(asked), asked, listing) if server is None else listing)

        def one(name: str) -> Awaitable[Listed[L]]:
            return self.make(kind, {"server": name}, perform, LISTED)

        if server is not None:
            return await one(sender.known(server).name)
        servers = [each for _, each in sorted(sender.servers.items())]
        found = await asyncio.gather(
            *(self._one_of_all(kind, each, reader_of(each).kind.capability, one) for each in servers)
        )
        return Listed(
            tuple(item for each in found for item in each.items),
            tuple(problem for each in found for problem in each.problems),
        )

    def leaves_out(self, kind: BuiltinTool, server: str) -> bool:
        """Whether a list of all servers is without this one, because of a rule."""
        return self._permissions.preview(kind, {"server": server}).behaviour != "allow"

    def denies(self, kind: BuiltinTool, arguments: Mapping[str, Any]) -> bool:
        """Whether a rule denies the request now."""
        return self._permissions.preview(kind, arguments).behaviour == "deny"

    async def _one_of_all(
        self,
        kind: BuiltinTool,
        server: Server,
        capability: str,
        one: Callable[[str], Awaitable[Listed[L]]],
    ) -> Listed[L]:
        verdict = self._permissions.preview(kind, {"server": server.name})
        if verdict.behaviour == "deny":
            return Listed()
        if server.session() is None:  # not waited for
            reason = server.absence
            return Listed(problems=() if reason is None else (f"{server.name}: {reason}",))
        if not server.offers(capability):
            return Listed()
        if verdict.behaviour == "ask":
            why = f"it is left out, because {verdict.reason} requires a question; name the server to be asked"
            return Listed(problems=(f"{server.name}: {why}",))
        try:
            return await one(server.name)
        except PermissionRefused:  # by a hook
            return Listed()
        except DragomanError as error:
            return Listed(problems=(f"{server.name}: {error}",))


async def _in_time(
    reader: ListReader[L], server: Server, listing: Coroutine[Any, Any, Listed[L]]
) -> Listed[L]:
    """What is known of the list if it takes long: one server does not delay the lists of all the others."""
    try:
        async with asyncio.timeout(LATE_SECONDS if reader.is_late else LIST_SECONDS):
            return await listing
    except TimeoutError:
        reader.is_late = True
        known = () if reader.known is None else reader.known.items
        why = f"its {reader.kind.what} were not received within {LIST_SECONDS:g} s"
        return Listed(tuple(known), (f"{server.name}: {why}; name the server to wait longer",))


def _apply_hook_changes(
    result: T, shown: tuple[Block, ...], content: tuple[Block, ...], view: HookView[T]
) -> T:
    if content == shown:
        return result
    is_kept = content[: len(shown)] == shown
    added = content[len(shown) :] if is_kept else content
    texts = tuple(block.as_text() for block in added)
    return view.extended(result, texts) if is_kept else view.replaced(result, texts)


def _as_json(value: Any) -> tuple[Block, ...]:
    return (TextBlock(msgspec.json.encode(value).decode()),)


def _parts(contents: ResourceContents, texts: tuple[str, ...]) -> tuple[ResourceData, ...]:
    return tuple(ResourceData(contents.uri, text=text) for text in texts)


def _messages(texts: tuple[str, ...]) -> tuple[PromptMessage, ...]:
    return tuple(PromptMessage("user", TextBlock(text)) for text in texts)


def _shown_part(part: ResourceData) -> Block:
    return TextBlock(part.text if part.text is not None else f"[data of {part.uri}]")


LISTED: Final = HookView[Listed[Any]](
    lambda listed: _as_json(listed.items),
    lambda _, texts: Listed(problems=texts),
    lambda listed, texts: structs.replace(listed, problems=(*listed.problems, *texts)),
)
CONTENTS: Final = HookView[ResourceContents](
    lambda contents: tuple(map(_shown_part, contents.contents)),
    lambda contents, texts: structs.replace(contents, contents=_parts(contents, texts), problems=()),
    lambda contents, texts: structs.replace(
        contents, contents=(*contents.contents, *_parts(contents, texts))
    ),
)
PROMPT: Final = HookView[PromptResult](
    lambda result: tuple(message.content for message in result.messages),
    lambda result, texts: structs.replace(result, description="", messages=_messages(texts), problems=()),
    lambda result, texts: structs.replace(result, messages=(*result.messages, *_messages(texts))),
)
COMPLETION: Final = HookView[Completion](
    lambda completion: _as_json(completion.values),
    lambda _, texts: Completion(),
    lambda completion, _: completion,
)
NOTHING_SHOWN: Final = HookView[Any](lambda _: (), lambda result, _: result, lambda result, _: result)
