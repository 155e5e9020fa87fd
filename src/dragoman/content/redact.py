"""Removes the secrets of a server's entry from the messages of that server.

Known values are found as they are and as JSON, URLs, HTML, hexadecimal and base64 encode them, also in text
that comes in pieces or several blocks, and in values decoded from JSON. A value that is short or a common
word is not searched for: hiding every `true` would hide the answer. Data in base64 (images, files) is not
searched. This protects against servers that repeat a secret, not against a server that leaks one
deliberately.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Struct, structs

from dragoman.cleaning import CUT, for_model
from dragoman.names import ServerName

HIDDEN: Final = "[secret]"
LONGEST: Final = 64 * 1024
"""Longer secrets are searched for only as they are, not in other encodings."""
SHORTEST: Final = 8
"""The shortest value that is covered: the replacement must not be longer than the value."""
SPELLING_LIMIT: Final = 1000
SECRET_LIMIT: Final = 100

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_WORDS = re.compile(r"[A-Za-z]{1,15}|\d{1,11}|[\w.-]+\.[a-z]{2,6}")
_LOGIN = re.compile(r"[^:/\s]+:[^/\s]+")
_PERCENT = re.compile(r"%[0-9A-F]{2}")
HIDING: Final = re.compile(rb"\\[u/\\]")
"""Escapes in which JSON may write a character of a secret, or one of JSON inside a text."""
_JSON_SIGN = re.compile(r"\\+(?:u00((?!22|5[cC]|7[fF])[2-7][0-9a-fA-F])|/)")
"""An escape in JSON, or in JSON inside JSON, of a character that needs none."""
_JSON_SIGN_BYTES = re.compile(_JSON_SIGN.pattern.encode())
_LONGEST_ESCAPE: Final = len("\\\\u002d")
"""The maximum number of bytes for one character in JSON inside JSON."""
_TEXT: Final = b'"text"'
"""Occurs twice in each text block, as its type and as the name of a member; once in an embedded resource."""
_RESOURCE: Final = b'"resource"'
BASE64_FIELDS: Final = frozenset({"data", "blob"})
"""Fields with data in base64."""

S = TypeVar("S", bound=Struct)
Span = tuple[int, int]


_MARKUP: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_HTML: Final = tuple(
    str.maketrans(signs)
    for signs in (
        _MARKUP,  # PHP, lodash
        {**_MARKUP, "'": "&#x27;"},  # Python, whose module `html` holds a table of 2 000 names in memory
        {**_MARKUP, '"': "&#34;"},  # Jinja, Go
        {**_MARKUP, '"': "&#34;", "+": "&#43;"},  # templates of Go
        {**_MARKUP, "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"},  # Handlebars
        {**_MARKUP, "/": "&#x2F;", "`": "&#x60;", "=": "&#x3D;"},  # Mustache
        {**_MARKUP, "'": "&#x27;", "/": "&#x2F;"},  # as OWASP recommends
    )
)
"""What libraries write in HTML for signs."""
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f-]{16,}")
"""A key or a UUID that means the same in capitals."""


def _escaping(characters: str, form: str) -> dict[int, str]:
    return {ord(each): form % ord(each) for each in characters}


_JSON_WRITERS: Final = (
    _escaping("&<>", "\\u%04x"),  # Go, Ruby on Rails
    _escaping("&<>'", "\\u%04x"),  # Flask
    _escaping("&<>'=", "\\u%04x"),  # Gson
    _escaping("&<>'+`", "\\u%04X"),  # .NET
    {**_escaping("&<>'", "\\u%04X"), ord("/"): "\\/"},  # PHP
)
"""What JSON libraries write as escapes, though JSON does not need it."""


class Redactor:
    def __init__(self, secrets: Iterable[str]) -> None:
        """`secrets`: the secrets of the entry; they stay covered whatever is learned later."""
        self._of_entry = tuple(dict.fromkeys(secrets))[-SECRET_LIMIT:]
        self._learned: dict[str, None] = {}
        self.learn(())

    def learn(self, secrets: Iterable[str]) -> None:
        """Covers these secrets as well; of changing ones, such as tokens, only the newest are kept."""
        for secret in secrets:
            self._learned.pop(secret, None)
            self._learned[secret] = None
        for oldest in list(self._learned)[:-SECRET_LIMIT]:
            del self._learned[oldest]
        known = [each for secret in (*self._of_entry, *self._learned) for each in _parts(secret)]
        # Secrets as written come first, should there be more than is looked for.
        found = dict.fromkeys(known)
        found |= dict.fromkeys(spelling for each in known for spelling in _as_text(each))
        found |= dict.fromkeys(spelling for each in known for spelling in _encoded(each))
        self._texts = tuple(sorted(list(found)[:SPELLING_LIMIT], key=len, reverse=True))
        self.is_empty = not self._texts
        """Whether there is nothing to cover."""
        # Searching for one after the other takes a tenth of the time that one pattern of all takes.
        self._bytes = tuple(text.encode("utf-8", "replace") for text in self._texts)
        self._is_escaped = any(_ESCAPED.search(text) for text in self._texts)
        self._longest = max(map(len, self._bytes), default=0)
        self._reach = _LONGEST_ESCAPE * self._longest

    def __bool__(self) -> bool:
        return not self.is_empty

    def text(self, text: str) -> str:
        text = self._without_whole(text)
        if "\\u00" in text or "\\/" in text:  # JSON, of a library that writes other signs as escapes
            unescaped = _JSON_SIGN.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
            if (covered := self._without_whole(unescaped)) != unescaped:
                text = covered
        return self._without_halves(text) if CUT in text else text

    def _unescaped(self, data: bytes) -> bytes:
        """The same text, with signs in place of escapes if a secret is found then."""
        if b"\\u00" in data or b"\\/" in data:
            plain = _JSON_SIGN_BYTES.sub(lambda found: bytes([int(found[1], 16)]) if found[1] else b"/", data)
            return plain if self.is_in(plain) else data
        return data

    def _without_whole(self, text: str) -> str:
        for spelling in self._texts:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        return text

    def _without_halves(self, text: str) -> str:
        """The text without parts of secrets at places where it was cut."""
        for spelling in self._texts:
            if len(spelling) > SHORTEST and (spelling[:SHORTEST] in text or spelling[-SHORTEST:] in text):
                spans = [*_beginnings(spelling, text), *_ends(spelling, text)]
                text = _without([text], 0, _merged(spans))[0]
        return text

    def texts(self, texts: Sequence[str]) -> list[str]:
        """The texts without secrets, including secrets that begin in one text and end in a later one."""
        found = [self.text(text) for text in texts]
        if len(found) > 1:
            for between in ("", "\n"):
                joined = between.join(found)
                if spans := [span for each in self._texts for span in _places(each, joined)]:
                    found = _without(found, len(between), _merged(spans))
        return found

    @property
    def spellings(self) -> tuple[bytes, ...]:
        """The encoded forms that are searched for, in UTF-8; also as JSON."""
        return self._bytes

    def is_in(self, data: bytes) -> bool:
        """Whether a text in UTF-8, perhaps JSON, contains a secret."""
        return any(spelling in data for spelling in self._bytes)

    def may_be_in_json(self, data: bytes) -> bool:
        """Whether JSON as it came may contain a secret: as it is, or in escapes, which are not decoded
        here."""
        return HIDING.search(data) is not None or self.is_in(data)

    def may_be_in_result(self, data: bytes) -> bool:
        """The same for a result, where it may also be spread over several texts."""
        texts = data.count(_TEXT)
        return texts > 2 or (texts > 1 and _RESOURCE in data) or self.may_be_in_json(data)

    def value(self, value: Any) -> Any:
        """A value decoded from JSON without secrets, also in its keys. A part that is nested too deeply to be
        searched is hidden as a whole."""
        try:
            return self._in_value(value) if self._may_be_in(value) else value
        except RecursionError:
            return HIDDEN

    def struct(self, value: S, keep: frozenset[str] = frozenset()) -> S:
        """A struct whose texts, values and structs have no secrets, except in the fields to be kept."""
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in keep}
        changed = {name: self._in_field(field, keep) for name, field in fields.items()}
        changed = {name: field for name, field in changed.items() if field is not fields[name]}
        return structs.replace(value, **changed) if changed else value

    def _in_field(self, field: Any, keep: frozenset[str]) -> Any:
        if isinstance(field, str):
            return self.text(field)
        if isinstance(field, Struct):
            return self.struct(field, keep | BASE64_FIELDS)
        if isinstance(field, tuple):
            return tuple(self._in_field(each, keep) for each in cast("tuple[Any, ...]", field))
        if isinstance(field, Mapping):
            return self.value(dict(cast("Mapping[str, Any]", field)))
        return field

    def _may_be_in(self, value: Any) -> bool:
        """Whether its JSON may contain a secret: always true if JSON escapes a character of a secret."""
        return self._is_escaped or self.is_in(self._unescaped(msgspec.json.encode(value)))

    def _in_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {self.text(name): self._in_value(inner) for name, inner in members.items()}
        if isinstance(value, list):
            return [self._in_value(inner) for inner in cast("list[Any]", value)]
        if isinstance(value, int | float) and self.text(text := str(value)) != text:
            return HIDDEN
        return value

    def pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a text without secrets, also those that span several pieces."""
        if not self._bytes:
            yield from pieces
            return
        held = b""
        for piece in pieces:
            held += piece
            if len(held) >= 2 * self._reach:
                held = self._unescaped(held)
                border = self._border(held)
                yield self._hidden(held[:border])
                held = held[border:]
        if held:
            yield self._hidden(self._unescaped(held))

    def _hidden(self, data: bytes) -> bytes:
        for spelling in self._bytes:
            data = data.replace(spelling, HIDDEN.encode())
        return data

    def _border(self, held: bytes) -> int:
        """The position up to which the text is final: a secret that begins after it may continue in the next
        piece."""
        border = max(0, len(held) - self._reach + 1)
        start = max(0, border - self._longest)
        for spelling in self._bytes:
            at = held.find(spelling, start)
            while 0 <= at < border:
                border = max(border, at + len(spelling))
                at = held.find(spelling, at + 1)
        return border


