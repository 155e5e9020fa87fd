"""One server entry: what is understood, what is refused, and what is never said."""

import pytest

from dragoman.config.model import TRANSPORTS, OAuthConfig, ServerConfig, parse_entry, parse_servers
from dragoman.errors import ConfigError

SECRET = "s3cret-Value-42"


@pytest.mark.parametrize(
    ("entry", "config"),
    [
        ({"command": "npx"}, ServerConfig(command="npx")),
        (
            {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "cwd": "/tmp"},
            ServerConfig(command="npx", args=("-y", "x"), env={"A": "1"}, cwd="/tmp"),
        ),
        ({"type": "stdio", "command": "x"}, ServerConfig(command="x")),
        ({"url": "https://x"}, ServerConfig(type="http", url="https://x")),
        ({"type": "sse", "url": "https://x"}, ServerConfig(type="sse", url="https://x")),
        ({"type": "ws", "url": "wss://x"}, ServerConfig(type="ws", url="wss://x")),
        (
            {"url": "https://x", "headers": {"A": "b"}},
            ServerConfig(type="http", url="https://x", headers={"A": "b"}),
        ),
        ({"command": "x", "timeout": 5000}, ServerConfig(command="x", timeout=5000)),
        ({"command": "x", "protocol": "legacy"}, ServerConfig(command="x", protocol="legacy")),
        ({"command": "x", "protocol": "2025-06-18"}, ServerConfig(command="x", protocol="2025-06-18")),
        (
            {"command": "x", "colour": "red", "oauth": {}},
            ServerConfig(command="x", oauth=OAuthConfig(), unknown={"colour": "red"}),
        ),
        ({"command": "x", "unknown": {"a": 1}}, ServerConfig(command="x", unknown={"unknown": {"a": 1}})),
        ({"type": "sdk", "name": "embedded"}, ServerConfig(type="sdk", unknown={"name": "embedded"})),
    ],
    ids=str,
)
def test_an_entry_is_understood(entry: dict[str, object], config: ServerConfig):
    assert parse_entry("box", entry) == config


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({}, "neither a command nor a url"),
        ({"args": ["x"]}, "neither a command nor a url"),
        ({"command": ""}, "needs a command"),
        ({"type": "stdio", "url": "https://x"}, "needs a command"),
        ({"type": "http", "command": "x"}, "url"),
        ({"type": "carrier-pigeon", "command": "x"}, "unknown type 'carrier-pigeon'"),
        ({"type": 7, "command": "x"}, "type"),
        ({"command": ["npx", "-y"]}, "command"),
        ({"command": "x", "args": "-y"}, "args"),
        ({"command": "x", "args": [1]}, "args"),
        ({"command": "x", "env": {"A": 1}}, "env"),
        ({"command": "x", "env": ["A=1"]}, "env"),
        ({"command": "x", "env": None}, "env"),
        ({"command": "x", "cwd": 1}, "cwd"),
        ({"command": "x", "timeout": "5s"}, "timeout"),
        ({"command": "x", "timeout": 1.5}, "timeout"),
        ({"command": "x", "timeout": True}, "timeout"),
        ({"command": "x", "timeout": 0}, "timeout must be positive"),
        ({"command": "x", "timeout": -1}, "timeout must be positive"),
        ({"command": "x", "protocol": "2099-01-01"}, "unknown protocol '2099-01-01'"),
        ({"command": "x", "protocol": "modern"}, "unknown protocol"),
        ({"command": "x\0y"}, "NUL"),
        ({"command": "x", "args": ["a\0"]}, "NUL"),
        ({"command": "x", "env": {"A\0": "1"}}, "NUL"),
        ({"command": "x", "env": {"A": "\0"}}, "NUL"),
        ({"command": "x", "cwd": "\0"}, "NUL"),
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_used_names_server_and_field(entry: dict[str, object], complaint: str):
    with pytest.raises(ConfigError) as caught:
        parse_entry("box", entry)
    assert "'box'" in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_a_server_needs_a_name(name: str):
    with pytest.raises(ConfigError, match="needs a name"):
        parse_entry(name, {"command": "x"})


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_every_type_of_server_is_understood(kind: str):
    entry = {"type": kind, "command": "x"} if kind == "stdio" else {"type": kind, "url": "https://x"}

    assert parse_entry("box", entry).type == kind


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "env": {"TOKEN": SECRET}, "timeout": "x"},
        {"command": "x", "env": {"TOKEN": [SECRET]}},
        {"command": "x", "env": {"TOKEN": SECRET + "\0"}},
        {"command": "x", "args": ["--token", SECRET], "protocol": "x"},
        {"command": "x", "args": [[SECRET]]},
        {"command": [SECRET]},
        {"url": f"https://user:{SECRET}@x", "headers": {"Authorization": SECRET}, "timeout": -1},
        {"url": "https://x", "headers": SECRET},
        {"url": "https://x", "oauth": {"clientSecret": SECRET}, "type": "x"},
        {"headers": {"Authorization": SECRET}},
    ],
    ids=str,
)
def test_a_secret_is_never_in_an_error(entry: dict[str, object]):
    with pytest.raises(ConfigError) as caught:
        parse_entry("box", entry)
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.hint}"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "env": {"TOKEN": SECRET}},
        {"command": "x", "args": ["--token", SECRET]},
        {"url": "https://x", "headers": {"Authorization": SECRET}},
        {"url": f"https://x/?key={SECRET}"},
        {"url": f"https://x?key={SECRET}"},
        {"url": "https://x", "oauth": {"clientSecret": SECRET}},
    ],
    ids=str,
)
def test_a_secret_is_never_in_the_repr(entry: dict[str, object]):
    assert SECRET not in repr(parse_entry("box", entry))


