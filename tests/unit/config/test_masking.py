"""Entries for showing: nothing that may be secret is seen, and what is ordinary can still be read."""

import json
import string
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.masking import COVER, masked_entry, masked_url, masked_value, masked_words, secrets_of
from dragoman.config.model import OAuthConfig, ServerConfig
from tests.cpu_time import shortest

CANARY = "Zq7Canary"
"""Too short to look like a secret by itself: it has to be covered because of where it stands."""
LONG_CANARY = "sk-Zq7Canary0123456789abcdefABCDEF"


def shown(entry: dict[str, Any]) -> str:
    return json.dumps(masked_entry(entry), ensure_ascii=False)


# --- nothing leaks ---

AROUND = st.text(alphabet=string.ascii_letters + string.digits + " .:/-_+", max_size=8)
SECRETS = st.builds(lambda before, after: before + CANARY + after, AROUND, AROUND)
NAMES = st.text(alphabet=string.ascii_letters + "_-", min_size=1, max_size=8).filter(
    lambda n: n not in CANARY
)
SECRET_OPTIONS = st.sampled_from(
    ["--token", "--api-key", "--password", "--apikey", "-auth", "--client-secret", "--ACCESS_TOKEN", "--key"]
)


@st.composite
def entries_with_a_canary(draw: st.DrawFn) -> dict[str, Any]:
    secret = draw(SECRETS)
    option = draw(SECRET_OPTIONS)
    plain = draw(st.lists(st.sampled_from(["-y", "run", "--verbose", "/srv"]), max_size=2))
    places: list[dict[str, Any]] = [
        {"command": "x", "env": {draw(NAMES): secret}},
        {"command": "x", "env": {draw(NAMES): f"${{VAR}}{secret}"}},
        {"command": "x", "env": {draw(NAMES): f"${{VAR:-{secret}}}"}},
        {"url": "https://x.example.com", "headers": {draw(NAMES): secret}},
        {"url": "https://x.example.com", "headers": {"Authorization": f"Bearer {secret}"}},
        {"url": f"https://x.example.com/mcp?{draw(NAMES)}={CANARY}"},
        {"url": f"https://x.example.com/mcp?a=b&{draw(NAMES)}={CANARY}&c=d"},
        {"url": f"https://me:{CANARY}@x.example.com/mcp"},
        {"command": "x", "args": [*plain, option, secret]},
        {"command": "x", "args": [*plain, f"{option}={secret}", *plain]},
        {"command": "x", "args": [*plain, f"https://x.example.com/?{draw(NAMES)}={CANARY}"]},
        {"url": "https://x.example.com", "oauth": {"clientId": "id", "clientSecret": secret}},
        {"command": "x", "somethingNew": {"apiToken": secret}},
        {"command": "x", "somethingNew": [{"deep": {"password": secret}}]},
        {"serverUrl": f"https://x.example.com/mcp?{draw(NAMES)}={CANARY}"},
    ]
    return draw(st.sampled_from(places))


