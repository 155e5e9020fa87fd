"""Secrets of a server's own entry, taken out of what it answers.

I own: finding known values in text, as they are and as JSON, URLs and base64 spell them, also where text
comes in pieces, and in values decoded from JSON. A value that is short or a common word is not looked for:
hiding every `true` would hide the answer. Without secrets I do nothing, and that costs nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast
from urllib.parse import quote, quote_plus

import msgspec

HIDDEN: Final = "[secret]"
SHORTEST: Final = 8
"""A shorter value is no secret worth the name. Nothing gets longer by being hidden."""
SPELLING_LIMIT: Final = 1000
SECRET_LIMIT: Final = 100

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_WORDS = re.compile(r"[A-Za-z]{1,15}|\d{1,11}|[\w.-]+\.[a-z]{2,6}")


class Redactor:
    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: dict[str, None] = {}
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Covers these, too; of those that come and go, the newest."""
        for secret in secrets:
            self._secrets.pop(secret, None)
            self._secrets[secret] = None
        for oldest in list(self._secrets)[:-SECRET_LIMIT]:
            del self._secrets[oldest]
        found = sorted({each for known in self._secrets for each in _spellings(known)}, key=len, reverse=True)
        self._texts = tuple(found[:SPELLING_LIMIT])
        # Searching for one after the other takes a tenth of the time that one pattern of all takes.
        self._bytes = tuple(text.encode("utf-8", "replace") for text in self._texts)
        self._is_escaped = any(_ESCAPED.search(text) for text in self._texts)
        self._longest = max(map(len, self._bytes), default=0)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def text(self, text: str) -> str:
        for spelling in self._texts:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        return text

    def value(self, value: Any) -> Any:
        """The same for a value decoded from JSON, the names in it and all. What is nested too deeply to be
        looked into is hidden whole."""
        try:
            return self._in_value(value) if self._may_be_in(value) else value
        except RecursionError:
            return HIDDEN

    def _may_be_in(self, value: Any) -> bool:
        """Quickly: whether its JSON says a secret. If a secret has what JSON escapes, nobody knows."""
        if self._is_escaped:
            return True
        data = msgspec.json.encode(value)
        return any(spelling in data for spelling in self._bytes)

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
        """The same for a text in pieces, of which any may end amid a secret."""
        if not self._bytes:
            yield from pieces
            return
        held = b""
        for piece in pieces:
            held += piece
            if len(held) >= 2 * self._longest:
                border = self._border(held)
                yield self._hidden(held[:border])
                held = held[border:]
        if held:
            yield self._hidden(held)

    def _hidden(self, data: bytes) -> bytes:
        for spelling in self._bytes:
            data = data.replace(spelling, HIDDEN.encode())
        return data

    def _border(self, held: bytes) -> int:
        """Up to where nothing can change any more: what begins after it may go on in the next piece."""
        border = len(held) - self._longest + 1
        start = max(0, border - self._longest)
        for spelling in self._bytes:
            at = held.find(spelling, start)
            while 0 <= at < border:
                border = max(border, at + len(spelling))
                at = held.find(spelling, at + 1)
        return border


def _spellings(secret: str) -> Iterator[str]:
    secret = secret.strip()
    if len(secret) < SHORTEST or _WORDS.fullmatch(secret):
        return
    data = secret.encode("utf-8", "replace")
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))
    # In base64, what stands before it shifts the letters: its first and last few depend on the neighbours.
    for shift in range(3):
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            letters = alphabet(bytes(shift) + data).decode().rstrip("=")
            inner = letters[(0, 2, 3)[shift] : len(letters) - 1]
            if len(inner) >= 2 * SHORTEST:
                yield inner
    # HTTP's scheme in front of a header's value is no part of the secret.
    scheme, _, rest = secret.partition(" ")
    if scheme.lower() in ("bearer", "basic", "token", "apikey") and rest:
        yield from _spellings(rest)
