"""Sign-ins to the servers of a host, and the pseudo-tools by which a model starts one.

A pseudo-tool, `mcp__<server>__authenticate`, is offered for a server only while it waits for a sign-in, and
recognised as the object that is made here, never by its name: a server's own tool called `authenticate` is an
ordinary tool. A call starts the sign-in and returns the page for the person; when the sign-in ends, the
server's real tools take the place of this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.catalog.naming import assign, qualify
from dragoman.catalog.tools import BuiltinTool
from dragoman.connections.factory import oauth_unused
from dragoman.errors import DragomanError, SignInFailed, reworded, status_phrase
from dragoman.interaction import SignInScreen
from dragoman.names import ServerName, WireToolName
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.servers.status import ServerStatus

if TYPE_CHECKING:  # loaded when the first sign-in begins
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.auth.state import SignInState

SIGN_IN: Final = "authenticate"
URL_SECONDS: Final = 30.0
"""How long a call waits until the URL of the page is known."""

SignIn = Callable[[str, "CollectingScreen"], Awaitable[ServerStatus]]


async def sign_in(
    servers: ServerRegistry,
    name: str,
    screen: SignInScreen,
    *,
    timeout: float,
    on_device: bool,
    identity: str | None,
) -> None:
    """Signs in, as `Host.sign_in` describes; the caller reconnects the server afterwards."""
    from dragoman.auth.sign_in import sign_in

    credentials = _credentials(servers, name, identity)
    if not credentials.challenge and servers.named(name).status().status == "needs-auth":
        _credentials(servers, name).needs_auth.forget()  # the server has to send its challenge first
        await servers.named(name).reconnect()
        credentials = _credentials(servers, name, identity)
    try:
        await sign_in(credentials, screen, timeout, on_device=on_device)
    except SignInFailed as error:  # an authorization server may repeat what it was sent
        redact = servers.redactor_of(ServerName(name))
        raise (reworded(error, redact.text) if redact else error) from None


async def state(servers: ServerRegistry, name: str, identity: str | None) -> SignInState:
    from dragoman.auth.state import sign_in_state

    return await sign_in_state(_credentials(servers, name, identity))


async def sign_out(servers: ServerRegistry, name: str, identity: str | None) -> str | None:
    """Signs out; returns why the tokens could not be revoked, if that failed."""
    from dragoman.auth.revocation import sign_out

    return await sign_out(_credentials(servers, name, identity))


def _credentials(servers: ServerRegistry, name: str, identity: str | None = None) -> OAuthCredentials:
    credentials = servers.named(name).checked_credentials()
    if credentials is None:
        raise oauth_unused(name)
    return credentials if identity is None else credentials.for_identity(identity)


class SignInTool(BuiltinTool):
    """The pseudo-tool of one server."""

    def __init__(self, server: Server, sign_in: SignIn) -> None:
        super().__init__(
            SIGN_IN,
            self._run,
            title=f"Sign in to {server.name}",
            description=(
                f"The server {server.name} requires a sign-in before its tools can be used. Starts the "
                "sign-in and returns the URL that the user must open. Call it again to see if it is done."
            ),
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
            needs_permission=False,
        )
        self.name = qualify(server.name, SIGN_IN)
        self.signs_in_to = server.name
        self._sign_in = sign_in
        self._screen: CollectingScreen | None = None
        self._task: asyncio.Task[None] | None = None

    def target(self, arguments: Mapping[str, Any]) -> tuple[ServerName, str]:
        """Rules and hooks about the server apply to this tool: a rule that denies the server denies its
        sign-in."""
        return self.signs_in_to, SIGN_IN

    async def _run(self, arguments: Mapping[str, Any]) -> str:
        if (ended := self._take_result()) is not None:
            return ended
        if self._task is None:
            self._screen = CollectingScreen()
            self._task = asyncio.create_task(self._attempt(self._screen), name="dragoman sign-in")
        assert self._screen is not None
        waiting = asyncio.ensure_future(self._screen.url.wait())
        try:
            await asyncio.wait(
                [self._task, waiting], timeout=URL_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
        text = self._state(self._screen)
        if self._task.done():
            self._task = self._screen = None
        return text

    def _take_result(self) -> str | None:
        """The result of the last attempt, returned once; the next call begins a new attempt."""
        if self._task is None or not self._task.done() or self._screen is None:
            return None
        text = self._state(self._screen)
        self._task = self._screen = None
        return text

    async def _attempt(self, screen: CollectingScreen) -> None:
        try:
            view = await self._sign_in(self.signs_in_to, screen)
        except DragomanError as error:
            screen.problem = f"{error}" + (f" {error.hint}" if error.hint else "")
        except Exception as error:  # border: the model is given any failure
            screen.problem = f"unexpected error {type(error).__name__}"
        else:
            if view.status != "connected":
                screen.problem = view.reason or f"the server {status_phrase(view.status)}"

    def _state(self, screen: CollectingScreen) -> str:
        name = self.signs_in_to
        if screen.problem is not None:
            return f"The sign-in to {name} failed: {screen.problem}"
        if self._task is not None and self._task.done():
            return f"The sign-in to {name} is done. Its tools can be used now."
        if not screen.pages:
            return f"The sign-in to {name} has begun; its page is not known yet. Call this tool again."
        lines = [f"Ask the user to open this page and sign in to {name}:", screen.pages[-1], *screen.notices]
        return "\n".join([*lines, "The sign-in is complete when the page says so."])

    def abandon(self) -> None:
        """Ends an attempt whose server was replaced."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


class CollectingScreen:
    """A `SignInScreen` that only stores what is to be shown. Without a person, no secret is confirmed."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.notices: list[str] = []
        self.problem: str | None = None
        self.url = asyncio.Event()

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        self.pages.append(url)
        self.url.set()

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        self.pages.append(f"{url} (code {code})")
        self.url.set()

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        return False

    def notice(self, text: str) -> None:
        self.notices.append(text)


class SignInTools:
    """The pseudo-tools of a host."""

    def __init__(self, servers: ServerRegistry, sign_in: SignIn) -> None:
        self._servers = servers
        self._sign_in = sign_in
        self._tools: dict[str, tuple[Server, SignInTool]] = {}
        """The pseudo-tools by server; a replaced server gets a new one."""

    def tools(self) -> dict[str, SignInTool]:
        """The pseudo-tools of servers that wait for a sign-in, by qualified name."""
        waiting = {
            name: server
            for name, server in self._servers.items()
            if server.connection.state.status == "needs-auth" and server.uses_oauth
        }
        # Names that would be equal get a hash, as for tools, so that no server gets the sign-in of another.
        names = assign((ServerName(name), WireToolName(SIGN_IN)) for name in waiting)
        found: dict[str, SignInTool] = {}
        for (name, _), called in names.of.items():
            tool = found[called] = self._tool_of(name, waiting[name])
            tool.name = called
        return found

    def _tool_of(self, name: str, server: Server) -> SignInTool:
        known = self._tools.get(name)
        if known is None or known[0] is not server:
            if known is not None:
                known[1].abandon()
            known = self._tools[name] = (server, SignInTool(server, self._sign_in))
        return known[1]

    async def close(self) -> None:
        await asyncio.gather(*(tool.close() for _, tool in self._tools.values()))