@given(entries_with_a_canary())
def test_a_literal_secret_is_never_shown(entry: dict[str, Any]):
    assert CANARY not in shown(entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": LONG_CANARY},
        {"command": "x", "args": [LONG_CANARY]},
        {"command": "x", "args": [f"--x={LONG_CANARY}"]},
        {"command": "x", "args": ["ghp_Zq7Canary0123456789abcdef"]},
        {"url": f"https://x.example.com/mcp/{LONG_CANARY}/sse"},
        {"command": "x", "cwd": f"/srv/{LONG_CANARY}"},
        {"command": "x", "somethingNew": LONG_CANARY},
        {"command": "x", "somethingNew": [[LONG_CANARY]]},
        {"command": "x", "headersHelper": f"print {LONG_CANARY}"},
    ],
    ids=str,
)
def test_a_value_that_looks_like_a_secret_is_masked_in_every_field(entry: dict[str, Any]):
    assert "Zq7Canary" not in shown(entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "args": ["--header", f"Authorization: Bearer {CANARY}"]},
        {"command": "x", "args": ["-H", f"X-Api-Key: {CANARY}"]},
        {"command": "x", "args": [f"Authorization:{CANARY}"]},
    ],
    ids=str,
)
def test_a_header_among_the_arguments_is_masked(entry: dict[str, Any]):
    """The usual way to hand a token to a bridge such as mcp-remote."""
    assert CANARY not in shown(entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "args": [f"${{MODE}}{LONG_CANARY}"]},
        {"command": "x", "args": [f"${{API_KEY:-{LONG_CANARY}}}"]},
        {"command": f"${{API_KEY:-{LONG_CANARY}}}"},
        {"command": "x", "args": [f"${{API_KEY:-{CANARY}}}"]},
        {"url": f"https://x.example.com/${{API_KEY:-{CANARY}}}"},
    ],
    ids=str,
)
def test_a_literal_beside_a_variable_or_as_its_default_is_masked_too(entry: dict[str, Any]):
    assert CANARY not in shown(entry)


@pytest.mark.parametrize(
    "address",
    [
        f"https://me:{CANARY}@auth.example.com/?a=b",
        f"https://x.example.com/mcp?{CANARY}",
        f"https://x.example.com/mcp#token={CANARY}",
        f"https://me:p@{CANARY}@x.example.com/",
        f"postgres://me:{CANARY}@keys.example.com/db?sslmode=require",
    ],
)
@pytest.mark.parametrize("field", ["url", "serverUrl", "args"])
def test_no_unusual_url_shows_its_secrets(address: str, field: str):
    entry: dict[str, Any] = {field: [address]} if field == "args" else {field: address}
    assert CANARY not in shown(entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://x.example.com", "headers": f"Authorization: Bearer {CANARY}"},
        {"url": "https://x.example.com", "headers": [f"X: {CANARY}"]},
        {"command": "x", "env": [f"A={CANARY}"]},
        {"command": "x", "env": f"A={CANARY}"},
        {"command": "x", "env": {"A": [CANARY]}},
        {"command": "x", "args": f"--token {CANARY}"},
        {"command": ["x", "--token", CANARY]},
        {"url": "https://x.example.com", "oauth": {"clientSecret": [CANARY]}},
        {"url": "https://x.example.com", "oauth": {"clientSecret": 73737373}},
    ],
    ids=str,
)
def test_an_entry_of_the_wrong_type_shows_no_secrets(entry: dict[str, Any]):
    """Entries that cannot be used are shown as well."""
    assert CANARY not in shown(entry)
    assert "73737373" not in shown(entry)


# --- what is ordinary stays readable ---


@pytest.mark.parametrize(
    "value",
    ["${TOKEN}", "Bearer ${TOKEN}", "${A}${B}", "Basic ${USER_AND_PASSWORD}", "", "${env:TOKEN}"],
)
def test_variables_stay_visible(value: str):
    assert masked_value(value) == value
    assert masked_entry({"env": {"A": value}}) == {"env": {"A": value}}


def test_only_the_literal_default_of_a_variable_is_masked():
    assert masked_value("${TOKEN:-plain}") == f"${{TOKEN:-{COVER}}}"


@pytest.mark.parametrize(
    "words",
    [
        ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/My Documents"],
        ["run", "--rm", "-i", "-v", "/srv:/srv:ro", "ghcr.io/example/server:1.2.3"],
        ["--port=8080", "--verbose", "--mode=fast"],
        ["${HOME}/bin/server.py", "--root", "${HOME}"],
        ["--from", "git+https://github.com/example/tool", "tool"],
        ["-c", "print('hello')"],
        ["https://x.example.com/mcp"],
        ["", " "],
        ["/opt/python311/lib/servers/filesystem/main.py"],
        ["--path", "/srv/x", "--pattern=*.py", "--signal", "TERM", "--dispatch", "all", "--compat=1"],
        ["curl", "--basic", "https://x.example.com/mcp"],
        ['{"mode":"fast","url":"https://x.example.com/mcp"}'],
        ["/home/runner1/work/project/project/servers/tool"],
    ],
    ids=str,
)
def test_ordinary_arguments_are_not_masked(words: list[str]):
    assert masked_words(words) == words


