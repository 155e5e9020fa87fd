"""T166: a deny rule applies to its program, server or tool in other spellings, or a problem explains why
not."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.catalog.naming import qualify
from dragoman.config.schema import PermissionRules
from dragoman.permissions.rules import BEHAVIOURS, Call, Rulebook
from dragoman.permissions.shell import compare
from tests.servers import stdio_server
from tests.torture import projects

ECHO = Call(tool=qualify("box", "echo"), server="box", wire_name="echo")
OTHER = Call(tool=qualify("box", "other"), server="box", wire_name="other")


def denying(text: str, *servers: str, chosen: tuple[str, ...] | None = None) -> Rulebook:
    parts = [("user", "file.json", PermissionRules(deny=(text,)))]
    return Rulebook.of(parts, servers=servers, chosen=servers if chosen is None else chosen)


def is_denied(pattern: str, command: str) -> bool:
    [rule] = denying(f"Bash({pattern})").rules
    assert rule.shell is not None
    return compare.hits(rule.shell, command)


COMMANDS: list[tuple[str, str]] = [
    ("/bin/rm *", "rm x"),
    ("/bin/rm:*", "rm"),
    ("/bin/rm *", "/usr/bin/rm x"),
    ("/bin/rm *", "command rm x"),
    ("/bin/rm *", "sh -c 'rm x'"),
    ("/bin/rm *", "ls; xargs rm x"),
    ("/usr/bin/git push *", "git -C . push origin"),
    ("/bin//rm *", "/bin/rm x"),
    ("/bin/x/../rm *", "rm x"),
    ("//bin/rm *", "rm x"),
    ("'/bin/rm' *", "rm x"),
    ("rm *", "/bin/rm x"),
    ("rm *", "/bin/x/../rm x"),
    ("/opt/tool/run *", "/opt/./tool//run x"),
    ("/opt/tool/run *", "env /opt/tool//run x"),
    ("./deploy *", ".//deploy x"),
    ("./deploy", "sh deploy"),
    ("rm -rf ${HOME}", "rm -rf /home/me"),
    ("rm -rf $HOME/*", "rm -rf /home/me/x"),
    ("rm .*", "rm x"),
    ("\u0433m *", "rm x"),
    ("git pu\u0455h *", "git push origin"),
    ("curl * | sh", "curl x|sh"),
    ("curl *|sh", "curl x | sh"),
    ("make&&make install", "make && make install"),
]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("pattern", "command"), COMMANDS, ids=ascii)
def test_t166_a_denied_command_is_denied_in_other_spellings(pattern: str, command: str):
    assert is_denied(pattern, command)


def test_t166_a_program_in_a_folder_of_path_is_matched_by_its_name(
    monkeypatch: pytest.MonkeyPatch, home: Path
):
    assert not is_denied(f"{home}/programs/tool *", "tool x")
    monkeypatch.setenv("PATH", f"/bin:{home}/programs/")
    assert is_denied(f"{home}/programs/tool *", "tool x")
    assert is_denied("~/programs/tool *", "tool x")


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("/opt/tool/run *", "run x"),
        ("/bin/*", "rm x"),
        ("/bin/rm *", "rmdir x"),
        ("rm $X", "ls /"),
        ("[ -f x ]", "ls"),
    ],
)
def test_t166_other_commands_are_not_denied(pattern: str, command: str):
    assert not is_denied(pattern, command)


@pytest.mark.parametrize("pattern", ["/bin/rm *", "/bin//rm x", "rm $X", "rm .*", "\u0433m x"], ids=ascii)
def test_t166_an_allow_rule_matches_exactly(pattern: str):
    [rule] = Rulebook.of([("user", "file.json", PermissionRules(allow=(f"Bash({pattern})",)))]).rules
    assert compare.covering("rm x", [rule], [rule]) == ()


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("behaviour", ["deny", "ask"])
@pytest.mark.parametrize(
    "pattern", ["!ls", "${X} *", "$X rm", "$HOME/bin/x", "^rm", "rm$", "r? x", "[rl]m *", "{ls,rm} *"]
)
def test_t166_a_pattern_that_names_no_program_is_reported_and_applies_to_every_command(
    behaviour: str, pattern: str
):
    rules = PermissionRules(**{behaviour: (f"Bash({pattern})",)})
    book = Rulebook.of([("user", "file.json", rules)])
    [problem] = book.problems
    assert problem.startswith(f"file.json: {behaviour} rule 'Bash({pattern})': ")
    assert problem.endswith("; until it is corrected it applies to all calls of Bash")
    assert [rule.shell for rule in book.rules] == [None]


COUNT = [
    "box.echo",
    "box/echo",
    "mcp__box@",
    "mcp__box__echo@v1",
    "mcp__b\u043ex",
    "mcp__box__\u0435ch\u043e",
]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("text", COUNT, ids=ascii)
def test_t166_another_spelling_of_a_denied_name_is_matched(text: str):
    book = denying(text, "box")
    assert any(rule.is_about(ECHO) for rule in book.rules)
    assert book.problems == ()


@pytest.mark.parametrize("text", COUNT, ids=ascii)
def test_t166_an_allowed_name_matches_exactly(text: str):
    [rule] = Rulebook.of(
        [("user", "file.json", PermissionRules(allow=(text,)))], servers=["box"], chosen=["box"]
    ).rules
    assert not rule.is_about(ECHO)


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(
    ("text", "meant", "covers_other"),
    [
        ("box", "mcp__box", True),
        ("mcp__box_echo", "mcp__box__echo", False),
        ("mcp__box-echo", "mcp__box__echo", False),
    ],
)
def test_t166_an_unambiguous_misspelling_of_a_server_is_reported_and_the_deny_rule_applies(
    text: str, meant: str, covers_other: bool
):
    book = denying(text, "box", "third")
    [problem] = book.problems
    assert problem.endswith(f"(did you mean {meant}?); until it is corrected it applies to {meant}, too")
    assert any(rule.is_about(ECHO) for rule in book.rules)
    assert any(rule.is_about(OTHER) for rule in book.rules) is covers_other


@pytest.mark.parametrize(
    ("text", "meant"),
    [("mcp__boxxes", "mcp__boxx"), ("mcp__bxx", "mcp__boxx"), ("mcp__boxxx__echo", "mcp__boxx__echo")],
)
def test_t166_a_name_similar_to_that_of_a_server_is_reported(text: str, meant: str):
    assert denying(text, "boxx").problems == (
        f"file.json: deny rule {text!r}: no server has that name (did you mean {meant}?); it has no effect",
    )


@pytest.mark.parametrize(
    "text", ["mcp__github", "mcp__github__x", "mcp__boxx", "mcp__boxx__y", "mcp__bo*", "read_result", "Bash"]
)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_t166_rules_for_servers_that_may_be_added_later_are_not_a_problem(behaviour: str, text: str):
    rules = PermissionRules(**{behaviour: (text,)})
    book = Rulebook.of([("user", "file.json", rules)], servers=["boxx", "bash"], chosen=["boxx", "bash"])
    assert book.problems == ()
    assert len(book.rules) == 1


ENTRY = {"command": "/bin/echo"}


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("name", ["Box", "other box", "b\u043ex"], ids=ascii)
def test_t166_the_name_of_a_project_entry_does_not_lift_a_prohibition(home: Path, name: str):
    """A name that exactly matches a server applies to that server only, unless a repository chose the
    name."""
    projects.write(home / "work" / ".mcp.json", projects.servers(**{name: ENTRY}))
    for key, state in (("deniedMcpServers", "refused"), ("disabledMcpServers", "disabled")):
        projects.user(home, {key: [name], **projects.servers(box=ENTRY)})
        assert projects.eligibilities()["box"] == state
    assert any(
        rule.is_about(ECHO) for rule in denying("mcp__box_echo", "box", "box_echo", chosen=("box",)).rules
    )


async def test_t166_the_host_reports_the_rule_and_refuses_the_call(home: Path):
    file = projects.user(home, {"permissions": {"deny": ["mcp__box_echo"]}})
    async with Host.configured(
        servers={"box": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(timeout=30)
        assert host.problems == (
            f"{file}: deny rule 'mcp__box_echo': no server has that name (did you mean mcp__box__echo?); "
            "until it is corrected it applies to mcp__box__echo, too",
        )
        assert (await host.call("mcp__box__echo", {"message": "x"})).is_error
