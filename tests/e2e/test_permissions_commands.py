"""`dragoman permissions`: list, add, remove, explain, test, for people and for programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Host
from dragoman.cli import exit_codes
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.e2e.person import Person, offering, settings, tool
from tests.servers import stdio_server

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-1", "PRM-6")]

SERVER = offering(tool("get", readOnlyHint=True), tool("put"), tool("burn", destructiveHint=True))


def as_json(*words: str | Path, code: int = exit_codes.OK, **options: Any) -> Any:
    done = run(*words, "--json", **options)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def rules_in(file: Path) -> dict[str, list[str]]:
    return {kind: found for kind, found in json.loads(file.read_text())["permissions"].items() if found}


# --- list, add, remove ---


def test_without_rules_the_mode_is_shown():
    done = run("permissions", "list")

    assert (done.returncode, done.stdout) == (0, "No rules, mode default: a person is asked.\n")
    assert as_json("permissions", "list") == {"mode": "default", "rules": [], "problems": []}


def test_rules_of_every_file_are_listed_the_strictest_first(home: Path):
    own = settings(home, allow=["mcp__a"], ask=["mcp__b"], deny=["mcp__c"])
    managed = settings(home, scope="enterprise", deny=["mcp__d"], allow=["mcp__e"])
    local = settings(home, scope="local", ask=["mcp__f"])
    found = as_json("permissions", "list")["rules"]

    assert found == [
        {"kind": "deny", "rule": "mcp__d", "scope": "enterprise", "source": str(managed)},
        {"kind": "deny", "rule": "mcp__c", "scope": "user", "source": str(own)},
        {"kind": "ask", "rule": "mcp__b", "scope": "user", "source": str(own)},
        {"kind": "ask", "rule": "mcp__f", "scope": "local", "source": str(local)},
        {"kind": "allow", "rule": "mcp__e", "scope": "enterprise", "source": str(managed)},
        {"kind": "allow", "rule": "mcp__a", "scope": "user", "source": str(own)},
    ]
    shown = run("permissions", "list").stdout
    for rule in found:
        assert f"{rule['rule']}  {rule['kind']}" in " ".join(shown.split(" ")).replace("   ", "  ")


@pytest.mark.parametrize("scope", ["user", "local"])
@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
def test_a_rule_is_added_to_its_scope_applies_at_once_and_is_removed(home: Path, kind: str, scope: str):
    rule = "mcp__s__put(path=/tmp/*)"
    added = as_json("permissions", "add", kind, rule, "--scope", scope)
    file = Path(added["file"])

    assert added == {"added": rule, "kind": kind, "scope": scope, "file": str(file)}
    assert rules_in(file) == {kind: [rule]}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each["rule"] for each in as_json("permissions", "list")["rules"]] == [rule]
    code = {"allow": 0, "ask": exit_codes.WOULD_ASK, "deny": exit_codes.REFUSED}[kind]
    assert as_json("permissions", "test", "mcp__s__put", "path=/tmp/x", *SERVER, code=code)

    removed = as_json("permissions", "remove", rule)
    assert removed == {"removed": rule, "from": [{"kind": kind, "scope": scope, "file": str(file)}]}
    assert as_json("permissions", "list")["rules"] == []


def test_a_rule_can_be_removed_by_the_words_that_added_it(home: Path):
    file = home / ".dragoman" / "settings.json"
    settings(home, allow=["mcp__s"], deny=["mcp__s"])

    refused = run("permissions", "remove", "ask", "mcp__s")
    assert refused.returncode == exit_codes.NOT_FOUND
    assert "there is no ask rule 'mcp__s' in your files" in refused.stderr
    run("permissions", "remove", "deny", "mcp__s")
    assert rules_in(file) == {"allow": ["mcp__s"]}
    for words in (("mcp__s", "mcp__s"), ("allow", "deny", "mcp__s")):
        assert run("permissions", "remove", *words).returncode == exit_codes.USAGE
    assert rules_in(file) == {"allow": ["mcp__s"]}


def test_adding_replaces_the_same_rule_of_another_kind_and_keeps_all_else_of_the_file(home: Path):
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir()
    file.write_text('{\n    "permissions": {"allow": ["x", "mcp__s"]},\n    "other":   1\n}\n')
    assert run("permissions", "add", "deny", "mcp__s").returncode == 0
    assert run("permissions", "add", "deny", "mcp__s").returncode == 0, "twice is once"

    assert '\n    "other":   1\n}' in file.read_text()
    found = as_json("permissions", "list")["rules"]
    assert [(each["kind"], each["rule"]) for each in found] == [("deny", "mcp__s"), ("allow", "x")]


@pytest.mark.parametrize("rule", ["", "(", "mcp__a(", "mcp__a(x)", "mcp__a(b=)", "mcp__a@12", "mcp__a(b=c))"])
def test_an_invalid_rule_is_refused_with_a_message_and_nothing_is_written(home: Path, rule: str):
    done = run("permissions", "add", "deny", rule)

    assert done.returncode == exit_codes.CONFIG
    assert "is not a valid rule" in done.stderr
    assert not (home / ".dragoman" / "settings.json").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", "permit", "mcp__a"), exit_codes.USAGE),
        (("add", "allow"), exit_codes.USAGE),
        (("add", "allow", "mcp__a", "--scope", "enterprise"), exit_codes.USAGE),
        (("remove", "mcp__a"), exit_codes.NOT_FOUND),
        (("remove", "mcp__managed"), exit_codes.NOT_FOUND),
        (("explain",), exit_codes.USAGE),
        (("test", "mcp__s__put", "no-equals-sign", *SERVER), exit_codes.USAGE),
    ],
    ids=str,
)
def test_impossible_requests_have_their_exit_code_and_no_traceback(
    home: Path, words: tuple[str, ...], code: int
):
    settings(home, scope="enterprise", deny=["mcp__managed"])
    done = run("permissions", *words)

    assert done.returncode == code, done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreadable_file_is_neither_changed_nor_ignored(home: Path):
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"permissions": {"deny": ["mcp__s"]')
    for words in (("add", "allow", "mcp__s"), ("remove", "mcp__s")):
        done = run("permissions", *words)
        assert done.returncode == exit_codes.CONFIG
        assert str(file) in done.stderr
    assert file.read_text() == '{"permissions": {"deny": ["mcp__s"]'


# --- explain, test ---


def test_explaining_names_every_rule_its_file_its_scope_and_which_decides(home: Path):
    own = settings(home, allow=["mcp__s(readOnly)", "mcp__s__put(path=/tmp/*)"])
    managed = settings(home, scope="enterprise", deny=["mcp__*__get"])
    found = as_json("permissions", "explain", "mcp__s__get", *SERVER)

    assert (found["tool"], found["decision"], found["mode"]) == ("mcp__s__get", "deny", "default")
    assert found["doubt"] is None
    deny, allow = found["rules"]
    assert deny == {
        "kind": "deny",
        "rule": "mcp__*__get",
        "scope": "enterprise",
        "source": str(managed),
        "applies": True,
        "whyNot": None,
        "decides": True,
    }
    assert (allow["rule"], allow["source"], allow["applies"], allow["decides"]) == (
        "mcp__s(readOnly)",
        str(own),
        True,
        False,
    )
    shown = run("permissions", "explain", "mcp__s__get", *SERVER).stdout
    for part in ("mcp__s__get would be refused", "mcp__*__get", str(managed), "mcp__s(readOnly)", "another"):
        assert part in shown


VERDICTS = {
    "nothing": ({}, "put", (), exit_codes.WOULD_ASK, "no rule allows it"),
    "what only reads": ({"allow": ["mcp__s(readOnly)"]}, "get", (), 0, "mcp__s(readOnly)"),
    "what does not": ({"allow": ["mcp__s(readOnly)"]}, "put", (), exit_codes.WOULD_ASK, "no rule"),
    "an argument": ({"allow": ["mcp__s__put(a=1)"]}, "put", ("a=1",), 0, "mcp__s__put(a=1)"),
    "another": ({"allow": ["mcp__s__put(a=1)"]}, "put", ("a=2",), exit_codes.WOULD_ASK, "no rule"),
    "a deny by look-alike": ({"deny": ["MCP__S__PUT"]}, "put", (), exit_codes.REFUSED, "MCP__S__PUT"),
    "ask beats allow": ({"allow": ["mcp__s"], "ask": ["mcp__s__put"]}, "put", (), 8, "ask rule mcp__s__put"),
    "dontAsk": ({"defaultMode": "dontAsk"}, "put", (), exit_codes.REFUSED, "dontAsk"),
    "plan": ({"defaultMode": "plan", "allow": ["mcp__s"]}, "put", (), exit_codes.REFUSED, "plan"),
    "bypass": ({"defaultMode": "bypassPermissions"}, "burn", (), 0, "bypassPermissions"),
}


@pytest.mark.parametrize(("rules", "name", "words", "code", "why"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_call_is_decided_as_by_a_host_and_not_made(
    home: Path, rules: dict[str, Any], name: str, words: tuple[str, ...], code: int, why: str
):
    settings(home, **rules)
    found = as_json("permissions", "test", f"mcp__s__{name}", *words, *SERVER, code=code)

    assert why in found["reason"]
    assert not (home / ".dragoman" / "logs" / "audit.jsonl").exists(), "nothing was called"


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("git status", 0),
        ("git status && rm -rf /", exit_codes.REFUSED),
        ("git status; ls", exit_codes.WOULD_ASK),
        ("git status > /etc/passwd", exit_codes.WOULD_ASK),
        ("git status $(rm x)", exit_codes.REFUSED),
    ],
)
def test_a_shell_command_is_decided_by_its_parts(home: Path, command: str, code: int):
    settings(home, allow=["Bash(git status)"], deny=["Bash(rm *)"])

    assert as_json("permissions", "test", "Bash", command, code=code)["tool"] == "Bash"


def test_a_tool_whose_definition_is_unknown_is_decided_by_its_name_and_that_is_reported(home: Path):
    settings(home, deny=["mcp__gone__x"], allow=["mcp__gone", "mcp__s__nothing"])
    gone = ("--mcp-config", config(gone={"command": "no-such-program"}))
    for words, code in (
        (("mcp__gone__x", *gone), exit_codes.REFUSED),
        (("mcp__nowhere__x", *gone), exit_codes.WOULD_ASK),
        (("mcp__s__other", *SERVER), exit_codes.WOULD_ASK),
    ):
        found = as_json("permissions", "test", *words, code=code)
        assert "decided by the name only" in found["doubt"]
    said = "! gone: start failed: there is no program 'no-such-program' on PATH; decided by the name only\n"
    assert said in run("permissions", "explain", "mcp__gone__x", *gone).stderr


def test_a_tool_is_found_although_another_servers_name_is_a_prefix(home: Path):
    pages = json.dumps([{"tools": [tool("b__c", readOnlyHint=True)]}])
    others = json.dumps([{"tools": [tool("d")]}])
    given = config(
        a=stdio_server("lists_given_pages.py", pages), a__b=stdio_server("lists_given_pages.py", others)
    )
    names = [
        each["name"] for each in json.loads(run("tools", "--json", "--mcp-config", given).stdout)["tools"]
    ]
    (name,) = (name for name in names if "b__c" in name)
    settings(home, allow=["mcp__a(readOnly)"])
    found = as_json("permissions", "test", name, "--mcp-config", given)

    assert found["decision"] == "allow"
    assert found["doubt"] is None


def test_a_tool_with_a_shortened_name_is_found_and_denied_by_its_wire_name(home: Path):
    long = "delete_" + "x" * 100
    given = offering(tool(long))
    name = json.loads(run("tools", "--json", *given).stdout)["tools"][0]["name"]
    settings(home, deny=[f"mcp__s__{long}"])

    assert len(name) == 64
    found = as_json("permissions", "test", name, *given, code=exit_codes.REFUSED)
    assert found["doubt"] is None


# --- whose rules count ---


def test_an_administrators_rules_override_others_and_are_named(home: Path):
    managed = settings(home, scope="enterprise", allow=["mcp__s__put"], ask=["mcp__s__get"])
    settings(home, ask=["mcp__s__put"], allow=["mcp__s__get"], defaultMode="bypassPermissions")
    put = as_json("permissions", "test", "mcp__s__put", *SERVER)
    get = as_json("permissions", "test", "mcp__s__get", *SERVER, code=exit_codes.WOULD_ASK)

    for found in (put, get):
        assert str(managed) in found["reason"]
        assert next(rule for rule in found["rules"] if rule["decides"])["scope"] == "enterprise"


@pytest.mark.requirement("PRM-2")
def test_bypassing_can_be_forbidden_by_the_administrator(home: Path):
    managed = settings(home, scope="enterprise", disableBypassPermissionsMode="disable")
    settings(home, defaultMode="bypassPermissions")
    found = as_json("permissions", "list")

    assert found["mode"] == "default"
    assert any(str(managed) in problem and "bypassPermissions" in problem for problem in found["problems"])
    assert as_json("permissions", "test", "mcp__s__put", *SERVER, code=exit_codes.WOULD_ASK)
    with pytest.raises(ConfigError, match="forbids bypassPermissions"):
        Host({}, permission_mode="bypassPermissions")
    with pytest.raises(ConfigError, match="forbids bypassPermissions"):
        Host.configured(permission_mode="bypassPermissions")


@pytest.mark.parametrize("mode", ["bypassPermissions", "auto"])
def test_a_project_cannot_reduce_questions(home: Path, mode: str):
    settings(home, scope="local", defaultMode=mode)
    found = as_json("permissions", "list")

    assert found["mode"] == "default"
    assert any("applies only in your own settings" in problem for problem in found["problems"])


def test_an_allow_rule_of_a_clone_has_no_effect_until_the_person_adds_it(home: Path):
    settings(home, scope="local", allow=["mcp__s__burn", "mcp__s__put"], deny=["mcp__s__get"])
    listed = as_json("permissions", "list")

    assert [rule["rule"] for rule in listed["rules"]] == ["mcp__s__get"], "a deny counts at once"
    for words in (("permissions", "explain"), ("permissions", "test"), ("call",)):
        done = run(*words, "mcp__s__burn", *SERVER)
        assert done.returncode in (0, exit_codes.WOULD_ASK, exit_codes.REFUSED)
        assert done.stderr.count("is defined by the project and is not used") == 1, words
    assert run("call", "mcp__s__get", "--yes", *SERVER).returncode == exit_codes.REFUSED
    assert run("call", "mcp__s__burn", *SERVER).returncode == exit_codes.REFUSED

    assert run("permissions", "add", "allow", "mcp__s__burn", "--scope", "local").returncode == 0
    assert run("call", "mcp__s__burn", *SERVER).returncode == exit_codes.OK
    remaining = as_json("permissions", "list")
    assert ["mcp__s__put" in problem for problem in remaining["problems"]] == [True]


def test_a_rule_removed_and_added_again_by_the_project_has_no_effect(home: Path):
    run("permissions", "add", "allow", "mcp__s__burn", "--scope", "local")
    run("permissions", "remove", "mcp__s__burn")
    settings(home, scope="local", allow=["mcp__s__burn"])

    assert run("call", "mcp__s__burn", *SERVER).returncode == exit_codes.REFUSED


# --- rules that cannot be read ---


@pytest.mark.parametrize(
    "words",
    [("permissions", "list"), ("permissions", "explain", "mcp__s__put"), ("call", "mcp__s__put", "--yes"),
     ("permissions", "test", "mcp__s__put"), ("permissions", "test", "Bash", "ls"),
     ("permissions", "explain", "mcp__nobody__x")],
    ids=" ".join,
)  # fmt: skip
def test_a_broken_rule_is_reported_once_by_every_command(home: Path, words: tuple[str, ...]):
    file = settings(home, deny=["mcp__s__put(path=/etc"], allow=["mcp__s__get((("])
    done = run(*words, *(SERVER if words != ("permissions", "list") else ()))

    for rule in ("mcp__s__put(path=/etc", "mcp__s__get((("):
        told = [line for line in done.stderr.splitlines() if f"rule '{rule}'" in line and line[:1] == "!"]
        assert len(told) == 1, done.stderr
        assert str(file) in told[0]


def test_a_broken_deny_applies_without_its_conditions_and_a_broken_allow_allows_nothing(home: Path):
    settings(home, deny=["mcp__s__put(path=/etc"], allow=["mcp__s__burn(((", "mcp__s(readonly"])

    assert run("call", "mcp__s__put", "path=/tmp", "--yes", *SERVER).returncode == exit_codes.REFUSED
    assert run("permissions", "test", "mcp__s__burn", *SERVER).returncode == exit_codes.WOULD_ASK
    assert run("permissions", "test", "mcp__s__get", *SERVER).returncode == exit_codes.WOULD_ASK


def test_an_administrators_rule_of_which_nothing_can_be_read_denies_everything(home: Path):
    settings(home, scope="enterprise", deny=["((("])

    for name in ("get", "put"):
        done = run("call", f"mcp__s__{name}", "--yes", *SERVER)
        assert done.returncode == exit_codes.REFUSED, done.stderr


@pytest.mark.parametrize("scope", ["user", "local"])
@pytest.mark.parametrize("rules", [{"deny": "mcp__s"}, {"deny": [1]}, {"allow": {"a": 1}}], ids=str)
def test_rules_of_the_wrong_type_are_reported_and_allow_nothing(
    home: Path, scope: str, rules: dict[str, Any]
):
    file = settings(home, scope=scope, **rules)
    done = run("permissions", "list")

    assert "Traceback" not in done.stderr
    assert str(file) in done.stderr
    assert run("permissions", "test", "mcp__s__put", *SERVER).returncode != exit_codes.OK


def test_the_question_names_the_administrators_rule(home: Path):
    managed = settings(home, scope="enterprise", ask=["mcp__s__put"])
    with Person("call", "mcp__s__put", *SERVER) as person:
        shown = person.answers("y/n", "y")
        code, _ = person.ends()

    assert code == exit_codes.OK
    assert str(managed) in shown.replace("\n  ", "")


def test_hooks_that_decide_are_named_by_explain_and_run_by_test(home: Path):
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir(mode=0o700)
    refusing = {"matcher": "mcp__demo__add", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    rules = {"allow": ["mcp__demo"]}
    file.write_text(json.dumps({"permissions": rules, "hooks": {"PreToolUse": [refusing]}}))
    call = ("mcp__demo__add", "--mcp-config", "demo")

    tested = run("permissions", "test", *call, "a=1", "b=2")
    assert tested.returncode == exit_codes.REFUSED
    assert "hook echo was asked (PreToolUse)" in tested.stdout
    explained = run("permissions", "explain", *call)
    assert "hook echo runs before each call, and may decide (PreToolUse)" in explained.stdout
