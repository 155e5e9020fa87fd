"""The terminal application: a conversation with a model, its tool calls, and questions to the person.

The screen is painted before the model library is imported. The conversation continues after failures of a
server, the provider or a command. All text from servers and models is cleaned and never parsed as markup.
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
from textual.events import Key
from textual.widgets import Static

from dragoman.agent.events import Message
from dragoman.agent.models import ModelChoice, load_model
from dragoman.agent.session import AgentOptions
from dragoman.cleaning import one_line, visible
from dragoman.errors import DragomanError
from dragoman.host import Host
from dragoman.permissions.modes import MEANINGS, PermissionMode
from dragoman.tui import commands
from dragoman.tui.blocks import NoteBlock
from dragoman.tui.completion import Completer
from dragoman.tui.conversation import ConversationView
from dragoman.tui.interaction import AppInteraction
from dragoman.tui.prompt import CompletionList, Prompt
from dragoman.tui.question_view import QuestionArea, QuestionView
from dragoman.tui.server_notes import ServerNotes
from dragoman.tui.session_control import SessionControl
from dragoman.tui.status_line import Status, StatusLine
from dragoman.tui.tool_card import ToolCard

if TYPE_CHECKING:
    from pydantic_ai.models import Model

T = TypeVar("T")

QUIT_SECONDS: Final = 2.0
"""The time within which a second Ctrl-C quits."""
TICK_SECONDS: Final = 1.0
MODE_CYCLE: Final[tuple[PermissionMode, ...]] = ("default", "auto", "plan")
KEYS: Final = "Enter sends · Ctrl+J new line · Esc stops · /help"


class ConversationApp(App[int]):
    """The application. `run_async` returns when the person quits."""

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
        Binding("ctrl+g", "answer_question", show=False),
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
        self._options = options
        self._interaction = interaction
        self._load = load
        self._tasks: set[asyncio.Task[Any]] = set()
        self._interrupted_at = float("-inf")
        self.on_session_opened: Callable[[], object] = lambda: None
        """Called when a conversation was loaded, before it is shown."""

    # The screen.

    def compose(self) -> ComposeResult:
        # Stored as attributes: a query searches only the screen in front.
        self.conversation = ConversationView()
        self.prompt = Prompt()
        self._questions = QuestionArea(self.prompt)
        self._queued = Static("", markup=False, id="queued")
        self._activity = Static("", markup=False, id="activity")
        self._completions = CompletionList(Completer(self.host, self._options.folder, commands.CHOICES))
        self._status_line = StatusLine()
        self.control = SessionControl(self, self.host, self._options, self._load)
        yield self.conversation
        yield self._questions
        yield self._queued
        yield self._activity
        yield self._completions
        with Vertical(id="entry") as entry:
            entry.border_subtitle = KEYS
            yield self.prompt
        yield self._status_line

    def on_load(self) -> None:
        # From Python 3.12 on, Textual sets a factory of eager tasks. The host's tasks run in the same event
        # loop, and must not be eager.
        asyncio.get_running_loop().set_task_factory(None)

    def on_mount(self) -> None:
        self._interaction.app = self
        folder = one_line(str(self._options.folder), 200)
        self.note(f"Dragoman in {folder}. Your rules are applied to every call of the model.")
        self.set_interval(TICK_SECONDS, self.tick)
        self.start(ServerNotes(self, self.host).follow())
        self.tick()
        # Opened later: the import of the model library takes seconds, and the screen is painted first.
        self.call_after_refresh(self._open_session)

    def _open_session(self) -> None:
        self.start(self.control.keep_open())  # not returned: Textual would await the task

    async def on_unmount(self) -> None:
        if self.return_value is not None:
            self.control.leave()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs the work as a task that is cancelled when the application ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def note(self, text: str, *, is_problem: bool = False) -> None:
        """Adds a line of the application to the conversation."""
        self.conversation.add(NoteBlock(text, is_problem))

    def show_error(self, error: Exception) -> None:
        if not isinstance(error, DragomanError):
            self.note(f"{type(error).__name__}: {visible(str(error), 1000)}", is_problem=True)
        else:
            self.note(f"{error}\n  {error.hint}" if error.hint else str(error), is_problem=True)

    def tick(self) -> None:
        """Updates the activity, the queued messages and the status line."""
        self._status_line.show(self._status())
        self._activity.display = self.control.is_working
        if self.control.is_working:
            seconds = self.control.elapsed_seconds
            doing = "Waiting for your answer" if self._questions.is_asking else self.control.turn.activity
            self._activity.update(f"… {doing}{f' {seconds} s' if seconds >= 3 else ''} · Esc stops")
        queued = self.control.queued
        self.prompt.has_queued = self._queued.display = bool(queued)
        lines = [f"queued: {one_line(message.written, 200)}" for message in queued[-3:]]
        self._queued.update("\n".join([*lines, "  (sent with the next step; ↑ takes the last one back)"]))

    def _status(self) -> Status:
        status = Status(
            model=self.control.options.model.spec,
            mode=self.host.permission_mode,
            servers=tuple(self.host.servers.values()),
        )
        if self.control.session is None:
            return status
        conversation = self.control.session.conversation
        return structs.replace(
            status,
            is_ready=True,
            context_tokens=conversation.context_tokens,
            context_limit=conversation.context_limit,
            usage=conversation.usage,
        )

    # The prompt.

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        self.conversation.anchor()
        line = commands.parse(message.text)
        if line is None:
            self.control.send(Message(message.text))
        else:
            self.start(self._run_command(line))

    async def _run_command(self, line: commands.CommandLine) -> None:
        try:
            await commands.run(self, line)
        except Exception as error:  # border: the disk, the model library
            self.show_error(error)

    def on_prompt_withdrawn(self) -> None:
        if queued := self.control.queued:
            self.prompt.write(queued.pop().written)
        self.tick()

    def on_prompt_quit(self) -> None:
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

    # Keys.

    def on_key(self, event: Key) -> None:
        """Moves letters that are typed while a tool call has the focus to the prompt."""
        if isinstance(self.focused, ToolCard) and event.is_printable and event.character != " ":
            event.stop()
            self.prompt.focus()
            self.prompt.insert(event.character or "")

    def action_stop(self) -> None:
        if not self.control.stop() and not self._questions.is_asking:
            self.prompt.focus()

    def action_answer_question(self) -> None:
        self._questions.focus_question()

    def action_interrupt(self) -> None:
        """Ctrl-C copies a selection, or stops the running turn; a second Ctrl-C quits."""
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
        self.notify("Ctrl-C again quits.", timeout=QUIT_SECONDS)

    def action_quit_now(self) -> None:
        self.exit(0)

    def action_scroll_up(self) -> None:
        self.conversation.scroll_page_up(animate=False)

    def action_scroll_down(self) -> None:
        self.conversation.scroll_page_down(animate=False)

    def action_next_mode(self) -> None:
        """Selects the next permission mode; the key never selects a mode that allows everything."""
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
        self.control.turn.toggle_last()

    # Questions.

    async def ask(self, view: QuestionView[T]) -> T:
        """Shows the question until it is answered or the calling task is cancelled."""
        if len(self.screen_stack) > 1:
            self.notify("A question waits for your answer. Esc returns to the conversation.")
        return await self._questions.ask(view)

    def on_question_area_changed(self) -> None:
        self.tick()