@pytest.mark.parametrize(
    "url",
    [
        "https://x.example.com/mcp",
        "http://localhost:8080/sse",
        "https://${HOST}/mcp",
        "https://x.example.com/mcp?a=${A}",
        "wss://x.example.com",
        "https://a-rather-long-service-name-in-production.example.com/mcp",
    ],
)
def test_an_ordinary_url_is_not_masked(url: str):
    assert masked_url(url) == url


def test_names_of_variables_and_headers_are_shown():
    entry = {"env": {"TOKEN": "x"}, "headers": {"Authorization": "x"}}
    assert masked_entry(entry) == {"env": {"TOKEN": COVER}, "headers": {"Authorization": COVER}}


def test_values_that_are_not_strings_are_unchanged():
    entry = {"timeout": 5, "disabled": True, "nothing": None, "enabledTools": ["a", "b"]}
    assert masked_entry(entry) == entry


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["command", "args", "env", "url", "headers", "cwd", "oauth", "type", "other"])


@given(st.dictionaries(FIELDS, PLAIN))
def test_any_entry_can_be_masked_and_masking_is_idempotent(entry: dict[str, Any]):
    once = masked_entry(entry)
    assert once.keys() == entry.keys()
    json.dumps(once)
    assert masked_entry(once) == once


# --- hostile text ---

HOSTILE = [
    "${",
    "${A:-",
    " ",
    "=",
    "//",
    "a@",
    "sk-",
    "A1",
    "?&=",
    "Bearer ",
    "://",
    '"key":"',
    '"a',
    "{key:",
    "?key=",
    "-a=",
    "-H",
    "'\\\"",
    "\\",
    "/x:y@",
]


def seconds(text: str) -> float:
    begin = time.process_time()
    masked_value(text + "x")
    masked_url(text + "x")
    masked_words(["--token", text + "x", text + "x", "{" + text, "a " + text + " -x"])
    return time.process_time() - begin


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_masked_in_linear_time(piece: str):
    """A project's file is shown before it is approved, so it must not be able to hold the program up."""
    small, large = piece * 1_500, piece * 6_000
    bound = max(0.1, 9 * shortest(lambda: seconds(small)))
    assert shortest(lambda: seconds(large), below=bound) < bound


KEY = "ghp_0a1b2c3d4e5f6g7h8i9j"


