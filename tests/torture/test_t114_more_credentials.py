"""T114: Credentials in further fields of an entry that its server returns."""

from typing import Any

import pytest

from dragoman import Host
from dragoman.config.expand import expand_entry
from dragoman.config.masking import secrets_of
from dragoman.config.model import parse_entry
from dragoman.content.redact import Redactor
from tests.servers import stdio_server

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

PASSWORD = "Zq9-hunter2-x8Kk"
VARIABLES = {"GITHUB_TOKEN": PASSWORD}


def header(name: str, value: str) -> dict[str, Any]:
    return {"url": "https://h.example/", "headers": {name: value}}


def program(*args: str, **env: str) -> dict[str, Any]:
    return {"command": "server", "args": [*args], "env": env}


ENTRIES: dict[str, dict[str, Any]] = {
    "an unusual scheme": header("Authorization", f"Bot {PASSWORD}"),
    "a cookie among others": header("Cookie", f"theme=dark; session={PASSWORD}; a=b"),
    "a quoted parameter": header("Authorization", f'Digest username="me", response="{PASSWORD}", nc=1'),
    "a login as a header": header("X-Auth", f"me:{PASSWORD}"),
    "a secret variable behind a plain option": program("--gh", "${GITHUB_TOKEN}"),
    "a secret variable alone": program("${GITHUB_TOKEN}"),
    "the default of a secret variable": program(f"${{API_KEY:-{PASSWORD}}}"),
    "a secret variable under a plain name": program(GH="${GITHUB_TOKEN}"),
    "a secret variable in a path": {"url": "https://h.example/${GITHUB_TOKEN}/mcp"},
    "a quoted setting": program(DSN=f"host=h user=me password='{PASSWORD}' dbname=x"),
    "lines of settings": program(CONFIG=f"[db]\nuser = me\npassword = {PASSWORD}\n"),
    "lines of YAML": program(CONFIG=f"db:\n  user: me\n  password: {PASSWORD}\n"),
    "a login under a secret name": program(BASIC_AUTH=f"me:{PASSWORD}"),
    "an assignment in a text for the shell": program("-c", f"API_KEY={PASSWORD} exec server"),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_t114_a_credential_is_redacted_from_every_field(entry: dict[str, Any]):
    config = parse_entry("s", expand_entry("s", entry, VARIABLES))

    said = Redactor(secrets_of(config, entry, VARIABLES)).text(f"I was given {PASSWORD} by a user")

    assert said == "I was given [secret] by a user"


def test_t114_values_of_other_headers_are_redacted_only_as_a_complete_value():
    entry = header("Accept-Profile", "application/vnd.example+json; charset=utf-8-strict")
    config = parse_entry("s", entry)

    said = "It is application/vnd.example+json, in utf-8-strict."

    assert Redactor(secrets_of(config, entry, {})).text(said) == said


async def test_t114_a_host_redacts_the_value_of_a_secret_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_TOKEN", PASSWORD)
    entry = stdio_server("reveals_environment.py")
    entry = {**entry, "args": [*entry["args"], "${GITHUB_TOKEN}"]}
    async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        said = (await host.call("mcp__s__result", raw=True)).text

    assert PASSWORD not in said
    assert "[secret]" in said
