"""T504: a secret behind a colon is redacted whatever form its name has: a setting with dots, a header in
the value of a setting or variable, an option of Windows."""

import pytest

from dragoman.config.masking import masked_entry, masked_text, secrets_of
from dragoman.config.model import parse_entry

pytestmark = pytest.mark.requirement("AUT-11")

SECRET = "hunter2hunter"
ARGUMENTS: list[tuple[list[str], list[str]]] = [
    (["--set", f"db.password:{SECRET}"], ["--set", "db.password:•••"]),
    ([f"spring.datasource.password: {SECRET}"], ["spring.datasource.password: •••"]),
    ([f"--set=service.api_key:{SECRET}"], ["--set=service.api_key:•••"]),
    (
        ["-c", f"http.extraHeader=Authorization: Basic {SECRET}", "fetch"],
        ["-c", "http.extraHeader=Authorization: •••", "fetch"],
    ),
    ([f"--config=http.extraheader=X-Api-Key: {SECRET}"], ["--config=http.extraheader=X-Api-Key: •••"]),
    ([f"/password:{SECRET}"], ["/password:•••"]),
    (["--creds", f"me:{SECRET}"], ["--creds", "me:•••"]),
]


@pytest.mark.parametrize(("words", "shown"), ARGUMENTS, ids=str)
def test_t504_the_secret_is_redacted_and_registered(words: list[str], shown: list[str]):
    entry = {"command": "server", "args": words}
    assert masked_entry(entry)["args"] == shown
    assert SECRET not in masked_text(" ".join(f"'{word}'" for word in words))
    assert any(SECRET in secret for secret in secrets_of(parse_entry("box", entry)))


ENVIRONMENTS = [
    {"GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {SECRET}"},
    {"HEADERS": f"Authorization=Bearer {SECRET},X=1"},
    {"CURL_OPTIONS": f"-sS -H 'Authorization: token {SECRET}'"},
    {"OPTIONS": f'--header "X-Api-Key: {SECRET}"'},
]


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=str)
def test_t504_the_scheme_of_a_header_is_not_part_of_its_secret(env: dict[str, str]):
    assert SECRET in secrets_of(parse_entry("box", {"command": "server", "env": env}))


ORDINARY = [
    ["token.example.com:8080"],
    ["key-server.example.com:443", "x"],
    ["-v", "/secrets:/secrets:ro"],
    ["db.password:${PASSWORD}"],
    ["log.format=time: level"],
    ["127.0.0.1:8080"],
]


@pytest.mark.parametrize("words", ORDINARY, ids=str)
def test_t504_hosts_folders_and_variables_are_not_redacted(words: list[str]):
    assert masked_entry({"command": "server", "args": words})["args"] == words
