r"""Makes text from servers safe to show to people and safe for models to read.

Unsafe are control characters, ANSI escapes, bidirectional overrides, invisible and tag characters, and long
runs of combining marks. For people they become escapes (`\x1b`, `\u202e`), so that they are noticed; for
models they are removed, because a model would read them. Linear time. Printable text passes unchanged; cuts
fall between whole characters and are marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Final, cast

COVER: Final = "•••"
"""Replaces a secret in a text."""
CUT_NOTE_LENGTH: Final = 40
"""Characters that are reserved for the note about how much was cut."""
CLEANED_FACTOR: Final = 4
"""Input up to this many times the limit is cleaned: cleaning 60 MB, of which 100 kB are shown, takes
seconds."""

# C0 except tab and newline, DEL, C1; soft hyphen, grapheme joiner; Arabic letter mark, fillers and
# Mongolian vowel separator; shorthand and musical formatting;
# zero-width and bidi marks; line and paragraph separators; invisible operators; BOM; interlinear
# anchors; surrogates; noncharacters; variation selectors supplement; the tag block; private use areas;
# controls of hieroglyphs, the Khitan filler, the null notehead.
_UNSAFE_SET = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ue000-\uf8ff\ufdd0-\ufdef\U00013430-\U0001345f\U00016fe4\U0001d159\U000f0000-\U0010ffff"
) + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0xF0000, 0x10000))
# The emoji selector stays behind a symbol, and between a digit, # or * and the keycap.
_SYMBOLS = (
    "\xa9\xae\u203c\u2049\u2100-\u214f\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_UNSAFE = re.compile(f"[{_UNSAFE_SET}]|(?<![{_SYMBOLS}0-9#*])\ufe0f|(?<=[0-9#*])\ufe0f(?!\u20e3)")

# Where marks could pile up: several characters in a row that are not letters, digits, blanks or ASCII. Every
# script has marks that belong to the letter before them; no language has more than four on one letter, and
# ten thousand fill a screen.
_SIGNS = re.compile(r"[^\w\s\x00-\x7f]{5,}")
MARKS_LIMIT: Final = 4

# Whole escape sequences, so that no `[31m` is left behind: CSI, then strings (OSC, DCS, …) to their end.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-Z\\\\^-~]"
)
_CONTROLS: Final = bytes([*range(0x09), *range(0x0B, 0x20), 0x7F])
# Control characters as a JSON encoder writes them, except \n and \t. May report some that are not there.
_ESCAPES = re.compile(rb"\\[ubfr]|\x7f")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")


LAST_LINES: Final = 5
"""The most lines of a failed server's stderr that are shown."""
_SAYS_NOTHING: Final = re.compile(
    r"\s*$"
    # npm: warnings, notices, bare codes, and advice that follows every failure
    r"|npm (warn|notice)\b"
    r"|npm (error|ERR!)( code| errno| \d{3}| E[A-Z0-9]+)?\s*$"
    r"|npm (error|ERR!)( \d{3})? +(Note that you can also|tarball, folder, http url|A complete log of)"
    # stack frames of Node
    r"|\s+at \S|node:internal|Node\.js v\d|\s*\^+\s*$",
    re.IGNORECASE,
)


def last_lines(stderr: str) -> list[str]:
    """The last informative lines of a program's stderr; if there are none, the last lines."""
    lines = stderr.splitlines()
    return ([line for line in lines if not _SAYS_NOTHING.match(line)] or lines)[-LAST_LINES:]


def is_safe(text: str) -> bool:
    """Whether the text has no invisible characters and nothing was lost (U+FFFD). For names that are sent
    back to servers."""
    return is_plain(text) or ("\ufffd" not in text and replaced(text, lambda _: "") == text)


def visible(text: str, limit: int | None = None) -> str:
    """The text for people: unsafe characters are escaped, and it is cut at `limit` characters with a note."""
    return replaced(cut(text, limit), _escaped)


def one_line(text: str, limit: int | None = None) -> str:
    """Like `visible`, with line breaks escaped too: for table cells and sentences. Escapes count as long as
    they are, so that a text of invisible characters moves nothing out of sight."""
    shown = _in_one_line(cut(text, limit))
    if limit is None or len(shown) <= limit + CUT_NOTE_LENGTH:
        return shown
    from bisect import bisect_right

    longer = bisect_right(range(limit + 1), limit, key=lambda kept: len(_in_one_line(text[:kept])))
    return _in_one_line(cut(text, longer - 1))


def _in_one_line(text: str) -> str:
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def for_model(text: str, limit: int | None = None) -> str:
    """The text for models: without unsafe characters, and at most `limit` characters with the note."""
    beyond = 0
    if limit is not None and len(text) > (kept := CLEANED_FACTOR * (limit + CUT_NOTE_LENGTH)):
        text, beyond = text[:kept], len(text) - kept
    if not is_plain(text):
        if "\x1b" in text or not text.isascii():
            text = _SEQUENCE.sub("", text)
        text = replaced(_LINE_ENDS.sub("\n", text), lambda _: "")
    if limit is None or (len(text) <= limit and not beyond):
        return text
    return cut(text, max(0, limit - CUT_NOTE_LENGTH), beyond)


def without_invisible(text: str) -> str:
    """The text without control, formatting and other invisible characters. Tabs and line feeds stay."""
    return _UNSAFE.sub("", text)


