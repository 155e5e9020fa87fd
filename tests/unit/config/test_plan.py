"""The difference between two configurations."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.load import load
from dragoman.config.model import ServerConfig
from dragoman.config.plan import Plan, ServerSnapshot, compare, last_snapshots, remember, snapshots_of
from dragoman.config.scopes import Sources
from tests.integration.desk import Desk

SNAPSHOTS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(
        ServerSnapshot,
        eligibility=st.sampled_from(["ready", "pending"]),
        fingerprint=st.sampled_from(["1", "2"]),
        reason=st.sampled_from([None, "because"]),
    ),
)


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def snapshots(**more: Any) -> dict[str, ServerSnapshot]:
    return snapshots_of(load(Sources.here(**more)))


# --- comparing ---


@given(SNAPSHOTS, SNAPSHOTS)
def test_every_name_is_in_exactly_one_list(
    before: dict[str, ServerSnapshot], after: dict[str, ServerSnapshot]
):
    plan = compare(before, after)
    listed = [*plan.added, *plan.removed, *plan.changed, *plan.unchanged]
    assert sorted(listed) == sorted(before.keys() | after.keys())


@given(SNAPSHOTS, SNAPSHOTS)
def test_what_each_list_means(before: dict[str, ServerSnapshot], after: dict[str, ServerSnapshot]):
    plan = compare(before, after)
    assert set(plan.added) == after.keys() - before.keys()
    assert set(plan.removed) == before.keys() - after.keys()
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        same = (one.eligibility, one.fingerprint) == (other.eligibility, other.fingerprint)
        assert (name in plan.unchanged) is same


@given(SNAPSHOTS)
def test_nothing_changes_from_a_state_to_itself(state: dict[str, ServerSnapshot]):
    assert compare(state, state) == Plan(unchanged=tuple(state))
    assert compare(state, state).is_empty


@given(SNAPSHOTS, SNAPSHOTS)
def test_the_reverse_plan_undoes_the_plan(
    before: dict[str, ServerSnapshot], after: dict[str, ServerSnapshot]
):
    there, back = compare(before, after), compare(after, before)
    assert (set(there.added), set(there.changed)) == (set(back.removed), set(back.changed))
    assert there.is_empty == back.is_empty


# --- snapshots of a configuration ---


@pytest.mark.requirement("CFG-11")
def test_loading_twice_gives_no_difference(desk: Desk):
    desk.user({"a": {"command": "x"}, "b": {"url": "https://x.example.com"}, "broken": {"command": 7}})
    desk.in_project({"c": {"command": "y"}})
    given = {"object": object(), "config": ServerConfig(command="z")}
    assert compare(snapshots(given=given), snapshots(given=given)).is_empty


@pytest.mark.requirement("CFG-11")
@pytest.mark.parametrize("entry", ["npx", [], ["npx", "-y", "x"], 7777777, 1.5, None], ids=repr)
def test_an_entry_that_is_not_an_object_is_unchanged_at_the_next_load(desk: Desk, entry: Any):
    desk.user({"bad": entry, "good": {"command": "x"}})
    before = snapshots()
    kept = [load(Sources.here()) for _ in range(3)]  # keeps memory from being used again
    assert compare(before, snapshots()).is_empty
    assert kept


@pytest.mark.requirement("CFG-11")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"a": {"command": "x", "args": ["1"]}}, Plan(removed=("b",), changed=("a",))),
        ({"a": {"command": "x"}, "b": {"command": "y"}}, Plan(unchanged=("a", "b"))),
        ({"b": {"command": "y"}, "a": {"command": "x"}}, Plan(unchanged=("b", "a"))),
        (
            {"a": {"command": "x", "env": {"A": "1"}}, "b": {"command": "y"}},
            Plan(changed=("a",), unchanged=("b",)),
        ),
        (
            {"a": {"command": "x", "new": 1}, "b": {"command": "y"}, "c": {"command": "z"}},
            Plan(added=("c",), changed=("a",), unchanged=("b",)),
        ),
    ],
    ids=str,
)
def test_an_edit_of_a_file_gives_the_expected_plan(desk: Desk, change: dict[str, Any], expected: Plan):
    desk.user({"a": {"command": "x"}, "b": {"command": "y"}})
    before = snapshots()
    desk.user(change)
    assert compare(before, snapshots()) == expected


@pytest.mark.requirement("CFG-11")
def test_a_variable_with_another_value_is_a_change(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    desk.user({"a": {"command": "x", "args": ["${PLACE:-none}"]}, "b": {"command": "y"}})
    before = snapshots()
    monkeypatch.setenv("PLACE", "here")
    assert compare(before, snapshots()).changed == ("a",)


@pytest.mark.requirement("CFG-11")
def test_disabling_is_a_change_and_another_reason_is_not(desk: Desk):
    desk.user({"a": {"command": "x"}})
    before = snapshots()
    desk.user({"a": {"command": "x"}}, disabledMcpServers=["a"])
    off = snapshots()
    assert compare(before, off).changed == ("a",)
    desk.user({"a": {"command": "x"}})
    desk.local(None, disabledMcpServers=["a"])
    assert compare(off, snapshots()).is_empty


def test_a_stored_mark_contains_no_value(desk: Desk):
    secret = "s3cret-Value-42"
    desk.user({"a": {"command": "x", "env": {"TOKEN": secret}}, "b": {"url": secret}})
    assert secret not in repr(snapshots())


# --- what was last in use ---


def test_stored_marks_of_a_folder_apply_to_that_folder_only(desk: Desk):
    desk.user({"a": {"command": "x"}})
    desk.in_project({"b": {"command": "y"}})
    sources = Sources.here()
    remember(sources, snapshots())
    assert last_snapshots(sources) == snapshots()
    assert last_snapshots(Sources.here(desk.home)) == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"servers": []}', '{"servers": {"a": 1}}', '{"servers": null}']
)
def test_unreadable_marks_are_treated_as_missing(desk: Desk, text: str):
    sources = Sources.here()
    remember(sources, {"a": ServerSnapshot("ready", "1")})
    [file] = (sources.config_dir / "state" / "in-use").glob("*.json")
    file.write_text(text)
    assert last_snapshots(sources) == {}
