"""The published schemas say the same as the code that reads the files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.load import load
from dragoman.config.model import parse_entry
from dragoman.config.schema import FILES, json_schema, keys_of
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError
from dragoman.hooks.configured import from_parts
from dragoman.transport_types import IN_FILES
from tests.integration.desk import Desk

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def file_of(desk: Desk, kind: str) -> Path:
    files = {"user": desk.user_file, "project": desk.project_file, "local": desk.local_file}
    return files.get(kind, desk.managed_file)


def validator(kind: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(json_schema(kind))


VALIDATORS = {kind: validator(kind) for kind in FILES}


def accepts(kind: str, document: Any) -> bool:
    return VALIDATORS[kind].is_valid(document)


# --- what is published ---


@pytest.mark.parametrize("kind", FILES)
def test_each_schema_is_valid_and_plain_json(kind: str):
    schema = json.loads(json.dumps(json_schema(kind)))
    jsonschema_rs.meta.validate(schema)
    assert kind in schema["title"]


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_has_exactly_the_keys_that_are_read(kind: str):
    assert json_schema(kind)["properties"].keys() == keys_of(FILES[kind]).keys() | {"$schema"}


def described(schema: dict[str, Any], part: dict[str, Any]) -> bool:
    """A description of its own, or of what it refers to."""
    if part.get("description"):
        return True
    refers = [part, *part.get("anyOf", [])]
    names = [each["$ref"].rpartition("/")[2] for each in refers if "$ref" in each]
    return any(schema["$defs"][name].get("description") for name in names)


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, shape in (("", schema), *schema["$defs"].items()):
        for key, part in shape.get("properties", {}).items():
            yield f"{place}.{key}", part


@pytest.mark.parametrize("kind", FILES)
def test_every_key_of_every_file_has_a_description(kind: str):
    schema = json_schema(kind)
    bare = [place for place, part in properties(schema) if not described(schema, part)]
    assert [place for place in bare if place != ".$schema"] == []


@pytest.mark.requirement("CFG-5")
def test_the_schema_names_every_transport():
    kinds = json_schema("project")["$defs"]["ServerConfig"]["properties"]["type"]["enum"]
    assert set(kinds) >= set(IN_FILES)


# --- what reading takes, the schema takes ---

GOOD_ENTRIES: list[dict[str, Any]] = [
    {"command": "npx"},
    {"command": "npx", "args": [], "env": {}, "cwd": "/x", "timeout": 1, "protocol": "legacy"},
    {"url": "https://x.example.com", "headers": {"A": "b"}, "headersHelper": "x"},
    {
        "url": "https://x.example.com",
        "oauth": {"clientId": "x", "callbackPort": 80, "scopes": ["a"], "xaa": True},
    },
    {"url": "https://x.example.com", "oauth": {"scopes": "a b"}},
    {"command": "x", "enabledTools": ["a"], "disabledTools": []},
    {"command": "x", "somethingNew": {"a": 1}},
    {"serverUrl": "https://x.example.com"},
    {"httpUrl": "https://x.example.com"},
    {"command": "x", "includeTools": ["a"], "excludeTools": ["b"]},
    *(
        {
            "type": kind,
            "command": "x",
            "url": f"{'wss' if kind in ('ws', 'ws-ide') else 'https'}://x.example.com",
        }
        for kind in IN_FILES
    ),
    *(
        {"type": kind, "url": "https://x.example.com"}
        for kind in ("streamable-http", "streamableHttp", "streamable_http")
    ),
]


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("entry", GOOD_ENTRIES, ids=json.dumps)
def test_a_valid_entry_matches_the_schema(entry: dict[str, Any]):
    parse_entry("box", entry)
    for kind in FILES:
        assert accepts(kind, {"mcpServers": {"box": entry}})


WORDS = st.lists(st.text(max_size=5), max_size=2)
POLICY = st.lists(
    st.one_of(
        st.fixed_dictionaries({"serverName": st.just("a*")}),
        st.fixed_dictionaries({"serverUrl": st.just("https://*.example.com")}),
        st.fixed_dictionaries({"serverCommand": st.just(["npx", "*"])}),
    ),
    max_size=2,
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "mcpServers": st.dictionaries(
        st.text(min_size=1, max_size=4), st.sampled_from(GOOD_ENTRIES[:10]), max_size=2
    ),
    "disabledMcpServers": WORDS,
    "disabledMcpjsonServers": WORDS,
    "enabledMcpjsonServers": WORDS,
    "enableAllProjectMcpServers": st.booleans(),
    "allowManagedMcpServersOnly": st.booleans(),
    "deniedMcpServers": POLICY,
    "allowedMcpServers": POLICY,
    "allowedMcpEnvironment": WORDS,
    "env": st.dictionaries(
        st.sampled_from(["MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"]), st.integers(1, 9) | st.just("5")
    ),
    "hooks": st.just(
        {"PreToolUse": [{"matcher": "a*", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]}
    ),
    "permissions": st.fixed_dictionaries({}, optional={"allow": WORDS, "ask": WORDS, "deny": WORDS}),
    "xaaIdp": st.none() | st.just({"issuer": "https://idp.example.com", "clientId": "c", "enabled": True}),
    "connectors": st.none() | st.just({"url": "https://x.example.com", "bearer": "${B}"}),
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, 1.5, "text", [], [1], [[]], {}, {"a": 1}, {"a": [1]}, [None], ["text"], {"url": 7}]
)


@st.composite
def documents(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Mostly good files, some of them with something odd in one place."""
    keys = draw(st.lists(st.sampled_from(sorted(keys_of(FILES[kind]))), unique=True, max_size=4))
    document = {key: draw(VALUES[key]) for key in keys}
    if keys and draw(st.booleans()):
        document[draw(st.sampled_from(keys))] = draw(ODD)
    return document


