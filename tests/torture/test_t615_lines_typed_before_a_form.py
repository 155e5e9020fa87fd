"""T615: lines that were typed before a form appeared are not values of its fields: they may have been meant
for another program, and would be sent to the server."""

from pathlib import Path

import pytest

from tests.e2e.command import config
from tests.e2e.person import Person
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("ASK-1")


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_t615_a_form_ignores_lines_that_were_typed_before_it(home: Path, era: str):
    server = config(s=stdio_server("asks_for_a_name.py", protocol=era))
    with Person("call", "mcp__s__greet", "--mcp-config", server) as person:
        person.type(b"ssh-password\ny\n")
        person.sees("name (required): ")
        person.type(b"ada\n")
        shown = person.answers("y/e/n/c", "y")
        assert "ssh-password" not in shown
        code, ended = person.ends()
    assert code == 0
    assert '"ada"' in ended
