"""Reading: one bad server, one bad file, and what is switched off."""

import json
from typing import Any

import pytest

from dragoman.config.interchange.formats import FORMATS, read
from dragoman.errors import ConfigError, ConfigFileError

JSON_FORMATS = [key for key, row in FORMATS.items() if not row.is_toml]
SECRET = "s3cr3t-value"


def read_one(key: str, entry: Any) -> Any:
    block = "servers" if key == "vscode" else "mcpServers"
    return read(key, json.dumps({block: {"box": entry, "fine": {"command": "ok"}}}), source="f")


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("key", JSON_FORMATS)
@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (None, None),
        ([SECRET], None),
        (SECRET, None),
        ({}, None),
        ({"args": [SECRET]}, None),
        ({"command": ""}, "command"),
        ({"command": [SECRET]}, "command"),
        ({"command": "x", "args": SECRET}, "args"),
        ({"command": "x", "args": [{"a": SECRET}]}, "args[0]"),
        ({"command": "x", "env": [SECRET]}, "env"),
        ({"command": "x", "env": {"A": [SECRET]}}, "env.A"),
        ({"url": 7}, "url"),
        ({"url": "https://x", "headers": SECRET}, "headers"),
        ({"url": f"ftp://{SECRET}"}, "url"),
        ({"type": SECRET, "url": "https://x"}, "type"),
        ({"type": "http", "command": SECRET}, "url"),
    ],
)
def test_an_invalid_server_is_reported_and_the_others_are_read(key: str, entry: Any, field: str | None):
    result = read_one(key, entry)
    assert list(result.servers) == ["fine"]
    assert ("box", field) in [(note.server, note.field) for note in result.notes]
    assert SECRET not in repr(result.notes)


@pytest.mark.parametrize("key", JSON_FORMATS)
def test_numbers_in_place_of_strings_become_strings(key: str):
    entry = {"command": "x", "args": [8080, True, 1.5], "env": {"PORT": 8080, "FLAG": False, "NONE": None}}
    assert read_one(key, entry).servers["box"] == {
        "command": "x",
        "args": ["8080", "true", "1.5"],
        "env": {"PORT": "8080", "FLAG": "false"},
    }


@pytest.mark.parametrize("spelled", ["streamable-http", "streamableHttp", "streamable_http", "http"])
def test_the_names_of_streamable_http(spelled: str):
    assert read_one("cursor", {"type": spelled, "url": "https://x/sse"}).servers["box"]["type"] == "http"


def test_unknown_fields_are_kept_in_dragomans_format_and_reported_in_others():
    entry = {"command": "x", "alwaysAllow": [SECRET]}
    assert read_one("claude-code", entry).servers["box"] == entry
    result = read_one("cursor", entry)
    assert result.servers["box"] == {"command": "x"}
    assert [(note.server, note.field) for note in result.notes] == [("box", "alwaysAllow")]
    assert SECRET not in repr(result.notes)


@pytest.mark.parametrize("key", [key for key in JSON_FORMATS if key != "claude-code"])
@pytest.mark.parametrize("value", [None, False, "", [], {}])
def test_an_empty_field_is_left_out_without_a_note(key: str, value: Any):
    result = read_one(key, {"command": "x", "some": value})
    assert (result.servers["box"], result.notes) == ({"command": "x"}, ())


