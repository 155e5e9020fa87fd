"""Servers that are switched off stay off, whichever way they go; and what a file says beside its entries."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import jsonc
from dragoman.config.interchange.formats import FORMATS, read, write

pytestmark = pytest.mark.requirement("CFG-12")

SERVERS: dict[str, Any] = {"on": {"command": "a"}, "off": {"command": "b"}}
WITH_SWITCH = ("codex", "gemini", "windsurf")


@pytest.mark.parametrize("key", WITH_SWITCH)
def test_a_disabled_server_is_disabled_after_export_and_import(key: str):
    written = write(key, None, SERVERS, source="f", disabled=["off"])
    assert written.written == ("on", "off")
    back = read(key, written.text, source="f")
    assert back.disabled == ("off",)
    assert back.servers == SERVERS
    again = write(key, written.text, back.servers, source="f", disabled=back.disabled)
    assert (again.text, again.written) == (written.text, ())


def test_each_host_gets_its_own_field_for_disabled():
    texts = {key: write(key, None, SERVERS, source="f", disabled=["off"]).text for key in WITH_SWITCH}
    assert tomllib.loads(texts["codex"])["mcp_servers"]["off"] == {"command": "b", "enabled": False}
    assert json.loads(texts["windsurf"])["mcpServers"]["off"] == {"command": "b", "disabled": True}
    gemini = json.loads(texts["gemini"])
    assert gemini["mcpServers"]["off"] == {"command": "b"}
    assert gemini["mcp"] == {"excluded": ["off"]}


@pytest.mark.parametrize("key", sorted(set(FORMATS) - set(WITH_SWITCH)))
def test_a_host_without_a_disabled_field_does_not_get_a_disabled_server(key: str):
    written = write(key, None, SERVERS, source="f", disabled=["off"])
    assert written.written == ("on",)
    (note,) = written.notes
    said = f"it is disabled here, and {FORMATS[key].title} has no such field; the server is left out"
    assert (note.server, note.text) == ("off", said)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("codex", '[mcp_servers.off]\ncommand = "old"\nenabled = false\n'),
        ("windsurf", '{"mcpServers": {"off": {"command": "old", "disabled": true}}}'),
        ("gemini", '{"mcp": {"excluded": ["off"]}, "mcpServers": {"off": {"command": "old"}}}'),
        ("gemini", '{"mcp": {"allowed": ["on"]}, "mcpServers": {"off": {"command": "old"}}}'),
        ("gemini", '{"mcp": {"allowed": ["on"]}}'),
    ],
)
def test_a_server_disabled_in_the_target_is_not_enabled_by_an_export(key: str, text: str):
    written = write(key, text, SERVERS, source="f", replace=["off"])
    assert written.written == ("on", "off")
    back = read(key, written.text, source="f")
    assert (back.servers, back.disabled) == (SERVERS, ("off",))
    said = f"it is disabled in {FORMATS[key].title}, and stays disabled"
    assert [note.text for note in written.notes if note.server == "off"] == [said]


def test_other_names_in_geminis_lists_are_kept():
    text = '{"mcp": {"excluded": ["x"], "other": 1}, // why\n "mcpServers": {}}'
    written = write("gemini", text, SERVERS, source="f", disabled=["off"]).text
    assert "// why" in written
    assert read("gemini", written, source="f").disabled == ("off",)
    assert jsonc.parse(written, comments=True)["mcp"] == {"excluded": ["x", "off"], "other": 1}


def test_codex_needs_no_variable_that_it_passes_on():
    text = """
[mcp_servers.local]
command = "x"
env_vars = ["A"]
[mcp_servers.remote]
url = "https://x.example/mcp"
env_http_headers = {"X-Key" = "B"}
bearer_token_env_var = "C"
"""
    found = read("codex", text, source="f")
    assert found.servers["local"]["env"] == {"A": "${A:-}"}
    assert found.servers["remote"]["headers"] == {"X-Key": "${B:-}", "Authorization": "Bearer ${C}"}
    back = write("codex", None, found.servers, source="f")
    assert tomllib.loads(back.text) == tomllib.loads(text)
    assert back.notes == ()


@pytest.mark.parametrize("nested", [False, True])
def test_defaults_of_vs_codes_inputs_are_kept(nested: bool):
    inputs = [
        {"id": "region", "type": "promptString", "default": "eu-1"},
        {"id": "key", "type": "promptString", "password": True},
        {"id": "odd", "type": "promptString", "default": "a}b"},
        "nonsense",
    ]
    env = {name.upper(): f"${{input:{name}}}" for name in ("region", "key", "odd")}
    document: Any = {"inputs": inputs, "servers": {"it": {"command": "x", "env": env}}}
    found = read("vscode", json.dumps({"mcp": document} if nested else document), source="f")
    assert found.servers["it"]["env"] == {
        "REGION": "${INPUT_REGION:-eu-1}",
        "KEY": "${INPUT_KEY}",
        "ODD": "${INPUT_ODD}",
    }
    assert "eu-1" not in repr(found.notes)


def test_servers_that_cannot_be_used_are_counted():
    text = json.dumps({"mcpServers": {"good": {"command": "x"}, "bad": 5}})
    found = read("cursor", text, source="f")
    assert (list(found.servers), found.count) == (["good"], 2)


def test_servers_of_one_project_are_known():
    mine = {"mcpServers": {"here": {"command": "p"}}}
    text = json.dumps({"mcpServers": {"all": {"command": "q"}}, "projects": {"/work": mine}})
    found = read("claude-code", text, source="f", project=Path("/work"))
    assert (list(found.servers), found.of_project) == (["all", "here"], ("here",))
