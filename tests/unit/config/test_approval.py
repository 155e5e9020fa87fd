"""Whether an entry of a project is approved: the whole table, and the file where answers are kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import approval
from dragoman.config.approval import (
    ApprovalAnswer,
    Choices,
    decide,
    forget,
    forget_all,
    read_answers,
    remember,
)
from dragoman.config.load import load
from dragoman.config.model import fingerprint
from dragoman.config.scopes import Scope, Sources
from dragoman.names import ProhibitedNames
from tests.integration.desk import Desk

ENTRY: dict[str, Any] = {"command": "tool", "args": ["a", "b"], "env": {"KEY": "${KEY}"}}
OLD_ENTRY: dict[str, Any] = {**ENTRY, "args": ["a"]}

ANSWERS: dict[str, ApprovalAnswer | None] = {
    "none": None,
    "yes": ApprovalAnswer("approved", fingerprint(ENTRY), ENTRY),
    "no": ApprovalAnswer("rejected", fingerprint(ENTRY), ENTRY),
    "yes to another": ApprovalAnswer("approved", fingerprint(OLD_ENTRY), OLD_ENTRY),
    "no to another": ApprovalAnswer("rejected", fingerprint(OLD_ENTRY), OLD_ENTRY),
}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


# --- the decision ---

NAMED = ["unnamed", "enabled", "disabled", "both"]


def expected_state(scope: str, answer: str, named: str, everything: bool, live: bool) -> str:
    """The rules in other words: an exact answer counts; names and "all" count for `.mcp.json` only."""
    by_name = scope == "project"
    exact = {"yes": "approved", "no": "rejected"}.get(answer)
    if by_name and named in ("disabled", "both"):
        return "rejected"
    if exact is not None:
        return exact
    if live or not by_name:
        return "pending"
    if everything and answer != "no to another":
        return "approved"
    return "approved" if named == "enabled" and answer == "none" else "pending"


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("live", [False, True], ids=["at start", "live"])
@pytest.mark.parametrize("everything", [False, True], ids=["each", "all"])
@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("scope", ["project", "local"])
def test_the_complete_table_of_decisions(scope: Scope, answer: str, named: str, everything: bool, live: bool):
    choices = Choices(
        enabled={"box": "enabler"} if named in ("enabled", "both") else {},
        disabled=ProhibitedNames({"box": "disabler"} if named in ("disabled", "both") else {}, ()),
        all_enabled_by="everything" if everything else None,
    )
    decision = decide(scope, "box", ENTRY, ANSWERS[answer], choices, live=live)
    assert decision.state == expected_state(scope, answer, named, everything, live)
    assert decision.reason
    assert not decision.pin or (decision.state == "approved" and ANSWERS[answer] is None)


@pytest.mark.requirement("CFG-8")
def test_a_changed_entry_shows_what_was_approved_before():
    decision = decide("project", "box", ENTRY, ANSWERS["yes to another"], Choices())
    assert decision.before == OLD_ENTRY
    assert decide("project", "box", ENTRY, ANSWERS["no to another"], Choices()).before is None


@pytest.mark.requirement("CFG-8")
def test_an_approval_by_name_is_bound_to_the_entry_and_an_approval_of_all_is_not():
    by_name = decide("project", "box", ENTRY, None, Choices(enabled={"box": "file"}))
    to_all = decide("project", "box", ENTRY, None, Choices(all_enabled_by="file"))
    assert (by_name.pin, to_all.pin) == (True, False)


def test_an_approval_needs_the_exact_name_and_a_refusal_matches_other_spellings():
    enabled = {"Box": "file"}
    assert decide("project", "box", ENTRY, None, Choices(enabled=enabled)).state == "pending"
    choices = Choices(enabled=enabled, disabled=ProhibitedNames({"box ": "file"}, ()))
    assert decide("project", "box", ENTRY, None, choices).state == "rejected"


MUTATIONS: list[dict[str, Any]] = [
    {"command": "tool2"},
    {"command": "TOOL"},
    {"command": "./tool"},
    {"args": ["b", "a"]},
    {"args": ["a b"]},
    {"args": ["a", "b", ""]},
    {"args": []},
    {"env": {}},
    {"env": {"KEY": "${KEY2}"}},
    {"env": {"KEY": "${KEY:-}"}},
    {"env": {"key": "${KEY}"}},
    {"env": {"KEY": "${KEY}", "LD_PRELOAD": "x"}},
    {"cwd": "."},
    {"type": "stdio"},
    {"url": "https://x"},
    {"headers": {}},
    {"headersHelper": "x"},
    {"timeout": 1},
    {"timeout": True},
    {"disabledTools": []},
    {"somethingNew": None},
]


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=json.dumps)
def test_any_edit_needs_a_new_approval(mutation: dict[str, Any]):
    assert decide("local", "box", {**ENTRY, **mutation}, ANSWERS["yes"], Choices()).state == "pending"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def exact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@pytest.mark.requirement("CFG-8")
@given(PLAIN, PLAIN)
def test_two_entries_have_one_fingerprint_only_if_they_are_the_same(one: Any, other: Any):
    assert (fingerprint(one) == fingerprint(other)) == (exact(one) == exact(other))


@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=5))
def test_the_order_of_keys_does_not_change_the_fingerprint(entry: dict[str, Any]):
    assert fingerprint(dict(reversed(entry.items()))) == fingerprint(entry)


# --- the file of answers ---


@pytest.mark.requirement("CFG-8")
@settings(max_examples=15)
@given(
    rows=st.dictionaries(
        st.tuples(st.sampled_from(["one", "two"]), st.text(min_size=1, max_size=6)),
        st.tuples(
            st.dictionaries(st.sampled_from(["command", "url"]), st.text(max_size=5)),
            st.sampled_from(["approved", "rejected"]),
        ),
        max_size=4,
    )
)
def test_stored_answers_are_read_by_file_and_name(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[tuple[str, str], tuple[dict[str, Any], str]]
):
    folder = tmp_path_factory.mktemp("answers")
    for (file, name), (entry, decision) in rows.items():
        remember(folder / "approvals.json", folder / file / ".mcp.json", name, entry, decision)
    answers, problems = read_answers(folder / "approvals.json")
    assert problems == ()
    for (file, name), (entry, decision) in rows.items():
        assert answers.of(folder / file / ".mcp.json", name) == ApprovalAnswer(
            decision, fingerprint(entry), entry
        )  # type: ignore[arg-type]
    assert answers.of(folder / "three" / ".mcp.json", "x") is None


def test_a_later_answer_replaces_an_earlier_one(tmp_path: Path):
    for decision in ("approved", "rejected"):
        remember(tmp_path / "a.json", tmp_path / ".mcp.json", "box", ENTRY, decision)
    answer = read_answers(tmp_path / "a.json")[0].of(tmp_path / ".mcp.json", "box")
    assert answer is not None
    assert answer.decision == "rejected"


def test_a_folder_reached_through_a_symlink_is_the_same_folder(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    remember(tmp_path / "a.json", tmp_path / "link" / ".mcp.json", "box", ENTRY, "approved")
    assert read_answers(tmp_path / "a.json")[0].of(tmp_path / "real" / ".mcp.json", "box")


def test_an_answer_for_one_file_does_not_apply_to_another(tmp_path: Path):
    remember(tmp_path / "a.json", tmp_path / "one" / ".mcp.json", "box", ENTRY, "approved")
    answers, _ = read_answers(tmp_path / "a.json")
    assert answers.of(tmp_path / "two" / ".mcp.json", "box") is None
    assert answers.of(tmp_path / "one" / "inner" / ".mcp.json", "box") is None
    assert answers.of(None, "box") is None


def test_resetting_returns_the_number_of_answers_and_keeps_the_others(tmp_path: Path):
    file, other = tmp_path / "one.json", tmp_path / "two.json"
    for path, name in ((file, "a"), (file, "b"), (other, "a")):
        remember(tmp_path / "a.json", path, name, ENTRY, "approved")
    assert forget(tmp_path / "a.json", (file,), "a") == 1
    assert forget(tmp_path / "a.json", (file,), "a") == 0
    answers, _ = read_answers(tmp_path / "a.json")
    assert [answers.of(file, "a"), answers.of(file, "b") is None, answers.of(other, "a") is None] == [
        None,
        False,
        False,
    ]
    assert forget_all(tmp_path / "a.json", (file, other)) == 2


def test_the_file_of_answers_is_private(tmp_path: Path):
    remember(tmp_path / "a.json", tmp_path / ".mcp.json", "box", ENTRY, "approved")
    assert (tmp_path / "a.json").stat().st_mode & 0o077 == 0


def test_a_stored_answer_contains_nothing_of_the_entry():
    assert "tool" not in repr(ANSWERS["yes"])


def rows_of(row: Any) -> dict[str, Any]:
    return {"files": {"/x/.mcp.json": {"box": row}}}


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"approved"',
        '{"files": []}',
        '{"files": {"/x/.mcp.json": "approved"}}',
        json.dumps(rows_of("approved")),
        json.dumps(rows_of({"decision": "approved"})),
        json.dumps(rows_of({"decision": "maybe", "fingerprint": "x"})),
        json.dumps(rows_of({"decision": "approved", "fingerprint": None})),
        json.dumps(rows_of({"decision": "approved", "fingerprint": "x", "entry": []})),
        "\ufeff" + json.dumps(rows_of({"decision": "approved", "fingerprint": fingerprint(ENTRY)})) + "x",
    ],
)
def test_unreadable_answers_are_treated_as_missing(tmp_path: Path, text: str):
    (tmp_path / "a.json").write_text(text)
    answers, _ = read_answers(tmp_path / "a.json")
    assert answers.of(Path("/x/.mcp.json"), "box") is None
    assert answers.confirmed_variables is None


def test_one_invalid_answer_is_left_out_alone_and_reported(tmp_path: Path):
    good = {"decision": "approved", "fingerprint": fingerprint(ENTRY)}
    document = {"files": {str(tmp_path / "f"): {"good": good, "bad": {"decision": 1}}}}
    (tmp_path / "a.json").write_text(json.dumps(document))
    answers, problems = read_answers(tmp_path / "a.json")
    assert answers.of(tmp_path / "f", "good")
    assert answers.of(tmp_path / "f", "bad") is None
    assert len(problems) == 1
    assert "'bad'" in problems[0]


def test_a_new_answer_is_stored_even_if_the_file_was_broken(tmp_path: Path):
    (tmp_path / "a.json").write_text("{ broken")
    remember(tmp_path / "a.json", tmp_path / "f", "box", ENTRY, "approved")
    assert read_answers(tmp_path / "a.json")[0].of(tmp_path / "f", "box")


def test_unknown_members_of_the_file_of_answers_are_kept(tmp_path: Path):
    (tmp_path / "a.json").write_text('{"later": [1]}')
    remember(tmp_path / "a.json", tmp_path / "f", "box", ENTRY, "approved")
    approval.confirm_variables(tmp_path / "a.json", {"A": "1"})
    forget_all(tmp_path / "a.json", (tmp_path / "f",))
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["later"] == [1]
    assert document["managedVariables"] == fingerprint({"A": "1"})


# --- nothing in a project approves itself ---

SELF_APPROVALS: list[dict[str, Any]] = [
    {"enableAllProjectMcpServers": True},
    {"enabledMcpjsonServers": ["box"]},
    {"enableAllProjectMcpServers": True, "enabledMcpjsonServers": ["box"], "disabledMcpjsonServers": []},
]


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("said", SELF_APPROVALS, ids=json.dumps)
def test_an_approval_in_the_projects_files_has_no_effect(desk: Desk, said: dict[str, Any]):
    desk.in_project({"box": ENTRY}, **said)
    desk.local({"here": ENTRY}, **said)
    desk.write(desk.plugin_file("tools"), {}, **said)
    desk.write(desk.project / ".dragoman" / "settings.json", {}, **said)
    answer = {"decision": "approved", "fingerprint": fingerprint(ENTRY)}
    for place in (desk.project, desk.project / ".dragoman"):
        files = {str(path): {"box": answer, "here": answer} for path in (desk.project_file, desk.local_file)}
        desk.write(place / "approvals.json", files=files)
    configuration = load(Sources.here())
    assert {name: server.eligibility for name, server in configuration.servers.items()} == {
        "box": "pending",
        "here": "pending",
    }
    for key in said.keys() - {"disabledMcpjsonServers"}:
        assert any(key in problem for problem in configuration.problems)


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("said", SELF_APPROVALS, ids=json.dumps)
@pytest.mark.parametrize("scope", ["user", "managed"])
def test_an_approval_of_the_person_or_the_administrator_applies(
    desk: Desk, said: dict[str, Any], scope: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KEY", "set")
    desk.in_project({"box": ENTRY})
    desk.local({"here": OLD_ENTRY})
    getattr(desk, scope)(None, **said)
    servers = load(Sources.here()).servers
    assert (servers["box"].eligibility, servers["here"].eligibility) == ("ready", "pending")


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("scope", ["user", "managed", "local"])
def test_a_refusal_by_name_applies_from_any_scope_and_overrides_an_approval(desk: Desk, scope: str):
    desk.in_project({"box": {**ENTRY, "env": {}}})
    remember(desk.approvals_file, desk.project_file, "box", {**ENTRY, "env": {}}, "approved")
    assert load(Sources.here()).servers["box"].eligibility == "ready"
    getattr(desk, scope)(None, disabledMcpjsonServers=["box"])
    assert load(Sources.here()).servers["box"].eligibility == "rejected"


@pytest.mark.requirement("CFG-8")
def test_while_a_host_runs_a_new_or_changed_entry_needs_an_explicit_approval(desk: Desk):
    entry = {"command": "tool"}
    desk.in_project({"box": entry, "new": {"command": "other"}})
    desk.user(None, enableAllProjectMcpServers=True)
    running = {"box": fingerprint(entry)}
    servers = load(Sources.here(), running=running).servers
    assert (servers["box"].eligibility, servers["new"].eligibility) == ("ready", "pending")
    remember(desk.approvals_file, desk.project_file, "new", {"command": "other"}, "approved")
    assert load(Sources.here(), running=running).servers["new"].eligibility == "ready"
