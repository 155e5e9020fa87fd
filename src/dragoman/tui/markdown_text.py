"""Converts Markdown to styled text for a single widget. Pure.

Textual's `Markdown` creates a widget for each paragraph, which makes a long conversation slow. The text that
this module returns can be selected and copied as it was written, without padding and without the line breaks
of the screen. Text of models is untrusted: it is cleaned, and never parsed as markup of Textual.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name
from pygments.util import ClassNotFound
from rich.cells import cell_len, set_cell_size
from textual.content import Content, Span
from textual.highlight import HighlightTheme

from dragoman.cleaning import one_line, visible

TEXT_LIMIT: Final = 200_000
"""The most characters of one text that are shown."""
PARSE_LIMIT: Final = 8_000
"""The most characters that are parsed: the time may grow with the square of their number."""
PIECE_CHARACTERS: Final = 2_000
"""The length from which a text is continued in another widget, so that paints stay fast."""
COLOURED_CHARACTERS: Final = 2_000
"""The most characters of a code block that are coloured. With some lexers, the time grows with the cube of
their number."""
COLOURED_SECONDS: Final = 0.05
"""The processor time after which the rest of a code block is not coloured."""
FENCE_CHARACTERS: Final = 40
LINE_LIMIT: Final = 1_000
"""The most lines of one text that are shown: a widget takes about 0.1 ms for each."""
CELL_LIMIT: Final = 40
"""The most columns of one table cell."""
_STYLES: Final = {"strong_open": "bold", "em_open": "italic", "s_open": "strike", "link_open": "underline"}
CODE: Final = "$text-accent"


def markdown_text(source: str) -> Content:
    """The text, with headings, lists, code and tables shown by styles. A text above `PARSE_LIMIT` is shown
    without styles."""
    if len(source) > PARSE_LIMIT:
        return Content(shown_lines(source))
    tokens = _parser().parse(visible(source, TEXT_LIMIT))
    return Content("\n").join(_LineBuilder(tokens).lines())


def split_point(text: str) -> int:
    """The position at which a growing text can be split into two texts: after the last blank line that is not
    inside a code block, a list or a table. 0 if there is none."""
    place, is_code, offset = 0, False, 0
    was_blank = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif was_blank and not is_code and line[0] not in " \t-*+|0123456789\n":
            place = offset
        was_blank = not line.strip()
        offset += len(line)
    return place


def pieces(text: str) -> Iterator[str]:
    """The text in parts that are short enough to be parsed quickly, split between lines. A longer code block
    is continued as another block."""
    while len(text) > PIECE_CHARACTERS:
        place = split_point(text[:PIECE_CHARACTERS]) or split_point(text[:PARSE_LIMIT])
        fence = ""
        if not place:
            place = text.rfind("\n", PARSE_LIMIT // 2, PARSE_LIMIT) + 1 or text.find("\n", PARSE_LIMIT) + 1
            if len(text) <= PARSE_LIMIT or not place:
                break
            fence = _open_fence(text[:place])
        yield text[:place]
        text = fence + text[place:]
    yield text


def _open_fence(text: str) -> str:
    """The first line of the code block that is still open at the end of the text; empty if there is none."""
    fences = [line for line in text.split("\n") if line.lstrip().startswith(("```", "~~~"))]
    return f"{fences[-1].strip()[:FENCE_CHARACTERS]}\n" if len(fences) % 2 else ""


def shown_lines(text: str) -> str:
    """The cleaned text, cut to the limits of one widget."""
    lines = visible(text, TEXT_LIMIT).split("\n")
    if len(lines) <= LINE_LIMIT:
        return "\n".join(lines)
    return "\n".join([*lines[:LINE_LIMIT], f"… {len(lines) - LINE_LIMIT} more lines"])


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


class _LineBuilder:
    """Converts tokens to lines in one pass."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._lines: list[Content] = []
        self._lists: list[int | None] = []
        """The number of the next item of each open list; None for bullets."""
        self._quotes = 0
        self._marker = ""
        """The marker at the beginning of the next line, in place of blanks."""
        self._rows: list[list[Content]] | None = None
        self._heading = ""

    def lines(self) -> list[Content]:
        for token in self._tokens:
            self._take(token)
        while self._lines and not self._lines[-1].plain.strip():
            self._lines.pop()
        return self._lines

    def _take(self, token: Token) -> None:
        kind = token.type
        match kind:
            case "inline":
                self._inline(token)
            case "heading_open":
                self._heading = "bold underline" if token.tag == "h1" else "bold"
            case "heading_close" | "paragraph_close":
                self._heading = ""
                self._gap(token)
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                if not self._lists:
                    self._gap(token)
            case "list_item_open":
                self._begin_item()
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "fence" | "code_block" | "html_block":
                self._code(token)
            case "hr":
                self._add(Content.styled("───", "dim"))
                self._gap(token)
            case "table_open":
                self._rows = []
            case "tr_open" if self._rows is not None:
                self._rows.append([])
            case "table_close":
                self._table(self._rows or [])
                self._gap(token)
            case _:
                pass

    def _begin_item(self) -> None:
        number = self._lists[-1]
        self._marker = "• " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    def _inline(self, token: Token) -> None:
        content = inline_text(token.children or ())
        if self._rows is not None:
            self._rows[-1].append(content)
            return
        if self._heading:
            content = content.stylize(self._heading)
        for line in content.split("\n", allow_blank=True):
            self._add(line)

    def _code(self, token: Token) -> None:
        code, language = token.content.rstrip("\n"), token.info.strip().partition(" ")[0]
        if token.type == "fence":
            self._add(Content.styled(f"```{one_line(language, 40)}", "dim"))
        for line in coloured(code, language).split("\n", allow_blank=True):
            self._add(line)
        if token.type == "fence":
            self._add(Content.styled("```", "dim"))
        self._gap(token)

    def _table(self, rows: Sequence[Sequence[Content]]) -> None:
        self._rows = None
        widths = [
            min(CELL_LIMIT, max(cell_len(row[column].plain) for row in rows if column < len(row)))
            for column in range(max(map(len, rows), default=0))
        ]
        for number, row in enumerate(rows):
            cells = [_fitted(cell, width) for cell, width in zip(row, widths)]
            line = Content("  ").join(cells)
            self._add(line.stylize("bold") if number == 0 else line)
            if number == 0:
                self._add(Content.styled("  ".join("─" * width for width in widths), "dim"))

    def _add(self, line: Content) -> None:
        begin = "▌ " * self._quotes + "  " * max(0, len(self._lists) - 1)
        if self._lists:
            begin += self._marker or "  "
            self._marker = ""
        self._lines.append(Content(begin) + line if begin else line)

    def _gap(self, token: Token) -> None:
        """Adds a blank line, except between the items of a list."""
        if not self._lists and not token.hidden and self._lines and self._lines[-1].plain:
            self._lines.append(Content(""))


