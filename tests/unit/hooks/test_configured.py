"""Hooks from configuration files."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.all_files import read_parts
from dragoman.config.schema import FILES, json_schema
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError
from dragoman.hooks.configured import Configured, from_parts
from dragoman.hooks.declared import (
    CommandHook,
    FunctionHook,
    Hook,
    HttpHook,
    UnusableHook,
    hook,
    name_of_command,
)
from dragoman.permissions.subject_form import fault_of_name

ENVIRON = {"TOKEN": "s3cret"}


def group(*hooks: Any, **more: Any) -> dict[str, Any]:
    return {"hooks": list(hooks), **more}


def command(text: str = "./check", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


def configured(home: Path, *, user: Any = None, managed: Any = None) -> Configured:
    for folder, name, block in (
        (home / ".dragoman", "settings.json", user),
        (home / "managed", "managed-mcp.json", managed),
    ):
        if block is not None:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps({"hooks": block}, indent=1))
    reading = read_parts(Sources.here())
    assert reading.broken is None
    found = from_parts(reading.parts, ENVIRON, fault_of_name)
    return Configured(found.hooks, (*reading.problems, *found.problems))


@pytest.mark.requirement("PRM-5")
def test_commands_and_urls_of_hooks_are_read(home: Path):
    found = configured(
        home,
        user={
            "PreToolUse": [
                group(
                    command("python3 ./access_control.py --token abc", timeout=10, onError="block"),
                    {
                        "type": "http",
                        "url": "https://hooks.example.com/secret/path",
                        "headers": {"Authorization": "Bearer ${TOKEN}"},
                    },
                    matcher="mcp__gh__*",
                )
            ],
            "SessionEnd": [group(command("./bye"))],
        },
    )
    assert found.problems == ()
    first, second, third = found.hooks
    assert (first.what, first.timeout_seconds) == (CommandHook("python3 ./access_control.py --token abc"), 10)
    assert first.name == "python3 ./access_control.py"
    assert first.blocks_on_error
    assert first.matches("mcp__gh__x")
    assert not first.matches("mcp__db__x")
    assert second.what == HttpHook(
        "https://hooks.example.com/secret/path", (("Authorization", "Bearer s3cret"),)
    )
    assert second.name == "https://hooks.example.com"
    assert "s3cret" not in repr(second)
    assert not second.blocks_on_error
    assert (third.event, third.timeout_seconds) == ("SessionEnd", 60)


def test_the_administrators_hooks_run_last_and_block_on_error(home: Path):
    found = configured(
        home,
        user={"PreToolUse": [group(command("./mine"))]},
        managed={"PreToolUse": [group(command("./theirs"), command("./softly", onError="ignore"))]},
    )
    assert [(each.name, each.is_managed, each.blocks_on_error) for each in found.hooks] == [
        ("./mine", False, False),
        ("./theirs (the administrator's)", True, True),
        ("./softly (the administrator's)", True, False),
    ]


@pytest.mark.parametrize("file", [".mcp.json", ".dragoman/settings.local.json"])
def test_hooks_of_a_project_are_ignored(home: Path, file: str):
    path = home / "work" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": {"PreToolUse": [group(command("./evil"))]}}))
    reading = read_parts(Sources.here())
    assert from_parts(reading.parts) == Configured((), ())
    assert "hooks has no effect here; it belongs in the user file" in reading.problems[0]


BAD = [
    ({"PreToolUse": {}}, "PreToolUse must be a list", "PreToolUse"),
    ({"PreToolUse": [1]}, "each item of PreToolUse", "PreToolUse"),
    ({"PreToolUse": [{"matcher": "x"}]}, "each item of PreToolUse", "PreToolUse"),
    ({"PreToolUse": [group("x")]}, 'needs a "command"', "PreToolUse"),
    ({"PreToolUse": [group({"type": "command"})]}, 'needs a "command"', "PreToolUse"),
    ({"PreToolUse": [group(command(" "))]}, 'needs a "command"', "PreToolUse"),
    ({"PreToolUse": [group({"type": "prompt", "prompt": "x"})]}, "type prompt", "PreToolUse"),
    ({"PostToolUse": [group({"type": "http"})]}, 'needs a "url"', "PostToolUse"),
    ({"PreToolUse": [group({"type": "http", "url": "ws://x"})]}, "http://", "PreToolUse"),
    ({"PreToolUse": [group({"type": "http", "url": "nonsense"})]}, "the URL does not", "PreToolUse"),
    (
        {"PreToolUse": [group({"type": "http", "url": "http://x", "headers": {"A": 1}})]},
        "texts",
        "PreToolUse",
    ),
    (
        {"PreToolUse": [group({"type": "http", "url": "http://x", "headers": {"A": "${GONE}"}})]},
        "the variable GONE",
        "PreToolUse",
    ),
]


BAD += [(block, '"hooks" must be an object', "PreToolUse") for block in ([], 7, "x", False)]


@pytest.mark.parametrize(("block", "problem", "event"), BAD)
def test_a_persons_hook_that_cannot_be_read_is_left_out_and_reported(
    home: Path, block: Any, problem: str, event: str
):
    found = configured(home, user=block)
    assert found.hooks == ()
    (told,) = found.problems
    assert problem in told
    assert "settings.json, line" in told


@pytest.mark.parametrize(("block", "problem", "event"), BAD)
def test_an_administrators_hook_that_cannot_be_read_blocks(home: Path, block: Any, problem: str, event: str):
    found = configured(home, managed=block)
    (stand_in,) = found.hooks
    assert isinstance(stand_in.what, UnusableHook)
    assert (stand_in.event, stand_in.blocks_on_error, stand_in.is_managed) == (event, True, True)
    assert stand_in.matches("anything")
    assert problem in found.problems[0]


def test_a_persons_hook_with_an_unreadable_matcher_is_left_out(home: Path):
    found = configured(home, user={"PreToolUse": [group(command(), matcher="(")]})
    assert found.hooks == ()
    assert "the matcher ( is no regular expression" in found.problems[0]


@pytest.mark.parametrize("matcher", ["(", 7, "x" * 10_001])
def test_a_blocking_hook_with_an_unreadable_matcher_matches_everything(home: Path, matcher: Any):
    found = configured(
        home,
        user={"PreToolUse": [group(command(onError="block"), matcher=matcher)]},
        managed={"PreToolUse": [group(command(), matcher=matcher)]},
    )
    assert [each.matches("anything") for each in found.hooks] == [True, True]
    assert len(found.problems) == 2


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (command(timeout=0), '"timeout" must be a number'),
        (command(timeout=True), '"timeout" must be a number'),
        (command(timeout="10"), '"timeout" must be a number'),
        (command(timeout=1e9), '"timeout" must be a number'),
        (command(**{"async": True}), "async has no effect here"),
        (command(onError="BLOCK"), '"onError" must be block or ignore'),
    ],
)
def test_a_small_mistake_is_reported_and_has_no_other_effect(home: Path, entry: dict[str, Any], problem: str):
    found = configured(home, user={"PreToolUse": [group(entry)]})
    (only,) = found.hooks
    assert only.timeout_seconds == 60
    assert only.blocks_on_error == (entry.get("onError") is not None)
    assert problem in found.problems[0]


CONDITION = (
    'the condition "if" cannot be judged here; use the matcher, or let the hook itself look at the call'
)


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    "conditional",
    [group(command(**{"if": "mcp__x__*"})), group(command(), **{"if": "mcp__x__*"})],
    ids=["of the hook", "of the group"],
)
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_a_condition_that_cannot_be_evaluated_blocks_where_the_hook_decides(
    home: Path, event: str, conditional: dict[str, Any]
):
    found = configured(home, user={event: [{**conditional, "matcher": "mcp__x__*"}]})
    (only,) = found.hooks
    assert only.what == UnusableHook(f"it cannot be used: {CONDITION}")
    assert only.blocks_on_error
    assert only.matches("mcp__x__y")
    assert not only.matches("mcp__z__y")
    assert [problem.partition("hooks: ")[2] for problem in found.problems] == [f"{event}: {CONDITION}"]


@pytest.mark.requirement("PRM-5")
def test_a_condition_that_cannot_be_evaluated_leaves_out_other_hooks(home: Path):
    found = configured(home, user={"PostToolUse": [group(command(**{"if": "mcp__x__*"}), command("./b"))]})
    assert [hook.what for hook in found.hooks] == [CommandHook("./b")]
    said = f"PostToolUse: {CONDITION}; the hook is left out"
    assert [problem.partition("hooks: ")[2] for problem in found.problems] == [said]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("shell", "run"), [("sh", "echo 'a'"), ("bash", "exec bash -c 'echo '\"'\"'a'\"'\"''")]
)
def test_the_shell_of_a_hook_is_the_one_it_names(home: Path, shell: str, run: str):
    found = configured(home, user={"PostToolUse": [group(command("echo 'a'", shell=shell))]})
    assert [hook.what for hook in found.hooks] == [CommandHook(run)]
    assert found.problems == ()


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("shell", ["powershell", "", 5, ["bash"]])
def test_a_hook_for_another_shell_is_not_run(home: Path, shell: Any):
    found = configured(home, user={"PostToolUse": [group(command(shell=shell))]})
    assert found.hooks == ()
    assert '"shell" must be sh or bash' in found.problems[0]


def test_an_unknown_event_is_reported(home: Path):
    found = configured(home, user={"PreTooUse": [], "Teardown": [group(command())]})
    assert "did you mean PreToolUse?" in found.problems[0]
    assert "there is no event Teardown" in found.problems[1]


def test_no_problem_contains_a_secret(home: Path):
    entry = {"type": "http", "url": "https://u:hunter2@x/hunter2", "headers": {"A": "hunter2"}}
    found = configured(home, user={"PreToolUse": [group(entry)]})
    assert found.hooks == ()
    assert "hunter2" not in "".join(found.problems)


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_published_schema_has_hooks_where_they_take_effect(name: str):
    assert ("hooks" in json_schema(name)["properties"]) == (name in ("user", "managed"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("./check.sh --key abc", "./check.sh"),
        ("TOKEN=abc ./check.sh", "./check.sh"),
        ("python3 -u access_control.py abc", "python3 access_control.py"),
        ("/usr/bin/env python3 access_control.py", "/usr/bin/env python3"),
        ('"$CLAUDE_PROJECT_DIR"/hook.sh', "$CLAUDE_PROJECT_DIR/hook.sh"),
        ("jq -e .x", "jq"),
        ("'", "a command"),
        ("\x1b[31mevil", r"\x1b[31mevil"),
    ],
)
def test_a_command_hook_is_named_after_its_program(text: str, name: str):
    assert name_of_command(text) == name


def check(given: dict[str, Any]) -> None:
    return None


@pytest.mark.requirement("PRM-5")
def test_a_function_is_declared_with_its_settings():
    declared = hook(check, "PreToolUse", matcher="a|b", timeout_seconds=5, blocks_on_error=True)
    assert isinstance(declared, Hook)
    assert declared.what == FunctionHook(check)
    assert (declared.name, declared.timeout_seconds, declared.blocks_on_error) == ("check", 5, True)
    assert declared.matches("a")
    assert not declared.matches("c")


@pytest.mark.parametrize(
    ("arguments", "more", "problem"),
    [
        ((check, "PreToolUze"), {}, "no hook event"),
        (("check", "PreToolUse"), {}, "hook for PreToolUse: a value of type str is not a function"),
        ((check, "PreToolUse"), {"matcher": "("}, "regular expression"),
        ((check, "PreToolUse"), {"timeout_seconds": 0}, "time limit"),
    ],
)
def test_a_wrong_declaration_is_an_error(arguments: Any, more: Any, problem: str):
    with pytest.raises(ConfigError, match=problem):
        hook(*arguments, **more)


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PermissionRequest"])
def test_a_matcher_that_matches_no_tool_is_reported_with_its_position(home: Path, event: str):
    found = configured(home, user={event: [group(command(), matcher="mcp_box__delete")]})
    file = home / ".dragoman" / "settings.json"
    why = "the names of servers' tools begin with mcp__ (did you mean mcp__box__delete?)"
    assert found.problems == (f"{file}, line 11, column 5: hooks: the matcher mcp_box__delete: {why}",)
    assert len(found.hooks) == 1


def test_a_matcher_for_other_names_is_not_checked_as_one_for_tools(home: Path):
    found = configured(home, user={"ServerConnected": [group(command(), matcher="mcp_box")]})
    assert found.problems == ()


async def test_a_host_reports_a_matcher_that_matches_no_tool(home: Path):
    configured(home, user={"PreToolUse": [group(command(), matcher="!mcp__box__read")]})
    async with Host(Sources.here()) as host:
        assert [problem.partition("hooks: ")[2] for problem in host.problems] == [
            "the matcher !mcp__box__read: names of servers' tools begin with mcp__, "
            "others have letters, digits, _ and - only (did you mean mcp__box__read?)"
        ]
