"""T331: a secret in the command of a hook appears in no reason, and so in no model answer and no log."""

import sys
from pathlib import Path

import pytest

from dragoman.hooks.declared import name_of_command
from tests.e2e import forked
from tests.servers import SERVER_PROGRAMS
from tests.torture.projects import user

pytestmark = pytest.mark.requirement("PRM-5")
SECRET = "canary-0123456789"
COMMANDS = {
    "a variable in quotes": f'API_KEY="{SECRET}" sh deny.sh',
    "single quotes": f"API_KEY='a {SECRET}' sh deny.sh",
    "an escaped blank": f"API_KEY=a\\ {SECRET} sh deny.sh",
    "env": f'env "API_KEY=a {SECRET}" sh deny.sh',
    "an option of an interpreter": f"sh -o nounset -c 'exit 2' {SECRET}",
}


@pytest.mark.parametrize("how", COMMANDS)
def test_t331_a_refusal_names_only_the_program_of_the_hook(
    home: Path, how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(home / "work")
    (home / "work" / "deny.sh").write_text("exit 2\n")
    hook = {"type": "command", "command": COMMANDS[how]}
    user(
        home,
        {
            "mcpServers": {
                "calm": {"command": sys.executable, "args": [str(SERVER_PROGRAMS / "well_behaved.py")]}
            },
            "hooks": {"PreToolUse": [{"hooks": [hook]}]},
        },
    )
    ended = forked.run("call", "mcp__calm__echo", "--json")
    assert ended.returncode == 6
    assert "refused by the hook" in ended.stdout
    logs = "".join(file.read_text() for file in home.rglob("*.jsonl"))
    assert "mcp__calm__echo" in logs
    assert SECRET not in ended.stdout + ended.stderr + logs


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (f"uvx --index https://me:{SECRET}@example.com/simple hook", "uvx"),
        (f"npx -y https://me:{SECRET}@example.com/hook.tgz", "npx https://•••@example.com/hook.tgz"),
        (f"node --token {SECRET} hook.js", "node"),
        ("python3 -m hooks.check x", "python3 hooks.check"),
        ("'/my hooks/check.sh' x", "/my hooks/check.sh"),
        (f'KEY="$(vault read {SECRET})" check', "check"),
    ],
)
def test_t331_the_display_name_of_a_hook_command(command: str, name: str):
    assert name_of_command(command) == name
