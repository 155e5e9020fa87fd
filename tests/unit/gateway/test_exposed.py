"""The names and URIs that clients of the gateway use."""

from dataclasses import dataclass

import pytest

from dragoman.gateway.exposed import exposed, exposed_uris, server_in, with_server
from dragoman.gateway.settings import Selection


@dataclass(frozen=True)
class Thing:
    server: str
    wire_name: str

    @property
    def name(self) -> str:
        return f"mcp__{self.server}__{self.wire_name}"


READ, WRITE, OTHER = Thing("files", "read"), Thing("files", "write"), Thing("mail", "read")


@pytest.mark.parametrize(
    ("plain", "names"),
    [
        (False, ["files__read", "files__write", "mail__read"]),
        (True, ["files__read", "write", "mail__read"]),
    ],
)
def test_names_are_unique_and_without_prefix_where_requested(plain: bool, names: list[str]):
    assert list(exposed([READ, WRITE, OTHER], plain=plain)) == names


def test_a_tool_cannot_take_the_name_of_another_server_by_its_own_name():
    posing = Thing("evil", "files__read")
    found = exposed([READ, OTHER, posing], plain=True)
    assert found == {"files__read": READ, "mail__read": OTHER, "evil__files__read": posing}


def test_a_uri_that_two_servers_have_names_the_server():
    found = exposed_uris([READ, WRITE, OTHER], lambda thing: f"x:{thing.wire_name}")
    assert found == {
        "mcp-server:files:x:read": READ,
        "x:write": WRITE,
        "mcp-server:mail:x:read": OTHER,
    }


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        (with_server("files", "file:///a"), ("files", "file:///a")),
        ("file:///a", None),
        ("mcp-server:files", None),
        ("mcp-server::file:///a", ("", "file:///a")),
    ],
)
def test_the_server_in_a_uri(uri: str, found: tuple[str, str] | None):
    assert server_in(uri) == found


@pytest.mark.parametrize(
    ("selection", "server", "tools"),
    [
        (Selection(), True, [True, True]),
        (Selection(servers=("files",)), True, [True, True]),
        (Selection(servers=("mail",)), False, [False, False]),
        (Selection(servers=()), False, [False, False]),
        (Selection(tools=("files__r*",)), False, [True, False]),
        (Selection(tools=("*read",)), False, [True, False]),
        (Selection(tools=()), False, [False, False]),
        (Selection(servers=("files",), tools=("files__write",)), True, [False, True]),
        (Selection(servers=("mail",), tools=("files__*",)), False, [False, False]),
    ],
)
def test_which_items_a_selection_contains(selection: Selection, server: bool, tools: list[bool]):
    assert selection.offers_server("files") is server
    assert [selection.offers_tool("files", name) for name in ("files__read", "files__write")] == tools
