"""Resources that a person mentions in a text: `@server:uri`.

Finds mentions; pure. Only a known server makes a mention: `me@example.com` and `@types/node` are none. A URI
ends at the next space, without the punctuation of the sentence around it; one with spaces is quoted,
`@server:"file:///my notes"` or, for a server with spaces in its name, `@"my server:file:///my notes"`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from dragoman.wire.uris import URI_LIMIT, is_usable

_AT = re.compile(r"""(?<![\w@.%+/-])@""")
_REST = re.compile(rf"\S{{1,{URI_LIMIT + 1}}}")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}


class Mention(NamedTuple):
    server: str
    uri: str
    start: int
    """Where in the text it begins, and where it ends."""
    end: int

    @property
    def name(self) -> str:
        return f"{self.server}:{self.uri}"


def find_mentions(text: str, servers: Collection[str]) -> list[Mention]:
    """All of them, in order. Pure."""
    # The longest first: of servers `a` and `a:b`, `@a:b:c` names the second.
    names = sorted(servers, key=len, reverse=True)
    found: list[Mention] = []
    for at in _AT.finditer(text):
        start = at.end()
        if found and start <= found[-1].end:
            continue
        mention = _quoted(text, start, names) or _plain(text, start, names)
        if mention is not None and is_usable(mention.uri):
            found.append(mention)
    return found


def _quoted(text: str, start: int, names: Sequence[str]) -> Mention | None:
    if not text.startswith('"', start):
        return None
    end = text.find('"', start + 1)
    server = _server_at(text, start + 1, names)
    if end < 0 or server is None:
        return None
    return Mention(server, text[start + 2 + len(server) : end], start - 1, end + 1)


def _plain(text: str, start: int, names: Sequence[str]) -> Mention | None:
    server = _server_at(text, start, names)
    if server is None:
        return None
    begin = start + len(server) + 1
    if text.startswith('"', begin):
        end = text.find('"', begin + 1)
        return None if end < 0 else Mention(server, text[begin + 1 : end], start - 1, end + 1)
    rest = _REST.match(text, begin)
    if rest is None or len(rest.group()) > URI_LIMIT:
        return None
    uri = _without_punctuation(rest.group())
    return Mention(server, uri, start - 1, begin + len(uri)) if uri else None


def _server_at(text: str, place: int, names: Iterable[str]) -> str | None:
    return next((name for name in names if name and text.startswith(f"{name}:", place)), None)


def _without_punctuation(uri: str) -> str:
    """A sentence's own marks at the end are not the address's; a bracket is, if it was opened inside."""
    while uri:
        last = uri[-1]
        opener = _CLOSERS.get(last)
        if (opener is not None and uri.count(last) > uri.count(opener)) or last in ".,;:!?'\"…»”’":
            uri = uri[:-1]
        else:
            break
    return uri