@pytest.mark.parametrize("key", JSON_FORMATS)
@pytest.mark.parametrize("switch", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_read_and_named(key: str, switch: dict[str, bool]):
    result = read_one(key, {"command": "x", **switch})
    assert (result.servers["box"], result.disabled) == ({"command": "x"}, ("box",))
    assert result.notes == ()


def test_servers_missing_from_geminis_allow_list_are_disabled():
    servers = {name: {"command": "x"} for name in "abc"}
    text = json.dumps({"mcp": {"allowed": ["a", "c"], "excluded": ["c"]}, "mcpServers": servers})
    assert read("gemini", text, source="f").disabled == ("b", "c")


def test_a_gemini_entry_with_two_urls_is_http():
    result = read_one("gemini", {"httpUrl": "https://a", "url": "https://b"})
    assert result.servers["box"] == {"type": "http", "url": "https://a"}
    assert [note.field for note in result.notes] == ["url"]


def test_servers_in_a_settings_file_of_vs_code_are_found_one_level_deeper():
    text = '{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}'
    assert read("vscode", text, source="f").servers == {"a": {"command": "x"}}


@pytest.mark.parametrize("key", list(FORMATS))
@pytest.mark.parametrize("text", ["", "\n  \n", "\ufeff"])
def test_an_empty_file_has_no_servers(key: str, text: str):
    result = read(key, text, source="f")
    assert (result.servers, result.disabled, len(result.notes)) == ({}, (), 1)


def test_names_of_servers_and_fields_contain_no_terminal_sequences():
    text = json.dumps({"mcpServers": {"a\x1b[31m": {"command": "x", "b\u202e": 1}, "": {"command": "x"}}})
    result = read("cursor", text, source="f")
    assert "a\x1b[31m" in result.servers
    assert all((f"{note.server}{note.field}{note.text}").isprintable() for note in result.notes)
    assert {note.field for note in result.notes} == {"b\\u202e", None}


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("key", "text", "line", "column"),
    [
        ("claude-code", '{\n  "mcpServers": {,}\n}', 2, 18),
        ("claude-code", '{\n  // no\n  "mcpServers": {}\n}', 2, 3),
        ("claude-desktop", '{"mcpServers": {},}', 1, 18),
        ("vscode", '{\n  // fine\n  "servers": {"a": }\n}', 3, 20),
        ("cursor", '{\n "mcpServers": []\n}', 2, 2),
        ("gemini", '{"mcpServers": "s3cr3t-value"}', 1, 2),
        ("vscode", '{\n"mcp": {"servers": 1}}', 2, 9),
        ("windsurf", "[]", 1, None),
        ("codex", "a = 1\nb = \n[mcp_servers.a]\n", 2, 5),
        ("codex", 'a = "s3cr3t-value', 1, None),
        ("codex", "[a]\n[a]\n", 2, 3),
        ("codex", "mcp_servers = 1\n", None, None),
    ],
)
def test_a_broken_file_is_reported_with_its_position_and_without_its_content(
    key: str, text: str, line: int | None, column: int | None
):
    with pytest.raises(ConfigFileError) as caught:
        read(key, text, source="the/file")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("the/file", line, column)
    assert SECRET not in f"{caught.value} {caught.value.hint}"


def test_comments_that_the_host_does_not_accept_give_a_hint():
    with pytest.raises(ConfigFileError) as caught:
        read("claude-desktop", '{"mcpServers": {}, // mine\n}', source="f")
    assert "Claude Desktop" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, '{"a":' * 100_000, "a" + ".a" * 100_000 + " = 1", "a." * 100_000]
)
def test_very_deep_nesting_is_an_error(text: str):
    with pytest.raises(ConfigFileError):
        read("codex" if text[0] == "a" else "vscode", text, source="f")


def test_an_unknown_format_is_reported_with_the_known_ones():
    with pytest.raises(ConfigError) as caught:
        read("emacs", "{}", source="f")
    assert "vscode" in (caught.value.hint or "")


def toml(text: str) -> Any:
    return read("codex", text, source="f")


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ('command = "x"\nurl = "https://x"', None),
        ("enabled = true", None),
        ('command = "x"\nargs = "y"', "args"),
        ('command = "x"\nenv = { A = 1979-05-27 }', "env.A"),
        ('command = "x"\nenv_vars = "A"', "env_vars"),
        ("url = 1", "url"),
        ('url = "https://x"\nhttp_headers = ["a"]', "http_headers"),
    ],
)
def test_an_invalid_table_of_codex_is_reported(table: str, field: str | None):
    result = toml(f'[mcp_servers.box]\n{table}\n[mcp_servers.fine]\ncommand = "ok"\n')
    assert list(result.servers) == ["fine"]
    assert [(note.server, note.field) for note in result.notes] == [("box", field)]


def test_codex_may_name_the_bearer_token_only_once():
    result = toml(
        '[mcp_servers.a]\nurl = "https://x"\nbearer_token_env_var = "T"\n'
        'http_headers = { authorization = "s3cr3t-value" }\n'
    )
    assert result.servers["a"]["headers"] == {"Authorization": "Bearer ${T}"}
    assert [note.field for note in result.notes] == ["bearer_token_env_var"]
    assert SECRET not in repr(result.notes)


@pytest.mark.parametrize("written", ["-1", "0", "inf", "nan", "true", '"60"'])
def test_an_invalid_time_limit_is_left_out(written: str):
    result = toml(f'[mcp_servers.a]\ncommand = "x"\ntool_timeout_sec = {written}\n')
    assert result.servers == {"a": {"command": "x"}}
    assert [note.field for note in result.notes] == ["tool_timeout_sec"]
