"""The conversation on the screen: a scrolling list of blocks, of which only the newest have widgets.

The view stays at its end while text arrives, unless the person has scrolled up. Earlier blocks get widgets
when the person scrolls to the top.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from textual.containers import VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from dragoman.tui.blocks import AnswerBlock, Block, NoteBlock, PromptBlock, ToolBlock
from dragoman.tui.markdown_text import markdown_text, pieces, shown_lines
from dragoman.tui.tool_card import ToolCard, image_widgets

WIDGET_LIMIT: Final = 40
"""The number of newest blocks that have widgets."""
EXTRA_WIDGETS: Final = 20
"""The number of further widgets after which the oldest are removed."""
FLUSH_SECONDS: Final = 0.08
"""The shortest interval between two paints of arriving text."""


def block_text(block: PromptBlock | AnswerBlock | NoteBlock) -> Content:
    match block:
        case PromptBlock():
            return Content.assemble(("> ", "bold $text-accent"), (shown_lines(block.text), "bold"))
        case AnswerBlock():
            return markdown_text(block.text)
        case NoteBlock():
            return Content.assemble("! " if block.is_problem else "· ", shown_lines(block.text))


class BlockView(Static):
    """A prompt, an answer or a note."""

    def __init__(self, block: PromptBlock | AnswerBlock | NoteBlock) -> None:
        kind = type(block).__name__.removesuffix("Block").lower()
        super().__init__(block_text(block), markup=False, classes=kind)
        self.block = block
        self.set_class(isinstance(block, NoteBlock) and block.is_problem, "-problem")

    def show(self) -> None:
        self.update(block_text(self.block))


def _new_view(block: Block) -> BlockView | ToolCard:
    return ToolCard(block) if isinstance(block, ToolBlock) else BlockView(block)


class ConversationView(VerticalScroll, can_focus=False):
    def __init__(self) -> None:
        super().__init__(id="conversation")
        self.blocks: list[Block] = []
        self._first = 0
        """The number of the first block that has a widget."""
        self._views: list[BlockView | ToolCard] = []
        self._earlier = Static("", markup=False, id="earlier")
        """The line about earlier blocks that have no widget."""
        self._answer: AnswerBlock | None = None
        """The answer to which text is added."""
        self._arrived: list[str] = []
        self._flusher: Timer | None = None
        self._flush_cost = 0.0
        """The seconds that the last paint took; the interval grows with it."""
        self._changing = asyncio.Lock()

    def compose(self) -> list[Widget]:
        return [self._earlier]

    def on_mount(self) -> None:
        self._earlier.display = False
        self.anchor()

    # Blocks.

    def add(self, block: Block) -> None:
        self.end_answer()
        self._append(block)

    def _append(self, block: Block) -> None:
        self.blocks.append(block)
        view = _new_view(block)
        self._views.append(view)
        self.mount(view)
        if len(self._views) > WIDGET_LIMIT + EXTRA_WIDGETS and not self._is_scrolled_up:
            self._remove_oldest(len(self._views) - WIDGET_LIMIT)

    def show_all(self, blocks: Sequence[Block]) -> None:
        """Replaces all blocks."""
        self.end_answer()
        for view in self._views:
            view.remove()
        self.blocks = list(blocks)
        self._first = max(0, len(self.blocks) - WIDGET_LIMIT)
        self._views = [_new_view(block) for block in self.blocks[self._first :]]
        self.mount_all(self._views)
        self._update_earlier()
        self.anchor()

    def on_tool_card_toggled(self, message: ToolCard.Toggled) -> None:
        """Shows the images of a call below it while it is open."""
        self.query(".image").remove()
        if message.card.block.is_open and (images := image_widgets(message.card.block)):
            self.mount_all(images, after=message.card)

    def update_block(self, block: Block) -> None:
        """Updates the widget of a block that has changed, if it has one."""
        for view in reversed(self._views):
            if view.block is block:
                view.show()
                return

    @property
    def _is_scrolled_up(self) -> bool:
        return self.max_scroll_y - self.scroll_y > 1

    def _remove_oldest(self, count: int) -> None:
        for view in self._views[:count]:
            view.remove()
        del self._views[:count]
        self._first += count
        self._update_earlier()

    def _update_earlier(self) -> None:
        self._earlier.display = self._first > 0
        self._earlier.update(Content.styled(f"↑ {self._first} earlier entries: scroll up to see them", "dim"))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value <= 0 < old_value and self._first:
            self.call_after_refresh(self._mount_earlier)

    async def _mount_earlier(self) -> None:
        async with self._changing:
            start = max(0, self._first - WIDGET_LIMIT // 2)
            views = [_new_view(block) for block in self.blocks[start : self._first]]
            if not views:
                return
            anchor = self._views[0] if self._views else None
            self._first = start
            self._views[:0] = views
            await self.mount_all(views, before=anchor)
            self._update_earlier()
        if anchor is not None:  # keeps the scroll position
            self.call_after_refresh(self.scroll_to_widget, anchor, animate=False, top=True)

    # Arriving text.

    def add_text(self, text: str) -> None:
        """Adds text to the last answer. It is painted together with text that arrives shortly after."""
        self._arrived.append(text)
        if self._flusher is None:
            self._flusher = self.set_timer(max(FLUSH_SECONDS, 3 * self._flush_cost), self.flush)

    def flush(self) -> None:
        """Paints the text that has arrived."""
        if self._flusher is not None:
            self._flusher.stop()
            self._flusher = None
        text, self._arrived = "".join(self._arrived), []
        if not text:
            return
        started = time.perf_counter()
        self._grow(text)
        self._flush_cost = time.perf_counter() - started

    def _grow(self, text: str) -> None:
        if self._answer is None:
            self._answer = AnswerBlock()
            self._append(self._answer)
        self._answer.text, *more = pieces(self._answer.text + text)
        self.update_block(self._answer)
        for piece in more:
            self._answer = AnswerBlock(piece)
            self._append(self._answer)

    def end_answer(self) -> None:
        """Ends the answer; later text begins another one."""
        self.flush()
        self._answer = None

    def discard_since(self, count: int) -> None:
        """Removes the blocks after the first `count`: the text of a response that is requested again."""
        self.end_answer()
        for block in self.blocks[count:]:
            view = next((each for each in self._views if each.block is block), None)
            if view is not None:
                self._views.remove(view)
                view.remove()
        del self.blocks[count:]
