"""The input field, and the list of completions above it.

Enter sends, Ctrl+J begins a new line, arrows recall earlier messages. Pasted text keeps its lines. While
completions are shown, arrows select one and Tab inserts it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from dragoman.cleaning import one_line
from dragoman.errors import DragomanError
from dragoman.tui.completion import Completer, CompletionItem, CompletionRequest, completion_at

HISTORY_LIMIT: Final = 200
_COMPLETION_KEYS: Final = frozenset({"up", "down", "tab", "enter", "escape"})
"""The keys that completions receive while they are shown."""
_APPLICATION_KEYS: Final = frozenset({"pageup", "pagedown", "shift+tab"})
"""The keys that the application receives."""


class PromptHistory:
    """The messages that were sent. While the person looks at them, the unsent text is kept."""

    def __init__(self) -> None:
        self._sent: list[str] = []
        self._place = 0
        self._draft = ""

    def add(self, text: str) -> None:
        if text and (not self._sent or self._sent[-1] != text):
            self._sent = [*self._sent, text][-HISTORY_LIMIT:]
        self._place = len(self._sent)

    def earlier(self, current: str) -> str | None:
        """The message before the current one; None if there is none."""
        if self._place == 0:
            return None
        if self._place == len(self._sent):
            self._draft = current
        self._place -= 1
        return self._sent[self._place]

    def later(self) -> str | None:
        if self._place >= len(self._sent):
            return None
        self._place += 1
        return self._draft if self._place == len(self._sent) else self._sent[self._place]


class Prompt(TextArea):
    class Submitted(Message):
        """The person sends a message."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Navigated(Message):
        """A key that does not edit the text: it selects or inserts a completion, or scrolls."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Withdrawn(Message):
        """The person takes back the last queued message: Up in an empty field."""

    class Quit(Message):
        """Ctrl-D in an empty field."""

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask, or / for commands, @ for files and resources",
        )
        self.sent = PromptHistory()
        self.is_completing = False
        """Whether completions are shown, which then receive arrows, Tab and Enter."""
        self.has_queued = False
        """Whether there is a queued message that can be taken back."""
        self.typed_at = float("-inf")
        """The time of the last key in this field."""

    def write(self, text: str) -> None:
        """Replaces the text, and moves the cursor to its end."""
        self.text = text
        self.move_cursor(self.document.end)

    @property
    def before_cursor(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)

    def replace_word(self, word: str, text: str) -> None:
        """Replaces the word that ends at the cursor."""
        row, column = self.cursor_location
        self.replace(text, (row, column - len(word)), (row, column))
        self.move_cursor((row, column - len(word) + len(text)))

    async def _on_key(self, event: Key) -> None:
        self.typed_at = time.monotonic()
        if self._handle_key(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _handle_key(self, key: str) -> bool:
        """Returns false for a key that edits the text."""
        if key in _APPLICATION_KEYS or (self.is_completing and key in _COMPLETION_KEYS):
            self.post_message(self.Navigated(key))
        elif key == "enter":
            self.submit()
        elif key in ("ctrl+j", "shift+enter", "alt+enter"):
            self.insert("\n")
        elif key == "up" and self.cursor_location[0] == 0:
            return self._recall_earlier()
        elif key == "down" and self.cursor_location[0] == self.document.line_count - 1:
            return self._recall(self.sent.later())
        elif key == "ctrl+d" and not self.text:
            self.post_message(self.Quit())
        else:
            return False
        return True

    def submit(self) -> None:
        """Sends the text, if there is any."""
        text = self.text.strip()
        if text:
            self.sent.add(text)
            self.text = ""
            self.post_message(self.Submitted(text))

    def _recall_earlier(self) -> bool:
        if not self.text and self.has_queued:
            self.post_message(self.Withdrawn())
            return True
        return self._recall(self.sent.earlier(self.text))

    def _recall(self, text: str | None) -> bool:
        if text is None:
            return False
        self.write(text)
        return True

    async def _on_paste(self, event: Paste) -> Any:
        event.prevent_default()
        event.stop()
        self.insert(event.text.replace("\r\n", "\n").replace("\r", "\n"))


PAUSE_SECONDS: Final = 0.05
"""The pause in typing after which completions are requested."""


class CompletionList(OptionList, can_focus=False):
    """Shown while there are completions; the prompt keeps the focus."""

    def __init__(self, completer: Completer) -> None:
        super().__init__(id="completions", compact=True, markup=False)
        self._completer = completer
        self._choices: list[CompletionItem] = []
        self._wanted: CompletionRequest | None = None
        self._requesting: asyncio.Task[None] | None = None

    def follow(self, prompt: Prompt) -> None:
        """Updates the list after a change of the prompt's text or cursor."""
        if self._requesting is not None:
            self._requesting.cancel()
        self._requesting = asyncio.create_task(self._request(prompt))

    async def _request(self, prompt: Prompt) -> None:
        wanted = completion_at(prompt.before_cursor)
        choices: list[CompletionItem] = []
        if wanted is not None:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                choices = await self._completer.choices(wanted)
            except DragomanError:  # a server that cannot answer has no completions
                choices = []
            if [each.text for each in choices] == [wanted.word]:
                choices = []
        self._show(prompt, wanted, choices)

    def _show(self, prompt: Prompt, wanted: CompletionRequest | None, choices: list[CompletionItem]) -> None:
        self._wanted, self._choices = wanted, choices
        prompt.is_completing = self.display = bool(choices)
        self.clear_options()
        width = max((len(each.text) for each in choices), default=0)
        self.add_options([Option(_row(each, min(width, 50))) for each in choices])
        if choices:
            self.highlighted = 0

    def hide(self, prompt: Prompt) -> None:
        self._show(prompt, None, [])

    def take(self, prompt: Prompt) -> bool:
        """Inserts the highlighted completion. Returns false if nothing changes or the list is outdated."""
        if self._wanted is None or self.highlighted is None:
            return False
        choice, word = self._choices[self.highlighted], self._wanted.word
        if choice.text == word or completion_at(prompt.before_cursor) != self._wanted:
            self.hide(prompt)
            return False
        prompt.replace_word(word, choice.text + (" " if choice.is_whole else ""))
        return True

    async def on_unmount(self) -> None:
        if self._requesting is not None:
            self._requesting.cancel()


def _row(choice: CompletionItem, width: int) -> Content:
    return Content.assemble((f"{one_line(choice.text, 100):<{width}}", "bold"), (f"  {choice.about}", "dim"))
