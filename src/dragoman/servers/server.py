"""One server of a host: its configured entry, its connection, and everything that is known of it.

A changed entry gets a new `Server`, so that comparing two of them shows whether a decision still holds for
the server that it was made for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from dragoman.catalog.catalog import Catalog, ServerTools
from dragoman.catalog.listing import ToolList, covered
from dragoman.catalog.paging import Listing
from dragoman.catalog.tools import Tool
from dragoman.config.masking import secrets_of
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import ServerConfig
from dragoman.connections.connection import Connection, ConnectionHandlers, HeldBack
from dragoman.connections.factory import (
    MakeTransport,
    TransportDependencies,
    inprocess_maker,
    network_of,
    oauth_credentials,
    older_maker,
    transport_maker,
    uses_oauth,
)
from dragoman.connections.failures import list_failed
from dragoman.connections.reachability import TcpProbe
from dragoman.connections.resource_subscriptions import ResourceSubscriptions
from dragoman.connections.server_log import ServerLogs
from dragoman.connections.server_requests import RequestHandler, ServerRequests
from dragoman.connections.session import Session
from dragoman.connections.state import Disable, Hold
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.content.redact import Redactor
from dragoman.errors import ConfigError, DragomanError, NotConnected, PolicyRefused, reworded, status_phrase
from dragoman.events import PromptsChanged, ResourcesChanged, ServerEvent, ToolsChanged
from dragoman.names import ServerName
from dragoman.protocol import LogLevel
from dragoman.servers import stored_tools
from dragoman.servers.lists import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    BackgroundReading,
    ListContext,
    ListReader,
    notifies_changes,
    offers,
)
from dragoman.servers.read_cache import ReadCache
from dragoman.servers.status import ServerStatus, status_of
from dragoman.settings import Settings
from dragoman.transport_types import IN_PROCESS, UNUSABLE
from dragoman.transports.base import Transport
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials

IDE_TOOLS: Final = ("executeCode", "getDiagnostics")
"""Of an editor's tools only these are for models; the others drive the editor."""


class _TaskNotice(Struct, rename="camel"):
    task_id: str


class ServerContext(Struct, frozen=True):
    """What the servers of a host share."""

    connections: ConnectionContext
    catalog: Catalog
    transports: TransportDependencies
    handlers_of: Callable[[ConfiguredServer], Sequence[RequestHandler]]
    """Those for the requests that a server may send."""
    environ: Callable[[], Mapping[str, str]]
    start_checked: Callable[[ConfiguredServer], ServerConfig]
    """The entry as it is started now; raises `ConfigError` if files do not allow the start."""

    logs: ServerLogs | None = None
    """The log files of servers; None: there are none."""

    @property
    def settings(self) -> Settings:
        return self.connections.settings


