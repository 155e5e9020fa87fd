"""Writing into files that other people also edit."""

import json
import tomllib
from typing import Any

import pytest

from dragoman.config import jsonc
from dragoman.config.interchange.formats import FORMATS, Exported, read, write
from dragoman.errors import ConfigFileError

SECRET = "s3cr3t-value"
PROGRAM: dict[str, Any] = {
    "command": "npx",
    "args": ["-y", "srv"],
    "env": {"TOKEN": "${TOKEN}", "MODE": "fast"},
}
REMOTE: dict[str, Any] = {
    "type": "http",
    "url": "https://x.example/mcp",
    "headers": {"Authorization": "Bearer ${T}"},
}


def exported(key: str, entry: dict[str, Any]) -> tuple[Any, list[str | None]]:
    """The entry as it stands in a new file, and the fields of what is noted."""
    result = write(key, None, {"box": entry}, source="f")
    notes = [note.field for note in result.notes]
    assert SECRET not in repr(result.notes)
    if FORMATS[key].is_toml:
        return tomllib.loads(result.text).get("mcp_servers", {}).get("box"), notes
    return next(iter(json.loads(result.text).values())).get("box"), notes


ENV_STYLE = {"command": "npx", "args": ["-y", "srv"], "env": {"TOKEN": "${env:TOKEN}", "MODE": "fast"}}
ENV_HEADERS = {"Authorization": "Bearer ${env:T}"}
URL = "https://x.example/mcp"


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("key", "entry", "written", "noted"),
    [
        ("claude-code", PROGRAM, {"type": "stdio", **PROGRAM}, []),
        ("claude-code", REMOTE, REMOTE, []),
        ("claude-code", {"url": URL}, {"type": "http", "url": URL}, []),
        ("claude-code", {"type": "ws", "url": "wss://x"}, {"type": "ws", "url": "wss://x"}, []),
        ("claude-code", {"url": URL, "x": 1}, {"type": "http", "url": URL, "x": 1}, []),
        (
            "claude-code",
            {"url": URL, "headersHelper": "h", "timeout": 500, "oauth": {"scopes": ["a", "b"], "xaa": True}},
            {
                "type": "http",
                "url": URL,
                "headersHelper": "h",
                "timeout": 500,
                "oauth": {"scopes": "a b", "xaa": True},
            },
            ["timeout"],
        ),
        (
            "claude-code",
            {"command": "x", "cwd": "/", "protocol": "legacy", "enabledTools": ["a"]},
            {"type": "stdio", "command": "x"},
            ["cwd", "protocol", "enabledTools"],
        ),
        (
            "claude-code",
            {"url": URL, "oauth": {"clientSecret": SECRET}},
            {"type": "http", "url": URL},
            ["oauth.clientSecret"],
        ),
        (
            "claude-desktop",
            PROGRAM,
            {"command": "npx", "args": ["-y", "srv"], "env": {"MODE": "fast"}},
            ["env.TOKEN"],
        ),
        ("claude-desktop", REMOTE, None, ["type"]),
        ("claude-desktop", {"command": "${X}"}, None, ["command"]),
        ("claude-desktop", {"command": "x", "args": ["a", f"{SECRET}${{X}}"]}, None, ["args[1]"]),
        ("cursor", PROGRAM, ENV_STYLE, []),
        ("cursor", REMOTE, {"url": URL, "headers": ENV_HEADERS}, []),
        ("cursor", {"type": "sse", "url": URL}, {"type": "sse", "url": URL}, []),
        ("cursor", {"type": "sse", "url": "https://x/sse"}, {"url": "https://x/sse"}, []),
        ("cursor", {"type": "http", "url": "https://x/sse"}, {"type": "http", "url": "https://x/sse"}, []),
        ("cursor", {"type": "ws", "url": "wss://x"}, None, ["type"]),
        (
            "cursor",
            {"url": URL, "oauth": {"clientId": "${C}", "clientSecret": SECRET, "callbackPort": 1}},
            {"url": URL, "auth": {"CLIENT_ID": "${env:C}", "CLIENT_SECRET": SECRET}},
            ["oauth.callbackPort"],
        ),
        ("cursor", {"command": "${X:-s3cr3t-value}"}, {"command": "${env:X}"}, ["command"]),
        ("vscode", PROGRAM, {"type": "stdio", **ENV_STYLE}, []),
        ("vscode", REMOTE, {"type": "http", "url": URL, "headers": ENV_HEADERS}, []),
        ("vscode", {"command": "x", "cwd": "${D}"}, {"type": "stdio", "command": "x", "cwd": "${env:D}"}, []),
        (
            "vscode",
            {
                "command": "x",
                "timeout": 5,
                "enabledTools": [],
                "headersHelper": SECRET,
                "protocol": "auto",
            },
            {"type": "stdio", "command": "x"},
            ["timeout", "enabledTools", "headersHelper"],
        ),
        (
            "codex",
            PROGRAM,
            {"command": "npx", "args": ["-y", "srv"], "env": {"MODE": "fast"}, "env_vars": ["TOKEN"]},
            ["env.TOKEN"],
        ),
        ("codex", REMOTE, {"url": URL, "bearer_token_env_var": "T"}, []),
        (
            "codex",
            {"url": URL, "headers": {"A": "${X}", "B": SECRET, "C": "a${X}", "D": "${X:-s3cr3t-value}"}},
            {"url": URL, "http_headers": {"B": SECRET}, "env_http_headers": {"A": "X", "D": "X"}},
            ["headers.A", "headers.C", "headers.D"],
        ),
        (
            "codex",
            {"command": "x", "env": {"A": "${B}", "C": "x${C}", "D": "${D:-s3cr3t-value}"}, "cwd": "${E}"},
            {"command": "x", "env_vars": ["D"]},
            ["env.A", "env.C", "env.D", "cwd"],
        ),
        (
            "codex",
            {"command": "x", "timeout": 1500, "enabledTools": ["a"], "disabledTools": ["b"]},
            {"command": "x", "tool_timeout_sec": 1.5, "enabled_tools": ["a"], "disabled_tools": ["b"]},
            [],
        ),
        (
            "codex",
            {
                "url": URL,
                "oauth": {"clientId": "c", "scopes": "a b", "clientSecret": SECRET},
                "timeout": 2000,
            },
            {"url": URL, "oauth": {"client_id": "c"}, "scopes": ["a", "b"], "tool_timeout_sec": 2},
            ["oauth.clientSecret"],
        ),
        ("codex", {"type": "sse", "url": URL}, None, ["type"]),
        ("codex", {"url": "https://${H}/"}, None, ["url"]),
        ("gemini", PROGRAM, PROGRAM, []),
        ("gemini", REMOTE, {"httpUrl": URL, "headers": {"Authorization": "Bearer ${T}"}}, []),
        ("gemini", {"type": "sse", "url": URL}, {"type": "sse", "url": URL}, []),
        (
            "gemini",
            {"command": "x", "timeout": 5, "enabledTools": ["a"], "disabledTools": ["b"], "cwd": "d"},
            {"command": "x", "cwd": "d", "timeout": 5, "includeTools": ["a"], "excludeTools": ["b"]},
            [],
        ),
        (
            "gemini",
            {"command": "x", "args": ["s3cr3t-value$word"]},
            {"command": "x", "args": ["s3cr3t-value$word"]},
            ["args[0]"],
        ),
        ("windsurf", PROGRAM, ENV_STYLE, []),
        ("windsurf", REMOTE, {"serverUrl": URL, "headers": ENV_HEADERS}, []),
        ("windsurf", {"type": "sse", "url": "https://x/sse"}, {"serverUrl": "https://x/sse"}, []),
        ("windsurf", {"type": "sse", "url": URL}, {"serverUrl": URL}, ["type"]),
        ("windsurf", {"command": "x", "disabledTools": ["a"]}, {"command": "x", "disabledTools": ["a"]}, []),
        ("windsurf", {"url": URL, "oauth": {"clientSecret": SECRET}}, {"serverUrl": URL}, ["oauth"]),
    ],
)
def test_an_entry_in_each_hosts_format(key: str, entry: dict[str, Any], written: Any, noted: list[str]):
    assert exported(key, entry) == (written, noted)


