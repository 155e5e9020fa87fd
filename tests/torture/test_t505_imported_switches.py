"""T505: a server that the file of another client disables in an unusual form is not imported as enabled."""

import json
from pathlib import Path

import pytest

from tests.e2e.forked import run
from tests.torture.projects import eligibilities, write

pytestmark = pytest.mark.requirement("CFG-12")

DISABLING = {
    "text": {"disabled": "true"},
    "number": {"disabled": 1},
    "list": {"disabled": [True]},
    "no": {"enabled": "no"},
    "zero": {"enabled": 0},
}
NOT_DISABLING = {
    "false": {"disabled": False},
    "true": {"enabled": True},
    "null": {"disabled": None, "enabled": None},
}


def imported(format_: str, file: Path) -> dict[str, str]:
    found = run("mcp", "import", format_, str(file))
    assert found.returncode == 0, found.stderr
    return eligibilities()


@pytest.mark.parametrize("format_", ["cursor", "windsurf", "vscode", "gemini"])
def test_t505_a_server_disabled_in_json_is_not_enabled(home: Path, format_: str):
    entries = {
        name: {"command": "server", **switch} for name, switch in {**DISABLING, **NOT_DISABLING}.items()
    }
    block = "servers" if format_ == "vscode" else "mcpServers"
    file = write(home / "theirs.json", {block: entries})
    states = imported(format_, file)
    assert states == {**dict.fromkeys(DISABLING, "disabled"), **dict.fromkeys(NOT_DISABLING, "ready")}


def test_t505_a_server_disabled_in_toml_is_not_enabled(home: Path):
    lines = [
        f"[mcp_servers.{name}]\ncommand = 'server'\n{key} = {json.dumps(value)}\n"
        for name, switch in DISABLING.items()
        for key, value in switch.items()
    ]
    file = home / "config.toml"
    file.write_text("\n".join(lines))
    assert set(imported("codex", file).values()) == {"disabled"}
