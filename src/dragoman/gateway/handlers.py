"""Answers the requests of one client of the gateway, with the host, on behalf of its caller.

Every request goes through the host's pipeline, so rules, hooks, policy and the audit log apply. Items that a
rule denies are not listed, and requests for them are answered as if they did not exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine, Generator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct, structs

from dragoman import tracing
from dragoman.calls.outcome import CallOutcome
from dragoman.calls.tool_call import new_call_id
from dragoman.catalog.prompts import Prompt
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.catalog.tools import ServerTool
from dragoman.config.merge import ConfiguredServer
from dragoman.errors import (
    DragomanError,
    InputUnavailable,
    InvalidArguments,
    RemoteError,
    StoreUnavailable,
    UnknownTool,
)
from dragoman.gateway.access import KnownCaller
from dragoman.gateway.callers import HOSTS_LIMIT_REACHED, CallerHosts, CallerServers, SignInOffer, offers
from dragoman.gateway.exposed import exposed, exposed_uris, server_in
from dragoman.gateway.host_choice import HostChoice
from dragoman.gateway.questions import PAGE_SECONDS, RunningRequest
from dragoman.gateway.results import (
    block_value,
    completion_result,
    listed_prompt,
    listed_resource,
    listed_tool,
    result_of,
    template_of,
    text_result,
    uri_of,
    without_nulls,
)
from dragoman.gateway.tool_search import CALL, SearchArguments
from dragoman.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    MISSING_CLIENT_CAPABILITY,
)
from dragoman.servers.status import ServerStatus
from dragoman.toolbox import SEARCH, WAIT_SECONDS, is_connecting
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Client, Handler, Json, RequestError, ResourceNotFound, Result

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway

T = TypeVar("T")

RETRY_SECONDS: Final = 60
SUBSCRIPTIONS_LIMIT: Final = 1000
"""How many resources a client can subscribe to: each takes memory, and time of the loop when the client
leaves."""
TOO_MANY: Final = -32029
"""The code for a caller that makes too many calls."""


class _Call(Struct, rename={"meta": "_meta"}):
    name: str
    arguments: dict[str, Any] = {}
    meta: dict[str, Any] = {}


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


class _CompletionContext(Struct, frozen=True):
    arguments: dict[str, str] = {}


class _Complete(Struct):
    ref: _Reference
    argument: _Argument
    context: _CompletionContext = _CompletionContext()


class ClientHandlers:
    """The handlers for the requests of one client."""

    def __init__(self, gateway: Gateway, known: KnownCaller, view: str) -> None:
        self._gateway = gateway
        self._known = known
        self._caller = known.caller
        self.view = view
        self.rights = known.selections
        self._watching: dict[str, asyncio.Task[None]] = {}
        """By the URI as the client spells it."""
        self.updated: Callable[[str], None] = lambda uri: None
        """Called with the URI of a resource that has changed."""
        self.ended: Callable[[str], None] = lambda uri: None
        """Called with the URI of a resource that is not watched any more, although the client wants it."""

    @property
    def own(self) -> CallerServers | None:
        """The caller's own servers, if they are open; they are while a request is handled."""
        return None if self._gateway.callers is None else self._gateway.callers.find(self._caller)

    @property
    def _host_choice(self) -> HostChoice:
        own = self.own
        return HostChoice(self._gateway.host, None if own is None else own.host, self._caller)

    def table(self) -> Mapping[str, Handler]:
        handlers = self._handlers()
        if self._gateway.callers is None:
            return handlers
        return {method: self._with_own(self._gateway.callers, each) for method, each in handlers.items()}

    def _with_own(self, callers: CallerHosts, handler: Handler) -> Handler:
        async def handle(request: ClientRequest) -> Result:
            async with callers.serving(self._known) as own:
                if own is None and (missing := callers.missing(self._known)):
                    self._gateway.caller_host_refused(self._caller, missing)
                if own is not None and request.method.endswith("/list"):
                    await own.first_settled()
                return await handler(request)

        return handle

    def _handlers(self) -> Mapping[str, Handler]:
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
        found, searching = self._usable_tools(), list[Json]()
        if self._is_searched:
            searching = self._gateway.found_tools(self, found).definitions()
            found = {name: tool for name, tool in found.items() if tool.always_loads}
        listed = (
            listed_tool(name, tool, self._gateway.fixed_arguments(tool, self.view))
            for name, tool in found.items()
        )
        if self.view in self._gateway.limits:  # a result that was cut does not match its schema
            listed = ({k: v for k, v in each.items() if k != "outputSchema"} for each in listed)
        return {"tools": [*searching, *listed]}

    def _usable_tools(self) -> dict[str, ServerTool]:
        tools = self._gateway.tools(self.view, self.own)
        return {name: tool for name, tool in tools.items() if self.may_call(tool)}

    @property
    def _is_searched(self) -> bool:
        return self._gateway.view(self.view).tool_search

    def may_call(self, tool: ServerTool) -> bool:
        name = self._gateway.name_of(tool)
        return any(offers(each, tool, name) for each in self._known.selections)

    def may_use(self, server: str) -> bool:
        """Whether the caller may use the resources and prompts of the server, and the view has them."""
        view = self._gateway.view(self.view)
        return view.offers_server(server) and any(
            each.offers_server(server) for each in self._known.selections
        )

    async def _call(self, request: ClientRequest) -> Result:
        asked = request.decode(_Call)
        if self._is_searched and asked.name == SEARCH:
            return await self._search(_converted(SearchArguments, asked.arguments))
        if self._is_searched and asked.name == CALL:
            asked = structs.replace(_converted(_Call, asked.arguments), meta=asked.meta)
        own = self.own
        tool = self._gateway.tool(asked.name, self.view, own) or await self._gateway.find_tool(
            asked.name, self.view, own
        )
        if tool is None and await self._has_waited():
            tool = self._gateway.tool(asked.name, self.view, own)
        if tool is None or not self.may_call(tool):
            raise self._unknown_tool(asked.name)
        return await self._run(
            request, tool.server, lambda running, call_id: self._make_call(asked, tool, running, call_id)
        )

    def _unknown_tool(self, name: str) -> RequestError:
        text, callers = f"Unknown tool: {name[:200]}", self._gateway.callers
        missing = [] if callers is None else callers.missing(self._known)
        if not missing:
            return RequestError(INVALID_PARAMS, text)
        why = f"the tools of {', '.join(missing)} cannot be used now: {HOSTS_LIMIT_REACHED}"
        data = {"code": "too-many-callers", "retryAfter": RETRY_SECONDS}
        return RequestError(INTERNAL_ERROR, f"{text}; {why}. Try again in a minute.", data)

    async def _search(self, question: SearchArguments) -> Result:
        await self._count()
        connecting = [view.name for view in self._usable_servers() if is_connecting(view)]
        if connecting:
            await self._host_choice.ready(WAIT_SECONDS, connecting)
        found = self._gateway.found_tools(self, self._usable_tools())
        return text_result(await found.search(question, self._usable_servers()))

    async def _has_waited(self) -> bool:
        """Waits for servers that are being connected or reconnected. Returns whether there were any."""
        return await self._host_choice.has_waited(WAIT_SECONDS, self.may_use)

    def _usable_servers(self) -> list[ServerStatus]:
        return [view for view in self._host_choice.servers() if self.may_use(view.name)]

    async def _make_call(
        self, asked: _Call, tool: ServerTool, running: RunningRequest, call_id: str
    ) -> Result:
        running.fixed = self._gateway.fixed_arguments(tool, self.view)
        try:
            outcome = await self._counted_call(asked, tool, running, call_id)
        except DragomanError as error:
            return text_result(str(error) + (f" {error.hint}" if error.hint else ""), is_error=True)
        if isinstance(outcome.error, InvalidArguments) and running.fixed:
            return text_result(str(_without_fixed(outcome.error, running.fixed)), is_error=True)
        if isinstance(outcome.error, InputUnavailable) and running.missing:
            raise RequestError(
                MISSING_CLIENT_CAPABILITY,
                str(outcome.error),
                {"requiredCapabilities": running.missing},
                legacy_code=INVALID_REQUEST,
            )
        if isinstance(tool, SignInOffer) and await self._is_signed_in_by_page(tool.server, running):
            return text_result(f"The sign-in to {tool.server} is done. Its tools can be used now.")
        result = result_of(outcome, running.request.client.era == "modern")
        limit = self._gateway.limits.get(self.view)
        return result if limit is None else await limit.applied(result)

    async def _counted_call(
        self, asked: _Call, tool: ServerTool, running: RunningRequest, call_id: str
    ) -> CallOutcome:
        ended, began = "cancelled", monotonic()
        try:
            outcome = await self._host_choice.host_of(tool.server).call(
                tool.name,
                {**asked.arguments, **running.fixed},
                forward=True,
                on_progress=running.progressed if running.request.wants_progress else None,
                meta=_passed_on(asked.meta, running.request.client),
                call_id=call_id,
                caller=self._caller,
            )
            ended = outcome.error.code if outcome.error else "tool-error" if outcome.is_error else "ok"
            return outcome
        except DragomanError as error:
            ended = error.code
            raise
        finally:
            self._gateway.metrics.count_call(tool.server, ended, monotonic() - began)

    async def _is_signed_in_by_page(self, server: str, running: RunningRequest) -> bool:
        """Sends the page of a sign-in to a client that shows pages; returns whether the person has finished
        with it."""
        callers = self._gateway.callers
        pending = None if callers is None else callers.pages.find(self._caller.id, server)
        if pending is None or not running.offers("elicitation/create", {"mode": "url"}):
            return False
        params: Json = {"mode": "url", "message": f"Sign in to {server}", "url": pending.link}
        named: Json = {}
        if running.request.client.era == "legacy":
            named = {"elicitationId": secrets.token_urlsafe(12)}
        answer = await running.ask("elicitation/create", {**params, **named})
        is_done = answer.get("action") == "accept" and await pending.succeeds_within(PAGE_SECONDS)
        if is_done and named:
            running.request.notify("notifications/elicitation/complete", named)
        return is_done

    # Resources.

    async def _list_resources(self, request: ClientRequest) -> Result:
        resources, templates = await asyncio.gather(self._listed_resources(), self._listed_templates())
        found = exposed_uris(resources, uri_of, templates)
        return {"resources": [listed_resource(each, uri=uri) for uri, each in found.items()]}

    async def _list_templates(self, request: ClientRequest) -> Result:
        found = exposed_uris(await self._listed_templates(), template_of)
        return {"resourceTemplates": [listed_resource(each, uriTemplate=uri) for uri, each in found.items()]}

    async def _listed_resources(self) -> list[Resource]:
        return [each for each in await self._host_choice.resources() if self.may_use(each.server)]

    async def _listed_templates(self) -> list[ResourceTemplate]:
        return [each for each in await self._host_choice.templates() if self.may_use(each.server)]

    async def _read(self, request: ClientRequest) -> Result:
        uri = request.decode(_Read).uri
        server, own = await self._located(uri)

        async def make(running: RunningRequest, call_id: str) -> Result:
            with _as_protocol_errors():
                found = await self._host_choice.resources_of(server).read(server, own, call_id=call_id)
            return {"contents": [without_nulls(part) for part in found.contents]}

        return await self._run(request, server, make)

    async def _located(self, uri: str) -> tuple[str, str]:
        """The server of a resource, and the URI that it has there. Waits for servers that are being connected
        before it raises `ResourceNotFound`."""
        try:
            return await self._located_now(uri)
        except ResourceNotFound:
            if not await self._has_waited():
                raise
        return await self._located_now(uri)

    async def _located_now(self, uri: str) -> tuple[str, str]:
        resources, templates = await asyncio.gather(self._listed_resources(), self._listed_templates())
        listed = exposed_uris(resources, uri_of, templates).get(uri)
        if listed is not None:
            return listed.server, listed.uri
        named = server_in(uri)
        own = uri if named is None else named[1]
        servers = {each.server for each in resources if each.uri == own}
        servers |= {each.server for each in templates if each.matches(own)}
        if named is not None:
            servers &= {named[0]}
        if len(servers) != 1:
            raise ResourceNotFound(uri[:1000])
        return servers.pop(), own

    async def _subscribe(self, request: ClientRequest) -> Result:
        uri = request.decode(_Read).uri
        if uri not in self._watching:
            await self._count()
            server, own = await self._located(uri)
            if uri in self._watching:  # by another request meanwhile
                return {}
            if len(self._watching) >= SUBSCRIPTIONS_LIMIT:
                message = f"a session can subscribe to at most {SUBSCRIPTIONS_LIMIT} resources"
                raise RequestError(INTERNAL_ERROR, message)
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            task = self._watching[uri] = asyncio.create_task(self._watch(uri, server, own, started))
            try:
                with _as_protocol_errors():
                    await started
            except asyncio.CancelledError:
                task.cancel()
                raise
        return {}

    async def _unsubscribe(self, request: ClientRequest) -> Result:
        task = self._watching.pop(request.decode(_Read).uri, None)
        if task is not None:
            task.cancel()
        return {}

    async def _watch(self, uri: str, server: str, own: str, started: asyncio.Future[None]) -> None:
        """Passes the changes of a resource on, until it is cancelled, also when its server is replaced
        because its entry has changed."""
        servers = self.own
        try:
            with contextlib.nullcontext() if servers is None else servers.used():
                while True:
                    entry = self._entry_of(server)
                    async with self._host_choice.resources_of(server).subscribed(server, own) as updates:
                        if started.done():
                            self.updated(uri)  # it may have changed meanwhile
                        else:
                            started.set_result(None)
                        async for update in updates:
                            is_below = update.uri.startswith(own)
                            self.updated(uri + update.uri.removeprefix(own) if is_below else uri)
                    if self._entry_of(server) is entry:
                        return
                    await self._host_choice.ready(WAIT_SECONDS, [server])
        except DragomanError as error:
            if not started.done():
                started.set_exception(error)
        finally:
            if self._watching.get(uri) is asyncio.current_task():  # not if the client has subscribed again
                del self._watching[uri]
                if started.done():
                    self.ended(uri)
            started.cancel()

    def _entry_of(self, server: str) -> ConfiguredServer | None:
        """Another object after each change of the configuration."""
        return self._host_choice.host_of(server).configuration.servers.get(server)

    # Prompts and completion.

    async def _exposed_prompts(self) -> Mapping[str, Prompt]:
        found = [each for each in await self._host_choice.prompts() if self.may_use(each.server)]
        owners = self._gateway.prompt_owners.setdefault((self.rights, self.view), {})
        servers = self._gateway.host.configuration.servers
        return exposed(found, plain=self._gateway.plain_names, owners=owners, servers=servers)

    async def _list_prompts(self, request: ClientRequest) -> Result:
        found = await self._exposed_prompts()
        return {"prompts": [listed_prompt(name, prompt) for name, prompt in found.items()]}

    async def _find_prompt(self, name: str) -> Prompt:
        """Waits for servers that are being connected before it raises `RequestError`."""
        prompt = (await self._exposed_prompts()).get(name)
        if prompt is None and await self._has_waited():
            prompt = (await self._exposed_prompts()).get(name)
        if prompt is None:
            raise _unknown_prompt(name)
        return prompt

    async def _find_template(self, uri: str) -> ResourceTemplate:
        """Waits for servers that are being connected before it raises `ResourceNotFound`."""
        template = exposed_uris(await self._listed_templates(), template_of).get(uri)
        if template is None and await self._has_waited():
            template = exposed_uris(await self._listed_templates(), template_of).get(uri)
        if template is None:
            raise ResourceNotFound(uri[:1000])
        return template

    async def _get_prompt(self, request: ClientRequest) -> Result:
        asked = request.decode(_GetPrompt)
        prompt = await self._find_prompt(asked.name)

        async def make(running: RunningRequest, call_id: str) -> Result:
            with _as_protocol_errors():
                prompts = self._host_choice.prompts_of(prompt.server)
                found = await prompts.get(prompt.name, asked.arguments, call_id=call_id)
            messages = [{"role": each.role, "content": block_value(each.content)} for each in found.messages]
            return {"messages": messages, **({"description": found.description} if found.description else {})}

        return await self._run(request, prompt.server, make)

    async def _complete(self, request: ClientRequest) -> Result:
        await self._count()
        asked = request.decode(_Complete)
        argument, given = asked.argument, asked.context.arguments
        with _as_protocol_errors():
            if asked.ref.type == "ref/prompt":
                prompt = await self._find_prompt(asked.ref.name)
                prompts = self._host_choice.prompts_of(prompt.server)
                return completion_result(
                    await prompts.complete(prompt.name, argument.name, argument.value, given=given)
                )
            template = await self._find_template(asked.ref.uri)
            return completion_result(
                await self._host_choice.resources_of(template.server).complete(
                    template.server, template.uri_template, argument.name, argument.value, given=given
                )
            )

    async def _set_level(self, request: ClientRequest) -> Result:
        return {}  # the connection has noted the level; messages below it are not passed on

    # All of them.

    async def _run(
        self,
        request: ClientRequest,
        server: str,
        make: Callable[[RunningRequest, str], Coroutine[Any, Any, Result]],
    ) -> Result:
        """The result of a request during which the server may ask the client questions."""
        await self._count()
        questions = self._gateway.questions
        if questions.is_continued(request):
            return await questions.continue_(request, self._known, self.view)
        call_id, running = new_call_id(), RunningRequest(request, self._known, self.view)

        async def work() -> Result:  # continues after `input_required`, as the server's work does
            host, own = self._host_choice.host_of(server), self.own
            self._gateway.request_began(host, server, running)
            try:
                if own is None:
                    return await make(running, call_id)
                with own.used():
                    return await make(running, call_id)
            finally:
                self._gateway.request_ended(host, server, running)

        return await questions.run(call_id, running, work())

    async def _count(self) -> None:
        """Counts a call; raises `RequestError` if the caller makes too many, or if they cannot be counted."""
        limit = self._known.calls_per_minute
        if limit is None:
            return
        try:
            wait = await self._gateway.store.count_call(self._caller.id, limit)
        except StoreUnavailable as error:
            raise RequestError(
                INTERNAL_ERROR, f"calls cannot be counted: {error}", {"code": error.code}
            ) from None
        if wait:
            self._gateway.metrics.limited += 1
            raise RequestError(
                TOO_MANY, f"too many calls: wait {wait:.0f} seconds", {"retryAfter": round(wait)}
            )


