"""What is taken from an organisation's list, and from the copy that is kept of it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.connectors import FRESH_SECONDS, Cached, entries_of, read_cache
from dragoman.config.model import fingerprint
from dragoman.config.schema import ConnectorsConfig
from dragoman.errors import ConfigError

REMOTE: dict[str, Any] = {"type": "http", "url": "https://x.example.com/mcp"}
CONFIG = ConnectorsConfig("https://org.example.com/list?secret=s3cret", "s3cret")


# --- the answer ---


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"a": REMOTE, "b": {"url": "https://y.example.com"}}},
        {"connectors": [{"name": "a", **REMOTE}, {"name": "b", "url": "https://y.example.com"}]},
        {"mcpServers": {"a": REMOTE, "b": {"url": "https://y.example.com"}}, "connectors": [], "more": 1},
    ],
    ids=["block", "list", "both"],
)
def test_both_forms_of_a_connector_list_are_read(document: Any):
    assert entries_of(document) == ({"a": REMOTE, "b": {"url": "https://y.example.com"}}, [])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "sh"}, "command"),
        ({"url": "https://x.example.com", "command": ""}, "command"),
        ({"url": "https://x.example.com", "args": []}, "args"),
        ({"url": "https://x.example.com", "env": {}}, "env"),
        ({"url": "https://x.example.com", "cwd": None}, "cwd"),
        ({"url": "https://x.example.com", "headersHelper": "sh -c id"}, "headersHelper"),
        ({"url": "https://${HOST}"}, "variables"),
        ({"url": "https://x.example.com", "headers": {"A": "${HOME}"}}, "variables"),
        ({"url": "https://x.example.com", "headers": {"${HOME}": "a"}}, "variables"),
        ({"url": "https://x.example.com", "oauth": {"scopes": ["${HOME:-x}"]}}, "variables"),
        ({"serverUrl": "https://${env:HOME}"}, "variables"),
        ("https://x.example.com", "not an object"),
        (None, "not an object"),
        ([], "not an object"),
    ],
    ids=str,
)
def test_an_entry_that_would_run_or_read_something_of_this_machine_is_left_out(entry: Any, why: str):
    servers, problems = entries_of({"mcpServers": {"bad": entry, "good": REMOTE}})
    assert servers == {"good": REMOTE}
    assert len(problems) == 1
    assert "'bad'" in problems[0]
    assert why in problems[0]


@pytest.mark.parametrize(
    "document",
    [None, [], "x", 7, {}, {"mcpServers": []}, {"connectors": {}}, {"servers": {"a": REMOTE}}, [REMOTE]],
    ids=str,
)
def test_an_answer_of_another_form_is_an_error(document: Any):
    with pytest.raises(ConfigError, match="neither"):
        entries_of(document)


def test_a_hostile_name_contains_no_terminal_sequences():
    _, problems = entries_of({"mcpServers": {"\x1b[31mred\nline" + "x" * 500: None}})
    assert "\x1b" not in problems[0]
    assert "\n" not in problems[0]
    assert len(problems[0]) < 300


def test_an_unreadable_entry_is_reported():
    servers, problems = entries_of({"connectors": [{"name": "a", **REMOTE}, "https://y.example.com", None]})
    assert list(servers) == ["a"]
    assert problems


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.just("${HOME}"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "url", "command", "headers", "env", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), PLAIN, max_size=4) | st.lists(PLAIN, max_size=4))
def test_any_list_gives_only_plain_remote_entries(listed: Any):
    document = {"mcpServers": listed} if isinstance(listed, dict) else {"connectors": listed}
    servers, _ = entries_of(document)
    for entry in servers.values():
        assert isinstance(entry, dict)
        assert not entry.keys() & {"command", "args", "env", "cwd", "headersHelper"}
        assert "${" not in json.dumps(entry)


# --- the copy ---


def kept(path: Path, **changed: Any) -> Path:
    document = {
        "list": fingerprint(CONFIG.url),
        "fetchedAt": time.time(),
        "servers": {"a": REMOTE},
        "problem": None,
        **changed,
    }
    path.write_text(json.dumps(document))
    return path


def test_the_cached_copy_of_the_same_list_is_used(tmp_path: Path):
    cached = read_cache(kept(tmp_path / "c.json"), CONFIG)
    assert cached.servers == {"a": REMOTE}
    assert cached.is_fresh
    assert cached.source == "connectors of org.example.com"


@pytest.mark.parametrize(
    "changed",
    [{"list": fingerprint("https://other.example.com")}, {"list": None}, {"servers": []}, {"servers": None}],
    ids=str,
)
def test_the_cached_copy_of_another_list_is_not_used(tmp_path: Path, changed: dict[str, Any]):
    assert read_cache(kept(tmp_path / "c.json", **changed), CONFIG).servers == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_copy_is_reported_and_fetched_again(tmp_path: Path, text: str):
    (tmp_path / "c.json").write_text(text)
    cached = read_cache(tmp_path / "c.json", CONFIG)
    assert cached.servers == {}
    assert "fetched again" in (cached.problem or "")
    assert not cached.is_fresh


def test_without_a_copy_there_are_no_servers_and_no_problem(tmp_path: Path):
    cached = read_cache(tmp_path / "none.json", CONFIG)
    assert (cached.servers, cached.problem, cached.is_fresh) == ({}, None, False)


@pytest.mark.parametrize(
    ("age", "fresh"),
    [(None, False), (0.0, True), (FRESH_SECONDS - 1, True), (FRESH_SECONDS, False), (-5.0, False)],
)
def test_a_copy_is_fresh_for_a_while_and_one_from_the_future_is_not(age: float | None, fresh: bool):
    assert Cached("x", age_seconds=age).is_fresh is fresh


@pytest.mark.parametrize("fetched", ["now", None, [], {}], ids=repr)
def test_a_copy_without_a_time_is_used_but_not_fresh(tmp_path: Path, fetched: Any):
    cached = read_cache(kept(tmp_path / "c.json", fetchedAt=fetched), CONFIG)
    assert cached.servers == {"a": REMOTE}
    assert not cached.is_fresh


@pytest.mark.parametrize("url", [CONFIG.url, "https://${HOST}/s3cret", "s3cret://", "https://me:s3cret@x/"])
def test_no_secret_of_the_list_is_in_its_name(tmp_path: Path, url: str):
    config = ConnectorsConfig(url, "s3cret")
    assert "s3cret" not in f"{read_cache(tmp_path / 'none.json', config).source} {config!r}"
