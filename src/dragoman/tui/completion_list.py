"""The list of completions above the prompt."""

from __future__ import annotations

import asyncio
from typing import Final

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dragoman.cleaning import one_line
from dragoman.errors import DragomanError
from dragoman.tui.completion import Completer, CompletionItem, CompletionRequest, completion_at
from dragoman.tui.prompt import Prompt

PAUSE_SECONDS: Final = 0.05
"""The pause in typing after which completions are requested."""


class CompletionList(OptionList, can_focus=False):
    """Shown while there are completions; the prompt keeps the focus."""

    def __init__(self, completer: Completer) -> None:
        super().__init__(id="completions", compact=True, markup=False)
        self._completer = completer
        self._choices: list[CompletionItem] = []
        self._wanted: CompletionRequest | None = None
        self._looking: asyncio.Task[None] | None = None

    def follow(self, prompt: Prompt) -> None:
        """Updates the list after a change of the prompt's text or cursor."""
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.create_task(self._look(prompt))

    async def _look(self, prompt: Prompt) -> None:
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
        if self._looking is not None:
            self._looking.cancel()


def _row(choice: CompletionItem, width: int) -> Content:
    return Content.assemble((f"{one_line(choice.text, 100):<{width}}", "bold"), (f"  {choice.about}", "dim"))
