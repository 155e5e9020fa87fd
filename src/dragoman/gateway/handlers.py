"""Answers the requests of one client of the gateway, with the host, on behalf of its caller.

Every request goes through the host's pipeline, so rules, hooks, policy and the audit log apply. What a rule
denies is not listed, and is answered like what does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from dragoman.calls.outcome import CallOutcome
from dragoman.calls.pipeline import new_call_id
from dragoman.catalog.prompts import Completion, Prompt
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.catalog.tools import ServerTool
from dragoman.content.blocks import LargeBlock, UnknownBlock
from dragoman.content.result import Undecoded
from dragoman.errors import DragomanError, InputUnavailable, InvalidArguments, RemoteError, UnknownTool
from dragoman.gateway.exposed import exposed, exposed_uris, server_in
from dragoman.gateway.questions import RunningRequest
from dragoman.interaction import Caller
from dragoman.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_CLIENT_CAPABILITIES,
    MISSING_CLIENT_CAPABILITY,
)
from dragoman.wire.peer import Progress
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Handler, Json, RequestError, ResourceNotFound, Result

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway


class _Call(Struct):
    name: str
    arguments: dict[str, Any] = {}


class _Read(Struct):
    uri: str


class _GetPrompt(Struct):
    name: str
    arguments: dict[str, str] = {}


class _Reference(Struct):
    type: str
    name: str = ""
    uri: str = ""


class _Argument(Struct):
    name: str
    value: str


class _Given(Struct, frozen=True):
    arguments: dict[str, str] = {}


class _Complete(Struct):
    ref: _Reference
    argument: _Argument
    context: _Given = _Given()


class ClientHandlers:
    """The handlers for the requests of one client."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._host = gateway.host
        self._caller = caller
        self._resources = gateway.host.resources.for_caller(caller)
        self._prompts = gateway.host.prompts.for_caller(caller)
        self._watching: dict[str, asyncio.Task[None]] = {}
        """By the URI as the client spells it."""
        self.updated: Callable[[str], None] = _ignore
        """Called with the URI of a resource that has changed."""

    def table(self) -> Mapping[str, Handler]:
        return {
            "tools/list": self._list_tools,
            "tools/call": self._call,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }

    async def close(self) -> None:
        for task in self._watching.values():
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)

    # Tools.

    async def _list_tools(self, request: ClientRequest) -> Result:
        return {"tools": [_listed(name, tool) for name, tool in self._gateway.tools().items()]}

    async def _call(self, request: ClientRequest) -> Result:
        asked = request.decode(_Call)
        tool = self._gateway.tool(asked.name)
        if tool is None:
            raise RequestError(INVALID_PARAMS, f"Unknown tool: {asked.name[:200]}")
        return await self._run(
            request, tool.server, lambda running, call_id: self._made(asked, tool, running, call_id)
        )

    async def _made(self, asked: _Call, tool: ServerTool, running: RunningRequest, call_id: str) -> Result:
        def progressed(progress: Progress) -> None:
            running.request.progress(progress.progress, progress.total, progress.message)

        try:
            outcome = await self._host.call(
                tool.name,
                asked.arguments,
                forward=True,
                on_progress=progressed,
                meta=_passed_on(running.request),
                call_id=call_id,
                caller=self._caller,
            )
        except DragomanError as error:
            return _failed(str(error) + (f" {error.hint}" if error.hint else ""))
        if isinstance(outcome.error, InputUnavailable) and running.missing:
            raise RequestError(
                MISSING_CLIENT_CAPABILITY,
                str(outcome.error),
                {"requiredCapabilities": running.missing},
                legacy_code=INVALID_REQUEST,
            )
        return _result_of(outcome, running.request.client.era == "modern")

    # Resources.

    async def _list_resources(self, request: ClientRequest) -> Result:
        found = exposed_uris(await self._resources.list(), _uri_of)
        return {"resources": [_described(each, uri=uri) for uri, each in found.items()]}

    async def _list_templates(self, request: ClientRequest) -> Result:
        found = exposed_uris(await self._resources.templates(), _template_of)
        return {"resourceTemplates": [_described(each, uriTemplate=uri) for uri, each in found.items()]}

    async def _read(self, request: ClientRequest) -> Result:
        uri = request.decode(_Read).uri
        server, own = await self._located(uri)

        async def made(running: RunningRequest, call_id: str) -> Result:
            with _errors_about(uri):
                found = await self._resources.read(server, own, call_id=call_id)
            return {"contents": [_without_nulls(part) for part in found.contents]}

        return await self._run(request, server, made)

    async def _located(self, uri: str) -> tuple[str, str]:
        """The server of a resource, and the URI that it has there; `ResourceNotFound` if there is none."""
        named = server_in(uri)
        if named is not None and named[0] in self._host.servers:
            return named
        try:
            return await self._resources.server_of(uri), uri
        except InvalidArguments:
            raise ResourceNotFound(uri[:1000]) from None

    async def _subscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Read).uri
        if uri not in self._watching:
            server, own = await self._located(uri)
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watching[uri] = asyncio.create_task(self._watch(uri, server, own, started))
            with _errors_about(uri):
                await started
        return {}

    async def _unsubscribe(self, request: ClientRequest) -> Result:
        task = self._watching.pop(request.decode(_Read).uri, None)
        if task is not None:
            task.cancel()
        return {}

    async def _watch(self, uri: str, server: str, own: str, started: asyncio.Future[None]) -> None:
        """Passes the changes of a resource on, until it is cancelled."""
        try:
            async with self._resources.subscribed(server, own) as updates:
                started.set_result(None)
                async for update in updates:
                    self.updated(uri + update.uri.removeprefix(own) if update.uri.startswith(own) else uri)
        except DragomanError as error:
            if not started.done():
                started.set_exception(error)
        finally:
            self._watching.pop(uri, None)
            started.cancel()

    # Prompts and completion.

    async def _exposed_prompts(self) -> Mapping[str, Prompt]:
        return exposed(await self._prompts.list(), plain=self._gateway.plain_names)

    async def _list_prompts(self, request: ClientRequest) -> Result:
        found = await self._exposed_prompts()
        return {"prompts": [_listed_prompt(name, prompt) for name, prompt in found.items()]}

    async def _get_prompt(self, request: ClientRequest) -> Result:
        asked = request.decode(_GetPrompt)
        prompt = (await self._exposed_prompts()).get(asked.name)
        if prompt is None:
            raise _unknown_prompt(asked.name)

        async def made(running: RunningRequest, call_id: str) -> Result:
            with _errors_about(asked.name):
                found = await self._prompts.get(prompt.name, asked.arguments, call_id=call_id)
            messages = [{"role": each.role, "content": _block(each.content)} for each in found.messages]
            return {"messages": messages, **({"description": found.description} if found.description else {})}

        return await self._run(request, prompt.server, made)

    async def _complete(self, request: ClientRequest) -> Result:
        asked = request.decode(_Complete)
        argument, given = asked.argument, asked.context.arguments
        with _errors_about(argument.name):
            if asked.ref.type == "ref/prompt":
                prompt = (await self._exposed_prompts()).get(asked.ref.name)
                if prompt is None:
                    raise _unknown_prompt(asked.ref.name)
                return _completion(
                    await self._prompts.complete(prompt.name, argument.name, argument.value, given=given)
                )
            templates = exposed_uris(await self._resources.templates(), _template_of)
            template = templates.get(asked.ref.uri)
            if template is None:
                raise ResourceNotFound(asked.ref.uri[:1000])
            return _completion(
                await self._resources.complete(
                    template.server, template.uri_template, argument.name, argument.value, given=given
                )
            )

    async def _set_level(self, request: ClientRequest) -> Result:
        return {}  # the connection has noted the level; messages below it are not passed on

    # All of them.

    async def _run(
        self, request: ClientRequest, server: str, made: Callable[[RunningRequest, str], Awaitable[Result]]
    ) -> Result:
        """The result of a request in the course of which the server may ask the client something."""
        questions = self._gateway.questions
        if questions.is_continued(request):
            return await questions.continue_(request, self._caller)
        call_id, running = new_call_id(), RunningRequest(request, self._caller)
        with self._gateway.running(server, running):
            return await questions.run(call_id, running, _as_coroutine(made(running, call_id)))


