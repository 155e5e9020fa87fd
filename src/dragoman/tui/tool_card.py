"""The widget of a tool call: the tool and its server, the arguments, the progress, the result.

Long texts are cut, with their size, until the person opens the card. States have a mark and a word besides
their colour. Arguments and results are untrusted: they are cleaned, and never parsed as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from dragoman.cleaning import one_line, visible
from dragoman.names import RESERVED, counted
from dragoman.tui.blocks import ToolBlock, ToolState

SHORT_VALUE: Final = 160
"""The most characters of one argument in a closed card."""
SHORT_ARGUMENTS: Final = 4
SHORT_RESULT: Final = 3
"""The most lines of a result in a closed card."""
LINE_LIMIT: Final = 200
OPEN_CHARACTERS: Final = 100_000
"""The most characters of a result or argument in an open card."""
OPEN_ARGUMENTS: Final = 100
OPEN_LINES: Final = 1_000
"""The most lines of a result, and of all arguments, in an open card: a widget takes about 0.1 ms for each."""
BAR_CELLS: Final = 20
IMAGE_LIMIT: Final = 4
"""The most images of one result that are shown."""
MARKS: Final[Mapping[ToolState, tuple[str, str, str]]] = {
    "running": ("…", "running", "$text-warning"),
    "done": ("✓", "", "$text-success"),
    "error": ("✗", "error", "bold $text-error"),
    "refused": ("⊘", "refused", "bold $text-error"),
    "interrupted": ("■", "interrupted", "$text-warning"),
}
"""The mark, word and style of each state."""


def card_text(block: ToolBlock) -> Content:
    lines = [_headline(block), *_argument_lines(block)]
    if block.state == "running":
        lines += [Content(f"  {line}") for line in _progress_lines(block)]
    else:
        lines += _result_lines(block)
    return Content("\n").join(lines)


def _headline(block: ToolBlock) -> Content:
    mark, word, style = MARKS[block.state]
    server, tool = split_name(block.tool)
    parts: list[str | tuple[str, str]] = [(f"{mark} ", style), (one_line(tool, 80), "bold")]
    if server:
        parts.append((f" · {one_line(server, 60)}", "dim"))
    if word:
        parts.append((f"  {word}", style))
    if block.seconds >= 1:
        parts.append((f"  {block.seconds:.0f} s", "dim"))
    return Content.assemble(*parts)


def split_name(name: str) -> tuple[str, str]:
    """The server and the tool of a qualified name; for a built-in tool the server is empty."""
    if not name.startswith(RESERVED):
        return "", name
    server, _, tool = name.removeprefix(RESERVED).partition("__")
    return (server, tool) if tool else ("", name)


def _argument_lines(block: ToolBlock) -> Iterator[Content]:
    items = list(block.arguments.items())
    limit = OPEN_ARGUMENTS if block.is_open else SHORT_ARGUMENTS
    room, line_room = OPEN_CHARACTERS, OPEN_LINES
    for name, value in items[:limit]:
        text = json_line(value)
        if block.is_open:
            lines = visible(value if isinstance(value, str) else text, room).split("\n")
            text = "\n    ".join(lines[:line_room])
            if len(lines) > line_room:
                text += f"\n    … {counted(len(lines) - line_room, 'more line')}"
            room, line_room = max(SHORT_VALUE, room - len(text)), max(1, line_room - len(lines))
        elif len(text) > SHORT_VALUE:
            text = f"{text[:SHORT_VALUE]}… ({len(text)} characters)"
        yield Content.assemble((f"  {one_line(str(name), 60)}: ", "dim"), text)
    if len(items) > limit:
        yield Content.styled(f"  … {len(items) - limit} more arguments", "dim")


def json_line(value: Any) -> str:
    """A value as JSON in one line."""
    return one_line(json.dumps(value, ensure_ascii=False, default=repr))


def _progress_lines(block: ToolBlock) -> Iterator[str]:
    if block.progress is not None:
        share = min(1.0, max(0.0, block.progress))
        filled = round(share * BAR_CELLS)
        bar = "█" * filled + "░" * (BAR_CELLS - filled)
        yield f"{bar} {share:4.0%}  {one_line(block.message, 100)}".rstrip()
    elif block.message:
        yield one_line(block.message, 100)


def _result_lines(block: ToolBlock) -> Iterator[Content]:
    for image in block.images:
        yield Content(f"  [image {one_line(image.mime_type, 60)}, {short_size(len(image.data) * 3 // 4)}]")
    if block.images and block.result.startswith("[image"):
        return
    style = "$text-error" if block.state in ("error", "refused") else ""
    lines = visible(block.result, OPEN_CHARACTERS).split("\n") if block.result.strip() else []
    if not lines:
        if block.state == "done" and not block.images:
            yield Content.styled("  (no text)", "dim")
        return
    shown = lines[:OPEN_LINES] if block.is_open else [_cut(line) for line in lines[:SHORT_RESULT]]
    for number, line in enumerate(shown):
        yield Content.styled(f"{'  └ ' if number == 0 else '    '}{line}", style)
    if block.is_open or len(lines) > len(shown) or any(len(line) > LINE_LIMIT for line in lines):
        words = "Enter closes it" if block.is_open else "Enter or a click shows all"
        if block.is_open and len(lines) > len(shown):
            words = f"the first {len(shown)} are shown; {words}"
        yield Content.styled(
            f"    … {counted(len(lines), 'line')}, {short_size(len(block.result))}: {words}", "dim"
        )


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]}…"


def short_size(count: int) -> str:
    """A number of bytes or characters in a short form."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def image_widgets(block: ToolBlock) -> list[Widget]:
    """Widgets for the images of a result, if the package textual-image is installed and can decode them."""
    if find_spec("textual_image") is None:
        return []
    from PIL import Image, UnidentifiedImageError

    made: Any = import_module("textual_image.widget").Image
    found: list[Widget] = []
    for image in block.images[:IMAGE_LIMIT]:
        try:
            found.append(made(Image.open(BytesIO(image.decode())), classes="image"))
        except (ValueError, OSError, UnidentifiedImageError, Image.DecompressionBombError):
            continue
    return found


class ToolCard(Static, can_focus=True):
    """Shows a tool call; Enter or a click opens and closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "open_or_close", "Open or close")]

    class Toggled(Message):
        """The person opened or closed the card."""

        def __init__(self, card: ToolCard) -> None:
            super().__init__()
            self.card = card

    def __init__(self, block: ToolBlock) -> None:
        super().__init__(card_text(block), markup=False, classes="tool")
        self.block = block

    def show(self) -> None:
        self.update(card_text(self.block))

    def action_open_or_close(self) -> None:
        self.block.is_open = not self.block.is_open
        self.show()
        self.post_message(self.Toggled(self))

    def on_click(self) -> None:
        if not self.screen.get_selected_text():  # not the end of a selection
            self.action_open_or_close()
