"""The terminal application: a conversation with a model, its tool calls, and questions to the person.

Painted before the model library is imported. The conversation goes on whatever fails: a server, the provider,
a command of the person. All text from servers and models is cleaned and never read as markup.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from msgspec import structs
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from dragoman.agent.events import AgentEvent, TextDelta, ThinkingDelta, ToolCallProgressed
from dragoman.agent.models import ModelChoice, load_model
from dragoman.agent.session import AgentOptions, AgentSession, open_session
from dragoman.cleaning import one_line, visible
from dragoman.errors import DragomanError
from dragoman.events import HookReported, PermissionModeChanged, ServerFailed, ServerStateChanged
from dragoman.host import Host
from dragoman.permissions.modes import MEANINGS, PermissionMode
from dragoman.tui import commands
from dragoman.tui.blocks import NoteBlock, PromptBlock, blocks_of
from dragoman.tui.completion import Completer
from dragoman.tui.completion_list import CompletionList
from dragoman.tui.conversation import ConversationView
from dragoman.tui.interaction import AppInteraction
from dragoman.tui.mentions import expanded
from dragoman.tui.prompt import Prompt
from dragoman.tui.question_view import QuestionView
from dragoman.tui.sign_in import AppSignIn
from dragoman.tui.status_line import Status, StatusLine
from dragoman.tui.turn import TurnView

if TYPE_CHECKING:
    from pydantic_ai.models import Model

T = TypeVar("T")

QUIET_SECONDS: Final = 0.5
"""A question is not answered by keys that were meant for the prompt: it takes the keyboard after such a
pause."""
QUIT_SECONDS: Final = 2.0
"""Within this time a second Ctrl-C quits."""
TICK_SECONDS: Final = 1.0
MODE_CYCLE: Final[tuple[PermissionMode, ...]] = ("default", "auto", "plan")
AROUND_QUESTION_ROWS: Final = 10
"""Rows for the border and keys of a question, the prompt, the status line, and a bit of the conversation."""
KEYS: Final = "Enter sends · Ctrl+J new line · Esc stops · /help"


class ConversationApp(App[int]):
    """`run_async` returns when the person quits."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dragoman"
    CSS_PATH = ["questions.tcss", "app.tcss"]  # noqa: RUF012
    AUTO_FOCUS = "#prompt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", priority=True, show=False),
        Binding("ctrl+q", "quit_now", show=False),
        Binding("escape", "stop", show=False),
        Binding("pageup", "scroll_up", show=False),
        Binding("pagedown", "scroll_down", show=False),
        Binding("ctrl+o", "toggle_last", show=False),
    ]

    def __init__(
        self,
        host: Host,
        options: AgentOptions,
        interaction: AppInteraction,
        load: Callable[[ModelChoice], Awaitable[Model]] = load_model,
    ) -> None:
        super().__init__()
        self.host = host
        self.options = options
        self.session: AgentSession | None = None
        """None while the model is loaded and servers are awaited."""
        self.transcript_id: str | None = None
        """Of the conversation, once something was said in it."""
        self._interaction = interaction
        self._load = load
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turn: asyncio.Task[None] | None = None
        self._early: list[str] = []
        """Prompts that were sent before the session was open."""
        self._change: asyncio.Event = asyncio.Event()
        """Set when another session is to be opened."""
        self._asked: QuestionView[Any] | None = None
        self._interrupted_at = float("-inf")
        self._started_at = 0.0

    # The screen.

    def compose(self) -> ComposeResult:
        # Kept: a query finds only what is on the screen that is shown.
        self.conversation = ConversationView()
        self._question_area = Vertical(id="question")
        self._queued = Static("", markup=False, id="queued")
        self._activity = Static("", markup=False, id="activity")
        self._completions = CompletionList(Completer(self.host, self.options.folder, commands.CHOICES))
        self.prompt = Prompt()
        self._status_line = StatusLine()
        yield self.conversation
        yield self._question_area
        yield self._queued
        yield self._activity
        yield self._completions
        with Vertical(id="entry") as entry:
            entry.border_subtitle = KEYS
            yield self.prompt
        yield self._status_line

    def on_mount(self) -> None:
        self._interaction.app = self
        self.turn = TurnView(self.conversation)
        folder = one_line(str(self.options.folder), 200)
        self.note(f"Dragoman in {folder}. Your rules are applied to every call of the model.")
        self.set_interval(TICK_SECONDS, self.tick)
        self.start(self._follow_events())
        self.tick()
        # The model library takes seconds to import, and the screen is to be seen before.
        self.call_after_refresh(self._begin_session)

    async def on_unmount(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs it beside the screen; it ends with the application."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def note(self, text: str, *, is_problem: bool = False) -> None:
        """Adds a line of the application to the conversation."""
        self.conversation.add(NoteBlock(text, is_problem))

    def show_error(self, error: DragomanError) -> None:
        self.note(f"{error}\n  {error.hint}" if error.hint else str(error), is_problem=True)

    def tick(self) -> None:
        """Shows what changes with time and with the conversation."""
        self._status_line.show(self.status())
        activity = self._activity
        activity.display = self.is_working
        if self.is_working:
            seconds = self.elapsed_seconds
            doing = "Waiting for your answer" if self._asked is not None else self.turn.activity
            activity.update(f"… {doing}{f' {seconds} s' if seconds >= 3 else ''} · Esc stops")
        queued = [*self._early, *(self.session.conversation.queued if self.session is not None else ())]
        self.prompt.has_queued = bool(queued)
        self._queued.display = bool(queued)
        lines = [f"queued: {one_line(text, 200)}" for text in queued]
        self._queued.update("\n".join([*lines[-3:], "  (sent with the next step; ↑ takes the last one back)"]))

    @property
    def elapsed_seconds(self) -> int:
        """Since the turn began."""
        return int(time.monotonic() - self._started_at)

    def status(self) -> Status:
        status = Status(
            model=self.options.model.spec,
            mode=self.host.permission_mode,
            servers=tuple(self.host.servers.values()),
        )
        if self.session is None:
            return status
        conversation = self.session.conversation
        return structs.replace(
            status,
            is_ready=True,
            context_tokens=conversation.context_tokens,
            context_limit=conversation.context_limit,
            usage=conversation.usage,
        )

    # The session.

    def _begin_session(self) -> None:
        self.start(self._keep_session())  # returned, it would be waited for

    async def _keep_session(self) -> None:
        """Opens the session; after `change_session` another one."""
        while True:
            self._change.clear()
            try:
                async with open_session(self.host, self.options, self._load) as session:
                    self._session_opened(session)
                    await self._change.wait()
            except DragomanError as error:
                self.show_error(error)
                await self._change.wait()
            finally:
                self.session = None

    def _session_opened(self, session: AgentSession) -> None:
        self.session = session
        if history := session.conversation.history:
            self.conversation.show_all(blocks_of(history))
            self.note("The conversation is continued.")
        for text in self._early:
            self.send(text)
        self._early.clear()
        self.tick()

    def change_session(self, options: AgentOptions) -> None:
        """Ends this conversation, and opens the one that the options name."""
        self.action_stop()
        self.options = options
        self.conversation.show_all([])
        self._change.set()

    # Turns.

    @property
    def is_working(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        self.conversation.anchor()
        line = commands.parse(message.text)
        if line is None:
            self.send(message.text)
        else:
            self.start(self._run_command(line))

    async def _run_command(self, line: commands.Line) -> None:
        try:
            await commands.run(self, line)
        except DragomanError as error:
            self.show_error(error)

    def send(self, text: str, *, shown: str | None = None) -> None:
        """A message to the model, now or as soon as that is possible. `shown`: what the person wrote."""
        if self.session is None:
            self._early.append(text)
        elif self.is_working:
            self.session.conversation.queue(text)
        else:
            self.conversation.add(PromptBlock(shown or text))
            self.run_turn(self._converse(self.session, text))
        self.tick()

    async def _converse(self, session: AgentSession, text: str) -> None:
        self.transcript_id = session.transcript.id
        text, problems = await expanded(text, self.host, self.options.folder)
        for problem in problems:
            self.note(problem, is_problem=True)
        reply = await session.conversation.run(text, self._on_event)
        if reply.stopped_by == "max-turns":
            self.note(f"Stopped after {reply.turns} turns. Write on to continue.")

    def compact(self) -> None:
        """Has the model summarize the conversation."""
        if self.session is None or self.is_working:
            self.note("That is possible when the model does not work.", is_problem=True)
        elif not self.session.conversation.history:
            self.note("Nothing was said yet.")
        else:
            self.run_turn(self.session.conversation.compact(self._on_event))

    def resume(self, name: str | None) -> None:
        """Continues an earlier conversation."""
        if name is not None:
            self.transcript_id = name
            self.change_session(structs.replace(self.options, resume=name))

    def sign_in(self, name: str | None) -> None:
        """Signs in to a server; Esc stops it."""
        if name is None:
            return
        if self.is_working:
            self.note("Sign in when the model does not work.", is_problem=True)
        else:
            self.run_turn(self._sign_in(name))

    async def _sign_in(self, name: str) -> None:
        view = await self.host.sign_in(name, AppSignIn(self, name))
        self.note(f"server {one_line(name, 60)} is {view.status}")

    def run_turn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work that Esc stops."""
        self._started_at = time.monotonic()
        self.turn.begin()
        self._turn = self.start(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.turn.interrupt()
            self._take_back_queued()
            self.note("Interrupted.")
            raise
        except DragomanError as error:
            self.show_error(error)
        except Exception as error:  # border: the model library
            self.note(f"{type(error).__name__}: {visible(str(error), 1000)}", is_problem=True)
        finally:
            self.turn.end()
            self.call_later(self.tick)

    def _on_event(self, event: AgentEvent) -> None:
        self.turn.show(event)
        if not isinstance(event, TextDelta | ThinkingDelta | ToolCallProgressed):  # those come in hundreds
            self.tick()

    def on_prompt_withdrawn(self) -> None:
        waiting = self._early or (self.session.conversation.queued if self.session is not None else [])
        if waiting:
            self.prompt.write(waiting.pop())
        self.tick()

    def _take_back_queued(self) -> None:
        """What was queued for an interrupted turn is the person's again."""
        if self.session is not None and (queued := self.session.conversation.queued):
            texts = [*queued, *([self.prompt.text] if self.prompt.text else [])]
            self.prompt.write("\n".join(texts))
            queued.clear()

    # Keys.

    def action_stop(self) -> None:
        """Stops the turn, and with it the calls under way; servers stay connected."""
        if self._turn is not None and self.is_working:
            self._turn.cancel()
        elif self._asked is None:
            self.prompt.focus()

    def action_interrupt(self) -> None:
        """Ctrl-C: copies a selection, or stops what is under way; a second one quits."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            return
        now = time.monotonic()
        if now - self._interrupted_at < QUIT_SECONDS:
            self.exit(0)
            return
        self._interrupted_at = now
        self.action_stop()
        self.notify("Ctrl-C again quits, and so does Ctrl-D.", timeout=QUIT_SECONDS)

    def action_quit_now(self) -> None:
        self.exit(0)

    def on_prompt_left(self) -> None:
        self.exit(0)

    def on_text_area_changed(self, event: Prompt.Changed) -> None:
        if event.text_area is self.prompt:
            self._completions.follow(self.prompt)

    def on_prompt_navigated(self, message: Prompt.Navigated) -> None:
        completions = self._completions
        match message.key:
            case "up":
                completions.action_cursor_up()
            case "down":
                completions.action_cursor_down()
            case "tab":
                completions.take(self.prompt)
            case "enter":
                if not completions.take(self.prompt):
                    self.prompt.submit()
            case "escape":
                completions.hide(self.prompt)
            case "pageup":
                self.action_scroll_up()
            case "pagedown":
                self.action_scroll_down()
            case _:
                self.action_next_mode()

    def action_scroll_up(self) -> None:
        self.conversation.scroll_page_up(animate=False)

    def action_scroll_down(self) -> None:
        self.conversation.scroll_page_down(animate=False)

    def action_next_mode(self) -> None:
        """The next permission mode; one that allows everything is never reached by a key alone."""
        place = MODE_CYCLE.index(now) if (now := self.host.permission_mode) in MODE_CYCLE else -1
        mode = MODE_CYCLE[(place + 1) % len(MODE_CYCLE)]
        try:
            self.host.set_permission_mode(mode)
        except DragomanError as error:
            self.show_error(error)
            return
        self.notify(f"mode {mode}: {MEANINGS[mode]}")
        self.tick()

    def action_toggle_last(self) -> None:
        self.turn.toggle_last()

    # Questions.

    async def ask(self, view: QuestionView[T]) -> T:
        """Shows the question until it is answered; it disappears when this is cancelled."""
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        view.answered = answered
        place, keys = self._question_area, Static("…", markup=False, classes="keys")
        await place.mount(view, keys)
        self._asked = view
        place.add_class("-shown")
        if len(self.screen_stack) > 1:
            self.notify("A question waits in the conversation: Esc goes there.")
        self._focus_question()
        self.tick()
        self.call_after_refresh(self._fit_question)
        try:
            return await answered
        finally:
            self._asked = None
            place.remove_class("-shown")
            place.remove_children()
            self.prompt.focus()
            self.tick()

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit_question)

    def _fit_question(self) -> None:
        if self._asked is not None:
            self._asked.fit(self.size.height - AROUND_QUESTION_ROWS)

    def _focus_question(self) -> None:
        """Moves the keyboard to the question, once no key was pressed for a moment."""
        quiet = time.monotonic() - self.prompt.typed_at
        if self._asked is None:
            return
        if quiet < QUIET_SECONDS:
            self.set_timer(QUIET_SECONDS - quiet, self._focus_question)
        else:
            self._asked.begin()
            self._question_area.query_one(".keys", Static).update(self._asked.keys())

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        answered = message.view.answered
        if answered is not None and not answered.done():
            answered.set_result(message.answer)

    # Servers.

    async def _follow_events(self) -> None:
        """Shows what happens to servers and calls."""
        events = self.host.events()
        for view in self.host.servers.values():
            if view.status in ("failed", "needs-auth"):
                self._show_server(
                    view.name, view.status, view.reason or "", getattr(view.error, "hint", None)
                )
        async for event in events:
            match event:
                case ServerFailed():
                    self._show_server(event.server, "failed", event.reason, event.hint)
                case ServerStateChanged(status="needs-auth"):
                    self._show_server(event.server, "needs-auth", event.reason or "", None)
                case HookReported():
                    self.note(f"hook {event.hook} ({event.event}): {event.text}", is_problem=event.is_failure)
                case _:
                    pass
            if isinstance(event, ServerStateChanged | PermissionModeChanged):
                self.tick()

    def _show_server(self, name: str, status: str, reason: str, hint: str | None) -> None:
        """One line with the next step."""
        step = "/mcp signs in." if status == "needs-auth" else hint or f"/mcp reconnect {name}"
        reason = one_line(reason.removeprefix(f"{name}: "), 300).rstrip(".")
        self.note(f"server {one_line(name, 60)}: {reason}. {one_line(step, 200)}", is_problem=True)
