"""T583: a value that a name marks as secret is redacted wherever the entry repeats it, and an unusable
entry is redacted like any other."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e import forked
from tests.torture.projects import servers, user

pytestmark = pytest.mark.requirement("CFG-4")
SECRET = "canary-0123456789"
KEY = {"API_KEY": SECRET}
URL = "http://127.0.0.1:9/mcp"
ENTRIES: dict[str, dict[str, Any]] = {
    "an argument": {"command": "x", "args": ["serve", SECRET], "env": KEY},
    "a part of an argument": {"command": "x", "args": [f"serve:{SECRET}/a"], "env": KEY},
    "a list as the command": {"command": ["x", SECRET], "env": KEY},
    "a list as an argument": {"command": "x", "args": [["--token", SECRET]]},
    "the path of a URL": {"url": f"{URL}/{SECRET}", "headers": {"Authorization": f"Bearer {SECRET}"}},
    "an unknown field": {"command": "x", "note": f"it is {SECRET}", "env": KEY},
}
COMMANDS = [("mcp", "list"), ("mcp", "list", "--json"), ("mcp", "get", "box"), ("config", "explain")]


@pytest.mark.parametrize("entry", ENTRIES)
def test_t583_no_command_prints_the_secret(home: Path, entry: str):
    user(home, servers(box={**ENTRIES[entry], "disabled": True}))
    for command in COMMANDS:
        ended = forked.run(*command)
        assert "box" in ended.stdout
        assert SECRET not in ended.stdout + ended.stderr