RedactorOf = Callable[[ServerName], Redactor | None]
"""The redactor of a server's entry; None if the entry has no secrets."""


# The encoded forms of a secret.


def _parts(secret: str) -> Iterator[str]:
    """The secret without the HTTP scheme before it, and the login that it encodes. Parts that are too short
    or common words are left out."""
    secret = secret.strip()
    scheme, _, rest = secret.partition(" ")
    bare = rest.strip() if scheme.lower() in ("bearer", "basic", "token", "apikey") and rest else secret
    login = _login(bare)
    password = bare.partition(":")[2] if _LOGIN.fullmatch(bare) else ""
    for each in (secret, bare, password, login, login.partition(":")[2]):
        if len(each) >= SHORTEST and not _WORDS.fullmatch(each):
            yield each


def _login(secret: str) -> str:
    """The `user:password` that the secret encodes in base64, as in HTTP Basic; empty if it does not."""
    try:
        found = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return found if ":" in found and found.isprintable() else ""


def _as_text(secret: str) -> Iterator[str]:
    yield from (secret, for_model(secret), *(secret.translate(signs) for signs in _HTML))
    if _HEXADECIMAL.fullmatch(secret):
        yield from (secret.lower(), secret.upper())
    for written in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield from (written, written.replace("/", "\\/"))
    yield from (written.translate(escapes) for escapes in _JSON_WRITERS)


