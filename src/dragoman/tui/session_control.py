"""Controls the session of the application: opens it, sends and queues messages, runs and stops turns.
`/clear`, `/resume` and `/model` replace the session by another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from dragoman.agent.events import AgentEvent, Message, TextDelta, ThinkingDelta, ToolCallProgressed
from dragoman.agent.mentions import expanded
from dragoman.agent.models import ModelChoice, load_model
from dragoman.agent.session import AgentOptions, AgentSession, open_session
from dragoman.cleaning import one_line
from dragoman.errors import status_phrase
from dragoman.host import Host
from dragoman.tui.blocks import PromptBlock, blocks_of
from dragoman.tui.status_line import NEARLY_FULL
from dragoman.tui.turn import TurnView
from dragoman.tui.web_page_questions import AppSignIn

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from dragoman.tui.app import ConversationApp

NEARLY_FULL_NOTE: Final = (
    "The context is nearly full: soon the conversation is replaced by a summary. /compact does it now, "
    "/context shows what fills it."
)
BUSY: Final = "Wait until the model has finished, or stop it with Esc."


class SessionControl:
    def __init__(
        self,
        app: ConversationApp,
        host: Host,
        options: AgentOptions,
        load: Callable[[ModelChoice], Awaitable[Model]] = load_model,
    ) -> None:
        self.host = host
        self.options = options
        self.session: AgentSession | None = None
        """The open session; None until the model is loaded and servers are connected."""
        self.transcript_id: str | None = None
        """The id of the transcript; None before the first message."""
        self.turn = TurnView(app.conversation)
        self._app = app
        self._load = load
        self._running: asyncio.Task[None] | None = None
        self._started_at = 0.0
        self._early: list[Message] = []
        """Messages that were sent before the session was open."""
        self._change = asyncio.Event()
        """An event that is set when another session is to be opened."""
        self._has_warned = False

    # Sessions.

    async def keep_open(self) -> None:
        """Opens the session, and another one after each `change`."""
        while True:
            self._change.clear()
            try:
                async with open_session(self.host, self.options, self._load) as session:
                    self._opened(session)
                    await self._change.wait()
                    session.end_reason = "clear" if self.options.resume is None else "resume"
                    await self._stop_and_wait()
            except Exception as error:  # border: the model library, the disk
                self._app.show_error(error)
                await self._change.wait()
            finally:
                self.session = None
            self._app.conversation.show_all([])

    def _opened(self, session: AgentSession) -> None:
        self.session = session
        self._app.on_session_opened()
        session.subagents.on_event = self._on_event
        session.conversation.expand = self._expanded
        self._has_warned = False
        if history := session.conversation.history:
            self._app.conversation.show_all(blocks_of(history))
            self._app.note("The conversation is continued.")
        early, self._early = self._early, []
        for message in early:
            self.send(message)
        self._app.tick()

    def change(self, options: AgentOptions) -> None:
        """Ends this conversation, and opens another one with these options."""
        self.options = options
        self.transcript_id = options.resume
        self._change.set()

    def leave(self) -> None:
        """Sets the reason that hooks of `SessionEnd` receive when the person quits."""
        if self.session is not None:
            self.session.end_reason = "prompt_input_exit"

    def resume(self, name: str | None) -> None:
        if name is not None:
            self.change(structs.replace(self.options, resume=name))

    # Messages.

    @property
    def queued(self) -> list[Message]:
        """The messages that wait to be sent; they can be removed from this list."""
        return self._early if self.session is None else self.session.conversation.queued

    def send(self, message: Message) -> None:
        """Sends a message to the model, or queues it until that is possible."""
        if self.session is None or self.is_working:
            self.queued.append(message)
        else:
            self._app.conversation.add(PromptBlock(message.written))
            self.run(self._converse(self.session, message))
        self._app.tick()

    async def _expanded(self, text: str) -> str:
        """The message with the files and resources that it mentions."""
        text, problems = await expanded(text, self.host, self.options.folder, self.options.extra_folders)
        for problem in problems:
            self._app.note(problem, is_problem=True)
        return text

    async def _converse(self, session: AgentSession, message: Message) -> None:
        self.transcript_id = session.transcript.id
        reply = await session.conversation.run(message, self._on_event)
        if reply.stopped_by != "end":
            self._app.note(reply.stopped_text)
        share = session.conversation.context_tokens / session.conversation.context_limit
        if share >= NEARLY_FULL and not self._has_warned:
            self._app.note(NEARLY_FULL_NOTE)
        self._has_warned = share >= NEARLY_FULL

    def _on_event(self, event: AgentEvent) -> None:
        self.turn.show(event)
        if not isinstance(event, TextDelta | ThinkingDelta | ToolCallProgressed):  # these events are frequent
            self._app.tick()

    # Work that Esc cancels.

    @property
    def is_working(self) -> bool:
        return self._running is not None and not self._running.done()

    @property
    def elapsed_seconds(self) -> int:
        """The seconds since the work began."""
        return int(time.monotonic() - self._started_at)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self._started_at = time.monotonic()
        self.turn.begin()
        self._running = self._app.start(self._run_and_report(work))

    async def _run_and_report(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if self._app.is_running:
                self.turn.interrupt()
                self._take_back_queued()
                self._app.note("Interrupted.")
            raise
        except Exception as error:  # border: the model library
            self._app.show_error(error)
        finally:
            if self._app.is_running:
                self.turn.end()
                self._app.call_later(self._app.tick)

    def stop(self) -> bool:
        """Cancels the running work and its calls; servers stay connected. Returns false if there is none."""
        if self._running is None or self._running.done():
            return False
        self._running.cancel()
        return True

    async def _stop_and_wait(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _take_back_queued(self) -> None:
        """Moves the messages that were queued for an interrupted turn back to the prompt."""
        prompt, queued = self._app.prompt, self.queued
        if queued:
            written = [message.written for message in queued]
            prompt.write("\n".join([*written, *([prompt.text] if prompt.text else [])]))
            queued.clear()

    def compact(self, instructions: str = "") -> None:
        """Compacts the conversation. `instructions`: the person's instructions for the summary."""
        if self.session is None or self.is_working:
            self._app.note(BUSY, is_problem=True)
        elif not self.session.conversation.history:
            self._app.note("The conversation has no messages yet.")
        else:
            self.run(self.session.conversation.compact(self._on_event, instructions=instructions))

    def sign_in(self, name: str | None) -> None:
        if name is None:
            return
        if self.is_working:
            self._app.note(BUSY, is_problem=True)
        else:
            self.run(self._sign_in(name))

    async def _sign_in(self, name: str) -> None:
        view = await self.host.sign_in(name, AppSignIn(self._app, name))
        self._app.note(f"server {one_line(name, 60)} {status_phrase(view.status)}")
