"""Resources that a person mentions in a text: `@server:uri`.

Finds mentions (pure), and reads them for a model; each failure becomes a sentence. Only a known server makes
a mention: `me@example.com` and `@types/node` are none. A URI ends at the next space, without the punctuation
of the sentence around it; one with spaces is quoted, `@server:"file:///my notes"` or, for a server with
spaces in its name, `@"my server:file:///my notes"`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from dragoman.catalog.resources import ResourceContents
from dragoman.cleaning import for_model, one_line
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.media import Media
from dragoman.errors import DragomanError
from dragoman.wire.uris import URI_LIMIT, is_usable

MENTION_LIMIT: Final = 20
"""Resources that are read for one text."""

_AT = re.compile(r"""(?<![\w@.%+/-])@""")
_REST = re.compile(rf"\S{{1,{URI_LIMIT + 1}}}")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}


class Mention(NamedTuple):
    server: str
    uri: str
    start: int
    """Where in the text it begins, and where it ends."""
    end: int


class Reads(Protocol):
    async def read(self, server: str, uri: str) -> ResourceContents: ...


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


async def read_mentions(
    mentions: Sequence[Mention], resources: Reads, media: Media | None = None
) -> tuple[Block, ...]:
    """What the mentions name, for a model, each under its name; read side by side."""
    shows = media or Media()
    wanted = list(dict.fromkeys((mention.server, mention.uri) for mention in mentions))
    found = await asyncio.gather(*(_read(*each, resources, shows) for each in wanted[:MENTION_LIMIT]))
    blocks = [block for each in found for block in each]
    if len(wanted) > MENTION_LIMIT:
        blocks.append(TextBlock(f"[{len(wanted) - MENTION_LIMIT} more mentions were not read]"))
    return tuple(blocks)


async def _read(server: str, uri: str, resources: Reads, media: Media) -> tuple[Block, ...]:
    name = f"@{one_line(server, 200)}:{one_line(uri, 500)}"
    try:
        contents = await resources.read(server, uri)
    except DragomanError as error:
        hint = f" {error.hint}" if error.hint else ""
        return (TextBlock(f"[{name} could not be read: {for_model(str(error), 2048)}.{hint}]"),)
    shown = await media.shown(contents.contents, owner=contents.server)
    return (TextBlock(f"[{name}, as the server gave it:]"), *shown)
