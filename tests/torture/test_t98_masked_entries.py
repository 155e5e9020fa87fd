"""T98: Credentials in commands are masked wherever an entry is shown; no client secret is written into a
project's folder."""

import json
from pathlib import Path

import pytest

from dragoman.config.masking import masked_entry, masked_text
from tests.e2e.forked import run
from tests.torture import projects
from tests.torture.projects import servers

CANARY = "c4nary-p4ss"
URL = "https://api.example.com/mcp"

HELPERS = {
    f"curl -u me:{CANARY} https://x.example.com": "curl -u me:••• https://x.example.com",
    f"curl --user me:{CANARY} x": "curl --user me:••• x",
    f"curl --user=me:{CANARY} x": "curl --user=me:••• x",
    f"curl -H 'Authorization: Bearer {CANARY}' x": "curl -H 'Authorization: •••' x",
    f'curl -H "X-Api-Key: {CANARY}" x': 'curl -H "X-Api-Key: •••" x',
    f"curl -H X-Api-Key:{CANARY} x": "curl -H X-Api-Key:••• x",
    f"curl -H X-Other:\\ {CANARY} x": "curl -H X-Other: ••• x",
    f"sh -c 'curl -u me:{CANARY} x'": "sh -c 'curl -u me:••• x'",
    f"TOKEN={CANARY} print-headers": "TOKEN=••• print-headers",
    f"curl --header='X-Api: {CANARY}' x": "curl --header=X-Api: ••• x",
    f"curl -ume:{CANARY} x": "curl -ume:••• x",
    f"curl -su me:{CANARY} x": "curl -su me:••• x",
    f"helper --pat {CANARY} --jwt {CANARY} --pw {CANARY}": "helper --pat ••• --jwt ••• --pw •••",
    f"""curl -d '{{"password":"{CANARY} x"}}' x""": """curl -d '{"password":"•••"}' x""",
    "docker run -u 1000:1000 image": "docker run -u 1000:1000 image",
    "print-headers --format json": "print-headers --format json",
    "curl -u ${USER}:${PASSWORD} x": "curl -u ${USER}:${PASSWORD} x",
}


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(("helper", "shown"), HELPERS.items())
def test_a_helper_is_shown_without_its_credentials(helper: str, shown: str):
    assert masked_text(helper) == shown
    assert masked_entry({"url": URL, "headersHelper": helper})["headersHelper"] == shown


ARGUMENTS = [
    ["-u", f"me:{CANARY}", "x"],
    ["--user", f"me:{CANARY}"],
    [f"--user=me:{CANARY}"],
    ["-c", f"curl -u me:{CANARY} x"],
    ["-c", f"curl -H 'Authorization: Bearer {CANARY}' x"],
    ["-H", f"X-Other: {CANARY}"],
    [f"--header=Authorization: Bearer {CANARY}"],
    [f"--header=X-Api: {CANARY}"],
    [f"-HX-Foo: {CANARY}"],
    [f"-ume:{CANARY}"],
    ["--basic", f"me:{CANARY}"],
    ["--pat", CANARY, "--jwt", CANARY, "--pw", CANARY],
    ["-c", f"helper --pat {CANARY}"],
    [f'{{"password":"{CANARY}","url":"postgres://u:{CANARY}@h/db"}}'],
    [f"jdbc:postgresql://h/db?user=u&password={CANARY}"],
]


@pytest.mark.parametrize("args", ARGUMENTS, ids=str)
def test_arguments_are_shown_without_credentials(home: Path, args: list[str]):
    projects.user(home, servers(box={"command": "sh", "args": args}))
    ended = run("mcp", "get", "box")
    assert "box" in ended.stdout
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("command", ["config explain", "mcp list", "mcp list --json"])
def test_arguments_of_many_entries_are_shown_without_credentials(home: Path, command: str):
    entries = {f"box{number}": {"command": "sh", "args": args} for number, args in enumerate(ARGUMENTS)}
    projects.user(home, servers(**entries))
    ended = run(*command.split())
    assert all(name in ended.stdout for name in entries)
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("args", ARGUMENTS, ids=str)
def test_arguments_are_shown_as_json_without_credentials(home: Path, args: list[str]):
    projects.user(home, servers(box={"command": "sh", "args": args}))
    ended = run("mcp", "get", "box", "--json", "--no-health")
    assert json.loads(ended.stdout)["name"] == "box"
    assert CANARY not in ended.stdout + ended.stderr


def test_a_command_that_cannot_be_found_is_named_without_credentials(home: Path):
    projects.user(home, servers(box={"command": f"TOKEN={CANARY} srv"}))
    ended = run("mcp", "get", "box")
    assert "there is no program 'TOKEN=••• srv' on PATH" in ended.stdout + ended.stderr
    assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("helper", [each for each in HELPERS if CANARY in each])
def test_commands_show_no_credentials_of_a_helper(home: Path, helper: str):
    projects.user(home, servers(box={"url": "http://127.0.0.1:9/mcp", "headersHelper": helper}))
    for command in (["mcp", "get", "box"], ["config", "explain"]):
        ended = run(*command)
        assert CANARY not in ended.stdout + ended.stderr


@pytest.mark.parametrize("scope", ["local", "project"])
def test_a_client_secret_is_not_written_into_a_projects_folder(home: Path, scope: str):
    entry = json.dumps({"url": URL, "oauth": {"clientId": "me", "clientSecret": CANARY}})
    ended = run("mcp", "add-json", "-s", scope, "box", entry)
    assert (ended.returncode, CANARY in ended.stdout + ended.stderr) == (0, False), "it is stored"
    assert run("mcp", "remove", "-s", scope, "box").returncode == 0
    default = json.dumps({"url": URL, "oauth": {"clientId": "me", "clientSecret": f"${{X:-{CANARY}}}"}})
    assert run("mcp", "add-json", "-s", scope, "box", default).returncode == 3
    beside = json.dumps({"url": URL, "oauth": {"clientId": "me", "clientSecret": f"{CANARY}${{X}}"}})
    assert run("mcp", "add-json", "-s", scope, "box", beside).returncode == 3
    written = [path for path in (home / "work").rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert written == []
    named = json.dumps({"url": URL, "oauth": {"clientId": "me", "clientSecret": "${SECRET}"}})
    assert run("mcp", "add-json", "-s", scope, "box", named).returncode == 0