@pytest.mark.parametrize("key", list(FORMATS))
@pytest.mark.parametrize(
    "entry", [{}, [], None, {"command": 5}, {"type": "moon", "url": "https://x"}, {"url": "ftp://x"}]
)
def test_an_entry_that_cannot_be_exported_is_left_out_and_reported(key: str, entry: Any):
    result = write(key, None, {"box": entry, "fine": {"command": "ok"}}, source="f")
    assert result.written == ("fine",)
    assert {note.server for note in result.notes} == {"box"}


def test_a_name_codex_would_refuse_is_left_out():
    program = {"command": "npx"}
    result = write("codex", None, {"my server": program, "my-server_2": program}, source="f")
    assert result.written == ("my-server_2",)
    assert [note.server for note in result.notes] == ["my server"]


VSCODE_FILE = """{
\t// my servers
\t"inputs": [],
\t"servers": {
\t\t"one": { "command": "a" }, // the first
\t\t"two": {
\t\t\t"type": "stdio",
\t\t\t"command": "b", /* why */
\t\t\t"envFile": ".env"
\t\t},
\t},
}
"""


@pytest.mark.requirement("CFG-12")
def test_other_content_of_a_json_file_is_kept():
    result = write("vscode", VSCODE_FILE, {"three": {"command": "c"}}, source="f")
    assert result.written == ("three",)
    added = '\t\t"three": {\n\t\t\t"type": "stdio",\n\t\t\t"command": "c"\n\t\t}'
    assert added in result.text
    assert result.text.replace(f"{added},\n", "") == VSCODE_FILE
    assert jsonc.parse(result.text, comments=True)["servers"]["three"] == {"type": "stdio", "command": "c"}


