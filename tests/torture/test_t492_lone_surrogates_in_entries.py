"""T492: a server's entry contains a lone surrogate as an escape, in its name or in values for its program.
The entry is refused with a readable error, and the others are used."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-2")
ECHO = {"command": "/bin/echo"}
PASSED = "a lone surrogate cannot be passed to a program"
ENTRIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "name": ("box\ud83d", ECHO, "a lone surrogate cannot be a part of its name"),
    "name, second half": ("\udc80box", ECHO, "a lone surrogate cannot be a part of its name"),
    "command": ("box", {"command": "/bin/echo\ud83d"}, PASSED),
    "argument": ("box", {**ECHO, "args": ["\udfff"]}, PASSED),
    "variable": ("box", {**ECHO, "env": {"A\ud83d": "a"}}, PASSED),
    "value": ("box", {**ECHO, "env": {"A": "\udc7f"}}, PASSED),
    "folder": ("box", {**ECHO, "cwd": "/tmp/\ud83d"}, PASSED),
}


@pytest.mark.parametrize(("name", "entry", "cause"), ENTRIES.values(), ids=ENTRIES)
def test_t492_the_entry_is_refused_with_a_readable_error(
    home: Path, name: str, entry: dict[str, Any], cause: str
):
    file = projects.user(home, projects.servers(**{name: entry, "other": ECHO}))
    found = projects.seen().servers
    assert {each: server.eligibility for each, server in found.items()} == {name: "broken", "other": "ready"}
    line = 1 + file.read_text().splitlines().index(f"    {json.dumps(name)}: {{")
    assert found[name].reason == f"{file}, line {line}, column 5: server {name!r}: {cause}"


def test_t492_bytes_of_a_variable_that_are_not_utf_8_are_passed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLDER", "/caf\udce9")  # how Python reads the byte E9
    projects.user(home, projects.servers(box={**ECHO, "args": ["${FOLDER}"]}))
    found = projects.seen().servers["box"]
    assert found.eligibility == "ready"
    assert found.config is not None
    assert found.config.args == ("/caf\udce9",)