def _passed_on(meta: Json, client: Client) -> Json:
    """The part of a request's `_meta` that is passed to the server: the trace context, and the log level
    and capabilities of the client."""
    passed_on: Json = {}
    if meta:
        passed_on = {key: meta[key] for key in tracing.KEYS if isinstance(meta.get(key), str)}
    if client.log_level is not None:
        passed_on[META_LOG_LEVEL] = client.log_level
    passed_on[META_CLIENT_CAPABILITIES] = client.capabilities
    return passed_on


def _without_fixed(error: InvalidArguments, fixed: Mapping[str, Any]) -> InvalidArguments:
    """The error without what contains arguments that a view fixes: a problem of one of them, or one of all
    arguments together, which are quoted in it."""
    places = tuple(f"{name}{end}" for name in fixed for end in ":.")
    shown = tuple(each for each in error.problems if "{" not in each and not each.startswith(places))
    return InvalidArguments(error.server or "", error.tool, shown or ("their combination does not fit",))


def _converted(shape: type[T], arguments: Json) -> T:
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise RequestError(INVALID_PARAMS, f"arguments: {error}") from None


@contextlib.contextmanager
def _as_protocol_errors() -> Generator[None]:
    """Turns errors of the host into errors of the protocol."""
    try:
        yield
    except RemoteError as error:
        raise RequestError(error.remote_code, error.remote_message, error.remote_data) from None
    except (InvalidArguments, UnknownTool) as error:
        raise RequestError(INVALID_PARAMS, str(error)) from None
    except DragomanError as error:
        raise RequestError(INTERNAL_ERROR, str(error)) from None


def _unknown_prompt(name: str) -> RequestError:
    return RequestError(INVALID_PARAMS, f"Unknown prompt: {name[:200]}")
