"""The screen `/resume`: earlier conversations, the newest first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from dragoman.agent.transcript import TranscriptInfo, transcripts
from dragoman.cleaning import one_line

SHOWN: Final = 200


def row(info: TranscriptInfo) -> Content:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed_at))
    return Content.assemble(
        (f"{when}  ", "dim"), one_line(info.first_prompt, 200), (f"  {one_line(info.model, 60)}", "dim")
    )


class ResumeScreen(Screen["str | None"]):
    """Returns the id of a conversation, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back"),
        Binding("a", "toggle_all", "All folders"),
    ]
    CSS_PATH = "screens.tcss"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._is_all = False

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="title")
        yield OptionList(classes="content", markup=False)
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        await self._show()

    async def _show(self) -> None:
        found = await asyncio.to_thread(transcripts, None if self._is_all else self._folder)
        self.show([info for info in found if info.first_prompt])

    def show(self, found: Sequence[TranscriptInfo]) -> None:
        where = "all folders" if self._is_all else one_line(str(self._folder), 200)
        self.query_one(".title", Static).update(f"Conversations in {where}: Enter continues one")
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(row(info), id=info.id) for info in found[:SHOWN]])
        if not found:
            options.add_option(Option("There are none yet.", disabled=True))
        options.focus()

    async def action_toggle_all(self) -> None:
        self._is_all = not self._is_all
        await self._show()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)