class _Meta(Struct, rename={"meta": "_meta"}):
    meta: dict[str, Any] = {}


_TRACE: Final = ("traceparent", "tracestate", "baggage")


def _passed_on(request: ClientRequest) -> Json:
    """What the server is given of a request's `_meta`: the trace context, and what the client declares."""
    given = request.decode(_Meta).meta
    trace = {key: given[key] for key in _TRACE if isinstance(given.get(key), str)}
    return {**trace, META_CLIENT_CAPABILITIES: request.client.capabilities}


def _ignore(uri: str) -> None: ...


async def _as_coroutine(work: Awaitable[Result]) -> Result:
    return await work


class _errors_about:
    """Turns errors of the host into errors of the protocol."""

    def __init__(self, subject: str) -> None:
        self._subject = subject[:1000]

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RemoteError):
            raise RequestError(error.remote_code, error.remote_message, error.remote_data) from None
        if isinstance(error, InvalidArguments | UnknownTool):
            raise RequestError(INVALID_PARAMS, str(error)) from None
        if isinstance(error, DragomanError):
            raise RequestError(INTERNAL_ERROR, str(error)) from None


def _unknown_prompt(name: str) -> RequestError:
    return RequestError(INVALID_PARAMS, f"Unknown prompt: {name[:200]}")


