"""Errors in the file of a gateway: each names the file, the entry, the cause and the next step."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.settings_file import read_settings, unknown_servers

TOKEN = "0123456789abcdefghij"
ADA = {"ada": {"token": TOKEN}}
KEYS = "docs/guides/gateway.md lists the keys and their values."
LONG = "Use a long random text, such as the output of `openssl rand -hex 32`."
URL = "Write a whole URL, such as https://login.example.com."
OAUTH = {"issuer": "https://login.example.com", "audience": "https://tools.example.com/mcp"}

pytestmark = pytest.mark.requirement("GWY-3")


def written(folder: Path, text: str) -> Path:
    path = folder / "gateway.json"
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("settings", "cause", "hint"),
    [
        ({"callers": {"ada": {"tokn": TOKEN}}}, "caller 'ada': Object contains unknown field `tokn`", KEYS),
        ({"callers": {"ada": {"token": 5}}}, "caller 'ada': Expected `str`, got `int` - at `$.token`", KEYS),
        ({"callers": ADA, "views": {"v": 1}}, "view 'v': Expected `object`, got `int`", KEYS),
        (
            {"oauth": {**OAUTH, "scopes": {"s": {"servers": "x"}}}},
            "scope 's': Expected `array | null`, got `str` - at `$.servers`",
            KEYS,
        ),
        ({"callers": ADA, "oauth": 1}, "Expected `object | null`, got `int` - at `$.oauth`", KEYS),
        ({"callers": ADA, "publicURL": ""}, "Object contains unknown field `publicURL`", KEYS),
        (
            {},
            "it names neither callers nor oauth",
            'Name at least one caller: {"callers": {"NAME": {"token": "…"}}}.',
        ),
        (
            {"callers": {"ada": {"token": "short"}}},
            "the token of caller 'ada' has fewer than 16 characters",
            LONG,
        ),
        (
            {"callers": {**ADA, "bob": {"token": TOKEN}}},
            "the callers 'ada' and 'bob' have the same token",
            "Give each its own.",
        ),
        (
            {"callers": {"local": {"token": TOKEN}}},
            "a caller is named 'local'",
            "Give it another name: this one means the operator.",
        ),
        (
            {"callers": {"ada": {"token": TOKEN, "views": ["x"]}}, "views": {"v": {}}},
            "caller 'ada' names the view 'x', which does not exist",
            "The views of the file: v.",
        ),
        (
            {"callers": ADA, "views": {"v": {"resultTokens": 5}}},
            "resultTokens of the view 'v' is less than 1000, and not 0",
            "Write 0 for no limit, or at least 1000.",
        ),
        (
            {"oauth": {**OAUTH, "issuer": "x"}},
            "oauth.issuer: the URL does not begin with a scheme and ://",
            URL,
        ),
        (
            {"callers": ADA, "publicUrl": "https://x.example?a"},
            "publicUrl has a query or a fragment",
            "Write scheme, host and port only.",
        ),
        (
            {"callers": ADA, "store": {"redis": "redis://x", "key": "k"}},
            "the key of the store has fewer than 32 characters",
            LONG,
        ),
        (
            {"callers": ADA, "views": {"a/b": {}}},
            "the view 'a/b' needs a name of letters, digits, - and _",
            "It is part of a path: rename it.",
        ),
    ],
)
def test_an_error_names_file_entry_cause_and_next_step(
    tmp_path: Path, settings: dict[str, Any], cause: str, hint: str
):
    path = written(tmp_path, json.dumps(settings))
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert (str(raised.value), raised.value.hint) == (f"{path}: {cause}", hint)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('{\n  "callers": {,}\n}', ", line 2, column 15: "),
        ("[]", ", line 1, column 1: it is JSON, but not an object"),
    ],
)
def test_an_error_of_the_syntax_names_line_and_column(tmp_path: Path, text: str, start: str):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert str(raised.value).startswith(f"{path}{start}")
    assert raised.value.hint


def test_a_file_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(ConfigError) as raised:
        read_settings(tmp_path / "x.json")
    assert str(raised.value) == f"{tmp_path / 'x.json'}: the file does not exist"


def test_servers_that_are_not_configured_are_named_with_their_entry(tmp_path: Path):
    settings = {
        "callers": {"ada": {"token": TOKEN, "servers": ["files", "fils"]}},
        "oauth": {**OAUTH, "scopes": {"s": {"servers": ["tickts"]}, "t": {"tools": ["x*"]}}},
        "views": {"v": {"servers": ["files", "none"]}},
    }
    found = read_settings(written(tmp_path, json.dumps(settings)))
    assert unknown_servers(found, {"files"}) == [
        f"{whose} names the server {server!r}, which is not configured; until it is, it has no effect"
        for whose, server in (("caller 'ada'", "fils"), ("scope 's'", "tickts"), ("view 'v'", "none"))
    ]
