"""Changes people make to their configuration: which file, and what follows from it."""

import json
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import approval, edits
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError, PolicyRefused
from tests.integration.desk import Desk

ENTRY: dict[str, Any] = {"command": "tool", "args": ["a"]}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def look() -> Configuration:
    return load(Sources.here())


def read(path: Path) -> Any:
    return json.loads(path.read_text())


# --- names and entries ---


@given(st.text(alphabet=string.ascii_letters + string.digits + "_-", min_size=1, max_size=64))
def test_a_plain_name_is_accepted(name: str):
    edits.check_name(f"x{name}"[:64])


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a\n", "a.b", "a/b", "../a", "a&calc", "ä", "a" * 65, "$(id)", "a\0", "٣", "claude.ai Figma"],
    ids=repr,
)
def test_a_name_that_could_mean_something_elsewhere_is_refused(name: str):
    with pytest.raises(ConfigError) as caught:
        edits.check_name(name)
    assert caught.value.hint


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        (ENTRY, ()),
        ({"command": "${B}", "env": {"X": "${A}${B}"}}, ("A", "B")),
        ({"command": "x", "args": ["${SET}", "${A:-default}"]}, ()),
        ({"url": "https://${HOST}/mcp", "headers": {"X": "Bearer ${T}"}}, ("HOST", "T")),
        ({"url": "${BASE}/mcp"}, ("BASE",)),
        ({"url": "${BASE}"}, ("BASE",)),
        ({"url": "https://x.example.com:${PORT}/mcp"}, ("PORT",)),
    ],
    ids=str,
)
def test_an_entry_may_name_variables_that_are_not_set_yet(
    entry: dict[str, Any], missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SET", "1")
    assert edits.check_entry(look(), "box", entry) == missing


@pytest.mark.parametrize(
    "entry", [{}, {"command": 7}, {"url": "ftp://x"}, {"command": "${A:-${B}}"}], ids=str
)
def test_an_entry_that_can_never_be_used_is_refused(entry: dict[str, Any]):
    with pytest.raises(ConfigError, match="'box'"):
        edits.check_entry(look(), "box", entry)


def test_an_entry_that_policy_refuses_is_not_written(desk: Desk):
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    edits.check_policy(look(), "good", ENTRY, "user")
    with pytest.raises(PolicyRefused, match="evil"):
        edits.check_policy(look(), "evil", ENTRY, "user")


# --- adding and removing ---


@pytest.mark.parametrize("scope", ["local", "project", "user"])
def test_an_entry_added_by_a_person_is_ready_in_any_scope(desk: Desk, scope: Scope):
    path = edits.put_server(Sources.here(), scope, "box", ENTRY)
    assert path == Sources.here().file_of(scope)
    assert read(path) == {"mcpServers": {"box": ENTRY}}
    server = look().servers["box"]
    assert (server.eligibility, server.scope, server.source) == ("ready", scope, str(path))


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("scope", ["project", "local"])
def test_an_added_server_that_is_edited_later_needs_approval(desk: Desk, scope: Scope):
    path = edits.put_server(Sources.here(), scope, "box", ENTRY)
    path.write_text(path.read_text().replace("tool", "evil"))
    server = look().servers["box"]
    assert server.eligibility == "pending"
    assert server.approval is not None
    assert server.approval.before == ENTRY


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("scope", ["local", "project", "user"])
def test_adding_and_removing_keep_other_content_and_its_order(desk: Desk, scope: Scope):
    path = Sources.here().file_of(scope)
    text = """{
    "zebra": [1, 2],
    "mcpServers": {
        "old": {"command": "x", "new": null}
    },
    "ant": {}
}
"""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    edits.put_server(Sources.here(), scope, "box", ENTRY)
    assert list(read(path)) == ["zebra", "mcpServers", "ant"]
    assert list(read(path)["mcpServers"]) == ["old", "box"]
    assert '"old": {"command": "x", "new": null}' in path.read_text()
    edits.remove_server(Sources.here(), scope, path, "box")
    assert path.read_text() == text


def test_an_entry_of_the_same_name_is_replaced(desk: Desk):
    for args in (["a"], ["b"]):
        edits.put_server(Sources.here(), "user", "box", {"command": "x", "args": args})
    assert read(desk.user_file) == {"mcpServers": {"box": {"command": "x", "args": ["b"]}}}


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("scope", ["local", "project", "user"])
def test_a_broken_file_is_never_written_over(desk: Desk, scope: Scope):
    path = Sources.here().file_of(scope)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers": {')
    with pytest.raises(ConfigFileError):
        edits.put_server(Sources.here(), scope, "box", ENTRY)
    assert path.read_text() == '{"mcpServers": {'


@pytest.mark.requirement("CFG-2")
def test_a_local_file_is_ignored_by_git_and_private(desk: Desk):
    path = edits.put_server(Sources.here(), "local", "box", ENTRY)
    ignored = (path.parent / ".gitignore").read_text().splitlines()
    assert {"settings.local.json", ".gitignore"} <= set(ignored)
    assert path.stat().st_mode & 0o077 == 0
    (path.parent / ".gitignore").write_text("mine\n")
    edits.put_server(Sources.here(), "local", "box2", ENTRY)
    assert (path.parent / ".gitignore").read_text() == "mine\nsettings.local.json\n"


def test_removing_deletes_the_approval(desk: Desk):
    path = edits.put_server(Sources.here(), "project", "box", ENTRY)
    edits.remove_server(Sources.here(), "project", path, "box")
    desk.in_project({"box": ENTRY})
    assert look().servers["box"].eligibility == "pending"


@pytest.mark.parametrize("scope", ["project", "local"])
def test_a_symlink_leading_outside_the_project_is_not_followed(desk: Desk, tmp_path: Path, scope: Scope):
    path = Sources.here().file_of(scope)
    path.parent.mkdir(parents=True, exist_ok=True)
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    path.symlink_to(outside)
    with pytest.raises(ConfigFileError):
        edits.put_server(Sources.here(), scope, "box", ENTRY)
    assert outside.read_text() == "{}"


def test_the_files_that_define_a_name_are_listed_nearest_first(desk: Desk):
    desk.user({"box": ENTRY, "other": ENTRY})
    desk.in_project({"box": ENTRY})
    desk.write(desk.home / ".mcp.json", {"box": ENTRY})
    desk.local({"box": ENTRY})
    assert edits.places_of(Sources.here(), "box") == [
        ("local", desk.local_file),
        ("project", desk.project_file),
        ("project", desk.home / ".mcp.json"),
        ("user", desk.user_file),
    ]
    assert edits.places_of(Sources.here(), "other") == [("user", desk.user_file)]
    assert edits.places_of(Sources.here(), "nobody") == []


@pytest.mark.parametrize("entry", [None, "npx", [], 7], ids=repr)
def test_an_entry_that_is_not_an_object_is_found_in_its_file(desk: Desk, entry: Any):
    """Else it could be seen in the list and not be removed."""
    desk.user({"box": entry})
    assert edits.places_of(Sources.here(), "box") == [("user", desk.user_file)]


# --- switching off and on ---


@pytest.mark.parametrize(
    ("scope", "file"), [("user", "user"), ("plugin", "user"), ("project", "local"), ("local", "local")]
)
def test_a_server_is_disabled_in_its_scope_and_enabled_again(desk: Desk, scope: str, file: str):
    if scope == "plugin":
        desk.write(desk.plugin_file("p"), {"box": ENTRY})
    else:
        edits.put_server(Sources.here(), scope, "box", ENTRY)  # type: ignore[arg-type]
    path = edits.save_disabled(look(), look().servers["box"])
    assert path == (desk.user_file if file == "user" else desk.local_file)
    assert look().servers["box"].eligibility == "disabled"
    assert edits.save_disabled(look(), look().servers["box"]) == path
    assert read(path)["disabledMcpServers"] == ["box"]
    assert edits.save_enabled(look(), "box") == [path]
    assert look().servers["box"].eligibility == "ready"
    assert edits.save_enabled(look(), "box") == []


def test_enabling_removes_the_name_from_every_file_of_the_person(desk: Desk):
    desk.user({"box": ENTRY}, disabledMcpServers=["a", "box", "b"])
    desk.local(None, disabledMcpServers=["box"])
    desk.managed(disabledMcpServers=["box"])
    assert set(edits.save_enabled(look(), "box")) == {desk.user_file, desk.local_file}
    assert read(desk.user_file)["disabledMcpServers"] == ["a", "b"]
    assert look().servers["box"].eligibility == "disabled"


# --- choices ---


@pytest.mark.requirement("CFG-8")
def test_resetting_the_choices_of_a_project_keeps_those_of_others(desk: Desk, tmp_path: Path):
    edits.put_server(Sources.here(), "project", "a", ENTRY)
    edits.put_server(Sources.here(), "local", "b", ENTRY)
    approval.remember(desk.approvals_file, tmp_path / ".mcp.json", "c", ENTRY, "approved")
    assert edits.forget_choices(Sources.here()) == 2
    assert {server.eligibility for server in look().servers.values()} == {"pending"}
    answers, _ = approval.read_answers(desk.approvals_file)
    assert answers.of(tmp_path / ".mcp.json", "c")


# --- hostile folders, and several at once ---


def test_a_gitignore_that_is_a_symlink_out_of_the_folder_is_not_written(desk: Desk, tmp_path: Path):
    outside = tmp_path / "bashrc"
    outside.write_text("mine\n")
    folder = desk.local_file.parent
    folder.mkdir()
    (folder / ".gitignore").symlink_to(outside)
    with pytest.raises(ConfigFileError):
        edits.put_server(Sources.here(), "local", "box", ENTRY)
    assert outside.read_text() == "mine\n"


@pytest.mark.requirement("CFG-10")
def test_concurrent_disables_are_all_stored(desk: Desk):
    names = [f"s{number}" for number in range(12)]
    desk.user({name: {"command": name} for name in names})
    configuration = look()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: edits.save_disabled(configuration, configuration.servers[name]), names))
    assert sorted(read(desk.user_file)["disabledMcpServers"]) == sorted(names)