# Results.


def _result_of(outcome: CallOutcome, is_modern: bool) -> Result:
    if isinstance(outcome.error, RemoteError):
        error = outcome.error
        raise RequestError(error.remote_code, error.remote_message, error.remote_data)
    if outcome.forwarded is not None:
        return _forwarded(outcome.forwarded, is_modern)
    result: Json = {"content": [_block(block) for block in outcome.content], "isError": outcome.is_error}
    structured = outcome.structured_content
    if outcome.has_structured:
        result["structuredContent"] = structured.raw if _is_plain(structured) else outcome.structured
    if outcome.meta:
        result["_meta"] = dict(outcome.meta)
    return result


def _is_plain(part: Any) -> bool:
    return isinstance(part, Undecoded) and not part.redact


def _forwarded(raw: Raw, is_modern: bool) -> Raw:
    """The result as it came. In the modern era it names its kind, which servers of the legacy era do not."""
    if not is_modern or b'"resultType"' in bytes(raw):
        return raw
    body = bytes(raw).lstrip()[1:].lstrip()
    return Raw(b'{"resultType":"complete"' + (b"" if body[:1] == b"}" else b",") + body)


def _failed(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _block(block: Any) -> Any:
    if isinstance(block, UnknownBlock):
        return block.value
    if isinstance(block, LargeBlock):
        return block.raw
    return _without_nulls(block)


def _without_nulls(struct: Any) -> Any:
    """The members of a block or of a resource's contents, without those that are not there."""
    value: Json = msgspec.to_builtins(struct)
    if isinstance(value.get("resource"), dict):
        value["resource"] = {key: each for key, each in value["resource"].items() if each is not None}
    return {key: each for key, each in value.items() if each is not None}


# Lists.


def _listed(name: str, tool: ServerTool) -> Json:
    """The definition as its server gave it, with the name that clients use; tasks are not offered."""
    definition = {**tool.as_listed(), "name": name, "inputSchema": tool.input_schema}
    definition.pop("execution", None)
    if tool.output_schema is None:
        definition.pop("outputSchema", None)
    if definition.get("description"):
        definition["description"] = tool.description
    return definition


def _listed_prompt(name: str, prompt: Prompt) -> Json:
    arguments = [
        {
            "name": each.name,
            **({"title": each.title} if each.title else {}),
            **({"description": each.description} if each.description else {}),
            "required": each.required,
        }
        for each in prompt.arguments
    ]
    return _given(
        name=name,
        title=prompt.title,
        description=prompt.description,
        arguments=arguments,
        _meta=dict(prompt.meta),
    )


def _described(thing: Resource | ResourceTemplate, **address: str) -> Json:
    return _given(
        **address,
        name=thing.name,
        title=thing.title,
        description=thing.description,
        mimeType=thing.mime_type,
        size=thing.size if isinstance(thing, Resource) else None,
        annotations=thing.annotations,
        _meta=thing.meta,
    )


def _given(**members: Any) -> Json:
    return {key: value for key, value in members.items() if value not in (None, "", {}, [])}


def _uri_of(resource: Resource) -> str:
    return resource.uri


def _template_of(template: ResourceTemplate) -> str:
    return template.uri_template


def _completion(found: Completion) -> Json:
    more = {} if found.total is None else {"total": found.total}
    return {"completion": {"values": list(found.values), "hasMore": found.has_more, **more}}