@pytest.mark.requirement("CFG-12")
def test_an_existing_server_with_other_content_is_kept_unless_replace_is_given():
    ours = {"one": {"command": "a"}, "two": {"command": "changed"}}
    result = write("vscode", VSCODE_FILE, ours, source="f")
    assert (result.text, result.unchanged, result.conflicts) == (VSCODE_FILE, ("one",), ("two",))
    assert result.notes == ()
    result = write("vscode", VSCODE_FILE, ours, source="f", replace=["two"])
    assert (result.written, result.unchanged, result.conflicts) == (("two",), ("one",), ())
    assert jsonc.parse(result.text, comments=True)["servers"] == {
        "one": {"command": "a"},
        "two": {"type": "stdio", "command": "changed"},
    }
    assert "// my servers" in result.text
    assert [(note.server, note.field) for note in result.notes] == [("two", "envFile")]


def test_an_unreadable_existing_entry_counts_as_other_content():
    text = '{"mcpServers": {"a": {"command": ["x"]}}}'
    result = write("cursor", text, {"a": {"command": "x"}}, source="f")
    assert (result.text, result.conflicts) == (text, ("a",))
    result = write("cursor", text, {"a": {"command": "x"}}, source="f", replace=["a"])
    assert json.loads(result.text) == {"mcpServers": {"a": {"command": "x"}}}


def test_an_existing_disabled_server_is_reported():
    text = '{"mcpServers": {"a": {"command": "x", "disabled": true}}}'
    result = write("windsurf", text, {"a": {"command": "x"}}, source="f")
    assert (result.text, result.unchanged) == (text, ("a",))
    assert [note.server for note in result.notes] == ["a"]


CODEX_FILE = """\
# mine
model = "x" # the good one

[mcp_servers.one]  # first
command = "a"
args = ["-y"] # quietly

[mcp_servers.one.env]
K = "v"

[profiles.fast]
model = "y"

[mcp_servers.two]
url = "https://two.example/mcp"
startup_timeout_sec = 20
"""


@pytest.mark.requirement("CFG-12")
def test_other_content_of_a_toml_file_is_kept():
    result = write("codex", CODEX_FILE, {"three": {"command": "c", "env": {"A": "b"}}}, source="f")
    assert result.text == (
        CODEX_FILE + '\n[mcp_servers.three]\ncommand = "c"\n\n[mcp_servers.three.env]\nA = "b"\n'
    )


