"""T164: a secret in one of several settings, or in an argument that follows its name, is redacted."""

import json
from pathlib import Path

import pytest

from dragoman.config.masking import masked_entry, masked_text, secrets_of
from dragoman.config.model import parse_entry
from tests.e2e.forked import run
from tests.torture import projects

SECRET = "hunter2hunter"
ARGUMENTS: list[tuple[list[str], list[str]]] = [
    (["--set", f"a=b,db.password={SECRET}"], ["--set", "a=b,db.password=•••"]),
    ([f"--set=a=b,db.password={SECRET},c=d"], ["--set=a=b,db.password=•••"]),
    (["--set", f"db.password={SECRET},c=d"], ["--set", "db.password=•••"]),
    (["--set", f"a=b,c[0].token={SECRET}"], ["--set", "a=b,c[0].token=•••"]),
    (["--set", f'a=b,"token"={SECRET}'], ["--set", 'a=b,"token"=•••']),
    (["--set", f"a=b, token = {SECRET}"], ["--set", "a=b, token = •••"]),
    (["--set", f"{{token={SECRET}}}"], ["--set", "{token=•••}"]),
    (["-e", f"A=b|TOKEN={SECRET}"], ["-e", "A=b|TOKEN=•••"]),
    (["--set", "db.password", SECRET], ["--set", "db.password", "•••"]),
    (["--env", "API_TOKEN", SECRET, "x"], ["--env", "API_TOKEN", "•••", "x"]),
    (["--header", "X-Tenant", SECRET], ["--header", "•••", "•••"]),
    (["--header", "Authorization", f"Bearer {SECRET}"], ["--header", "•••", "•••"]),
    (["--header=X-Tenant", SECRET], ["--header=•••", "•••"]),
    (["-H", "Authorization", SECRET], ["-H", "•••", "•••"]),
    (["--add-header", f"X-Tenant: {SECRET}"], ["--add-header", "X-Tenant: •••"]),
    (["--http-header", "X-Tenant", SECRET], ["--http-header", "•••", "•••"]),
    (["--extra-headers", f"X-Tenant={SECRET}"], ["--extra-headers", "•••"]),
]


@pytest.mark.parametrize(("words", "shown"), ARGUMENTS, ids=str)
def test_t164_a_secret_is_redacted_and_registered(words: list[str], shown: list[str]):
    entry = {"command": "server", "args": words}
    assert masked_entry(entry)["args"] == shown
    assert SECRET not in masked_text(" ".join(f"'{word}'" for word in words))
    if not words[-1].startswith(("X-Tenant=", "Bearer")):
        assert SECRET in secrets_of(parse_entry("box", entry))


ORDINARY = [
    ["npx", "-y", "token-server", "/srv/data"],
    ["--header", "X-A: ${A}", "--verbose"],
    ["-H", "${HOST}", "data"],
    ["--set", "a=b,c=d", "e"],
    ["--set", "a=b,db.password=${PASSWORD}"],
    ["--config", "settings.json", "run"],
]


@pytest.mark.parametrize("words", ORDINARY, ids=str)
def test_t164_ordinary_words_and_variables_are_not_redacted(words: list[str]):
    assert masked_entry({"command": "server", "args": words})["args"] == words


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", [["mcp", "get", "box"], ["config", "explain", "box"], ["mcp", "list"]])
def test_t164_no_command_prints_the_secret(home: Path, command: list[str], as_json: bool):
    words = [word for arguments, _ in ARGUMENTS for word in arguments]
    projects.user(home, projects.servers(box={"command": "/no/such/server", "args": words}))
    done = run(*command, *(["--json"] if as_json else []))
    assert "box" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    if as_json:
        json.loads(done.stdout)
