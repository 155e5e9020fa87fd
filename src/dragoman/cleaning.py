r"""Text from servers, made safe to show and safe to read.

I own: the one place where a server's words lose their power over a terminal or a reader. Unsafe are
control characters, ANSI escapes, bidirectional overrides, invisible and tag characters, and towers of
combining marks. People see them as escapes (`\x1b`, `\u202e`), for they should know; from what a model
reads they are taken out, for it would read them. Linear time. What is printable passes unchanged, cuts
fall between whole characters and say that they cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import Match
from typing import Final

CUT_WORDS: Final = 40
"""Room for the words that say how much was cut."""

# C0 except tab and newline, DEL, C1; soft hyphen, grapheme joiner; Arabic letter mark, fillers and
# Mongolian vowel separator; shorthand and musical formatting;
# zero-width and bidi marks; line and paragraph separators; invisible operators; BOM; interlinear
# anchors; surrogates; noncharacters; variation selectors supplement; the tag block.
_UNSAFE_SET = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Marks that stand on the letter before them. More than four in a row write no language, and ten thousand
# fill a screen.
_MARKS = "[\u0300-\u034e\u0350-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_TOWER = f"(?<={_MARKS}{{4}}){_MARKS}+"
_UNSAFE = re.compile(f"[{_UNSAFE_SET}]|{_TOWER}")

# Whole escape sequences, so that no `[31m` is left behind: CSI, then strings (OSC, DCS, …) to their end.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-Z\\\\^-~]"
)
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")


def is_safe(text: str) -> bool:
    """Whether there is nothing in it that a reader would not see."""
    return _is_plain(text) or _UNSAFE.search(text) is None


def visible(text: str, limit: int | None = None) -> str:
    """For people: everything unsafe made visible, cut (and saying so) at `limit` characters."""
    text = cut(text, limit)
    return text if _is_plain(text) else _UNSAFE.sub(_escape, text)


def one_line(text: str, limit: int | None = None) -> str:
    """Like `visible`, with line breaks escaped too: for table cells and sentences."""
    return visible(text, limit).replace("\n", "\\n").replace("\t", "\\t")


def for_model(text: str, limit: int | None = None) -> str:
    """For models: everything unsafe taken out; at most `limit` characters, with the words about the cut."""
    if not (text.isascii() and text.isprintable()):  # the common case, found quickly
        if "\x1b" in text or not text.isascii():
            text = _SEQUENCE.sub("", text)
        text = _UNSAFE.sub("", _LINE_ENDS.sub("\n", text))
    return text if limit is None or len(text) <= limit else cut(text, max(0, limit - CUT_WORDS))


def replaced(text: str, how: Callable[[str], str]) -> str:
    """The text with each unsafe part written otherwise."""
    return _UNSAFE.sub(lambda match: how(match.group()), text)


def cut(text: str, limit: int | None) -> str:
    """At most so many characters of it, and then how many more there were."""
    if limit is None or len(text) <= limit:
        return text
    # A letter and its accents, an emoji and its modifiers stay together.
    end = limit
    while end > max(0, limit - 8) and _CLINGS.match(text, end):
        end -= 1
    return f"{text[:end]}… [{len(text) - end} more characters]"


_CLINGS = re.compile(f"{_MARKS}|[\ufe0f\u200d\U0001f3fb-\U0001f3ff]|(?<=\u200d).")


def _is_plain(text: str) -> bool:
    """The common case, found quickly. (Beyond ASCII, Python calls invisible characters printable.)"""
    return text.isascii() and text.isprintable()


def _escape(match: Match[str]) -> str:
    code = ord(match.group()[0])
    if len(match.group()) > 1 or re.match(_MARKS, match.group()):
        return f"[{len(match.group())} more marks]"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
