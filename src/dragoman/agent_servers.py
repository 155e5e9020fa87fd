"""The servers of one agent: servers of the host, and servers that the agent defines itself.

Defines which servers an agent may call. Servers that it names are shared with the host (one connection);
servers that it defines are started for it alone, under the same policy, permissions and settings as all
others, and end with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.calls.progress import OnProgress
from dragoman.calls.task_access import Tasks
from dragoman.catalog.tools import BuiltinTool, ServerTool, Tool
from dragoman.errors import ConfigError, HostClosed, TaskNotFound, UnknownTool
from dragoman.events import Event
from dragoman.permissions.conditions import BadRule
from dragoman.permissions.rules import parse_prohibited_tool
from dragoman.permissions.subjects import Subject
from dragoman.servers.status import ServerStatus
from dragoman.sign_ins import SignInTool


class HasTools(Protocol):
    """An owner of servers and their tools: a host, or the part of a host that an agent may use."""

    @property
    def servers(self) -> Mapping[str, ServerStatus]: ...
    async def ready(
        self, timeout: float | None = None, *, only: Collection[str] | None = None
    ) -> Mapping[str, ServerStatus]: ...
    def tools(self, *, include_app_tools: bool = False, include_denied: bool = False) -> list[ServerTool]: ...
    def sign_in_tools(self) -> Mapping[str, SignInTool]: ...

    def is_app_tool(self, name: str) -> bool: ...

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]: ...

    def instructions(self) -> Mapping[str, str]: ...

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        builtin_tools: Mapping[str, BuiltinTool] | None = None,
        background_after_seconds: float | None = None,
        call_id: str | None = None,
    ) -> Coroutine[Any, Any, CallOutcome]: ...


class ToolHost(HasTools, Protocol):
    """The interface of a host for `AgentServers`."""

    @property
    def tasks(self) -> Tasks: ...
    async def __aenter__(self) -> Any: ...
    async def close(self) -> None: ...
    def events(self) -> AsyncIterator[Event]: ...
    async def relay(self, events: AsyncIterator[Event]) -> None: ...


class AgentServers:
    """The servers and tools that an agent can use. Made by `Host.for_agent`; open inside `async with`, like a
    host."""

    def __init__(
        self,
        host: ToolHost,
        shared: Sequence[str],
        own: ToolHost | None,
        has_tool: Callable[[str], bool] = lambda name: True,
        disallowed: Sequence[str] = (),
    ) -> None:
        """`has_tool`: whether the agent has the tool of this name. `disallowed`: see `Host.for_agent`."""
        self._host = host
        self._disallowed = prohibited(disallowed)
        self._has_tool = has_tool
        self._shared = frozenset(shared)
        self._own = own
        self._is_open = False
        self._relay: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._own is not None:
            events = self._own.events()
            await self._own.__aenter__()
            self._relay = asyncio.create_task(self._host.relay(events), name="dragoman agent events")
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_open = False
        if self._own is not None:
            await self._own.close()
        if self._relay is not None:
            await self._relay

    @property
    def servers(self) -> Mapping[str, ServerStatus]:
        """The current status of each of the agent's servers, by name."""
        shared = {name: view for name, view in self._host.servers.items() if name in self._shared}
        return {**shared, **(self._own.servers if self._own is not None else {})}

    async def ready(
        self, timeout: float | None = None, *, only: Collection[str] | None = None
    ) -> Mapping[str, ServerStatus]:
        """Waits until the agent's servers (or those of `only`) are connected or failed, or the time is up."""
        shared = self._shared if only is None else self._shared.intersection(only)
        waits = [self._host.ready(timeout, only=shared)]
        if self._own is not None:
            waits.append(self._own.ready(timeout, only=only))
        await asyncio.gather(*waits)
        return self.servers

    def tools(self, *, include_app_tools: bool = False, include_denied: bool = False) -> list[ServerTool]:
        """The tools of the agent's servers, in a stable order; like `Host.tools`, without those for apps
        only and those that a rule denies, unless they are requested."""
        wanted = {"include_app_tools": include_app_tools, "include_denied": include_denied}
        shared = [tool for tool in self._host.tools(**wanted) if tool.server in self._shared]
        own = self._own.tools(**wanted) if self._own is not None else []
        found = [tool for tool in (*shared, *own) if self._has(tool)]
        return sorted(found, key=lambda tool: tool.name)

    def sign_in_tools(self) -> Mapping[str, SignInTool]:
        """The pseudo-tools that start a sign-in, by name: one for each server that waits for one."""
        found = {
            name: tool
            for name, tool in self._host.sign_in_tools().items()
            if tool.signs_in_to in self._shared
        }
        own: Mapping[str, SignInTool] = self._own.sign_in_tools() if self._own is not None else {}
        return {
            name: tool
            for name, tool in {**found, **own}.items()
            if self._has_tool(name) and not self._disallows(name, tool.signs_in_to, tool.definition.name)
        }

    def is_app_tool(self, name: str) -> bool:
        """Whether there is a tool of this name that is for apps only, and not for models."""
        host = self._host_of(name)
        return host is not None and host.is_app_tool(name)

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]:
        """The names of the tools for which a rule denies every call."""
        return self._host.denied(tools)

    def instructions(self) -> Mapping[str, str]:
        """The `instructions` of the agent's servers, by server; see `Host.instructions`."""
        shared = {name: text for name, text in self._host.instructions().items() if name in self._shared}
        return {**shared, **(self._own.instructions() if self._own is not None else {})}

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        builtin_tools: Mapping[str, BuiltinTool] | None = None,
        background_after_seconds: float | None = None,
        call_id: str | None = None,
    ) -> CallOutcome:
        """Like `Host.call`. For the agent, tools of other servers do not exist."""
        if not self._is_open:
            raise HostClosed
        host = self._host if builtin_tools and name in builtin_tools else self._host_of(name)
        if host is None:
            return outcome_of_error("", name, UnknownTool(name))
        return await host.call(
            name,
            arguments,
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
            builtin_tools=builtin_tools,
            background_after_seconds=background_after_seconds,
            call_id=call_id,
        )

    async def task_result(
        self, task: str, *, timeout_seconds: float | None = None, on_progress: OnProgress | None = None
    ) -> CallOutcome:
        """The result of a call that was left running; like `Host.tasks.result`. Calls of servers or tools
        that the agent does not have are not found."""
        if not self._is_open:
            raise HostClosed
        places = [(self._host, self._shared)]
        if self._own is not None:
            places.append((self._own, frozenset(self._own.servers)))
        for host, servers in places:
            known = (info for info in await host.tasks.list() if info.server in servers)
            tools = {tool.name for tool in _all_tools(host) if self._has(tool)}
            if any(info.id == task and info.tool in tools for info in known):
                return await host.tasks.result(task, timeout_seconds=timeout_seconds, on_progress=on_progress)
        return outcome_of_error("", "", TaskNotFound("", task, "no running task has this id"))

    def _host_of(self, name: str) -> ToolHost | None:
        """The host that has the tool; the agent's own servers come first."""
        if self._own is not None:
            own = next((tool for tool in _all_tools(self._own) if tool.name == name), None)
            if own is not None:
                return self._own if self._has(own) else None
        shared = (tool for tool in _all_tools(self._host) if tool.server in self._shared)
        return self._host if any(tool.name == name and self._has(tool) for tool in shared) else None

    def _has(self, tool: ServerTool) -> bool:
        return self._has_tool(tool.name) and not self._disallows(tool.name, tool.server, tool.wire_name)

    def _disallows(self, name: str, server: str, wire_name: str) -> bool:
        return any(each.may_mean(name, server, wire_name) for each in self._disallowed)


def _all_tools(host: HasTools) -> list[ServerTool]:
    return host.tools(include_app_tools=True, include_denied=True)


def prohibited(disallowed: Sequence[str]) -> list[Subject]:
    """The tools that an agent does not have. `ConfigError` for what no deny rule could mean, or only with
    conditions: it would prohibit nothing."""
    if isinstance(disallowed, str):
        raise ConfigError("disallowed: must be a list of strings", hint='For example ["mcp__files"].')
    try:
        return [parse_prohibited_tool(text) for text in disallowed]
    except BadRule as error:
        raise ConfigError(f"disallowed: {error}") from None


def split(
    servers: Sequence[str | Mapping[str, object]],
) -> tuple[list[str], dict[str, object]]:
    """Splits the list into the names of shared servers and the agent's own servers. The same name twice is an
    error."""
    shared: list[str] = []
    own: dict[str, object] = {}
    for item in servers:
        for name in [item] if isinstance(item, str) else list(item):
            if name in shared or name in own:
                raise ConfigError(f"the agent names server {name!r} twice", hint="Name or define it, once.")
            if isinstance(item, str):
                shared.append(name)
            else:
                own[name] = item[name]
    return shared, own
