"""Resources that a person names in their text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.mentions import MENTION_LIMIT, Mention, find_mentions, read_mentions
from dragoman.catalog.resources import ResourceContents
from dragoman.content.blocks import Resource, TextBlock
from dragoman.errors import NotConnected
from dragoman.names import ServerName
from tests.cpu_time import CpuTimer

pytestmark = pytest.mark.requirement("CAT-9")
SERVERS = ("docs", "docs:old", "types", "claude.ai Drive", "my-server")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@docs:file:///a", [("docs", "file:///a")]),
        ("look at @docs:file:///a.", [("docs", "file:///a")]),
        ("(see @docs:file:///a)", [("docs", "file:///a")]),
        ("see @docs:wiki://A_(b).", [("docs", "wiki://A_(b)")]),
        ("@docs:a:b, @my-server:c:d!", [("docs", "a:b"), ("my-server", "c:d")]),
        ('@docs:"file:///my notes.txt" please', [("docs", "file:///my notes.txt")]),
        ('@"docs:file:///my notes" please', [("docs", "file:///my notes")]),
        ('@"claude.ai Drive:drive://x y"', [("claude.ai Drive", "drive://x y")]),
        ("@docs:old:x://y", [("docs:old", "x://y")]),
        ("'@docs:x://y'", [("docs", "x://y")]),
        ("@docs:x://y\n@docs:x://z", [("docs", "x://y"), ("docs", "x://z")]),
        ("@docs:x://y@docs:x://z", [("docs", "x://y@docs:x://z")]),
        ("me@docs:x", []),
        ("mail me@example.com", []),
        ("npm i @types/node", []),
        ("@types/node", []),
        ("@nobody:x://y", []),
        ("@docs", []),
        ("@docs:", []),
        ("@docs: x", []),
        ("@docs:...", []),
        ('@docs:"no end', []),
        ('@"docs:no end', []),
        ("@@docs:x", []),
        ("@DOCS:x", []),
        ("@docs:a\u202eb", []),
        ("a.@docs:x", []),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_only_a_known_server_makes_a_mention(text: str, found: list[tuple[str, str]]):
    mentions = find_mentions(text, SERVERS)

    assert [(each.server, each.uri) for each in mentions] == found
    assert all(text[each.start] == "@" for each in mentions)


@given(st.text(alphabet='@docs:"() .,x/\n', max_size=80))
def test_mentions_lie_in_order_inside_the_text(text: str):
    place = 0
    for mention in find_mentions(text, ("docs", "d")):
        assert place <= mention.start < mention.end <= len(text)
        assert mention.uri in text[mention.start : mention.end]
        place = mention.end


class Shelf:
    def __init__(self) -> None:
        self.read_uris: list[str] = []

    async def read(self, server: str, uri: str) -> ResourceContents:
        self.read_uris.append(uri)
        if uri == "gone":
            raise NotConnected(server, "failed", "it \x1b[31mfell", hint="Try again.")
        content = Resource(uri, text=f"text of {uri}\u200b")
        return ResourceContents(server=ServerName(server), uri=uri, contents=(content,))


def mention(uri: str) -> Mention:
    return Mention("docs", uri, 0, 0)


async def test_each_is_given_under_its_name_and_a_failure_is_a_sentence():
    blocks: Any = await read_mentions([mention("a"), mention("gone"), mention("b")], Shelf())

    assert [block.text for block in blocks] == [
        "[@docs:a, as the server gave it:]",
        "text of a",
        "[@docs:gone could not be read: docs is failed: it \\x1b[31mfell. Try again.]",
        "[@docs:b, as the server gave it:]",
        "text of b",
    ]


async def test_the_same_twice_is_read_once_and_not_more_than_a_few_at_all():
    shelf = Shelf()
    blocks = await read_mentions([mention("a")] * 3 + [mention(str(n)) for n in range(30)], shelf)

    assert len(shelf.read_uris) == MENTION_LIMIT
    assert blocks[-1] == TextBlock("[11 more mentions were not read]")


@pytest.mark.parametrize("text", ["@docs:" + ")" * 50_000, "@docs:" + "(" * 50_000, "@" * 50_000], ids=len)
def test_whatever_is_pasted_is_looked_through_soon(text: str):
    started = CpuTimer()
    find_mentions(text, SERVERS)

    assert started.seconds() < 1