def reads_without_a_problem(folder: Path, kind: str, document: dict[str, Any]) -> bool:
    sources = Sources(config_dir=folder / "c", managed_dir=folder / "m", cwd=folder / "w", home=folder)
    files = {
        "user": sources.user_file,
        "managed": sources.managed_file,
        "project": folder / "w" / ".mcp.json",
        "local": sources.local_file_in(folder / "w"),
    }
    files[kind].parent.mkdir(parents=True, exist_ok=True)
    files[kind].write_text(json.dumps(document))
    configuration = load(sources)
    broken = [server for server in configuration.servers.values() if server.error is not None]
    return not configuration.problems and not broken and not from_parts(configuration.parts).problems


@pytest.mark.parametrize("kind", FILES)
def test_a_file_without_problems_matches_its_schema(kind: str, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("files")

    @given(documents(kind))
    def check(document: dict[str, Any]) -> None:
        if reads_without_a_problem(folder, kind, document):
            assert accepts(kind, document), document

    check()


# --- what has the wrong type, neither takes ---


@pytest.mark.parametrize("kind", FILES)
def test_a_file_with_a_value_of_the_wrong_type_is_invalid_for_parser_and_schema(desk: Desk, kind: str):
    for key in keys_of(FILES[kind]):
        document = {key: 7}
        desk.write(file_of(desk, kind), **document)
        configuration = load(Sources.here())
        assert configuration.problems, key
        assert not accepts(kind, document), key


WRONG_ENTRIES: list[Any] = [
    "npx",
    [],
    {"command": 7},
    {"command": ["npx"]},
    {"command": "x", "args": "-y"},
    {"command": "x", "args": [1]},
    {"command": "x", "env": {"A": 1}},
    {"command": "x", "env": []},
    {"command": "x", "timeout": "5s"},
    {"command": "x", "cwd": 1},
    {"type": "pigeon", "command": "x"},
    {"type": 7, "command": "x"},
    {"url": 7},
    {"url": "https://x.example.com", "headers": []},
    {"url": "https://x.example.com", "oauth": "x"},
    {"url": "https://x.example.com", "oauth": {"callbackPort": 0}},
    {"url": "https://x.example.com", "oauth": {"callbackPort": 70000}},
    {"url": "https://x.example.com", "oauth": {"clientId": 1}},
    {"command": "x", "enabledTools": "a"},
    {"command": "x", "disabledTools": [1]},
]


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("entry", WRONG_ENTRIES, ids=json.dumps)
def test_an_entry_of_the_wrong_type_is_invalid_for_parser_and_schema(entry: Any):
    assert not accepts("project", {"mcpServers": {"box": entry}})
    if isinstance(entry, dict):
        with pytest.raises(ConfigError):
            parse_entry("box", entry)
