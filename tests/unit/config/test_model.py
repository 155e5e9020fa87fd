"""One server entry: what is understood, what is refused, and what is never said."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.model import (
    PROBLEM_LIMIT,
    OAuthConfig,
    ServerConfig,
    entry_warnings,
    parse_entry,
    parse_servers,
)
from dragoman.errors import ConfigError
from dragoman.transport_types import IN_FILES

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
def test_an_entry_is_parsed(entry: dict[str, object], config: ServerConfig):
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


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ({"comand": "x"}, "It has a field 'comand': did you mean command?"),
        ({"COMMAND": "x", "args": []}, "It has a field 'COMMAND': did you mean command?"),
        ({"colour": "red", "Url": "https://x"}, "It has a field 'Url': did you mean url?"),
        ({"argz": ["x"]}, "Give one of them."),
        ({"oauth": {"comand": "x"}}, "Give one of them."),
        ({"comand\x1b": "x"}, "It has a field 'comand\\\\x1b': did you mean command?"),
        (
            {"mcpServers": {"box": {"command": "x"}}},
            "It is a block of servers: give only the object of one server inside mcpServers.",
        ),
        ({"box": {"command": "x"}}, "The entry is inside 'box': give only the inner object."),
        ({"oauth": {"scopes": "x"}}, "Give one of them."),
    ],
    ids=str,
)
def test_a_misspelled_command_or_url_is_recognised(entry: dict[str, object], advice: str):
    with pytest.raises(ConfigError) as caught:
        parse_entry("box", entry)
    assert str(caught.value) == "server 'box' has neither a command nor a url"
    assert caught.value.hint == advice


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_a_server_needs_a_name(name: str):
    with pytest.raises(ConfigError, match="needs a name"):
        parse_entry(name, {"command": "x"})


URLS = {"ws": "wss://x", "ws-ide": "ws://x"}


@pytest.mark.parametrize("kind", IN_FILES)
def test_every_type_of_server_is_parsed(kind: str):
    entry = (
        {"type": kind, "command": "x"}
        if kind == "stdio"
        else {"type": kind, "url": URLS.get(kind, "https://x")}
    )

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


def test_the_entries_of_a_document_are_in_the_written_order():
    servers = {"a": {"command": "x"}, "b": {"anything": [1]}}

    assert parse_servers({"mcpServers": servers, "other": 1}, "f.json") == servers
    assert parse_servers({"mcpServers": {}}, "f.json") == {}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "expected a JSON object"),
        (None, "expected a JSON object"),
        ("x", "expected a JSON object"),
        ({}, '"mcpServers" is missing'),
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


def test_an_unknown_field_with_any_value_has_a_fingerprint():
    for odd in (object(), "\ud800", {1: {2: set()}}, b"\xff"):
        assert parse_entry("box", {**BASE, "odd": odd}).fingerprint()


# --- every field, and the words of other hosts ---


@pytest.mark.requirement("CFG-5")
def test_every_field_of_an_entry_is_parsed():
    local = {
        "type": "stdio",
        "command": "x",
        "args": ["a"],
        "env": {"A": "1"},
        "cwd": "/x",
        "timeout": 5,
        "protocol": "2025-06-18",
        "enabledTools": ["a"],
        "disabledTools": ["b"],
    }
    remote = {
        "type": "http",
        "url": "https://x.example.com",
        "headers": {"A": "b"},
        "headersHelper": "helper",
        "oauth": {
            "clientId": "id",
            "clientSecret": "secret",
            "callbackPort": 8080,
            "authServerMetadataUrl": "https://x.example.com/meta",
            "scopes": ["a", "b"],
            "xaa": True,
        },
    }
    for entry in (local, remote):
        config = parse_entry("box", entry)
        assert config.unknown == {}
        written = msgspec.json.decode(msgspec.json.encode(config))
        assert {"type": config.type, **written} == entry


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"serverUrl": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"httpUrl": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"type": "sse", "serverUrl": "https://x"}, {"type": "sse", "url": "https://x"}),
        ({"type": "streamable-http", "url": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"type": "streamableHttp", "url": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"command": "x", "includeTools": ["a"]}, {"command": "x", "enabledTools": ["a"]}),
        ({"command": "x", "excludeTools": ["a"]}, {"command": "x", "disabledTools": ["a"]}),
    ],
    ids=str,
)
def test_the_field_names_of_other_hosts_are_accepted(theirs: dict[str, object], ours: dict[str, object]):
    assert parse_entry("box", theirs) == parse_entry("box", ours)


@pytest.mark.requirement("CFG-5")
@given(st.dictionaries(st.text(max_size=6), st.none() | st.integers() | st.text(max_size=4), max_size=4))
def test_unknown_fields_are_kept_and_never_fatal(extra: dict[str, object]):
    known = {field.encode_name for field in msgspec.structs.fields(ServerConfig)} - {"unknown"}
    extra = {key: value for key, value in extra.items() if key not in known}
    assert parse_entry("box", {"command": "x", **extra}).unknown == extra


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize(
    ("entry", "warnings"),
    [
        ({"command": "x", "comand": 1}, ["'comand' … did you mean command?"]),
        ({"comand": "x"}, ["'comand' … did you mean command?"]),
        ({"command": "x", "ARGS": 1}, ["'ARGS' … did you mean args?"]),
        ({"command": "x", "zzz": 1, "qqq": None}, ["'zzz' …", "'qqq' …"]),
        ({"command": "x", "unknown": {}}, ["'unknown' …"]),
        ({"url": "https://x", "oauth": {"clientID": "x"}}, ["'oauth.clientID' … did you mean clientId?"]),
        ({"url": "https://x", "tls": {"certs": "x"}}, ["'tls.certs' … did you mean cert?"]),
        ({"serverUrl": "https://x", "includeTools": ["a"]}, []),
        (
            {"type": "stdio", "command": "x", "url": "https://x"},
            ["url has no effect: the server's type is stdio"],
        ),
        (
            {"type": "stdio", "command": "x", "serverUrl": "https://x"},
            ["url has no effect: the server's type is stdio"],
        ),
        (
            {"type": "http", "command": "x", "url": "https://x"},
            ["command has no effect: the server's type is http"],
        ),
        ({"command": "x", "url": "https://x"}, ["url has no effect: the server's type is stdio"]),
    ],
    ids=str,
)
def test_a_field_without_effect_is_reported_with_the_nearest_one(
    entry: dict[str, object], warnings: list[str]
):
    def whole(warning: str) -> str:
        name, found, advice = warning.partition(" …")
        said = f"the entry has a field {name} that this version does not know"
        return said + advice.replace(" did", "; did") if found else warning

    assert entry_warnings(entry) == tuple(map(whole, warnings))


def test_very_many_unknown_fields_are_counted():
    warnings = entry_warnings({"command": "x", **{f"field{number}": 0 for number in range(1000)}})
    assert len(warnings) == PROBLEM_LIMIT + 1
    assert warnings[-1] == f"and {1000 - PROBLEM_LIMIT} more fields that this version does not know"


@pytest.mark.requirement("CFG-5")
def test_unknown_fields_of_oauth_and_tls_are_kept():
    entry = {"url": "https://x", "oauth": {"clientId": "a", "new": [1]}, "tls": {"ca": "f", "newer": "2"}}
    config = parse_entry("box", entry)
    assert config.oauth is not None
    assert config.tls is not None
    assert (config.oauth.client_id, config.oauth.unknown) == ("a", {"new": [1]})
    assert (config.tls.ca, config.tls.unknown) == ("f", {"newer": "2"})


@pytest.mark.parametrize("url", ["not a url", "ftp://x.example/meta", "https://", "javascript:alert(1)"])
def test_the_oauth_metadata_url_must_be_a_url(url: str):
    with pytest.raises(ConfigError, match=r"^server 'box': (oauth.authServerMetadataUrl|a url of metadata)"):
        parse_entry("box", {"url": "https://x", "oauth": {"authServerMetadataUrl": url}})


def test_a_fingerprint_changes_with_the_oauth_settings():
    one, other = (
        parse_entry("box", {"url": "https://x", "oauth": {"clientId": client}}) for client in ("a", "b")
    )
    assert one.fingerprint() != other.fingerprint()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "type",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "headersHelper",
        "oauth",
        "timeout",
        "protocol",
        "enabledTools",
        "disabledTools",
        "serverUrl",
        "httpUrl",
        "unknown",
    ]
)


@given(st.dictionaries(FIELDS, PLAIN | st.sampled_from(["stdio", "http", "https://x", "x"])))
def test_any_entry_is_parsed_or_refused_with_the_servers_name(entry: dict[str, object]):
    error: ConfigError | None = None
    config = ServerConfig()
    try:
        config = parse_entry("box", entry)
    except ConfigError as caught:
        error = caught
    assert error is None or "'box'" in str(error)
    assert config.type in IN_FILES
    assert config.fingerprint()
    assert config.signature is None or all(isinstance(word, str) for word in config.signature)


# --- signatures ---


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            {"command": "x", "args": ["a"]},
            {"command": "x", "args": ["a"], "cwd": "/", "timeout": 1},
            True,
        ),
        ({"command": "x"}, {"command": "x", "env": {"A": "1"}}, False),
        ({"command": "x", "env": {"A": "2"}}, {"command": "x", "env": {"A": "1"}}, False),
        ({"command": "x", "env": {"A": "1", "B": "2"}}, {"command": "x", "env": {"B": "2", "A": "1"}}, True),
        ({"command": "x", "args": ["a"]}, {"command": "x", "args": ["b"]}, False),
        ({"command": "x", "args": ["a", "b"]}, {"command": "x", "args": ["a b"]}, False),
        ({"command": "x"}, {"command": "X"}, False),
        ({"url": "https://x"}, {"url": "https://x", "headers": {"A": "b"}}, False),
        ({"url": "https://x", "headers": {"A": "c"}}, {"url": "https://x", "headers": {"A": "b"}}, False),
        ({"url": "https://x", "headers": {"a": "b"}}, {"url": "https://x", "headers": {"A": "b"}}, True),
        ({"url": "https://x", "headersHelper": "a"}, {"url": "https://x", "headersHelper": "b"}, False),
        (
            {"url": "https://x", "oauth": {"clientId": "a"}},
            {"url": "https://x", "oauth": {"clientId": "b"}},
            False,
        ),
        (
            {"url": "https://x", "oauth": {"clientId": "a"}},
            {"url": "https://x", "oauth": {"clientId": "a"}},
            True,
        ),
        ({"url": "https://X:443/a/../b"}, {"url": "https://x/b"}, True),
        ({"url": "https://x/a"}, {"type": "sse", "url": "https://x/a"}, True),
        ({"url": "https://x/a"}, {"url": "https://x/A"}, False),
        ({"url": "https://x?a=1"}, {"url": "https://x?a=2"}, False),
        ({"url": "https://x"}, {"url": "http://x"}, False),
        ({"command": "https://x/"}, {"url": "https://x/"}, False),
    ],
    ids=str,
)
def test_when_two_entries_are_the_same_server(one: dict[str, object], other: dict[str, object], same: bool):
    assert (parse_entry("a", one).signature == parse_entry("b", other).signature) is same


def test_an_entry_without_command_and_url_is_not_a_duplicate():
    assert ServerConfig(type="in-process").signature is None
    assert parse_entry("a", {"type": "sdk"}).signature is None


# --- tools ---


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize(
    ("enabled", "disabled", "offered"),
    [
        (None, (), True),
        (("tool",), (), True),
        (("other",), (), False),
        ((), (), False),
        (None, ("tool",), False),
        (("tool",), ("tool",), False),
        (("TOOL",), (), False),
        (None, ("other",), True),
    ],
)
def test_which_tools_are_offered(enabled: tuple[str, ...] | None, disabled: tuple[str, ...], offered: bool):
    config = ServerConfig(command="x", enabled_tools=enabled, disabled_tools=disabled)
    assert config.offers("tool") is offered


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize(
    ("written", "tool", "is_offered"),
    [
        ("delete", "delete", False),
        ("Delete", "delete", False),
        ("delete ", "delete", False),
        ("d\u200belete", "delete", False),
        ("mcp__box__delete", "delete", False),
        ("del*", "delete", False),
        ("*", "delete", False),
        ("delete", "delete_all", True),
        ("mcp__box__delete", "undelete", True),
    ],
    ids=ascii,
)
def test_a_disabled_tool_matches_other_spellings(written: str, tool: str, is_offered: bool):
    assert ServerConfig(command="x", disabled_tools=(written,)).offers(tool) is is_offered
    assert ServerConfig(command="x", enabled_tools=(written,)).offers(tool) is (written == tool)
