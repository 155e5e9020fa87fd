r"""Text from servers, made safe to show.

I own: the one place where a server's words are stripped of their power over a terminal or a reader:
control characters, ANSI escapes, bidirectional overrides, invisible and tag characters become
visible escapes (`\x1b`, `\u202e`). Linear time. What is printable passes unchanged.
"""

from __future__ import annotations

import re
from re import Match

# C0 except tab and newline, DEL, C1; soft hyphen, grapheme joiner; Arabic letter mark, fillers and
# Mongolian vowel separator; shorthand and musical formatting;
# zero-width and bidi marks; line and paragraph separators; invisible operators; BOM; interlinear
# anchors; surrogates; variation selectors supplement; the tag block.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str, limit: int | None = None) -> str:
    """The text with everything unsafe made visible, cut (and saying so) at `limit` characters."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}… [{len(text) - limit} more characters]"
    return _UNSAFE.sub(_escape, text)


def one_line(text: str, limit: int | None = None) -> str:
    """Like `visible`, with line breaks escaped too: for table cells and sentences."""
    return visible(text, limit).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
