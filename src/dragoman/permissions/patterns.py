r"""Patterns with `*`, and the two ways in which permission rules compare them. Pure.

`Glob` is a pattern; an allow compares it *carefully*, a deny or an ask *loosely*. Carefully: exactly the text
that is sent; a `*` does not match `..` steps out of a folder and, unless it ends the pattern, does not cross
`/ \ ? # @ :`. In the host of a URL a `*` matches letters, digits, dots, hyphens and underscores only, and one
that ends the pattern there does not lengthen the host. Loosely: letter case, look-alike Unicode, invisible
characters, how many blanks there are, and ways to spell a path or a URL make no difference; `~` is the home
folder of the person.

Both take time linear in pattern plus text: literal parts are searched one after the other, and the leftmost
match is always as good as any later one. Patterns are never turned into regular expressions.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dragoman.cleaning import BLANKS, fold, without_invisible
from dragoman.errors import ConfigError
from dragoman.permissions.comments import TooManyComments, may_have_comments, without_comments_between
from dragoman.urls import parse_url
from dragoman.wildcards import fits

_DECODINGS: Final = 3
"""How many layers of percent encoding are decoded; text with more layers counts as containing `..`."""

LINK_DEPTH_LIMIT: Final = 64
"""The most folders of a path in a pattern for which links are followed."""

_OVERLONG = r"%(?:c[01]|e0%[89]|f0%8|u[0-9a-f]{4})"
"""Percent encoding that is not UTF-8: some programs read `%c0%ae` and `%u002e` as a dot."""
_SEPARATOR = re.compile(
    rf"[/\\?#@:\x00-\x1f]|%(?:2f|5c|3f|23|40|3a|25|[01][0-9a-f])|{_OVERLONG}", re.IGNORECASE
)
_UNREADABLE = re.compile(_OVERLONG, re.IGNORECASE)
_IN_HOST = re.compile(r"[\w.-]*")
_AFTER_HOST = re.compile(r"(?::[0-9]*)?(?:[/?#].*)?", re.DOTALL)
_ENDS_IN_HOST = re.compile(r"://[^/?#\\]*\Z")
_ENDS_HOST = re.compile(r"[/?#\\]")
_URL = re.compile(r"([a-z][a-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_WITHOUT_SLASHES = re.compile(r"[\x00-\x20]*(?:https?|wss?|ftp):")
"""A URL in which browsers and Node add the slashes: `https:host`."""
_PUNYCODE = re.compile(r"\bxn--([a-z0-9-]{1,59})")
_PATH_PARAMETERS = re.compile(r";[^/]*")
_HIDDEN_IN_URLS = re.compile(r"\A[\x00-\x20]+|[\t\r\n]")
"""What URL parsers drop before they read an address."""
_HIDDEN = re.compile(r"[\x00-\x1f\x7f]|%(?:[01][0-9a-f]|7f)", re.IGNORECASE)
_CLIMB = re.compile(r"(?<![\w.\-])\.\.(?![\w.\-])")
_IGNORED_IN_URLS = re.compile(r"[\t\r\n]")
_SLASHES = re.compile(r"/{2,}")
_HOME = re.compile(r"(?:~([\w.-]*)|\$home|\$\{home\}|%(?:home|userprofile)%)(?=[/\\]|\Z)")
_VARIABLE = re.compile(r"\$\w+|\$\{[^}]*\}|%\w+%")
_BEFORE_DRIVE = re.compile(r"/(?:\?/)?([a-z]:/.*)", re.DOTALL)
"""A path of Windows after `file://` or `\\\\?\\`."""
_ROOT_OF_PROCESS = re.compile(r"\A(?:/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/root(?=/|\Z))+")
"""Links of Linux to the root folder: `/proc/self/root/etc` is `/etc`."""
_BEFORE_URL = re.compile(r"(?:url|view-source):", re.IGNORECASE)
_COMMENTS = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|--[^\n]*+")
"""Comments, which separate words in SQL as blanks do."""


class Glob(Struct, frozen=True):
    """Literal parts with a `*` between each two."""

    parts: tuple[str, ...]
    folded: tuple[str, ...]
    with_single_blanks: tuple[str, ...]
    """The folded parts, each run of white space in them as one blank."""

    @staticmethod
    def of(parts: tuple[str, ...]) -> Glob:
        folded = tuple(map(fold, parts))
        return Glob(parts, folded, tuple(BLANKS.sub(" ", part) for part in folded))

    @staticmethod
    def plainly(text: str) -> Glob:
        """A pattern in which every `*` of the text is a wildcard."""
        return Glob.of(tuple(text.split("*")))

    @property
    def is_exact(self) -> bool:
        return len(self.parts) == 1

    @property
    def variable(self) -> str | None:
        """The variable that it begins with, other than that of the home folder: no pattern replaces it."""
        found = None if _HOME.match(self.folded[0]) else _VARIABLE.match(self.parts[0])
        return None if found is None else found[0]

    def behind_links(self) -> Glob | None:
        """The pattern with the real path of the folder that it begins with, or of the file; None if no link
        leads there now."""
        path = os.path.expanduser(self.parts[0])
        if not path.startswith("/") or path.count("/") > LINK_DEPTH_LIMIT:
            return None
        folder, slash, rest = (path, "", "") if self.is_exact else path.rpartition("/")
        try:
            real = os.path.realpath(folder)
        except (OSError, ValueError):
            return None
        return None if real == folder else Glob.of((real.rstrip("/") + slash + rest, *self.parts[1:]))

    def fits_carefully(self, text: str) -> bool:
        return _fits_carefully(self.parts, text)

    def fits_loosely(self, text: str) -> bool:
        """Whether any spelling of the text matches."""
        return any(
            fits(self.folded, spelling)
            or fits(self.with_single_blanks, spelling)
            or (may_have_comments(spelling) and self._fits_past_comments(spelling))
            for spelling in spellings(text)
        )

    def _fits_past_comments(self, text: str) -> bool:
        """Whether it matches with the comments between its words as blanks; true if there are too many."""
        several = [part for part in self.with_single_blanks if " " in part.strip()]
        try:
            for part in several:
                text = without_comments_between(part, text)
        except TooManyComments:
            return True
        return bool(several) and fits(self.with_single_blanks, text)


def _fits_carefully(parts: tuple[str, ...], text: str) -> bool:
    if len(parts) == 1:
        return text == parts[0]
    first, *middle, last = parts
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    in_host = _is_in_host(first, False)
    for part in middle:
        # The leftmost match is enough here, too: a longer gap without separators contains the shorter one.
        found = text.find(part, at, end)
        if found < 0 or _crosses(text[at:found], in_host):
            return False
        at = found + len(part)
        in_host = _is_in_host(part, in_host)
    if last and _crosses(text[at:end], in_host):
        return False
    if _is_path_like(parts) and _hides_something(text):
        return False
    if not last and in_host and not text.endswith("://", 0, at) and not _AFTER_HOST.fullmatch(text, at):
        return False
    # The pattern itself may contain `..`; after its last complete folder, the text may not.
    return not climbs(text[max(first.rfind("/"), first.rfind("\\"), 0) :])


def _is_path_like(parts: tuple[str, ...]) -> bool:
    return any("/" in part or "\\" in part for part in parts)


def _hides_something(text: str) -> bool:
    """Whether the text has control or invisible characters, which a server may drop or cut at."""
    return _HIDDEN.search(text) is not None or without_invisible(text) != text


def _is_in_host(part: str, was_in_host: bool) -> bool:
    """Whether the host of a URL continues after this part of a pattern."""
    return _ENDS_IN_HOST.search(part) is not None or (was_in_host and not _ENDS_HOST.search(part))


def _crosses(gap: str, in_host: bool) -> bool:
    if in_host:
        return _IN_HOST.fullmatch(gap) is None
    if not gap.isascii():
        gap = unicodedata.normalize("NFKC", gap)
    return _SEPARATOR.search(gap) is not None


def climbs(text: str) -> bool:
    """Whether there is a `..` between separators, plain or encoded, or an encoding that cannot be read."""
    if ".." not in text and "%" not in text and text.isascii() and "." not in text:
        return False
    for _ in range(_DECODINGS + 1):
        seen = text if text.isascii() else unicodedata.normalize("NFKC", text)
        if _CLIMB.search(_IGNORED_IN_URLS.sub("", seen)) or _UNREADABLE.search(seen):
            return True
        decoded = _decoded(seen)
        if decoded == seen:
            return False
        text = decoded
    return True


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def spellings(text: str) -> Iterator[str]:
    """The equivalent spellings of a text, folded: unchanged, without blanks around it, with single blanks,
    without comments, decoded, and with its path resolved; also cut at a NUL, where many programs end it."""
    seen: set[str] = set()
    for _ in range(_DECODINGS):
        for form in dict.fromkeys((text, text.partition("\0")[0], _without_delimiters(text))):
            for spelling in _resolved(fold(form)):
                if spelling not in seen:
                    seen.add(spelling)
                    yield spelling
        decoded = _decoded(text)
        if decoded == text:
            return
        text = decoded


def _without_delimiters(text: str) -> str:
    """A URL without the delimiters of RFC 3986, appendix C, which Python's `urllib` removes as well:
    `<URL:https://host>`; and without `view-source:`, by which browsers load it."""
    inner = text.strip()
    if inner[:1] == "<" and inner[-1:] == ">":
        inner = inner[1:-1].strip()
    return _BEFORE_URL.sub("", inner, count=1).strip() if _BEFORE_URL.match(inner) else inner


def _resolved(text: str) -> Iterator[str]:
    yield text
    yield text.strip()
    yield BLANKS.sub(" ", text)
    if "/*" in text or "--" in text:
        yield BLANKS.sub(" ", _COMMENTS.sub(" ", text))
    home = fold(os.path.expanduser("~")).rstrip("/")
    text = _in_home(text.strip(), home)
    if "/" in text or "\\" in text or _WITHOUT_SLASHES.match(text):
        written = text.replace("\\", "/")
        slashed = _SLASHES.sub("/", written)
        yield slashed
        for each in dict.fromkeys((slashed, _ROOT_OF_PROCESS.sub("", slashed))):
            yield from _forms_of_path(posixpath.normpath(each), home)
        # Programs differ about a backslash before the host: `https://one\@other`.
        for each in dict.fromkeys((written, text)):
            if url := _URL.fullmatch(_HIDDEN_IN_URLS.sub("", each)):
                yield from _resolved_url(home, *url.groups())


def _in_home(text: str, home: str) -> str:
    """The path with the home folder in place of `~` or its variable."""
    found = _HOME.match(text)
    if not found or not home or found[1] not in (None, "", posixpath.basename(home)):
        return text
    return home + text[found.end() :]


def _forms_of_path(path: str, home: str) -> Iterator[str]:
    """A resolved path with either slash, as a folder, without what precedes a drive, and with `~`."""
    if path != (in_root := _ROOT_OF_PROCESS.sub("", path)):
        yield from _forms_of_path(in_root or "/", home)
    drive = _BEFORE_DRIVE.fullmatch(path)
    for each in (path, drive[1]) if drive else (path,):
        for form in (each, f"{each}/"):
            yield from (form, form.replace("/", "\\"))
    if home and f"{path}/".startswith(f"{home}/"):
        rest = path[len(home) :]
        yield from (f"~{rest}", f"~{rest}/")
        if (real := _real_home(os.path.expanduser("~"))) != home:
            yield from (f"{real}{rest}", f"{real}{rest}/")


@lru_cache(maxsize=8)
def _real_home(home: str) -> str:
    """The home folder without links, folded: `/home` is a link on some systems."""
    return fold(os.path.realpath(home)).rstrip("/")


def _resolved_url(home: str, scheme: str, authority: str | None, path: str, rest: str) -> Iterator[str]:
    """The URL with its path resolved, without user name and default port, in canonical form, and without
    punycode."""
    if not authority and scheme != "file":  # `https:/host/path`, which browsers take for `https://host/path`
        authority, _, path = path.lstrip("/").partition("/")
        path = f"/{path}"
    path = posixpath.normpath(_SLASHES.sub("/", _PATH_PARAMETERS.sub("", path))) if path else "/"
    if scheme == "file":
        # Node reads `file:etc/hosts` as `file:///etc/hosts`, others as a relative path.
        for each in dict.fromkeys((path, posixpath.normpath(f"/{path.lstrip('/')}"))):
            yield from (f"file://{each}{rest}", f"file:{each}{rest}", *_forms_of_path(each, home))
        return
    host = (
        (authority or "").rpartition("@")[2].removesuffix({"http": ":80", "https": ":443"}.get(scheme, ":"))
    )
    for end in (path, path.rstrip("/"), f"{path}/"):
        url = f"{scheme}://{host.removesuffix(':')}{end}{rest}"
        yield url
        yield f"{scheme}://{_without_punycode(host.removesuffix(':'))}{end}{rest}"
        with contextlib.suppress(ConfigError):
            yield fold(str(parse_url(url)))


def _without_punycode(host: str) -> str:
    """The host with the letters that its `xn--` labels stand for, folded."""
    if "xn--" not in host:
        return host
    return fold(_PUNYCODE.sub(_letters_of, host))


def _letters_of(label: re.Match[str]) -> str:
    try:
        return label[1].encode().decode("punycode")
    except UnicodeError:
        return label[0]
