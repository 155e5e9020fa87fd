"""Resources that a person names in their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.mentions import find_mentions
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
def test_only_the_name_of_a_known_server_is_a_mention(text: str, found: list[tuple[str, str]]):
    mentions = find_mentions(text, SERVERS)

    assert [(each.server, each.uri) for each in mentions] == found
    assert all(text[each.start] == "@" for each in mentions)


@given(st.text(alphabet='@docs:"() .,x/\n', max_size=80))
def test_mentions_are_in_order_within_the_text(text: str):
    place = 0
    for mention in find_mentions(text, ("docs", "d")):
        assert place <= mention.start < mention.end <= len(text)
        assert mention.uri in text[mention.start : mention.end]
        place = mention.end


@pytest.mark.parametrize("text", ["@docs:" + ")" * 50_000, "@docs:" + "(" * 50_000, "@" * 50_000], ids=len)
def test_any_pasted_text_is_searched_quickly(text: str):
    started = CpuTimer()
    find_mentions(text, SERVERS)

    assert started.seconds() < 1