def _encoded(secret: str) -> Iterator[str]:
    if len(secret) > LONGEST:
        return
    written_out = partial(quote, errors="replace")
    once = written_out(secret, safe="")
    # Twice: in a URL that is a parameter of another.
    for written in (once, written_out(secret), quote_plus(secret, errors="replace"), quote(once)):
        yield from (written, _PERCENT.sub(lambda found: found.group().lower(), written))
    data = secret.encode("utf-8", "replace")
    yield from (data.hex(), data.hex().upper())
    # In base64, preceding bytes shift the encoding: the first and last few characters depend on the
    # neighbours.
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode().rstrip("=")
        for shift in range(3):
            letters = encode(bytes(shift) + data).decode().rstrip("=")
            inner = letters[(0, 2, 3)[shift] : len(letters) - 1]
            if len(inner) >= SHORTEST:
                yield inner


# Secrets that are spread over several texts.


def _places(spelling: str, text: str) -> Iterator[Span]:
    at = text.find(spelling)
    while at >= 0:
        yield at, at + len(spelling)
        at = text.find(spelling, at + 1)


def _beginnings(spelling: str, text: str) -> Iterator[Span]:
    """The positions where the secret begins and the text is cut before its end."""
    for at, _ in _places(spelling[:SHORTEST], text):
        end = text.find(CUT, at, at + len(spelling))
        # A character that was cut itself is replaced.
        if end >= 0 and spelling.startswith(text[at:end].rstrip("\ufffd")):
            yield at, end


def _ends(spelling: str, text: str) -> Iterator[Span]:
    """The positions where the secret ends and the text before is cut off."""
    for _, end in _places(spelling[-SHORTEST:], text):
        begin = text.rfind(CUT, max(0, end - len(spelling)), end) + 1
        if begin and spelling.endswith(text[begin:end]):
            yield begin, end


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _without(texts: list[str], between: int, spans: list[Span]) -> list[str]:
    """The texts without these spans (positions in the joined text); the replacement is put where a span
    begins."""
    found: list[str] = []
    start = 0
    for text in texts:
        end, at, kept = start + len(text), start, ""
        for begin, over in spans:
            if begin < end and over > start:
                kept += text[at - start : max(0, begin - start)] + (HIDDEN if begin >= start else "")
                at = min(over, end)
        found.append(kept + text[at - start :])
        start = end + between
    return found
