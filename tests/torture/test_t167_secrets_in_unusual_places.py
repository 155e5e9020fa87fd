"""T167: secrets in pairs of words, joined to an option, or in place of a name are redacted and
registered."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.masking import masked_entry, masked_text, secrets_of
from dragoman.config.model import entry_warnings, parse_entry
from dragoman.errors import ConfigError
from tests.e2e.forked import run
from tests.torture import projects

SECRET = "hunter2hunter"
KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
ARGUMENTS: list[tuple[list[str], list[str]]] = [
    (["--user", "me", SECRET], ["--user", "me", "•••"]),
    (["--login", "me@example.com", SECRET], ["--login", "me@example.com", "•••"]),
    (["--basic", "me", SECRET], ["--basic", "me", "•••"]),
    (["--credentials", "me", SECRET], ["--credentials", "•••", "•••"]),
    (["--credential", f"me:{SECRET}"], ["--credential", "•••"]),
    (["--kv", "password", SECRET], ["--kv", "password", "•••"]),
    (["--arg", "apikey", SECRET, "x"], ["--arg", "apikey", "•••", "x"]),
    (["-o", "db.password", SECRET], ["-o", "db.password", "•••"]),
    (["-D", "API_TOKEN", SECRET], ["-D", "API_TOKEN", "•••"]),
    (["config", "set", "token", SECRET], ["config", "set", "token", "•••"]),
    (["--set", f"token={SECRET}"], ["--set", "token=•••"]),
    (["--kv", f"password={SECRET}"], ["--kv", "password=•••"]),
    ([f"-p{SECRET}", "db"], ["-p•••", "db"]),
    (["-u", "me", f"-p{SECRET}"], ["-u", "me", "-p•••"]),
]
ORDINARY = [
    ["-p8080"],
    ["-p8080:80"],
    ["-p127.0.0.1:8080:80"],
    ["-p:8080"],
    ["-p", "8080"],
    ["-p", "project"],
    ["-p/srv"],
    ["-pv"],
    ["-pxf", "archive"],
    ["-print"],
    ["-prod"],
    ["-profile", "x"],
    ["-python3"],
    ["-p${PASSWORD}"],
    ["--user", "1000", "image"],
    ["--user", "me", "--verbose"],
    ["--user", "me", "/srv/data"],
    ["--user", "me", "https://a.example/"],
    ["--user", "me", "${PASSWORD}"],
    ["-u", "server.py", "data"],
    ["-y", "token-server", "data"],
    ["--yes", "mcp-secrets-server", "data"],
    ["--kv", "name", "data"],
]


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(("words", "shown"), ARGUMENTS, ids=str)
def test_t167_a_secret_is_redacted_and_registered(words: list[str], shown: list[str]):
    entry = {"command": "server", "args": words}
    assert masked_entry(entry)["args"] == shown
    assert SECRET not in masked_text(" ".join(["server", *words]))
    assert SECRET in secrets_of(parse_entry("box", entry))


@pytest.mark.parametrize("program", ["sshpass", "/usr/bin/sshpass"])
def test_t167_the_password_option_of_a_known_program_is_redacted(program: str):
    entry = {"command": program, "args": ["-p", SECRET, "ssh", "host"]}
    assert masked_entry(entry)["args"] == ["-p", "•••", "ssh", "host"]
    assert masked_text(f"{program} -p {SECRET} ssh host") == f"{program} -p ••• ssh host"
    assert SECRET in secrets_of(parse_entry("box", entry))


@pytest.mark.parametrize("words", ORDINARY, ids=str)
def test_t167_ordinary_words_and_variables_are_not_redacted(words: list[str]):
    assert masked_entry({"command": "server", "args": words})["args"] == words


def test_t167_a_secret_in_place_of_a_name_is_redacted():
    entry = {
        "command": "server",
        "env": {KEY: "1", f"{KEY}x": "2", f"A={SECRET}": "3", "PLAIN_NAME": "4"},
        "headers": {KEY: "1", f"Authorization: Bearer {SECRET}": "2", "X-Plain": "3"},
        KEY: 5,
    }
    assert masked_entry(entry) == {
        "command": "server",
        "env": {"•••": "•••", "••• (2)": "•••", "A=•••": "•••", "PLAIN_NAME": "•••"},
        "headers": {"•••": "•••", "Authorization: •••": "•••", "X-Plain": "•••"},
        "•••": 5,
    }
    assert KEY in secrets_of(parse_entry("box", {"command": "server", "env": {KEY: "1"}}))


WRONG: list[dict[str, Any]] = [
    {"command": "x", "env": [f"K={SECRET}"]},
    {"command": "x", "env": f"K={SECRET}"},
    {"command": "x", "env": {"K": [SECRET]}},
    {"command": "x", "env": {"K": {"a": SECRET}}},
    {"command": "x", "env": {f"K={SECRET}": "1"}},
    {"command": "x", "env": {"K": f"\0{SECRET}"}},
    {"command": "x", "env": {KEY: "${NOT_SET_ANYWHERE}"}},
    {"command": "x", "env": {KEY: [1]}},
    {"command": "x", "args": f"--token {SECRET}"},
    {"command": "x", "args": [{"token": SECRET}]},
    {"command": ["x", SECRET]},
    {"command": "x", "timeout": SECRET},
    {"command": "x", "cwd": [SECRET]},
    {"command": "x", KEY: "1"},
    {"command": "x", "type": KEY},
    {"command": "x", "protocol": KEY},
    {"url": "https://a.example/", "headers": [f"Authorization: {SECRET}"]},
    {"url": "https://a.example/", "headers": f"Authorization: {SECRET}"},
    {"url": "https://a.example/", "headers": {f"Authorization: {SECRET}": "1"}},
    {"url": "https://a.example/", "headers": {"A": f"\n{SECRET}"}},
    {"url": "https://a.example/", "headers": {KEY: 5}},
    {"url": "https://a.example/", "headersHelper": [SECRET]},
    {"url": "https://a.example/", "oauth": SECRET},
    {"url": "https://a.example/", "oauth": {"clientSecret": [SECRET], KEY: 1}},
    {"url": "https://a.example/", "tls": SECRET},
    {"url": SECRET},
    {"url": f"https://me:{SECRET}@[x"},
]


@pytest.mark.parametrize("entry", WRONG, ids=str)
def test_t167_an_error_about_a_wrong_field_does_not_contain_its_value(entry: dict[str, Any]):
    said = list(entry_warnings(entry))
    try:
        parse_entry("box", entry)
    except ConfigError as error:
        said += [str(error), error.hint or ""]
    assert [text for text in said if SECRET in text or KEY in text] == []


PLAIN = ("command", "cwd", "timeout", "url", "headersHelper")
"""Fields in which an ordinary word is no secret."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["mcp", "get", "box0"], ["config", "explain"], ["mcp", "list", "--no-health"]]
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_t167_no_command_prints_the_secret(home: Path, words: list[str], as_json: bool):
    wrong = [entry for entry in WRONG if not any(SECRET in str(entry.get(field)) for field in PLAIN)]
    entries = [*wrong, *({"command": "/no/such/x", "args": words} for words, _ in ARGUMENTS)]
    named = {f"box{number}": entry for number, entry in enumerate(entries)}
    file = projects.user(home, {KEY: 1, "permissions": {KEY: []}, **projects.servers(**named)})
    done = run(*words, *(["--json"] if as_json else []))
    assert "box0" in done.stdout
    assert str(file) in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if SECRET in line or KEY in line] == []
    if as_json:
        json.loads(done.stdout)
