"""T243: a message that the search program prints between names hides no name from the rules about Read."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools

pytestmark = pytest.mark.requirement("AGT-3")
RIPGREP = """#!/bin/sh
printf './a.bin\\0001:KEY=1\\n'
printf './a.bin: WARNING: stopped searching binary file after match (found "\\\\0" byte around offset 9)\\n'
printf './keys.txt\\0001:KEY=canary\\n'
printf './plain.txt\\0001:KEY=2\\n'
"""
"""Writes what ripgrep 13 writes for these files, where the first has a NUL far behind."""


async def test_t243_a_message_before_a_name_is_not_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program, folder = tmp_path / "bin" / "rg", tmp_path / "work"
    program.parent.mkdir()
    folder.mkdir()
    program.write_text(RIPGREP)
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    rules = {"deny": [f"Read(file_path={folder}/keys.txt)"]}
    async with Host({}, rules=rules) as host, open_agent_tools(host, Folders(folder)) as agent_tools:
        found = (await agent_tools.toolbox.call("Grep", {"pattern": "KEY"})).text
    assert found == "a.bin:1:KEY=1\nplain.txt:1:KEY=2\n(1 file left out because of a rule about Read.)"