@pytest.mark.requirement("CFG-12")
def test_a_table_is_replaced_in_its_position():
    ours = {"one": {"command": "z", "args": ["-y"]}, "two": {"url": "https://two.example/new"}}
    result = write("codex", CODEX_FILE, ours, source="f", replace=["one", "two"])
    assert result.text == CODEX_FILE.replace('"a"', '"z"').replace(
        '\n[mcp_servers.one.env]\nK = "v"\n', ""
    ).replace("two.example/mcp", "two.example/new").replace("startup_timeout_sec = 20\n", "")
    assert [(note.server, note.field) for note in result.notes] == [("two", "startup_timeout_sec")]


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { one = { command = "a" } }\n',
        'mcp_servers.one.command = "a"\nmcp_servers.one.args = []\n[x]\ny = 1\n',
        '[mcp_servers]\none = { command = "a", args = [] } # inline\n[x]\ny = nan\n',
        '[mcp_servers.one]\ncommand = "a"\r\n[x]\r\ny = 1',
        '[mcp_servers.one.env]\nA = "b"\n[x]\ny = 1\n[mcp_servers.one]\ncommand = "a"\n',
        '\ufeff[mcp_servers.one]\ncommand = "a"\n',
        "# nothing yet",
    ],
)
def test_tables_may_be_written_in_every_toml_form(text: str):
    servers = {"one": {"command": "z", "env": {"Q": '"\n\u2028'}}, "two": {"command": "b"}}
    result = write("codex", text, servers, source="f", replace=["one"])
    assert result.written == ("one", "two")
    assert read("codex", result.text, source="f").servers == servers
    assert "x" not in tomllib.loads(text.removeprefix("\ufeff")) or "x" in tomllib.loads(result.text)
    assert result.text.startswith("\ufeff") == text.startswith("\ufeff")
    assert ("\r\n" in result.text) == ("\r\n" in text)


@pytest.mark.parametrize("key", [key for key, row in FORMATS.items() if not row.is_toml])
@pytest.mark.parametrize("text", [None, "", "{}", "\n", '{"mcpServers": null, "servers": null}', '{"a": 1}'])
def test_a_file_without_servers_gets_its_block(key: str, text: str | None):
    result = write(key, text, {"a": {"command": "x"}}, source="f")
    assert read(key, result.text, source="f").servers["a"]["command"] == "x"
    assert ('"a": 1' in result.text) == (text is not None and '"a": 1' in text)
    assert write(key, result.text, {"a": {"command": "x"}}, source="f").text == result.text


@pytest.mark.parametrize("key", list(FORMATS))
def test_an_export_without_changes_does_not_write_the_file(key: str):
    text = CODEX_FILE if FORMATS[key].is_toml else '{"b":[1,2 ] }'
    assert write(key, text, {}, source="f").text == text


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("key", list(FORMATS))
def test_a_broken_file_is_not_written_into(key: str):
    with pytest.raises(ConfigFileError) as caught:
        write(key, '{"mcpServers": {"a": "s3cr3t-value"', {"a": PROGRAM}, source="f")
    assert caught.value.line == 1
    assert SECRET not in f"{caught.value} {caught.value.hint}"


def test_a_lone_surrogate_is_written_in_json_and_left_out_of_toml():
    entry = {"command": "x\ud800"}
    result = write("cursor", None, {"a": entry}, source="f")
    result.text.encode()
    assert read("cursor", result.text, source="f").servers == {"a": entry}
    result = write("codex", None, {"a": entry}, source="f")
    assert (result.written, len(result.notes)) == ((), 1)


def test_notes_of_an_export_contain_no_value_of_an_entry():
    entry = {"command": "x", "env": {"A": "${B:-s3cr3t-value}"}, "odd": SECRET, "headersHelper": SECRET}
    for key in FORMATS:
        result: Exported = write(key, None, {"a": entry}, source="f")
        assert SECRET not in repr(result.notes)
