"""The host: every server a person uses, behind one object.

Contains wiring only. This is the only place where the parts are put together.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, Unpack
from weakref import WeakSet

from msgspec import structs

from dragoman import sign_ins, tracing
from dragoman.access_control import AccessControl, AccessOptions
from dragoman.agent_servers import AgentServers, prohibited, split
from dragoman.calls.audit import AuditLog
from dragoman.calls.elicitation import Elicitor
from dragoman.calls.outcome import CallOutcome
from dragoman.calls.pipeline import Pipeline
from dragoman.calls.progress import OnProgress
from dragoman.calls.prompts import Prompts
from dragoman.calls.request_handlers import RequestHandlers
from dragoman.calls.requests import Requests
from dragoman.calls.resources import ResourceReader, Resources
from dragoman.calls.roots import Roots
from dragoman.calls.sampling import Sampling
from dragoman.calls.task_access import Tasks
from dragoman.calls.tool_call import ToolCall, new_call_id
from dragoman.calls.turn import call_all_in_turn
from dragoman.catalog.catalog import Admit, Catalog
from dragoman.catalog.instructions import cleaned
from dragoman.catalog.naming import prefix
from dragoman.catalog.tools import BuiltinTool, ServerTool, Tool
from dragoman.clock import Clock, SystemClock
from dragoman.config.connector_entries import safe_origins
from dragoman.config.edits import save_disabled, save_enabled
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import ServerConfig
from dragoman.config.plan import Plan
from dragoman.config.scopes import Sources
from dragoman.connections.factory import AccountOptions, TransportDependencies
from dragoman.connections.server_log import ServerLogs
from dragoman.connections.target import ConnectionContext
from dragoman.content.prepare import Preparer
from dragoman.content.redact import Redactor
from dragoman.errors import ConfigError, HostClosed, HostNotOpen, WrongLoop
from dragoman.events import Event, EventBus
from dragoman.hooks.active import ActiveHooks
from dragoman.host_options import HostOptions, check_options
from dragoman.interaction import LOCAL_CALLER, SIGN_IN_SECONDS, Caller, SignInScreen
from dragoman.live_configuration import ConfigurationSource, ConfiguredParts, LiveConfiguration, limits_of
from dragoman.names import RESERVED, ServerName, shell_quoted
from dragoman.permissions.grants import SessionGrants
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import Behaviour, Rule
from dragoman.protocol import LOG_LEVELS, LogLevel
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.servers.shared_reads import SharedReads
from dragoman.servers.status import ServerStatus
from dragoman.sign_ins import SIGN_IN, SignInTool, SignInTools

if TYPE_CHECKING:  # aiohttp is loaded when the first remote server is connected
    from dragoman.auth.state import SignInState
    from dragoman.auth.stores.base import AccountStore
    from dragoman.toolbox import Toolbox

_SIGN_IN_ENDING: Final = f"__{SIGN_IN}"


class Host:
    """Connects to servers and calls their tools.

    Servers are given by name: as an entry (a dict with `command`, `args`, `env` …), as a
    `ServerConfig`, or as a server object that lives in this process. `Host.configured()` takes them from
    the person's configuration files instead. The administrator's policy applies in both cases.
    """

    def __init__(
        self,
        servers: Mapping[str, ServerConfig | Mapping[str, Any] | object] | Sources,
        *,
        parent: Host | None = None,
        account: AccountOptions | None = None,
        **options: Unpack[HostOptions],
    ) -> None:
        """`options`: see `HostOptions`. `parent`: a host whose rules, hooks, audit log and person this one
        shares; for a settings file that cannot be read, the version that the parent has read is used.
        `account`: this host has the servers that the parent sets aside, and signs in to them with this
        account."""
        check_options(options)
        if not isinstance(servers, Sources):
            servers = Sources.here(given=servers, only_given=True)
        if settings := options.get("settings"):
            servers = structs.replace(servers, overrides={**servers.overrides, **settings})
        if options.get("ignore_broken_settings"):
            servers = structs.replace(servers, ignore_broken_settings=True)
        self._sources = servers
        self._options = options
        only = options.get("only")
        selection = ConfigurationSource(
            servers,
            None if only is None else frozenset(only),
            frozenset(options.get("set_aside", ())),
            None if account is None or parent is None else lambda: parent.configuration,
        )
        self._parent = parent
        self._account = account
        configuration = selection.load(before=None if parent is None else parent.configuration)
        clock = options.get("clock") or SystemClock()
        self._bus = EventBus()
        tool_lock = options.get("tool_lock")
        self._catalog = Catalog(_admission(tool_lock) if tool_lock is not None else None)
        reloading = asyncio.Lock()
        self._access = (
            parent._access if parent is not None else self._access_control(configuration, reloading)
        )
        wants_logs = options.get("server_logs")
        self._logs: ServerLogs | None = None
        if parent is not None:
            self._logs = parent._logs
        elif not servers.only_given if wants_logs is None else wants_logs:
            self._logs = ServerLogs(self._access.report_problem)
        access = self._access
        elicitor = Elicitor(access.questions, access.hooks, self._redactor_of, self._allows_secret_fields)
        self._roots = Roots(self._sources.cwd, options.get("roots", ()), options.get("interaction"))
        sampling = Sampling(
            options.get("sampler"),
            access.questions,
            lambda: self.configuration.settings,
            clock.monotonic,
            self._redactor_of,
        )
        self._handlers = RequestHandlers(elicitor, sampling, self._roots)
        self._servers = self._registry(configuration, clock)
        self._preparer = Preparer(limits=limits_of(configuration))
        self._pipeline = Pipeline(
            self._servers, access.hooks, access.permissions, self._preparer, access.audit, elicitor
        )
        requests = Requests(self._pipeline.call, access.hooks, access.permissions)
        self._sign_in_tools = SignInTools(self._servers, self.sign_in)
        self._reader = ResourceReader(self._servers)
        self._resources = Resources(self._reader, requests)
        self._prompts = Prompts(self._servers, requests)
        self._tasks = Tasks(self._pipeline.tasks, self._pipeline.call, requests, self._redactor_of, clock.now)
        self._stage = "new"
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that everything of this host runs in; known once it is open."""
        self._pid = 0
        """The process in which that loop runs: in a forked child it only appears to."""
        self._closing: asyncio.Task[None] | None = None
        self._editing = asyncio.Lock()
        parts = ConfiguredParts(
            self._servers, access, parent is not None, self._preparer, self._resources, self._bus
        )
        self._live = LiveConfiguration(selection, parts, reloading)
        self._children: WeakSet[Host] = WeakSet()
        """Hosts of agents' own servers: they end with this one, and changes of policy apply to them."""

    def _access_control(self, configuration: Configuration, reloading: asyncio.Lock) -> AccessControl:
        options = self._options
        audit = options.get("audit")
        return AccessControl(
            configuration,
            AccessOptions(
                mode=options.get("permission_mode"),
                rules=options.get("rules"),
                hooks=options.get("hooks", ()),
                classifier=options.get("classifier"),
                interaction=options.get("interaction"),
                audit=not self._sources.only_given if audit is None else audit,
                session_hooks=options.get("session_hooks", True),
            ),
            self._bus,
            lambda server: self._servers.is_trusted(server),
            reloading,
        )

    def _registry(self, configuration: Configuration, clock: Clock) -> ServerRegistry:
        options = self._options
        dependencies = TransportDependencies(
            options.get("control"),
            options.get("bearer"),
            self._sources.cwd,
            # A server must not treat two accounts as one session.
            self._access.session_id if self._account is None else None,
        )
        dependencies.account = self._account
        dependencies.accounts = options.get("accounts")
        dependencies.bearer_origins = safe_origins(options.get("bearer_origins", ()))
        return ServerRegistry(
            configuration,
            self._catalog,
            ConnectionContext.of(configuration.settings, clock, self._bus, options.get("extensions")),
            dependencies,
            self._handlers.of,
            self._logs,
        )

    def _allows_secret_fields(self) -> bool:
        return bool(self.configuration.settings["DRAGOMAN_SECRET_FORM_FIELDS"])

    @classmethod
    def configured(
        cls,
        *,
        cwd: Path | str | None = None,
        servers: Mapping[str, object] | None = None,
        strict: bool = False,
        **options: Unpack[HostOptions],
    ) -> Self:
        """A host with the servers of every configuration file, seen from `cwd`.

        `servers` are added in scope `dynamic`; `strict` leaves all others out. The remaining options are
        those of `Host`.
        """
        sources = Sources.here(Path(cwd) if cwd is not None else None, given=servers, only_given=strict)
        return cls(sources, **options)

    # Opening and closing.

    async def __aenter__(self) -> Self:
        if self._stage != "new":
            raise HostClosed
        self._stage = "open"
        self._loop, self._pid = asyncio.get_running_loop(), os.getpid()
        self._pipeline.open_in(self._loop)
        tracing.start()
        if self._parent is None:
            self._access.start()
        self._servers.start()
        self._live.start(watch=self._options.get("watch", False))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(
        self, timeout: float | None = None, *, only: Collection[str] | None = None
    ) -> Mapping[str, ServerStatus]:
        """Waits until every server (or those of `only`) is connected or has failed, or the time is up.

        A server that failed does not raise; see its `reason`.
        """
        self._check_open()
        try:
            async with asyncio.timeout(timeout):
                await self._live.connectors_known.wait()
                await self._servers.settled(only)
        except TimeoutError:
            pass
        return self.servers

    def _check_open(self) -> None:
        if self._stage != "open":
            raise HostNotOpen if self._stage == "new" else HostClosed

    async def close(self, *, now: bool = False) -> None:
        """Ends every connection. Safe from any task, at any moment, any number of times.

        A local server that has answered calls has `DRAGOMAN_STOP_WAIT_MS` to exit on its own. With `now`
        there is no such wait, and a close that is already running stops waiting. Called in another event loop
        than the host's, it closes the host in its own loop and waits for that; `WrongLoop` if that loop does
        not run.
        """
        owner = self._loop
        if owner is not None and owner is not asyncio.get_running_loop():
            if not owner.is_running() or self._pid != os.getpid():
                raise WrongLoop
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.close(now=now), owner))
            return
        self._stage = "closed"
        self._live.is_open = False
        if now:
            self._skip_stop_wait()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="dragoman close")
        # Cancelling one closer must not cancel the closing itself.
        await asyncio.shield(self._closing)

    def _skip_stop_wait(self) -> None:
        for child in self._children:
            child._skip_stop_wait()
        self._servers.skip_stop_wait()

    async def _close(self) -> None:
        try:
            await self._close_parts()
        finally:
            self._bus.close()

    async def _close_parts(self) -> None:
        await self._live.close()
        if self._parent is None:
            self._access.questions.close()
        await self._sign_in_tools.close()
        await asyncio.gather(*(child.close() for child in self._children))
        await self._pipeline.tasks.close()
        await self._servers.close()
        if self._parent is not None:
            for name in self._servers if self._account is None else ():  # others may have the same server
                self._access.permissions.forget(name)
        else:
            await self._access.close()
            if self._logs is not None:
                await asyncio.to_thread(self._logs.close)

    # State.

    @property
    def servers(self) -> Mapping[str, ServerStatus]:
        """The current status of every server, by name."""
        return self._servers.statuses()

    def tools(self, *, include_app_tools: bool = False, include_denied: bool = False) -> list[ServerTool]:
        """Every tool that a model can call, in a stable order, including those of servers that are
        reconnecting.

        `include_app_tools`: also those that servers keep for their own user interface (MCP Apps). A program
        can call them by name; a toolbox and the adapters refuse them. `include_denied`: also tools for which
        a rule denies every call; a call of one is refused with the rule.
        """
        tools = self._servers.tools()
        if not include_app_tools:
            tools = [tool for tool in tools if tool.is_for_models]
        if not include_denied and (denied := self.denied(tools)):
            tools = [tool for tool in tools if tool.name not in denied]
        return tools

    def tool(self, name: str) -> ServerTool | None:
        """The tool of this qualified name, if a model can call it; as in `tools`."""
        tool = self._catalog.find(name)
        if tool is None or not tool.is_for_models or self.denied((tool,)):
            return None
        server = self._servers.find(tool.server)
        return tool if server is not None and server.connection.offers_tools else None

    def sign_in_tools(self) -> Mapping[str, SignInTool]:
        """The pseudo-tools that start a sign-in, by name: one for each server that waits for one."""
        return self._sign_in_tools.tools()

    def is_app_tool(self, name: str) -> bool:
        """Whether there is a tool of this name that is for apps only, and not for models."""
        tool = self._catalog.find(name)
        return tool is not None and not tool.is_for_models

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]:
        """The names of the tools for which a rule denies every call; models are not shown them."""
        return self._access.permissions.denied(tools)

    def is_unrestricted(self, tool: BuiltinTool, arguments: Mapping[str, Any]) -> bool:
        """Whether no rule denies such a call or requires a question about it."""
        return self._access.permissions.preview(tool, arguments).behaviour == "allow"

    def is_denied(self, tool: BuiltinTool, arguments: Mapping[str, Any]) -> bool:
        """Whether a rule or the mode denies such a call, even if the person would allow it."""
        return self._access.permissions.preview(tool, arguments).behaviour == "deny"

    @property
    def permission_mode(self) -> PermissionMode:
        """The permission mode: how calls are decided that no rule decides."""
        return self._access.permissions.mode

    def set_permission_mode(self, mode: PermissionMode) -> None:
        """Sets the permission mode, also for calls that wait for a decision, and for the servers of agents.
        Rules take precedence over every mode. Raises `ConfigError`, and keeps the mode, if the administrator
        forbids the new one."""
        self._check_open()
        self._access.set_mode(mode)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The permission rules in effect, each with its scope and source."""
        return self._access.permissions.rules

    def add_rule(self, kind: Behaviour, rule: str) -> None:
        """Adds a permission rule for as long as this host runs; no file is written. Raises `ConfigError` if
        it cannot be read."""
        self._check_open()
        self._access.add_rule(kind, rule)
        self.resources.end_denied()

    def remove_rule(self, kind: Behaviour, rule: str) -> bool:
        """Removes a rule that was given to this host by `rules` or `add_rule`; returns false if there is
        none. Rules of files stay; `dragoman permissions remove` removes those."""
        self._check_open()
        return self._access.remove_rule(kind, rule)

    @property
    def hooks(self) -> ActiveHooks:
        """The hooks in effect, of code and of files. They show what hooks would do, without a call."""
        return self._access.hooks

    @property
    def resources(self) -> Resources:
        """The resources of servers: list, read and subscribe."""
        self._check_open()
        return self._resources

    @property
    def prompts(self) -> Prompts:
        """The prompts of servers: list, get, and complete arguments."""
        self._check_open()
        return self._prompts

    @property
    def tasks(self) -> Tasks:
        """Calls that continue in the background, such as tasks of servers: list, fetch results, cancel."""
        self._check_open()
        return self._tasks

    def instructions(self) -> Mapping[str, str]:
        """The `instructions` of connected servers, cleaned and cut; see `catalog/instructions.py`.

        Servers without instructions, and servers for which a rule denies everything, are left out.
        """
        texts = cleaned(
            {
                name: view.instructions
                for name, view in self.servers.items()
                if view.status == "connected" and not self._access.permissions.denies_server(name)
            }
        )
        return {name: self._without_secrets(name, text) for name, text in texts.items()}

    async def session_context(self) -> tuple[str, ...]:
        """The context that `SessionStart` hooks return for the model at the beginning of a conversation, one
        text per hook (`additionalContext`). Waits until those hooks have ended."""
        self._check_open()
        return await self._access.session_context()

    def _without_secrets(self, server: str, text: str) -> str:
        redact = self._redactor_of(ServerName(server))
        return redact.text(text) if redact else text

    def toolbox(
        self,
        builtins: Iterable[BuiltinTool] = (),
        *,
        resources: bool = True,
        servers: AgentServers | None = None,
    ) -> Toolbox:
        """The tools of one conversation: these built-in ones beside those of all servers, or of an agent's
        `servers` (see `for_agent`).

        Where the tools would take too much of a model's context, it is given a search tool instead. The
        toolbox includes `read_result`, for results that are too large to be shown. `resources`: also includes
        tools to list and read resources.
        """
        from dragoman.calls.reading_tools import resource_tools, result_tool
        from dragoman.catalog.deferral import Budget
        from dragoman.content.store import ResultStore
        from dragoman.toolbox import Toolbox

        settings = self.configuration.settings
        budget = Budget(settings["DRAGOMAN_CONTEXT_TOKENS"], settings["DRAGOMAN_TOOL_SHARE_PERCENT"])
        more = resource_tools(self.resources, self._reader) if resources else ()
        reader = result_tool(ResultStore(self._preparer.saver), lambda: self._preparer.limits)
        return Toolbox(servers or self, (*builtins, *more, reader), budget=budget)

    def report_rules_without_effect(self, tools: Iterable[BuiltinTool]) -> None:
        """Reports rules that deny or ask about a built-in tool that is not among these, or about an argument
        that it does not have."""
        self._access.report_rules_without_effect(tools)

    @property
    def accounts(self) -> AccountStore | None:
        """Where sign-ins are stored, if not in the secret store of this machine."""
        return self._options.get("accounts")

    def grants(self) -> SessionGrants:
        """The permissions that were granted for as long as this host is open."""
        return self._access.permissions.grants

    def audit_log(self) -> AuditLog | None:
        """The audit log; None if calls are not logged."""
        return self._access.audit

    def read_list_again(self, server: str, kind: Literal["tools", "prompts", "resources"]) -> None:
        """Reads a list of a server as if the server had notified a change; nothing if it is not connected."""
        if server in self.servers:
            self._servers.named(server).read_list_again(kind)

    def share_reads(self, shared: SharedReads) -> None:
        """Resources that are read are shared with other hosts."""
        self._reader.shared = shared

    async def announce_changed_reads(self, server: str) -> bool:
        """Notifies the hosts that share cached reads of changes that the server has reported. Returns whether
        there were any."""
        shared, known = self._reader.shared, self._servers.find(server)
        return shared is not None and known is not None and await shared.announce(known)

    def forget_reads(self, server: str | None = None) -> None:
        """Drops the cached reads of a server, or of all servers, after another host reported a change."""
        for name, known in self._servers.items():
            if server in (None, name):
                known.reads.changed()

    def events(self, *kinds: type[Event]) -> AsyncIterator[Event]:
        """The events from this moment on, until the host is closed. `kinds`: only events of these classes."""
        return self._bus.listen(*kinds)

    @property
    def configuration(self) -> Configuration:
        """The configuration from all sources: the servers with their origins, the entries that were dropped,
        and problems."""
        return self._servers.configuration

    @property
    def problems(self) -> tuple[str, ...]:
        """Descriptions of the configuration that cannot be used: files and entries, then rules and hooks.

        As of the last time it was read: `reload` adds new problems and drops those that were fixed.
        """
        return self._live.problems

    # Actions.

    async def plan(self) -> Plan:
        """The changes that `reload` would make now."""
        return await self._live.plan()

    async def _edit_and_reload(self, edit: Callable[[], object]) -> None:
        async with self._editing:  # in the order in which they were requested
            await asyncio.to_thread(edit)
            await self.reload()

    async def reload(self) -> Plan:
        """Reads the configuration again and applies the difference; unchanged servers are not interrupted.

        New and changed entries of a project's files need approval: an edit alone starts nothing.
        """
        self._check_open()
        return await self._live.reload()

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        builtin_tools: Mapping[str, BuiltinTool] | None = None,
        reset_timeout_on_progress: bool = False,
        raw: bool = False,
        forward: bool = False,
        meta: Mapping[str, Any] | None = None,
        background_after_seconds: float | None = None,
        moves_tasks_only: bool = False,
        call_id: str | None = None,
        caller: Caller = LOCAL_CALLER,
    ) -> Coroutine[Any, Any, CallOutcome]:
        """Calls a tool by its qualified name; first among the caller's `builtin_tools`, if there are any.

        `reset_timeout_on_progress`: the time limit starts again with each progress notification. `raw`: the
        result as the server sent it, neither cleaned nor cut for a model; only secrets of the server's entry
        are removed. `forward`: like `raw`, and a result that needs no change is not decoded: it is
        `CallOutcome.forwarded`. `meta`: sent as `_meta`, for instance a trace context.
        `background_after_seconds`: after that time `call` returns an outcome without a result; the call
        continues, and `tasks` fetches its result by the `task` of the outcome. A call that its server runs as
        a task continues there, any other continues inside this host until the host is closed; a server that
        supports tasks has a few seconds to turn the call into one. `moves_tasks_only`: calls that are not
        tasks are waited for. `call_id`: identifies this call in events and hooks, for instance the id of a
        model's tool use; one is generated if it is missing. `caller`: the party that makes the call, if it is
        not the local one; grants and the audit log distinguish callers.

        The outcome is what the tool or its server answers, including errors. The only exceptions are
        `NotConnected`, `ConnectionLost`, `CallTimeout`, `HttpError`, `MalformedReply`, `MessageTooLarge`,
        `HostClosed` and, in another event loop than the host's, `WrongLoop`.
        """
        if self._stage != "open":
            self._check_open()
        if name.endswith(_SIGN_IN_ENDING):
            builtin_tools = {**self._sign_in_tools.tools(), **(builtin_tools or {})}
        return self._pipeline.call(
            ToolCall(
                name,
                arguments or {},
                timeout_seconds,
                on_progress,
                builtin_tools,
                reset_timeout_on_progress,
                raw or forward,
                forward,
                meta,
                background_after_seconds=background_after_seconds,
                moves_tasks_only=moves_tasks_only,
                call_id=call_id or new_call_id(),
                caller=caller,
            )
        )

    async def call_all(
        self,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        on_progress: Sequence[OnProgress | None] = (),
    ) -> list[CallOutcome]:
        """Makes the calls of one turn: read-only calls in parallel, the others in order.

        Returns an outcome for each, in the order of the calls. Unlike `call`, it does not raise the error of
        one call. `on_progress`: a callback for each call, or None, in the order of the calls.
        """
        parallel = {str(tool.name) for tool in self._servers.tools() if tool.is_parallel}
        return await call_all_in_turn(calls, self.call, parallel.__contains__, on_progress)

    async def reconnect(self, name: str) -> ServerStatus:
        """Reconnects a server, with a new count of attempts; returns when that succeeded or failed."""
        return await self._wanted(name, Server.reconnect)

    async def set_log_level(self, name: str, level: LogLevel | None) -> None:
        """Requests log messages of this level and above from a server, immediately and after each reconnect.
        None: the server decides, from the next connection on.

        Without effect on a server that has no log messages. Raises `CallError` if the server refuses.
        """
        self._check_open()
        if level is not None and level not in LOG_LEVELS:
            raise ConfigError(f"there is no log level {level!r}", hint=f"There are: {', '.join(LOG_LEVELS)}.")
        await self._servers.named(name).set_log_level(level)

    async def sign_in(
        self,
        name: str,
        screen: SignInScreen,
        *,
        timeout: float = SIGN_IN_SECONDS,
        on_device: bool = False,
        identity: str | None = None,
    ) -> ServerStatus:
        """Signs in to a server (OAuth), then reconnects it. Raises `SignInFailed`.

        `screen` shows the person the page to sign in at. `timeout`: how long the person may take, in seconds.
        `on_device`: the person enters a code on another device. `identity`: signs in for another account than
        the one that the entry uses (`oauth.identity`). The connection's own time limit does not apply during
        the sign-in, and other servers are not delayed.
        """
        self._check_open()
        await sign_ins.sign_in(
            self._servers, name, screen, timeout=timeout, on_device=on_device, identity=identity
        )
        return await self.reconnect(name)

    async def sign_in_state(self, name: str, *, identity: str | None = None) -> SignInState:
        """The state of the sign-in to a server, without secrets. Contacts no server."""
        return await sign_ins.state(self._servers, name, identity)

    async def sign_out(self, name: str, *, identity: str | None = None) -> str | None:
        """Revokes and deletes the tokens of a server, and reconnects it without them.

        Returns why the tokens could not be revoked, if that failed; they are deleted here in any case.
        """
        self._check_open()
        problem = await sign_ins.sign_out(self._servers, name, identity)
        await self.reconnect(name)
        return problem

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that servers are given as roots: the working directory, then the others."""
        return self._roots.folders

    def set_roots(self, folders: Sequence[Path | str]) -> None:
        """Replaces the folders besides the working directory; servers of the legacy era are notified."""
        self._check_open()
        if self._roots.set(folders):
            self._servers.announce_roots()
        for child in self._children:
            if child._stage == "open":
                child.set_roots(folders)

    async def enable(self, name: str, *, remember: bool = True) -> ServerStatus:
        """Connects a server that was disabled. `remember`: also for later hosts, if the server is in a
        file."""
        if remember and self._is_in_file(name):
            await self._edit_and_reload(lambda: save_enabled(self.configuration, name))
        return await self._wanted(name, Server.enable)

    async def disable(self, name: str, *, remember: bool = True) -> ServerStatus:
        """Closes the connection of a server and keeps it closed. `remember`: also for later hosts, if the
        server is in a file."""
        if not (remember and self._is_in_file(name)):
            return await self._wanted(name, Server.disable)
        try:
            await self._edit_and_reload(
                lambda: save_disabled(self.configuration, self.configuration.servers[name])
            )
        except (ConfigError, OSError) as error:
            await self._wanted(name, Server.disable)
            raise ConfigError(
                f"server {name!r} is disabled in this host, but that could not be saved: {error}",
                hint=getattr(error, "hint", None) or "Correct that, and disable it again.",
            ) from None
        return self._view_of(name)

    async def _wanted(self, name: str, act: Callable[[Server], Awaitable[None]]) -> ServerStatus:
        await self._servers.replaced(name)
        self._check_open()
        await act(self._servers.named(name))
        return self._view_of(name)

    def _view_of(self, name: str) -> ServerStatus:
        view = self._servers.status_of(name)
        if view is None:
            raise ConfigError(f"server {name!r} was removed from configuration meanwhile")
        return view

    def _is_in_file(self, name: str) -> bool:
        server = self.configuration.servers.get(name)
        return server is not None and server.scope != "dynamic" and not self._sources.only_given

    def for_agent(
        self,
        servers: Sequence[str | Mapping[str, object]] = (),
        *,
        required: Sequence[str] = (),
        has_tool: Callable[[str], bool] = lambda name: True,
        disallowed: Sequence[str] = (),
        start_in: Path | Literal["own"] | None = None,
    ) -> AgentServers:
        """The servers of one agent: names share this host's connections, `{name: entry}` are its own.
        `has_tool`: which of their tools the agent has, by qualified name. `disallowed`: tools that it does
        not have, as in deny rules: found by every name that they could have. `start_in`: where its own
        servers start: in this folder, or each in a folder of its own; None: where this program works.

        `ConfigError` if a server it names, or one that is required, is missing or may not be started.
        """
        prohibited(disallowed)  # an error comes before a host for its own servers is made
        if iscoroutinefunction(has_tool):  # a coroutine would count as a yes
            raise ConfigError("has_tool must be a plain function", hint="Do not write it with `async def`.")
        shared, inline = split(servers)
        known = self._servers.configuration.servers
        prefixes = {prefix(name) for name in known}
        for name in inline:
            if name in known or f"{RESERVED}{name}__" in prefixes:
                # The rules and the trust of the host's server would apply to it.
                raise ConfigError(
                    f"the agent's own server {name!r} has the name of one of the host's",
                    hint="Give it another name, or name the host's without an entry.",
                )
            if any(child._has_other(name, inline[name], start_in) for child in self._children):
                # A permission for the session would apply to both.
                raise ConfigError(
                    f"the agent's own server {name!r} has the name of another agent's, with another entry",
                    hint="Give it another name.",
                )
        own = self._child(inline, start_in) if inline else None
        borrowed = [name for name in dict.fromkeys((*shared, *required)) if name not in inline]
        for name in borrowed:
            _check_usable(name, self._servers.configuration.servers.get(name))
        for name in required:
            if own is not None and name in inline:
                _check_usable(name, own.configuration.servers.get(name))
        return AgentServers(self, borrowed, own, has_tool, disallowed)

    def for_account(self, account: AccountOptions) -> Host:
        """A host for the servers that this one sets aside, signed in to with this account. Entries, rules,
        hooks, policy, audit log and person are those of this host. It ends with this one."""
        return self._child_of(self._sources, account)

    async def relay(self, events: AsyncIterator[Event]) -> None:
        """Publishes another host's events as this one's, until they end."""
        async for event in events:
            self._bus.publish(event)

    # Wiring.

    def _has_other(self, name: str, entry: object, start_in: Path | str | None) -> bool:
        """Whether a server of this name, with another entry or folder, may be in use."""
        given, folder = self._sources.given, self._sources.given_in
        return self._stage != "closed" and name in given and (given[name], folder) != (entry, start_in)

    def _child(self, servers: Mapping[str, object], start_in: Path | Literal["own"] | None) -> Host:
        """A host for an agent's own servers, in everything else like this one."""
        given = {"given": servers, "given_source": "agent", "given_in": start_in}
        return self._child_of(structs.replace(self._sources, **given, only_given=True))

    def _child_of(self, sources: Sources, account: AccountOptions | None = None) -> Host:
        child = Host(
            sources,
            parent=self,
            account=account,
            interaction=self._options.get("interaction"),
            clock=self._options.get("clock"),
            tool_lock=self._options.get("tool_lock"),
            sampler=self._options.get("sampler"),
            roots=self._roots.named,
            extensions=self._options.get("extensions"),
            accounts=self.accounts,
        )
        child._reader.shared = self._reader.shared
        self._live.add_child(child._live)
        self._children.add(child)
        return child

    def _redactor_of(self, server: str) -> Redactor | None:
        return self._servers.redactor_of(server)


def _admission(lock: Path) -> Admit:
    from dragoman.catalog.lock import admission  # few hosts have a tool lock

    return admission(lock)


def _check_usable(name: str, server: ConfiguredServer | None) -> None:
    if server is None:
        raise ConfigError(
            f"the agent needs server {name!r}, which is not configured",
            hint=f"Add it with `dragoman mcp add {shell_quoted(name)} …`.",
        )
    if server.eligibility != "ready":
        raise ConfigError(
            f"the agent needs server {name!r}, which is {server.eligibility}: {server.reason}",
            hint="`dragoman mcp list` shows what to do.",
        )