def inline_text(tokens: Iterable[Token]) -> Content:
    """One paragraph with emphasis, code and links. The URL of a link follows its text if it differs."""
    parts: list[Content | str | tuple[str, str]] = []
    styles: list[str] = []
    links: list[tuple[str, int]] = []
    for token in tokens:
        if token.type in _STYLES:
            styles.append(_STYLES[token.type])
            if token.type == "link_open":
                links.append((str(token.attrs.get("href", "")), len(parts)))
        elif token.type.endswith("_close") and styles:
            styles.pop()
            if token.type == "link_close":
                href, start = links.pop()
                shown = "".join(part[0] for part in parts[start:] if isinstance(part, tuple))
                if shown != href:
                    parts.append((f" ({one_line(href, 500)})", "dim"))
        elif token.type == "image":
            named = one_line(str(token.content or token.attrs.get("src", "")), 500)
            parts.append((f"[image: {named}]", "dim"))
        else:
            # Cleaned again: a character reference (`&#x202e;`) has become a character.
            text = "\n" if token.type in ("softbreak", "hardbreak") else visible(token.content)
            parts.append((text, " ".join([*styles, *([CODE] if token.type == "code_inline" else [])])))
    return Content.assemble(*parts)


def coloured(code: str, language: str) -> Content:
    """The code, coloured if its language is known and colouring does not take too long."""
    lexer = _lexer(language) if language else None
    if lexer is None:
        return Content.styled(code, CODE)
    code = "\n".join(code.splitlines())
    spans: list[Span] = []
    start, deadline = 0, time.thread_time() + COLOURED_SECONDS
    for kind, token in lexer.get_tokens(code[:COLOURED_CHARACTERS]):
        if time.thread_time() > deadline:
            break
        while kind is not None and kind not in HighlightTheme.STYLES:
            kind = kind.parent
        if kind is not None:
            spans.append(Span(start, start + len(token), HighlightTheme.STYLES[kind]))
        start += len(token)
    return Content(code, spans=spans).stylize_before("$text").rstrip("\n")


@lru_cache(64)
def _lexer(language: str) -> Lexer | None:
    try:
        return find_lexer_class_by_name(language)(stripnl=False)
    except ClassNotFound:
        return None


def _fitted(cell: Content, width: int) -> Content:
    if cell_len(cell.plain) > width:
        return Content(set_cell_size(cell.plain, width - 1) + "…")
    return cell.pad_right(width - cell_len(cell.plain))