# --- fingerprints ---

BASE = {"command": "x", "args": ["a", "b"], "env": {"A": "1", "B": "2"}}


def test_the_same_entry_has_the_same_fingerprint_however_it_is_written():
    other = {"env": {"B": "2", "A": "1"}, "type": "stdio", "args": ["a", "b"], "command": "x"}

    assert parse_entry("box", BASE).fingerprint() == parse_entry("other name", other).fingerprint()


@pytest.mark.parametrize(
    "change",
    [{"command": "y"}, {"args": ["b", "a"]}, {"args": ["a b"]}, {"env": {}}, {"env": {"A": "1", "B": "3"}},
     {"cwd": "/"}, {"timeout": 1}, {"protocol": "legacy"}, {"colour": "red"}],
    ids=str,
)  # fmt: skip
def test_any_change_of_an_entry_changes_its_fingerprint(change: dict[str, object]):
    assert parse_entry("box", BASE).fingerprint() != parse_entry("box", {**BASE, **change}).fingerprint()


def test_a_fingerprint_reveals_nothing():
    assert SECRET not in parse_entry("box", {"command": "x", "env": {"A": SECRET}}).fingerprint()


# --- whole documents ---


def test_the_entries_of_a_document_come_as_they_are_written():
    servers = {"a": {"command": "x"}, "b": {"anything": [1]}}

    assert parse_servers({"mcpServers": servers, "other": 1}, "f.json") == servers
    assert parse_servers({"mcpServers": {}}, "f.json") == {}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "expected a JSON object"),
        (None, "expected a JSON object"),
        ("x", "expected a JSON object"),
        ({}, '"mcpServers" must be an object'),
        ({"mcpServers": []}, '"mcpServers" must be an object'),
        ({"mcpServers": None}, '"mcpServers" must be an object'),
        ({"servers": {}}, 'found "servers"'),
    ],
    ids=str,
)
def test_a_document_that_cannot_be_used_is_named(document: object, complaint: str):
    with pytest.raises(ConfigError) as caught:
        parse_servers(document, "f.json")
    assert str(caught.value).startswith("f.json: ")
    assert complaint in str(caught.value)


def test_whatever_an_unknown_field_holds_there_is_a_fingerprint():
    for odd in (object(), "\ud800", {1: {2: set()}}, b"\xff"):
        assert parse_entry("box", {**BASE, "odd": odd}).fingerprint()
