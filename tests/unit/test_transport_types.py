"""The table of transport types: its rows, that its readers agree with it, and that there is no second one."""

import ast
from pathlib import Path

import pytest

from dragoman.config.connector_entries import TYPES
from dragoman.config.model import parse_entry
from dragoman.config.schema import json_schema
from dragoman.connections import factory
from dragoman.errors import ConfigError
from dragoman.transport_types import (
    IN_FILES,
    REMOTE,
    SELF_CONTAINED,
    TRANSPORT_TYPES,
    TYPE_ALIASES,
    UNUSABLE,
    transport_type,
)

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"
URLS = {"https": "https://box.example/", "http": "http://box/", "wss": "wss://box/", "ws": "ws://box/"}


def test_the_lists_derived_from_the_table():
    assert IN_FILES == ("stdio", "http", "sse", "ws", "sse-ide", "ws-ide", "sdk", "claudeai-proxy")
    assert REMOTE == ("http", "sse", "ws", "sse-ide", "ws-ide", "claudeai-proxy")
    assert SELF_CONTAINED == ("stdio", "http", "sse", "ws")
    assert TYPES == ("http", "sse", "ws", "claudeai-proxy")
    assert dict.fromkeys(("streamable-http", "streamableHttp", "streamable_http"), "http") == TYPE_ALIASES


def test_an_unknown_type_is_refused():
    assert transport_type("carrier-pigeon") is TRANSPORT_TYPES[UNUSABLE]


@pytest.mark.parametrize("name", IN_FILES)
def test_each_type_has_a_factory(name: str):
    row = TRANSPORT_TYPES[name]
    assert row.kind in factory._MAKERS
    assert row.older is None or row.older in factory._REMOTE_TRANSPORTS
    assert (row.place == "remote") == (row.kind in factory._REMOTE_TRANSPORTS)


@pytest.mark.parametrize("scheme", URLS)
@pytest.mark.parametrize("name", REMOTE)
def test_an_entry_has_a_url_of_its_types_schemes(name: str, scheme: str):
    if scheme in TRANSPORT_TYPES[name].schemes:
        assert parse_entry("box", {"type": name, "url": URLS[scheme]}).transport.name == name
    else:
        with pytest.raises(ConfigError, match=f"a url of type {name} begins with"):
            parse_entry("box", {"type": name, "url": URLS[scheme]})


@pytest.mark.parametrize("name", IN_FILES)
def test_the_required_fields_of_each_type(name: str):
    row = TRANSPORT_TYPES[name]
    if row.is_identity_required:
        with pytest.raises(ConfigError, match=f"needs a {row.identity}"):
            parse_entry("box", {"type": name})
    else:
        assert parse_entry("box", {"type": name}).transport is row


def test_the_schema_lists_each_type():
    schema = json_schema("user")["$defs"]["ServerConfig"]["properties"]["type"]["enum"]
    assert schema == [*IN_FILES, *TYPE_ALIASES]


def compared_types(text: str) -> list[int]:
    """The lines on which an entry's type is compared with a text."""
    lines: list[int] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Match) and _is_type(node.subject):
            lines.append(node.lineno)
        if isinstance(node, ast.Compare) and _is_type(node.left):
            words = {
                each.value
                for side in node.comparators
                for each in ast.walk(side)
                if isinstance(each, ast.Constant)
            }
            if words & set(TRANSPORT_TYPES):
                lines.append(node.lineno)
    return lines


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("type", "transport")


def test_no_code_compares_an_entrys_type_with_a_name():
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in compared_types(path.read_text())
    }
    # An editor's lockfile names its transport in words of its own.
    assert {place for place in found if not place.startswith("transports/ide.py:")} == set()


@pytest.mark.parametrize(
    "text",
    [
        'config.type == "stdio"',
        'self.type != "http"',
        'config.type in ("sse", "ws")',
        'subject.transport == "sdk"',
        'match config.type:\n    case "http":\n        pass',
    ],
)
def test_a_comparison_is_found(text: str):
    assert compared_types(text) == [1]
