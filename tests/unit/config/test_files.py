"""One file at a time: what a wrong key costs, and where people are told it stands."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.all_files import read_parts
from dragoman.config.files import FileSettings, at, entry_error
from dragoman.config.schema import FILES, PermissionRules, keys_of
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, ConfigFileError
from tests.integration.desk import Desk

TOOL = {"command": "tool"}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def file_of(desk: Desk, kind: str) -> Path:
    files = {
        "user": desk.user_file,
        "project": desk.project_file,
        "local": desk.local_file,
        "plugin": desk.plugin_file("tools"),
        "managed": desk.managed_file,
    }
    return files[kind]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def part_of(path: Path) -> FileSettings:
    return next(part for part in read_parts(Sources.here()).parts if part.path == path)


ALL = ["user", "project", "local", "plugin", "managed"]
OTHERS = ALL[:-1]


# --- which parts there are ---


@pytest.mark.requirement("CFG-1", "CFG-2")
def test_the_parts_are_ordered_by_scope_and_the_nearest_file_is_last(desk: Desk):
    outer = [desk.home / ".mcp.json", desk.home / ".dragoman" / "settings.local.json"]
    for path in (*(file_of(desk, kind) for kind in ALL), *outer):
        desk.write(path, {})
    reading = read_parts(Sources.here(given={"now": TOOL}))
    assert [(part.scope, part.path) for part in reading.parts] == [
        ("plugin", desk.plugin_file("tools")),
        ("user", desk.user_file),
        ("project", outer[0]),
        ("project", desk.project_file),
        ("local", outer[1]),
        ("local", desk.local_file),
        ("dynamic", None),
        ("enterprise", desk.managed_file),
    ]
    assert reading.problems == ()
    assert reading.broken is None


def test_with_given_servers_only_the_persons_files_are_left_out_and_the_administrators_is_not(desk: Desk):
    for kind in ALL:
        desk.write(file_of(desk, kind), {})
    parts = read_parts(Sources.here(given={"now": TOOL}, only_given=True)).parts
    assert [part.scope for part in parts] == ["dynamic", "enterprise"]


def test_no_files_are_no_problem():
    reading = read_parts(Sources.here())
    assert (reading.parts, reading.problems, reading.broken) == ((), (), None)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("text", "declares"), [("{}", False), ('{"mcpServers": {}}', True)])
def test_an_empty_block_of_servers_is_not_the_same_as_none(desk: Desk, kind: str, text: str, declares: bool):
    write(file_of(desk, kind), text)
    assert part_of(file_of(desk, kind)).declares_servers is declares


# --- a broken file ---

BROKEN = [
    ("", 1),
    ('{"mcpServers": {\n  "a": {"command": "s3cret"}\n', 3),
    ('{"mcpServers": {}\n,}', 2),
    ('{\n\n  "mcpServers": {,}\n}', 3),
    ("[]", 1),
    ('{"a": 1,\n "a": 2}', 2),
]


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("text", "line"), BROKEN)
@pytest.mark.parametrize("kind", OTHERS)
def test_a_broken_file_is_left_out_and_reported_with_its_line(desk: Desk, kind: str, text: str, line: int):
    for each in OTHERS:
        desk.write(file_of(desk, each), {each: TOOL})
    write(file_of(desk, kind), text)
    reading = read_parts(Sources.here())
    assert [set(part.servers) for part in reading.parts] == [
        {each} for each in ("plugin", "user", "project", "local") if each != kind
    ]
    (problem,) = reading.unreadable if kind in ("user", "local") else reading.problems
    assert problem.startswith(f"{file_of(desk, kind)}, line {line}, column ")
    assert "s3cret" not in problem
    assert len(reading.problems) + len(reading.unreadable) == 1
    assert file_of(desk, kind).read_text() == text


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    "text", [*(text for text, _ in BROKEN), '{"mcpServers": []}', '{"mcpServers": null}', '{"mcpServers": 1}']
)
def test_a_broken_administrators_file_is_not_treated_as_absent(desk: Desk, text: str):
    write(desk.managed_file, text)
    broken = read_parts(Sources.here()).broken
    assert broken is not None
    assert str(desk.managed_file) in broken


def test_a_folder_in_place_of_a_file_is_reported(desk: Desk):
    desk.project_file.mkdir()
    desk.managed_file.mkdir(parents=True)
    reading = read_parts(Sources.here())
    assert "not a regular file" in reading.problems[0]
    assert reading.broken


# --- wrong keys ---

WRONG_VALUES = {
    "disabledMcpServers": "all",
    "disabledMcpjsonServers": [1],
    "enabledMcpjsonServers": {"a": True},
    "enableAllProjectMcpServers": "yes",
    "allowedMcpEnvironment": "all",
    "env": {"A": [1]},
    "permissions": {"allow": "everything"},
    "connectors": {"bearer": "x"},
    "xaaIdp": {"issuer": "https://idp.example.com"},
}


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("key", "value"), WRONG_VALUES.items())
def test_one_wrong_value_is_ignored_alone_and_reported_with_its_position(desk: Desk, key: str, value: Any):
    right = {"env": {"MCP_TIMEOUT": 5}, "disabledMcpServers": ["x"]}
    right.pop(key, None)
    desk.user({"mine": TOOL}, **{key: value}, **right)
    reading = read_parts(Sources.here())
    part = reading.parts[0]
    assert set(part.servers) == {"mine"}
    assert set(part.values) - {key} == set(right)
    assert not part.values.get(key) or part.values[key] == PermissionRules()
    assert len(reading.problems) == 1
    assert f"{desk.user_file}, line " in reading.problems[0]
    assert key in reading.problems[0]


@pytest.mark.requirement("CFG-10")
def test_one_wrong_item_does_not_affect_the_others(desk: Desk):
    desk.managed(
        disabledMcpServers=["a", 7, "b"],
        env={"MCP_TIMEOUT": 5, "OTHER": [1]},
        permissions={"deny": ["mcp__x", 7], "allow": "all"},
    )
    reading = read_parts(Sources.here())
    assert reading.parts[0].values == {
        "disabledMcpServers": ("a", "b"),
        "env": {"MCP_TIMEOUT": 5},
        "permissions": PermissionRules(deny=("mcp__x",)),
    }
    assert len(reading.problems) == 4
    assert all(f"{desk.managed_file}, line " in problem for problem in reading.problems)


def test_every_key_of_a_persons_file_has_a_wrong_value_in_this_table():
    judged_elsewhere = {"mcpServers", "allowedMcpServers", "deniedMcpServers", "hooks"}
    assert WRONG_VALUES.keys() | judged_elsewhere == keys_of(FILES["user"]).keys()


@pytest.mark.parametrize("kind", OTHERS)
def test_a_servers_member_that_is_not_an_object_is_reported(desk: Desk, kind: str):
    write(file_of(desk, kind), '{\n "mcpServers": []}')
    reading = read_parts(Sources.here())
    assert reading.parts[0].servers == {}
    assert reading.problems[0].startswith(f"{file_of(desk, kind)}, line 2, column ")


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        ("project", "servers", ['"servers"', '"mcpServers"']),
        ("project", "mcpServer", ["'mcpServer'", "mcpServers"]),
        ("user", "disabledMcpServer", ["did you mean disabledMcpServers"]),
        ("project", "env", ["no effect here", "user"]),
        ("project", "disabledMcpServers", ["no effect here"]),
        ("local", "connectors", ["no effect here", "user"]),
        ("local", "enableAllProjectMcpServers", ["no effect here", "user"]),
        ("local", "enabledMcpjsonServers", ["no effect here", "user"]),
        ("local", "allowedMcpServers", ["no effect here", "user"]),
        ("user", "allowManagedMcpServersOnly", ["no effect here", "managed"]),
        ("plugin", "permissions", ["no effect here"]),
        ("managed", "colour", ["unknown key 'colour'", "ignored"]),
        ("user", "x\x1b[31m", ["unknown key"]),
    ],
)
def test_a_key_without_effect_is_reported_with_a_similar_one(
    desk: Desk, kind: str, key: str, words: list[str]
):
    write(file_of(desk, kind), json.dumps({key: []}))
    reading = read_parts(Sources.here())
    assert reading.broken is None
    assert len(reading.problems) == 1
    assert all(word in reading.problems[0] for word in words)
    assert "\x1b" not in reading.problems[0]
    assert key not in reading.parts[0].values


@pytest.mark.parametrize("kind", ALL)
def test_a_file_may_name_its_schema(desk: Desk, kind: str):
    write(file_of(desk, kind), '{"$schema": "https://example.com/x.json"}')
    reading = read_parts(Sources.here())
    assert (reading.problems, reading.broken) == ((), None)


SECRET = "s3cret-Value-42"


@pytest.mark.parametrize("key", WRONG_VALUES)
@pytest.mark.parametrize("value", [SECRET, [[SECRET]], {"url": [SECRET]}, {"a": {"b": SECRET}}], ids=str)
def test_no_problem_contains_a_value_of_the_file(desk: Desk, key: str, value: Any):
    desk.user(None, **{key: value})
    assert SECRET not in "".join(read_parts(Sources.here()).problems)


# --- places ---


@given(st.text(max_size=8), st.integers(0, 5), st.integers(0, 5))
def test_an_error_about_an_entry_has_the_position_of_the_entry(name: str, lines: int, columns: int):
    before = "\n" * lines + " " * columns
    text = '{"mcpServers": {' + before + json.dumps(name) + ': {"command": 1}}}'
    part = FileSettings(scope="user", source="/f.json", path=Path("/f.json"), text=text)
    error = entry_error(part, name, ConfigError("it is wrong", hint="Mend it."))
    assert isinstance(error, ConfigFileError)
    assert error.line == lines + 1
    assert error.column is not None
    rest = text.split("\n")[lines][error.column - 1 :]
    assert rest.startswith((json.dumps(name), '{"command"'))
    assert error.hint == "Mend it."


def test_an_entry_from_no_file_has_no_position():
    error = ConfigError("it is wrong")
    assert entry_error(FileSettings(scope="dynamic", source="code"), "x", error) is error
    assert at(Path("/f.json"), "{}", ["nowhere"], "it is wrong").file == "/f.json"