class Server:
    def __init__(self, entry: ConfiguredServer, context: ServerContext) -> None:
        self.name = ServerName(entry.name)
        self.entry = entry
        self._context = context
        self._retired_with: DragomanError | None = None
        """Why no caller is given a session any more."""
        config = self.config
        held = _held(entry)
        # A server that is not started sends nothing; looking for secrets would only cost time.
        secrets = () if held is not None else secrets_of(config, entry.candidate.given, context.environ())
        self.redactor = Redactor(secrets)
        """Covers the secrets of the entry, and secrets that become known later, also during a call."""
        self.tools = ServerTools(self.name, _offered_by(config))
        list_context = ListContext(
            self.name, context.settings, context.connections.clock, self.redactor, context.catalog.admit
        )
        self._tool_list = ListReader(TOOLS, list_context, self._tools_read)
        self.resources = ListReader(RESOURCES, list_context)
        self.templates = ListReader(TEMPLATES, list_context)
        self.prompts = ListReader(PROMPTS, list_context)
        self.reads = ReadCache(context.connections.clock)
        """Resources that were read."""
        self._background = {
            "tools": BackgroundReading((self._tool_list,)),
            "resources": BackgroundReading((self.resources, self.templates), self._resources_read),
            "prompts": BackgroundReading((self.prompts,), self._prompts_read),
        }
        self._oauth: OAuthCredentials | None = None
        self.task_listeners: dict[str, asyncio.Event] = {}
        """By the server's id of a task: the event that is set when the server announces a change."""
        self.requests = ServerRequests(context.handlers_of(entry))
        """Answers what the server asks for."""
        self.log_level: LogLevel | None = config.log_level
        """The least severe log messages that it is asked for; None: as it decides by itself."""
        self._setting_level: asyncio.Task[None] | None = None
        log = context.logs.of(self.name, self.redactor.text) if context.logs and held is None else None
        self.connection = Connection(
            self.name,
            self._target(config, is_held=held is not None),
            context.connections,
            ConnectionHandlers(self._prepare, self._notified, self.requests, log),
            held,
        )
        self.update(entry)

    def update(self, entry: ConfiguredServer) -> None:
        """Takes over an entry that describes the same server, and settings that may have changed."""
        self.entry = entry
        limit_ms = self.config.timeout
        self.timeout_seconds = (
            self._context.settings.seconds("MCP_TOOL_TIMEOUT") if limit_ms is None else limit_ms / 1000
        )
        """How long a call may take."""

    # What is known of it.

    @property
    def config(self) -> ServerConfig:
        return self.entry.config or ServerConfig(type=UNUSABLE)

    def learn_secrets(self, secrets: tuple[str, ...]) -> None:
        """Credentials that are sent to the server are redacted in its answers, too."""
        self.redactor.learn(secrets)

    @property
    def is_trusted(self) -> bool:
        """Whether the person believes what the server declares of its tools."""
        return self.config.trusted

    def is_retry_safe(self, tool: Tool) -> bool:
        """Whether a call that may have run is made again, because its server declares that this is safe."""
        is_wanted = self._context.settings["DRAGOMAN_REPEAT_SAFE_CALLS"]
        return bool(is_wanted) and self._retired_with is None and self.is_trusted and tool.hints.idempotent

    @property
    def request_seconds(self) -> float:
        """How long a request that is no call may take."""
        return self._context.settings.seconds("MCP_REQUEST_TIMEOUT_MS")

    @property
    def capabilities(self) -> Mapping[str, Any]:
        handshake_result = self.connection.handshake_result
        return handshake_result.capabilities if handshake_result is not None else {}

    def offers(self, capability: str) -> bool:
        return offers(self.capabilities, capability)

    def notifies_changes(self, capability: str) -> bool:
        return notifies_changes(self.capabilities, capability)

    @property
    def absence(self) -> str | None:
        """Why a server that is wanted cannot be asked now; None if it is there, or not wanted."""
        state = self.connection.state
        if self.connection.is_held or state.status in ("connected", "disabled"):
            return None
        reason = state.reason or f"it {status_phrase(state.phase or state.status)}"
        return self.redactor.text(reason).removeprefix(f"{self.name}: ")

    @property
    def subscriptions(self) -> ResourceSubscriptions:
        return self.connection.subscriptions

    def status(self) -> ServerStatus:
        """Its status at this moment, without secrets of its entry."""
        return status_of(self, self._context.catalog)

    # Sessions for calls.

    def session(self) -> Session | None:
        """The session to make calls on, if there is one at this moment."""
        return None if self._retired_with is not None else self.connection.session()

    async def wait_for_session(self, seconds: float) -> Session:
        """The session, once the connecting that is under way is done; `NotConnected` if there is none."""
        if self._retired_with is not None:
            raise self._retired_with
        try:
            session = await self.connection.wait_for_session(seconds)
        except NotConnected as error:
            if self._retired_with is not None:
                raise self._retired_with from None
            # Its reason is what the server, or a party between, has answered: it may repeat what it was sent.
            raise reworded(error, self.redactor.text) from None
        if self._retired_with is not None:
            raise self._retired_with
        return session

    async def read_tools_again(self, session: Session, seconds: float) -> None:
        await self._tool_list.get(session, fresh=True, within_seconds=seconds)

    def refresh_tools_if_expired(self) -> None:
        """Reads the list of tools again in the background when it is used past its time."""
        session = self.session()
        if session is not None and self._tool_list.is_overdue() and _has_running_loop():
            self._background["tools"].changed(session)

    def checked_credentials(self) -> OAuthCredentials | None:
        """The tokens of a server that uses OAuth. Raises what a start would raise: an entry that is not
        approved, not admitted or disabled is not contacted for a sign-in either."""
        self._check_startable()
        return self._credentials(self._context.start_checked(self.entry))

    def _credentials(self, config: ServerConfig) -> OAuthCredentials | None:
        if self._oauth is None:
            is_given = self.entry.scope == "dynamic"
            self._oauth = oauth_credentials(self.name, config, self._context.transports, is_given=is_given)
        return self._oauth

    async def close_credentials(self) -> None:
        if self._oauth is not None:
            await self._oauth.close()

    async def _wait_for_sign_in(self) -> None:
        assert self._oauth is not None, "a server asks for a sign-in in the answer to a message"
        await self._oauth.wait_for_sign_in()

    def renew_credentials(self) -> None:
        """Makes its credentials again from the configuration, and reconnects, if it uses company sign-on."""
        if self._oauth is None or self._oauth.entry.grant != "xaa":
            return
        self._oauth = None
        if self.connection.state.status != "disabled":
            self.connection.reconnect()

    @property
    def uses_oauth(self) -> bool:
        return uses_oauth(self.config)

    def announce_roots(self) -> None:
        """Notifies a server of the legacy era that the roots have changed, if it was offered any."""
        session = self.connection.session()
        if session is not None and session.driver.era == "legacy" and "roots" in self.requests.capabilities:
            session.notify("notifications/roots/list_changed")

    # Requests from users.

    async def reconnect(self) -> None:
        self._check_startable()
        if self._oauth is not None:
            self._oauth.needs_auth.forget()
        self.connection.reconnect()
        await self.connection.settled()

    async def enable(self) -> None:
        self._check_startable()
        if self.connection.is_lazy and not self._context.catalog.count(self.tools):
            self.connection.reconnect()  # one that shows no tools would never be used
        else:
            self.connection.enable()
        await self.connection.settled()

    async def disable(self) -> None:
        self._check_startable()
        self.connection.disable()
        await self.connection.settled()
        if self.connection.state.status == "disabled":
            self.forget_lists()

    async def set_log_level(self, level: LogLevel | None) -> None:
        """Asks for log messages of this level and above, now and after each reconnect. Raises what the
        server answers."""
        self.log_level = level
        session = self.session()
        if session is not None:
            await self._send_log_level(session)

    async def _send_log_level(self, session: Session) -> None:
        level = self.log_level
        if session.driver.set_log_level(level) or level is None or not self.offers("logging"):
            return
        await session.request("logging/setLevel", {"level": level}, timeout_seconds=self.request_seconds)

    async def _set_log_level_again(self, session: Session) -> None:
        """After connecting; a server that refuses can be used all the same."""
        try:
            await self._send_log_level(session)
        except DragomanError as error:
            self.connection.log_problem(f"its log level could not be set: {error}")

    def retire(self, why: DragomanError) -> None:
        """No caller gets a session from now on; the connection is closed next."""
        self._retired_with = why
        self._context.catalog.remove(self.tools)
        self.stop_reading()

    def stop_reading(self) -> None:
        # A reading that a caller waits for ends with its session, with an error.
        for reading in self._background.values():
            reading.stop()
        if self._setting_level is not None:
            self._setting_level.cancel()

    def forget_lists(self) -> None:
        """Drops what the server offered."""
        self.stop_reading()
        for reader in (self._tool_list, self.resources, self.templates, self.prompts):
            reader.forget()
        self.reads.changed()
        self.tools.set(ToolList())
        self._context.catalog.changed()

    def _check_startable(self) -> None:
        if self.connection.is_held:
            raise self.connection.error or ConfigError(
                f"server {self.name!r} cannot be started: {self.connection.state.reason}",
                hint="`dragoman mcp get` shows what to do.",
            )

    # What its connection calls.

    async def _prepare(self, session: Session, seconds: float) -> None:
        if self._retired_with is not None:
            return
        self.stop_reading()
        for reader in (self.resources, self.templates, self.prompts):
            reader.forget()  # a new connection may have other credentials
        self.reads.changed()
        if self.log_level is not None:
            self._setting_level = asyncio.create_task(self._set_log_level_again(session))
        for capability in ("resources", "prompts"):
            if self.offers(capability):
                self._background[capability].start(
                    session, notifies_changes=self.notifies_changes(capability)
                )
        listing = await self._tool_list.get(session, fresh=True, within_seconds=seconds)
        # If the connection itself was lost, `Connection` raises an error with more detail.
        if listing.failure is not None and session.lost_cause is None and self.offers("tools"):
            raise list_failed(self.name, listing.failure)
        if self.config.lazy:
            await asyncio.to_thread(stored_tools.store, stored_tools.key_of(self.config), self.tools.listing)

    def _notified(
        self, session: Session, method: str, params: Raw = ABSENT, *, is_reported: bool = True
    ) -> None:
        if self._retired_with is not None:
            return
        if method == "notifications/tasks/status":
            self._task_changed(params)
        if method in ("notifications/resources/updated", "notifications/resources/list_changed"):
            self.reads.reported += is_reported
            self.reads.changed()
        for capability, reading in self._background.items():
            if method == f"notifications/{capability}/list_changed" and (
                capability == "tools" or self.offers(capability)
            ):
                reading.changed(
                    session, notifies_changes=self.notifies_changes(capability) or capability == "tools"
                )

    def read_list_again(self, kind: str) -> None:
        """Reads a list in the background, as after a notification; nothing if it is not connected."""
        session = self.session()
        if session is not None:
            self._notified(session, f"notifications/{kind}/list_changed", is_reported=False)

    def _task_changed(self, params: Raw) -> None:
        with contextlib.suppress(Unreadable):
            event = self.task_listeners.get(decode_as(_TaskNotice, params).task_id)
            if event is not None:
                event.set()

    def _tools_read(self, listing: ToolList) -> None:
        if self._retired_with is not None:
            return
        difference = self.tools.set(listing)
        self._context.catalog.changed()
        self._publish(
            lambda: ToolsChanged(
                server=self.name,
                tool_count=len(self.tools.listing.items),
                problems=listing.problems,
                changed=difference.changed,
            )
        )

    def _resources_read(self) -> None:
        resources, templates = self.resources.known or Listing(), self.templates.known or Listing()
        self._publish(
            lambda: ResourcesChanged(
                server=self.name,
                resource_count=len(resources.items),
                template_count=len(templates.items),
                problems=(*resources.problems, *templates.problems),
            )
        )

    def _prompts_read(self) -> None:
        prompts = self.prompts.known or Listing()
        self._publish(
            lambda: PromptsChanged(
                server=self.name, prompt_count=len(prompts.items), problems=prompts.problems
            )
        )

    def _publish(self, make: Callable[[], ServerEvent]) -> None:
        if self._context.connections.bus.has_listeners:
            self._context.connections.bus.publish(make())

    # From the entry to the connection.

    def _target(self, config: ServerConfig, *, is_held: bool) -> ConnectionTarget:
        is_lazy = config.lazy and config.transport.starts_command and not is_held
        idle = self._context.settings.seconds("DRAGOMAN_IDLE_STOP_MS")
        return ConnectionTarget(
            make_transport=self._maker(transport_maker),
            older_transport=self._maker(older_maker) if config.transport.older is not None else None,
            protocol=config.protocol,
            fingerprint=config.fingerprint() if config.command or config.url else None,
            place=config.transport.place,
            probe=_probe_of(config),
            wait_for_sign_in=self._wait_for_sign_in if uses_oauth(config) else None,
            idle_seconds=idle if is_lazy else None,
            starts_on_use=is_lazy and self._show_stored_tools(config),
        )

    def _maker(self, maker: Callable[..., MakeTransport | None]) -> MakeTransport:
        """Makes transports, and judges the server each time: a start can come long after configuration was
        read. An unusable entry raises when its server is connected."""

        def make() -> Transport:
            config = self._context.start_checked(self.entry)
            if config.type == IN_PROCESS:
                return inprocess_maker(self.name, self.entry.candidate.given)()
            sign_in = self._credentials(config)
            found = maker(self.name, config, self._context.settings, self._context.transports, sign_in)
            assert found is not None
            return found()

        return make

    def _show_stored_tools(self, config: ServerConfig) -> bool:
        """Shows what a lazy server offered last time; whether anything is known."""
        stored = stored_tools.load(stored_tools.key_of(config))
        if stored is None:
            return False
        listing = covered(stored, self.redactor) if self.redactor else stored
        self._tool_list.start_with(listing)
        self.tools.set(listing)
        return True


def _offered_by(config: ServerConfig) -> Callable[[str], bool] | None:
    """By wire name, which tools are listed; None: all."""
    if config.transport.is_editor:
        return lambda tool: tool in IDE_TOOLS and config.offers(tool)
    return config.offers if config.enabled_tools is not None or config.disabled_tools else None


def _probe_of(config: ServerConfig) -> TcpProbe | None:
    """How to find out that a remote server can be reached again."""
    if config.url is None or config.transport.place != "remote":
        return None

    async def probe() -> bool:
        from dragoman.transports import web

        return await web.accepts_connections(network_of(config))

    return probe


def _held(entry: ConfiguredServer) -> HeldBack | None:
    """The state in which a server is listed that is not to be started; None if it is to be."""
    reason = entry.reason or ""
    match entry.eligibility:
        case "pending":
            return HeldBack(Hold(f"needs approval: {reason}"))
        case "refused":
            return HeldBack(Disable(f"not admitted: {reason}"), PolicyRefused(entry.name, reason))
        case "rejected" | "disabled":
            return HeldBack(Disable(reason))
        case _:
            return None


def _has_running_loop() -> bool:
    """A program may look at tools from a thread that runs nothing in the background."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