@pytest.mark.parametrize(
    ("entry", "secrets"),
    [
        pytest.param({"args": [f"--api-key={KEY}"]}, {KEY}, id="an option"),
        pytest.param({"args": ["--token", "plain words"]}, {"plain words"}, id="an option's next word"),
        pytest.param({"args": ["-H", "X-Any: some value"]}, {"some value"}, id="a header"),
        pytest.param({"args": ["Authorization: Bearer abcdefgh1"]}, {"abcdefgh1"}, id="a header by its name"),
        pytest.param({"args": ["DB=x;PASSWORD=hunter22"]}, {"hunter22"}, id="settings"),
        pytest.param({"args": ["postgres://me:hunter22@host/db"]}, {"hunter22"}, id="a login"),
        pytest.param({"args": ["--db=pg://me:a%40b-c-d@host/db"]}, {"a%40b-c-d", "a@b-c-d"}, id="quoted"),
        pytest.param({"args": ["me:hunter22@host"]}, {"hunter22"}, id="a login without a scheme"),
        pytest.param({"args": [f"https://h/x/{KEY}/y?q=abc"]}, {KEY, "abc"}, id="a URL"),
        pytest.param({"args": ["run", "/home/me/project", "--verbose"]}, set[str](), id="ordinary words"),
        pytest.param({"url": f"https://h/s/{KEY}/mcp"}, {KEY}, id="a key in the path"),
        pytest.param({"url": "https://h/mcp?k=value1#frag"}, {"value1", "frag"}, id="query and fragment"),
        pytest.param({"url": "https://tok3n@h/mcp"}, {"tok3n"}, id="a user alone"),
        pytest.param({"args": ["-u", "me:hunter22"]}, {"hunter22"}, id="a login option"),
        pytest.param({"args": ["--user=me:hunter22"]}, {"hunter22"}, id="a login option with ="),
        pytest.param({"args": ["--header=X-Any: some value"]}, {"some value"}, id="a header with ="),
        pytest.param({"args": ["--header=Authorization: Bearer abc1"]}, {"abc1"}, id="its scheme"),
        pytest.param({"args": ["-HX-Any: some value"]}, {"some value"}, id="a joined header"),
        pytest.param({"args": ["-ume:hunter22"]}, {"hunter22"}, id="a joined login"),
        pytest.param({"args": ["--basic", "me:hunter22"]}, {"hunter22"}, id="basic"),
        pytest.param({"args": ["--pat", "a1", "--jwt=b2", "--pw", "c3"]}, {"a1", "b2", "c3"}, id="short"),
        pytest.param({"args": ["--githubPat", "a1"]}, {"a1"}, id="a short name in camel case"),
        pytest.param({"args": ['{"pwd":"a b","u":"p://u:X@h","n":{"key":4}}']}, {"a b", "X", "4"}, id="JSON"),
        pytest.param({"args": ['--body={"a":"{\\"password\\":\\"a1\\"}"}']}, {"a1"}, id="JSON in JSON"),
        pytest.param({"args": ["jdbc:postgresql://h/db?user=u1&password=X"]}, {"u1", "X"}, id="JDBC"),
        pytest.param({"args": ["jdbc:sqlserver://h;user=u1;password=X"]}, {"X"}, id="JDBC with semicolons"),
        pytest.param({"args": ["h/db?user=u1&password=X"]}, {"X"}, id="parameters without a scheme"),
        pytest.param({"args": ["x,pg://u:X@h/db,pg://u:Y@h/db"]}, {"X", "Y"}, id="URLs in a word"),
        pytest.param({"args": ["-c", "curl -H 'X-Any: some value' x"]}, {"some value"}, id="a command"),
        pytest.param({"env": {"DATABASE_URL": "pg://me:hunter22@h/db"}}, {"hunter22"}, id="a URL in env"),
        pytest.param({"env": {"DSN": "host=h password=hunter22"}}, {"hunter22"}, id="a connection string"),
        pytest.param({"env": {"DSN": "host=h,pwd=hunter22"}}, {"hunter22"}, id="one with commas"),
        pytest.param({"env": {"H": '{"Authorization": "Bearer abc1"}'}}, {"abc1"}, id="JSON in a variable"),
        pytest.param({"env": {"H": '{"db": ["pg://me:hunter22@h"]}'}}, {"hunter22"}, id="a URL in JSON"),
        pytest.param({"env": {"H": "{not JSON token=abc1"}}, {"abc1"}, id="no JSON"),
        pytest.param({"env": {"LANG": "C.UTF-8", "MODE": "fast"}}, set[str](), id="ordinary variables"),
        pytest.param({"url": "https://h/", "proxy": "http://me:hunter22@p:1"}, {"hunter22"}, id="a proxy"),
        pytest.param(
            {"url": "https://h/", "oauth": OAuthConfig(client_id="id", client_secret="hunter22")},
            {"hunter22"},
            id="a client secret",
        ),
        pytest.param(
            {"url": "https://h/", "headers_helper": "curl -u me:hunter22 --token abc1 https://h/"},
            {"hunter22", "abc1"},
            id="a helper",
        ),
    ],
)  # fmt: skip
def test_a_value_masked_in_the_entry_is_redacted_in_results(entry: dict[str, Any], secrets: set[str]):
    kind = "http" if "url" in entry else "stdio"
    config = ServerConfig(type=kind, **{**entry, "args": tuple(entry.get("args", ()))})
    shown_words = " ".join(masked_words(list(entry.get("args", ()))))

    assert not [secret for secret in secrets if len(secret) > 1 and secret in shown_words]
    assert set(secrets_of(config)) == secrets


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("${MODE:-quiet}", "${MODE:-quiet}"),
        ("${PORT:-8080}", "${PORT:-8080}"),
        ("${BASE:-http://localhost:3000}", "${BASE:-http://localhost:3000}"),
        ("${DB_PASSWORD:-quiet}", "${DB_PASSWORD:-•••}"),
        ("${MODE:-Qu1et}", "${MODE:-•••}"),
        ("${MODE:-123456}", "${MODE:-•••}"),
        ("${BASE:-http://me:pw@localhost}", "${BASE:-•••}"),
    ],
)
def test_a_plain_default_of_a_variable_is_shown_and_any_other_is_masked(written: str, shown: str):
    assert masked_value(written) == shown


