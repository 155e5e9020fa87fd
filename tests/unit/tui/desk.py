"""The application with a scripted model and a server in memory, for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from dragoman import Host
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions
from dragoman.config.scopes import Sources
from dragoman.testing import InMemoryServer
from dragoman.testing.model import ScriptedModel
from dragoman.tui import question_view
from dragoman.tui.app import ConversationApp
from dragoman.tui.interaction import AppInteraction

WAIT_SECONDS = 20.0


class Desk:
    """A server with some tools, and what the person sees."""

    def __init__(self) -> None:
        self.server = InMemoryServer("desk")
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.server.add_tool("add", lambda arguments, context: str(arguments["a"] + arguments["b"]))
        self.server.add_tool(
            "lines", lambda arguments, context: "\n".join(f"line {n}" for n in range(arguments["n"]))
        )
        self.server.add_tool("fail", self._fail)
        self.server.add_tool("hang", self._hang)

    def _fail(self, arguments: dict[str, Any], context: object) -> str:
        raise ValueError("the disk is full")

    async def _hang(self, arguments: dict[str, Any], context: Any) -> str:
        self.entered.set()
        await self.release.wait()
        return "released"

    @asynccontextmanager
    async def opened(
        self,
        *script: Any,
        size: tuple[int, int] = (80, 24),
        mode: Any = "bypassPermissions",
        resume: str | None = None,
        servers: dict[str, Any] | None = None,
        folder: Path | None = None,
        is_configured: bool = False,
        **options: Any,
    ) -> AsyncIterator["Seat"]:
        model = ScriptedModel(*script)
        interaction = AppInteraction(folder or Path.cwd())

        async def load(choice: ModelChoice) -> Any:
            return model.model

        given = {"desk": self.server} if servers is None else servers
        sources = Sources.here(given=given) if is_configured else given
        async with Host(sources, permission_mode=mode, interaction=interaction, **options) as host:
            await host.ready(timeout=WAIT_SECONDS)
            choice = AgentOptions(
                model=ModelChoice("scripted:model"), folder=folder or Path.cwd(), resume=resume
            )
            app = ConversationApp(host, choice, interaction, load)
            async with app.run_test(size=size) as pilot:
                seat = Seat(app, pilot, model)
                await seat.until(lambda: app.control.session is not None)
                yield seat


class Seat:
    """The application while it is open."""

    def __init__(self, app: ConversationApp, pilot: Pilot[int], model: ScriptedModel) -> None:
        self.app = app
        self.pilot = pilot
        self.model = model

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.pilot.press(*text)

    async def send(self, text: str) -> None:
        """Writes a message and sends it."""
        self.app.prompt.write(text)
        await self.pilot.press("enter")
        await self.pilot.pause()

    async def say(self, text: str) -> None:
        """Sends a message, and waits for the end of the turn."""
        await self.send(text)
        await self.idle()

    async def idle(self) -> None:
        await self.until(lambda: not self.app.control.is_working)

    @property
    def text(self) -> str:
        """Everything in the conversation that has a widget."""
        return "\n".join(str(each.render()) for each in self.app.conversation.query(Static) if each.display)

    def shown(self, selector: str) -> str:
        return "\n".join(
            str(each.render()) for each in self.app.screen.query(selector).results(Static) if each.display
        )


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(question_view, "QUIET_SECONDS", 0.0)
    return Desk()
