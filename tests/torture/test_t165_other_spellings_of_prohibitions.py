"""T165: a prohibition of a server or program applies in other spellings, or is reported to have no
effect."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

ECHO = {"command": "/bin/echo"}
WITH_ARGUMENTS = {"command": "/bin/echo", "args": ["-y", "pkg"]}
COMMANDS: list[tuple[dict[str, Any], list[str]]] = [
    (ECHO, ["/bin//echo"]),
    (ECHO, ["//bin/echo"]),
    (ECHO, ["echo "]),
    (ECHO, ["echo\n"]),
    (ECHO, ["'/bin/echo'"]),
    (ECHO, ["/bin/echo/"]),
    (ECHO, ["/bin/x/../echo"]),
    (ECHO, ["./x/../echo"]),
    (ECHO, ["/*/../bin/echo"]),
    (ECHO, ["$HOME/echo"]),
    (ECHO, ["\u0435cho"]),
    (ECHO, ["echo"]),
    ({"command": "echo"}, ["/bin/echo"]),
    ({"command": "echo"}, ["/usr/bin/echo"]),
    ({"command": "/usr/bin/echo"}, ["/bin/ech*"]),
    (WITH_ARGUMENTS, ["echo -y pkg"]),
    (WITH_ARGUMENTS, ["/bin//echo -y pkg"]),
    (WITH_ARGUMENTS, ["echo", "-y pkg"]),
    (WITH_ARGUMENTS, ["echo", "-y", " pkg "]),
    (WITH_ARGUMENTS, ["echo", "-y", "$PACKAGE"]),
]


def denying(home: Path, entry: dict[str, Any], command: list[str]) -> str:
    projects.user(home, {"deniedMcpServers": [{"serverCommand": command}]})
    return projects.eligibilities(given={"box": entry})["box"]


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("entry", "command"), COMMANDS, ids=ascii)
def test_t165_a_denied_program_is_denied_in_every_spelling(
    home: Path, entry: dict[str, Any], command: list[str]
):
    assert denying(home, entry, command) == "refused"


def test_t165_a_denied_path_applies_to_the_target_of_a_symlink(home: Path):
    (home / "bin").symlink_to("/bin")
    assert denying(home, ECHO, [f"{home}/bin/echo"]) == "refused"
    assert denying(home, ECHO, ["~/bin/echo"]) == "refused"


@pytest.mark.parametrize("command", [["/no/such/echo"], ["/bin/tru*"], ["ech"], ["echo", "x"]], ids=str)
def test_t165_another_program_is_not_denied(home: Path, command: list[str]):
    assert denying(home, ECHO, command) == "ready"


@pytest.mark.parametrize("command", [["$HOME/echo"], ["/bin//echo"], ["\u0435cho"], ["echo "]], ids=ascii)
def test_t165_an_allowed_program_matches_exactly(home: Path, command: list[str]):
    projects.user(home, {"allowedMcpServers": [{"serverCommand": command}]})
    assert projects.eligibilities(given={"box": ECHO})["box"] == "refused"


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("program", ["echo", "/bin//echo", "ech*"])
def test_t165_a_rule_with_the_program_only_is_reported_for_a_server_with_arguments(home: Path, program: str):
    file = projects.user(home, {"deniedMcpServers": [{"serverCommand": [program]}]})
    seen = projects.seen(given={"box": WITH_ARGUMENTS, "other": WITH_ARGUMENTS, "third": {"command": "ls"}})
    assert seen.servers["box"].eligibility == "ready"
    assert seen.problems == (
        f'{file}: deniedMcpServers: serverCommand ["{program}"] means the command without arguments, and '
        "does not deny 'box', which has some; write them too, * for any",
    )


NAMES: list[tuple[str, str]] = [
    ("box", "b\u043ex"),
    ("b\u043ex", "box"),
    ("paypal", "\u0440\u0430\u0443\u0440\u0430l"),
    ("PAYPAL", "\u0420\u0410\u0423P\u0410L"),
    ("box", "mcp__box@"),
    ("box", "other box"),
    ("box", "other  box third"),
    ("box", "mcp__other mcp__box"),
]


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("name", "written"), NAMES, ids=ascii)
def test_t165_a_prohibited_name_applies_to_lookalike_letters(home: Path, name: str, written: str):
    given = {name: ECHO}
    projects.user(home, {"deniedMcpServers": [{"serverName": written}]})
    assert projects.eligibilities(given=given) == {name: "refused"}
    projects.user(home, {"disabledMcpServers": [written]})
    assert projects.eligibilities(given=given) == {name: "disabled"}
    projects.user(home, {"disabledMcpjsonServers": [written], "enableAllProjectMcpServers": True})
    projects.write(home / "work" / ".mcp.json", projects.servers(**given))
    assert projects.eligibilities() == {name: "rejected"}


@pytest.mark.parametrize(("name", "written"), NAMES, ids=ascii)
def test_t165_a_permitted_name_matches_exactly(home: Path, name: str, written: str):
    projects.user(home, {"allowedMcpServers": [{"serverName": written}]})
    assert projects.eligibilities(given={name: ECHO}) == {name: "refused"}
    projects.user(home, {"enabledMcpjsonServers": [written]})
    projects.write(home / "work" / ".mcp.json", projects.servers(**{name: ECHO}))
    assert projects.eligibilities() == {name: "pending"}


def test_t165_a_name_with_blanks_that_exactly_matches_a_server_applies_to_that_server_only(home: Path):
    given = {"Google Drive": ECHO, "drive": ECHO}
    for key, state in (("deniedMcpServers", "refused"), ("disabledMcpServers", "disabled")):
        projects.user(home, {key: ["Google Drive"]})
        assert projects.eligibilities(given=given) == {"Google Drive": state, "drive": "ready"}


SIMILAR_NAMES = ["boxx.echo", "mcp__boxx_echo", "mcp__boxx__echo", "boxx/echo", "boxxx", "bxx", "mcp__boxxx"]


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("key", ["deniedMcpServers", "disabledMcpServers", "disabledMcpjsonServers"])
@pytest.mark.parametrize("written", SIMILAR_NAMES)
def test_t165_a_name_that_no_server_has_is_reported_with_the_nearest_name(home: Path, key: str, written: str):
    file = projects.user(home, {key: [written]})
    seen = projects.seen(given={"boxx": ECHO})
    assert seen.servers["boxx"].eligibility == "ready"
    assert seen.problems == (
        f"{file}: {key}: no server has the name {written!r}, so it has no effect; did you mean 'boxx'?",
    )


@pytest.mark.parametrize("written", ["github", "boxx", "boxx*", "b*", "other boxx"])
def test_t165_names_of_servers_that_are_configured_elsewhere_are_not_a_problem(home: Path, written: str):
    projects.user(home, {"deniedMcpServers": [written], "disabledMcpServers": [written]})
    assert projects.seen(given={"boxx": ECHO}).problems == ()