# --- names of variables that a container gets ---

IMAGE = "ghcr.io/x/y"


@pytest.mark.parametrize(
    "args",
    [
        ["run", "-e", "GITHUB_TOKEN", IMAGE],
        ["run", "--env", "GITHUB_TOKEN", IMAGE, "stdio"],
        ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "--env", "API_KEY", IMAGE],
        ["run", "-it", "--name=x", "-v", "/a:/b", "-e", "API_KEY", f"{IMAGE}:latest"],
    ],
)
@pytest.mark.parametrize("program", ["docker", "podman", "/usr/bin/docker"])
def test_a_container_image_after_a_variable_name_is_not_a_secret(program: str, args: list[str]):
    assert masked_entry({"command": program, "args": args})["args"] == args
    assert secrets_of(ServerConfig(command=program, args=tuple(args))) == ()
    text = " ".join([program, *args])
    assert masked_entry({"headersHelper": text})["headersHelper"] == text


@pytest.mark.parametrize(
    ("program", "args"),
    [
        ("docker", ["run", "--user", "me", CANARY, IMAGE]),
        ("docker", ["run", "-e", f"API_TOKEN={CANARY}", IMAGE]),
        ("docker", ["run", f"--env=API_TOKEN={CANARY}", IMAGE]),
        ("docker", ["run", "-e", "A=1", "--password", CANARY, IMAGE]),
        ("docker", ["run", "-e", "API_TOKEN", IMAGE, "--token", CANARY]),
        ("docker", ["run", "-e", "API_TOKEN", IMAGE, "-e", "API_TOKEN", CANARY]),
        ("docker", ["run", IMAGE, "-e", "API_TOKEN", CANARY]),
        ("docker", ["run", "--rm", IMAGE, "-e", "API_TOKEN", CANARY]),
        ("docker", ["run", "--name=x", IMAGE, "-e", "API_TOKEN", CANARY]),
        ("docker", ["run", "--new-switch", IMAGE, "-e", "API_TOKEN", CANARY]),
        ("docker", ["run", "-v", "-e", "API_TOKEN", "--kv", "password", CANARY]),
        ("docker", ["login", "-e", "API_TOKEN", CANARY]),
        ("docker", ["-e", "API_TOKEN", CANARY]),
        ("npx", ["run", "-e", "API_TOKEN", CANARY]),
        ("docker-tool", ["run", "-e", "API_TOKEN", CANARY]),
    ],
)
def test_values_beside_secret_names_are_masked(program: str, args: list[str]):
    assert CANARY not in shown({"command": program, "args": args})
    assert CANARY not in shown({"headersHelper": " ".join([program, *args])})
    assert CANARY in " ".join(secrets_of(ServerConfig(command=program, args=tuple(args))))
