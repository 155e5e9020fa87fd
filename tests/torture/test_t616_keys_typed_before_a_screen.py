"""T616: keys that were typed before a form or a sampling request appeared on a screen neither fill it in
nor submit it: Enter in the last field of a form submits it."""

import select
import termios
import time
from pathlib import Path

import pytest

from dragoman.tui.questions import QUIET_SECONDS
from tests.e2e.command import LIMIT_SECONDS, config
from tests.e2e.person import Person
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("ASK-1")


def waits_for_keys(person: Person) -> bool:
    """Whether the terminal delivers each key, as it does after the start of a screen."""
    return not termios.tcgetattr(person._master)[3] & termios.ICANON


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_t616_a_form_is_not_submitted_by_keys_that_were_typed_before_it(home: Path, era: str):
    server = config(s=stdio_server("asks_for_a_name.py", protocol=era))
    environment = {"DRAGOMAN_PLAIN": ""}
    with Person("call", "mcp__s__greet", "--mcp-config", server, env=environment) as person:
        person.type(b"ssh-password\n")
        deadline = time.monotonic() + LIMIT_SECONDS
        while not waits_for_keys(person):
            assert time.monotonic() < deadline
            select.select([], [], [], 0.001)
        person.type(b"more\r")
        person.sees("No, decline")
        person.type(b"x\r")  # sent without a pause
        time.sleep(2 * QUIET_SECONDS)
        person.type(b"\x0e")
        person.ends()
    assert '{"action": "decline"}' in person._output.decode()