BLANKS: Final = re.compile(r"[^\S\x1c-\x1f]+")
"""White space characters; those that `_MARKS` keeps are not among them."""
_MARKS: Final = re.compile(r"([\x1d-\x1f])")
"""Characters by which shell patterns mark parts that are not text (`shell_pattern.UNKNOWN` …); they are
kept."""
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0432\u0433\u0435\u04bb\u0456\u0458\u043a\u04cf\u043c\u043d\u043e"  # Cyrillic
    "\u043f\u0440\u051b\u0455\u0442\u0443\u0475\u051d\u0445\u0501\u050d\u044c\u0441\u04af\u0461"
    "\u03b1\u03b2\u03b3\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc"  # Greek
    "\u03bd\u03bf\u03c1\u03c3\u03c4\u03c5\u03c7\u03c9\u03f3"
    "\u0585\u057d\u0570\u0578\u0581\u0575"  # Armenian
    "\u0251\u0261\u0269\u028b\u028f\u1d04",  # Latin
    "abrehijklmhonpqstyvwxdgbcywabyeznikmvopotuxwjouhngjagivyc",
)
"""Lower-case letters of other alphabets, with the Latin letters that they, or their capitals, look like."""


def cover(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may contain another
        text = text.replace(secret, COVER)
    return text


def fold(text: str) -> str:
    """A form of the text that is equal for texts that differ only in case, look-alike or invisible
    characters.

    Decomposed (NFKD), not composed: equality is the same in both forms, but only in this one does `cafe*`
    match an `e` with an accent.
    """
    if text.isascii():
        lower = text.lower()
        return lower if text.isprintable() else _without_invisible(BLANKS.sub(_as_blanks, lower))
    import unicodedata

    text = text.replace("\u03f2", "c").replace("\u03f9", "c")  # a form of sigma that looks like a c
    # Upper case first: only that turns the Turkish dotless i into I.
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).upper().casefold())
    folded = folded.translate(_LOOK_ALIKES)
    folded = BLANKS.sub(_as_blanks, folded)  # some white space is a control character, too
    unseen = {ord(char): None for char in set(folded) if unicodedata.category(char) == "Cf"}
    return _without_invisible(folded.translate(unseen) if unseen else folded)


def _without_invisible(text: str) -> str:
    return "".join(
        part if number % 2 else without_invisible(part) for number, part in enumerate(_MARKS.split(text))
    )


def _as_blanks(found: re.Match[str]) -> str:
    return "".join(char if char in " \t\n" else " " for char in found[0])


def value_for_model(value: Any) -> Any:
    """`for_model` for a value decoded from JSON, including its keys; returns the same object if it is clean.

    Two keys that would become the same stay distinct: the second is escaped instead. `RecursionError` if it
    is nested too deeply.
    """
    import msgspec  # only results need it; errors and the command line do not load it

    data = msgspec.json.encode(value)
    return value if data.isascii() and not _ESCAPES.search(data) else _in_value(value)


def _in_value(value: Any) -> Any:
    if isinstance(value, str):
        return for_model(value)
    if isinstance(value, list):
        return [_in_value(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        clean = for_model(name)
        found[one_line(name) if clean in found else clean] = _in_value(inner)
    return found


def replaced(text: str, how: Callable[[str], str]) -> str:
    """The text with each unsafe part replaced."""
    if is_plain(text):
        return text
    text = _UNSAFE.sub(lambda match: how(match.group()), text)
    return text if text.isascii() else _SIGNS.sub(lambda match: _lowered(match.group(), how), text)


def _lowered(signs: str, how: Callable[[str], str]) -> str:
    """The text with runs of marks cut to the length that languages use."""
    import unicodedata  # takes a megabyte, and few texts need it

    parts: list[str] = []
    for is_mark, group in groupby(signs, lambda sign: unicodedata.category(sign)[0] == "M"):
        part = "".join(group)
        if is_mark and len(part) > MARKS_LIMIT:
            part = part[:MARKS_LIMIT] + how(part[MARKS_LIMIT:])
        parts.append(part)
    return "".join(parts)


def cut(text: str, limit: int | None, beyond: int = 0) -> str:
    """At most `limit` characters of the text, and a note of how many were cut. `beyond`: how many more there
    are besides the text given."""
    if limit is None or (len(text) <= limit and not beyond):
        return text
    # A letter and its accents, an emoji and its modifiers stay together.
    end = min(limit, len(text))
    while max(0, limit - 8) < end < len(text) and _belongs_to_previous(text, end):
        end -= 1
    return f"{text[:end]}{CUT} [{len(text) - end + beyond} more characters]"


CUT: Final = "…"
"""Matches the note at a cut. Every cut in a server's text has one, so that the rest of a secret beside it is
found."""


def _belongs_to_previous(text: str, place: int) -> bool:
    """Whether the character there belongs to the one before it."""
    import unicodedata

    character = text[place]
    is_mark = unicodedata.category(character)[0] == "M"
    return is_mark or character in _MODIFIERS or text[place - 1] == "\u200d"


_MODIFIERS: Final = "\u200d" + "".join(map(chr, range(0x1F3FB, 0x1F400)))
"""The joiner of emoji, and the skin tones."""


def is_plain(text: str) -> bool:
    """Whether the text is ASCII, with no control characters but tabs and line feeds: a quick test for the
    common case.

    (Beyond ASCII, Python calls invisible characters printable.)
    """
    if not text.isascii():
        return False
    if len(text) < 200 and text.isprintable():  # faster for short texts
        return True
    data = text.encode()  # a copy; six times as fast as a regular expression or `isprintable`
    return len(data.translate(None, _CONTROLS)) == len(data)


def _escaped(part: str) -> str:
    if len(part) > 1 or _UNSAFE.match(part) is None:
        return f"[{len(part)} more marks]"
    code = ord(part)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
